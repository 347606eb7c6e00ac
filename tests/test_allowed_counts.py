"""The allowed count of a report holds for the condition that the report shows.  No test fails by chance."""

from __future__ import annotations

import re

import pytest

from dpaudit.claims import GaussianDP, PureDP, TradeoffFunction, parse_claim
from dpaudit.claims.comparison import violates
from dpaudit.engine.arguments import planned_of
from dpaudit.testing.effort import DETECT, violations_of
from dpaudit.text.rounding import percent_at_most, rate_at_most

from .reports import sample
from .reports.audits import text_of
from .reports.test_verdict_words import NEAR, with_witness


@pytest.mark.parametrize("rate", [0.000123, 0.0123, 0.19991, 0.2, 0.55612, 0.99999, 1.0])
def test_the_rounded_rate_is_the_one_that_is_shown(rate: float) -> None:
    shown = percent_at_most(rate).removesuffix("\u00a0%")
    assert rate_at_most(rate) == pytest.approx(float(shown) / 100, rel=1e-12)
    assert rate_at_most(rate) >= rate


@pytest.mark.parametrize("alpha_upper", [0.06001, 0.06123, 0.0649, 0.06999])
def test_the_claim_allows_at_most_the_stated_rate_under_the_stated_condition(alpha_upper: float) -> None:
    """The plain second version computes the limit of the claim from the condition in the text."""
    ends = {"alpha_lower": 0.05, "alpha_upper": alpha_upper, "beta_lower": 0.1, "beta_upper": 0.2}
    limit = 1 - float(GaussianDP(1.0).beta(alpha_upper))
    result = with_witness(sample.violation(), **NEAR, counted="later", **ends, allowed_upper=limit)
    for said in (str(result), text_of(result)):
        found = re.search(
            r"allows at most ([\d.]+)\s%[^%]*?, (?:even )?if (?:d0's rate|the rate of d0) is (?:at most )?([\d.]+)\s%",
            said,
        )
        assert found is not None, said
        allowed, condition = (float(text) / 100 for text in found.groups())
        assert allowed >= 1 - float(result.claim.symmetrized().beta(condition)) - 1e-12


@pytest.mark.parametrize("claim", [GaussianDP(0.0), GaussianDP(1e-3), PureDP(0.0), PureDP(25.0), GaussianDP(12.0)])
def test_planned_violations_of_a_test_are_never_refused(claim: TradeoffFunction) -> None:
    planned_of(violations_of(claim, DETECT), claim, 0.999)


@pytest.mark.parametrize(
    ("claim", "more"),
    [
        ("gaussian(mu=1)", "gaussian(mu=1.0001)"),
        ("(1, 1e-10)", "(1, 9e-10)"),
        ("(1, 1e-8)", "(1, 1.1e-8)"),
        ("pure(1)", "pure(1.00001)"),
    ],
)
def test_a_small_violation_is_a_violation(claim: str, more: str) -> None:
    assert violates(parse_claim(more), parse_claim(claim))
    assert not violates(parse_claim(claim), parse_claim(more))
    assert not violates(parse_claim(claim), parse_claim(claim))
