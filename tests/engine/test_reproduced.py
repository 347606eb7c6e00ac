"""A violation stands if new processes repeat it, but not if it rests on noise that was drawn once.

If the noise comes from the given rng, the seed decides everything.  Other noise is continuous, and each process draws
it independently, so two processes agree with probability 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import Pair, PureDP, audit, replay
from dpaudit.engine import constant_outputs as constant
from dpaudit.engine import reproduced
from dpaudit.engine.collector import new_collector
from dpaudit.engine.judgement import Judgement
from dpaudit.mechanisms.held import fractions, held_numbers
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.sampling import fresh_process as fresh
from dpaudit.sampling.runs import ExecutionSettings

from .reproducing import ONCE, PAIR, audited, is_in_doubt


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a slow machine from reducing the number of processes, or of runs in this process.

    Four new processes of step 3 are enough here: the allowed level is 1e-7.  Four unseen values after 4,000 outputs,
    among which at most 50 values are rare, have a p-value below 5e-8.  `on_a_grid` has 50 rare values with probability
    below 1e-9.  At this level, an honest mechanism is doubted with probability at most 1e-7 for each dataset.
    """
    monkeypatch.setattr(reproduced, "MAX_SECONDS", 3600.0)
    monkeypatch.setattr(reproduced, "_SECONDS", 600.0)
    monkeypatch.setattr(reproduced, "_MAX_KNOWN", 4000)
    monkeypatch.setattr(reproduced, "_SURELY", 1e-7)
    monkeypatch.setattr(reproduced, "NEWCOMERS", 4)


_IN_A_FILE = """
import functools
import numpy as np

unseeded = np.random.default_rng()

class Pool:  # each value is drawn when it is first selected
    def __init__(self, size):
        self.size, self.kept = size, {}
    def __call__(self, dataset, rng):
        slot = dataset[0], int(rng.integers(self.size))
        if slot not in self.kept:
            self.kept[slot] = dataset[0] + float(rng.laplace())
        return self.kept[slot]
pool = Pool(5)

class Jitter:
    def __init__(self, scale):
        self.scale, self.kept = scale, {}
    def __call__(self, dataset, rng):
        return self.kept.setdefault(dataset[0], dataset[0] + float(rng.laplace())) + self.scale * float(rng.normal())
jitter = Jitter(1e-6)

TABLE = unseeded.laplace(size=10)
def table(dataset, rng):
    return float(dataset[0] + TABLE[rng.integers(10)])

@functools.lru_cache
def noisy(value):
    return value + float(unseeded.laplace())
def cached_with_jitter(dataset, rng):
    return noisy(dataset[0]) + 1e-3 * float(rng.normal())

class Own:  # the mechanisms from here on keep no noise, and violate the claim
    def __init__(self):
        self.rng, self.scale, self.calls, self.last, self.all = np.random.default_rng(), 0.37, 0, 0.0, []
    def __call__(self, dataset, rng):
        self.calls += 1
        self.last = dataset[0] + self.scale * float(self.rng.laplace())
        return self.last
own = Own()

class History(Own):
    def __call__(self, dataset, rng):
        self.all.append(super().__call__(dataset, rng))
        return self.all[-1]
history = History()

class Sometimes(Jitter):  # most runs reuse the noise, and the others draw fresh noise
    def __call__(self, dataset, rng):
        noisy = dataset[0] + float(rng.laplace())
        return self.kept.setdefault(dataset[0], noisy) if rng.random() < 0.6 else noisy
sometimes = Sometimes(0)

class Whole(Jitter):  # whole noise, with jitter from so many numbers that few repeat
    def __call__(self, dataset, rng):
        kept = self.kept.setdefault(dataset[0], dataset[0] + int(rng.integers(10**9)))
        return kept + int(rng.integers(10**4))
whole = Whole(0)

@functools.lru_cache
def exact(value):
    return value + 0.123456789
def cached_truth(dataset, rng):
    return exact(dataset[0]) + 0.37 * float(unseeded.laplace())

def on_a_grid(dataset, rng):
    return float(dataset[0] + 0.1 * (unseeded.geometric(0.25) - unseeded.geometric(0.25)))

class Counts:
    calls = 0
    def __call__(self, dataset, rng):
        self.calls += 1
        return round(dataset[0] + 0.37 * float(rng.laplace()), 2)
quantised = Counts()
"""


