"""Additive noise of a known law, and randomised responses, whose parameters are maximum-likelihood estimates.

The laws are those of `noise_laws` and `responses`.  A law has few parameters and is recognised after some fifty
outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import chdtri, softmax

from dpaudit.numerics import Array
from dpaudit_attacks.noise_laws import CONTINUOUS, DISCRETE, VECTORS, Fit, Fitted
from dpaudit_attacks.ratios import LEVEL, FittedLaw, RowLaw
from dpaudit_attacks.responses import KARY, RESPONSES

Laws = Mapping[str, RowLaw]

_FITTED_ROWS = 20  # minimum number of outputs of each dataset; with fewer, a logistic regression predicts better
_SAMPLE = 2_000  # number of outputs of each dataset by which laws are compared and tested
_CELLS = 10  # number of cells of the test of a law
_BEHIND = 12.0  # nats by which a law may be less likely than the best law and still be tested


@dataclass(frozen=True, slots=True)
class KnownNoise:
    """The likelihood ratio of the law that fits best; laws that fit nearly as well are averaged."""

    name: ClassVar[str] = "known_noise"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    head_start: ClassVar[float] = 4.0

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether all numbers are finite, and a law fits the outputs of both datasets."""
        outputs0, outputs1 = _latest(outputs0), _latest(outputs1)
        if min(len(outputs0), len(outputs1)) < _FITTED_ROWS:
            return False
        sample0, sample1 = outputs0[-_SAMPLE:], outputs1[-_SAMPLE:]
        if not (np.isfinite(sample0).all() and np.isfinite(sample1).all()):
            return False
        laws, likely = _chosen(sample0, sample1)
        if laws in (KARY, RESPONSES):  # slight privacy losses of responses show in many outputs only
            likely = _likely(laws, outputs0, outputs1)
        return _some_agrees(likely)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        outputs0, outputs1 = _latest(outputs0), _latest(outputs1)
        outputs0, outputs1 = (side[np.isfinite(side).all(axis=1)] for side in (outputs0, outputs1))
        if min(len(outputs0), len(outputs1)) < _FITTED_ROWS:
            return lambda outputs: np.zeros(len(outputs))
        sample0, sample1 = outputs0[-_SAMPLE:], outputs1[-_SAMPLE:]
        laws, likely = _chosen(sample0, sample1)
        if not likely:
            return lambda outputs: np.zeros(len(outputs))
        weights = softmax([law.log_likelihood for law in likely.values()])
        used = []
        for weight, name in zip(weights, likely, strict=True):
            # laws with a smaller posterior probability are left out
            if weight > 0.05 and (law := laws[name](outputs0, outputs1)) is not None:
                used.append((float(weight), law.ratio))

        def score(outputs: Array) -> Array:
            scores = np.zeros(len(outputs))
            for weight, ratio in used:
                scores += weight * ratio(outputs)
            return scores

        return score


def _latest(outputs: Array) -> Array:
    # the outputs of each dataset in a fit: at most 50,000, and beyond the sample, at most 2**21 numbers
    return outputs[-max(_SAMPLE, min(50_000, 2**21 // max(1, outputs.shape[1]))) :]


def _chosen(outputs0: Array, outputs1: Array) -> tuple[Laws, Mapping[str, FittedLaw]]:
    """Choose noise or randomised responses for finite outputs; return all such laws, and the likely ones, fitted."""
    outputs = np.concatenate([outputs0, outputs1])
    if outputs.shape[1] > 1:
        laws = RESPONSES if np.all(outputs == np.floor(outputs), axis=0).any() else VECTORS
        return laws, _likely(laws, outputs0, outputs1)
    numbers = _Numbers.of(outputs[:, 0])
    noise = {name: partial(numbers.fitted, fit) for name, fit in numbers.laws.items()}
    likely, categories = _likely(noise, outputs0, outputs1), _likely(KARY, outputs0, outputs1)
    # a few integers may seem to be categories, whatever their law
    clear = _best(categories) > _best(likely) + _BEHIND or not _some_agrees(likely)
    return (KARY, categories) if clear and _some_agrees(categories) else (noise, likely)


def _some_agrees(likely: Mapping[str, FittedLaw]) -> bool:
    return any(law.agrees() for law in likely.values())


def _best(likely: Mapping[str, FittedLaw]) -> float:
    return max((law.log_likelihood for law in likely.values()), default=-math.inf)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The laws that may have made some numbers, and a scale on which these laws can be fitted."""

    laws: Mapping[str, Fit]
    spread: float = 1.0
    middle: float = 0.0

    @classmethod
    def of(cls, numbers: Array) -> _Numbers:
        """Choose laws for finite numbers (n,); there are none if most numbers are equal but not all are integers."""
        # integers are not told apart from their neighbours by the laws beyond this magnitude
        if np.all(np.floor(numbers) == numbers) and np.max(np.abs(numbers)) < 2.0**40:
            # attacks on frequencies suit fewer values
            return cls(DISCRETE if len(np.unique(numbers)) >= 3 else {})
        low, middle, high = np.quantile(numbers, [0.16, 0.5, 0.84])
        spread = high / 2 - low / 2
        if not (np.isfinite(spread) and spread > 0):
            return cls({})
        return cls(CONTINUOUS, float(spread), float(middle / spread))

    def fitted(self, fit: Fit, outputs0: Array, outputs1: Array) -> FittedLaw | None:
        """Fit a law of one number to finite outputs (n0, 1) and (n1, 1)."""
        x0, x1 = self.scaled(outputs0[:, 0]), self.scaled(outputs1[:, 0])
        law = fit(x0, x1)
        if law is None:
            return None
        found, middle = law, float(np.mean(x0) + np.mean(x1)) / 2

        def ratio(outputs: Array) -> Array:
            x = self.scaled(outputs[:, 0])
            if np.isnan(x).any():
                x[np.isnan(x)] = middle
            return found.ratio(x)

        return FittedLaw(found.log_likelihood, ratio, lambda: _agrees(found, x0, x1))

    def scaled(self, numbers: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return numbers / self.spread - self.middle


def _likely(laws: Mapping[str, RowLaw], outputs0: Array, outputs1: Array) -> dict[str, FittedLaw]:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        fitted = {name: fit(outputs0, outputs1) for name, fit in laws.items()}
    found = {name: law for name, law in fitted.items() if law is not None and math.isfinite(law.log_likelihood)}
    best = _best(found)
    return {name: law for name, law in found.items() if law.log_likelihood > best - _BEHIND}


def _agrees(law: Fitted, x0: Array, x1: Array) -> bool:
    """Test a law by the numbers of outputs between quantiles of all outputs (chi-square test)."""
    edges = np.unique(np.quantile(np.concatenate([x0, x1]), np.arange(1, _CELLS) / _CELLS, method="inverted_cdf"))
    statistic = 0.0
    for x, cdf in zip((x0, x1), law.cdf, strict=True):
        counted = np.bincount(np.searchsorted(edges, x, side="left"), minlength=len(edges) + 1)
        expected = len(x) * np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))
        statistic += float(np.sum((counted - expected) ** 2 / np.maximum(expected, 1.0)))
    return statistic <= float(chdtri(max(1, 2 * len(edges) - 3), LEVEL))
