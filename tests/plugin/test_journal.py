"""The baseline file and its journal: what counts, once, whenever a session is killed."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from dpaudit.testing.baseline import Baseline, BaselineError, BaselineFile, lock, read
from dpaudit.testing.wealth import Chain


def record(node: str = "a::b", number: int = 1, log_invested: float = -1.5) -> dict[str, Any]:
    chain = Chain(call=1, number=1, claim="gaussian(mu=1)", runs=1, log_invested=log_invested, trials=10)
    return {"node": node, "number": number, "outputs": ["x"], "chain": dataclasses.asdict(chain)}


def lost() -> dict[str, Any]:
    return record(log_invested=-math.inf) | {"begun": True, "outputs": []}


def begun(folder: Path) -> BaselineFile:
    return read(folder / "b.json", 1e-3)


def journal(folder: Path) -> Path:
    return folder / "b.json.journal"


def test_a_session_is_counted_when_it_ends_or_before_the_next(tmp_path: Path) -> None:
    """Another process may read the file at any time; the file changes only when the journal is counted."""
    begun(tmp_path).add(record(), 3)
    after, (counted,) = begun(tmp_path).settle()
    assert counted == record()
    assert (after.runs, after.founders) == (1, 3)
    assert begun(tmp_path).start == dataclasses.replace(after, tests=begun(tmp_path).start.tests)
    assert begun(tmp_path).start.tests["a::b"].chains == [Chain(**record()["chain"])]
    assert not journal(tmp_path).exists()
    assert begun(tmp_path).settle() == (begun(tmp_path).start, [])


def test_no_copy_of_a_journal_is_counted_twice(tmp_path: Path) -> None:
    """A copy remains, for example, if the session is killed between writing the baseline and removing the journal."""
    begun(tmp_path).add(record(), 1)
    content = journal(tmp_path).read_bytes()
    begun(tmp_path).settle()
    journal(tmp_path).write_bytes(content)
    begun(tmp_path).add(record("c::d", 2), 1)
    after, counted = begun(tmp_path).settle()
    assert [one["node"] for one in counted] == ["c::d"]
    assert after.tests["a::b"].chains[0].runs == 1


@pytest.mark.parametrize("cut", [1, 2, 30, 200])
def test_an_incomplete_line_is_skipped_and_later_lines_count(tmp_path: Path, cut: int) -> None:
    begun(tmp_path).add(record("torn"), 3)
    journal(tmp_path).write_bytes(journal(tmp_path).read_bytes()[:-cut])
    begun(tmp_path).add(record("whole", 2), 3)
    after, _ = begun(tmp_path).settle()
    assert after.founders == 3
    assert list(after.tests) == (["torn", "whole"] if cut == 1 else ["whole"])  # everything but the end of line


@pytest.mark.parametrize(
    ("lines", "counted"),
    [
        ([lost()], -math.inf),
        ([lost(), record()], -1.5),
        ([lost(), record(), lost()], -1.5),  # repeated in the session; the first audit counts
        ([lost(), lost(), record()], -math.inf),  # repeated until an audit ended
        ([record(), lost()], -1.5),
    ],
)
def test_an_audit_that_never_ended_counts_as_lost(tmp_path: Path, lines: list[Any], counted: float) -> None:
    for line in lines:
        begun(tmp_path).add(line, 1)
    after, _ = begun(tmp_path).settle()
    (chain,) = after.tests["a::b"].chains
    assert (chain.runs, chain.log_invested) == (1, counted)
    assert begun(tmp_path).start.tests["a::b"].chains == [chain]


def test_one_session_at_a_time_uses_a_baseline(tmp_path: Path) -> None:
    held = lock(tmp_path / "new" / "b.json")
    with pytest.raises(BaselineError, match=r"another session is using .*b\.json"):
        lock(tmp_path / "new" / "b.json")
    held.release()
    lock(tmp_path / "new" / "b.json").release()


@pytest.mark.parametrize(
    "bad",
    [
        "<<<<<<< ours\n",
        "[]",
        '{"a": 1}',
        '{"format": "dpaudit-baseline/999", "tests": {}}',
        '{"format": "dpaudit-baseline/1"}',
    ],
)
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, bad: str) -> None:
    (tmp_path / "b.json").write_text(bad)
    with pytest.raises(BaselineError, match=r"b\.json is not a baseline .* resolve merge conflicts, restore"):
        begun(tmp_path)
    assert (tmp_path / "b.json").read_text() == bad


def test_all_sessions_share_one_budget(tmp_path: Path) -> None:
    assert begun(tmp_path).start == Baseline(false_alarm=1e-3)
    with pytest.raises(BaselineError, match=r"started with --dpaudit-false-alarm 0\.001, got 0\.01; .* so use 0\.001"):
        read(tmp_path / "b.json", 0.01)
    assert json.loads((tmp_path / "b.json").read_text())["runs"] == 0
