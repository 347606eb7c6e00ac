"""The rejection region that makes the violation plain.

An audit that may stop at any time stops when the outputs speak against the claim.  Counts of a region on these outputs
are better than its rates, even if the region was frozen before all of them.  So intervals are those of
`inference.sequential.anytime_interval`, which hold whenever counting stops.

**Theorem.**  Let regions j = 1, 2, ... of each of m pairs be frozen while an audit goes on, each before the outputs on
which it is counted.  Of whichever region is shown, whenever the audit stops and whatever the choice depends on, each of
the two intervals misses its true rate with probability at most 0.05.

*Proof.*  The interval of region j has significance 0.05 / (m j (j + 1)) at all stopping times, given all that came
before it was frozen.  These sum to 0.05 (union bound).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.region_words import PROBES, describe_region
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.fixed.clopper_pearson import clopper_pearson
from dpaudit.inference.fixed.regions import deviations, threshold_for_claim
from dpaudit.inference.grid import EDGES
from dpaudit.inference.sequential.anytime_interval import anytime_interval
from dpaudit.learning import Learner, Moment, Score
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Outputs
from dpaudit.result.values import Counted, Counts, Witness

_MIN_OUTPUTS_OF_A_SIDE = 10  # outputs on either side of a cut that is called the closest to a violation
_PLAIN = 0.1  # a violation shows plainly enough in a region with this p-value
_MISSED = 0.05  # chance that an interval of 95 % misses its rate
_KNOWN = 0.5  # of the counts by which a region was chosen, in the prior of its rates: the score was learned anew since
_GRID = np.unique(np.concatenate([np.geomspace(1e-9, 0.5, 300), 1 - np.geomspace(1e-9, 0.5, 300)]))  # of alpha
_NO_INTERVALS = ((math.nan, math.nan), (math.nan, math.nan))


def make_witness(
    learner: Learner,
    claim: TradeoffFunction,
    counts0: npt.NDArray[np.int64],
    counts1: npt.NDArray[np.int64],
    *,
    pair: str,
    pairs: int = 1,
    threshold: int | None = None,
    violated: bool = False,
    recount: bool = True,
) -> Witness | None:
    """Name the region that speaks most against the claim, and count it.

    Scores move while attacks learn, so the counts of all scores are of no single region.  Therefore regions were frozen
    now and then (`Learner.hindsight`), each by what was known at that moment, and are counted on the outputs that came
    afterwards.  Where none of them shows a violation plainly, the counts of all scores are given, and `counted` says
    so.

    Args:
        learner: What is known of the pair.
        claim: For both orders of the pair.
        counts0: Scores of all outputs of d0 that were bet on, in bins, (BINS,).
        counts1: The same of d1.
        pair: Its label.
        pairs: How many there are, of which this one was chosen by the outputs.
        threshold: Of a region that was frozen before these counts, whose number was fixed; unless given, a region is
            chosen.
        violated: Whether the claim was refuted.  If not, at least ten outputs lie on either side of the cut.
        recount: Whether the two runs of a trial are independent, so that outputs may be counted again.

    Returns:
        The witness; None if no region has outputs on both sides.
    """
    if threshold is not None:
        scores = np.array([counts0, counts1])
        region = _Region(learner.current(), _examples(learner), scores, threshold, "frozen")
        return _witness(region, claim, pair, region.p_value(claim), pairs) if region.sound else None
    named = [_later(moment, learner, claim) for moment in (learner.hindsight() if recount else [])]
    found = [
        (one.p_value(claim), one) for one in named if one.has_both_sides(1 if violated else _MIN_OUTPUTS_OF_A_SIDE)
    ]
    if not found or (violated and min(p_value for p_value, _ in found) > _PLAIN):
        moving = _chosen(learner, np.array([counts0, counts1]), claim, violated)
        if moving is not None:
            found.append((moving.p_value(claim), moving))
    if not found:
        return None
    p_value, best = min(found, key=lambda one: one[0])
    return _witness(best, claim, pair, p_value, pairs)


def _later(moment: Moment, learner: Learner, claim: TradeoffFunction) -> _Region:
    """The region that was chosen before a moment, on the outputs that came later.  No later output decides it."""
    before = moment.before
    k = threshold_for_claim(before[0], before[1], claim, trials=moment.score.trials, significance=_MISSED)
    examples = Outputs.join(list(learner.latest(min(PROBES, int(moment.after[0].sum())))))
    return _Region(moment.score, examples, moment.after, k, "later", moment)


@dataclass(frozen=True, slots=True, eq=False)
class _Region:
    """Outputs with a score in a bin above the threshold."""

    score: Score
    examples: Outputs | None  # outputs of both datasets to put the region into words by
    scores: npt.NDArray[np.int64]  # (2, BINS)
    threshold: int
    counted: Counted
    moment: Moment | None = None  # at which it was frozen, if it was

    @property
    def sound(self) -> bool:
        return bool(self.scores.sum(axis=1).all())

    def has_both_sides(self, fewest: int) -> bool:
        """Whether so many outputs lie on either side."""
        x, n0, z, n1 = self.outcome
        return min(x + n1 - z, n0 - x + z) >= fewest and self.sound

    @property
    def outcome(self) -> tuple[int, int, int, int]:
        """(x, n0, z, n1): x of n0 outputs of d0 are in the region, and z of n1 outputs of d1 are not."""
        n0, n1 = (int(side.sum()) for side in self.scores)
        x, z = int(self.scores[0, self.threshold + 1 :].sum()), int(self.scores[1, : self.threshold + 1].sum())
        return x, n0, z, n1

    def intervals(self, pairs: int) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Of alpha and of beta, 95 % each; None if the counts are of no single region."""
        x, n0, z, n1 = self.outcome
        if self.counted == "frozen":
            return clopper_pearson(x, n0, significance=_MISSED), clopper_pearson(z, n1, significance=_MISSED)
        if self.moment is None:
            return None
        number = self.moment.number
        share = _MISSED / (pairs * number * (number + 1))
        (m0, m1), (y0, y1) = self.moment.before.sum(axis=1), self.moment.before[:, self.threshold + 1 :].sum(axis=1)
        return (
            anytime_interval(x, n0, significance=share, prior=_prior(int(y0), int(m0))),
            anytime_interval(z, n1, significance=share, prior=_prior(int(m1 - y1), int(m1))),
        )

    def p_value(self, claim: TradeoffFunction) -> float:
        """p-value of a claim, exact if region and number of outputs were fixed before they were drawn."""
        x, n0, z, n1 = self.outcome
        return exact_binomial.p_value(claim, x, n0, n1 - z, n1)


