"""Choice of the rejection region {score > t} that a fixed test freezes after its pilot, and the pilot's saturation.

Validity does not depend on this choice.  `exact_binomial` is exact for any region that was chosen without the outputs
that are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference.fixed.binomial import PROBABILITY_FLOOR
from dpaudit.inference.fixed.evidence import Arc
from dpaudit.inference.grid import CENTRES
from dpaudit.inference.sequential.alternatives import UNLIKELY, alternatives
from dpaudit.numerics import Array, Integers

_Number = TypeVar("_Number", np.int64, np.float64)

_CLEARLY = 1.1  # switch regions only for a gain of 10 %: smaller gains may come from a miscalibrated score
_AMPLE = 3.0  # standard deviations beyond the cutoff that make a refutation nearly certain
_NOTABLE = 1.0  # standard deviations of expected evidence below which the claim may well be true
# Standard errors by which an event's frequency is lowered before regions are compared.  Without this caution, small
# pilots often freeze a region without evidence.
_DOUBT_OF_EVIDENCE, _DOUBT_OF_BOUNDS = 1.0, 2.0
_TYPICAL = 5.0  # standard deviations; evidence that the best threshold is assumed to have against typical violations


def threshold_for_claim(
    counts0: Integers, counts1: Integers, claim: TradeoffFunction, *, trials: int, significance: float
) -> int:
    """Choose the region {bin > k} on which to test a claim, and return its threshold k, an index of a bin."""
    return thresholds_for_claim(counts0[None], counts1[None], claim, trials=trials, significance=significance)[0]


def thresholds_for_claim(
    counts0: Integers, counts1: Integers, claim: TradeoffFunction, *, trials: int, significance: float
) -> list[int]:
    """Choose the regions of m pilots of the same size, (m, BINS), as `threshold_for_claim` does for one pilot."""
    match claim:
        case GaussianDP():
            chosen = _thresholds_for_mu(counts0, counts1, trials=trials, significance=significance, otherwise=-1)
        case PureDP() | ApproxDP():
            chosen = _thresholds_against(counts0, counts1, claim, trials=trials, significance=significance)
        case _:
            chosen = [-1] * len(counts0)
    missing = [i for i, k in enumerate(chosen) if k < 0]
    for i, k in zip(missing, best_thresholds(counts0[missing], counts1[missing], claim), strict=True):
        chosen[i] = k
    return chosen


def delta_of(claim: TradeoffFunction) -> float:
    """Return the delta of an (epsilon, delta) claim; NaN for claims of other families."""
    match claim:
        case PureDP() | ApproxDP():
            return float(claim.parameters.get("delta", 0.0))
    return math.nan


def _thresholds_against(
    counts0: Integers, counts1: Integers, claim: TradeoffFunction, *, trials: int, significance: float
) -> list[int]:
    """Choose the region of each pilot for an (epsilon, delta) claim and its bound of epsilon at this delta.

    Of the regions whose expected evidence exceeds the cutoff by `_AMPLE` standard deviations, the one with the largest
    expected bound, or else the one with the most evidence; the bound alone if hardly any is expected.  -1 without a
    choice.
    """
    chosen = [-1] * len(counts0)
    promised, guesses = {}, []
    for i, (pilot0, pilot1) in enumerate(zip(counts0, counts1, strict=True)):
        bounds = _promised_epsilon(pilot0, pilot1, delta_of(claim), trials, significance)
        where = np.flatnonzero(bounds > -np.inf)
        if len(where) and pilot0.any() and pilot1.any():
            promised[i] = where, bounds[where]
            # Cautious estimates of alpha and beta.  The first one lowers the frequency of the event {bin > k} by
            # `_DOUBT_OF_EVIDENCE` standard errors, and the second one lowers that of its complement.
            alpha, beta = (np.clip(rate[where], 0.0, 1.0) for rate in _rates(pilot0, pilot1))
            size = int(pilot0.sum() + pilot1.sum()) / 2
            rarer, other = (_lessened(1 - rate, size, _DOUBT_OF_EVIDENCE) for rate in (beta, alpha))
            guesses.append([(rarer * alpha, 1 - rarer * (1 - beta)), (1 - other * (1 - alpha), other * beta)])
    if not promised:
        return chosen
    errors = trials * np.concatenate(guesses, axis=2)
    expected = np.sqrt(2 * evidence_against(claim, errors[:, 0], trials, errors[:, 1], trials).min(axis=0))
    ends = np.cumsum([len(where) for where, _ in promised.values()])[:-1]
    for (i, (where, bounds)), evidence in zip(promised.items(), np.split(expected, ends), strict=True):
        most = float(evidence.max())
        if most >= _NOTABLE:
            enough = evidence >= min(most, -float(ndtri(significance)) + _AMPLE)
            where, bounds = where[enough], bounds[enough]
        chosen[i] = int(where[np.argmax(bounds)])
    return chosen


def best_thresholds(counts0: Integers, counts1: Integers, claim: TradeoffFunction) -> list[int]:
    """Choose the region {bin > k} with the most evidence, in each of m pilots (m, BINS) and against typical violations.

    The largest evidence in a pilot is the maximum of hundreds of noisy values.  So the expected evidence against
    typical violations (`alternatives`), relative to the best threshold, is added, in standard deviations.  It is
    largest near the fixed point f(a) = a, so a weak pilot selects a threshold there, and a strong pilot that with the
    most evidence.  It is 0 for events that the pilot never shows under d1, or always under d0.
    """
    if not len(counts0):
        return []
    n0, n1 = int(counts0[0].sum()), int(counts1[0].sum())
    if n0 == 0 or n1 == 0:
        return [int(np.argmax(_worth(claim)))] * len(counts0)
    happens, fails = _above(counts1) > 0, _up_to(counts0) > 0
    worth = np.where(happens & fails, _TYPICAL * _worth(claim), 0.0)
    # Each integer represents a pair of error counts.  Small pilots have few distinct pairs.
    mistakes = _above(counts0) * (n1 + 1) + _up_to(counts1)
    pairs, places = np.unique(mistakes, return_inverse=True)
    evidence = evidence_against(claim, pairs // (n1 + 1), n0, pairs % (n1 + 1), n1)
    return [int(k) for k in np.argmax(worth + np.sqrt(2 * evidence)[places.reshape(mistakes.shape)], axis=-1)]


def threshold_for_epsilon(
    counts0: Integers, counts1: Integers, *, delta: float, trials: int, significance: float, otherwise: int
) -> int:
    """Choose k so that {bin > k} likely gives the largest `epsilon_lower` at `delta`; or else `otherwise`."""
    promised = _promised_epsilon(counts0, counts1, delta, trials, significance)
    return int(np.argmax(promised)) if np.any(promised > -np.inf) else otherwise


def _promised_epsilon(counts0: Integers, counts1: Integers, delta: float, trials: int, significance: float) -> Array:
    """Estimate the bound of epsilon at `delta` that each {bin > k} will give, (BINS - 1,); -inf if there is none.

    Rates are lowered by `_DOUBT_OF_BOUNDS` standard errors, so that no rare event of a mass near delta is best by
    chance.
    """
    pilot = int(counts0.sum() + counts1.sum()) / 2

    def bound(alpha: Array, beta: Array) -> Array:
        best = np.full(len(alpha), -np.inf)
        for own, other in ((alpha, beta), (beta, alpha)):  # of the event and of its complement
            less = _lessened(1 - other, pilot, _DOUBT_OF_BOUNDS)
            excess = (1 - other) * less - delta
            with np.errstate(divide="ignore", invalid="ignore"):
                epsilon = np.log(excess) - np.log(np.maximum(own * less, PROBABILITY_FLOOR))
            best = np.maximum(best, np.where(excess > PROBABILITY_FLOOR, epsilon, -np.inf))
        return best

    return _promised(bound, counts0, counts1, trials, significance)


def _lessened(mass: Array, pilot: float, doubt: float) -> Array:
    """Return 1 minus `doubt` relative standard errors of a mass estimated from `pilot` outputs, at least 0."""
    with np.errstate(divide="ignore"):
        return np.maximum(
            1 - doubt * np.sqrt(np.maximum(1 - mass, 0.0) / (np.maximum(mass, PROBABILITY_FLOOR) * pilot)), 0.0
        )


def threshold_for_mu(counts0: Integers, counts1: Integers, *, trials: int, significance: float, otherwise: int) -> int:
    """Choose the region {bin > k} that is likely to give the largest `mu_lower`; see `threshold_for_epsilon`.

    It is the best one (`best_thresholds`) against a Gaussian claim with a mu close to that where both errors of the
    pilot are equal, unless another has a clearly larger expected bound.
    """
    sides = counts0[None], counts1[None]
    return _thresholds_for_mu(*sides, trials=trials, significance=significance, otherwise=otherwise)[0]


def _thresholds_for_mu(
    counts0: Integers, counts1: Integers, *, trials: int, significance: float, otherwise: int
) -> list[int]:
    """Choose the regions of several pilots of the same size, (m, BINS) each, as `threshold_for_mu` for one pilot."""

    def bound(alpha: Array, beta: Array) -> Array:
        return np.asarray(-ndtri(np.maximum(alpha, PROBABILITY_FLOOR)) - ndtri(np.maximum(beta, PROBABILITY_FLOOR)))

    chosen = [otherwise] * len(counts0)
    promised: dict[int, Array] = {}
    alike: dict[float, list[int]] = {}  # indices of pilots, by estimated mu
    for i, (pilot0, pilot1) in enumerate(zip(counts0, counts1, strict=True)):
        promised[i] = _promised(bound, pilot0, pilot1, trials, significance)
        if np.any(promised[i] > -np.inf) and pilot0.any() and pilot1.any():
            error = float(np.min(np.maximum(_above(pilot0) / pilot0.sum(), _up_to(pilot1) / pilot1.sum())))
            strength = -2 * float(ndtri(min(max(error, 1e-4), 0.49)))
            alike.setdefault(float(f"{strength:.1g}"), []).append(i)
    for mu, pilots in alike.items():
        for i, usual in zip(pilots, best_thresholds(counts0[pilots], counts1[pilots], GaussianDP(mu)), strict=True):
            best = int(np.argmax(promised[i]))
            chosen[i] = best if promised[i][best] > _CLEARLY * promised[i][usual] else usual
    return chosen


def _promised(
    bound: Callable[[Array, Array], Array], counts0: Integers, counts1: Integers, trials: int, significance: float
) -> Array:
    """Return `bound` at the expected upper bounds of alpha and beta of each {bin > k}, (BINS - 1,), or -inf."""
    both = (counts0 + counts1).astype(np.float64)
    inside = _above(both)
    parting = (inside > 0) & (inside < both.sum())
    if not parting.any() or trials == 0:
        return np.full(len(parting), -np.inf)
    alpha, beta = _rates(counts0, counts1)
    z = -ndtri(significance / 2)

    def upper(rate: Array) -> Array:
        """Estimate the future upper bound of a rate by Wilson's interval (1927)."""
        rate = np.clip(rate, 0.0, 1.0)
        spread = z * np.sqrt(rate * (1 - rate) / trials + (z / (2 * trials)) ** 2)
        return np.minimum((rate + z**2 / (2 * trials) + spread) / (1 + z**2 / trials), 1.0)

    return np.where(parting, bound(upper(alpha), upper(beta)), -np.inf)


