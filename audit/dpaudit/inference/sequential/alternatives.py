"""Alternative hypotheses: typical violations of a claim, as distributions of the log-likelihood ratio.

An alternative determines the bets of a test, but not the validity of the test, so it may be approximate.  For each of
the following families, the alternatives start at the boundary of the claim and become less private:

- Exponential tilting of the claim's least-private pair of laws (P, Q) with log-likelihood ratio l = log dQ/dP: dP' is
  proportional to e^{-t l} dP, and dQ' to e^{t l} dQ, for t > 0.  Exponential tilting maps Gaussian noise to Gaussian
  noise, and randomised response to randomised response.
- Gaussian noise, Laplace noise and randomised response with less noise than the claim requires.
- For (epsilon, delta)-DP with a small delta, Gaussian and Laplace noise whose profile passes slightly above the claimed
  point.  Such noise is far more private than the claim elsewhere, so it violates the claim in few outputs.
- Rare events that are much more likely on one dataset than on the other dataset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from scipy.special import ndtr

from dpaudit.claims import ApproxDP, TradeoffFunction
from dpaudit.claims.comparison import Curve, pair_curves
from dpaudit.inference.grid import EDGES
from dpaudit.numerics import Array, bisect, read_only

EDITION = 2
"""The number of the current alternatives.  Evidence states this number, so that its bets can be computed again."""

_ALPHA = np.concatenate([[0.0], np.geomspace(1e-12, 0.5, 2000), 1 - np.geomspace(0.5, 1e-12, 2000), [1.0]])
_PROBE = np.concatenate([-np.geomspace(1e-3, 30, 80)[::-1], [0.0], np.geomspace(1e-3, 30, 80)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Probabilities of the bins of the log-likelihood ratio under an alternative hypothesis."""

    p: Array  # probability of each bin under d0; shape (BINS,)
    q: Array  # probability of each bin under d1; shape (BINS,)
    weight: float  # positive share of the initial wealth; the shares of all alternatives sum to 1


@dataclass(frozen=True, slots=True)
class _Shape:
    """One-parameter family of mechanisms in which a larger parameter means less privacy."""

    tails: Callable[[float, Array], tuple[Array, Array]]  # maps parameter and t to P(l > t), Q(l > t)
    # True: typical of violations of claims with finite epsilon; False: of violations of other claims; None: of neither
    bounded: bool | None

    def delta(self, parameter: float, epsilon: Array) -> Array:
        above0, above1 = self.tails(parameter, epsilon)
        return np.asarray(above1 - np.exp(epsilon) * above0)

    def boundary(self, epsilon: Array, allowed: Array | float) -> float:
        """Return the largest parameter at which the profile is at most `allowed` at every epsilon."""

        def satisfied(parameter: float) -> bool:
            return bool(np.all(self.delta(parameter, epsilon) <= allowed))

        return bisect(satisfied, inside=0.0, outside=40.0, steps=40).inside

    def start(self, claim: TradeoffFunction) -> float:
        """Return the smallest parameter at which the family violates the claim and the violation is not negligible."""
        same_variation = self.boundary(np.zeros(1), claim.delta(0.0))
        return max(self.boundary(_PROBE, claim.delta(_PROBE) + 1e-9), same_variation / 2, 0.02)

    def laws(self, start: float, scales: tuple[float, ...]) -> list[tuple[Array, Array]]:
        """Return the probabilities of the bins for parameters from `scales[0] * start` up to gross violations."""
        parameters = [start * scale for scale in scales]
        while parameters[-1] < _GROSS:
            parameters.append(2.5 * parameters[-1])
        return [_masses(*self.tails(parameter, EDGES)) for parameter in parameters]


def _gaussian(mu: float, t: Array) -> tuple[Array, Array]:
    return ndtr(-t / mu - mu / 2), ndtr(-t / mu + mu / 2)


