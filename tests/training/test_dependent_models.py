"""Dependent models prove nothing, and neither do pairs that the claim does not cover."""

import dataclasses
import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib.externals.loky.backend import reduction

from dpaudit import AuditResult, GaussianDP, Pair, Verdict, audit, batched, replay, training
from dpaudit.catalogue.training import DpGd
from dpaudit.running import MechanismError, sampler
from dpaudit.training import canaries, reference, views
from dpaudit.training.models import TrainingProgress

from .test_designs import DATA, MODEL, PAIR, SURE, audited, warned

TRAINER = reference.Trainer(model=MODEL, noise_multiplier=2.0, steps=4)


def test_runs_that_share_a_seed_are_named() -> None:
    @batched
    def reseeds(dataset: Any, n: int, rng: np.random.Generator) -> Any:
        return len(dataset) + np.repeat(rng.normal(size=n // 2), 2)

    result = audited(reseeds)
    assert warned(result, "runs 0 and 1 on d0 have the same output, and 50 such runs were found.*share a seed")
    assert warned(result, "outputs equal the output 1 runs earlier, on d1: no guarantee holds")
    assert result.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("first", [0, 1])  # calls in pairs share a seed on both datasets, or on d1 and the next d0
@pytest.mark.parametrize(("per_seed", "models"), [(2, 200), (5, 40), (50, 200)])
def test_models_that_share_seeds_prove_nothing(per_seed: int, models: int, first: int) -> None:
    """The claim is true of one model.  `dependent` states the level; the power is that of these seeds."""
    calls = iter(range(first, 1000))

    def reseeds(dataset: Any, rng: np.random.Generator) -> float:
        return float(len(dataset) + np.random.default_rng(next(calls) // per_seed).normal())

    result = audited(reseeds, models=models)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert result.mu_lower == 0
    assert "no guarantee holds, since trials must be independent" in result.warnings[-1]


def test_one_seed_for_all_models_proves_nothing() -> None:
    result = audited(lambda dataset, rng: len(dataset) + np.random.default_rng(0).normal())
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert warned(result, "all 100 outputs on d0 are 3.1257 and all 100 outputs on d1 are 4.1257, so runs share a seed")


def test_scores_with_few_values_are_valid() -> None:
    """The scores are an accuracy, a share of clipped scores, and a flag that always reveals the canary.

    The first two are reported as dependent by chance < 1 in 10**8.
    """

    def accuracy(dataset: Any, rng: np.random.Generator) -> float:
        return float(rng.binomial(20, 0.5 + 0.1 * len(dataset)) / 20)

    def clipped(dataset: Any, rng: np.random.Generator) -> float:
        return max(3.5, len(dataset) + float(rng.normal()))

    for train in (accuracy, clipped):
        assert audited(train).bounds_valid
    flag = audited(lambda dataset, rng: float(len(dataset) > 3))
    assert flag.violated
    assert flag.bounds_valid


def in_any_order(kind: str, side: int, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return noise of n runs with shared seeds, in an order that reveals nothing, or of few runs."""
    rng = np.random.default_rng([side, n])
    if kind == "pool of 10":
        return rng.normal(size=10)[rng.integers(10, size=n)]
    if kind == "reversed half":
        half = rng.normal(size=n // 2)
        return np.concatenate([half, half[::-1]])
    per_seed = int(kind.split()[1])
    noise = np.repeat(rng.normal(size=-(-n // per_seed)), per_seed)[:n]
    return noise if kind.startswith("blocks") else rng.permutation(noise)


@pytest.mark.parametrize(
    ("kind", "models"),
    [("pool of 10", 200), ("permuted 2", 200), ("permuted 5", 20), ("reversed half", 20), ("blocks 5", 20)],
)
def test_repeated_values_on_no_grid_prove_nothing(kind: str, models: int) -> None:
    """The claim is true of one model.  The seeds decide."""
    train = batched(lambda dataset, n, rng: len(dataset) + in_any_order(kind, len(dataset) - 3, n))
    result = audited(train, models=models)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert result.mu_lower == 0
    assert "no guarantee holds, since trials must be independent" in result.warnings[-1]
    assert warned(
        result, r"the first .* outputs of d0 have only .* different values.*lie on no grid.*share seeds, or.*no noise"
    )


@pytest.mark.parametrize(
    ("models", "shift"), [(20, 0.0), pytest.param(200, 5.0, marks=pytest.mark.slow), (200, 0.3141592653589)]
)
@pytest.mark.parametrize(
    "values",
    [np.arange(8) / 7, np.arange(30), np.arange(2), np.arange(8) / 7 + 0.1234567890123, np.exp(np.arange(20) / 7)[:1]],
)
def test_scores_on_a_grid_are_valid(values: Any, shift: float, models: int) -> None:
    """The two datasets may share values or not.  The seed of the audit decides."""

    def score(dataset: Any, rng: np.random.Generator) -> float:
        return (
            float(rng.choice(values) + shift * (len(dataset) - 3)) if len(values) > 1 else max(values[0], rng.normal())
        )

    assert audited(score, models=models, seed=2).bounds_valid


def replaced(relation: Any = "unspecified") -> Pair:
    one, other = (DATA.joined(reference.Records(diracs=[0], sizes=[size])) for size in (-1e6, 1e6))
    return Pair(one, other, relation)


def test_a_claim_about_an_added_record_is_not_tested_on_a_replaced_one() -> None:
    """The right claim is refuted by chance < 1 in 10**6."""
    train = reference.Training(TRAINER, views.spare_weights())
    for pair in (replaced(), replaced("replace_one")):
        with pytest.raises(ValueError, match="about a record that is added or removed, but d0 has 1 records that d1 l"):
            audited(train, TRAINER.claim, pair)
        with pytest.raises(
            ValueError, match=r"pair that replaces a record, use relation=\"replace_one\" in training.cl"
        ):
            audited(train, TRAINER.claim, pair)
    for stronger in (f"gaussian(mu={1 - 2**-53!r})", "gaussian(mu=0.5)", f"gaussian(mu={1 + 2**-52!r})"):
        with pytest.raises(ValueError, match="is at least as strong as the trainer's claim, and the trainer's claim"):
            audited(train, stronger, replaced())
    claim = training.claim(noise_multiplier=2.0, steps=4, sampling="full", relation="replace_one")
    right = audited(train, claim, replaced("replace_one"), confidence=SURE)
    assert right.verdict is not Verdict.VIOLATION
    assert warned(right, r"a record was replaced.  A claim about an added or removed record.*does not cover this pair")
    removed = audited(train, TRAINER.claim, Pair(PAIR.d1, PAIR.d0), confidence=SURE)
    assert not warned(removed, "neighbours|replaced|added")  # d1 has no canary: the scores warn of that
    far = Pair(DATA, DATA.joined(canaries.dirac(1)).joined(canaries.dirac(1)))
    assert warned(audited(train, "gaussian(mu=2)", far), "d1 has 2 that d0 lacks, but neighbours differ by one record")


@pytest.mark.parametrize("mechanism", [DpGd(), reference.Training(TRAINER, views.spare_weights())])
def test_a_direct_audit_refuses_a_pair_that_the_trainers_claim_does_not_cover(mechanism: Any) -> None:
    """The right claim is tested, and sixty runs with a fixed seed do not refute it."""
    for claim in (mechanism.claim, GaussianDP(0.1)):
        with pytest.raises(ValueError, match=r"about a record that is added or removed, but d0 has 1 .* \(pair "):
            audit(mechanism, claim, [Pair(DATA, PAIR.d1), replaced()], trials=8, seed=0)
    result = audit(mechanism, GaussianDP(5.0), replaced(), attacks="median_clipped", trials=60, seed=0)
    assert not result.violated
    stronger = dataclasses.replace(result, claim=GaussianDP(0.1))
    with pytest.raises(ValueError, match="about a record that is added or removed"):
        replay(stronger, mechanism, replaced(), attacks="median_clipped", trials=8, seed=0)


class Refusing:
    """A mechanism whose claim covers no pair; a faulty one raises another error."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def __call__(self, dataset: Any, rng: np.random.Generator) -> float:
        return float(rng.normal())

    def check_neighbours(self, d0: Any, d1: Any, claim: Any) -> None:
        raise self.error("not about this pair")


def test_any_mechanism_may_refuse_pairs() -> None:
    with pytest.raises(ValueError, match=r"not about this pair \(pair \[0\] \| \[1\]\)"):
        audit(Refusing(ValueError), GaussianDP(1.0), Pair([0], [1]), trials=8, seed=0)
    with pytest.raises(MechanismError, match="check_neighbours raised KeyError"):
        audit(Refusing(KeyError), GaussianDP(1.0), Pair([0], [1]), trials=8, seed=0)


def test_a_relation_that_cannot_be_checked_is_named() -> None:
    def named(pair: Pair, claim: Any = "gaussian(mu=1)") -> bool:
        return warned(audited(lambda dataset, rng: rng.normal(), claim, pair, models=4), "a record was replaced")

    for pair in (Pair([1, 2], [1, 3]), replaced(), Pair(None, 1, "replace_one")):
        assert named(pair)
    for pair in (Pair([1], [1, 3]), Pair(None, 1), Pair("ab", "ba")):
        assert not named(pair)
    sampled = "subsampled(gaussian(mu=1), rate=0.5, relation=replace_one)"
    assert not named(Pair([1, 2], [1, 3]), sampled)


# --- a store of models: no training is repeated, whatever ended the audit, and the result is that of one audit


def counted(folder: Path, fails_at: int = 0) -> Callable[[Any, np.random.Generator], float]:
    """A training that writes a line for each model, and fails at one of them if the folder has no file `mended`."""
    lines, mended = str(folder / "models"), str(folder / "mended")

    def train(dataset: Any, rng: np.random.Generator) -> float:
        with open(lines, "a+", encoding="utf-8") as file:
            print(len(dataset), file=file)
            file.seek(0)
            if len(file.readlines()) == fails_at and not Path(mended).exists():
                raise RuntimeError("the machine is on fire")
        return float(len(dataset) + rng.normal())

    return train


def models_in(folder: Path) -> int:
    return len((folder / "models").read_text().splitlines())


def stored_audit(train: Any, models: int = 20, **changed: Any) -> AuditResult:
    return training.many_runs(
        train, PAIR, "gaussian(mu=1)", **{"models": models, "seed": 1, "confidence": SURE, **changed}
    )


def one_run(train: Any, folder: Path, canaries: int = 40, **changed: Any) -> AuditResult:
    given = {"independence": "canaries", "confidence": SURE, "seed": 1, **changed}
    return training.one_run(train, canaries, store=folder / "s.trials", **given)


def test_no_model_is_trained_twice(tmp_path: Path) -> None:
    train, store = counted(tmp_path, fails_at=15), tmp_path / "s.trials"
    with pytest.raises(MechanismError, match=r"the training raised RuntimeError.*on fire.* on run 5 of d0"):
        stored_audit(train, store=store)
    (tmp_path / "mended").touch()
    resumed = stored_audit(train, store=store, seed=None)
    assert models_in(tmp_path) == 16 + 10  # 4 probes, 10 models, and 2 of which one fails; then the other 10
    again = stored_audit(train, store=store)
    assert models_in(tmp_path) == 26
    whole = stored_audit(train)
    for result, kept in ((resumed, 7), (again, 12)):
        assert result.evidence == whole.evidence
        assert result.provenance.seed == 1
        assert re.match(rf"{kept} of the 12 runs per dataset come from a store of ", result.warnings[0])
        assert any(warning.startswith("1 earlier call with this store failed") for warning in result.warnings)
    assert not any("store" in warning for warning in whole.warnings)


def test_trainings_that_failed_and_were_repeated_are_named(tmp_path: Path) -> None:
    """Repeating trainings until they succeed selects models, so true claims may be refuted too often."""
    left = tmp_path / "left"
    left.write_text("2")

    def fails(included: Any, rng: np.random.Generator) -> Any:
        now = int(left.read_text())
        left.write_text(str(now - 1))
        return np.full(len(included), math.nan) if now > 0 else included + rng.normal(size=len(included))

    for _ in range(2):
        with pytest.raises(ValueError, match="all scores are nan"):
            one_run(fails, tmp_path)
    for _ in range(2):
        warnings = one_run(fails, tmp_path).warnings
        assert any(words.startswith("2 earlier calls with this store failed") for words in warnings)


@pytest.mark.parametrize(("error", "counts"), [(SystemExit, True), (KeyboardInterrupt, False)])
def test_a_training_that_exits_has_failed(tmp_path: Path, error: type[BaseException], counts: bool) -> None:
    fails = True

    def train(included: Any, rng: np.random.Generator) -> Any:
        if fails:
            raise error("diverged")
        return included + rng.normal(size=len(included))

    with pytest.raises(error):
        one_run(train, tmp_path)
    fails = False
    assert any("conditional on success" in words for words in one_run(train, tmp_path).warnings) == counts


def test_a_failure_before_the_first_model_is_kept_if_the_training_changes(tmp_path: Path) -> None:
    """A change of a counter in the training's closure changes its identity, and would hide the repetition."""
    for train, warns in ((counted(tmp_path, fails_at=1), True), (leaking_score, True)):
        folder = tmp_path / str(train is leaking_score)
        with pytest.raises(MechanismError, match=r"on fire.*  If the model diverges, return nan"):
            stored_audit(counted(tmp_path, fails_at=1), store=folder / "s.trials")
        (tmp_path / "models").unlink()
        (tmp_path / "mended").touch()
        warnings = stored_audit(train, store=folder / "s.trials").warnings
        assert any("conditional on success" in words for words in warnings) == warns
        for name in ("models", "mended"):
            (tmp_path / name).unlink(missing_ok=True)


def test_a_store_of_other_models_is_refused(tmp_path: Path) -> None:
    """A larger number of models would be a test after a look at the smaller one."""
    store = tmp_path / "s.trials"
    stored_audit(counted(tmp_path), store=store)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"models": 40}, r"models \(20 in the store, 40 now\)"),
        ({"seed": 2}, r"seed \(1 in the store, 2 now\)"),
        ({"train": lambda dataset, rng: rng.normal()}, "content of the mechanism "),
    ]
    for changed, words in changes:
        with pytest.raises(ValueError, match=rf"(?s)store: .*holds the trials of another audit.*{words}"):
            stored_audit(**{"train": counted(tmp_path), "store": store, **changed})
    mixed = stored_audit(counted(tmp_path), models=40, store=store, resume="anyway")
    assert any("the guarantee does not cover the mixture" in warning for warning in mixed.warnings)
    with pytest.raises(ValueError, match="needs store, the file with the trials to resume"):
        stored_audit(counted(tmp_path), resume="anyway")


def test_the_scores_of_one_run_are_kept(tmp_path: Path) -> None:
    lines = str(tmp_path / "models")

    def train(included: Any, rng: np.random.Generator) -> Any:
        with open(lines, "a", encoding="utf-8") as file:
            print(1, file=file)
        return included + rng.normal(size=len(included))

    first, again = (one_run(train, tmp_path, seed=None) for _ in range(2))
    assert first.evidence == again.evidence
    assert models_in(tmp_path) == 1
    assert again.warnings[0].startswith("the scores come from a store of ")
    with pytest.raises(ValueError, match=r"canaries \(40 in the store, 60 now\)"):
        one_run(train, tmp_path, 60, seed=None)


def leaking_score(dataset: Any, rng: np.random.Generator) -> float:
    return float(5 * len(dataset) + rng.normal())


def leaking(included: Any, rng: np.random.Generator) -> Any:
    return 5.0 * included + rng.normal(size=len(included))


def test_scores_of_one_run_stay_with_their_coins(tmp_path: Path) -> None:
    """The scores of one seed and the coins of another seed would hide a violation.  All seeds are fixed."""

    same: dict[str, Any] = {"train": leaking, "folder": tmp_path, "canaries": 60, "claim": "gaussian(mu=1)"}
    first = one_run(**same)
    assert first.violated
    for changed in ({"seed": 2}, {"canaries": 40}):
        with pytest.raises(ValueError, match=r"(?s)Even resume=anyway cannot continue the store, .* not comparable: "):
            one_run(**{**same, **changed}, resume="anyway")
    assert one_run(**same, seed=None).evidence == first.evidence


def test_the_assumption_is_chosen_before_the_scores_are_seen(tmp_path: Path) -> None:
    one_run(leaking, tmp_path, 60)
    with pytest.raises(ValueError, match=r"(?s)holds the trials of another audit.*independence \(canaries"):
        one_run(leaking, tmp_path, 60, independence=None)
    again = one_run(leaking, tmp_path, 60, independence=None, resume="anyway")
    assert any("independence (canaries before, None now)" in words for words in again.warnings)


def test_neither_scores_nor_stores_depend_on_the_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tasks are sent as to worker processes, but made in this process."""

    def elsewhere(function: Callable[[Any], Any], tasks: list[Any], jobs: int) -> list[Any]:
        assert jobs == 2
        return [function(pickle.loads(reduction.dumps(task))) for task in tasks]

    monkeypatch.setattr(sampler, "called_elsewhere", elsewhere)
    monkeypatch.setattr(sampler, "_WORTH_SENDING", 0.0)
    train, store, reports = counted(tmp_path), tmp_path / "s.trials", list[TrainingProgress]()
    alone, parallel = stored_audit(train, models=12), stored_audit(train, models=12, jobs=2, store=store)
    trained = models_in(tmp_path)
    resumed = stored_audit(train, models=12, store=store, progress=reports.append)
    assert alone.evidence == parallel.evidence == resumed.evidence
    assert [one.models for one in reports] == [12]
    assert models_in(tmp_path) == trained == 2 * (12 + 4)
