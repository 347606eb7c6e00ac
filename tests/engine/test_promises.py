"""The guarantees of whole audits."""

import functools
import math
import re
import time
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chi2

from dpaudit import AuditResult, GaussianDP, OnlineAudit, Pair, PureDP, Verdict, audit, batched, plan
from dpaudit.catalogue import Gaussian, Geometric, Laplace
from dpaudit.claims import TradeoffFunction
from dpaudit.engine import collector as collecting
from dpaudit.inference.fixed.exact_binomial import mu_lower, p_value
from dpaudit.result.evidence import FixedEvidence

PAIR = Pair([0], [1], relation="replace_one")
planned_audit = functools.cache(plan)


class Response:
    """Randomised response, exactly epsilon-DP."""

    def __init__(self, epsilon: float) -> None:
        self.lie = 1 / (1 + math.exp(epsilon))

    def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        return (rng.random(n) < (1 - self.lie if dataset == [1] else self.lie)).astype(int)


class Remembers:
    """An attack that recognises the outputs it has learned from, and knows nothing about others."""

    name = "remembers"
    sees = "features"

    def __init__(self, calibrated: bool) -> None:
        self.calibrated = calibrated

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        known0, known1 = set(outputs0[:, 0].tolist()), set(outputs1[:, 0].tolist())
        return lambda outputs: np.array([5.0 * (x in known1) - 5.0 * (x in known0) for x in outputs[:, 0].tolist()])


def same(first: AuditResult, second: AuditResult) -> bool:
    """Whether two results are equal, apart from time and environment."""
    left, right = first.to_dict(), second.to_dict()
    for values in (left, right):
        del values["elapsed_s"], values["environment"]
    return left == right


@pytest.mark.slow
def test_a_true_gaussian_claim_is_rarely_refuted() -> None:
    """Make 200 audits of a true claim at its boundary.

    About 1 % of them are refuted; then the test fails by chance < 1 in 10**9.  With a rate of 5 %, which the guarantee
    allows, it would fail 1 time in 200.
    """
    refuted = sum(
        audit(Gaussian(1.0), GaussianDP(1.0), PAIR, trials=5000, seed=seed, confidence=0.95, confirm="never").violated
        for seed in range(200)
    )
    assert refuted <= 18


@pytest.mark.slow
def test_a_false_gaussian_claim_is_always_refuted_and_soon_in_200_audits() -> None:
    """The mean is about 600 with standard error 26, so 750 is 5 standard errors away."""
    results = [
        audit(Gaussian(1 / 1.2), GaussianDP(1.0), PAIR, trials=20_000, seed=seed, confidence=0.95, confirm="never")
        for seed in range(200)
    ]
    assert all(result.violated for result in results)
    assert np.mean([result.trials_used for result in results]) <= 750


def test_a_false_gaussian_claim_is_always_refuted_and_soon() -> None:
    """The mean of 3 audits is about 18 with standard error 8, so this fails by chance < 1 in 10**6."""
    results = [
        audit(Gaussian(0.4), GaussianDP(1.0), PAIR, trials=20_000, seed=seed, confidence=0.95, confirm="never")
        for seed in range(3)
    ]
    assert all(result.violated for result in results)
    assert np.mean([result.trials_used for result in results]) <= 60


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_an_output_that_is_counted_was_never_learned_from_before(method: str, calibrated: bool) -> None:
    """No output occurs twice, so the attack recognises no counted output: all scores are equal, and no bet is won.

    If a block were learned before it is counted, the attack would recognise its outputs.  Nothing is left to chance.
    """
    result: Any = audit(
        Gaussian(1.0), GaussianDP(1.0), PAIR, trials=400, attacks=Remembers(calibrated), method=method, seed=1
    )
    assert result.verdict is Verdict.NO_VIOLATION, result.warnings
    assert result.p_value > 1 - 1e-12  # older versions of numpy round the wealth to 1 + 2e-16
    counts = np.asarray(result.evidence.counts).reshape(2, -1)
    assert np.count_nonzero(counts.sum(axis=0)) == 1


