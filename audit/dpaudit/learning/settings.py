"""Settings that determine when the attacks of a learner are fitted, and to how many outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass

FIRST_FIT = 10  # number of trials before the first fit of the attacks
# From this number of trials on, attacks are fitted and tried more rarely, because all that they gain is time.
SETTLED = 50_000
MAX_TRIED = 4_096  # number of trials after which an attack that joins or returns at `SETTLED` or later may be suspended


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a learner.  Each limit on rows, outputs or bytes applies to each of the two datasets alone."""

    refit_growth: tuple[tuple[float, float], ...] = ((5_000, 1.3), (50_000, 1.5), (math.inf, 2.0))
    """Pairs (until, factor): below `until` trials, attacks are refitted when the trials have grown by `factor`."""
    # From `SETTLED` trials on, an attack that is not in use, and whose last fit had as many outputs as a fit may have,
    # is refitted only when the trials have grown by this factor.  A fit to as many other outputs is hardly better.
    full_fit_growth: float = 32.0
    first_quick_fit: int | None = None  # number of trials at the first fit of quick attacks; None as for others
    quick_growth: float = 1.1  # factor by which the number of trials must grow before quick attacks are refitted
    choice_growth: float = 1.1  # factor by which trials must grow before the selection of one attack is revised
    first_moment: int = 20  # number of trials at which a score is first frozen for the witness
    # minimum weight in the mixture with which an attack is kept in a frozen score; an attack that returns from a
    # suspension weighs less (`weights._BEHIND_ON_RETURN`), and would score all later outputs
    min_frozen_weight: float = 0.05
    max_judged_outputs: int = 4_096  # maximum number of outputs in a block that update the weights of the attacks

    max_fit_rows: int = 50_000  # maximum number of outputs in a fit, unless the outputs are vectors
    max_wide_fit_rows: int = 200_000  # maximum number of outputs in a fit to vectors
    fit_rows_per_column: int = 20_000  # outputs in a fit to vectors, per component; the other two limits apply, too
    max_fit_bytes: int = 2**30  # maximum size of the outputs in a fit, in bytes
    min_fit_rows: int = 50  # minimum number of outputs in a fit, even if they exceed `max_fit_bytes`
    max_fit_parts: int = 500_000  # maximum number of parts of structured outputs that are stored in memory
    min_structured_rows: int = 1_000  # minimum number of structured outputs in a fit, even above `max_fit_parts`
    max_raw_bytes: int = 2**28  # maximum size, in bytes, of outputs that are stored in their original form
    max_vocabulary: int = 2_000  # maximum number of structured outputs from which an encoding is learned

    max_second_stage_rows: int = 1_500_000  # maximum number of outputs in the second stage
    max_second_stage_numbers: int = 2**25  # maximum number of features, over all outputs, in the second stage
    held_share: float = 1 / 3  # share of the outputs of the second stage that is held out of the fits
    min_weight: float = 0.01  # minimum weight in the mixture with which an attack is kept in the second stage


STREAM = Settings(first_quick_fit=3)
"""The settings for a stream: quick attacks score outputs early, because a stream may refute a claim in a few steps."""
