"""Exceptions are the same outcomes in this process, in private environments and of programs."""

from pathlib import Path
from typing import Any

import pytest

from dpaudit import Pair, audit, batched
from dpaudit.outputs import Raised
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.runs import Dataset, ExecutionSettings, Runs, made
from dpaudit.running.sampler import Sampler

from .programs import isolated, script

PAIR = Pair(0, 1, relation="replace_one")
EXECUTION = ExecutionSettings(failures="outcome")
RELEASES = """
    import errno, math, os, sys
    class Silent(Exception):
        def __str__(self): raise KeyError
    class Cancelled(BaseException): pass
    Cancelled.__name__ = "CancelledError"
    def raises(error): raise error
    ENDS = {
        "error": lambda: {}["age"],
        "silent": lambda: raises(Silent()),
        "long": lambda: raises(ValueError("a" * 30_000)),
        "exit": lambda: sys.exit(3),
        "cancelled": lambda: raises(Cancelled("late")),
        "memory": lambda: raises(MemoryError()),
        "disk": lambda: raises(OSError(errno.ENOSPC, "No space left on device")),
        "in words": lambda: raises(RuntimeError("CUDA out of memory")),
        "caused": lambda: caused(),
        "of a test runner": lambda: raises(BaseException("stop")),
        "copy": lambda: sys.stderr,
        "death": lambda: os.abort(),
    }
    def caused():
        try: raise MemoryError
        except MemoryError as error: raise ValueError("no result") from error
    def release(dataset, rng):
        return ENDS[dataset]()
    class Many:
        def sample(self, dataset, n, rng): return [release(dataset, rng) for _ in range(n)]
    many = Many()
"""


def observed(mechanism: Any, dataset: str) -> tuple[list[Any], str]:
    (outcome, _) = Sampler(mechanism, [Pair(dataset, "error")], seed=0, execution=EXECUTION).block(0, 0, 2)
    return list(outcome.outputs), outcome.failure


@pytest.mark.parametrize(
    ("name", "datasets"), [("many", ["error"]), ("release", ["error", "silent", "long", "exit", "cancelled"])]
)
def test_an_environment_gives_the_outcome_that_this_process_gives(
    tmp_path: Path, name: str, datasets: list[str]
) -> None:
    mechanism = isolated(tmp_path, RELEASES, name)
    for dataset in datasets:
        there = observed(mechanism, dataset)
        assert there == observed(PythonMechanism(mechanism.address, folder=tmp_path), dataset), dataset
        assert there[1] == ""
        assert [type(output) for output in there[0]] == [Raised, Raised]


@pytest.mark.parametrize(
    ("name", "datasets"),
    [("many", ["memory"]), ("release", ["memory", "disk", "in words", "caused", "of a test runner", "copy"])],
)
def test_what_is_no_outcome_in_this_process_is_none_in_an_environment(
    tmp_path: Path, name: str, datasets: list[str]
) -> None:
    mechanism = isolated(tmp_path, RELEASES, name)
    for route in (mechanism, PythonMechanism(mechanism.address, folder=tmp_path)):
        for dataset in datasets:
            outputs, failure = observed(route, dataset)
            assert outputs == []
            assert failure, dataset


def test_a_process_that_dies_is_no_outcome(tmp_path: Path) -> None:
    outputs, failure = observed(isolated(tmp_path, RELEASES), "death")
    assert outputs == []
    assert "was killed by SIGABRT" in failure
    outputs, failure = observed(script(tmp_path, "sys.exit(3)"), "death")
    assert outputs == []
    assert "ended with exit status 3" in failure


def test_a_failed_allocation_beyond_a_memory_limit_is_no_outcome(tmp_path: Path) -> None:
    code = "def release(dataset, rng): raise RuntimeError('failed to allocate a tensor')"
    assert observed(isolated(tmp_path, code), "")[1] == ""
    assert "failed to allocate" in observed(isolated(tmp_path, code, memory=10**9), "")[1]


def test_an_error_that_a_program_reports_is_an_outcome_unless_it_is_about_the_memory(tmp_path: Path) -> None:
    answer = """\
found = {"outputs": [0.5] * n} if request["dataset"] == "fine" else {"error": request["dataset"]}
print(json.dumps(found | {"seconds": "not observed"}))
"""
    mechanism = script(tmp_path, answer)
    assert observed(mechanism, "no column age") == ([Raised("error", "no column age")] * 2, "")
    assert observed(mechanism, "fine") == ([0.5, 0.5], "")
    outputs, failure = observed(mechanism, "Out of memory")
    assert outputs == []
    assert "is no outcome, because it depends on the machine" in failure


