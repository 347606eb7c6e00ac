"""A counted score is a function of its own output, whatever a user's attack does; attacks leave no trace."""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from dpaudit import GaussianDP, Pair, PureDP, Verdict, audit, batched
from dpaudit.catalogue import Gaussian
from dpaudit.learning import Learner, foreign
from dpaudit.learning.attack import Attack, attack_classes
from dpaudit.learning.foreign import is_foreign, pointwise
from dpaudit.result.evidence import fingerprint
from dpaudit_attacks.likelihood_ratio import LikelihoodRatio
from dpaudit_attacks.logistic import Logistic

PAIR = Pair([0], [1])
Rng = np.random.Generator


class User:
    """An attack whose score is a given function."""

    name = "user"

    def __init__(self, score: Any, calibrated: bool = False) -> None:
        self.score, self.calibrated = score, calibrated

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        return self.score


def nan_below_zero(x: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.log(x)


def raises_below_zero(x: Any) -> Any:
    if np.min(x) < 0:
        raise ArithmeticError("below zero")
    return np.log(x)


def exits_below_zero(x: Any) -> Any:
    return sys.exit(3) if np.min(x) < 0 else np.log(x)


def is_text_below_zero(x: Any) -> Any:
    return [np.log(value) if value >= 0 else "negative" for value in x]


FAULTS = [nan_below_zero, raises_below_zero, exits_below_zero, is_text_below_zero]


def positive(n: int, seed: int) -> Any:
    return 1000 * np.exp(0.3 * np.random.default_rng(seed).normal(size=n))


@pytest.mark.parametrize("score", FAULTS)
def test_a_fault_on_one_output_changes_no_other_score_of_an_attack_that_is_calibrated(score: Any) -> None:
    """The test has no randomness."""
    learners = [Learner([User(score)], seed=0, pair=0) for _ in range(2)]
    for learner in learners:
        learner.learn(positive(200, 1), positive(200, 2))
    good, other = positive(50, 3), positive(50, 4)
    bad = good.copy()
    bad[7] = -1.0
    expected, actual = (one.score_fresh(x, other) for one, x in zip(learners, (good, bad), strict=True))
    assert np.delete(actual[0], 7) == pytest.approx(np.delete(expected[0], 7), abs=1e-9)
    assert actual[0][7] == 0.0
    assert actual[1] == pytest.approx(expected[1], abs=1e-9)
    assert learners[1].void == ""
    assert learners[1].hopeless  # the attack was dropped after the fault
    assert not learners[0].hopeless


@pytest.mark.parametrize("method", ["sequential", pytest.param("fixed", marks=pytest.mark.slow)])
def test_a_rare_nan_certifies_nothing_where_outputs_do_not_depend_on_the_data(method: str) -> None:
    """The seeds are fixed.  The logarithm of an output in 400 is NaN."""

    @batched
    def release(dataset: Any, n: int, rng: Rng) -> Any:
        return np.where(rng.random(n) < 1 / 400, -1.0, 1000 * np.exp(0.3 * rng.normal(size=n)))

    attacks: list[str | Attack] = [User(nan_below_zero), "median_clipped"]
    result = audit(release, PureDP(1.0), PAIR, attacks=attacks, trials=1_500, method=method, seed=0)
    assert not result.violated
    assert result.mu_lower == 0.0


def batch_mean(least: int) -> Callable[[Any], Any]:
    """Return a log-likelihood ratio that is right for small batches only."""
    return lambda x: x - 0.5 if len(x) < least else np.full(len(x), np.mean(x) - 0.5)


FAULTY: dict[str, Callable[[], Attack]] = {
    "mean of a large batch": lambda: User(lambda x: x if len(x) < 80 else np.full(len(x), np.mean(x))),
    "mean, calibrated": lambda: User(lambda x: x if len(x) < 80 else np.full(len(x), np.sign(np.mean(x)) * 5), True),
    "ranks in a batch": lambda: User(lambda x: x if len(x) < 80 else np.argsort(np.argsort(x)) / len(x), True),
    "state": lambda: User(Turns(), True),
    "mean of a large batch, in a built-in attack": lambda: LikelihoodRatio(batch_mean(80)),
}


class Turns:
    """One large batch has only outputs of d1, and the next one only outputs of d0."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += len(x) > 80
        return np.full(len(x), 3.0 if self.calls % 2 else -3.0) if len(x) > 80 else np.sign(x)


@pytest.mark.parametrize(
    ("fault", "method"),
    [pytest.param(fault, "sequential", marks=pytest.mark.slow if i in (0, 2) else ()) for i, fault in enumerate(FAULTY)]
    + [("mean of a large batch", "fixed"), ("state", "fixed")],
)
def test_a_score_that_depends_on_company_or_time_ends_the_audit_inconclusive(
    fault: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim is exactly true.  The faults begin after the fit, so only counted outputs are affected."""
    monkeypatch.setattr(foreign, "_PROBES", 64)  # so that a large batch may be smaller, too
    attack = FAULTY[fault]()
    result = audit(Gaussian(1.0), GaussianDP(1.0), PAIR, attacks=attack, trials=4_000, method=method, seed=1)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert result.mu_lower == 0.0
    assert result.p_value == 1.0
    words = f"attack {attack.name} gave the same output different scores in different blocks"
    assert any(words in warning for warning in result.warnings)


def test_attacks_get_copies_of_the_outputs() -> None:
    """An attack that changes its arguments affects neither the audit nor another attack."""

    class Scribbles(User):
        def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
            outputs0[:], outputs1[:] = 7.0, -7.0
            return super().fit(outputs0, outputs1, rng)

    def scribbles(x: Any) -> Any:
        scores = 2 * x
        x[:] = 5.0
        return scores

    kinds = User(lambda x: 2 * x), Scribbles(scribbles)
    clean, other = (
        audit(Gaussian(0.8), GaussianDP(1.0), PAIR, attacks=[attack, "logistic"], trials=100, seed=3)
        for attack in kinds
    )
    assert fingerprint(clean.evidence) == fingerprint(other.evidence)
    assert clean.warnings == other.warnings == ()


def test_attacks_leave_the_global_random_state_as_it_was() -> None:
    """All randomness is seeded here."""

    class Seeds(User):
        def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
            np.random.seed(0)  # noqa: NPY002
            return self.score

    def score(x: Any) -> Any:
        np.random.seed(0)  # noqa: NPY002
        return x

    np.random.seed(5)  # noqa: NPY002
    expected = np.random.normal(size=3)  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    learner = Learner([Seeds(score)], seed=0, pair=0)
    learner.learn(positive(20, 1), positive(20, 2))
    learner.score_fresh(positive(20, 1), positive(20, 2))
    learner.score_counted(positive(20, 1), positive(20, 2))
    learner.score(positive(20, 1))
    assert np.random.normal(size=3).tolist() == expected.tolist()  # noqa: NPY002


def test_an_audit_without_any_attack_left_ends_and_says_why() -> None:
    result = audit(
        Gaussian(0.5), GaussianDP(1.0), PAIR, trials=20_000, attacks=User(lambda x: np.full(len(x), np.nan)), seed=0
    )
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.trials_used < 100
    assert any("every attack was dropped" in words for words in result.warnings)


def test_an_attack_that_knows_its_outputs_by_heart_neither_voids_a_true_claim_nor_hides_a_violation() -> None:
    """The attack returns the nearest past output, so it scores learned outputs differently from fresh ones."""

    class Nearest(User):
        def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
            known = np.concatenate([outputs0, outputs1])
            order = np.argsort(known)
            known, label = known[order], (order >= len(outputs0)).astype(float)

            def score(x: Any) -> Any:
                right = np.clip(np.searchsorted(known, x), 1, len(known) - 1)
                return label[np.where(np.abs(known[right] - x) < np.abs(known[right - 1] - x), right, right - 1)]

            return score

    true, false = (
        audit(Gaussian(scale), GaussianDP(1.0), PAIR, attacks=Nearest(None), trials=400, seed=0, confirm="never")
        for scale in (1.0, 1 / 4)
    )
    assert true.verdict is Verdict.NO_VIOLATION
    assert false.verdict is Verdict.VIOLATION


def test_an_attack_that_keeps_all_it_was_fitted_to_makes_no_runs_seem_dependent() -> None:
    """The tests of independence use a copy of the attack from before the audit.  The seed decides."""

    class Keeps:
        name = "keeps"

        def __init__(self) -> None:
            self.x: list[float] = []
            self.y: list[bool] = []

        def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
            self.x += [*outputs0, *outputs1]
            self.y += [False] * len(outputs0) + [True] * len(outputs1)
            model = KNeighborsClassifier(5).fit(np.array(self.x)[:, None], self.y)
            return lambda outputs: model.predict_proba(np.asarray(outputs)[:, None])[:, 1]

    result = audit(Gaussian(1.0), "gaussian(mu=1)", Pair([0], [1]), attacks=Keeps(), trials=120, seed=0)
    assert result.verdict is Verdict.NO_VIOLATION


class OwnLogistic(Logistic):
    """A third-party attack that inherits from a built-in one."""


def test_a_function_in_a_built_in_attack_that_averages_small_batches_never_refutes_a_true_claim() -> None:
    """The probes of a built-in attack would not reveal this fault."""
    for seed in range(2):
        attack = LikelihoodRatio(batch_mean(8))
        result = audit(Gaussian(1.0), GaussianDP(1.0), PAIR, attacks=attack, trials=2000, confidence=0.95, seed=seed)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert any("attack likelihood_ratio was dropped" in warning for warning in result.warnings)


def test_only_attacks_without_code_in_their_settings_are_built_in() -> None:
    assert [name for name, kind in attack_classes().items() if is_foreign(kind())] == []
    assert is_foreign(LikelihoodRatio(lambda x: x))
    assert is_foreign(OwnLogistic())


@dataclasses.dataclass
class Ranking:
    """A user's attack that only ranks outputs, on an arbitrary scale."""

    name: str = "ranking"

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        return lambda outputs: np.exp(3 * outputs)


class FailsOnFew:
    """After its first large batch, it raises an exception on small batches."""

    def __init__(self) -> None:
        self.large = False

    def __call__(self, x: Any) -> Any:
        self.large = self.large or len(x) > 200
        if self.large and len(x) < 200:
            raise ArithmeticError("too few outputs")
        return x


def test_failures_on_few_outputs_only_are_found_after_the_fit_and_among_counted_outputs() -> None:
    """The seed is fixed."""
    rng = np.random.default_rng(0)
    outputs0, outputs1 = rng.normal(size=(2, 1000))
    score = FailsOnFew()
    assert not pointwise(score, outputs0, outputs1, rng, thorough=True)

    class Few(Ranking):
        def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
            return score

    score.large = False  # the failures begin after the fit
    learner = Learner([Few()], seed=0, pair=0)
    learner.learn(*learner.read(outputs0[:100], outputs1[:100]))
    learner.score_counted(*learner.read(outputs0, outputs1))
    assert "attack ranking gave the same output different scores in different blocks" in learner.void
