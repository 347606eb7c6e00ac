"""The fingerprint of a stream's bets: a stream that changes its bets in the middle is not a valid test."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.inference.grid import BINS
from dpaudit.inference.sequential.strategy import Strategy
from dpaudit.numerics.arrays import Array

_SAME = 1e-9  # relative tolerance; rounding alone changes the wealth by less


class OtherBets(Exception):
    """Raised if a stream was saved with bets that differ from those of this version of dpaudit."""


def reference_wealth(bets: Strategy, log_prices: Array) -> list[float]:
    """Return the log-wealth of every bet for fixed counts, which identifies bets and prices up to rounding.

    The counts include all bins of both datasets, with different numbers of outputs.  A hash of the prices would differ
    between machines whose functions round differently.
    """
    bins = np.arange(BINS)
    counts = np.array([[1 + bins % 7, 1 + bins % 11]], dtype=np.int64)
    (gains,) = bets.gains(log_prices, counts, coin_selected=True)
    return [float(wealth) for wealth in bets.log_weights + gains]


def check_bets(saved: Sequence[float], ours: Sequence[float]) -> None:
    """Refuse different fingerprints: if a stream changes its bets, its wealth is no supermartingale."""
    if len(saved) == len(ours) and all(
        math.isclose(a, b, rel_tol=_SAME, abs_tol=_SAME) for a, b in zip(saved, ours, strict=True)
    ):
        return
    raise OtherBets(
        "it was saved by a version of dpaudit that places other bets, and a stream that changes its bets is not a "
        "valid test; continue with that version, or begin a new stream (the error probabilities of both streams add "
        "up)"
    )
