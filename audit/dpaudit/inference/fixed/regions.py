"""Which rejection region {score > t} a fixed test freezes after its pilot.

Nothing here touches validity: `exact_binomial` is exact for any region that was chosen without the outputs it counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference.fixed.evidence import Arc
from dpaudit.inference.grid import CENTRES
from dpaudit.inference.sequential.alternatives import UNLIKELY, alternatives
from dpaudit.numerics.arrays import Array

Counts = npt.NDArray[np.int64]

_MIN_PROBABILITY = 1e-100  # smaller numbers are not told apart
_CLEARLY = 1.1  # times what the usual region promises: less may be what a score that is not quite to scale makes of it
_AMPLE = 3.0  # standard deviations beyond the test's cutoff: more would not make a refutation likelier
_NOTABLE = 1.0  # standard deviations of expected evidence below which the claim may well be true
# Standard errors of an event's frequency that are taken off before regions are compared.  With 1 and 2, pilots of 300
# and 1,000 outputs freeze a region without evidence in at most 2 of 100 cases; without, in a quarter.
_DOUBT_OF_EVIDENCE, _DOUBT_OF_BOUNDS = 1.0, 2.0
_TYPICAL = 5.0  # standard deviations of evidence that the best threshold for typical violations is given in advance


def threshold_for_claim(
    counts0: Counts, counts1: Counts, claim: TradeoffFunction, *, trials: int, significance: float
) -> int:
    """The k for which {bin > k} is the region on which to test `claim`.

    Args:
        counts0: bin counts of a pilot on d0, (BINS,); whatever is returned, tests are valid on other outputs.
        counts1: the same of d1.
        claim: what is tested.
        trials: outputs of each dataset that will be tested.
        significance: of the test.
    """
    return thresholds_for_claim(counts0[None], counts1[None], claim, trials=trials, significance=significance)[0]


def thresholds_for_claim(
    counts0: Counts, counts1: Counts, claim: TradeoffFunction, *, trials: int, significance: float
) -> list[int]:
    """`threshold_for_claim` of several pilots of one size, (m, BINS) each: faster than one after the other."""
    match claim:
        case GaussianDP():
            found = _thresholds_for_mu(counts0, counts1, trials=trials, significance=significance, otherwise=-1)
        case PureDP() | ApproxDP():
            found = _thresholds_against(counts0, counts1, claim, trials=trials, significance=significance)
        case _:
            found = [-1] * len(counts0)
    open_ = [i for i, k in enumerate(found) if k < 0]
    for i, k in zip(open_, _best_thresholds(counts0[open_], counts1[open_], claim), strict=True):
        found[i] = k
    return found


def delta_of(claim: TradeoffFunction) -> float:
    """The delta of an (epsilon, delta) claim; NaN for claims of other families."""
    match claim:
        case PureDP() | ApproxDP():
            return float(claim.parameters.get("delta", 0.0))
    return math.nan


def _thresholds_against(
    counts0: Counts, counts1: Counts, claim: TradeoffFunction, *, trials: int, significance: float
) -> list[int]:
    """The region for an (epsilon, delta) claim, which is also that of the bound of epsilon at this delta.

    One for each pilot, (m, BINS) each.

    A region is sure of its evidence if it expects `_AMPLE` standard deviations more than the test needs.  Of the sure
    regions the one with the largest expected bound is taken; if none is sure, the one with the most evidence.  A pilot
    that expects hardly any evidence leaves the choice to the bound: the claim is then most likely true.  -1 if no
    threshold parts the pilot's outputs.
    """
    delta = delta_of(claim)
    found = [-1] * len(counts0)
    promised: dict[int, Array] = {}
    for i, (one, other) in enumerate(zip(counts0, counts1, strict=True)):
        bounds = _promised_epsilon(one, other, delta, trials, significance)
        if np.any(bounds > -np.inf) and one.any() and other.any():
            promised[i] = bounds
    if not promised:
        return found
    parting = [np.flatnonzero(bounds > -np.inf) for bounds in promised.values()]
    guesses = [_guesses(counts0[i], counts1[i], where) for i, where in zip(promised, parting, strict=True)]
    expected = _expected_deviations(claim, trials, np.concatenate(guesses, axis=2))
    ends = np.cumsum([len(where) for where in parting])[:-1]
    for i, where, evidence in zip(promised, parting, np.split(expected, ends), strict=True):
        most = float(evidence.max())
        if most >= _NOTABLE:
            where = where[evidence >= min(most, -float(ndtri(significance)) + _AMPLE)]
        found[i] = int(where[np.argmax(promised[i][where])])
    return found


def best_threshold(counts0: Counts, counts1: Counts, claim: TradeoffFunction) -> int:
    """The k for which {bin > k} is the region to freeze, from the bin counts of a pilot, (BINS,) each.

    Whatever it returns, the tests of `exact_binomial` are valid on outputs that are not in the pilot.

    A pilot's most extreme threshold is rarely the best one: among hundreds of noisy numbers it is the luckiest.  So
    each threshold's evidence in the pilot, in standard deviations, is added to what it would be worth against typical
    violations (`alternatives`), relative to the best threshold for each.  That is most near the claim's fixed point
    f(a) = a and little for rare events: a weak pilot leads there, a strong one goes where its evidence is.  Events that
    the pilot never showed under d1, or always under d0, are worth nothing, since the scores may not be to scale.
    """
    return _best_thresholds(counts0[None], counts1[None], claim)[0]


def _best_thresholds(counts0: Counts, counts1: Counts, claim: TradeoffFunction) -> list[int]:
    """`best_threshold` of several pilots of one size, (m, BINS) each."""
    if not len(counts0):
        return []
    n0, n1 = int(counts0[0].sum()), int(counts1[0].sum())
    if n0 == 0 or n1 == 0:
        return [int(np.argmax(_worth(claim)))] * len(counts0)
    happens, fails = _above(counts1) > 0, _up_to(counts0) > 0
    worth = np.where(happens & fails, _TYPICAL * _worth(claim), 0.0)
    mistakes = _above(counts0) * (n1 + 1) + _up_to(counts1)  # few pairs differ where pilots are small
    pairs, places = np.unique(mistakes, return_inverse=True)
    evidence = evidence_against(claim, pairs // (n1 + 1), n0, pairs % (n1 + 1), n1)
    found = worth + np.sqrt(2 * evidence)[places.reshape(mistakes.shape)]
    return [int(k) for k in np.argmax(found, axis=-1)]


def threshold_for_epsilon(
    counts0: Counts, counts1: Counts, *, delta: float, trials: int, significance: float, otherwise: int
) -> int:
    """The k for which {bin > k} is likely to give the largest `epsilon_lower` at `delta` from so many trials.

    `otherwise`: the k if no threshold parts the pilot's outputs.  From the bin counts of a pilot, (BINS,) each, of the
    score that is frozen.  Whatever it returns, the bound is valid on outputs that are not in the pilot.
    """

    promised = _promised_epsilon(counts0, counts1, delta, trials, significance)
    return int(np.argmax(promised)) if np.any(promised > -np.inf) else otherwise


def _promised_epsilon(counts0: Counts, counts1: Counts, delta: float, trials: int, significance: float) -> Array:
    """About the bound of epsilon at `delta` that each {bin > k} will give, (BINS - 1,); -inf where it says nothing.

    A mass that barely exceeds delta would promise the most where it is rare, by the luck of the pilot.  So both rates
    of an event are taken to be smaller, by `_DOUBT_OF_BOUNDS` standard errors of how frequent it is.  At delta = 0 this
    changes nothing.
    """
    pilot = int(counts0.sum() + counts1.sum()) / 2

    def one(alpha: Array, beta: Array) -> Array:
        """Of the event with upper bounds `alpha` of its rate under d0 and `beta` of its failure under d1."""
        less = _lessened(1 - beta, pilot, _DOUBT_OF_BOUNDS)
        excess = (1 - beta) * less - delta
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(
                excess > _MIN_PROBABILITY, np.log(excess) - np.log(np.maximum(alpha * less, _MIN_PROBABILITY)), -np.inf
            )

    def best(alpha: Array, beta: Array) -> Array:
        return np.maximum(one(alpha, beta), one(beta, alpha))

    return _promised(best, counts0, counts1, trials, significance)


def _guesses(counts0: Counts, counts1: Counts, where: npt.NDArray[np.intp]) -> Array:
    """Two guesses of alpha and beta of {bin > k} for each k in `where`, (2 guesses, 2 rates, len(where)).

    The event is rarer than the pilot says, or its complement is, by `_DOUBT_OF_EVIDENCE` standard errors.
    """
    alpha, beta = (np.clip(rate[where], 0.0, 1.0) for rate in _rates(counts0, counts1))
    pilot = int(counts0.sum() + counts1.sum()) / 2
    rarer, other = (_lessened(1 - rate, pilot, _DOUBT_OF_EVIDENCE) for rate in (beta, alpha))
    return np.array([(rarer * alpha, 1 - rarer * (1 - beta)), (1 - other * (1 - alpha), other * beta)])


def _expected_deviations(claim: TradeoffFunction, trials: int, guesses: Array) -> Array:
    """Evidence that is expected against `claim` at the less favourable guess, as many standard deviations."""
    found = evidence_against(claim, trials * guesses[:, 0], trials, trials * guesses[:, 1], trials)
    return np.asarray(np.sqrt(2 * found.min(axis=0)))


def _lessened(mass: Array, pilot: float, doubt: float) -> Array:
    """1 minus so many relative standard errors of a mass that was seen in `pilot` outputs, at least 0."""
    with np.errstate(divide="ignore"):
        return np.maximum(
            1 - doubt * np.sqrt(np.maximum(1 - mass, 0.0) / (np.maximum(mass, _MIN_PROBABILITY) * pilot)), 0.0
        )


def threshold_for_mu(counts0: Counts, counts1: Counts, *, trials: int, significance: float, otherwise: int) -> int:
    """The same for the largest `mu_lower`.

    That is the region on which to test a Gaussian claim about as strong as the truth (`best_threshold`), unless another
    one promises clearly more.  How strong the truth is, is read off where the pilot's two errors are equal.
    """
    return _thresholds_for_mu(
        counts0[None], counts1[None], trials=trials, significance=significance, otherwise=otherwise
    )[0]


def _thresholds_for_mu(
    counts0: Counts, counts1: Counts, *, trials: int, significance: float, otherwise: int
) -> list[int]:
    """`threshold_for_mu` of several pilots of one size, (m, BINS) each."""

    def bound(alpha: Array, beta: Array) -> Array:
        found: Array = -ndtri(np.maximum(alpha, _MIN_PROBABILITY)) - ndtri(np.maximum(beta, _MIN_PROBABILITY))
        return found

    found = [otherwise] * len(counts0)
    promised: dict[int, Array] = {}
    alike: dict[float, list[int]] = {}  # pilots by how strong the truth seems
    for i, (one, other) in enumerate(zip(counts0, counts1, strict=True)):
        bounds = _promised(bound, one, other, trials, significance)
        if not (np.any(bounds > -np.inf) and one.any() and other.any()):
            continue
        promised[i] = bounds
        error = float(np.min(np.maximum(_above(one) / one.sum(), _up_to(other) / other.sum())))
        strength = -2 * float(ndtri(min(max(error, 1e-4), 0.49)))
        alike.setdefault(float(f"{strength:.1g}"), []).append(i)
    for mu, pilots in alike.items():
        for i, usual in zip(pilots, _best_thresholds(counts0[pilots], counts1[pilots], GaussianDP(mu)), strict=True):
            best = int(np.argmax(promised[i]))
            found[i] = best if promised[i][best] > _CLEARLY * promised[i][usual] else usual
    return found


def _promised(
    bound: Callable[[Array, Array], Array], counts0: Counts, counts1: Counts, trials: int, significance: float
) -> Array:
    """`bound` at about the upper bounds that alpha and beta of each {bin > k} will have, (BINS - 1,).

    -inf where the event does not part the pilot's outputs.
    """
    both = (counts0 + counts1).astype(np.float64)
    inside = _above(both)
    parting = (inside > 0) & (inside < both.sum())
    if not parting.any() or trials == 0:
        return np.full(len(parting), -np.inf)
    alpha, beta = _rates(counts0, counts1)
    z = -ndtri(significance / 2)

    def upper(rate: Array) -> Array:
        """Roughly what the upper bound of a rate will be: Wilson 1927."""
        rate = np.clip(rate, 0.0, 1.0)
        spread = z * np.sqrt(rate * (1 - rate) / trials + (z / (2 * trials)) ** 2)
        return np.minimum((rate + z**2 / (2 * trials) + spread) / (1 + z**2 / trials), 1.0)

    return np.where(parting, bound(upper(alpha), upper(beta)), -np.inf)


def _rates(counts0: Counts, counts1: Counts) -> tuple[Array, Array]:
    """alpha and beta of each {bin > k}, if the score is the log-likelihood ratio l; (BINS - 1,) each.

    Large losses are in the tails, where a pilot has few outputs.  But all outputs together tell how frequent an event
    is on each side: under d1 each counts 2/(1 + e^-l) times, under d0 2/(1 + e^l) times.
    """
    both = (counts0 + counts1).astype(np.float64)
    p, q = both * expit(-CENTRES), both * expit(CENTRES)
    p, q = p / p.sum(), q / q.sum()
    return _above(p), _up_to(q)


@lru_cache(maxsize=64)
def _worth(claim: TradeoffFunction) -> Array:
    """Evidence expected of each threshold against typical violations, relative to the best one, (BINS - 1,).

    A wealth can be spread over many alternatives at little cost, a region is one: none is spent on slight violations.
    """
    trials = 10_000  # of no consequence: so many that what half an output adds does not matter
    total = np.zeros(1)
    for alternative in alternatives(claim, slight=UNLIKELY):
        found = deviations(claim, trials * alternative.p, trials, trials * alternative.q, trials)
        total = total + alternative.weight * found / max(float(found.max()), _MIN_PROBABILITY)
    return total


def deviations(claim: TradeoffFunction, counts0: Array, n0: int, counts1: Array, n1: int) -> Array:
    """Signed-root evidence of every event {bin > k}, as many standard deviations; (..., BINS - 1) of (..., BINS)."""
    return np.asarray(np.sqrt(2 * evidence_against(claim, _above(counts0), n0, _up_to(counts1), n1)))


def _above(counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """How many are in {bin > k}, (..., BINS - 1) of (..., BINS)."""
    return np.asarray(np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1][..., 1:])


def _up_to(counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """How many are in {bin <= k}, (..., BINS - 1) of (..., BINS)."""
    return np.asarray(np.cumsum(counts, axis=-1)[..., :-1])


def evidence_against(claim: TradeoffFunction, x: npt.ArrayLike, n0: int, z: npt.ArrayLike, n1: int) -> Array:
    """Evidence of outcomes with x false positives and z false negatives, nats; elementwise."""
    arcs = _arcs(claim.symmetrized(), n0, n1)
    return np.asarray(np.minimum(*(arc.evidence(x, n0, z, n1) for arc in arcs)))


@lru_cache(maxsize=8)  # the least detectable violation is looked for with one claim and many truths
def _arcs(claim: TradeoffFunction, n0: int, n1: int) -> tuple[Arc, Arc]:
    return Arc.pair(claim, n0, n1, 0.0, 1.0)
