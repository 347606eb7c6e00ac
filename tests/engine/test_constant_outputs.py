"""Outputs that never vary are no evidence, unless the mechanism really has no noise.

Outputs that are drawn anew in each process are continuous where nothing else is said: two agree with probability 0.
All other tests here are decided by their seeds.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, Pair, Verdict, audit, batched, replay
from dpaudit.catalogue import BUILTIN
from dpaudit.claims import PureDP, parse_claim
from dpaudit.engine.collector import new_collector
from dpaudit.engine.constant_outputs import MAX_PROCESSES, _runs_needed, judged
from dpaudit.engine.seen import FEWEST, Seen
from dpaudit.inference.fixed import exact_binomial
from dpaudit.mechanisms import CommandMechanism
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.mechanisms.stateless import forgets, portable
from dpaudit.pairs.search import SearchPairs
from dpaudit.sampling.runs import Terms
from dpaudit.testing import AuditInconclusive, PrivacyViolation, assert_private

from ..unseeded import unseeded_generator

PAIR = Pair([0], [1])
CLAIM = "pure(epsilon=1)"
CACHE = "the mechanism has no noise, a fixed seed, or a cache"


def audited(mechanism: Any, pairs: Any = PAIR, **settings: Any) -> AuditResult:
    settings = {"trials": 100, "seed": 0, "confidence": 0.95} | settings
    return audit(mechanism, CLAIM, pairs, **settings)


def is_in_doubt(result: AuditResult, words: str = "") -> None:
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.certified
    assert (result.p_value, result.mu_lower) == (1.0, 0.0)
    assert result.e_value <= 1
    assert result.detectable.claim == ""
    text = " ".join(result.warnings)
    assert CACHE in text, text
    assert words in text, text


class Keeps:
    """A cache in an object."""

    def __init__(self) -> None:
        self.kept: dict[int, float] = {}

    def __call__(self, dataset: list[int], rng: np.random.Generator) -> float:
        return self.kept.setdefault(dataset[0], dataset[0] + float(rng.laplace()))


@functools.lru_cache
def _noisy(value: int) -> float:
    return value + float(unseeded_generator().laplace())


def cached_by_lru(dataset: list[int], rng: np.random.Generator) -> float:
    return _noisy(dataset[0])


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_a_cache_in_an_object_or_closure_is_inconclusive(method: str) -> None:
    is_in_doubt(audited(Keeps(), method=method), "may hold results of earlier runs")
    kept: dict[int, int] = {0: 0, 1: 1}  # as if randomised response had given the truth twice

    def release(dataset: list[int], rng: np.random.Generator) -> int:
        return kept.setdefault(dataset[0], int(rng.random() < 0.5))

    is_in_doubt(audited(release, method=method), "all 100 outputs of d0 were 0" if method == "fixed" else "d0 were 0")


def test_a_cache_that_was_filled_before_the_audit_is_inconclusive() -> None:
    mechanism = Keeps()
    audited(mechanism)
    is_in_doubt(audited(mechanism))


def test_a_cache_on_one_pair_only_of_two_is_inconclusive() -> None:
    is_in_doubt(audited(Keeps(), [PAIR, Pair([2], [3])]))


_IN_A_FILE = """
import contextlib
import functools
import pathlib
import sqlite3
import numpy as np
kept = {}
@functools.lru_cache
def noisy(value):
    return value + np.random.default_rng().laplace()
def cached(dataset, rng):
    return noisy(dataset[0])
NOISE = float(np.random.default_rng().laplace())
class Counts:
    def __init__(self, noise):
        self.noise, self.calls = noise, 0
    def __call__(self, dataset, rng):
        self.calls += 1
        return dataset[0] + self.noise
once = Counts(NOISE)
def shifted(dataset, rng):
    return dataset[0] + NOISE
def seldom(dataset, rng, noise=(NOISE,)):
    return dataset[0] + noise[0]
def on_disk(dataset, rng):
    place = pathlib.Path(__file__).with_name(f"kept {dataset}")
    if not place.exists():
        place.write_text(repr(dataset[0] + float(rng.laplace())))
    return float(place.read_text())
