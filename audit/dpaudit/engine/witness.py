"""The witness: the rejection region that shows a violation most clearly.

A sequential audit stops as soon as the outputs contradict the claim.  Counts of a region on these outputs tend to
exaggerate the violation, even if the region was frozen before these outputs.  So the witness states the intervals of
`inference.sequential.bands` for its two error rates.  They are valid whenever counting stops.

Theorem:
    Let regions j = 1, 2, ... of each of m pairs be frozen during an audit, each before the outputs on which it is
    counted.  Show one region, selected in any way, when the audit stops for any reason.  Then each of its two intervals
    misses the true rate with probability at most 0.05.

Proof:
    The interval of region j has significance 0.05 / (m j (j + 1)) at all stopping times, given all events before the
    region was frozen.  These significances sum to 0.05 (union bound).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.independence import ENOUGH_OUTPUTS
from dpaudit.engine.region import PROBES, describe_region, query_words
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.fixed.binomial import clopper_pearson
from dpaudit.inference.fixed.regions import deviations, threshold_for_claim
from dpaudit.inference.grid import EDGES
from dpaudit.inference.sequential.bands import anytime_interval
from dpaudit.learning import Learner, Moment, Score
from dpaudit.numerics import Array, Integers
from dpaudit.outputs import Outputs
from dpaudit.pairs.pair import Pair
from dpaudit.result.values import Counted, Counts, Witness, beyond
from dpaudit.text import MASK, masked_values
from dpaudit.values import Dataset, Json, stored

_PLAIN = 0.1  # a frozen region shows a violation clearly if its p-value is at most this
_MISSED = 0.05  # significance of each interval
_KNOWN = 0.5  # weight, in the prior, of the counts that chose a region; below 1, because the score was refitted later
_GRID = np.unique(np.concatenate([np.geomspace(1e-9, 0.5, 300), 1 - np.geomspace(1e-9, 0.5, 300)]))  # values of alpha
_NO_INTERVALS = ((math.nan, math.nan), (math.nan, math.nan))


def make_witness(
    learner: Learner,
    claim: TradeoffFunction,
    counts0: Integers,
    counts1: Integers,
    *,
    pair: Pair,
    pairs: int = 1,
    threshold: int | None = None,
    violated: bool = False,
    recount: bool = True,
) -> Witness | None:
    """Find the region with the strongest evidence against the claim; None if no region has outputs on both sides.

    Scores change while attacks learn, so some were frozen during the audit (`Learner.hindsight`).  The region of a
    frozen score is chosen from outputs before that moment, and counted on those after it.  If none shows a violation
    clearly, the counts of all scores are used, and `counted` is "moving".
    """
    if threshold is not None:
        scores = np.array([counts0, counts1])
        return frozen_witness(learner, claim, scores, threshold, pair) if scores.sum(axis=1).all() else None
    named = []
    for moment in learner.hindsight() if recount else []:
        k = threshold_for_claim(
            moment.before[0], moment.before[1], claim, trials=moment.score.trials, significance=_MISSED
        )
        examples = Outputs.join(list(learner.latest(min(PROBES, int(moment.after[0].sum())))))
        named.append(CountedRegion(moment.score, examples, moment.after, k, "later", moment))
    found = [(one.p_value(claim), one) for one in named if one.has_both_sides(1 if violated else ENOUGH_OUTPUTS)]
    if not found or (violated and min(p_value for p_value, _ in found) > _PLAIN):
        moving = _chosen(learner, np.array([counts0, counts1]), claim, violated)
        if moving is not None:
            found.append((moving.p_value(claim), moving))
    if not found:
        return None
    p_value, best = min(found, key=lambda one: one[0])
    return _witness(best, claim, pair, p_value, pairs)


def frozen_witness(learner: Learner, claim: TradeoffFunction, scores: Integers, threshold: int, pair: Pair) -> Witness:
    """Return the witness for a region that was frozen before the outputs were counted, with exact intervals."""
    region = CountedRegion(learner.current(), _examples(learner), scores, threshold, "frozen")
    return _witness(region, claim, pair, region.p_value(claim), 1)


@dataclass(frozen=True, slots=True, eq=False)
class CountedRegion:
    """The region of outputs whose score lies in a bin above the threshold, with counts."""

    score: Score
    examples: Outputs | None  # outputs of both datasets, used to describe the region
    scores: Integers  # (2, BINS), binned scores of the counted outputs
    threshold: int  # last bin outside the region
    counted: Counted
    moment: Moment | None = None  # when the region's score was frozen; None if it was not frozen by the learner

    def has_both_sides(self, fewest: int) -> bool:
        """Whether at least `fewest` outputs lie inside the region, and at least `fewest` outside it."""
        x, n0, z, n1 = self.outcome
        return min(x + n1 - z, n0 - x + z) >= fewest and min(n0, n1) > 0

    @property
    def outcome(self) -> tuple[int, int, int, int]:
        """(x, n0, z, n1): x of n0 outputs of d0 are in the region, and z of n1 outputs of d1 are not."""
        counts = beyond(self.scores, self.threshold)
        return counts.false_positives, counts.n0, counts.false_negatives, counts.n1

    def intervals(self, pairs: int) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Return the 95 % intervals of alpha and of beta; None if the counts do not belong to a single region."""
        x, n0, z, n1 = self.outcome
        if self.counted == "frozen":
            return clopper_pearson(x, n0, significance=_MISSED), clopper_pearson(z, n1, significance=_MISSED)
        if self.moment is None:
            return None
        number = self.moment.number
        share = _MISSED / (pairs * number * (number + 1))
        before = beyond(self.moment.before, self.threshold)

        def interval(k: int, n: int, k_before: int, n_before: int) -> tuple[float, float]:
            prior = 0.5 + _KNOWN * k_before, 0.5 + _KNOWN * (n_before - k_before)  # of a Beta law
            return anytime_interval(k, n, significance=share, prior=prior)

        return (interval(x, n0, before.false_positives, before.n0), interval(z, n1, before.false_negatives, before.n1))

    def p_value(self, claim: TradeoffFunction) -> float:
        """Return the p-value of a claim; it is exact if region and number of outputs were fixed beforehand."""
        return exact_binomial.p_value(claim, *beyond(self.scores, self.threshold).hits)