def _laplace(epsilon: float, t: Array) -> tuple[Array, Array]:
    x = np.clip((t + epsilon) / 2, 0, epsilon)  # between the two centres, l = 2x - epsilon
    inside, below = (t >= -epsilon) & (t < epsilon), t < -epsilon
    return (np.where(inside, np.exp(-x) / 2, below), np.where(inside, 1 - np.exp(x - epsilon) / 2, below))


def _response(epsilon: float, t: Array) -> tuple[Array, Array]:
    lie = 1 / (1 + math.exp(epsilon))
    inside, below = (t >= -epsilon) & (t < epsilon), t < -epsilon
    return np.where(inside, lie, below), np.where(inside, 1 - lie, below)


_SHAPES = (_Shape(_gaussian, False), _Shape(_laplace, True), _Shape(_response, None))
# Ratios of the parameters of alternatives to the parameter at the boundary of the claim.  The excess over 1 doubles
# from each ratio to the next, so the growth rate between two ratios is at most a sixth below its maximum.
_OWN_SCALES = (1.05, 1.1, 1.2, 1.4, 1.8, 2.6, 4.2)
_OTHER_SCALES = (1.1, 1.3, 1.9, 3.0)
_FADING = 0.7  # ratio of successive weights; gross violations need few trials at any weight
_GROSS = 2.0  # mu or epsilon at which about 24 trials suffice to distinguish the datasets
_RARE = (0.002, 0.01, 0.05, 0.3)  # probabilities of rare events
_LIKELY, UNLIKELY, _EVENTS = 3.0, 0.3, 0.25  # weights of families before normalisation
# Weight of Gaussian noise before normalisation, for a claim that bounds the privacy loss.  Gaussian noise represents
# mechanisms that violate such a claim slightly and only on few outputs.
_SLIGHT = 3.0
# Weights of Gaussian and Laplace noise with a profile slightly above the point of an (epsilon, delta) claim.  Gaussian
# noise is what such claims are mostly made for.
_OF_POINT = (2 * _LIKELY, 1.0)
# Standard deviation in nats of the error of a score under Laplace noise.  Half of the outputs have the same largest
# ratio, so an exact bet would lose if the score of these outputs is slightly too small.
_ERROR = 0.05
_SAMPLED_NOISE = (2.0, 3.5)  # mu of the Gaussian noise added to a random sample of the records
_SAMPLED_SCALES = (0.25, 0.6)  # ratios of sampling rates to the rate with the total variation of the claim


def alternatives(claim: TradeoffFunction, *, slight: float = _SLIGHT, edition: int = EDITION) -> list[Alternative]:
    """Return typical violations of a claim as weighted alternatives."""
    bounded = math.isfinite(claim.epsilon(0.0))
    families: list[tuple[float, list[tuple[Array, Array]]]] = []
    own = False
    for shape in _SHAPES:
        matched = shape.boundary(np.zeros(1), claim.delta(0.0))
        if matched > 0.02 and np.allclose(shape.delta(matched, _PROBE), claim.delta(_PROBE), atol=1e-7):
            own = True  # the family has the curve of the claim
            families.append((2 * _LIKELY, shape.laws(matched, _OWN_SCALES)))
        elif bounded and shape.bounded and edition > 1:
            laws = shape.laws(shape.start(claim), _OWN_SCALES)
            families.append((2 * _LIKELY, [blurred(*without_rounding(p, q), _ERROR) for p, q in laws]))
        elif shape.bounded is bounded:
            families.append((_LIKELY, shape.laws(shape.start(claim), _OWN_SCALES)))
        else:
            share = slight if bounded and shape.tails is _gaussian else UNLIKELY
            families.append((share, shape.laws(shape.start(claim), _OTHER_SCALES)))
    if not own and float(claim.delta(0.0)) > 0.001:
        families.append((_LIKELY, list(_tilted(claim))))
    families += _of_point(claim) if edition > 1 else []
    families.append((_EVENTS, _rare_events(claim)))
    total = sum(share for share, family in families if family)
    weighted = []
    for share, family in families:
        fading = [_FADING**i for i in range(len(family))]
        for part, (p, q) in zip(fading, family, strict=True):
            weighted.append(Alternative(p=p, q=q, weight=share / total * (part / sum(fading))))
    return weighted


