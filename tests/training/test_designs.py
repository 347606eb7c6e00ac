"""The three designs: correct trainings keep their claims, wrong trainings do not, and errors name invalid arguments."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, GaussianDP, MechanismError, Pair, PureDP, Verdict, audit, batched, training
from dpaudit.training import canaries, checks, reference, views

SURE = 1 - 1e-6
MODEL = reference.Model((2, 2), spare=1)
DATA = reference.Records([[0.5, 0.0], [-0.5, 0.5], [0.0, -1.0]], [0, 1, 1])
PAIR = Pair(DATA, DATA.joined(canaries.dirac(1)), "add_remove")


class HalfNoise(reference.Trainer):
    """A trainer with half of the claimed noise."""

    def noise(self, state: Any) -> Any:
        return super().noise(state) / 2


def trainer(kind: type[reference.Trainer] = reference.Trainer, **changed: Any) -> reference.Trainer:
    return kind(**{"model": MODEL, "noise_multiplier": 2.0, "steps": 4, **changed})


def audited(train: Any, claim: Any = "gaussian(mu=1)", pair: Pair = PAIR, **changed: Any) -> AuditResult:
    return training.many_runs(train, pair, claim, **{"models": 200, "seed": 1, "confidence": SURE, **changed})


def warned(result: AuditResult, words: str) -> bool:
    return any(re.search(words, warning) for warning in result.warnings)


def score(dataset: reference.Records, rng: np.random.Generator) -> float:
    return float(len(dataset) + rng.normal())


def test_many_runs() -> None:
    """The right trainer is refuted by chance < 1 in 10**6; the wrong one has mu = 2 and 600 models."""
    view = views.spare_weights()
    right = audited(reference.Training(trainer(), view), confidence=SURE, models=600)
    assert right.verdict is Verdict.NO_VIOLATION
    assert right.warnings == ()
    wrong = audited(reference.Training(trainer(HalfNoise), view), confidence=SURE, models=600)
    assert wrong.violated
    assert wrong.name == "training"
    assert wrong.trials_used == 300
    assert wrong.evidence.to_json()["n0"] == 300
    assert sum(wrong.training.out) == sum(wrong.training.into) == 300


def test_a_training_that_ignores_its_dataset_makes_the_audit_inconclusive(tmp_path: Path) -> None:
    def ignores(dataset: Any, rng: np.random.Generator) -> float:
        return float(rng.normal())

    result = audited(ignores)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.mu_lower == 0
    assert re.search("all 29 compared models have the same output on d0 as on d1.*seems to ignore", result.warnings[-1])
    result.to_json(tmp_path / "result.json")
    assert AuditResult.from_json(tmp_path / "result.json").verdict is Verdict.INCONCLUSIVE
    assert not warned(audited(score), "ignore")


def test_only_many_equal_models_make_an_audit_inconclusive() -> None:
    """A training at the limit of its claim may have equal outputs by chance, so few equal models decide nothing."""

    def rarely(dataset: Any, rng: np.random.Generator) -> float:
        noise, used = float(rng.normal()), rng.random() < 0.1
        return noise + 3 * (len(dataset) == 4 and used)

    strong = audited(lambda dataset, rng: float(rng.normal()), "gaussian(mu=0.1)")
    assert strong.verdict is Verdict.NO_VIOLATION  # 340 models would be needed
    assert warned(strong, "with the same seed, 2 models have the same output on d0")
    assert checks.enough_equal(GaussianDP(0.1), 400) == 340
    assert checks.enough_equal(GaussianDP(0.1), 339) == 0
    assert checks.enough_equal(None, 100) == checks.enough_equal(GaussianDP(0), 100) == 0
    assert checks.enough_equal(PureDP(1000.0), 100) == 1
    seldom = audited(rarely, "gaussian(mu=0.5)", models=300, seed=5)
    assert seldom.verdict is Verdict.NO_VIOLATION
    assert not warned(seldom, "same output on d0 as on d1")  # a later model differs
    few = audited(lambda dataset, rng: float(rng.normal()), models=40)
    assert warned(few, "with the same seed, 2 models")


def test_scores_that_do_not_change_with_the_canary_are_named() -> None:
    """The random numbers do not depend on the seed of the audit, so models with equal seeds differ."""
    own, claim = np.random.default_rng(5), "gaussian(mu=3)"
    words = r"scores are hardly higher (on d1 than on d0|with the canary than without the canary): \d+ % of all pairs"
    for result in (
        audited(lambda dataset, rng: float(own.normal()), claim, models=80),
        training.one_run(
            lambda coins, rng: own.normal(size=80), 80, claim, independence="canaries", confidence=SURE, seed=1
        ),
        training.step_by_step(lambda coin: own.normal(), claim, steps=80, attacks="logistic", seed=1),
    ):
        assert not result.violated
        assert warned(result, words)
    assert warned(audited(lambda dataset, rng: -score(dataset, rng), claim, models=80), words)
    assert not warned(audited(lambda dataset, rng: 3 * score(dataset, rng), claim), words)


def test_diverged_models_are_named_and_count() -> None:
    def diverges(dataset: Any, rng: np.random.Generator) -> float:
        return math.nan if rng.random() < 0.2 else float(len(dataset) + rng.normal())

    result = audited(diverges)
    assert not warned(result, "share a seed")
    assert warned(result, r"of 100 models on d0 diverged \(their score is nan\) and got the lowest score")
    assert result.evidence.to_json()["n0"] == 100
    far = reference.Training(
        trainer(learning_rate=1e308, model=reference.Model((2, 3, 2))), views.loss(DATA.chosen([0]))
    )
    with pytest.raises(ValueError, match="all scores are nan, so every model diverged: use a smaller learning rate"):
        audited(far, pair=Pair(DATA, DATA.joined(DATA.chosen([0]))), models=20)


def test_too_few_models_are_named_with_the_number_needed() -> None:
    result = audited(score, "gaussian(mu=3)", models=8)
    assert result.verdict is Verdict.INCONCLUSIVE
    needed = re.search(r"8 models could not refute gaussian\(mu=3\).* at least (\d+) models", result.warnings[0])
    enough = int(needed[1])
    assert warned(audited(score, "gaussian(mu=3)", models=enough // 2), "could not refute")
    assert not warned(audited(score, "gaussian(mu=3)", models=enough), "could not refute")


def test_a_canary_without_effect_is_named() -> None:
    bare = reference.Model((2, 2), bias=False, spare=1)
    blank = reference.Records([[0.0, 0.0]], [0])
    target = DATA.chosen([0])
    nothing = reference.Training(trainer(model=bare), views.loss(target))
    result = audited(nothing, pair=Pair(DATA, DATA.joined(blank), "add_remove"))
    assert warned(result, "the canary moves the sum of clipped gradients by 0, and the clipping norm is 1")
    assert warned(result, "all 29 compared models have the same output")
    learned = audit(nothing, "gaussian(mu=1)", Pair(DATA, DATA.joined(blank)), trials=8, seed=1, attacks="logistic")
    assert warned(learned, r"the canary moves the sum of clipped gradients by 0, .* \(pair Records\(3 x 2\)")
    rare = reference.Training(trainer(sampling=reference.Poisson(0.01)), views.spare_weights())
    assert warned(audited(rare), "in none of the 4 batches with probability 0.96")


def test_many_runs_refuse_bad_input() -> None:
    with pytest.raises(ValueError, match="models must be a whole number >= 4, got 2"):
        audited(score, models=2)
    with pytest.raises(MechanismError, match="takes"):
        audited(lambda: 1.0)
    with pytest.raises(MechanismError, match="the training returned 1 outputs instead of 2 in the batch of 2 runs"):
        audited(batched(lambda dataset, n, rng: [1.0]))
    with pytest.raises(ValueError, match="train must return a score, got None on d0"):
        audited(lambda dataset, rng: None)
    with pytest.raises(MechanismError, match="the training raised TypeError: object of type 'float' has no len"):
        audited(batched(lambda dataset, n, rng: rng.random()))  # type: ignore[arg-type, return-value]


def test_one_run_with_many_canaries() -> None:
    """Fails by chance < 1 in 10**6 for the right trainer; the wrong one has mu = 4 instead of 2."""
    wide = reference.Model((2, 2), spare=100)
    for kind, violated, confidence in ((reference.Trainer, False, SURE), (HalfNoise, True, 0.95)):
        algorithm = trainer(kind, model=wide, noise_multiplier=1.0)
        train = reference.OneRun(algorithm, DATA, canaries.dirac(100), views.spare_weights())
        result = training.one_run(
            train, 100, algorithm.claim, independence="canaries", confidence=confidence, seed=1, name="one"
        )
        assert result.violated == violated
        assert result.name == "one"
    safe = training.one_run(train, 100, independence=None, confidence=0.95, seed=1)
    assert 0 < safe.mu_lower < result.mu_lower


def test_the_coins_of_one_run_are_fair_and_secret() -> None:
    """Fails by chance < 1 in 10**6."""
    seen = []

    def train(included: Any, rng: np.random.Generator) -> Any:
        seen.append(included.copy())
        scores = rng.normal(size=400)
        included[:] = True  # a training that changes its copy changes no coin
        return scores

    for seed in (1, 2):
        result = training.one_run(train, 400, independence="canaries", seed=seed, confidence=SURE)
        assert result.mu_lower == 0
        assert abs(seen[-1].sum() - 200) < 50
    assert not np.array_equal(*seen)


@pytest.mark.parametrize(
    ("train", "changed", "message"),
    [
        (lambda coins, rng: np.full(40, np.nan), {}, "all scores are nan, so the model diverged"),
        (lambda coins, rng: np.where(np.arange(40) == 7, np.nan, 1.0), {}, "the score of canary 7 is nan"),
        (lambda coins, rng: np.zeros(3), {}, r"must return 40 scores, one for each canary, got shape \(3,\)"),
        (lambda coins, rng: np.ones(40), {}, "all 40 scores are 1, so they carry no information"),
        (lambda coins, rng: rng.normal(size=40), {"independence": "runs"}, "is for many models"),
        (lambda coins, rng: ["high"] * 40, {}, r"must return 40 scores, one for each canary, got \['high'"),
        (lambda coins, rng: rng.normal(size=40), {"canaries": 2}, "a whole number >= 4, got 2"),
    ],
)
def test_one_run_refuses_bad_input(train: Any, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        training.one_run(train, **{"canaries": 40, "independence": "canaries", "seed": 1, **changed})


@pytest.mark.parametrize("independence", [pytest.param("canaries", marks=pytest.mark.slow), None])
def test_too_few_canaries_are_named_with_the_number_needed(independence: Any) -> None:
    def few(canaries: int) -> AuditResult:
        train = lambda coins, rng: coins + rng.normal(size=canaries)  # noqa: E731
        return training.one_run(train, canaries, "gaussian(mu=1)", independence=independence, confidence=0.95, seed=3)

    needed = re.search(r"8 canaries could not refute gaussian\(mu=1\).* at least (\d+) canaries", few(8).warnings[0])
    assert not warned(few(int(needed[1])), "could not refute")


def test_the_coins_of_one_run_are_known_to_be_fair() -> None:
    """The audit's own coins fix no number beforehand, even if they include half of the canaries.  Seeds are fixed."""
    sizes: list[int] = []

    def train(included: Any, rng: np.random.Generator) -> Any:
        sizes.append(int(included.sum()))
        return included + rng.normal(size=len(included))

    results = [training.one_run(train, 20, independence="canaries", confidence=SURE, seed=seed) for seed in (0, 8)]
    assert 10 in sizes
    assert not any(warned(result, "fixed beforehand") for result in results)


