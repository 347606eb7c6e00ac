# requires: pipeline-dp==0.3.1, apache-beam==2.77.0
"""PipelineDP as a mechanism, on `LocalBackend` or on Beam's direct runner: `python: pipelinedp.py:mechanism`.

A pipeline takes seconds to start, so one pipeline makes all runs of a call.
"""

import json
import tempfile
from pathlib import Path

import apache_beam as beam
import pipeline_dp

DAYS = ["Mo", "Tu"]


class Visits:
    """Visits on each day, of people with at most one visit; each run has its own people and days in one pipeline."""

    claim = "pure(epsilon=1)"

    def __init__(self, backend):
        self._backend = backend

    def sample(self, dataset, n, rng):
        rows = [(f"{run} {person}", f"{run} {day}") for run in range(n) for person, day in dataset]
        days = [f"{run} {day}" for run in range(n) for day in DAYS]
        if self._backend == "local":
            counts = {day: found.count for day, found in self._counted(rows, days, pipeline_dp.LocalBackend())}
            return [[counts[f"{run} {day}"] for day in DAYS] for run in range(n)]
        with tempfile.TemporaryDirectory() as folder:
            with beam.Pipeline("DirectRunner") as pipeline:
                counted = self._counted(pipeline | beam.Create(rows), days, pipeline_dp.BeamBackend())
                lines = counted | beam.MapTuple(lambda key, found: json.dumps([key, found.count]))
                lines | beam.io.WriteToText(f"{folder}/counts")
            found = [json.loads(line) for file in Path(folder).iterdir() for line in file.read_text().splitlines()]
        return [[dict(found)[f"{run} {day}"] for day in DAYS] for run in range(n)]

    def _counted(self, rows, days, backend):
        budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=0)
        what = pipeline_dp.AggregateParams(
            metrics=[pipeline_dp.Metrics.COUNT],
            noise_kind=pipeline_dp.NoiseKind.LAPLACE,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
        )
        where = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: 1,
        )
        found = pipeline_dp.DPEngine(budget, backend).aggregate(rows, what, where, public_partitions=days)
        budget.compute_budgets()
        return found


mechanism = Visits("local")
