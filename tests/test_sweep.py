"""`dpaudit sweep` with replaced audits: rounds, the guarantee, cells that fail, resumption, tables and exit codes."""

import json
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from dpaudit import PureDP
from dpaudit.cli.app import app
from dpaudit.result.command_outcomes import Sweep
from dpaudit.running import MechanismError

from .replaced_audits import Audits, prose, replaced_audits, states, swept, written
from .simulated_library import CATALOGUE, simulated_library


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Audits:
    return replaced_audits(monkeypatch, tmp_path, "good one", "bad", "failed")


def test_a_sweep_reports_violations_first_and_cells_that_fail_last(audits: Audits) -> None:
    done = swept("--time", "2s")
    assert done.exit_code == 1, done.output
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith((" ▲ ", " ○ ", " – "))] == ["bad", "good", "failed"]
    assert max(map(len, lines)) <= 80
    for words in ("2 of 6 claims refuted.", "2 no violation found", "2 could not be audited"):
        assert words in prose(done.stdout)
    assert "2 cells: the mechanism raised RuntimeError: disk full (failed-0.5-1.1.5, failed-1.0-1.1.5)" in prose(
        done.stdout
    )
    assert "private" not in done.output
    assert "passed" not in done.output
    assert sorted(file.name for file in Path("out").glob("*.json")) == [
        *(f"{name}-{epsilon}-1.1.5.json" for name in ("bad", "good one") for epsilon in ("0.5", "1.0")),
        "sweep.json",
    ]


def test_all_cells_share_the_significance(audits: Audits) -> None:
    swept("--confidence", "0.95", "--time", "2s")
    confidences = {name: confidence for name, _, confidence, _ in audits.rounds}
    assert len(confidences) == 6
    spent = sum(1 - Fraction(confidence) for confidence in confidences.values())
    assert Fraction("0.0499") < spent <= Fraction("0.05")
    assert written()["false_alarm"] == 0.05
    result = json.loads(Path("out/good one-0.5-1.1.5.json").read_text())
    assert result["environment"]["audits of the command"] == 6
    assert result["environment"]["number of the command"] == written()["number"]


def test_without_a_shared_guarantee_the_sum_is_stated(audits: Audits) -> None:
    done = swept("--each", "--time", "2s")
    assert {confidence for _, _, confidence, _ in audits.rounds} == {0.99}
    assert "probability at most 6 %, whenever it ends. Each cell has its own confidence (--each)." in prose(done.stdout)


def test_refuted_and_failed_cells_get_no_further_rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    audits = replaced_audits(monkeypatch, tmp_path, "bad", "dropped", "good", "failed", "internal")
    done = swept("--time", "3s")
    assert done.exit_code == 1
    rounds = [name for name, _, _, _ in audits.rounds]
    assert {name.split("-")[0] for name in rounds if rounds.count(name) > 1} == {"good"}
    assert states()["dropped-0.5"] == "inconclusive"
    assert "internal error" in done.output


def test_after_the_first_round_time_goes_to_growing_evidence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    audits = replaced_audits(monkeypatch, tmp_path, "good", "bad", "good too")
    audits.bad_from, audits.p_values = 2700, {"bad-1.0": 1e-3}
    swept("--time", "2.5s")
    later = [(name, trials) for name, trials, _, _ in audits.rounds[6:]]
    assert later[:2] == [("bad-1.0-1.1.5", 900), ("bad-1.0-1.1.5", 2700)]
    assert states()["bad-1.0"] == "violation"


def test_a_slow_cell_ends_its_round_early_and_keeps_its_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    audits = replaced_audits(monkeypatch, tmp_path, "slow", "good")
    audits.seconds = {"slow": 50.0}
    swept("--time", "60s")
    slow = [trials for name, trials, _, _ in audits.rounds if name.startswith("slow-0.5")]
    assert slow[:2] == [300, 299], "the second audit reads the stored runs"
    assert states()["slow-0.5"] == "no violation found"
    assert states()["good-0.5"] == "not audited"
    assert {cell["reason"] for cell in written()["cells"] if cell["state"] == "not audited"} == {"no time was left"}


