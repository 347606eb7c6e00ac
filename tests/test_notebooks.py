"""What notebooks and prompts show of plans and replays."""

from __future__ import annotations

import dataclasses
import math

from dpaudit import GaussianDP
from dpaudit.engine.plan import Plan
from dpaudit.engine.replay_outcome import Replay

from .reports import sample

PLAN = Plan(
    claim=GaussianDP(1.0),
    truth=GaussianDP(2.0),
    power=0.9,
    confidence=0.99,
    mean_trials=58.8,
    trials=101.0,
    mean_trials_detect=51.2,
    trials_detect=90.0,
    threshold_trials=44.0,
    limit_trials=30.0,
    limit_mean=22.0,
)


def test_a_plan_is_shown_as_a_table_and_as_a_short_text() -> None:
    html = PLAN._repr_html_()
    assert html.count("<tr>") == 7
    assert '<th scope="row" style="text-align: left">dpaudit, mean</th><td>59</td>' in html
    assert (
        repr(PLAN) == "<Plan: gaussian(mu=1) claimed, gaussian(mu=2) true, confidence 0.99, mean 59 runs per dataset>"
    )
    nothing = dataclasses.replace(PLAN, truth=PLAN.claim, limit_mean=math.inf, mean_trials=math.inf)
    assert "there is nothing to find" in nothing._repr_html_()


def test_a_replay_is_shown_with_its_conclusion_first() -> None:
    result = dataclasses.replace(sample.violation(), name="<script>")
    assert result.witness is not None
    found = Replay(
        result=result,
        counts=result.witness.counts,
        learned_from=200,
        p_value=1e-9,
        seed=1,
        contradictions=(),
        warnings=("printed \u202e text",),
    )
    html = found._repr_html_()
    assert html.startswith("<div><p><strong>Confirmed: fresh runs refute the claim again")
    assert "<script>" not in html
    assert "\u202e" not in html
    assert "&lt;script&gt;" in html