def _prior(k: int, n: int) -> tuple[float, float]:
    """Beta prior of a rate, by the counts that were there when its region was chosen."""
    return 0.5 + _KNOWN * k, 0.5 + _KNOWN * (n - k)


def _chosen(learner: Learner, scores: npt.NDArray[np.int64], claim: TradeoffFunction, violated: bool) -> _Region | None:
    """The region whose counts are the least likely under the claim; None if none has outputs on both sides.

    Where no region's counts exceed what the claim allows, the one that comes nearest to its curve.
    """
    n0, n1 = (int(side.sum()) for side in scores)
    if n0 == 0 or n1 == 0:
        return None
    outside0, outside1 = np.cumsum(scores[0])[:-1], np.cumsum(scores[1])[:-1]
    outside = outside0 + outside1
    fewest = 1 if violated else _MIN_OUTPUTS_OF_A_SIDE
    eligible = (outside >= fewest) & (n0 + n1 - outside >= fewest)
    if not eligible.any():
        return None
    against = deviations(claim, scores[0], n0, scores[1], n1)
    rank = np.maximum(against, 0.0)
    if not np.any(rank[eligible] > 0):
        rank = np.minimum(_shortfall(1 - outside0 / n0, outside1 / n1, claim), 0.0)
    threshold = _middle_of_best(np.where(eligible, rank, -np.inf))
    return _Region(learner.current(), _examples(learner), scores, threshold, "moving")


def _examples(learner: Learner) -> Outputs | None:
    """The latest outputs of both datasets, unless nothing was learned from any."""
    if not learner.ready:
        return None
    return Outputs.join([side.latest(PROBES) for side in learner.outputs()])


def _witness(region: _Region, claim: TradeoffFunction, pair: str, p_value: float, pairs: int) -> Witness:
    score, k = region.score, region.threshold
    x, n0, z, n1 = region.outcome
    weights = score.weights()
    strongest = max(weights, key=lambda i: weights[i], default=None)
    (alpha_lower, alpha_upper), (beta_lower, beta_upper) = region.intervals(pairs) or _NO_INTERVALS
    return Witness(
        pair=pair,
        attack="+".join(
            score.attacks[i].name
            for i in sorted(weights, key=lambda i: -weights[i])
            if i == strongest or weights[i] > 0.2
        ),
        region=describe_region(score, float(EDGES[k]), region.examples),
        threshold=float(EDGES[k]),
        alpha=x / n0,
        beta=z / n1,
        claimed_beta=float(claim.beta(x / n0)),
        counts=Counts(false_positives=x, n0=n0, false_negatives=z, n1=n1),
        counted=region.counted,
        p_value=p_value,
        alpha_lower=alpha_lower,
        alpha_upper=alpha_upper,
        beta_lower=beta_lower,
        beta_upper=beta_upper,
        allowed_upper=math.nan if math.isnan(alpha_upper) else 1 - float(claim.beta(alpha_upper)),
        scores=sparse(region.scores) if region.counted == "later" else (),
    )


def sparse(scores: npt.NDArray[np.int64]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Counts (2, BINS) as (bin, count) of the bins that are not empty."""
    return tuple(tuple((int(i), int(side[i])) for i in np.flatnonzero(side)) for side in scores)


def _middle_of_best(value: Array) -> int:
    """Thresholds between which no output was scored are as good as each other; the middle one is furthest from any."""
    if np.isnan(value).any():
        raise AssertionError("a region cannot be ranked by nan")
    first = int(np.argmax(value))
    same = value[first:] == value[first]
    count = len(same) if same.all() else int(np.argmin(same))
    return first + (count - 1) // 2


def _shortfall(alpha: Array, beta: Array, claim: TradeoffFunction) -> Array:
    """Signed divergence of each observed point from the nearest point on the curve, positive below it.

    min over a of kl(alpha, a) + kl(beta, f(a)), over points of the curve on the observed point's far side.
    """
    new = np.append(True, (np.diff(alpha) != 0) | (np.diff(beta) != 0))  # most neighbours are the same point
    alpha, beta = alpha[new], beta[new]
    curve = np.clip(claim.beta(_GRID), 1e-12, 1 - 1e-12)
    distance = np.min(_kl(alpha[:, None], _GRID) + _kl(beta[:, None], curve), axis=1)
    below = beta < claim.beta(alpha)
    inside: Array = np.where(below, distance, -distance)[np.cumsum(new) - 1]
    return inside


def _kl(observed: Array, rate: Array) -> Array:
    """Divergence of Bernoulli(observed) from Bernoulli(rate), nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(observed > 0, observed * np.log(observed / rate), 0.0)
        miss = np.where(observed < 1, (1 - observed) * np.log((1 - observed) / (1 - rate)), 0.0)
    divergence: Array = hit + miss
    return divergence
