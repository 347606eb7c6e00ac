"""One number with additive noise of a known law, whose locations and scale are maximum-likelihood estimates.

The laws are Gaussian, Laplace, uniform and staircase noise, and for integers discrete Gaussian, discrete Laplace
(geometric) and uniform noise.  The attack suits outputs only if a law fits the outputs of both datasets.  A law has
three or four parameters and is recognised after some fifty outputs.  Other attacks learn the whole shape of the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import chdtri, softmax

from dpaudit.numerics.arrays import Array
from dpaudit_attacks.noise_laws import CONTINUOUS, DISCRETE, Fit, Fitted

_MIN_ROWS = 10  # minimum number of outputs of each dataset
_SAMPLE = 2_000  # number of outputs of each dataset by which laws are compared and tested
_CELLS = 10  # number of cells of the test of a law
_LEVEL = 1e-4  # probability that the test rejects a law that is right
_MIN_VALUES = 3  # minimum number of different integers; attacks on frequencies suit fewer values
_MAX_INTEGER = 2.0**40  # integers are not told apart from their neighbours by the laws beyond this magnitude
_BEHIND = 12.0  # nats by which a law may be less likely than the best law and still be tested
_MIN_WEIGHT = 0.05  # laws with a smaller posterior probability are left out


@dataclass(frozen=True, slots=True)
class KnownNoise:
    """The likelihood ratio of the law of noise that fits best; laws that fit nearly as well are averaged."""

    name: ClassVar[str] = "known_noise"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    head_start: ClassVar[float] = 4.0

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether an output is one finite number, and a law fits the outputs of both datasets."""
        if outputs0.shape[1] != 1 or min(len(outputs0), len(outputs1)) < _MIN_ROWS:
            return False
        x0, x1 = outputs0[-_SAMPLE:, 0], outputs1[-_SAMPLE:, 0]
        if not (np.isfinite(x0).all() and np.isfinite(x1).all()):
            return False
        numbers = _Numbers.of(np.concatenate([x0, x1]))
        x0, x1 = numbers.scaled(x0), numbers.scaled(x1)
        return any(_agrees(law, x0, x1) for law in _likely(numbers.laws, x0, x1).values())

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """Fit to arrays (n, 1); return a function from such arrays to log-likelihood ratios in nats."""
        x0, x1 = (side[np.isfinite(side[:, 0]), 0] for side in (outputs0, outputs1))
        if outputs0.shape[1] != 1 or min(len(x0), len(x1)) < _MIN_ROWS:
            return lambda outputs: np.zeros(len(outputs))
        numbers = _Numbers.of(np.concatenate([x0[-_SAMPLE:], x1[-_SAMPLE:]]))
        x0, x1 = numbers.scaled(x0), numbers.scaled(x1)
        likely = _likely(numbers.laws, x0[-_SAMPLE:], x1[-_SAMPLE:])
        if not likely:
            return lambda outputs: np.zeros(len(outputs))
        weights = softmax([law.log_likelihood for law in likely.values()])
        used = []
        for weight, name in zip(weights, likely, strict=True):
            if weight > _MIN_WEIGHT and (law := numbers.laws[name](x0, x1)) is not None:
                used.append((float(weight), law.ratio))
        middle = float(np.mean(x0) + np.mean(x1)) / 2

        def score(outputs: Array) -> Array:
            x = numbers.scaled(outputs[:, 0])
            if np.isnan(x).any():
                x[np.isnan(x)] = middle
            scores = np.zeros(len(x))
            for weight, ratio in used:
                scores += weight * ratio(x)
            return scores

        return score


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The laws that may have made some numbers, and a scale on which these laws can be fitted."""

    laws: Mapping[str, Fit]
    spread: float = 1.0
    middle: float = 0.0

    @classmethod
    def of(cls, numbers: Array) -> _Numbers:
        """Choose laws for finite numbers (n,); there are none if most numbers are equal but not all are integers."""
        if np.all(np.floor(numbers) == numbers) and np.max(np.abs(numbers)) < _MAX_INTEGER:
            return cls(DISCRETE if len(np.unique(numbers)) >= _MIN_VALUES else {})
        low, middle, high = np.quantile(numbers, [0.16, 0.5, 0.84])
        spread = high / 2 - low / 2
        if not (np.isfinite(spread) and spread > 0):
            return cls({})
        return cls(CONTINUOUS, float(spread), float(middle / spread))

    def scaled(self, numbers: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return numbers / self.spread - self.middle


def _likely(laws: Mapping[str, Fit], x0: Array, x1: Array) -> dict[str, Fitted]:
    """Return the laws whose likelihood is close to that of the best law."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        fitted = {name: fit(x0, x1) for name, fit in laws.items()}
    found = {name: law for name, law in fitted.items() if law is not None and math.isfinite(law.log_likelihood)}
    best = max((law.log_likelihood for law in found.values()), default=0.0)
    return {name: law for name, law in found.items() if law.log_likelihood > best - _BEHIND}


def _agrees(law: Fitted, x0: Array, x1: Array) -> bool:
    """Test a law by the numbers of outputs between quantiles of all outputs (chi-square test)."""
    edges = np.unique(np.quantile(np.concatenate([x0, x1]), np.arange(1, _CELLS) / _CELLS, method="inverted_cdf"))
    statistic = 0.0
    for x, cdf in zip((x0, x1), law.cdf, strict=True):
        counted = np.bincount(np.searchsorted(edges, x, side="left"), minlength=len(edges) + 1)
        expected = len(x) * np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))
        statistic += float(np.sum((counted - expected) ** 2 / np.maximum(expected, 1.0)))
    return statistic <= float(chdtri(max(1, 2 * len(edges) - 3), _LEVEL))
