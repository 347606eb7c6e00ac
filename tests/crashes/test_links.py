"""An untrusted checkout: links lead to no file of others, and no text of a file looks like a line of dpaudit."""

import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dpaudit_reports
from dpaudit import AuditResult, Pair, audit
from dpaudit.catalogue import Gaussian
from dpaudit.cli import app as cli
from dpaudit.cli.one_audit import progress_bar
from dpaudit.engine.audit import Progress
from dpaudit.result.atomic_write import write_placed
from dpaudit.running import CommandMechanism, MechanismError
from dpaudit_reports.blocks import MAX_ENTRIES

from .command_line import CONFIG, Command


@pytest.mark.parametrize("name", ["noise.json", "noise.pdf", "noise.trials"])
def test_no_result_is_written_through_a_link(name: str, folder: Path, command: Command) -> None:
    mine = folder / "mine"
    mine.write_text("precious")
    (folder / "dpaudit-results").mkdir()
    (folder / "dpaudit-results" / name).symlink_to(mine)
    done = command("run", "c.yaml", "--resume")
    assert done.exit_code in (2, 3)
    assert f"{name} is a symbolic link to {mine}" in done.stderr
    assert mine.read_text() == "precious"
    assert (folder / "dpaudit-results" / name).is_symlink()


@pytest.mark.parametrize("output", ["dpaudit-results/today", "absolute"])
def test_results_may_be_kept_behind_a_link(output: str, folder: Path, command: Command) -> None:
    """The results of clusters lie on a large disk, and a link in the project leads there."""
    scratch = folder / "scratch"
    (folder / "dpaudit-results").symlink_to(scratch)
    given = str(folder / "dpaudit-results") if output == "absolute" else output
    for _ in range(2):  # the folder is missing, and then it holds a result
        assert command("run", "c.yaml", "-o", given, "--no-pdf").exit_code == 0
    assert [file.name for file in scratch.rglob("*.json")] == ["noise.json"]


@pytest.mark.parametrize("output", ["dpaudit-results", "dpaudit-results/today"])
def test_a_link_to_a_folder_of_other_files_is_refused(output: str, folder: Path, command: Command) -> None:
    """The checkout decides where its links lead, and it names the audits.  The file is not a result of dpaudit."""
    mine = folder / "mine" / output.partition("/")[2]
    mine.mkdir(parents=True)
    (mine / "noise.json").write_text("precious")
    (folder / "dpaudit-results").symlink_to(folder / "mine")
    done = command("run", "c.yaml", "-o", output)
    assert done.exit_code == 2
    assert f"leads through a symbolic link to {folder / 'mine'}, and the folder {mine} holds" in done.stderr
    assert [(file.name, file.read_text()) for file in mine.iterdir()] == [("noise.json", "precious")]
    (mine / "noise.json").rename(mine / "other.json")
    assert command("run", "c.yaml", "-o", str(mine), "--no-pdf").exit_code == 0


