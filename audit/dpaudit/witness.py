"""The rejection region that makes the violation plain."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.claims import Array, TradeoffFunction
from dpaudit.inference.grid import EDGES
from dpaudit.result import Counts, Witness
from dpaudit.scoring import Learner

_FEW = 12  # distinct outputs that are listed one by one
_PROBES = 4000
_GAPS = 3  # intervals that are still easier to read than the score


def make_witness(
    learner: Learner,
    claim: TradeoffFunction,
    counts0: npt.NDArray[np.int64],
    counts1: npt.NDArray[np.int64],
    *,
    pair: str,
    threshold: int | None = None,
) -> Witness | None:
    """The threshold whose counts lie furthest below the claim's curve, or least far above it; None without counts.

    Chosen on the counts it shows, so it explains the verdict and does not prove it; unless `threshold` was frozen before.
    """
    n0, n1 = int(counts0.sum()), int(counts1.sum())
    if n0 == 0 or n1 == 0:
        return None
    false_positives = n0 - np.cumsum(counts0)[:-1]
    false_negatives = np.cumsum(counts1)[:-1]
    alpha, beta = false_positives / n0, false_negatives / n1
    k = int(np.argmax(_shortfall(alpha, beta, claim))) if threshold is None else threshold
    weights = learner.weights()
    strongest = max(weights, key=lambda i: weights[i], default=None)
    return Witness(
        pair=pair,
        attack="+".join(
            learner.attacks[i].name
            for i in sorted(weights, key=lambda i: -weights[i])
            if i == strongest or weights[i] > 0.2
        ),
        region=describe_region(learner, float(EDGES[k])),
        alpha=float(alpha[k]),
        beta=float(beta[k]),
        claimed_beta=float(claim.beta(alpha[k])),
        counts=Counts(false_positives=int(false_positives[k]), n0=n0, false_negatives=int(false_negatives[k]), n1=n1),
    )


def _shortfall(alpha: Array, beta: Array, claim: TradeoffFunction) -> Array:
    """Signed divergence of each observed point from the nearest point on the curve, positive below it.

    min over a of kl(alpha, a) + kl(beta, f(a)), over points of the curve on the observed point's far side.
    """
    grid = np.unique(np.concatenate([np.geomspace(1e-9, 0.5, 300), 1 - np.geomspace(1e-9, 0.5, 300)]))
    curve = np.clip(claim.beta(grid), 1e-12, 1 - 1e-12)
    distance = np.min(_kl(alpha[:, None], grid) + _kl(beta[:, None], curve), axis=1)
    below = beta < claim.beta(alpha)
    inside: Array = np.where(below, distance, -distance)
    return inside


def _kl(observed: Array, rate: Array) -> Array:
    """Divergence of Bernoulli(observed) from Bernoulli(rate), nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(observed > 0, observed * np.log(observed / rate), 0.0)
        miss = np.where(observed < 1, (1 - observed) * np.log((1 - observed) / (1 - rate)), 0.0)
    divergence: Array = hit + miss
    return divergence


def describe_region(learner: Learner, threshold: float) -> str:
    """The region {score > threshold} in words: in terms of the output where it is one number."""
    in_score = f"estimated log-likelihood ratio above {threshold:.3g}"
    examples = learner.outputs()
    if examples.shape[1] != 1 or not learner.ready:
        return in_score
    values = np.unique(examples[~np.isnan(examples)])
    if len(values) == 0:
        return in_score
    if len(values) > _PROBES:
        values = values[np.linspace(0, len(values) - 1, _PROBES).astype(int)]
    inside = learner.score(values[:, None]) > threshold
    if len(values) <= _FEW:
        chosen = ", ".join(f"{value:.6g}" for value in values[inside])
        return f"output in {{{chosen}}}" if chosen else in_score
    starts = np.flatnonzero(inside & ~np.concatenate([[False], inside[:-1]]))
    stops = np.flatnonzero(inside & ~np.concatenate([inside[1:], [False]]))
    if not 0 < len(starts) <= _GAPS:
        return in_score
    return "output " + " or ".join(_interval(values, int(a), int(b)) for a, b in zip(starts, stops, strict=True))


def _interval(values: Array, first: int, last: int) -> str:
    low = (values[first - 1] + values[first]) / 2 if first > 0 else None
    high = (values[last] + values[last + 1]) / 2 if last + 1 < len(values) else None
    if low is None and high is None:
        return "anywhere"
    if low is None:
        return f"below {high:.4g}"
    return f"above {low:.4g}" if high is None else f"between {low:.4g} and {high:.4g}"