@pytest.fixture
def in_a_file(tmp_path: Path) -> Any:
    (tmp_path / "kept_or_drawn.py").write_text(_IN_A_FILE)
    return lambda name: PythonMechanism(f"kept_or_drawn.py:{name}", folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "words"), [("pool", "only 5 different values"), ("jitter", "holds different numbers in each new process")]
)
def test_kept_noise_does_not_refute_the_claim_in_new_processes(in_a_file: Any, name: str, words: str) -> None:
    """The claim is true of the first run in a process.  The seed decides."""
    result = audited(in_a_file(name))
    is_in_doubt(result, words)
    assert "these counts do not refute the claim" in " ".join(result.warnings)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("table", "only 10 different values"),
        ("cached_with_jitter", "holds different numbers"),
        ("sometimes", "different values"),
        ("whole", "holds different numbers"),
    ],
)
def test_noise_that_each_process_draws_once_is_inconclusive(
    in_a_file: Any, name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The allowed processes are too few to test the claim, so nothing is left to chance."""
    monkeypatch.setattr(reproduced, "_MAX_CONFIRMING", 2)
    is_in_doubt(audited(in_a_file(name), confidence=0.999999), words)


@pytest.mark.chance
@pytest.mark.parametrize("name", ["own", "history", "cached_truth", "on_a_grid", "quantised"])
def test_a_broken_mechanism_that_keeps_no_noise_stays_a_violation(in_a_file: Any, name: str) -> None:
    """The state is a generator, counter, history, last output or true statistic; or the outputs lie on a grid.

    Fails by chance < 1 in 10**6: unseen values are too frequent with probability 1e-7 for each dataset.  The
    true epsilon is at least 2.3, the claim is 1, and there are 1,000 trials.
    """
    result = audited(in_a_file(name))
    assert result.violated, result.warnings
    assert result.bounds_valid
    assert not result.warnings  # nothing was left to step 4, which has less power


def test_a_violation_that_new_processes_confirm_stands(in_a_file: Any) -> None:
    """The mechanism keeps noise, but the claim is false: d0 and d1 differ by a thousand.  The seed decides."""
    mechanism = in_a_file("jitter")
    result = audit(mechanism, "pure(epsilon=1)", Pair([0], [1000]), trials=300, seed=0, confidence=0.8)
    assert result.violated
    assert "new processes refute the claim as well" in " ".join(result.warnings)
    words = " ".join(result.warnings)
    assert "bounds apply to the runs in this process, if these runs are independent" in words


def test_a_replay_of_kept_noise_is_not_valid(in_a_file: Any) -> None:
    """The seed decides."""
    violation = audited(lambda dataset, rng: dataset[0] + 0.2 * float(rng.laplace()))
    assert violation.violated
    found = replay(violation, in_a_file("jitter"), PAIR, trials=200, seed=1)
    assert not found.refuted
    assert ONCE in " ".join(found.warnings)


class _Kept:
    """A mechanism that cannot be sent to another process without its state."""

    def __init__(self, size: int, jitter: float) -> None:
        self.size, self.jitter = size, jitter
        self.kept: dict[tuple[int, int], float] = {}

    def __call__(self, dataset: list[int], rng: np.random.Generator) -> float:
        slot = dataset[0], int(rng.integers(self.size))
        return self.kept.setdefault(slot, dataset[0] + float(rng.laplace())) + self.jitter * float(rng.normal())


@pytest.mark.parametrize(
    ("size", "jitter", "words"),
    [
        (3, 0.0, "they lie on no grid"),
        (50, 0.0, "they lie on no grid"),
        (1, 1e-6, "has kept numbers since the audit began"),
    ],
)
def test_kept_noise_that_cannot_be_sent_is_inconclusive(size: int, jitter: float, words: str) -> None:
    """The seed decides."""
    is_in_doubt(audited(_Kept(size, jitter)), words)


def test_an_object_with_a_counter_or_a_history_stays_a_violation() -> None:
    """The object cannot be sent to a new process, but nothing suggests kept noise.  The seed decides."""

    class Counts:
        def __init__(self) -> None:
            self.calls, self.all, self.rng = 0, [0.5], np.random.default_rng(0)

        def __call__(self, dataset: list[int], rng: np.random.Generator) -> float:
            self.calls += 1
            self.all.append(dataset[0] + 0.3 * float(self.rng.laplace()))
            return self.all[-1]

    result = audited(Counts())
    assert result.violated
    assert "runs in this process were assumed to be independent" in " ".join(result.warnings)


def test_code_that_keeps_nothing_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: Any, **__: Any) -> Any:
        raise AssertionError("a process was started")

    monkeypatch.setattr(fresh, "_answer", started)
    assert audited(lambda dataset, rng: dataset[0] + 0.3 * float(rng.laplace())).violated
    assert audited(lambda dataset, rng: round(dataset[0] + 0.3 * float(rng.laplace()), 1)).violated


def test_held_numbers_are_found_wherever_they_are_kept(in_a_file: Any) -> None:
    mechanism, rng = in_a_file("jitter"), np.random.default_rng(0)
    before = held_numbers(mechanism)
    output = mechanism.loaded([3], rng)
    new = held_numbers(mechanism) - before
    assert len(fractions(new)) == 1
    assert abs(output - min(fractions(new))) < 1e-4
    assert len(fractions(held_numbers(in_a_file("table")))) >= 10
    exact = in_a_file("cached_truth")
    exact.loaded([7], rng)
    assert 7.123456789 in held_numbers(exact)
    kept: list[Any] = []

    def closure(dataset: list[int], rng: np.random.Generator) -> int:
        kept.append((0.25, {"a": np.array([0.75])}))
        return len(kept)

    closure([0], rng)
    assert fractions(held_numbers(closure)) == {0.25, 0.75}


def test_a_violation_that_no_pair_shows_alone_is_asked_about_on_the_strongest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the wealth is shared by all pairs, so the claim may be refuted while each pair's wealth is below 1."""
    asked: list[int] = []

    def reproduced(collector: Any, pair: int, *_: Any) -> Judgement:
        asked.append(pair)
        return Judgement()

    monkeypatch.setattr(constant, "reproduced", reproduced)
    claim = PureDP(1.0).symmetrized()
    collector = new_collector(_Kept(1, 0.1), [PAIR, Pair([0], [2])], "logistic", 100, 0, 1, ExecutionSettings(), claim)
    constant.judged(collector, {0: -2.0, 1: -0.1}, claim, 0.01, accused=False)
    assert asked == []
    constant.judged(collector, {0: -2.0, 1: -0.1}, claim, 0.01)
    assert asked == [1]