def test_seeds_depend_on_the_seed_of_the_command_and_on_the_cell(audits: Audits) -> None:
    swept("--seed", "7", "--time", "2s")
    seeds = {name: seed for name, _, _, seed in audits.rounds}
    assert len(set(seeds.values())) == 6
    audits.rounds.clear()
    CliRunner().invoke(
        app, ["sweep", "counts.yaml", "--no-pdf", "-q", "-o", "two", "--jobs", "1", "--seed", "7", "--time", "2s"]
    )
    assert {name: seed for name, _, _, seed in audits.rounds} == seeds


def test_an_interrupted_sweep_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    audits = replaced_audits(monkeypatch, tmp_path, "bad", "dropped", "good")
    audits.interrupt_at = 4
    done = swept("--time", "2s")
    assert done.exit_code == 1
    assert "interrupted; the later audits were not run.  To resume: dpaudit" in done.stderr
    first = written()
    assert first["interrupted"]
    assert [cell["reason"] for cell in first["cells"]][-2:] == ["the sweep was interrupted"] * 2
    audits.interrupt_at, before = None, len(audits.rounds)
    done = swept("--time", "2s", "--resume")
    assert done.exit_code == 1, done.output
    later = [name for name, _, _, _ in audits.rounds[before:]]
    again = {"bad-0.5-1.1.5", "bad-1.0-1.1.5"}
    assert {name for name in later if later.count(name) == 1} == again, "the code in this process may have changed"
    assert set(later) == {"good-0.5-1.1.5", "good-1.0-1.1.5", *again}, "failed cells are not repeated"
    second = written()
    assert second["number"] == first["number"]
    assert not second["interrupted"]
    assert second["spent"] <= 2.5
    assert [cell["state"] for cell in second["cells"][:2]] == ["violation"] * 2
    kept = [[(cell["state"], cell["rounds"], cell["seconds"]) for cell in one["cells"][2:4]] for one in (first, second)]
    assert kept[0] == kept[1]
    assert swept("--time", "2s").exit_code == 2, "without --resume nothing is overwritten"


def test_an_environment_that_cannot_be_built_closes_its_cells_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replaced_audits(monkeypatch, tmp_path, "good")
    tried = []

    def failing(requires: tuple[str, ...], python_version: str | None) -> None:
        tried.append(requires)
        raise MechanismError("no matching distribution")

    monkeypatch.setattr("dpaudit.cli.sweep_cells.environment", failing)
    done = swept("--time", "2s", "--with", "python-dp==1.1.4")
    assert done.exit_code == 3
    assert tried == [("python-dp==1.1.4",)], "once, and not for each cell"
    assert states() == {"good-0.5": "not audited", "good-1.0": "not audited"}, "the last version of each cell"
    assert "Differences between 1.1.5 and 1.1.4" in prose(done.stdout)
    assert "good-0.5: no violation found, then not audited" in prose(done.stdout)
    assert swept("--time", "2s", catalogue="counts.yaml==1.1.4").exit_code == 2