@pytest.mark.parametrize(
    ("mechanism", "claim", "attacks", "trials"),
    [
        pytest.param(Response(1.0), PureDP(1.0), "plug_in_ratio", 50, id="response"),
        pytest.param(Response(1.0), PureDP(1.0), "auto", 250, id="response-auto", marks=pytest.mark.slow),
        pytest.param(Geometric(1.0), PureDP(1.0), "auto", 250, id="geometric", marks=pytest.mark.slow),
        pytest.param(Laplace(1.0), PureDP(1.0), "auto", 250, id="laplace", marks=pytest.mark.slow),
        pytest.param(Gaussian(2.0), GaussianDP(0.5), "auto", 250, id="gaussian", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_true_claims_are_rarely_refuted(
    mechanism: Any, claim: TradeoffFunction, attacks: Any, trials: int, method: str
) -> None:
    """Combine the p-values of three audits at 99 % by Fisher's method.  Fails by chance < 1 in 10**6.

    benchmarks/calibration.py makes many more audits of this kind.  `test_a_true_gaussian_claim_is_rarely_refuted`
    calibrates the sequential audit of Gaussian noise.
    """
    runs = 3
    results = [
        audit(mechanism, claim, PAIR, trials=trials, method=method, seed=seed, confidence=0.99, attacks=attacks)
        for seed in range(runs)
    ]
    most = binom.ppf(1 - 1e-6, runs, 0.01)  # exceeded with probability 1.5e-7
    assert sum(result.violated for result in results) <= most
    assert sum(result.mu_lower > claim.mu() for result in results) <= most
    assert sum(result.epsilon_lower(1e-3) > claim.epsilon(1e-3) for result in results) <= most
    assert -2 * sum(math.log(result.p_value) for result in results) <= chi2.isf(1e-7, 2 * runs)


def test_a_fixed_number_of_trials_is_tested_once_and_exactly() -> None:
    """The power at mu = 2 with 1000 trials is above 1 - 10**-9."""
    given: dict[str, Any] = {"trials": 1000, "method": "fixed", "seed": 4, "confidence": 0.95, "attacks": "logistic"}
    result = audit(Gaussian(0.5), GaussianDP(1.0), PAIR, **given)
    assert result.verdict is Verdict.VIOLATION
    assert result.method == "fixed"
    assert result.trials_used == 1000
    assert result.evidence.trials == 900  # a tenth chose the region
    assert isinstance(result.evidence, FixedEvidence)
    x, n0, y, n1 = result.evidence.outcome
    assert n0 == n1 == 900
    assert result.p_value == p_value(GaussianDP(1.0), x, 900, y, 900)
    alone = audit(Gaussian(0.5), GaussianDP(1.0), PAIR, confirm="never", **given)
    assert alone.p_value == result.p_value
    assert alone.mu_lower == pytest.approx(mu_lower(x, 900, y, 900, significance=0.05), rel=1e-9)  # 0.05 is rounded
    assert result.mu_lower > 1.0
    assert result.epsilon_lower(1e-5) > 1.0
    assert np.all(result.curve.beta_upper <= 1 - result.curve.alpha + 1e-12)
    again = AuditResult.from_dict(result.to_dict())
    assert again.to_dict() == result.to_dict()
    assert again.epsilon_lower(1e-5) == result.epsilon_lower(1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "least"), [(1000, 0.78), (10_000, 0.93)])
def test_bounds_of_the_fixed_test_are_near_the_truth(trials: int, least: float) -> None:
    """Compare the median of 9 bounds with mu = 1.

    Over many audits, the median is .88 at 1e3 and .965 at 1e4 trials, pilot included.  The median of nine is below 0.8
    or 0.93, respectively, with probability < 10**-6.
    """
    bounds = [
        audit(Gaussian(1.0), GaussianDP(1.0), PAIR, trials=trials, method="fixed", seed=seed, confidence=0.95).mu_lower
        for seed in range(9)
    ]
    assert least < np.median(bounds) < 1.0


@pytest.mark.parametrize(
    "claim",
    ["pure(epsilon=1)", *(pytest.param(f"{c}", marks=pytest.mark.slow) for c in ("laplace(epsilon=1)", "pure(3)"))],
)
def test_bounds_of_the_fixed_test_are_near_the_truth_where_the_loss_is_bounded(claim: str) -> None:
    """Half of the outputs of Laplace noise have the largest loss, and the frozen score must find their region.

    A region chosen by earlier scores may miss it and certify nothing.  Five standard errors are 0.18.
    """
    result = audit(Laplace(1.0), claim, PAIR, trials=5_000, method="fixed", seed=0, confidence=0.95)
    assert 0.8 < result.epsilon_lower() <= 1.08
    assert 0.85 < result.mu_lower <= 1.15  # 2 ndtri(1 - e^-0.5 / 2) = 1.03


def test_a_fixed_audit_freezes_no_pair_without_a_score() -> None:
    """The attack fails on the second pair, whose bets therefore neither win nor lose.

    Bets on the first pair lose, because its claim has room to spare.  The audit still tests the first pair.
    """

    class Fails:
        name = "fails"
        calibrated = True

        def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
            if np.mean(outputs0) > 500:
                raise RuntimeError("cannot")
            return lambda outputs: np.asarray(outputs) - 0.5

    pairs = [Pair([0.0], [1.0]), Pair([1000.0], [1001.0])]
    result = audit(Gaussian(1.0), GaussianDP(2.0), pairs, attacks=Fails(), trials=400, method="fixed", seed=0)
    assert result.pairs[0].log_e < -0.01 < result.pairs[1].log_e
    assert result.trials_used == 400
    assert isinstance(result.evidence, FixedEvidence)
    assert (result.evidence.pair, result.evidence.trials) == (0, 360)


def test_one_bad_pair_among_good_ones_is_found() -> None:
    """Fails by chance < 1 in 10**6: the violated pair alone needs about thirty trials."""
    pairs = [Pair([0], [0]), Pair([0], [0.5]), Pair([0], [3.0], label="far")]
    given: dict[str, Any] = {"attacks": "logistic", "confidence": 0.95, "confirm": "never"}
    result = audit(Gaussian(1.0), GaussianDP(1.0), pairs, trials=5000, seed=1, **given)
    assert result.violated
    assert result.witness.pair == "far"
    assert result.trials_used == sum(row.trials for row in result.pairs)


def test_a_leak_in_many_dimensions_is_found() -> None:
    """Only a combination of columns shows the leak.  Fails by chance < 1 in 10**6."""

    @batched
    def shifted(dataset: list[int], n: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        return rng.normal(dataset[0] * 0.75, 1.0, (n, 16))  # mu = 3 along the diagonal

    result = audit(shifted, GaussianDP(1.0), PAIR, trials=5000, seed=0, confidence=0.95, confirm="never")
    assert result.violated


def test_the_same_seed_gives_the_same_result_whatever_the_jobs() -> None:
    def slow(dataset: list[int], rng: np.random.Generator) -> float:
        time.sleep(0.006)  # slow enough for worker processes to be used, even for blocks of two trials
        return float(sum(dataset) + rng.normal())

    # The number of fresh runs depends on how long runs take.
    given: dict[str, Any] = {"confidence": 0.95, "confirm": "never"}
    for mechanism, more in ((slow, {"trials": 24, "attacks": "logistic"}), (Laplace(0.9), {"trials": 50})):
        alone, parallel, other = (
            audit(mechanism, "pure(epsilon=1)", PAIR, seed=seed, jobs=jobs, **given, **more)
            for seed, jobs in ((5, 1), (5, 2), (6, 1))
        )
        assert same(alone, parallel)
        assert not same(alone, other)


def test_the_result_holds_together(tmp_path: Any) -> None:
    result = audit(Gaussian(0.5), GaussianDP(1.0), PAIR, trials=4000, seed=1, name="sum", confidence=0.95)
    assert result.verdict is Verdict.VIOLATION
    assert result.stopped_by == "evidence"
    assert 1.0 < result.mu_lower <= 2.0  # from the fresh runs
    assert result.p_value <= 0.05
    assert result.e_value >= 20
    assert result.trials_used == result.history.trials[-1] <= 2000
    assert np.all(np.diff(result.history.trials) > 0)
    assert result.evidence.trials == result.trials_used - 10
    witness = result.witness
    assert witness.counted == "frozen"
    assert witness.counts == result.confirmation.counts
    assert witness.counts.n0 == result.confirmation.runs == 1000
    assert witness.beta < witness.claimed_beta
    assert "output above" in witness.region
    assert np.all(np.diff(result.curve.alpha) <= 0)
    assert np.all(result.curve.beta_upper >= 0)
    assert "VIOLATION of gaussian(mu=1)" in str(result)
    result.to_json(tmp_path / "r.json")
    back = AuditResult.from_json(tmp_path / "r.json")
    assert back.to_dict() == result.to_dict()
    assert back.epsilon_lower(1e-5) == result.epsilon_lower(1e-5)


def test_a_claim_kept_with_room_to_spare_is_not_refuted_and_says_what_it_would_have_seen() -> None:
    given: dict[str, Any] = {"attacks": "median_clipped", "confidence": 0.95}
    result = audit(Gaussian(2.0), GaussianDP(1.0), PAIR, trials=3000, seed=0, **given)
    assert result.verdict is Verdict.NO_VIOLATION
    assert result.stopped_by == "trials"
    assert result.detectable.claim.startswith("gaussian(mu=1.")
    assert "private" not in str(result)
    assert "no violation of gaussian(mu=1) found" in str(result)
    assert 0.3 < result.mu_lower <= 0.5  # fails by chance < 1 in 10**6


def test_an_audit_that_could_not_see_the_named_violation_is_inconclusive() -> None:
    given: dict[str, Any] = {"trials": 100, "seed": 0, "confidence": 0.95, "attacks": "median_clipped"}
    weak = audit(Gaussian(1.0), GaussianDP(1.0), PAIR, detect=GaussianDP(1.1), **given)
    assert weak.verdict is Verdict.INCONCLUSIVE
    assert any("too few to see gaussian(mu=1.1)" in warning for warning in weak.warnings)
    strong = audit(Gaussian(1.0), GaussianDP(1.0), PAIR, detect="gaussian(mu=4)", **given)
    assert strong.verdict is Verdict.NO_VIOLATION


@pytest.mark.parametrize("method", ["sequential", pytest.param("fixed", marks=pytest.mark.slow)])
def test_the_runs_that_would_do_are_enough_and_agree_with_the_plan(method: Any) -> None:
    """Fails by chance < 1 in 10**6: only if the true claim is refuted."""
    given: dict[str, Any] = {"confidence": 1 - 1e-7, "detect": GaussianDP(2.0), "seed": 0, "attacks": "median_clipped"}
    given["method"] = method
    few = audit(Gaussian(1.0), GaussianDP(1.0), PAIR, trials=60, **given)
    (words,) = re.findall(r"about ([\d,]+) runs per dataset would do", " ".join(few.warnings))
    needed, planned = (
        int(words.replace(",", "")),
        planned_audit("gaussian(mu=1)", "gaussian(mu=2)", confidence=1 - 1e-7).trials,
    )
    assert 0.7 * planned < needed < 3 * planned
    enough = audit(Gaussian(1.0), GaussianDP(1.0), PAIR, trials=needed, **given)
    assert not any("too few to see" in warning for warning in enough.warnings)


@pytest.mark.parametrize(
    "changed",
    [
        {"detect": GaussianDP(3.0), "pairs": [PAIR, Pair([0, 0], [0, 1], relation="replace_one")]},
        {"detect": GaussianDP(3.0), "observe_time": True},
        {"detect": None},
        {"detect": None, "method": "fixed"},
    ],
    ids=["several pairs", "running times", "no detect", "fixed without detect"],
)
def test_every_audit_with_too_few_runs_states_how_many_would_do(changed: dict[str, Any]) -> None:
    """Fails by chance < 1 in 10**6: only if the true claim is refuted."""
    given: dict[str, Any] = {"confidence": 1 - 1e-7, "pairs": PAIR, "seed": 0, "attacks": "median_clipped"} | changed

    def noisy(dataset: list[int], rng: np.random.Generator) -> float:
        return float(rng.normal(sum(dataset)))

    few = audit(noisy, GaussianDP(1.0), trials=24, **given)
    (words,) = re.findall(r"about ([\d,]+) runs per dataset would do", few.warnings[-1])
    needed = int(words.replace(",", ""))
    assert 24 < needed < 5000
    enough = audit(noisy, GaussianDP(1.0), trials=needed, **given)
    assert not any("too few to see" in warning for warning in enough.warnings)


def test_a_stream_that_is_too_short_states_how_many_steps_would_do() -> None:
    """Fails by chance < 1 in 10**6: only if the true claim is refuted."""

    def result(steps: int) -> AuditResult:
        stream = OnlineAudit(GaussianDP(1.0), confidence=1 - 1e-7, attacks="median_clipped", seed=0)
        for _ in range(steps):
            stream.update(float(rng.normal(stream.coin())))
        return stream.result()

    rng = np.random.default_rng(0)
    (words,) = re.findall(r"about ([\d,]+) steps would do", result(6).warnings[-1])
    assert not any("too few to see" in warning for warning in result(int(words.replace(",", ""))).warnings)


@pytest.mark.parametrize("method", ["sequential", "fixed"])
@pytest.mark.parametrize("kept", ["gaussian(mu=1)", "pure(epsilon=0.1)"])
def test_a_violation_to_detect_must_violate_the_claim(method: str, kept: str) -> None:
    words = re.escape(f"detect must be a violation of gaussian(mu=1), but every mechanism that is {kept} satisfies")
    with pytest.raises(ValueError, match=words):
        audit(Gaussian(1.0), GaussianDP(1.0), PAIR, trials=200, seed=0, detect=kept, method=method)


def test_blocks_of_large_outputs_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "_MAX_BLOCK_BYTES", 2**10)
    sizes: list[int] = []

    @batched
    def wide(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        sizes.append(n)
        return rng.normal(size=(n, 64))  # 512 bytes each

    for terms in ({"measure": True}, {"method": "fixed"}):
        sizes.clear()
        given: dict[str, Any] = {"trials": 100, "attacks": "logistic", "confidence": 0.95, **terms}
        assert audit(wide, GaussianDP(1.0), PAIR, seed=0, **given).trials_used == 100
        assert max(sizes[2:]) == 2
