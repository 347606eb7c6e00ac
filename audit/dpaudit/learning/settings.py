"""When a learner fits its attacks, and how much of the past it looks at."""

from __future__ import annotations

import math
from dataclasses import dataclass

FIRST_FIT = 10  # trials the first scores are learned from


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits of a learner.  Numbers of rows, outputs and bytes are for each of the two datasets."""

    refit_growth: tuple[tuple[float, float], ...] = ((5_000, 1.3), (50_000, 1.5), (math.inf, 2.0))
    """(until, factor): below `until` trials, attacks are refitted when the trials have grown by this factor."""
    choice_growth: float = 1.1  # growth of the trials after which one attack may be chosen to be bet on alone
    first_moment: int = 20  # trials from which a score is frozen for the witness; again each time that they doubled
    max_judged_outputs: int = 4_096  # of a block, by which the weights of the attacks are updated

    max_fit_rows: int = 50_000  # latest outputs that a fit looks at, if they are narrow
    max_wide_fit_rows: int = 200_000  # the same for vectors, which are given
    fit_rows_per_column: int = 20_000  # for each of their numbers
    max_fit_bytes: int = 2**30  # of the outputs that a fit looks at
    min_fit_rows: int = 50  # however large the outputs are
    max_fit_parts: int = 500_000  # parts of structured outputs that are kept in memory
    min_structured_rows: int = 1_000  # however many parts the outputs have
    max_raw_bytes: int = 2**28  # of large outputs that are kept for attacks that want them as they came
    max_vocabulary: int = 2_000  # outputs that an encoding is learned from

    max_second_stage_rows: int = 1_500_000  # outputs in the second stage
    max_second_stage_numbers: int = 2**25  # numbers in these outputs
    held_share: float = 1 / 3  # of these outputs, to which no attack is fitted: they weigh the attacks
    min_weight: float = 0.01  # in the mixture; attacks below it are left out after the second stage
