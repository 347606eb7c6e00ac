"""The attack's scores on fresh outputs, as far as a result keeps them: counts in the bins of its file format."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Witness

# Bin i of a result file holds EDGES[i - 1] < score <= EDGES[i], scores being log-likelihood ratios in nats: zero,
# and steps of 8 % from 0.001 to 60 on both sides.
_POSITIVE = 0.001 * 1.08 ** np.arange(144)
EDGES: Array = np.concatenate([-_POSITIVE[::-1], [0.0], _POSITIVE])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Scores on the witness's pair, and its region: score > EDGES[threshold]."""

    counts0: npt.NDArray[np.int64]  # (bins,), outputs of d0
    counts1: npt.NDArray[np.int64]
    threshold: int


def witness_scores(result: AuditResult) -> Scores | None:
    """The scores behind the witness; None if there is no witness or the evidence holds no scores."""
    if result.witness is None:
        return None
    if own := _own(result.witness):
        return own
    found = result.witness.counts
    for counts0, counts1 in _pairs(result, result.witness.pair):
        false_positives = counts0.sum() - np.cumsum(counts0)[:-1]
        false_negatives = np.cumsum(counts1)[:-1]
        same = (false_positives == found.false_positives) & (false_negatives == found.false_negatives)
        if counts0.sum() == found.n0 and counts1.sum() == found.n1 and same.any():
            told = result.witness.threshold
            threshold = int(np.argmax(same) if math.isnan(told) else np.argmin(np.abs(EDGES - told)))
            return Scores(counts0=counts0, counts1=counts1, threshold=threshold)
    return None


def _own(found: Witness) -> Scores | None:
    """The scores that the witness itself keeps: those of the outputs on which its region was counted."""
    kept = getattr(found, "scores", ())
    if not kept or math.isnan(found.threshold):
        return None
    counts = np.zeros((2, len(EDGES) + 1), dtype=np.int64)
    for side, entries in zip(counts, kept, strict=True):
        for place, times in entries:
            side[place] = times
    return Scores(counts0=counts[0], counts1=counts[1], threshold=int(np.argmin(np.abs(EDGES - found.threshold))))


def _pairs(result: AuditResult, label: str) -> list[npt.NDArray[np.int64]]:
    """Counts of d0 and of d1, those of the pair with this label first: two pairs may have the same counts."""
    counts = getattr(result.evidence, "counts", None)
    if counts is None or counts.shape[-1] != len(EDGES) + 1:
        return []
    pairs = list(counts.reshape(-1, 2, counts.shape[-1]))
    if len(pairs) != len(result.pairs):
        return pairs
    named = [row.label == label for row in result.pairs]
    return [pair for wanted in (True, False) for pair, own in zip(pairs, named, strict=True) if own is wanted]