def sampled_noise(claim: TradeoffFunction) -> list[Alternative]:
    """Return violations of a claim by Gaussian noise on a random sample of the records, which are not typical.

    Only few samples contain the record in which the datasets differ, so they show in the tail only.
    """
    if math.isfinite(claim.epsilon(0.0)):
        return []
    laws: list[tuple[Array, Array]] = []
    allowed = claim.delta(_PROBE) + 1e-5
    for mu in _SAMPLED_NOISE:
        shape = _Shape(partial(_sampled_gaussian, mu), None)
        largest = float(claim.delta(0.0)) / float(shape.delta(1.0, np.zeros(1))[0])
        for rate in (scale * largest for scale in _SAMPLED_SCALES):
            # less total variation than the claim allows, but a tail that violates it
            if 1e-4 < rate < 0.3 and np.any(shape.delta(rate, _PROBE) > allowed):
                p, q = _masses(*shape.tails(rate, EDGES))
                laws += [(p, q), (q[::-1], p[::-1])]
    return [Alternative(p=p, q=q, weight=1 / len(laws)) for p, q in laws]


@lru_cache(maxsize=512)
def scaled(claim: Curve, factor: float) -> tuple[Array, Array]:
    """Return the least-private pair of laws that satisfies a claim, after exponential tilting."""
    p, q = next(_tilted(claim, (factor,)))
    return read_only(p), read_only(q)  # because the cache returns the same arrays again


def gaussian_noise(mu: float) -> Alternative:
    """Return the alternative with outputs N(0, 1) on d0 and N(mu, 1) on d1, for mu > 0, with weight 1."""
    p, q = _masses(*_gaussian(mu, EDGES))
    return Alternative(p=p, q=q, weight=1.0)


def laplace_noise(epsilon: float) -> Alternative:
    """Return the alternative with Laplace noise of scale 1/epsilon, epsilon > 0, on 0 and 1, with weight 1."""
    p, q = _masses(*_laplace(epsilon, EDGES))
    return Alternative(p=p, q=q, weight=1.0)


def _masses(above0: Array, above1: Array) -> tuple[Array, Array]:
    """Return the probabilities of the bins from P(l > t) and Q(l > t) at their edges t."""
    p, q = (np.maximum(-np.diff(above, prepend=1.0, append=0.0), 0.0) for above in (above0, above1))
    return p / p.sum(), q / q.sum()


def _of_point(claim: TradeoffFunction) -> list[tuple[float, list[tuple[Array, Array]]]]:
    """Return weighted families with profiles slightly above the point of an (epsilon, delta) claim, delta > 0."""
    if not isinstance(claim, ApproxDP) or claim.delta(math.inf) <= 0:
        return []
    epsilon, families = np.array([claim.max_privacy_loss()]), []
    for weight, shape, most in zip(_OF_POINT, _SHAPES, (0.9, math.inf), strict=False):
        start = shape.boundary(epsilon, claim.delta(epsilon))
        if 0.02 < start < most * shape.start(claim):
            families.append((weight, shape.laws(start, _OWN_SCALES)))
    return families


def pair_laws(truth: TradeoffFunction) -> tuple[tuple[Array, Array], ...]:
    """Return the laws on a pair that attains a claim, one for each direction whose curve differs."""
    return tuple(scaled(curve, 1.0) for curve in pair_curves(truth))


