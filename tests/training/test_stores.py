"""A store of models: no training is repeated, whatever ended the audit, and the result is that of one audit."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib.externals.loky.backend import reduction

from dpaudit import AuditResult, MechanismError, training
from dpaudit.running import sampler
from dpaudit.training.models import TrainingProgress

from .test_designs import PAIR, SURE


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


def audited(train: Any, models: int = 20, **changed: Any) -> AuditResult:
    return training.many_runs(
        train, PAIR, "gaussian(mu=1)", **{"models": models, "seed": 1, "confidence": SURE, **changed}
    )


def one_run(train: Any, folder: Path, canaries: int = 40, **changed: Any) -> AuditResult:
    given = {"independence": "canaries", "confidence": SURE, "seed": 1, **changed}
    return training.one_run(train, canaries, store=folder / "s.trials", **given)


def test_no_model_is_trained_twice(tmp_path: Path) -> None:
    train, store = counted(tmp_path, fails_at=15), tmp_path / "s.trials"
    with pytest.raises(MechanismError, match=r"the training raised RuntimeError.*on fire.* on run 5 of d0"):
        audited(train, store=store)
    (tmp_path / "mended").touch()
    resumed = audited(train, store=store, seed=None)
    assert models_in(tmp_path) == 16 + 10  # 4 probes, 10 models, and 2 of which one fails; then the other 10
    again = audited(train, store=store)
    assert models_in(tmp_path) == 26
    whole = audited(train)
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
            audited(counted(tmp_path, fails_at=1), store=folder / "s.trials")
        (tmp_path / "models").unlink()
        (tmp_path / "mended").touch()
        warnings = audited(train, store=folder / "s.trials").warnings
        assert any("conditional on success" in words for words in warnings) == warns
        for name in ("models", "mended"):
            (tmp_path / name).unlink(missing_ok=True)


def test_a_store_of_other_models_is_refused(tmp_path: Path) -> None:
    """A larger number of models would be a test after a look at the smaller one."""
    store = tmp_path / "s.trials"
    audited(counted(tmp_path), store=store)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"models": 40}, r"models \(20 in the store, 40 now\)"),
        ({"seed": 2}, r"seed \(1 in the store, 2 now\)"),
        ({"train": lambda dataset, rng: rng.normal()}, "content of the mechanism "),
    ]
    for changed, words in changes:
        with pytest.raises(ValueError, match=rf"(?s)store: .*holds the trials of another audit.*{words}"):
            audited(**{"train": counted(tmp_path), "store": store, **changed})
    mixed = audited(counted(tmp_path), models=40, store=store, resume="anyway")
    assert any("the guarantee does not cover the mixture" in warning for warning in mixed.warnings)
    with pytest.raises(ValueError, match="needs store, the file with the trials to resume"):
        audited(counted(tmp_path), resume="anyway")


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
    alone, parallel = audited(train, models=12), audited(train, models=12, jobs=2, store=store)
    trained = models_in(tmp_path)
    resumed = audited(train, models=12, store=store, progress=reports.append)
    assert alone.evidence == parallel.evidence == resumed.evidence
    assert [one.models for one in reports] == [12]
    assert models_in(tmp_path) == trained == 2 * (12 + 4)
