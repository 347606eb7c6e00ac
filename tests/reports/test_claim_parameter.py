"""Reports state bounds on the claim's own parameter, and figures show them."""

from __future__ import annotations

import dataclasses
import re
from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from dpaudit import ApproxDP, GaussianDP, LaplaceDP, PureDP, audit, parse_claim
from dpaudit.claims import rounded
from dpaudit.result.evidence import fingerprint
from dpaudit_reports.claimed import Bound, certified_of_claimed, enlarged, headline
from dpaudit_reports.document import document
from dpaudit_reports.terminal import terminal

from . import sample
from .audits import PAIR, fixed, laplace, markdown, pure_violation, text_of


@pytest.mark.parametrize(
    ("claim", "symbol", "delta"),
    [
        (PureDP(1.0), "ε", 0.0),
        (LaplaceDP(1.0), "ε", 0.0),
        (ApproxDP(epsilon=1, delta=1e-5), "ε", 1e-5),
        (GaussianDP(1.0), "μ", None),
        pytest.param(parse_claim("zcdp(rho=0.1)"), "ε", 0.0, marks=pytest.mark.slow),
    ],
)
def test_the_headline_is_the_parameter_of_the_claim(claim: Any, symbol: str, delta: float | None) -> None:
    result = audit(
        laplace(0.4), claim, PAIR, attacks="logistic", trials=1000, seed=2, method="sequential", confirm="never"
    )
    assert result.violated
    bound = headline(result)
    if bound is None:  # refuted as a curve
        assert not isinstance(claim, PureDP | ApproxDP | GaussianDP)
        return
    assert bound.symbol == symbol
    assert delta is None or isinstance(claim, type(parse_claim("zcdp(rho=0.1)"))) or bound.delta == delta
    assert bound.exceeds
    certified = float(bound.certified_text().split("\u00a0")[1])
    assert certified >= float(bound.claimed_text())


def test_epsilon_never_stands_without_its_delta_and_claims_are_rounded() -> None:
    found = text_of(pure_violation())
    assert re.search(r"ε ≥ 1\.0\d+ proven; the audit stopped at once.*?\(claimed: ε ≤ 1\)", found)
    assert "1.0000000000000022" not in found.split("Provenance")[0]
    assert re.search(r"ε ≥ 1\.0\d+ / 1 at δ = 0", text_of(pure_violation(), fixed(1.0)))


def test_a_bound_just_above_the_claim_is_shown_above_it_and_rounded_down() -> None:
    bound = headline(dataclasses.replace(sample.violation(), mu_lower=1.0000571))
    assert bound is not None
    assert bound.certified_text() == "≥\u00a01.000057"
    assert bound.claimed_text() == "1"


def test_a_refuted_claim_is_exceeded_even_if_the_search_for_the_bound_ends_below_it() -> None:
    bound = headline(dataclasses.replace(sample.violation(), mu_lower=0.99999))
    assert bound is not None
    assert bound.certified_text() == ">\u00a01"


def test_a_claim_that_is_false_as_a_curve_only_has_no_parameter_in_the_headline() -> None:
    result = dataclasses.replace(sample.violation(), claim=parse_claim("zcdp(rho=20)"), mu_lower=0.5)
    assert headline(result) is None
    assert certified_of_claimed(result) == "the curve, no single parameter"
    assert "although no single ε or μ exceeds what is claimed" in markdown(result)


def test_the_size_that_would_have_been_seen_is_rounded_up() -> None:
    assert enlarged("gaussian(mu=1.27341)") == "gaussian(mu=1.274)"
    assert enlarged("approximate(epsilon=1.15, delta=1e-05)") == "approximate(epsilon=1.15, delta=1e-05)"


@pytest.mark.parametrize("claim", [PureDP(1.0), LaplaceDP(1.0), PureDP(0.01)])
def test_the_profile_of_a_pure_claim_falls_to_zero_at_its_epsilon(claim: Any) -> None:
    ax = claim.plot("profile")
    epsilon, delta = ax.lines[0].get_data()
    own = claim.epsilon(0.0)
    below = np.asarray(delta) <= 1e-12
    assert not np.any(np.isnan(delta))
    assert below.any()
    assert np.asarray(epsilon)[below].min() == pytest.approx(own, rel=1e-9)
    assert ax.lines[0].get_label() == claim.label


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_whole_fingerprints(width: int) -> None:
    target = StringIO()
    Console(file=target, width=width).print(*terminal(document([sample.violation()])), sep="\n")
    assert fingerprint(sample.violation().evidence) in "".join(target.getvalue().split())


@pytest.mark.parametrize(
    ("exact", "shown"),
    [
        ("gaussian(mu=1.00004)", "gaussian(mu=1.00004)"),
        ("gaussian(mu=1.0000000000000002)", "gaussian(mu=1)"),  # a rounding error of an accountant
        ("gaussian(mu=1.2340001)", "gaussian(mu≈1.235)"),
        ("approximate(epsilon=0.12345678, delta=1.2345678e-06)", "approximate(epsilon≈0.1235, delta≈1.235e-6)"),
        ("subsampled(gaussian(mu=1), rate=0.01234444)", "subsampled(gaussian(mu=1), rate≈0.01234)"),
    ],
)
def test_a_short_claim_is_exact_or_says_that_it_is_not(exact: str, shown: str) -> None:
    """A claim that is rounded to a stronger one would be called kept although it was not tested."""
    assert rounded(exact) == shown
    assert rounded(shown) == shown


def test_the_claimed_value_beside_a_bound_is_exact_or_rounded_up() -> None:
    assert Bound("μ", None, 0.5, 1.00004).claimed_text() == "1.00004"
    assert Bound("μ", None, 0.5, 1.23400001).claimed_text() == "1.235"
    assert Bound("ε", 0.0, 0.5, 1.2345678, refuted=True).certified_text() == ">\u00a01.23456"
    assert Bound("ε", 0.0, 0.5, 1.2345678, refuted=True).claimed_text() == "1.23457"