def _chosen(learner: Learner, scores: Integers, claim: TradeoffFunction, violated: bool) -> CountedRegion | None:
    """Return the region whose counts are the least likely under the claim, or else the closest to its curve."""
    n0, n1 = (int(side.sum()) for side in scores)
    if n0 == 0 or n1 == 0:
        return None
    outside0, outside1 = np.cumsum(scores[0])[:-1], np.cumsum(scores[1])[:-1]
    outside = outside0 + outside1
    fewest = 1 if violated else ENOUGH_OUTPUTS
    eligible = (outside >= fewest) & (n0 + n1 - outside >= fewest)
    if not eligible.any():
        return None
    against = deviations(claim, scores[0], n0, scores[1], n1)
    rank = np.maximum(against, 0.0)
    if not np.any(rank[eligible] > 0):
        rank = np.minimum(_shortfall(1 - outside0 / n0, outside1 / n1, claim), 0.0)
    threshold = _middle_of_best(np.where(eligible, rank, -np.inf))
    return CountedRegion(learner.current(), _examples(learner), scores, threshold, "moving")


def _examples(learner: Learner) -> Outputs | None:
    """Return the latest outputs of both datasets; None if no score has been learned."""
    if not learner.ready:
        return None
    return Outputs.join([side.latest(PROBES) for side in learner.outputs()])


def _witness(region: CountedRegion, claim: TradeoffFunction, pair: Pair, p_value: float, pairs: int) -> Witness:
    score, k = region.score, region.threshold
    x, n0, z, n1 = region.outcome
    weights = score.weights()
    strongest = max(weights, key=lambda i: weights[i], default=None)
    (alpha_lower, alpha_upper), (beta_lower, beta_upper) = region.intervals(pairs) or _NO_INTERVALS
    query, outcomes = query_words(score, float(EDGES[k]), region.examples)
    return Witness(
        pair=str(pair),
        datasets=(_stored(pair.d0), _stored(pair.d1)),
        attack="+".join(
            score.attacks[i].name
            for i in sorted(weights, key=lambda i: -weights[i])
            if i == strongest or weights[i] > 0.2
        ),
        described=describe_region(score, float(EDGES[k]), region.examples),
        query=query,
        outcomes=outcomes,
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


def _stored(dataset: Dataset) -> list[Json]:
    """Return a dataset as JSON; an empty list if it is not plain, is long, or looks like a secret."""
    found = stored(dataset)
    return found if MASK not in repr(masked_values(dataset if found else None)) else []


def sparse(scores: Integers) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Convert counts (2, BINS) to pairs (bin, count) of the nonempty bins, for each side."""
    return tuple(tuple((int(i), int(side[i])) for i in np.flatnonzero(side)) for side in scores)


def _middle_of_best(value: Array) -> int:
    """Return the middle of the first stretch of equal maxima; thresholds with no outputs in between are equivalent."""
    first = int(np.argmax(value))
    same = value[first:] == value[first]
    count = len(same) if same.all() else int(np.argmin(same))
    return first + (count - 1) // 2


def _shortfall(alpha: Array, beta: Array, claim: TradeoffFunction) -> Array:
    """Return the minimum over a of kl(alpha, a) + kl(beta, f(a)) for each point; its sign is + below the curve."""
    new = np.append(True, (np.diff(alpha) != 0) | (np.diff(beta) != 0))  # most adjacent points are equal
    alpha, beta = alpha[new], beta[new]
    curve = np.clip(claim.beta(_GRID), 1e-12, 1 - 1e-12)
    distance = np.min(_kl(alpha[:, None], _GRID) + _kl(beta[:, None], curve), axis=1)
    below = beta < claim.beta(alpha)
    inside: Array = np.where(below, distance, -distance)[np.cumsum(new) - 1]
    return inside


def _kl(observed: Array, rate: Array) -> Array:
    """Return the Kullback-Leibler divergence of Bernoulli(observed) from Bernoulli(rate), in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(observed > 0, observed * np.log(observed / rate), 0.0)
        miss = np.where(observed < 1, (1 - observed) * np.log((1 - observed) / (1 - rate)), 0.0)
    divergence: Array = hit + miss
    return divergence
