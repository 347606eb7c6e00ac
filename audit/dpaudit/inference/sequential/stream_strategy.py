"""Bets of the sequential test of a stream, in which most of the initial wealth is used for large violations.

A trial of a stream costs one run, and many streams end after a few hundred steps.  So the bets are those of `strategy`,
but they have other shares of the initial wealth.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.sequential.alternatives import alternatives, sampled_noise
from dpaudit.inference.sequential.strategy import Strategy, strategy

_SHARE = 0.75  # share of the wealth on typical violations that is divided in proportion to the growth rates
# Growth rate in nats per step above which the share of a bet no longer grows.  At this rate, about 48 steps suffice at
# 95 % confidence.  A score that was learned from fewer steps is rarely precise enough to attain a larger growth rate.
_MAX_GROWTH = 1 / 16


@lru_cache(maxsize=64)
def stream_strategy(claim: TradeoffFunction) -> Strategy:
    """Design the bets of a stream from the claim alone.

    A quarter of the wealth of the bets on typical violations is divided as in `strategy`.  The rest is divided in
    proportion to the product of the share in `strategy` and the growth rate of the bet under its own alternative.

    Theorem:
        If the claim is true, P[E >= 1/significance at any time] <= significance.  For all counts and prices, the
        log-wealth is at least that of `strategy` minus log 4.

    Proof:
        The shares are positive, sum to 1 and depend on the claim only, so the theorem of the module `strategy` applies.
        Each share is at least a quarter of the share in `strategy`, and the wealth is linear in the shares.

    Args:
        claim: The claim under test.
    """
    bets = strategy(claim, edition=1)
    laws = [
        *alternatives(claim, edition=1),
        *sampled_noise(claim),
    ]  # the alternatives of the first bets, in the same order
    m, prices = len(laws), bets.log_prices(claim)
    won = [law.p @ bets.log_payoffs0[j] + law.q @ bets.log_payoffs1[j] for j, law in enumerate(laws)]
    growth = np.clip((np.array(won) - prices[:m]) / 2, 0.0, _MAX_GROWTH)
    shares = np.exp(bets.log_weights)
    by_growth = shares[:m] * growth
    if by_growth.sum() > 0:
        shares[:m] = (1 - _SHARE) * shares[:m] + _SHARE * by_growth * (shares[:m].sum() / by_growth.sum())
    return replace(bets, log_weights=np.log(shares / shares.sum()))
