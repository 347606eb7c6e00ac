"""Additive noise of a known law, and randomised responses, whose parameters are maximum-likelihood estimates.

The laws are those of `noise_laws`, and two of randomised responses.  In a **k-ary response**, an output is the true
category of its dataset with probability p, and otherwise each of the other k - 1 categories with the same probability
q.  In a **unary response**, it is a vector of independent bits, of which the true one of its dataset is 1 with
probability p, and each other one with probability q.  A law is recognised after some fifty outputs.

The true places of the two datasets differ.  The evidence of an output for place j is x_j L, up to a constant, where x_j
is 1 if the output shows j, and L = log(p / q) for categories or logit p - logit q for bits.  The place with the highest
count often is not the true one, so ratios are means over all pairs of places and over L, weighted by their likelihoods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import chdtri, gammaln, logsumexp, softmax

from dpaudit.numerics import Array, linear
from dpaudit_attacks.noise_laws import CONTINUOUS, DISCRETE, VECTORS, Fit, Fitted
from dpaudit_attacks.ratios import LEVEL, FittedLaw, RowLaw, independent, located

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


_CATEGORIES_LEVEL = 1e-2  # of the test of categories; a lower one would accept shifted uniform noise for too long
_NODES = np.linspace(-4.0, 4.0, 33)  # values of L at which predictions are averaged, in standard errors


@dataclass(frozen=True, slots=True)
class Places:
    """The most likely pair of true places, given how many outputs of each dataset show each place."""

    place0: int  # true place of d0
    place1: int  # true place of d1
    shown: float  # number of outputs that show the true place of their dataset


def best_places(counts0: Array, counts1: Array, sign: int = 1) -> Places:
    """Return the pair of different places that most outputs show; with sign = -1, that the fewest outputs show."""
    firsts, seconds = (np.argsort(-sign * counts, kind="stable")[:2] for counts in (counts0, counts1))
    pairs = [(int(a), int(b)) for a in firsts for b in seconds if a != b]
    a, b = max(pairs, key=lambda pair: sign * (counts0[pair[0]] + counts1[pair[1]]))
    return Places(a, b, float(counts0[a] + counts1[b]))


def kary_response(outputs0: Array, outputs1: Array) -> FittedLaw | None:
    """Fit a k-ary response to outputs (n0, d) and (n1, d), whose different rows are the categories."""
    category_of = _categories(outputs0, outputs1)
    if category_of is None:
        return None
    place, observed = category_of
    counts0, counts1 = (np.bincount(place(side), minlength=observed).astype(float) for side in (outputs0, outputs1))
    n0, n1 = len(outputs0), len(outputs1)
    n = n0 + n1
    found = []
    for sign in (1, -1):
        best = best_places(counts0, counts1, sign)
        k = _number_of_categories(observed, n - best.shown)
        if k is not None and 0 < best.shown < n:
            p = best.shown / n
            found.append((best.shown * math.log(p) + (n - best.shown) * math.log((1 - p) / (k - 1)), k, best))
    if not found:
        return None
    log_likelihood, k, best = max(found, key=lambda one: one[0])
    p = best.shown / n
    evidence = math.log(p * (k - 1) / (1 - p)) + _NODES / math.sqrt(n * p * (1 - p))
    chance_q = 1 / (np.exp(evidence) + k - 1)
    chance_p = np.exp(evidence) * chance_q
    predicted0, predicted1 = _predicted(counts0, counts1, evidence, n * np.log(chance_q), chance_p, chance_q)
    ratios = np.append(np.log(predicted1 / predicted0), 0.0)  # the last entry is that of unknown categories

    def agrees() -> bool:
        statistic = 0.0
        for counts, at, total in ((counts0, best.place0, n0), (counts1, best.place1, n1)):
            expected = np.full(observed, total * (1 - p) / (k - 1))
            expected[at] = total * p
            statistic += float(np.sum((counts - expected) ** 2 / np.maximum(expected, 1.0)))
        return statistic <= float(chdtri(max(1, 2 * observed - 3), _CATEGORIES_LEVEL))

    penalty = 0.5 * math.log(n) + math.log(observed * (observed - 1))
    return FittedLaw(log_likelihood - penalty, lambda outputs: ratios[place(outputs)], agrees)


def unary_response(outputs0: Array, outputs1: Array) -> FittedLaw | None:
    """Fit a unary response to vectors of bits (n0, d) and (n1, d), d >= 2; return None if a number is not a bit."""
    if outputs0.shape[1] < 2 or not all(np.all((side == 0) | (side == 1)) for side in (outputs0, outputs1)):
        return None
    counts0, counts1 = outputs0.sum(axis=0), outputs1.sum(axis=0)
    n0, n1, d = len(outputs0), len(outputs1), outputs0.shape[1]
    n, total = n0 + n1, float(counts0.sum() + counts1.sum())
    found = []
    for sign in (1, -1):
        best = best_places(counts0, counts1, sign)
        p, q = best.shown / n, (total - best.shown) / (n * (d - 1))
        if 0 < p < 1 and 0 < q < 1:
            others = total - best.shown  # ones of the other bits
            log_likelihood = best.shown * math.log(p) + (n - best.shown) * math.log1p(-p)
            log_likelihood += others * math.log(q) + (n * (d - 1) - others) * math.log1p(-q)
            found.append((log_likelihood, p, q, best))
    if not found:
        return None
    log_likelihood, p, q, best = max(found, key=lambda one: one[0])
    logit = math.log(p / (1 - p)) + _NODES / math.sqrt(n * p * (1 - p))
    chance_p = 1 / (1 + np.exp(-logit))
    evidence = logit - math.log(q / (1 - q))
    predicted0, predicted1 = _predicted(
        counts0, counts1, evidence, n * (np.log1p(-chance_p) - math.log1p(-q)), chance_p, np.full(len(logit), q)
    )
    slopes = np.log(predicted1 / predicted0) - np.log((1 - predicted1) / (1 - predicted0))
    start = float(np.log((1 - predicted1) / (1 - predicted0)).sum())

    def ratio(outputs: Array) -> Array:
        """An entry that is not a bit counts as 0 or 1, whichever is nearer; NaN counts as 0."""
        return linear((outputs > 0.5).astype(np.float64), slopes) + start

    def agrees() -> bool:
        statistic = 0.0
        for side, counts, at in ((outputs0, counts0, best.place0), (outputs1, counts1, best.place1)):
            chances = np.full(d, q)
            chances[at] = p
            variances = len(side) * chances * (1 - chances)
            statistic += float(np.sum((counts - len(side) * chances) ** 2 / np.maximum(variances, 0.5)))
        return statistic <= float(chdtri(max(1, 2 * d - 2), LEVEL)) and independent(
            *(side[-_SAMPLE:] - side[-_SAMPLE:].mean(axis=0) for side in (outputs0, outputs1))
        )

    penalty = math.log(n) + math.log(d * (d - 1))
    return FittedLaw(log_likelihood - penalty, ratio, agrees)


def _predicted(
    counts0: Array, counts1: Array, evidence: Array, constants: Array, chance_p: Array, chance_q: Array
) -> tuple[Array, Array]:
    """Return the predictive probabilities, under d0 and d1, that an output shows each place; (k,) each."""
    first, second = evidence[:, None] * counts0, evidence[:, None] * counts1  # (m, k)
    top0, top1 = first.max(axis=1, keepdims=True), second.max(axis=1, keepdims=True)
    first, second = np.exp(first - top0), np.exp(second - top1)
    # the pairs of a place with every other place; the clip removes negative rounding errors
    pairs0 = first * np.maximum(second.sum(axis=1, keepdims=True) - second, 0.0)
    pairs1 = second * np.maximum(first.sum(axis=1, keepdims=True) - first, 0.0)
    with np.errstate(divide="ignore"):
        weights = constants + (top0 + top1)[:, 0] + np.log(pairs0.sum(axis=1))
    weights = np.exp(weights - logsumexp(weights))
    found = []
    for pairs in (pairs0, pairs1):
        share = pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1e-300)
        found.append(weights @ (chance_q[:, None] + share * (chance_p - chance_q)[:, None]))
    return found[0], found[1]


def _categories(outputs0: Array, outputs1: Array) -> tuple[Callable[[Array], np.ndarray], int] | None:
    """Return a function from outputs to the indices of their categories, -1 if unknown, and their number."""
    rows = np.concatenate([outputs0, outputs1])
    if rows.shape[1] == 1:
        known = np.unique(rows[:, 0])
        size, place = len(known), lambda outputs: located(known, outputs[:, 0])
    else:
        index = {row: at for at, row in enumerate(dict.fromkeys(_keys(rows)))}
        size, place = (
            len(index),
            lambda outputs: np.array([index.get(row, -1) for row in _keys(outputs)], dtype=np.intp),
        )
    # ten outputs in each observed category on average
    return (place, size) if 2 <= size <= min(256, len(rows) // 10) else None


def _keys(outputs: Array) -> list[bytes]:
    """Return rows as keys; -0 is replaced by 0."""
    return [row.tobytes() for row in np.ascontiguousarray(outputs + 0.0)]


def _number_of_categories(observed: int, draws: float) -> int | None:
    """Return the likeliest k if `draws` uniform draws of k - 1 categories show `observed` - 1; None if unlimited."""
    # at most 16 times as many categories as were observed
    others = np.arange(observed - 1, 16 * observed, dtype=float)
    others = others[others >= 1]
    likely = int(np.argmax(gammaln(others + 1) - gammaln(others - observed + 2) - draws * np.log(others)))
    return None if likely == len(others) - 1 else int(others[likely]) + 1


KARY: Mapping[str, RowLaw] = {"k-ary response": kary_response}  # the response that may be one number, by its name

RESPONSES: Mapping[str, RowLaw] = {**KARY, "unary response": unary_response}  # randomised responses by name
