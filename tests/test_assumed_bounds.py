"""Bounds inside a one-parameter family state their assumption."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import AuditResult, GaussianDP, LaplaceDP, Pair, PureDP, TradeoffFunction, audit, audit_scores, batched
from dpaudit.inference.grid import BINS
from dpaudit.result.evidence import AssumedBound, FixedEvidence
from dpaudit.result.words import CANARIES_ASSUMED

from .scored import SURE

DELTA = 1e-5


@pytest.fixture(scope="module")
def result() -> AuditResult:
    rng = np.random.default_rng(0)
    return audit_scores(rng.normal(size=800), rng.normal(1, 1, 800), independence="canaries", confidence=0.95, seed=1)


def test_the_bound_is_that_of_the_largest_member_refuted(result: AuditResult) -> None:
    bound = result.epsilon_lower(DELTA, assuming="gaussian")
    assert bound == pytest.approx(GaussianDP(result.mu_lower).epsilon(DELTA), rel=5e-3)
    assert bound > result.epsilon_lower(DELTA)
    assert isinstance(bound, AssumedBound)
    assert result.evidence.p_value(GaussianDP(bound.parameter)) <= 1 - result.confidence
    assert result.evidence.p_value(GaussianDP(1.1 * bound.parameter)) > 1 - result.confidence


def test_a_family_is_named_given_or_written_with_a_question_mark(result: AuditResult) -> None:
    named = result.epsilon_lower(DELTA, "gaussian")
    assert result.epsilon_lower(DELTA, GaussianDP) == named
    assert result.epsilon_lower(DELTA, "gaussian(mu=?)") == pytest.approx(named, rel=2e-3)
    composed = result.epsilon_lower(DELTA, "repeated(gaussian(mu=?), n=4)")
    assert composed == pytest.approx(named, rel=5e-3)


def test_the_assumption_is_shown_with_the_number(result: AuditResult) -> None:
    bound = result.epsilon_lower(0.0, assuming="laplace(epsilon=?)")
    for text in (str(bound), repr(bound), f"{bound}", str([bound])):
        assert "assuming that the mechanism's curve is laplace(epsilon=?)" in text
    for same in (copy.copy(bound), pickle.loads(pickle.dumps(bound))):
        assert repr(same) == repr(bound)


@pytest.mark.parametrize("assuming", [None, "gaussian", GaussianDP])
def test_a_bound_from_canaries_names_their_independence(result: AuditResult, assuming: Any) -> None:
    bound = result.epsilon_lower(DELTA, assuming)
    for text in (str(bound), repr(bound), f"{bound:.2f}"):
        assert CANARIES_ASSUMED in text
        assert ("; and given which canaries" in text) == (assuming is not None)
    void = dataclasses.replace(result, bounds_valid=False)
    assert assuming is None or CANARIES_ASSUMED in str(void.epsilon_lower(DELTA, assuming))


def test_a_bound_without_assumptions_is_a_plain_number() -> None:
    rng = np.random.default_rng(0)
    found = audit_scores(rng.normal(size=100), rng.normal(1, 1, 100), independence=None, confidence=SURE, seed=1)
    assert type(found.epsilon_lower(DELTA)) is float
    assert "independent" not in str(found.epsilon_lower(DELTA, "gaussian"))
    found = audit_scores(rng.normal(size=100), rng.normal(1, 1, 100), independence="runs", confidence=SURE, seed=1)
    assert "assuming that runs are independent of each other" in str(found.epsilon_lower(DELTA))


@pytest.mark.parametrize(
    ("specification", "digits"),
    [("", "1.23456"), (".3f", "1.234"), (".0f", "1"), ("8.2f", "    1.23"), (".2e", "1.23e+0"), (".1%", "123.4%")],
)
def test_a_formatted_bound_is_rounded_down_and_keeps_its_assumption(specification: str, digits: str) -> None:
    bound = AssumedBound(1.2345678, "the noise is Gaussian", 1.0)
    assert format(bound, specification) == f"{digits} (assuming that the noise is Gaussian)"


def test_a_bound_without_a_number_in_its_format_is_refused() -> None:
    with pytest.raises(ValueError, match="format"):
        format(AssumedBound(1.0, "the noise is Gaussian", 1.0), "d")


def test_it_holds_for_runs_that_may_stop_and_for_a_fixed_number() -> None:
    """Fails by chance < 1 in 10**6: the bound exceeds the truth at confidence 1 - 1e-6."""
    for method in ("sequential", "fixed"):
        options: dict[str, Any] = {"method": method, "trials": 500, "attacks": "median_clipped", "confirm": "never"}
        noise = batched(lambda d, n, rng: d[0] + rng.normal(size=n))
        found = audit(noise, GaussianDP(0.3), Pair([0], [1]), confidence=1 - 1e-6, seed=1, **options)
        bound = found.epsilon_lower(DELTA, assuming="gaussian")
        assert found.epsilon_lower(DELTA) <= bound <= GaussianDP(1.0).epsilon(DELTA)
        assert bound > 0


def test_the_bound_of_a_fixed_audit_exceeds_the_truth_no_more_often_than_promised() -> None:
    """Exact: sums the probability of all counts of 8 runs a side whose bound exceeds the true epsilon.

    The exact p-value falls where the claim changes from epsilon 0.52773 to 0.52774.  The largest refuted epsilon, found
    by bisection, exceeds 0.525 with probability 0.0442 at significance 0.0415.
    """
    n, epsilon, significance = 8, 0.525, 0.0415

    def bound(x: int, z: int) -> float:
        counts = np.zeros((2, BINS), dtype=np.int64)
        counts[:, BINS - 1], counts[:, 0] = (x, n - z), (n - x, z)
        evidence = FixedEvidence(pair=0, threshold=BINS // 2, pilot=counts, counts=counts)
        return evidence.parameter_lower(PureDP, significance=significance, precision=1e-3)

    above = {(x, z) for x in range(4) for z in range(x, 5 - x) if bound(x, z) > epsilon}
    assert (0, 3) in above or (0, 2) in above  # the bound is not always 0
    above |= {(z, x) for x, z in above}
    for alpha in np.linspace(0.02, 0.98, 97):
        beta = float(PureDP(epsilon).beta(alpha))
        chance = sum(binom.pmf(x, n, alpha) * binom.pmf(z, n, beta) for x, z in above)
        assert chance <= significance


def test_nothing_follows_from_what_is_not_valid(result: AuditResult) -> None:
    void = dataclasses.replace(result, bounds_valid=False)
    assert void.epsilon_lower(DELTA, assuming="gaussian") == 0


@pytest.mark.parametrize(
    ("assuming", "words"),
    [("cauchy", "one [?]"), ("gaussian(mu=1)", "which has 0"), ("gaussian(nu=?)", "nu"), (5, "text or a function")],
)
def test_what_is_no_family(result: AuditResult, assuming: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        result.epsilon_lower(DELTA, assuming=assuming)


def test_a_family_must_be_nested(result: AuditResult) -> None:
    def backwards(t: float) -> TradeoffFunction:
        return LaplaceDP(1 / t)

    with pytest.raises(ValueError, match="less as its parameter grows"):
        result.epsilon_lower(DELTA, assuming=backwards)


def test_delta_is_a_probability(result: AuditResult) -> None:
    with pytest.raises(ValueError, match="delta must lie"):
        result.epsilon_lower(2.0, assuming="gaussian")