def test_the_examples_of_the_package_run() -> None:
    """The examples run with fewer steps and models than printed."""
    blocks = re.findall(r"(?m)(?:^    .*\n|^\n)+", (training.__doc__ or "") + "\n")
    code = "".join(re.sub(r"(?m)^    ", "", block) for block in blocks if block.strip())
    assert code.count("result = ") == 3
    for long, short in (
        ("models=200", "models=8"),
        ("1000", "40"),
        ("steps=5000", "steps=5"),
        ("steps=100,", "steps=2,"),
    ):
        assert long in code
        code = code.replace(long, short)
    rng = np.random.default_rng(0)
    digits = [reference.Records(rng.normal(size=(30, 64)), rng.integers(0, 10, 30)) for _ in range(2)]
    space: dict[str, Any] = {"records": digits[0], "others": digits[1]}
    exec(code, space)
    assert isinstance(space["result"], AuditResult)


# --- step by step: a coin before each step of one training decides whether the canary joins the batch


def test_step_by_step() -> None:
    """The right trainer is refuted by chance < 1 in 10**6; the wrong one has mu = 2 instead of 1 in each step."""
    for kind, violated in ((reference.Trainer, False), (HalfNoise, True)):
        step = reference.StepByStep(trainer(kind, noise_multiplier=1.0), DATA, canaries.dirac(1), seed=2)
        result = training.step_by_step(
            step, step.claim, steps=300, confidence=SURE if not violated else 0.95, attacks="logistic", seed=1
        )
        assert step.claim == GaussianDP(1.0)
        assert result.violated == violated
        assert warned(result, r"^300 steps" if not violated else r"^\d+ steps")


