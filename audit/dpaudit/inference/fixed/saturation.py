"""Saturation of the likelihood ratio: detect where it no longer grows with the score.

A mechanism with a bounded privacy loss often has events on which the likelihood ratio is constant.  A learned score
still varies on such an event because of estimation noise.  The outputs to which the score was fitted do not reveal this
noise, because on these outputs the ratio seems to vary with the score.  A region with a high threshold would then be an
arbitrary part of the event.

Validity does not depend on this module, since regions are chosen before the counted outputs are sampled.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.inference.grid import CENTRES
from dpaudit.numerics import Array

Counts = npt.NDArray[np.int64]

_MIN_UNSEEN = 20_000  # held-out outputs per dataset; with fewer, noise in the tails looks like saturation
_SCALES: Array = np.geomspace(0.4, 1.6, 13)  # candidate scales of the score: a wrong scale is not saturation


def merge_saturated(pilot: Counts, unseen: Counts) -> Counts:
    """Merge the bins beyond the point at which the likelihood ratio saturates.

    The point of saturation and the scale of the score are fitted by maximum likelihood, on each side of zero.

    Returns:
        The counts of the pilot, with all counts beyond the point of saturation added to the bin of this point.  The
        counts are unchanged if there are fewer than 20,000 held-out outputs per dataset or no saturation was found.
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
    """Return the bin k from which the true log-ratio is constant, by maximum likelihood.

    The true log-ratios are modelled as proportional to min(ratio, ratio[k]).  If several k are best, the largest is
    returned.
    """
    scaled = _SCALES[:, None] * ratio
    right, wrong = np.logaddexp(0.0, -scaled), np.logaddexp(0.0, scaled)  # losses of one output
    own = favour * right + against * wrong
    from_here = np.cumsum(favour[::-1])[::-1] * right + np.cumsum(against[::-1])[::-1] * wrong
    losses = (np.cumsum(own, axis=1) - own + from_here).min(axis=0)
    return len(losses) - 1 - int(np.argmin(losses[::-1]))