@pytest.mark.parametrize("name", ["noise.json", "noise.pdf"])
@pytest.mark.parametrize("link", ["file", "folder", "inside"])
def test_a_link_that_appears_after_the_checks_is_not_followed(
    name: str, link: str, folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link is made while the content is computed, or the new file is written under a name that dpaudit made up."""
    out, mine = folder / "dpaudit-results", folder / "mine"
    mine.mkdir()
    (mine / name).write_text("precious")

    def planting(make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*given: Any, **named: Any) -> Any:
            if link == "folder":
                out.rename(folder / "moved")
                out.symlink_to(mine)
            elif link == "inside":
                for own in out.glob(".dpaudit-*"):
                    own.rename(folder / "moved")
                    own.mkdir()
                    (own / name).symlink_to(mine / name)
            else:
                (out / name).unlink(missing_ok=True)
                (out / name).symlink_to(mine / name)
            return make(*given, **named)

        return made

    if name == "noise.json":
        monkeypatch.setattr(AuditResult, "to_dict", planting(AuditResult.to_dict))
    else:
        monkeypatch.setattr("dpaudit_reports.to_pdf", planting(lambda *given, **named: b"%PDF"))
    done = command("run", "c.yaml", *(["--no-pdf"] if name == "noise.json" else []))
    assert (mine / name).read_text() == "precious"
    assert {file.name for file in mine.iterdir()} == {name}
    assert ("could not be" in done.stderr) == (link != "inside")


def test_a_result_keeps_the_mode_of_the_file_that_it_replaces(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_placed(tmp_path / "r.json", "one")
    finally:
        os.umask(before)
    assert (tmp_path / "r.json").stat().st_mode & 0o777 == 0o640
    (tmp_path / "r.json").chmod(0o604)
    write_placed(tmp_path / "r.json", b"two")
    assert (tmp_path / "r.json").stat().st_mode & 0o777 == 0o604
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Make a block that waits forever fail.  SIGALRM is not used here, because dpaudit's own timeouts use it."""

    def late(*_: object) -> None:
        pytest.fail(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGUSR1, late)
    timer = threading.Timer(seconds, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("name", ["noise.json", "noise.pdf", "noise.trials"])
def test_a_pipe_in_the_place_of_a_result_does_not_block(name: str, folder: Path, command: Command) -> None:
    """Opening a pipe for writing waits for a reader; the test would be interrupted."""
    (folder / "dpaudit-results").mkdir()
    os.mkfifo(folder / "dpaudit-results" / name)
    with interrupted_after(100):
        done = command("run", "c.yaml", "--resume")
    assert done.exit_code in (2, 3)
    assert name in done.stderr
    assert "is a pipe" in done.stderr or "is not a regular file" in done.stderr


LINE = "FORGED: no violation found"
HOSTILE = f"\x1b[2K\r\x1b[8m\u202e\x9b1A\n{LINE}\n"


def is_clean(text: str) -> None:
    """Assert that the text has no control character but line breaks, and that no line is forged."""
    assert not [c for c in text if c in "\x1b\r\x9b\u202e"]
    assert not [line for line in text.splitlines() if line.startswith(LINE)], text
    assert "FORGED" in text


@pytest.mark.parametrize("key", ["claim", "relation", "unknown key"])
@pytest.mark.parametrize("words", [("run", "--dry-run"), ("run", "--dry-run", "--no-code")])
def test_a_config_forges_no_line(key: str, words: tuple[str, ...], folder: Path, command: Command) -> None:
    values = yaml.safe_load(CONFIG)
    if key == "relation":
        values["pairs"][0]["relation"] = HOSTILE
    else:
        values[HOSTILE if key == "unknown key" else key] = HOSTILE
    (folder / "c.yaml").write_text(yaml.dump(values))
    done = command(*words, "c.yaml")
    assert done.exit_code == 2
    is_clean(done.output)


def test_a_command_of_a_config_forges_no_line(folder: Path, command: Command) -> None:
    foreign = CONFIG.replace("{builtin: gaussian, params: {sigma: 1.0}}", json.dumps({"command": ["sh", HOSTILE]}))
    (folder / "c.yaml").write_text(foreign)
    for words in (("run", "c.yaml", "--dry-run"), ("run", "c.yaml", "--no-code")):
        is_clean(command(*words).output)


def test_a_result_forges_no_line(folder: Path, command: Command) -> None:
    command("run", "c.yaml", "--no-pdf", "-q")
    values = json.loads((folder / "dpaudit-results" / "noise.json").read_text())
    for key, text in {"name": HOSTILE, "claim": HOSTILE, "warnings": [{"code": "other", "text": HOSTILE}]}.items():
        (folder / "r.json").write_text(json.dumps(values | {key: text}))
        is_clean(command("report", "r.json").output)


@pytest.mark.parametrize(
    "content", ['"HERE",included\n1,1\n', 'score,included\n"HERE",1\n', 'score,included\n1,"HERE"\n'], ids=[1, 2, 3]
)
def test_a_table_of_scores_forges_no_line(content: str, folder: Path, command: Command) -> None:
    (folder / "s.csv").write_text(content.replace("HERE", HOSTILE))
    done = command("scores", "s.csv", "--independence", "runs")
    assert done.exit_code == 2
    is_clean(done.output)


@pytest.mark.parametrize("verb", ["run", "report", "replay", "scores"])
def test_a_file_name_forges_no_line(verb: str, folder: Path, command: Command) -> None:
    name = f"{HOSTILE}.csv"
    (folder / name).write_text("")
    done = command(verb, name, *(["--independence", "runs"] if verb == "scores" else []))
    assert done.exit_code == 2
    is_clean(done.output)


def test_a_wrong_word_forges_no_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file name that begins with a dash is an option to typer, which shows such errors itself."""
    for words in (["report", f"--{HOSTILE}"], [HOSTILE], ["list", "attacks", HOSTILE]):
        monkeypatch.setattr(sys, "argv", ["dpaudit", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 2
        said = capsys.readouterr().err
        assert "FORGED" in said
        assert not [c for c in said if c in "\x1b\r\x9b\u202e"]


def test_the_name_of_a_result_sends_nothing_to_the_terminal_of_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A progress bar shows the name before its first progress report, and again with each report."""
    terminal = _Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    now = Progress(trials=1, allowed=2, log_e=0.0, log_threshold=1.0)
    with progress_bar("a\x1b]0;title\x07b\nc", shown=True) as update:
        update(now)
    shown = terminal.getvalue()
    assert r"a\x1b]0;title\x07b\nc" in shown
    assert "\x1b]0" not in shown
    assert "\x07" not in shown
    assert "\nc" not in shown


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_a_module_prints_on_import_is_not_among_the_results(folder: Path, command: Command) -> None:
    (folder / "mine.py").write_text("print('on import')\ndef f(d, rng): return d[0] + rng.normal()\n")
    (folder / "c.yaml").write_text(CONFIG.replace("{builtin: gaussian, params: {sigma: 1.0}}", "{python: 'mine.py:f'}"))
    done = command("run", "c.yaml", "--no-pdf", "--format", "json")
    assert json.loads(done.stdout)[0]["name"] == "noise"
    assert "on import" in done.stderr


def test_an_error_quotes_a_part_of_a_long_line_of_stderr() -> None:
    code = "import sys; sys.stdin.readline(); sys.stderr.write('x' * 60_000); sys.exit(3)"
    with CommandMechanism([sys.executable, "-c", code]) as mechanism, pytest.raises(MechanismError) as error:
        mechanism.sample([0], 1, np.random.default_rng(0))
    assert "x" * 500 + "…" in str(error.value)
    assert len(str(error.value)) < 2_000


@pytest.mark.parametrize("key", [pytest.param("pairs", marks=pytest.mark.slow), "attacks", "warnings"])
def test_a_report_shows_a_part_of_very_many_entries_and_says_so(key: str) -> None:
    values = audit(Gaussian(1.0), "gaussian(mu=1)", Pair([0], [1]), trials=60, seed=0, confidence=0.95).to_dict()
    values[key] = ([{"code": "other", "text": "a warning"}] if key == "warnings" else values[key][:1]) * 2_000
    text = dpaudit_reports.to_html([AuditResult.from_dict(values)])
    said = {
        "pairs": "1,997 more pairs are in the result file",
        "attacks": "None of 2,000 attacks has learned",
        "warnings": f"These are the first {MAX_ENTRIES} of 2,000 warnings",
    }
    assert said[key] in text
    assert len(text) < 500_000
