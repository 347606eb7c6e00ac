"""Limits of memory: the operating system enforces them, and dpaudit goes on with a message that says what to do."""

import errno
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

from dpaudit import AuditResult, MechanismError, Pair, audit, batched
from dpaudit.result.values import Verdict
from dpaudit.running import CommandMechanism
from dpaudit.running.foreign import memory_limited
from dpaudit.running.fresh_process import NotPossible, made_in_new_processes
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.outcomes import about_memory
from dpaudit.running.runs import Dataset, ExecutionSettings, Runs
from dpaudit.settings import check_memory, memory_text

from .programs import isolated, script

PAIR = Pair([0], [1])
LIMIT = 500_000_000  # bytes; the mechanisms below ask for three times as much
BIG = 1_500_000_000
ADVICE = r"the memory is limited to 500 MB: raise `memory`, or let the mechanism use less"
CONFIG = """\
audits:
- {name: greedy, claim: &c gaussian(mu=1), mechanism: {python: m.py:release}, pairs: &p [{d0: [0], d1: [1]}],
   memory: 500 MB, trials: 20}
- {name: modest, claim: *c, mechanism: {builtin: gaussian, params: {sigma: 1.0}}, pairs: *p, trials: 100,
   attacks: median_clipped}
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce RLIMIT_AS")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def greedy(dataset: Any, rng: np.random.Generator) -> float:
    return float(len(bytearray(BIG)))


def modest(dataset: Any, rng: np.random.Generator) -> float:
    return float(dataset[0] + rng.normal(0, 1.5))


def greedy_later(dataset: Any, rng: np.random.Generator) -> float:
    noise = float(rng.normal(0, 1.5))
    return dataset[0] + noise if noise < 2 else float(len(bytearray(BIG)))


@batched
def greedy_batch(dataset: Any, n: int, rng: np.random.Generator) -> Any:
    return np.empty((BIG // 8,))[:n]


def audited(mechanism: Any, **settings: Any) -> AuditResult:
    chosen: dict[str, Any] = {"trials": 40, "seed": 0, "attacks": "median_clipped", "memory": LIMIT} | settings
    return audit(mechanism, "gaussian(mu=1)", PAIR, **chosen)


@linux
@pytest.mark.parametrize(("mechanism", "jobs"), [(greedy, 1), (greedy_batch, 1)])
def test_a_run_beyond_the_limit_ends_the_audit_with_the_limit_in_its_message(mechanism: Any, jobs: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(MechanismError, match=rf"raised .*MemoryError.*{ADVICE}"):
        audited(mechanism, jobs=jobs)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert len(np.empty(BIG // 8)) == BIG // 8  # this process has no limit


@linux
@pytest.mark.parametrize("failures", ["outcome", "retry"])
def test_what_was_measured_before_is_kept_and_the_run_is_no_outcome(failures: Any) -> None:
    """With a fresh seed, none of 400 runs exceeds 2 with probability < 10**-20: at least 0.09 of them do."""
    result = audited(greedy_later, trials=200, failures=failures)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "the memory is limited to 500 MB" in " ".join(map(str, result.warnings))
    assert result.trials_used > 0


@linux
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_result_does_not_depend_on_the_limit(jobs: int) -> None:
    limited, free = audited(modest, jobs=jobs, trials=60), audited(modest, memory=None, trials=60)
    assert limited.e_value == free.e_value
    assert limited.provenance.outputs == free.provenance.outputs


@pytest.mark.slow
@linux
def test_a_worker_that_dies_at_the_limit_ends_only_its_audit() -> None:
    def abort(dataset: Any, rng: np.random.Generator) -> float:
        try:
            bytearray(BIG)
        except MemoryError:  # as compiled code that does not handle a failed allocation
            os.abort()
        return 0.0

    with pytest.raises(MechanismError, match=f"(?s)could not be run in other processes.*SIGABRT.*{ADVICE}"):
        audited(abort)
    assert audited(modest).verdict is not Verdict.INCONCLUSIVE


@linux
def test_loading_a_mechanism_is_limited_too(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(f"x = bytearray({BIG})\ndef release(dataset, rng): return 0.0\n")
    mechanism = PythonMechanism("m.py:release", folder=tmp_path, memory=LIMIT)
    with pytest.raises(MechanismError, match=f"importing m.py raised MemoryError.*{ADVICE}"):
        _ = mechanism.loaded


@linux
def test_a_program_beyond_the_limit_ends_with_the_limit_in_its_message(tmp_path: Path) -> None:
    mechanism = script(tmp_path, f"x = bytearray({BIG}); print(json.dumps({{'outputs': [1.0] * n}}))", memory="500 MB")
    with pytest.raises(MechanismError, match=rf"ended with exit status 1 while .*{ADVICE}(.*\n)*.*MemoryError"):
        mechanism.sample([0], 2, rng())
    small = script(tmp_path, "print(json.dumps({'outputs': [1.0] * n}))", memory="500 MB")
    assert small.sample([0], 2, rng()) == [1.0, 1.0]


@linux
def test_the_limit_of_audit_applies_to_programs(tmp_path: Path) -> None:
    with pytest.raises(MechanismError, match=ADVICE):
        audited(script(tmp_path, f"x = bytearray({BIG}); print(json.dumps({{'outputs': [1.0] * n}}))"))


@linux
def test_an_isolated_mechanism_is_limited_when_it_is_loaded_and_in_runs(tmp_path: Path) -> None:
    code = f"def release(dataset, rng): return len(bytearray({BIG}))\ndef other(dataset, rng): return 1.0"
    with pytest.raises(MechanismError, match=rf"raised MemoryError(.*\n)*.*MemoryError; {ADVICE}"):
        isolated(tmp_path, code, requires=[], memory=LIMIT).sample([0], 2, rng())
    assert isolated(tmp_path, code, "other", requires=[], memory=LIMIT).sample([0], 2, rng()) == [1.0, 1.0]
    with pytest.raises(MechanismError, match=rf"raised MemoryError(.*\n)*.*MemoryError; {ADVICE}"):
        isolated(tmp_path, f"x = bytearray({BIG})\n" + code, requires=[], memory=LIMIT).start()


@pytest.mark.usefixtures("two")
@linux
def test_new_processes_that_confirm_a_violation_have_the_limit(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(f"def release(dataset, rng): return len(bytearray({BIG}))\n")
    mechanism = PythonMechanism("m.py:release", folder=tmp_path)
    runs = Runs(mechanism, Dataset([0]), 0, 0, 0, 0, 1, ExecutionSettings(memory=LIMIT))
    with pytest.raises(NotPossible, match=f"raised MemoryError .{ADVICE}"):
        list(made_in_new_processes([(runs, runs)], since=0.0))


@linux
def test_a_config_has_a_limit_and_the_other_audits_go_on(command: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(f"def release(dataset, rng): return len(bytearray({BIG}))\n")
    (tmp_path / "c.yaml").write_text(CONFIG)
    done = command("run", "c.yaml", "-o", "out", "--no-pdf", "--format", "json")
    assert done.exit_code == 3
    greedy, modest = json.loads(done.stdout)
    assert "the memory is limited to 500 MB" in greedy["reason"]
    assert modest["verdict"] == "no violation found"


@linux
def test_the_shell_that_sets_the_limit_does_not_interpret_the_words(tmp_path: Path) -> None:
    words = ["$(touch pwned)", "; touch pwned", "`touch pwned`", "a b", "*", "", "-c", "'\""]
    answer = "print(json.dumps({'outputs': [sys.argv[1:]] * n}))"
    mechanism = script(tmp_path, answer)
    limited = CommandMechanism([*mechanism.command, *words], cwd=tmp_path, memory=LIMIT)
    assert limited.sample([0], 1, rng()) == [words]
    assert not (tmp_path / "pwned").exists()


def test_other_systems_refuse_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    for mechanism in (modest, script(tmp_path, ""), isolated(tmp_path, "", requires=[])):
        with pytest.raises(MechanismError, match=r"memory limits need Linux .*\(darwin\).*: remove `memory`"):
            audited(mechanism)
    with pytest.raises(MechanismError, match="need Linux"), memory_limited(LIMIT):
        pass
    assert audited(modest, memory=None).trials_used == 40


@pytest.mark.parametrize(
    ("given", "size"),
    [
        (None, None), ("2 GB", 2 * 10**9), ("512MB", 512 * 10**6), ("1.5 GiB", 3 * 2**29), ("100000 kB", 10**8),
        ("64 mib", 2**26), (" 1 TB ", 10**12), ("20000000 B", 2 * 10**7), (10**9, 10**9),
    ],
)  # fmt: skip
def test_an_amount_of_memory_is_read(given: object, size: int | None) -> None:
    assert check_memory(given) == size


@pytest.mark.parametrize(
    "given",
    [
        "", "2", "2 G", "-2 GB", "1e3 MB", "2 GB; x",
    ],
)  # fmt: skip
def test_other_texts_are_refused(given: str) -> None:
    with pytest.raises(ValueError, match='memory must be text such as "2 GB" or "512 MB", or a whole number of bytes'):
        check_memory(given)


@pytest.mark.parametrize("given", [0, 2**24 - 1, 2**50 + 1, "1 MB"])
def test_a_limit_out_of_range_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="memory must be from 16 MiB to 1024 TiB, got"):
        check_memory(given)


def test_an_amount_is_shown_in_its_largest_whole_unit() -> None:
    shown = [memory_text(size) for size in (2 * 10**9, 512 * 10**6, 2**24, 3 * 2**29, 10**9 + 1)]
    assert shown == ["2 GB", "512 MB", "16 MiB", "1536 MiB", "1,000,000,001 bytes"]


def test_an_error_that_memory_caused_is_recognised_whatever_its_class() -> None:
    """Otherwise `failures="outcome"` would count it, although it depends on what earlier runs left of the limit."""

    def caught(raises: Callable[[], None]) -> BaseException:
        try:
            raises()
        except Exception as error:
            return error
        raise AssertionError

    def wraps() -> None:
        try:
            raise MemoryError
        except MemoryError:
            raise KeyError("cache") from None

    def of_torch() -> None:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")

    def of_the_system() -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate")

    def of_another_kind() -> None:
        raise RuntimeError("the allocation of budgets is wrong")

    assert all(about_memory(caught(one)) for one in (wraps, of_torch, of_the_system))
    assert not about_memory(caught(of_another_kind))
    assert not about_memory(None)