LEAKS = {
    "exception": """
        def release(dataset, rng):
            if dataset: raise ValueError("x")
            return rng.random()
    """,
    "nan": "def release(dataset, rng): return float('nan') if dataset else rng.random()",
    "int": "def release(dataset, rng): return 0 if dataset else float(rng.random() < 0.5)",
    "batch": """
        class Many:
            def sample(self, dataset, n, rng):
                if dataset: raise ValueError("x")
                return [rng.random() for _ in range(n)]
        release = Many()
    """,
}


@pytest.mark.parametrize("leak", LEAKS)
def test_exceptions_nan_and_types_are_refuted_in_an_environment_as_in_this_process(tmp_path: Path, leak: str) -> None:
    """The outputs tell d0 from d1 with certainty, so the audit fails by chance < 1 in 10**6."""
    mechanism = isolated(tmp_path, LEAKS[leak])
    here = PythonMechanism(mechanism.address, folder=tmp_path)
    for route in (here, mechanism):
        given: dict[str, Any] = {"trials": 300, "failures": "outcome", "seed": 1, "confirm": "never"}
        given["attacks"] = ["logistic", "plug_in_ratio"]
        result = audit(route, "pure(epsilon=0.1)", PAIR, **given)
        assert result.violated


def test_the_errors_of_a_program_are_refuted(tmp_path: Path) -> None:
    """The outputs tell d0 from d1 with certainty, so the audit fails by chance < 1 in 10**6."""
    answer = '{"error": "x"} if request["dataset"] else {"outputs": [request["seed"]]}'
    mechanism = script(tmp_path, f"print(json.dumps({answer}))")
    given: dict[str, Any] = {"trials": 300, "failures": "outcome", "seed": 1, "confirm": "never"}
    result = audit(mechanism, "pure(epsilon=0.1)", PAIR, **given)
    assert result.violated
    assert "raised error" in result.witness.region


def test_other_processes_make_the_same_outcomes(tmp_path: Path) -> None:
    code = "def release(dataset, rng):\n    if rng.random() < 0.5: raise ValueError(str(rng.random()))\n    return 1"
    mechanism = isolated(tmp_path, code)
    here = Sampler(mechanism, [PAIR], seed=3, execution=EXECUTION).block(0, 0, 60)
    parallel = Sampler(mechanism, [PAIR], seed=3, jobs=2, execution=EXECUTION)
    parallel.seconds_per_run = 1.0
    assert [list(side.outputs) for side in parallel.block(0, 0, 60)] == [list(side.outputs) for side in here]


def test_only_code_that_makes_many_runs_in_one_call_shares_calls(tmp_path: Path) -> None:
    def shared(mechanism: object) -> bool:
        return bool(made(Runs(mechanism, Dataset([0]), 0, 0, 0, 0, 64)).types)

    code = """
        release = lambda dataset, rng: 0.5
        together = lambda dataset, n, rng: [0.5] * n
        class Many: sample = staticmethod(together)
        many = Many()
    """
    assert shared(batched(lambda dataset, n, rng: [0.5] * n))
    assert shared(script(tmp_path, 'print(json.dumps({"outputs": [0.5] * n}))'))
    assert not shared(isolated(tmp_path, code, "release"))
    assert shared(isolated(tmp_path, code, "many"))
    assert shared(isolated(tmp_path, code, "together", batched=True))


TYPES = """
    import collections, datetime, decimal, fractions, math
    VALUES = [
        0, 0.0, -0.0, True, 2**70, 1j, None, math.nan, "a", b"a", (1, 2.0), [1, 2.0], [1, 2], [True, 0], [], (), {},
        {"b": 1, "a": 2}, {"a": 2, "b": 1}, {1, 2}, frozenset([1]), decimal.Decimal("1.50"), fractions.Fraction(1, 2),
        datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2), datetime.timedelta(1), {"a": [(1, {2: None})]},
    ]
    release = lambda dataset, rng: VALUES
    class Many:
        def sample(self, dataset, n, rng): return VALUES[:n]
    many = Many()
"""


@pytest.mark.parametrize("execution", [ExecutionSettings(), EXECUTION], ids=["stop", "outcome"])
def test_outputs_of_an_environment_have_the_types_of_outputs_of_this_process(
    tmp_path: Path, execution: ExecutionSettings
) -> None:
    """The text of these values shows their types, the signs of zeros and the order of keys."""
    for name, runs in (("release", 2), ("many", 27)):
        mechanism = isolated(tmp_path, TYPES, name)
        there, here = (
            Sampler(one, [PAIR], seed=0, execution=execution).block(0, 0, runs)[0].outputs
            for one in (mechanism, PythonMechanism(mechanism.address, folder=tmp_path))
        )
        assert len(there) == runs
        assert list(map(repr, there)) == list(map(repr, here))
