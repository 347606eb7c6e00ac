"""The common form of laws that were fitted to outputs of both datasets, for use by `known_noise`.

This file contains no attack.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, ndtri

from dpaudit.numerics.arrays import Array


@dataclass(frozen=True, slots=True)
class FittedLaw:
    """A law that was fitted to the outputs of both datasets."""

    log_likelihood: float  # of all outputs, in nats, minus a penalty for what was estimated (Schwarz 1978)
    ratio: Callable[[Array], Array]  # maps outputs (n, d) to log-likelihood ratios (n,) in nats
    agrees: Callable[[], bool]  # tests the law by the outputs to which it was fitted


RowLaw = Callable[[Array, Array], FittedLaw | None]
"""A function that fits a law to outputs (n0, d) of d0 and (n1, d) of d1; None if they cannot come from such a law."""

_LEVEL = 1e-4  # probability that each of two tests rejects independent columns
_MAX_TESTED = 256  # maximum number of columns that are tested


def independent(rest0: Array, rest1: Array) -> bool:
    """Test by correlations whether the columns of outputs minus their locations, (n0, d) and (n1, d), are independent.

    One test uses the sum of the squared correlations of all pairs of columns (chi-square), and the other uses the
    largest correlation (Fisher 1915, with the correction of Bonferroni).
    """
    rest = np.concatenate([rest0[:, :_MAX_TESTED], rest1[:, :_MAX_TESTED]])
    n, d = rest.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = rest / np.sqrt(np.mean(rest**2, axis=0))
    correlations = np.nan_to_num(rest.T @ rest / n)[np.triu_indices(d, 1)]
    largest = math.atanh(min(float(np.max(np.abs(correlations), initial=0.0)), 1 - 1e-12))
    return bool(
        n * float(correlations @ correlations) <= chdtri(max(1, len(correlations)), _LEVEL)
        and largest * math.sqrt(max(n - 5, 1)) <= -ndtri(_LEVEL / 2 / max(1, len(correlations)))
    )
