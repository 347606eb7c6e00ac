"""Planned numbers of trials, compared with published numbers and with audits."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, Pair, audit, batched, parse_claim, plan
from dpaudit.engine import plan as planning
from dpaudit.engine.plan import LEARNING, Plan
from dpaudit.inference.fixed.exact_binomial import p_value
from dpaudit.inference.fixed.regions import evidence_against, threshold_for_claim
from dpaudit.inference.power import least_detectable_fixed, least_parameter
from dpaudit.inference.sequential.alternatives import scaled


@pytest.mark.parametrize(
    ("claim", "truth", "power", "of_any", "of_one"),
    [  # trials of the best test and of the best single threshold, computed with other software
        pytest.param("gaussian(mu=1)", "gaussian(mu=1.05)", 0.9, 7911, 11879, marks=pytest.mark.slow),
        ("gaussian(mu=1)", "gaussian(mu=1.2)", 0.95, 643, 961),
        ("pure(epsilon=1)", "pure(epsilon=1.1)", 0.8, 1623, 1623),
    ],
)
def test_limits_are_those_of_an_independent_computation(
    claim: str, truth: str, power: float, of_any: float, of_one: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers agree within 2 %, and within 6 % for thresholds, which lie on bin edges; the reference rounds up.

    These limits do not use the simulated audits, which are left out because they take most of the time.
    """
    monkeypatch.setattr(planning, "stopping_times", lambda *_, **__: np.ones(10_000))
    found = plan(claim, truth, power=power, confidence=0.95)
    assert found.limit_trials == pytest.approx(of_any, rel=0.02)
    assert found.threshold_trials == pytest.approx(of_one, rel=0.06)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate 60 audits instead of 300, of which 6 are slower than the 90 % quantile."""
    monkeypatch.setattr(planning, "_RUNS", 60)


@pytest.mark.usefixtures("few")
def test_audits_that_never_end_are_stated_as_such() -> None:
    """A quantile between two infinite numbers of trials was nan, and the plan an error.  The test has a fixed seed."""
    found = plan("pure(epsilon=1)", "pure(epsilon=1.003)")
    assert (found.mean_trials, found.trials) == (math.inf, math.inf)
    assert found.trials_detect < 1e8
    assert "over 1e+12" in str(found)


def test_the_smallest_detected_parameter_is_found_by_few_questions() -> None:
    """Three significant digits are within 1 % of each parameter.  The test uses no randomness."""
    asked = 0
    for least in np.geomspace(0.01, 45.0, 150):

        def seen(parameter: float, least: float = float(least)) -> bool:
            nonlocal asked
            asked += 1
            return parameter >= least

        found = least_parameter(seen)
        assert found is not None
        assert least * (1 - 1e-9) <= found <= 1.01 * least
    assert asked <= 15 * 150
    assert least_parameter(lambda parameter: False) is None
    assert least_parameter(lambda parameter: parameter > 50) is None  # the largest parameter tried is 49.9


@functools.cache
def planned(claim: str, truth: str) -> Plan:
    return plan(claim, truth, confidence=0.95)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("claim", "truth", "least"),
    [
        pytest.param("gaussian(mu=0.5)", "gaussian(mu=1)", 54, marks=pytest.mark.slow),
        pytest.param("gaussian(mu=0.8)", "gaussian(mu=1)", 339, marks=pytest.mark.slow),
        ("gaussian(mu=1)", "gaussian(mu=1.2)", 356),
        pytest.param("pure(epsilon=1)", "laplace(epsilon=1.2)", 605, marks=pytest.mark.slow),
        ("pure(epsilon=1)", "pure(epsilon=1.1)", 1573),
    ],
)
def test_no_sequential_test_stops_earlier(claim: str, truth: str, least: float) -> None:
    found = planned(claim, truth)
    assert found.limit_mean == pytest.approx(least, rel=0.02)
    assert found.limit_mean < found.mean_trials < found.trials
    assert 1.2 < found.ratio < 3


def test_a_truth_that_keeps_the_claim_is_never_refuted() -> None:
    for truth in ("gaussian(mu=1)", "gaussian(mu=0.9)", "pure(epsilon=0.5)"):
        found = plan("gaussian(mu=1)", truth, confidence=0.95)
        assert math.isinf(found.mean_trials)
        assert math.isinf(found.limit_trials)
        assert "nothing to find" in str(found)


@pytest.mark.slow
def test_rare_events_are_planned_for() -> None:
    """The sigma of the analytic Gaussian mechanism at (1, 1e-5) is 20 % too small.  The violation lies in events of
    probability 0.002, for which a single threshold needs 1.2 million trials."""
    found = plan("approximate(epsilon=1, delta=1e-5)", "gaussian(mu=0.335)", confidence=0.95)
    assert 300_000 < found.limit_mean < 400_000
    assert found.mean_trials < found.threshold_trials < 1.5e6


@pytest.mark.usefixtures("few")
def test_a_plan_can_be_read_and_is_repeated_exactly() -> None:
    found = planned("gaussian(mu=1)", "gaussian(mu=1.2)")
    assert isinstance(found, Plan)
    assert found == plan(GaussianDP(1.0), GaussianDP(1.2), confidence=0.95)
    assert "best sequential test, mean" in str(found)
    assert LEARNING >= 1
    assert "outputs of at most 4 numbers" in str(found)


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(ValueError, match="power must lie between"):
        plan("gaussian(mu=1)", "gaussian(mu=2)", power=0.01, confidence=0.95)
    with pytest.raises(ValueError, match="confidence must lie strictly between 0 and 1, got 1"):
        plan("gaussian(mu=1)", "gaussian(mu=2)", confidence=1)
    with pytest.raises(ValueError, match="mu must be"):
        plan("gaussian(mu=-1)", "gaussian(mu=2)", confidence=0.95)


def test_no_audit_certifies_more_than_any_test_could() -> None:
    """Every output reveals its dataset.  The reference is an upper limit on the epsilon that any valid test refutes."""
    apart = batched(lambda dataset, n, rng: np.full(n, dataset[0]) + rng.random(n) / 2)
    for method in ("sequential", "fixed"):
        options: dict[str, Any] = {"attacks": "median_clipped", "method": method, "trials": 60, "confidence": 0.95}
        result = audit(apart, "pure(epsilon=30)", Pair([0], [1]), seed=0, **options)
        most = result.detectable.largest_epsilon
        assert 0.5 * most < result.epsilon_lower(0.0) <= most
        n = result.evidence.trials
        assert (1 + math.exp(-most)) ** (-2 * n) == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize("method", ["sequential", pytest.param("fixed", marks=pytest.mark.slow)])
def test_with_several_pairs_no_report_contradicts_its_bounds(method: str) -> None:
    """Every output of every pair reveals its dataset, and all pairs together certify an epsilon."""
    apart = batched(lambda dataset, n, rng: np.full(n, dataset[0] % 2) + rng.random(n) / 2)
    pairs = [Pair([2 * i], [2 * i + 1]) for i in range(3)]
    options: dict[str, Any] = {"attacks": "median_clipped", "method": method, "trials": 300, "seed": 0}
    result = audit(apart, "pure(epsilon=1)", pairs, confidence=0.95, confirm="never", **options)
    assert result.epsilon_lower(0.0) > 1
    assert result.epsilon_lower(0.0) <= result.detectable.largest_epsilon


@pytest.mark.parametrize(
    ("claim", "pilot"),
    [
        ("approximate(epsilon=1, delta=0.05)", 300),
        pytest.param("approximate(epsilon=0.5, delta=0.1)", 1_000, marks=pytest.mark.slow),
        pytest.param("pure(epsilon=3)", 100, marks=pytest.mark.slow),
    ],
)
def test_what_a_fixed_audit_would_have_seen_is_seen_whatever_its_pilot_chose(claim: str, pilot: int) -> None:
    """Of 40 simulated audits with a known score, 36 must refute the claim; the audits include pilot and exact test."""
    tested, n, rng = parse_claim(claim).symmetrized(), 9 * pilot, np.random.default_rng(11)
    least = least_detectable_fixed(tested, pilot=pilot, trials=n, significance=0.05, power=0.9)
    assert least is not None
    p, q = (side / side.sum() for side in scaled(least.symmetrized(), 1.0))
    outcomes = []
    for _ in range(40):
        counts = rng.multinomial(pilot, p), rng.multinomial(pilot, q)
        k = threshold_for_claim(*counts, tested, trials=n, significance=0.05)
        x, z = (int(rng.binomial(n, min(1.0, rate))) for rate in (float(p[k + 1 :].sum()), float(q[: k + 1].sum())))
        outcomes.append((float(evidence_against(tested, [x], n, [z], n)[0]), x, z))
    _, x, z = sorted(outcomes)[4]  # the weakest evidence among the 36 outcomes
    assert p_value(tested, x, n, n - z, n) <= 0.05


@pytest.mark.parametrize(
    ("claim", "truth", "needed"),
    [  # the trials within which 54 of 60 audits with `attacks="auto"` refuted the claim at 99 %; the
        # noise of the second is on four numbers; on one: 708
        ("laplace(epsilon=1)", "laplace(epsilon=2)", 150),
        pytest.param("gaussian(mu=1)", "gaussian(mu=1.3)", 790, marks=pytest.mark.slow),
        pytest.param("pure(epsilon=1)", "pure(epsilon=1.3)", 729, marks=pytest.mark.slow),
        pytest.param(
            "approximate(epsilon=1, delta=0.05)", "approximate(epsilon=1.5, delta=0.05)", 328, marks=pytest.mark.slow
        ),
    ],
)
def test_planned_trials_are_enough_although_the_score_is_learned(claim: str, truth: str, needed: int) -> None:
    """The test uses no randomness: it compares stored measurements with the plan."""
    assert needed < plan(claim, truth).trials < 1.6 * needed
