"""Audits with each built-in attack on suitable outputs, with several attacks, and with attacks that a user wrote."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import AuditResult, Pair, Timed, audit, batched
from evidence_kinds import PAIR, Rng, family, noisy_vector

_TRIALS = 600


@batched
def _labels(dataset: list[float], n: int, rng: Rng) -> Any:
    """Return outputs that consist of an integer and a category."""
    return np.column_stack([sum(dataset) + rng.geometric(0.5, n), rng.integers(0, 3, n)])


@batched
def _bits(dataset: list[float], n: int, rng: Rng) -> Any:
    """Return a third of the sum plus Laplace noise from the inverse distribution function.

    The last bits of these floats reveal the dataset.
    """
    u = rng.random(n) - 0.5
    with np.errstate(divide="ignore"):
        return sum(dataset) / 3 - np.sign(u) * np.log(1 - 2 * np.abs(u))


def _timed(dataset: list[float], rng: Rng) -> Timed:
    """Return an output that is independent of the dataset, with a simulated time that depends on the dataset."""
    return Timed(rng.normal(), float(rng.exponential(1.0 + sum(dataset))))


@batched
def _numbers(dataset: list[float], n: int, rng: Rng) -> Any:
    return sum(dataset) + rng.laplace(size=n)


def _rows(dataset: list[float], rng: Rng) -> Any:
    """Return a table in which one category occurs more often on d1."""
    return [{"city": str(city)} for city in rng.choice(["Bonn", "Jena", "Ulm"], 5, p=_CITIES[int(sum(dataset) > 0)])]


_CITIES = ([0.4, 0.4, 0.2], [0.3, 0.3, 0.4])

ATTACKS: Mapping[str, Any] = {
    "auto": noisy_vector,
    "events": _labels,
    "float_bits": _bits,
    "forms": noisy_vector,
    "histogram": noisy_vector,
    "known_noise": _numbers,
    "last_bit": _bits,
    "logistic": noisy_vector,
    "low_bits": _bits,
    "neighbours": noisy_vector,
    "ordered_events": _labels,
    "quadratic": noisy_vector,
    "reachable_floats": _bits,
    "time": _timed,
    "spline": noisy_vector,
    "table_queries": _rows,
    "threshold": _numbers,
    "time_and_output": _timed,
    "trees": noisy_vector,
}
"""Name of an attack -> mechanism."""


class _Projection:
    """A user's attack that ranks outputs by their second number."""

    name = "projection"

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        return lambda outputs: np.asarray(outputs)[:, 1]


class _Calibrated:
    """A user's attack that returns the exact log-likelihood ratio."""

    name = "known ratio"
    calibrated = True

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        return lambda outputs: np.asarray(outputs)[:, 1] - 0.5


class _Broken:
    """A user's attack whose method `fit` raises an exception."""

    name = "broken"

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        raise ArithmeticError("no fit")


class _Company:
    """An invalid attack whose score of an output depends on the other outputs, which voids the evidence."""

    name = "company"

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        def score(outputs: Any) -> Any:
            column = np.asarray(outputs)[:, 1]
            return column + 0.01 * column.mean()

        return score


def _alone(name: str, _: Path) -> AuditResult:
    return audit(ATTACKS[name], "gaussian(mu=0.6)", PAIR, attacks=name, trials=_TRIALS, seed=31, name=name)


def _own(attacks: Any, method: str, _: Path) -> AuditResult:
    claim, pair = "gaussian(mu=0.6)", Pair([0], [1], label="own")
    return audit(noisy_vector, claim, pair, attacks=attacks, trials=_TRIALS, method=method, seed=32, name="own")


FAMILIES = [
    *family("attack", {name: partial(_alone, name) for name in ATTACKS}),
    *family(
        "attack",
        {
            "several": partial(_own, ["logistic", "spline", "trees"], "sequential"),
            "own": partial(_own, _Projection(), "sequential"),
            "own, fixed": partial(_own, _Projection(), "fixed"),
            "own, calibrated": partial(_own, [_Calibrated(), "logistic"], "sequential"),
            "own, broken, beside another": partial(_own, [_Broken(), "logistic"], "sequential"),
            "own, broken, alone": partial(_own, _Broken(), "sequential"),
            "own, depends on company": partial(_own, _Company(), "sequential"),
        },
    ),
]
