"""The common form of laws that were fitted to outputs of both datasets, for use by `known_noise`.

This file contains no attack.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpaudit.numerics.arrays import Array


@dataclass(frozen=True, slots=True)
class FittedLaw:
    """A law that was fitted to the outputs of both datasets."""

    log_likelihood: float  # of all outputs, in nats, minus a penalty for what was estimated (Schwarz 1978)
    ratio: Callable[[Array], Array]  # maps outputs (n, d) to log-likelihood ratios (n,) in nats
    agrees: Callable[[], bool]  # tests the law by the outputs to which it was fitted


RowLaw = Callable[[Array, Array], FittedLaw | None]
"""A function that fits a law to outputs (n0, d) of d0 and (n1, d) of d1; None if they cannot come from such a law."""

_SIGMAS = 4.5  # standard errors of the mean product at which columns count as dependent


def independent(rest: Array) -> bool:
    """Test whether the columns of outputs minus their locations, (n, d), are independent, by their mean products.

    The test is passed if the sum of x_i x_j over all columns i < j is near 0 on average.  If the columns are
    independent, its variance is the sum of the products of the variances of x_i and x_j.
    """
    squares = np.einsum("ij,ij->j", rest, rest) / len(rest)
    products = (rest.sum(axis=1) ** 2).mean() - squares.sum()
    variance = 2 * (squares.sum() ** 2 - (squares**2).sum()) / len(rest)
    return bool(abs(products) <= _SIGMAS * math.sqrt(max(variance, 0.0)) + 1e-9 * squares.sum())
