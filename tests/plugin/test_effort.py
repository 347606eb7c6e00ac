"""Planned runs are enough, and not many more than enough."""

from __future__ import annotations

import pytest

from dpaudit import GaussianDP, LaplaceDP, PureDP, plan
from dpaudit.claims import TradeoffFunction
from dpaudit.inference.alternatives import laplace_noise, scaled
from dpaudit.inference.planning import power_margin
from dpaudit.inference.strategy import strategy
from dpaudit.testing.effort import _runs, planned_runs, shows


@pytest.mark.parametrize("claim", [GaussianDP(1.0), PureDP(1.0)])
def test_the_closed_form_is_where_the_margin_changes_its_sign(claim: TradeoffFunction) -> None:
    tested = claim.symmetrized()
    n, law = _runs(claim, 1.2, 1e-4, 1, 0.9), scaled(tested, 1.2)
    laws = [law] if isinstance(claim, GaussianDP) else [law, (laplace_noise(1.2).p, laplace_noise(1.2).q)]
    margins = [
        min(power_margin(strategy(tested), tested, law, m, significance=1e-4, power=0.9) for law in laws)
        for m in (n - 1, n)
    ]
    assert margins[0] < 0 <= margins[1]


def test_they_agree_with_the_simulated_plan() -> None:
    """The closed form takes the best bet for the mixture, and a normal law for its gains: somewhat too many runs.

    The plan adds the most that learning costs, the planned runs what it costs on average.
    """
    simulated = plan(GaussianDP(1.0), GaussianDP(1.2), power=0.999, confidence=0.999)
    assert 0.8 < planned_runs(GaussianDP(1.0), 1.2, significance=1e-3, pairs=1) / simulated.trials < 1.6


def test_more_is_needed_for_less() -> None:
    claim, least = PureDP(1.0), planned_runs(PureDP(1.0), 1.2, significance=1e-3, pairs=1)
    assert planned_runs(claim, 1.1, significance=1e-3, pairs=1) > 3 * least
    assert planned_runs(claim, 1.2, significance=1e-6, pairs=1) > 1.3 * least
    assert planned_runs(claim, 1.2, significance=1e-3, pairs=3) > 3 * least
    assert (
        planned_runs(claim, LaplaceDP(1.2), significance=1e-3, pairs=1) <= 1.002 * least
    )  # the same law, from another grid
    assert shows(claim, 1.2, least, significance=1e-3, pairs=1)
    assert not shows(claim, 1.2, least // 3, significance=1e-3, pairs=1)


def test_what_keeps_the_claim_is_never_seen() -> None:
    assert planned_runs(GaussianDP(1.0), GaussianDP(1.0), significance=1e-3, pairs=1) > 10**11
