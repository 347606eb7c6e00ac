"""The rejection region of a replay, which is learned again and then frozen."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.engine.collector import Progress, ProgressCallback
from dpaudit.inference.grid import bin_counts
from dpaudit.learning import Learner
from dpaudit.result.values import Witness

_CLEARLY = 3  # standard errors: if the rates differ by more from the witness's rates, another threshold is chosen


def frozen_threshold(learner: Learner, threshold: int, witness: Witness) -> int:
    """Return the last bin outside the region for a score that was learned again.  Counted runs have no influence.

    The witness's threshold is kept, unless its error rates under the new score clearly differ from the witness's rates.
    In that case, the threshold with the closest rates is chosen.  This happens if many outputs have the same
    score, and this score now lies on the other side of the threshold.
    """
    if not learner.ready:
        return threshold
    scores = [bin_counts(learner.score(side)) for side in learner.outputs()]
    n = int(scores[0].sum())
    if n == 0:
        return threshold
    alpha = 1 - np.cumsum(scores[0])[:-1] / n
    beta = np.cumsum(scores[1])[:-1] / n
    away = np.abs(alpha - witness.alpha) + np.abs(beta - witness.beta)
    error = sum(math.sqrt(rate * (1 - rate) / n) for rate in (witness.alpha, witness.beta))
    if away[threshold] <= away.min() + _CLEARLY * error:
        return threshold
    best = np.flatnonzero(away == away.min())
    return int(best[len(best) // 2])


def tell(trials: int, until: int, progress: ProgressCallback | None) -> None:
    """Report the progress of a replay, whose evidence is counted only at the end."""
    if progress is not None:
        progress(Progress(trials=trials, allowed=until, log_e=math.nan, log_threshold=math.nan))