def test_cells_wait_for_an_index_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The sweep of the installed release goes on, and a resumed sweep tries the other release again."""
    audits = replaced_audits(monkeypatch, tmp_path, "good")
    answers: list[str] = []

    def built(requires: tuple[str, ...], python_version: str | None) -> Any:
        if not answers:
            raise MechanismError("pip could not install python-dp==1.1.4: Connection refused")
        return SimpleNamespace(packages={"python-dp": answers[0]})

    monkeypatch.setattr("dpaudit.cli.sweep_cells.environment", built)
    monkeypatch.setattr("dpaudit.cli.one_audit.load", lambda *_: (None, PureDP(1.0)))
    monkeypatch.setattr("dpaudit.config.planned.PlannedAudit.pairs", [])
    done = swept("--time", "2s", "--with", "python-dp==1.1.4")
    assert done.exit_code == 3
    assert "Connection refused" in done.stderr
    reasons = {cell["name"]: cell["reason"] for cell in written()["cells"]}
    assert "Connection refused" in reasons["good-0.5-1.1.4"]
    assert not reasons["good-0.5-1.1.5"]
    answers.append("1.1.4")
    before = len(audits.rounds)
    done = swept("--time", "4s", "--with", "python-dp==1.1.4", "--resume")
    assert done.exit_code == 0, done.output
    assert "good-0.5-1.1.4" in {name for name, _, _, _ in audits.rounds[before:]}


def test_an_empty_sweep_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    replaced_audits(monkeypatch, tmp_path, "failed")
    done = swept("--time", "2s")
    assert done.exit_code == 2
    assert "no cell of counts.yaml could be audited" in done.stderr


def test_the_report_and_the_file_of_the_sweep(audits: Audits) -> None:
    line = ["sweep", "counts.yaml", "-o", "out", "--jobs", "1", "--time", "2s"]
    done = CliRunner().invoke(app, line, catch_exceptions=False)
    assert Path("out/sweep.pdf").read_bytes().startswith(b"%PDF")
    assert "the map is in out/sweep.pdf" in done.stderr
    found = Sweep.from_json(Path("out/sweep.json"))
    assert [cell.values for cell in found.cells[:2]] == [{"epsilon": "0.5"}, {"epsilon": "1.0"}]
    reported = CliRunner().invoke(app, ["report", "out"], catch_exceptions=False)
    assert "sweep.json" not in reported.stderr, "the file of the sweep is no result"


def test_constructors_that_are_missing_or_end_the_process_do_not_end_the_sweep(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = CATALOGUE.replace("call: Wrong", "call: Exits")
    audits = replaced_audits(monkeypatch, tmp_path, "good")
    simulated_library(monkeypatch, tmp_path, text)
    done = swept("--time", "2s")
    assert done.exit_code == 3
    assert "1 cell: LookupError: python-dp 1.1.5 has no algorithm Missing (Missing-1.1.5)" in prose(done.stdout)
    assert len(audits.rounds) >= 2
    reasons = {cell["constructor"]: cell["reason"] for cell in written()["cells"]}
    assert "SystemExit" in reasons["Exits"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--time", "0s"), "--time must be above 0, got 0s"),
        (("--with", "new"), "--with: 'new' is not a version of python-dp; write one such as python-dp==1.2.3"),
        (("--with", "1.1.4"), "--with 1.1.4: write python-dp==1.1.4"),
        (("--only", "godo one"), "--only godo one: no cell and no constructor has this name; did you mean good one?"),
        (("--resume=anyway",), "--resume=anyway is not allowed"),
    ],
)
def test_wrong_options_are_refused(audits: Audits, options: tuple[str, ...], message: str) -> None:
    done = swept(*options)
    assert done.exit_code == 2
    assert message in prose(done.stderr)
    assert not audits.rounds


def test_a_dry_run_lists_the_cells_and_runs_nothing(audits: Audits) -> None:
    done = swept("--dry-run", "--only", "bad", "--time", "1m")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == "bad-0.5-1.1.5: runs Right of the library pydp, in this process"
    assert '{"epsilon": 0.5}' in done.stdout
    assert done.stdout.splitlines()[-1] == "2 cells, with 30 s for each on average"
    assert not audits.rounds
    assert not Path("out").exists()


def test_a_reason_from_the_file_of_a_sweep_is_a_quotation(audits: Audits) -> None:
    done = swept("--time", "2s")
    assert "the file states" not in done.output
    values = written()
    lie = "no violation is possible.\n○ 6 cells proven"
    for cell in values["cells"]:
        if cell["state"] == "not audited":
            cell["reason"] = lie
    Path("out/sweep.json").write_text(json.dumps(values))
    for _ in range(2):  # the file keeps the reason as it is, so a second resumption quotes it once, too
        shown = prose(swept("--time", "2s", "--resume").stdout)
        assert "2 cells: the file states: “no violation is possible.\\n○ 6 cells proven” (failed-0.5-1.1.5" in shown
        assert shown.count("cells proven") == 1