def _rates(counts0: Integers, counts1: Integers) -> tuple[Array, Array]:
    """Estimate alpha and beta of each {bin > k}, assuming that the score is the log-likelihood ratio l.

    All outputs are pooled, with weights 2/(1 + e^-l) under d1 and 2/(1 + e^l) under d0.  Shapes: (BINS - 1,).
    """
    both = (counts0 + counts1).astype(np.float64)
    p, q = both * expit(-CENTRES), both * expit(CENTRES)
    p, q = p / p.sum(), q / q.sum()
    return _above(p), _up_to(q)


@lru_cache(maxsize=64)
def _worth(claim: TradeoffFunction) -> Array:
    """Return the expected evidence of each threshold against typical violations, relative to the best, (BINS - 1,).

    One region cannot serve many alternatives, so slight violations and those in few outputs get little weight.
    """
    trials = 10_000  # large, so that smoothing by half an output has no effect; the result is relative
    total = np.zeros(1)
    for alternative in alternatives(claim, slight=UNLIKELY, edition=1):
        found = deviations(claim, trials * alternative.p, trials, trials * alternative.q, trials)
        total = total + alternative.weight * found / max(float(found.max()), PROBABILITY_FLOOR)
    return total


def deviations(claim: TradeoffFunction, counts0: Array, n0: int, counts1: Array, n1: int) -> Array:
    """Return the signed-root evidence of every event {bin > k} in standard deviations."""
    return np.asarray(np.sqrt(2 * evidence_against(claim, _above(counts0), n0, _up_to(counts1), n1)))