def test_the_claim_of_a_step_is_that_of_a_full_batch() -> None:
    """The coin decides, not the sampling: a step of a correct trainer would refute the claim of a sampled step."""
    algorithm = trainer(noise_multiplier=1.0, sampling=reference.Poisson(0.05))
    step = reference.StepByStep(algorithm, DATA, canaries.dirac(1))
    assert step.claim == GaussianDP(1.0)
    sampled = training.claim(noise_multiplier=1.0, sampling_rate=0.05, steps=1)
    tails = ("pure(epsilon=3.3)", "approximate(epsilon=3.4, delta=1e-9)")
    for stronger in (sampled, "gaussian(mu=0.9)", "gaussian(mu=0.999999)", "pure(epsilon=1)", *tails):
        with pytest.raises(
            ValueError, match=r"is stronger than gaussian\(mu=1\), which a correct step satisfies.*step.claim"
        ):
            training.step_by_step(step, stronger, steps=5)
    exact = f"approximate(epsilon=3, delta={GaussianDP(1.0).delta(3.0)!r})"
    for weaker in ("gaussian(mu=1)", "gaussian(mu=1.000000000000001)", exact):
        assert not training.step_by_step(step, weaker, steps=5, seed=1).violated


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "step must return one number, got None"),
        (np.zeros(1), r"step must return one number, got an array of shape \(1,\)"),
        ("1", "step must return one number, got '1'"),
    ],
)
def test_a_step_returns_a_number(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        training.step_by_step(lambda coin: given, "gaussian(mu=1)")
    with pytest.raises(TypeError, match="step must be a function from the coin"):
        training.step_by_step(given, "gaussian(mu=1)")


def test_a_canary_of_the_data_is_seen_along_its_gradient() -> None:
    """With negligible noise, a step with the canary differs by the norm of the canary's clipped gradient."""
    algorithm = trainer(noise_multiplier=1e-9, learning_rate=1e-9)
    canary = reference.Records([[3.0, 0.0]], [0])
    with_it, without = (reference.StepByStep(algorithm, DATA, canary, seed=2)(coin) for coin in (1, 0))
    assert with_it - without == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(ValueError, match="the canary must be one record, got 3"):
        reference.StepByStep(algorithm, DATA, DATA)


def test_steps_without_effect_are_named() -> None:
    with pytest.raises(ValueError, match="the score was 0 in each of the first 50 steps"):
        training.step_by_step(lambda coin: 0.0, "gaussian(mu=1)", seed=1)
    with pytest.raises(ValueError, match="steps must be a whole number >= 1"):
        training.step_by_step(lambda coin: 0.0, "gaussian(mu=1)", steps=0)
    bare = trainer(model=reference.Model((2, 2), bias=False))
    step = reference.StepByStep(bare, DATA, reference.Records([[0.0, 0.0]], [0]))
    assert "moves the sum of clipped gradients by 0" in step.doubts()[0]
    rng = np.random.default_rng(0)
    diverged = training.step_by_step(
        lambda coin: math.nan if rng.random() < 0.1 else rng.normal(), "gaussian(mu=1)", steps=30, seed=1
    )
    assert warned(diverged, r"the score was nan in \d of 30 steps: the model diverged")
    assert not diverged.detectable.claim
    with pytest.raises(ValueError, match="all of the first 50 scores are nan, so the model diverged: use a smaller"):
        training.step_by_step(lambda coin: math.nan, "gaussian(mu=1)", seed=1)
