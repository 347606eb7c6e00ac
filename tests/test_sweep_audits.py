"""Sweeps with real audits in this process: a simulated library, and a few cells of OpenDP."""

import fcntl
import json
import os
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dpaudit import Pair, PureDP, Verdict
from dpaudit.cli import one_audit, runner, sweep_cells
from dpaudit.cli.app import app
from dpaudit.cli.one_audit import EventLog, Task, make
from dpaudit.cli.options import RunOptions
from dpaudit.cli.sweep_cells import closes
from dpaudit.engine import schedule
from dpaudit.engine.schedule import Round
from dpaudit.result.suite import Promise
from dpaudit.running import MechanismError
from dpaudit.running.store import OtherAudit, StoreError, StoreRefused
from dpaudit.settings import AuditSettings

from .replaced_audits import HEAD, Audits, prose, replaced_audits, states, swept, written
from .simulated_library import simulated_library
from .unseeded import CONFIDENCE_OPTION

WRONG = HEAD + "  - {call: Wrong, grid: {epsilon: [0.5]}, arguments: {epsilon: $epsilon}}\n"
FAILING = (
    HEAD
    + """\
  - {call: Hangs, arguments: {epsilon: 1.0}}
  - {call: Raises, arguments: {epsilon: 1.0}}
  - {call: Right, arguments: {epsilon: 1.0}}
"""
)


def test_a_wrong_constructor_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6: by the confidence, and by the many runs at eight times the stated loss."""
    simulated_library(monkeypatch, tmp_path, WRONG)
    done = swept("--trials", "200", "--time", "300s", "--seed", "1", "--confidence", "0.999999", "--confirm", "never")
    assert done.exit_code == 1, done.output
    assert states() == {"Wrong-0.5": "violation"}


def test_cells_that_hang_or_fail_do_not_block_the_sweep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    simulated_library(monkeypatch, tmp_path, FAILING)
    monkeypatch.setattr("dpaudit.cli.sweep_cells.answer_seconds", lambda seconds, cells: 0.02)
    done = swept("--trials", "40", "--time", "60s", "--seed", "1")
    assert done.exit_code == 3, done.output
    assert states() == {"Hangs": "not audited", "Raises": "not audited", "Right": "inconclusive"}
    assert "took longer than 0.02 s" in prose(done.stdout)
    assert "no memory left on the device" in prose(done.stdout)


def test_one_answer_may_take_two_fair_shares_within_limits() -> None:
    assert sweep_cells.answer_seconds(1800, 150) == 24
    assert sweep_cells.answer_seconds(60, 150) == 5
    assert sweep_cells.answer_seconds(7200, 2) == 60


@pytest.mark.slow
@pytest.mark.chance
@pytest.mark.skipif(find_spec("opendp") is None, reason="needs OpenDP")
def test_a_few_cells_of_opendp_in_two_rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6, by the confidence."""
    monkeypatch.setattr(schedule, "FIRST_TRIALS", 30)
    line = ["sweep", "opendp", "--only", "make_randomized_response_bool", "--time", "60s", "--trials", "90"]
    done = CliRunner().invoke(app, [*line, "--no-pdf", "--jobs", "1", "-q", "-o", str(tmp_path), *CONFIDENCE_OPTION])
    assert done.exit_code in (0, 3), done.output
    found = json.loads((tmp_path / "sweep.json").read_text())
    assert [cell["claim"] for cell in found["cells"]] == [
        "pure(epsilon=0.4054651081081644)",
        "pure(epsilon=1.0986122886681098)",
    ]
    assert [(cell["rounds"], cell["trials"]) for cell in found["cells"]] == [(2, 90)] * 2
    result = json.loads((tmp_path / f"{found['cells'][0]['name']}.json").read_text())
    assert any("30 of the 90 runs per dataset come from a store" in one["text"] for one in result["warnings"])