def _tilted(claim: Curve, scales: tuple[float, ...] = _OWN_SCALES) -> Iterator[tuple[Array, Array]]:
    """Yield the least-private pair of a claim, from a polygon, after exponential tilting by each scale."""
    alpha = np.unique(np.concatenate([_ALPHA, claim.beta(_ALPHA)]))
    beta = claim.beta(alpha)
    p, q = np.diff(alpha), np.maximum(-np.diff(beta), 0.0)
    certain = 1 - float(beta[0])
    shared = (p > 0) & (q > 0)
    only0 = float(p[~shared].sum())  # probability of outputs that only d0 has; it is scaled, not tilted
    only1 = float(q[~shared].sum()) + certain
    p, q = p[shared], q[shared]
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        ratio = np.log(q / p)
    ratio = np.where(np.isinf(ratio), np.log(q) - np.log(p), ratio)  # the quotient may exceed the range of floats
    for scale in scales:
        tilt = (scale - 1) / 2
        p_tilted, q_tilted = p * np.exp(-tilt * ratio), q * np.exp(tilt * ratio)
        rest0, rest1 = (1 - min(scale * only, 1.0) for only in (only0, only1))
        p_tilted, q_tilted = rest0 * p_tilted / p_tilted.sum(), rest1 * q_tilted / q_tilted.sum()
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            moved = np.nan_to_num(np.log(q_tilted / p_tilted), nan=0.0, posinf=60.0, neginf=-60.0)
        bins = np.searchsorted(EDGES, moved)
        masses0: Array = np.bincount(bins, p_tilted, minlength=len(EDGES) + 1).astype(np.float64)
        masses1: Array = np.bincount(bins, q_tilted, minlength=len(EDGES) + 1).astype(np.float64)
        masses0[0] += 1 - rest0
        masses1[-1] += 1 - rest1
        yield masses0, masses1


def _sampled_gaussian(mu: float, rate: float, t: Array) -> tuple[Array, Array]:
    """Return P(l > t) and Q(l > t) for P = N(0, 1) and Q = (1 - rate) P + rate N(mu, 1)."""
    rate = min(rate, 1.0)
    drawn = (np.expm1(t) + rate) / rate  # the likelihood ratio of N(mu, 1) to N(0, 1) at which l = t
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.where(drawn > 0, np.log(drawn) / mu + mu / 2, -np.inf)
    return ndtr(-at), (1 - rate) * ndtr(-at) + rate * ndtr(mu - at)


def _rare_events(claim: TradeoffFunction) -> list[tuple[Array, Array]]:
    """Return pairs of laws with a rare event whose likelihood ratio violates the claim."""
    reach = claim.epsilon(0.01)
    level = min(max(1.0, 1.5 * reach if math.isfinite(reach) else 5.0), 25.0)
    top, rest, bottom = np.searchsorted(EDGES, (level + 1e-9, 0.0, -level))
    laws = []
    for mass in _RARE:
        if float(claim.delta(level)) >= mass * (1 - math.exp(-level)):
            continue  # the claim allows this event
        for event, likely, unlikely in ((top, 1, 0), (bottom, 0, 1)):  # datasets with a frequent and with a rare event
            law = np.zeros((2, len(EDGES) + 1))
            law[likely, [event, rest]] = mass, 1 - mass
            law[unlikely, [event, rest]] = mass * math.exp(-2 * level), 1 - mass * math.exp(-2 * level)
            laws.append((law[0], law[1]))
    return laws


def without_rounding(p: Array, q: Array) -> tuple[Array, Array]:
    """Remove the bins that have a positive probability only because of rounding errors, from laws of shape (BINS,)."""
    kept = p + q > 1e-9  # rarer events result from rounding at kinks of a law
    p, q = np.where(kept, p, 0.0), np.where(kept, q, 0.0)
    return p / p.sum(), q / q.sum()


def blurred(p: Array, q: Array, deviation: float) -> tuple[Array, Array]:
    """Add normal errors with a standard deviation in nats to log-likelihood ratios with laws of shape (BINS,)."""
    centers = np.concatenate([[2 * EDGES[0] - EDGES[1]], (EDGES[1:] + EDGES[:-1]) / 2, [2 * EDGES[-1] - EDGES[-2]]])
    moved: Array = np.diff(ndtr((EDGES - centers[:, None]) / deviation), axis=1, prepend=0.0, append=1.0)
    moved[0], moved[-1] = np.eye(len(centers))[[0, -1]]  # outputs that only one dataset has are recognised
    return p @ moved, q @ moved
