"""Guesses about who was included: for the canaries with the most extreme scores, how many of them are right.

`inference.one_run` bounds the chance of so many right guesses.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpaudit.inference.one_run import check_counts

_TIES = 2305_08846  # any number


def default_guesses(m: int) -> int:
    """A number of guesses that suits many mechanisms: 1.5 m^(3/4), at most m.

    Few guesses resolve a loss that is large but rare, many a loss that is small but frequent.  On Gaussian and Laplace
    noise (mu, epsilon in 0.5 ... 4; m in 100 ... 10,000) the bounds are on average 0.8 times those of the luckiest r.
    """
    return min(m, math.ceil(1.5 * math.pow(m, 0.75)))


def guess(scores: npt.ArrayLike, guesses: int | None = None) -> npt.NDArray[np.int8]:
    """Guesses for the canaries with the most extreme scores, (m,): 1 included, -1 left out, 0 abstains.

    `scores`: (m,), higher means more like an included canary; +-inf is allowed, NaN is refused.  `guesses`: their
    number r, chosen before anything was seen, by default `default_guesses(m)`.  The r // 2 canaries with the lowest
    scores are guessed to be left out, the r - r // 2 with the highest ones to be included.

    Equal scores are put in an order that is the same in every call, but not the order of the canaries: neither the
    coins nor a list that happens to be sorted by them can have an influence.
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
    """(r, v): how many canaries `guess` answered for, and how many rightly.  `included`: (m,), booleans."""
    truth = np.asarray(included)
    if truth.shape != answers.shape:
        raise ValueError(f"included must be a boolean for each of {len(answers)} canaries, got shape {truth.shape}")
    if not np.all((truth == 0) | (truth == 1)):
        raise ValueError("included must consist of booleans (or 0 and 1)")
    right = np.where(truth == 1, answers == 1, answers == -1)
    return int(np.count_nonzero(answers)), int(np.count_nonzero(right))
