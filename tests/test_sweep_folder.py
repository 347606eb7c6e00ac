"""The output folder of `dpaudit sweep`: results of other audits, changed mechanisms, files that cannot be written."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from dpaudit.cli import sweep_file, sweep_rounds
from dpaudit.mechanisms import MechanismError
from dpaudit.sampling.store import OtherAudit, StoreError, StoreRefused

from .replaced_audits import Audits, prose, replaced_audits, states, swept, written


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Audits:
    return replaced_audits(monkeypatch, tmp_path, "good")


def fail_from_the_third_round(monkeypatch: pytest.MonkeyPatch, audits: Audits, error: Exception) -> None:
    """Let every audit fail after the first rounds of both cells."""

    def audit(*arguments: Any, **given: Any) -> Any:
        if len(audits.rounds) >= 2:
            raise error
        return audits.audit(*arguments, **given)

    monkeypatch.setattr(sweep_rounds, "audit", audit)


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

    monkeypatch.setattr(sweep_file, "write_placed", full)
    done = swept("--time", "2s")
    assert done.exit_code == 3
    assert "out/sweep.json could not be written: No space left on device" in done.stderr