def in_a_database(dataset, rng):
    with contextlib.closing(sqlite3.connect(pathlib.Path(__file__).with_name("kept.db"))) as base, base:
        base.execute("create table if not exists kept (dataset text primary key, output real)")
        base.execute("insert or ignore into kept values (?, ?)", (str(dataset), dataset[0] + float(rng.laplace())))
        return base.execute("select output from kept where dataset = ?", (str(dataset),)).fetchone()[0]
TABLE = pathlib.Path(__file__).read_text()
def by_a_table(dataset, rng):
    import colorsys  # whose file is read now
    return dataset[0] + len(TABLE) / 7
seeded = Counts(float(np.random.default_rng(3).laplace()))
"""


@pytest.fixture
def in_a_file(tmp_path: Path) -> Any:
    (tmp_path / "cache_or_seed.py").write_text(_IN_A_FILE)
    return lambda name: PythonMechanism(f"cache_or_seed.py:{name}", folder=tmp_path)


@pytest.mark.parametrize("name", ["cached", "once"])
def test_a_cache_in_a_file_is_found_out_in_fresh_processes(in_a_file: Any, name: str) -> None:
    """Also noise that is drawn once on import.  Never fails by chance: no two processes draw the same Laplace noise."""
    is_in_doubt(audited(in_a_file(name)), "gave another output")


@pytest.mark.parametrize("name", ["cached", "once", "shifted", "seldom", "seeded"])
def test_fresh_processes_are_asked_where_a_file_may_draw_noise_on_import(in_a_file: Any, name: str) -> None:
    assert not forgets(in_a_file(name), [0], [1])


@pytest.mark.parametrize(("name", "words"), [("on_disk", "read the file"), ("in_a_database", "opened a database")])
def test_a_cache_on_disk_is_inconclusive_since_fresh_processes_read_it_too(
    in_a_file: Any, name: str, words: str
) -> None:
    """Two independent runs, however many processes are asked.  Never fails by chance: the seed is fixed."""
    is_in_doubt(audited(in_a_file(name)), f"a run in a new process {words}")


def test_a_file_that_is_read_when_the_mechanism_is_loaded_is_no_cache(in_a_file: Any) -> None:
    """At this confidence one process for each dataset is enough; the fixed seed below has two."""
    assert _runs_needed(PureDP(0.1), 1 - 0.7) == 1
    result = audit(in_a_file("by_a_table"), "pure(epsilon=0.1)", PAIR, trials=100, seed=0, confidence=0.7)
    assert result.violated


def test_a_cache_in_each_worker_process_is_inconclusive(tmp_path: Path) -> None:
    """With `jobs=2` the outputs have two or three values, one for each process."""
    slow = _IN_A_FILE.replace("    return noisy(", "    time.sleep(0.004)\n    return noisy(")
    (tmp_path / "cached_by_workers.py").write_text(f"import time\n{slow}")
    result = audited(PythonMechanism("cached_by_workers.py:cached", folder=tmp_path), jobs=2)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.certified


def test_few_values_of_workers_are_no_cache_if_they_vary_in_one_process() -> None:
    """Two outputs that are not whole, of code that may keep them.  Fails by chance < 1 in 10**6: 20 equal coins."""
    calls: list[int] = []

    def responses(dataset: list[int], rng: np.random.Generator) -> float:
        calls.append(1)
        return 0.3 + float(rng.random() < 0.2 + 0.6 * dataset[0])

    collector = new_collector(responses, [PAIR], "threshold", 400, 0, 2, Terms(), PureDP(1.0))
    assert len(collector.block(0, 200)) == 1
    found = judged(collector, {0: 1.0}, PureDP(1.0), 0.05)
    assert not found.doubts
    assert "runs in this process were assumed to be independent" in " ".join(found.hints)


def test_a_fixed_seed_in_an_object_of_a_file_is_a_violation_after_fresh_processes(in_a_file: Any) -> None:
    assert _runs_needed(PureDP(0.1), 1 - 0.9) == 2
    result = audit(in_a_file("seeded"), "pure(epsilon=0.1)", PAIR, trials=100, seed=0, confidence=0.9)
    assert result.violated
    assert result.certified
    assert "the mechanism has no noise or a fixed seed" in " ".join(result.warnings)


def test_a_program_is_started_anew_to_tell_a_cache_from_a_fixed_seed(tmp_path: Path) -> None:
    program = (
        "import json, random, sys\n"
        "noise = random.Random(SEED).gauss(0, 1)\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line)\n"
        "    print(json.dumps({'outputs': [q['dataset'][0] + noise] * q['n']}), flush=True)\n"
    )
    for name, seed in (("once", ""), ("seeded", "3")):
        (tmp_path / f"{name}.py").write_text(program.replace("SEED", seed))
    with CommandMechanism([sys.executable, "once.py"], cwd=tmp_path) as mechanism:
        is_in_doubt(audited(mechanism), "gave another output")
    with CommandMechanism([sys.executable, "seeded.py"], cwd=tmp_path) as mechanism:
        assert audited(mechanism).violated


def a_fixed_seed(dataset: list[int], rng: np.random.Generator) -> float:
    return dataset[0] + float(np.random.default_rng(42).laplace())


@batched
def no_noise(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
    return np.full(n, float(dataset[0]))


@dataclass(frozen=True)
class Frozen:
    """A mechanism that can keep nothing."""

    scale: float

    def __call__(self, dataset: list[int], rng: np.random.Generator) -> tuple[float, ...]:
        return (dataset[0] * self.scale, self.scale)


@pytest.mark.parametrize("mechanism", [a_fixed_seed, no_noise, Frozen(0.3)], ids=["seed", "no noise", "object"])
@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_no_noise_or_a_fixed_seed_is_a_violation_that_names_its_cause(mechanism: Any, method: str) -> None:
    result = audited(mechanism, method=method)
    assert result.violated
    assert result.certified
    assert f"all {result.trials_used:,} outputs of d0 were" in " ".join(result.warnings)
    assert "the mechanism has no noise or a fixed seed" in " ".join(result.warnings)


def test_the_builtin_fixed_seed_is_a_violation_at_once() -> None:
    mechanism = BUILTIN["fixed_seed"]()
    result = audited(mechanism, list(SearchPairs(**mechanism.inputs)), trials=300)
    assert result.violated
    assert result.elapsed_s < 30  # an order of magnitude less: no process is started


def test_an_event_that_one_dataset_never_shows_is_a_violation_without_doubt() -> None:
    """Outputs that are constant on d0 alone, and whole numbers, of an object that could keep outputs.

    Fails by chance < 1 in 10**6: half of 300 outputs are 1 on d1 and none on d0.
    """

    class Counts(Keeps):
        def __call__(self, dataset: list[int], rng: np.random.Generator) -> float:
            return float(dataset[0] and rng.random() < 0.5)

    result = audited(Counts(), trials=300)
    assert result.violated
    assert not any("cache" in words for words in result.warnings)


def test_a_replay_of_a_cache_does_not_reproduce(in_a_file: Any) -> None:
    violation = audited(a_fixed_seed)
    found = replay(violation, in_a_file("cached"), PAIR, trials=200, seed=1)
    assert not found.refuted
    assert found.p_value == 1.0
    assert CACHE in " ".join(found.warnings)
    assert replay(violation, a_fixed_seed, PAIR, trials=200, seed=1).refuted


def test_as_many_fresh_processes_as_the_exact_test_needs() -> None:
    """Fewer would call true claims violated: a cached randomised response agrees with itself in most processes."""
    for claim, significance in ((PureDP(1.0), 0.05), (PureDP(1.0), 1e-3), (parse_claim("gaussian(mu=1)"), 0.01)):
        k = _runs_needed(claim, significance)
        assert (
            exact_binomial.p_value(claim, 0, k, k, k)
            <= significance
            < exact_binomial.p_value(claim, 0, k - 1, k - 1, k - 1)
        )
        alpha = float(1 / (1 + np.e))  # a true claim of epsilon = 1 may agree with this probability at least
        if claim == PureDP(1.0):
            assert (1 - alpha) ** (2 * k) <= significance
    assert _runs_needed(PureDP(9.0), 0.01) == 0
    assert MAX_PROCESSES >= 48  # epsilon = 3 at 99 %


# Nothing to be seen: these once ended "no violation found, one as large as 1.15 would have been found".


@pytest.mark.parametrize("method", ["sequential", "fixed"])
@pytest.mark.parametrize("value", [0.5, None, [], {}, "none", float("nan")], ids=repr)
def test_constant_outputs_are_inconclusive(value: Any, method: str) -> None:
    result = audited(lambda dataset, rng: (value,), method=method)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.certified
    assert result.detectable.claim == ""
    assert any(words.startswith("every one of the 200 outputs was") for words in result.warnings)


def test_constant_outputs_on_all_pairs_are_inconclusive() -> None:
    result = audited(lambda dataset, rng: dataset[0] // 2, [Pair([0], [1]), Pair([2], [3])])
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "never varied on any pair" in " ".join(result.warnings)


def test_outputs_that_vary_are_not_called_constant() -> None:
    result = audited(lambda dataset, rng: int(rng.random() < 0.02), trials=300)
    assert result.verdict is Verdict.NO_VIOLATION


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_equal_datasets_are_inconclusive_before_anything_runs(method: str) -> None:
    def never(dataset: Any, rng: np.random.Generator) -> float:
        raise AssertionError("it ran")

    for d0, d1 in (([1, 2], [1, 2]), (np.arange(5.0), np.arange(5.0)), ({"a": float("nan")}, {"a": float("nan")})):
        result = audited(never, Pair(d0, d1), method=method)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert not result.certified
        assert result.trials_used == 0
        assert result.detectable.claim == ""
        assert "d0 and d1 are equal" in result.warnings[0]
        str(result)


def test_an_equal_pair_among_others_is_left_out_with_a_warning() -> None:
    result = audited(a_fixed_seed, [Pair([1], [1], label="same"), PAIR])
    assert result.violated
    assert len(result.pairs) == 1
    assert "d0 and d1 are equal" in result.warnings[0]
    assert "(pair same)" in result.warnings[0]


def test_datasets_that_only_look_alike_are_audited() -> None:
    """numpy shortens both to the same text."""
    a, b = np.zeros(5000), np.zeros(5000)
    b[2500] = 1
    assert repr(a) == repr(b)
    assert audited(lambda dataset, rng: float(dataset[2500]), Pair(a, b)).violated


def test_assert_private_is_inconclusive_about_constants_caches_and_equal_datasets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # as outside of pytest
    for mechanism, pair, words in (
        (lambda dataset, rng: 0.5, PAIR, "every one of the"),
        (Keeps(), PAIR, CACHE),
        (Keeps(), Pair([1], [1]), "d0 and d1 are equal"),
    ):
        with pytest.raises(AuditInconclusive, match=words):
            assert_private(mechanism, CLAIM, pair, trials=200, seed=0, report=tmp_path)
    with pytest.raises(PrivacyViolation):
        assert_private(a_fixed_seed, CLAIM, PAIR, seed=0, report=tmp_path)


def test_the_command_line_exits_with_3_for_equal_datasets_and_constants(command: Any, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def same(dataset, rng):\n    return 1\n")
    config = (
        "name: n\nclaim: pure(epsilon=1)\nmechanism: {python: own.py:same}\ntrials: 100\npairs: [{d0: [D], d1: [1]}]\n"
    )
    for d0, words in (("1", "d0 and d1 are equal"), ("0", "every one of the 200 outputs was 1")):
        (tmp_path / "c.yaml").write_text(config.replace("D]", f"{d0}]"))
        done = command("run", "c.yaml", "--no-pdf")
        assert done.exit_code == 3, done.stderr
        assert words in done.stderr


# Which code can keep nothing


def _reads_a_table(dataset: list[int], rng: np.random.Generator) -> float:
    return _TABLE[dataset[0]] * 0.5


def _writes_a_table(dataset: list[int], rng: np.random.Generator) -> float:
    if dataset[0] not in _TABLE:
        _TABLE[dataset[0]] = 1
    return _TABLE[dataset[0]] * 0.5


def _writes_a_global(dataset: list[int], rng: np.random.Generator) -> float:
    global _KEPT
    _KEPT = _KEPT or float(rng.normal())
    return _KEPT


def _keeps_on_itself(dataset: list[int], rng: np.random.Generator) -> float:
    _keeps_on_itself.kept = 1.0  # type: ignore[attr-defined]
    return 1.0


def _keeps_in_a_default(dataset: list[int], rng: np.random.Generator, kept: dict[int, float] = {}) -> float:  # noqa: B006
    return kept.setdefault(dataset[0], float(rng.normal()))


_TABLE = {0: 1, 1: 2}
_KEPT = 0.0


def _nonlocal() -> Any:
    kept = 0.0

    def release(dataset: list[int], rng: np.random.Generator) -> float:
        nonlocal kept
        kept = kept or float(rng.normal())
        return kept

    return release


@pytest.mark.parametrize(
    ("mechanism", "nothing"),
    [
        (a_fixed_seed, True),
        (no_noise, True),
        (Frozen(1.0), True),
        (BUILTIN["fixed_seed"](), True),
        (_reads_a_table, True),
        (_writes_a_table, False),
        (_writes_a_global, False),
        (_keeps_on_itself, False),
        (_keeps_in_a_default, False),
        (_nonlocal(), False),
        (cached_by_lru, False),
        (Keeps(), False),
    ],
)
def test_code_that_may_keep_outputs_is_told_from_code_that_cannot(mechanism: Any, nothing: bool) -> None:
    assert forgets(mechanism, [0], [1]) is nothing
    if mechanism is not cached_by_lru:  # a new process imports its module anew, with an empty cache
        assert portable(mechanism) is nothing


def test_nothing_is_said_of_a_few_outputs() -> None:
    result = audited(no_noise, trials=FEWEST - 2)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not any("cache" in words or "every one" in words for words in result.warnings)


@pytest.mark.chance
def test_a_cache_of_one_part_of_the_output_is_inconclusive_and_parts_without_noise_are_not() -> None:
    """The part that is kept has one independent run of each dataset.  The claim is kept otherwise.

    The kept numbers agree with probability 0; all else is decided by the seed.
    """

    def keeps(shape: Any) -> Any:
        kept: dict[int, float] = {}
        noise = unseeded_generator()

        def release(dataset: list[int], rng: np.random.Generator) -> Any:
            if dataset[0] not in kept:
                kept[dataset[0]] = dataset[0] + float(noise.laplace(scale=2))
            return shape(kept[dataset[0]], dataset[0] + float(rng.laplace(scale=2)))

        return release

    for shape in (lambda a, b: [b, a], lambda a, b: {"sum": [a], "mean": b}, lambda a, b: np.array([b, a])):
        for method in ("sequential", "fixed"):
            result = audited(keeps(shape), attacks="logistic", method=method)
            is_in_doubt(result)
            assert "no noise" in " ".join(result.warnings)


def _exact_part(dataset: list[int], rng: np.random.Generator) -> dict[str, float]:
    return {"epsilon": 0.5, "mean": dataset[0] + 0.25, "noisy": float(rng.normal())}


def _setting_part(dataset: list[int], rng: np.random.Generator) -> dict[str, float]:
    return {"epsilon": 0.5, "noisy": 9 * dataset[0] + float(rng.normal())}


def test_a_part_without_noise_and_parts_that_are_equal_leave_a_violation_a_violation() -> None:
    """Decided by the seed."""
    exact = audited(_exact_part, attacks="logistic", trials=300)
    assert exact.violated
    assert any("output['mean'] was 0.25 in all" in words for words in exact.warnings)
    setting = audited(_setting_part, attacks="logistic", trials=300)
    assert setting.violated
    assert not setting.warnings


def test_the_same_parts_are_found_constant_one_by_one_and_in_arrays() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 4))
    rows[:, 1], rows[:, 3] = 0.5, np.nan
    for outputs in (rows, list(rows), [list(row) for row in rows], [tuple(row.tolist()) for row in rows]):
        seen = Seen()
        for start in range(0, 30, 10):
            seen.add(outputs[start : start + 10])
        assert not seen.constant
        assert list(seen.constants) == [(1,), (3,)]
    seen.add([(1.0,), "text"])
    assert seen.constants == {}