def _above(counts: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Count the outputs in {bin > k}, (..., BINS - 1), from (..., BINS)."""
    return np.asarray(np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1][..., 1:])


def _up_to(counts: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Count the outputs in {bin <= k}, (..., BINS - 1), from (..., BINS)."""
    return np.asarray(np.cumsum(counts, axis=-1)[..., :-1])


def evidence_against(claim: TradeoffFunction, x: npt.ArrayLike, n0: int, z: npt.ArrayLike, n1: int) -> Array:
    """Return the evidence in nats of outcomes (x, z) against the symmetrized claim; see `Arc.evidence`."""
    arcs = _arcs(claim.symmetrized(), n0, n1)
    return np.asarray(np.minimum(*(arc.evidence(x, n0, z, n1) for arc in arcs)))


@lru_cache(maxsize=8)  # the search for the least detectable violation uses one claim many times
def _arcs(claim: TradeoffFunction, n0: int, n1: int) -> tuple[Arc, Arc]:
    return Arc.pair(claim, n0, n1, 0.0, 1.0)


_SCALES: Array = np.geomspace(0.4, 1.6, 13)  # candidate scales of the score: a wrong scale is not saturation


def merge_saturated(pilot: Integers, unseen: Integers) -> Integers:
    """Merge the bins beyond the point at which the likelihood ratio saturates, into the bin of this point.

    If the privacy loss is bounded, the ratio often is constant on an event, where a learned score still varies by noise
    that the fitted outputs do not reveal, so a high threshold would divide the event arbitrarily.  Point and scale are
    fitted by maximum likelihood on each side of zero.  Nothing changes with fewer than 20,000 held-out outputs per
    dataset.
    """
    if unseen.sum(axis=1).min() < 20_000:  # noise in the tails would look like saturation
        return pilot
    positive, negative = np.flatnonzero(CENTRES > 0), np.flatnonzero(CENTRES < 0)[::-1]
    merged = pilot.copy()
    for outwards, (against, favour) in ((positive, unseen[:, positive]), (negative, unseen[::-1, negative])):
        # The true log-ratios are modelled as proportional to min(ratio, ratio[k]), for each bin k.
        scaled = _SCALES[:, None] * np.abs(CENTRES[outwards])
        right, wrong = np.logaddexp(0.0, -scaled), np.logaddexp(0.0, scaled)  # losses of one output
        own = favour * right + against * wrong
        from_here = np.cumsum(favour[::-1])[::-1] * right + np.cumsum(against[::-1])[::-1] * wrong
        losses = (np.cumsum(own, axis=1) - own + from_here).min(axis=0)
        last = len(losses) - 1 - int(np.argmin(losses[::-1]))  # the largest k, if several are best
        beyond = outwards[last + 1 :]
        merged[:, outwards[last]] += merged[:, beyond].sum(axis=1)
        merged[:, beyond] = 0
    return merged
