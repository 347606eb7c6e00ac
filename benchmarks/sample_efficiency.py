"""Compares the mean number of runs until a false claim is refuted with the least mean of any sequential test.

    python benchmarks/sample_efficiency.py [--seeds 200] [--only TEXT ...] [--confidence C] [--detect]
    python benchmarks/sample_efficiency.py --only speed --jobs 1

Every audit uses `attacks="auto"`, and nothing is known about the mechanism.  With `--detect`, the truth is the
violation that the audit should detect.  The limit is ln(1 / (1 - C)) / KL*, where KL* is the least Kullback-Leibler
divergence from the truth to the claim (docs/guarantees.md).

The table `speed` shows the processor time and the memory of audits of true claims, which make all their runs.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpaudit import Pair, audit
from dpaudit.catalogue import Gaussian, Laplace
from measure import Case, Outcome, Table, mean, of, run


@dataclass(frozen=True)
class Response:
    """Randomised response that keeps its bit with probability e^epsilon / (1 + e^epsilon)."""

    epsilon: float

    def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        lie = 1 / (1 + math.exp(self.epsilon))
        return (rng.random(n) < (1 - lie if dataset == [1] else lie)).astype(int)


@dataclass(frozen=True)
class Revealing:
    """Randomised response with epsilon = 1 that reveals the dataset with probability delta."""

    delta: float

    def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        return np.where(rng.random(n) < self.delta, 2 + dataset[0], Response(1.0).sample(dataset, n, rng))


@dataclass(frozen=True)
class NewCategory:
    """A category in 40 % of the outputs of d1 and none of d0: its count, also beside those of others, or a text."""

    form: str = "count"

    def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        counts = (rng.random(n) < 0.4 * dataset[0]) * rng.integers(1, 7, n)
        if self.form == "text":
            return ["z" if count else "a" for count in counts]
        others = rng.multinomial(20, [0.5, 0.3, 0.2], n)
        return counts if self.form == "count" else np.column_stack([others, counts])


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A false claim, the mechanism, and its trade-off function."""

    claim: str
    truth: str
    mechanism: Any
    curve: str
    divergence: float  # KL* in nats


MISTAKES = [
    Mistake(claim=claim, truth=truth, mechanism=mechanism, curve=curve, divergence=math.log(20) / limit)
    for claim, truth, mechanism, curve, limit in (
        ("gaussian(mu=0.5)", "Gaussian, mu 1", Gaussian(1.0), "gaussian(mu=1)", 54),
        ("gaussian(mu=0.8)", "Gaussian, mu 1", Gaussian(1.0), "gaussian(mu=1)", 339),
        ("gaussian(mu=1)", "Gaussian, mu 1.2", Gaussian(1 / 1.2), "gaussian(mu=1.2)", 356),
        ("gaussian(mu=1)", "Gaussian, mu 1.1", Gaussian(1 / 1.1), "gaussian(mu=1.1)", 1387),
        ("gaussian(mu=1)", "Gaussian, mu 1.05", Gaussian(1 / 1.05), "gaussian(mu=1.05)", 5535),
        ("pure(epsilon=1)", "Laplace, epsilon 1.2", Laplace(1 / 1.2), "laplace(epsilon=1.2)", 605),
        ("pure(epsilon=1)", "randomised response, epsilon 1.1", Response(1.1), "pure(epsilon=1.1)", 1573),
        (
            "approximate(epsilon=1, delta=1e-5)",
            "Gaussian, sigma 20 % too small",
            Gaussian(1 / 0.335),
            "gaussian(mu=0.335)",
            359_000,
        ),
        (
            "approximate(epsilon=1, delta=1e-5)",
            "rare identifying outputs, delta 0.001",
            Revealing(1e-3),
            "approximate(epsilon=1, delta=1e-3)",
            4838,
        ),
        *(
            (
                "approximate(epsilon=1.1, delta=1e-5)",
                f"new category in 40 %, {form}",
                NewCategory(form),
                "approximate(epsilon=1.1, delta=0.4)",
                23.63,
            )
            for form in ("count", "text", "table")
        ),
    )
]


def trials_used(case: Mistake, confidence: float, detect: bool, seed: int) -> Outcome:
    """Return the runs per dataset of one audit, as users see them."""
    sought = case.curve if detect else None
    pair, trials = Pair([0], [1]), 20_000_000
    result = audit(case.mechanism, case.claim, pair, trials=trials, seed=seed, confidence=confidence, detect=sought)
    return {"trials": result.trials_used}


@dataclass(frozen=True)
class Shifted:
    """Gaussian noise on several numbers, together 1-GDP, as an array, a text with the first number, or a table."""

    numbers: int
    form: str = "array"

    def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        rows = rng.normal(dataset[0] / math.sqrt(self.numbers), size=(n, self.numbers))
        if self.form == "text":
            return [f"the answer is {x:.1f}, rounded to a tenth" for x in rows[:, 0].tolist()]
        if self.form == "table":
            return [pd.DataFrame({"value": row, "sign": np.where(row > 0, "positive", "negative")}) for row in rows]
        return rows[:, 0] if self.numbers == 1 else rows


SPEED = {
    "one number": (Shifted(1), 1_000_000),
    "ten numbers": (Shifted(10), 1_000_000),
    "1,024 numbers": (Shifted(1024), 1_000),
    "text": (Shifted(1, "text"), 20_000),
    "tables of 100 rows": (Shifted(100, "table"), 500),
}


def memory(name: str) -> float:
    """Return a figure of this process from Linux, such as VmHWM, its largest memory, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{name}:")[2].split()[0]) / 1024


def cost(mechanism: Any, trials: int, seed: int) -> Outcome:
    """Audit a true claim, after a short audit that loads the libraries."""
    for runs in (100, trials):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the largest memory is now the present one
        began, before = sum(os.times()[:4]), memory("VmRSS")
        audit(mechanism, "gaussian(mu=1.4)", Pair([0], [1]), trials=runs, seed=seed)
    return {"trials": trials, "cpu": sum(os.times()[:4]) - began, "megabytes": memory("VmHWM") - before}


def tables(options: argparse.Namespace) -> list[Table]:
    limits = {case.claim + case.truth: -math.log1p(-options.confidence) / case.divergence for case in MISTAKES}

    def limit(row: Case) -> float:
        return limits["".join(row.cells)]

    return [
        Table(
            headings=("claim", "truth"),
            columns={
                "mean trials": mean("trials", ",.0f"),
                "standard error": of(
                    "trials", lambda x: f"{x.std(ddof=1) / math.sqrt(len(x)) if len(x) > 1 else 0:,.0f}"
                ),
                "limit": lambda row, _: f"{limit(row):,.0f}",
                "ratio": lambda row, outcomes: of("trials", lambda x: f"{x.mean() / limit(row):.2f}")(row, outcomes),
            },
            cases=[
                Case(
                    cells=(case.claim, case.truth),
                    measure=partial(trials_used, case, options.confidence, options.detect),
                    seeds=200,
                )
                for case in MISTAKES
            ],
        ),
        Table(
            name="speed",
            asked=True,
            headings=("output",),
            columns={
                "trials": mean("trials", ",.0f"),
                "processor seconds": mean("cpu", ".2f"),
                "MB": mean("megabytes", ",.0f"),
            },
            cases=[Case(cells=(name,), measure=partial(cost, *audited), seeds=3) for name, audited in SPEED.items()],
        ),
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, confidence=0.95, detect=False))
