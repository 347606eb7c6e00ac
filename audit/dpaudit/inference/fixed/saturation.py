"""Where the likelihood ratio grows with the score no more.

A mechanism with a bounded privacy loss often has events on which the ratio is the same all over.  A learned score
varies there all the same, by the noise of learning, and outputs from which it was learned do not tell: they look as if
the ratio varied as the score does.  A region high up would then be a lucky part of the event with the largest loss.

Nothing here touches validity: like all choices of regions it is made before the outputs it is counted on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.inference.grid import CENTRES
from dpaudit.numerics.arrays import Array

Counts = npt.NDArray[np.int64]

_MIN_UNSEEN = 20_000  # unseen outputs of each dataset; of fewer, so few are in the tails that noise looks like an end
_SCALES: Array = np.geomspace(0.4, 1.6, 13)  # a score may be out of scale, which must not be taken for an end


def merge_saturated(pilot: Counts, unseen: Counts) -> Counts:
    """The bin counts of a pilot, (2, BINS), with all bins beyond the last that tells more made one.

    `unseen`: counts of the same score on outputs that it was not fitted to.  On each side of zero, the ratio is taken
    to end at the bin at which that makes these outputs likeliest, whatever the scale of the score; nowhere, if they are
    few or likeliest without.
    """
    if unseen.sum(axis=1).min() < _MIN_UNSEEN:
        return pilot
    positive, negative = np.flatnonzero(CENTRES > 0), np.flatnonzero(CENTRES < 0)[::-1]
    merged = pilot.copy()
    for outwards, (against, favour) in ((positive, unseen), (negative, unseen[::-1])):
        last = _last(favour[outwards], against[outwards], np.abs(CENTRES[outwards]))
        beyond = outwards[last + 1 :]
        merged[:, outwards[last]] += merged[:, beyond].sum(axis=1)
        merged[:, beyond] = 0
    return merged


def _last(favour: Counts, against: Counts, ratio: Array) -> int:
    """The k for which log-ratios proportional to min(ratio, ratio[k]) are likeliest, the largest such k.

    From how many outputs with each `ratio`, (m,), > 0 and ascending, are of the dataset it speaks for and of the other.
    """
    scaled = _SCALES[:, None] * ratio
    right, wrong = np.logaddexp(0.0, -scaled), np.logaddexp(0.0, scaled)  # losses of one output
    own = favour * right + against * wrong
    from_here = np.cumsum(favour[::-1])[::-1] * right + np.cumsum(against[::-1])[::-1] * wrong
    losses = (np.cumsum(own, axis=1) - own + from_here).min(axis=0)
    return len(losses) - 1 - int(np.argmin(losses[::-1]))
