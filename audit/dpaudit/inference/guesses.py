"""Guess which canaries were included in the data, and count the right guesses.

Only the canaries with the highest and the lowest scores are guessed.  The module `inference.one_run` bounds the
probability of v or more right guesses.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpaudit.inference.one_run import check_counts

_TIES = 2305_08846  # seed of the permutation that breaks ties between scores


def default_guesses(m: int) -> int:
    """Return the default number of guesses: 1.5 m^(3/4), rounded up, but at most m.

    A small number of guesses gives more power against a privacy loss that is large but rare.  A large number of guesses
    gives more power against a privacy loss that is small but frequent.
    """
    return min(m, math.ceil(1.5 * math.pow(m, 0.75)))


def guess(scores: npt.ArrayLike, guesses: int | None = None) -> npt.NDArray[np.int8]:
    """Guess whether the canaries with the most extreme scores were included.

    Of the r guesses, r // 2 are "left out" for the canaries with the lowest scores.  The other r - r // 2 guesses are
    "included" for the canaries with the highest scores.  Ties between scores are broken by a fixed pseudo-random
    permutation of the canaries.  Breaking ties by position would bias the guesses if all included canaries came first
    in the array.

    Returns:
        One number for each canary; shape (m,).  The number is 1 for "included", -1 for "left out" and 0 for no guess.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"scores must be one number for each canary, got an array of shape {values.shape}")
    if np.any(np.isnan(values)):
        raise ValueError(f"scores must be numbers, got nan for canary {int(np.argmax(np.isnan(values)))}")
    m = len(values)
    r = default_guesses(m) if guesses is None else guesses
    check_counts(m, r, 0)
    shuffled = np.random.default_rng(_TIES).permutation(m)
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    answers = np.zeros(m, dtype=np.int8)
    answers[order[: r // 2]] = -1
    answers[order[m - (r - r // 2) :]] = 1
    return answers


def right_guesses(answers: npt.NDArray[np.int8], included: npt.ArrayLike) -> tuple[int, int]:
    """Count the guesses and the right guesses.

    Returns:
        The number of guesses and the number of right guesses.
    """
    truth = np.asarray(included)
    if truth.shape != answers.shape:
        raise ValueError(f"included must be a boolean for each of {len(answers)} canaries, got shape {truth.shape}")
    if not np.all((truth == 0) | (truth == 1)):
        raise ValueError("included must consist of booleans (or 0 and 1)")
    right = np.where(truth == 1, answers == 1, answers == -1)
    return int(np.count_nonzero(answers)), int(np.count_nonzero(right))
