"""The design of an audit of training, its scores and its assumptions."""

from __future__ import annotations

from functools import partial

from dpaudit.result.model import AuditResult
from dpaudit.result.training import TrainingRecord
from dpaudit.result.words import words_of
from dpaudit.rounding import (
    count,
)
from dpaudit.text import printable
from dpaudit_reports.blocks import (
    Block,
    Columns,
    Figure,
    Heading,
    KeyValues,
    Panel,
    Text,
)
from dpaudit_reports.figures.evidence import training_svg

_DESIGNS = {
    "many runs": "many runs: each model was trained on d0 or on d1, and has one score",
    "one run": "one run: a fair coin decided for each canary whether it was included, and each canary has one score",
    "sequential": "many runs: models were trained on both datasets until the evidence sufficed; scores are learned",
    "fixed": "many runs: a fixed number of models was trained on both datasets; scores are learned",
    "step by step": "step by step: a fair coin decided before each step whether the canary joined the batch",
}
_SIDES = {  # of designs in which canaries are included at random; the others train models on d0 and on d1
    "one run": ("excluded canaries", "included canaries"),
    "step by step": ("steps without canary", "steps with canary"),
}
_INDEPENDENT = "trainings are independent of each other; the two datasets are neighbours in the sense of the claim"
_ASSUMPTIONS = {
    "many runs": f"{_INDEPENDENT}; the number of models was chosen before the first score was seen",
    "one run": (
        "the coins are fair and secret, so scores depend on them only through the trained model; the claim is about a "
        "record that is added or removed; the number of guesses was chosen before the scores were seen"
    ),
    "step by step": (
        "the coins are fair and secret, so the score of a step depends on its coin only through the release of this "
        "step; the claim is about one step with a full batch, given all earlier steps"
    ),
}


def training(result: AuditResult) -> tuple[Block, ...]:
    """Return the design of an audit of training, its scores and its assumptions; other audits have no such section."""
    record = result.training
    if record is None:
        return ()
    canaries = "canaries" if record.design in _SIDES else "datasets"
    rows: list[tuple[str, Text]] = [("design", _DESIGNS[record.design])]
    if record.training:
        rows.append(("training", printable(record.training)))
    rows.append((canaries, printable(record.canary)))
    assumed = _ASSUMPTIONS.get(record.design, _INDEPENDENT)
    if record.design == "one run" and not words_of(result.evidence).assumption:
        assumed += "; canaries may depend on each other in any way"
    rows.append(("assumed", assumed))
    if not record.edges:
        return Heading("Training"), KeyValues(tuple(rows))
    rows.append(("scores", _sizes(record)))
    names = ("without canary", "with canary") if record.design in _SIDES else ("d0", "d1")
    alt = f"Two histograms of scores: {_sizes(record)}."
    figure = Figure((Panel(partial(training_svg, record, *names), alt=alt, title="Scores"),), _SCORES)
    return Heading("Training"), Columns((figure,), (KeyValues(tuple(rows)),))


_SCORES = "A higher score reveals the canary. The first and the last bar include more extreme scores."


def _sizes(record: TrainingRecord) -> str:
    without, included = _SIDES.get(record.design, ("models on d0", "models on d1"))
    return f"{count(sum(record.out))} {without}, {count(sum(record.into))} {included}"
