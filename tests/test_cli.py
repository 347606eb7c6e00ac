"""Tests of the command line from the point of view of a user."""

import json
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dpaudit.cli.app import app
from dpaudit_reports import site

from .reports import sample

Command = Callable[..., Result]

CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism: {builtin: gaussian, params: {sigma: 1.0}}
pairs: [{d0: [0], d1: [1]}]
trials: 400
attacks: threshold
seed: 0
confidence: 0.95
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path / "c.yaml"


def test_no_violation_exits_with_0_and_writes_both_files(
    config: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(CONFIG.replace("400", "60"))
    monkeypatch.setattr(sys, "argv", ["dpaudit", "run", "c.yaml"])  # which the result records
    done = command("run", "c.yaml")
    assert done.exit_code == 0
    assert "○ no violation" in done.stdout
    assert "results are in dpaudit-results; open dpaudit-results/noise.pdf" in done.stderr
    assert "Traceback" not in done.stderr
    folder = config.parent / "dpaudit-results"
    assert sorted(p.name for p in folder.iterdir()) == ["noise.json", "noise.pdf"]
    assert (folder / "noise.pdf").read_bytes().startswith(b"%PDF")
    values = json.loads((folder / "noise.json").read_text())
    assert values["environment"]["command"] == "dpaudit run c.yaml"
    assert values["environment"]["config"] == "c.yaml"


def test_a_violation_exits_with_1_and_is_expected_or_not(config: Path, command: Command) -> None:
    """Fails by chance < 1 in 10**6."""
    config.write_text(CONFIG.replace("sigma: 1.0", "sigma: 0.3") + "confirm: never\nexpect: violation\n")
    done = command("run", "c.yaml", "--no-pdf", "-o", "out")
    assert done.exit_code == 1
    assert "violation" in done.stdout
    assert "EXPECTED" not in done.stdout
    config.write_text(CONFIG.replace("sigma: 1.0", "sigma: 0.3") + "confirm: never\nexpect: no violation\n")
    assert "NOT AS EXPECTED" in command("run", "c.yaml", "--no-pdf").stdout


def test_the_most_serious_outcome_decides(config: Path, command: Command) -> None:
    """Fails by chance < 1 in 10**6."""
    one = CONFIG.replace("400", "60").replace("\n", "\n    ")
    other, short = one.replace("sigma: 1.0", "sigma: 0.3"), one.replace("60", "5").replace("noise", "short")
    config.write_text(f"audits:\n  - {one}\n  - {other.replace('noise', 'bad')}\n  - {short}\n")
    assert command("run", "c.yaml", "--no-pdf", "--confirm", "never").exit_code == 1
    config.write_text(f"audits:\n  - {one}\n  - {short}\n")
    done = command("run", "c.yaml", "--no-pdf")
    assert done.exit_code == 3
    assert "inconclusive" in done.stdout
    assert "too few" in done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none", "c.yaml:1: audit noise could not be run: the mechanism gave an output that cannot be read:"),
        ("late", "c.yaml:1: audit noise: the mechanism raised ZeroDivisionError: division by zero on run"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(config: Path, name: str, message: str, command: Command) -> None:
    (config.parent / "mine.py").write_text(
        "calls = [0]\n"
        "def none(dataset, rng): pass\n"
        "def late(dataset, rng):\n"
        "    calls[0] += 1\n"
        "    return rng.normal() + 1 / (150 - calls[0])\n"
    )
    config.write_text(CONFIG.replace("{builtin: gaussian, params: {sigma: 1.0}}", f"{{python: 'mine.py:{name}'}}"))
    done = command("run", "c.yaml", "--no-pdf")
    assert done.exit_code == 3
    assert message in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    kept = config.parent / "dpaudit-results" / "noise.json"
    assert kept.exists() == (name == "late")  # finished results are kept
    if kept.exists():
        assert json.loads(kept.read_text())["trials_used"] > 60
        assert "inconclusive" in done.stdout


def test_debug_shows_the_traceback(config: Path, command: Command) -> None:
    config.write_text(CONFIG.replace("{builtin: gaussian, params: {sigma: 1.0}}", "{python: 'mine.py:nothing'}"))
    done = command("run", "c.yaml", "--debug")
    assert "Traceback" in done.stderr
    assert done.exit_code == 2


def test_the_starting_config_runs(command: Command) -> None:
    assert command("init").exit_code == 0
    done = command("run", "audit.yaml", "--trials", "60", "--no-pdf", "--quiet")
    assert done.exit_code == 0
    assert done.stderr == ""


def test_a_report_is_made_in_any_format_of_results_that_nobody_changed(config: Path, command: Command) -> None:
    config.write_text(CONFIG.replace("400", "60"))
    command("run", "c.yaml", "--no-pdf")
    file = config.parent / "dpaudit-results" / "noise.json"

    def report(*options: str) -> Result:
        return CliRunner().invoke(app, ["report", str(file), *options])

    for ending, beginning in (("pdf", b"%pdf"), ("html", b"<!doctype html>"), ("md", b"#")):
        target = config.parent / f"r.{ending}"
        assert report("-o", str(target)).exit_code == 0
        assert target.read_bytes().lower().lstrip().startswith(beginning)
    assert "no violation" in report().stdout.lower()
    assert report("-o", str(config.parent / "r.txt")).exit_code == 2
    file.write_text(file.read_text().replace('"verdict": "no violation found"', '"verdict": "violation"', 1))
    changed = report("-o", str(config.parent / "s.pdf"))
    assert changed.exit_code == 2
    assert "but its counts give" in changed.output
    assert not (config.parent / "s.pdf").exists()
    assert CliRunner().invoke(app, ["--version"]).stdout.startswith("dpaudit 0.")


def test_convert_says_a_claim_in_other_terms(tmp_path: Path, command: Command) -> None:
    whole = command("convert", "gaussian(mu=1)")
    assert whole.exit_code == 0
    assert "4.377178096  at delta = 1e-05" in whole.stdout
    assert command("convert", "gaussian(mu=1)", "pure(epsilon=2)", "--delta", "0").stdout == "inf\n2\n"
    assert float(command("convert", "pure(epsilon=1)", "--epsilon", "1").stdout) == 0
    nested = "subsampled(repeated(gaussian(mu=1), n=2), rate=0.01)"
    assert float(command("convert", nested, "--delta", "1e-5").stdout) > 0
    drawn = command("convert", "laplace(epsilon=1)", "zcdp(rho=0.5)", "--plot", "claims.svg")
    assert drawn.exit_code == 0
    assert (tmp_path / "claims.svg").stat().st_size > 10_000


def test_lists_and_schema(config: Path, command: Command) -> None:
    assert "logistic" in command("list", "attacks").stdout
    listed = command("list", "mechanisms").stdout.splitlines()
    assert any(line.startswith("gaussian  ") and "  Sum plus N(0, sigma^2)" in line for line in listed)
    assert "gaussian" in command("list", "claims").stdout
    assert "noise" in command("list", "configs").stdout
    assert "$defs" in json.loads(command("schema").stdout)


def test_a_strangers_config_can_be_looked_at_and_refused(config: Path, command: Command) -> None:
    (config.parent / "own.py").write_text("def f(dataset, rng): ...\nraise SystemExit('this must not run')\n")
    (config.parent / "b.yaml").write_text(
        "audits:\n"
        "- {name: own, claim: pure(epsilon=1), mechanism: {python: 'own.py:f'}, pairs: [{d0: 0, d1: 1}]}\n"
        "- {name: program, claim: pure(epsilon=1), mechanism: {command: [prog, 'a b']}, pairs: [{d0: 0, d1: 1}]}\n"
        "- {name: apart, claim: pure(epsilon=1), mechanism: {python: 'm:f', requires: [six==1.16.0]}, "
        "pairs: [{d0: 0, d1: 1}]}\n"
    )
    done = command("run", ".", "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert f"own: runs own.py:f (from {config.parent}), in this process, which may run " in done.stdout
    assert (
        f"program: runs the program prog 'a b', in {config.parent}, which may run its params and datasets as code\n"
        in done.stdout
    )
    assert f"apart: runs m:f (from {config.parent}), in an environment with six==1.16.0, which may" in done.stdout
    assert "runs no code outside dpaudit" in done.stdout
    assert not (config.parent / "dpaudit-results").exists()
    done = command("run", ".", "--no-code")
    assert done.exit_code == 2
    assert "b.yaml:2: own runs own.py:f" in done.stderr
    assert "this must not run" not in done.stderr
    assert command("run", config.name, "--no-code", "--no-pdf", "--trials", "50").exit_code in (0, 3)


def test_an_audit_goes_on_where_it_stood(config: Path, command: Command) -> None:
    config.write_text(CONFIG.replace("400", "60"))
    store, log = config.parent / "dpaudit-results" / "noise.trials", config.parent / "log.jsonl"

    def evidence(folder: str, *options: str) -> object:
        done = command("run", "c.yaml", "--no-pdf", "-q", "-o", folder, *options)
        assert done.exit_code == 0, done.stderr
        return json.loads((config.parent / folder / "noise.json").read_text())["evidence"]

    expected = evidence("undisturbed", "--resume")
    assert evidence("dpaudit-results", "--resume") == expected
    with closing(sqlite3.connect(store)) as connection, connection:  # as after an interruption
        connection.execute("DELETE FROM blocks WHERE number > 1")
    assert evidence("dpaudit-results", "--resume", "--log-json", log.name) == expected
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["started", "ended"]
    assert events[-1]["verdict"] == "no violation found"
    assert {event["event"] for event in events[1:-1]} == {"progress"}
    other = command("run", "c.yaml", "--resume", "--no-pdf", "--seed", "5")
    assert other.exit_code == 3
    assert "holds the trials of another audit.  These parts differ:\n  seed (0 in the store, 5 now)\n" in other.stderr
    assert "Traceback" not in other.stderr


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two results.  Pages have no section, because other tests cover reports."""
    monkeypatch.setattr(site, "SECTIONS", ())
    (tmp_path / "results").mkdir()
    sample.violation().to_json(tmp_path / "results" / "bad.json")
    sample.inconclusive().to_json(tmp_path / "results" / "open.json")
    return tmp_path / "results"


def test_files_and_folders_become_a_site(results: Path, command: Command) -> None:
    shutil.copy(results / "bad.json", "copy.json")
    done = command("site", "results", "copy.json", "-o", "site", "--title", "Mine", "--url", "https://example.org/a")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "copy.json is a copy of results/bad.json, so both have one page" in done.stderr
    assert "the index is site/index.html" in done.stderr
    feed = json.loads(Path("site/feed.json").read_text("utf-8"))
    assert feed["title"] == "Mine"
    assert sorted(item["tags"][0] for item in feed["items"]) == ["inconclusive", "violation"]
    assert all(Path("site", item["url"].removeprefix("https://example.org/a/")).is_file() for item in feed["items"])


def test_the_file_name_of_a_result_begins_no_line(results: Path, command: Command) -> None:
    """A warning about a copy began with the name of the file."""
    for name in ("FORGED.json", "FORGED 2.json"):
        shutil.copy(results / "bad.json", name)
    done = command("site", "FORGED.json", "FORGED 2.json", "-o", "site")
    assert done.exit_code == 0
    assert "warning: FORGED 2.json is a copy of FORGED.json" in done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("FORGED")]


def test_a_second_call_reports_the_pages_that_it_removes_or_keeps(results: Path, command: Command) -> None:
    assert command("site", "results", "-o", "site").exit_code == 0
    done = command("site", "results/open.json", "-o", "site")
    assert "removed 1 page of audits that are not among the results" in done.stderr
    (page,) = Path("site").glob("opendp-*.html")
    page.write_text("mine")
    done = command("site", "results/bad.json", "-o", "site")
    assert f"{page} was changed since dpaudit wrote it, so it was kept" in done.stderr
    assert page.read_text() == "mine"
