"""Count how often README's first command refutes one of its three true claims.

    python benchmarks/first_command.py [--seeds N] [--trials N] [--attacks known|auto]

The libraries are replaced by the laws of their noise, which are drawn much faster: OpenDP's Laplace noise (continuous
up to the rounding of floats), OpenDP's Gaussian noise, and PyDP's Laplace noise (a two-sided geometric law on a grid of
2^-40).  Each claim is exactly true, at its boundary.  Confidence and number of audits are those of
configs/quickstart.yaml, split as `dpaudit run` splits them.  `known` attacks know the likelihood ratio, so evidence is
as large as possible; `auto` attacks are those of the command, and take about four seconds per audit.

The exit code is 1 if more than one command in 200 refutes a true claim, or the same share of N.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import Pair, PureDP, TradeoffFunction, ZeroConcentratedDP, audit
from dpaudit.config.files import read_configs
from dpaudit.result.suite import Promise
from measure import Expected, Outcome, Table, rate, run

QUICKSTART = Path(__file__).resolve().parents[1] / "configs" / "quickstart.yaml"
_GRID = 2.0**-40  # step of the grid of PyDP's noise at epsilon 1 and sensitivity 1


@dataclass(frozen=True)
class Sum:
    """A sum of clamped numbers with the noise of a library."""

    noise: str  # opendp-laplace, opendp-gaussian or pydp
    name = "known"
    calibrated = True  # scores are log-likelihood ratios

    @property
    def claim(self) -> TradeoffFunction:
        return ZeroConcentratedDP(0.5) if self.noise == "opendp-gaussian" else PureDP(1.0)

    def sample(self, dataset: Sequence[float], n: int, rng: np.random.Generator) -> Any:
        true = float(np.clip(dataset, 0.0, 1.0).sum())
        if self.noise == "opendp-gaussian":
            return true + rng.normal(size=n)
        if self.noise == "opendp-laplace":
            return true + rng.laplace(size=n)
        steps = rng.geometric(-math.expm1(-_GRID), size=n) - rng.geometric(-math.expm1(-_GRID), size=n)
        return (np.round(true / _GRID) + steps) * _GRID

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Callable[[Any], Any]:
        low, high = 0.7, 1.7  # the sums of the two datasets
        if self.noise == "opendp-gaussian":
            return lambda x: (high - low) * (np.asarray(x) - (low + high) / 2)
        return lambda x: np.abs(np.asarray(x) - low) - np.abs(np.asarray(x) - high)


TRUE_CLAIMS = {
    "opendp-laplace-sum": Sum("opendp-laplace"),
    "opendp-gaussian-sum": Sum("opendp-gaussian"),
    "pydp-bounded-sum": Sum("pydp"),
}


def refuted(trials: int, attacks: str, seed: int) -> Outcome:
    """Return the true claims that one simulated command refutes."""
    planned = read_configs([QUICKSTART])
    promise = Promise.of([one.config.confidence for one in planned])
    names = []
    for number, (one, confidence) in enumerate(zip(planned, promise.confidences, strict=True)):
        mechanism = TRUE_CLAIMS.get(one.config.name)
        if mechanism is None:
            continue  # the mistake that is to be found
        result = audit(
            mechanism,
            mechanism.claim,
            [Pair(pair.d0, pair.d1, pair.relation) for pair in one.pairs],
            attacks=[mechanism] if attacks == "known" else attacks,
            trials=trials or one.config.trials,
            confidence=confidence,
            seed=1000 * seed + number,
        )
        if result.violated:
            names.append(one.config.name)
    return {"refuted": bool(names), "claims": names}


def tables(options: argparse.Namespace) -> list[Table]:
    case = Expected(
        cells=("README's first command",),
        measure=partial(refuted, options.trials, options.attacks),
        seeds=200,
        right=lambda outcomes: sum(one["refuted"] for one in outcomes) <= max(1, len(outcomes) // 200),
    )
    names = {"which": lambda _, outcomes: ", ".join(name for one in outcomes for name in one["claims"])}
    return [Table(headings=("command",), columns={"refute a true claim": rate("refuted"), **names}, cases=[case])]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, trials=0, attacks="known"))