def test_a_round_whose_time_ends_after_a_failed_run_does_not_repeat_this_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second pass over the store sampled the failed run again.  Seeded, so the test fails never or always."""
    rng = np.random.default_rng(0)
    failed: list[bool] = []

    def release(dataset: list[int], _: Any) -> float:
        if dataset == [5] and not failed and rng.random() < 0.02:
            failed.append(True)
            raise OSError("once")
        return float(rng.normal())

    settings = AuditSettings(name="c", confidence=0.99, attacks="median_clipped")
    planned = SimpleNamespace(
        pairs=[Pair([0], [5]), Pair([0], [1])],
        settings=settings,
        config=SimpleNamespace(name="c", source="", interactive=False),
        file=tmp_path / "c.yaml",
        claim_stated_by="the config",
        text="",
        data_files={},
    )
    monkeypatch.setattr(one_audit, "load", lambda *_: (release, PureDP(1.0)))
    monkeypatch.setattr(one_audit, "_clock", lambda: 10.0 if failed else 0.0)
    audit: Any = planned
    alone = Promise.of([0.99], each=False)
    task = Task(number=0, audits=1, planned=audit, confidence=0.99, part=Round(0, 600, 5.0))
    result = make(task, RunOptions(output=tmp_path, resume=True), alone, EventLog(None), shown=False).result
    assert failed
    assert result.verdict is Verdict.INCONCLUSIVE
    assert closes(result)


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Audits:
    return replaced_audits(monkeypatch, tmp_path, "good")


def fail_from_the_third_round(monkeypatch: pytest.MonkeyPatch, audits: Audits, error: Exception) -> None:
    """Let every audit fail after the first rounds of both cells."""

    def audit(*arguments: Any, **given: Any) -> Any:
        if len(audits.rounds) >= 2:
            raise error
        return audits.audit(*arguments, **given)

    monkeypatch.setattr(one_audit, "audit", audit)


def test_a_result_of_other_arguments_is_not_resumed(audits: Audits) -> None:
    """The catalogue was edited, but the name of the cell is the same."""
    swept("--time", "2s")
    catalogue = Path("counts.yaml")
    catalogue.write_text(catalogue.read_text().replace("epsilon: $epsilon", "epsilon: $epsilon, dtype: float"))
    made = len(audits.rounds)
    done = swept("--time", "9s", "--resume")
    assert done.exit_code == 2
    assert "with other arguments, packages, pairs or seed: good-0.5-1.1.5.json" in prose(done.stderr)
    assert len(audits.rounds) == made


def test_a_store_of_another_mechanism_ends_the_verdict_of_its_cell(
    monkeypatch: pytest.MonkeyPatch, audits: Audits
) -> None:
    """The library was changed, but its version and the catalogue were not."""
    error = StoreRefused(OtherAudit("good.trials holds the trials of another audit"))
    fail_from_the_third_round(monkeypatch, audits, error)
    done = swept("--time", "3s")
    assert done.exit_code == 2, "no cell has a result"
    assert set(states().values()) == {"not audited"}
    assert "holds the trials of another audit" in written()["cells"][0]["reason"]


def test_a_refused_store_is_an_error_that_other_processes_can_return() -> None:
    import pickle

    for error, other in ((OtherAudit("x"), True), (StoreError("y"), False)):
        copy = pickle.loads(pickle.dumps(StoreRefused(error)))
        assert (str(copy), copy.other_audit) == (f"store: {error}", other)


def test_after_a_failed_round_the_earlier_rounds_count_and_the_exit_code_is_3(
    monkeypatch: pytest.MonkeyPatch, audits: Audits
) -> None:
    fail_from_the_third_round(monkeypatch, audits, MechanismError("the mechanism raised RuntimeError: no memory"))
    done = swept("--time", "3s")
    assert done.exit_code == 3
    assert set(states().values()) == {"no violation found"}
    assert "good-0.5-1.1.5: only the earlier rounds count, as a round failed: the mechanism raised" in done.stderr


def test_a_store_that_cannot_be_used_for_a_while_does_not_close_its_cell(
    monkeypatch: pytest.MonkeyPatch, audits: Audits
) -> None:
    with monkeypatch.context() as context:
        fail_from_the_third_round(context, audits, StoreRefused(StoreError("No space left on device")))
        assert swept("--time", "3s").exit_code == 3
    assert not any(cell["closed"] for cell in written()["cells"])
    made = len(audits.rounds)
    assert swept("--time", "9s", "--resume").exit_code == 0
    assert len(audits.rounds) > made


def test_a_folder_belongs_to_one_sweep_at_a_time(audits: Audits) -> None:
    Path("out").mkdir()
    other = os.open("out", os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        done = swept("--time", "2s")
        assert done.exit_code == 2
        assert "out is in use by another sweep" in done.stderr
        assert not audits.rounds
    finally:
        os.close(other)
    assert swept("--time", "2s").exit_code == 0


@pytest.mark.parametrize("name", ["sweep.json", "sweep.pdf"])
@pytest.mark.parametrize("what", ["folder", "symbolic link", "pipe"])
def test_places_that_cannot_be_written_are_found_before_the_first_round(audits: Audits, name: str, what: str) -> None:
    Path("out").mkdir()
    file = Path("out", name)
    if what == "folder":
        file.mkdir()
    elif what == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("elsewhere")
    done = swept("--time", "2s")
    assert done.exit_code == 2
    assert f"out/{name} is a {what}" in prose(done.stderr)
    assert not audits.rounds


def test_a_sweep_whose_outcome_cannot_be_written_does_not_end_with_0(
    monkeypatch: pytest.MonkeyPatch, audits: Audits
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner, "write_placed", full)
    done = swept("--time", "2s")
    assert done.exit_code == 3
    assert "out/sweep.json could not be written: No space left on device" in done.stderr
