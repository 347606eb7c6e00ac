"""Planned numbers of trials, compared with published numbers and with audits."""

import functools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtr

from dpaudit import GaussianDP, Pair, TabulatedTradeoff, audit, batched, parse_claim, plan, plan_scores
from dpaudit.claims.comparison import PairCurve, pair_curves
from dpaudit.engine import plan as planning
from dpaudit.engine.plan import LEARNING, Plan, enough_trials
from dpaudit.engine.score_design import Coins, evidence_of
from dpaudit.inference.fixed.exact_binomial import p_value
from dpaudit.inference.fixed.regions import evidence_against, threshold_for_claim
from dpaudit.inference.grid import EDGES
from dpaudit.inference.power import least_detectable_fixed
from dpaudit.inference.sequential.alternatives import pair_laws, scaled
from dpaudit.inference.sequential.planned import Planned
from dpaudit.inference.sequential.strategy import strategy
from dpaudit.result.scores_evidence import Line, ScoresEvidence


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


CLAIM = GaussianDP(0.3)
SAMPLED = "subsampled(gaussian(mu={}), rate={}, relation='add_remove')"


def above(mu: float, rate: float, backward: bool, x: Any) -> tuple[Any, Any]:
    """Return P[score > x] on d0 and on d1; the score is the noise, or minus the noise if d0 has the record."""
    plain = ndtr(-x)
    mixed = (1 - rate) * ndtr(-x) + rate * ndtr((-mu if backward else mu) - x)
    return (mixed, plain) if backward else (plain, mixed)


@cache
def evidence(n: int, line: Line) -> ScoresEvidence:
    sizes = n // 2, n - n // 2
    return evidence_of(*sizes, line, Coins(0.5, 1.0, ""), runs=1, claim=CLAIM, significance=0.05)


@pytest.mark.parametrize(("line", "n"), [("runs", 50), ("inclusion", 300)])
def test_the_power_is_that_of_the_weaker_direction(line: Line, n: int) -> None:
    """Simulates 1,000 audits of each direction.  Fails by chance < 1 in 10**6."""
    mu, rate, times, powers = 4.0, 0.3, 1000, list[float]()
    planned, rng = evidence(n, line), np.random.default_rng(5)
    law, found = planned.law, planned._needed(CLAIM)
    for backward in (False, True):
        coins = rng.random((times, n)) < 0.5
        if line == "runs":
            coins = np.broadcast_to(np.arange(n) < n // 2, coins.shape)
        noisy = rng.normal(mu * ((rng.random((times, n)) < rate) & (coins != backward)))
        noisy = -noisy if backward else noisy
        ranked = np.take_along_axis(coins, np.argsort(-noisy, axis=1), axis=1)
        right = np.array([law.blocks.right(row) for row in ranked])
        refuted = law.counted(right) >= found.counted
        if found.statistic is not None:
            refuted |= found.statistic.log(right) >= found.log_t
        powers.append(float(refuted.mean()))
    stated = planned.chance_to_refute(CLAIM, parse_claim(SAMPLED.format(mu, rate)))
    assert 0.05 < stated < 0.95
    assert stated - 0.02 < min(powers) < stated + 0.2  # powers are rounded down


@pytest.mark.parametrize("backward", [False, True])
def test_laws_of_trials_are_those_of_a_pair(backward: bool) -> None:
    """Compares with the closed form of the likelihood ratio of Gaussian noise on a sample."""
    law = pair_laws(parse_claim(SAMPLED.format(2, 0.2)))[backward]
    p, q = (np.cumsum(side[::-1])[::-1][1:] for side in law)
    if backward:
        p, q = (1 - np.cumsum(side[::-1])[:-1] for side in law[::-1])
    places = np.arange(20, len(EDGES) - 20, 37)
    inside = np.maximum((np.expm1(EDGES[places]) + 0.2) / 0.2, 1e-300)  # the ratio without sampling
    exact0, exact1 = above(2.0, 0.2, False, np.log(inside) / 2.0 + 1.0)
    assert p[places] == pytest.approx(exact0, abs=2e-3)
    assert q[places] == pytest.approx(exact1, abs=2e-3)


def test_trials_are_those_of_the_weaker_direction() -> None:
    claim, truth = GaussianDP(1.0), parse_claim(SAMPLED.format(4, 0.6))
    both = [np.array(scaled(PairCurve(truth, backward), 1.0)) for backward in (False, True)]
    assert np.abs(both[0] - both[1][::-1, ::-1]).max() < 0.01  # the same pair with exchanged datasets
    alpha = np.linspace(0, 1, 400)
    suggested = TabulatedTradeoff(alpha=alpha, beta=truth.beta(alpha))
    planned = (Planned(violations=(one,), confidence=0.99) for one in (truth, suggested))
    needed, too_few = (enough_trials(strategy(claim, one), claim, *one.violations, confidence=0.99) for one in planned)
    assert needed > too_few


def test_subsamplings_inside_each_other_and_compositions_have_a_pair() -> None:
    nested = PairCurve(parse_claim("subsampled(subsampled(gaussian(mu=2), rate=0.5), rate=0.4)"), False)
    once = PairCurve(parse_claim("subsampled(gaussian(mu=2), rate=0.2)"), False)
    alpha = np.linspace(0, 1, 11)
    assert nested.beta(alpha) == pytest.approx(once.beta(alpha))
    assert PairCurve(once.truth, True).beta(once.beta(0.3)) == pytest.approx(0.3)
    hull = once.truth.beta(alpha)
    assert np.all(np.minimum(once.beta(alpha), PairCurve(once.truth, True).beta(alpha)) >= hull - 1e-12)


def test_the_curve_of_a_composition_is_that_of_a_pair() -> None:
    """Compares with the four outcomes of two sampled randomised responses."""
    p = np.array([expit(1.0), expit(-1.0)])
    q = 0.7 * p + 0.3 * p[::-1]
    both = np.stack([np.outer(p, p).ravel(), np.outer(q, q).ravel()])
    both = both[:, np.argsort(-both[1] / both[0])]
    alpha, beta_ = np.cumsum(both[0]), 1 - np.cumsum(both[1])
    forward, backward = pair_curves(parse_claim("repeated(subsampled(pure(epsilon=1), rate=0.3), n=2)"))
    assert forward.beta(alpha[:-1]) == pytest.approx(beta_[:-1], abs=1e-4)
    assert backward.beta(beta_[:-1]) == pytest.approx(alpha[:-1], abs=1e-4)


def test_a_truth_that_no_known_pair_attains_is_refused() -> None:
    truth = f"group({SAMPLED.format(2, 0.1)}, k=2)"
    for attempt in (
        lambda: plan_scores("gaussian(mu=0.1)", truth, independence="runs"),
        lambda: plan("gaussian(mu=0.1)", truth),
        lambda: audit(lambda d, rng: 0.0, "gaussian(mu=0.1)", Pair([0], [1]), detect=truth, seed=1),
    ):
        with pytest.raises(ValueError, match="no pair of datasets is known that attains group"):
            attempt()
