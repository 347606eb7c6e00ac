"""The output of `dpaudit run`: the table, the formats, progress, and the choice of audits."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from dpaudit import Pair, audit
from dpaudit.cli.app import app
from dpaudit.engine import progress_line as lines
from dpaudit.engine.audit import Progress
from dpaudit.engine.progress_line import Pace
from dpaudit_reports.terminal import wrapped

Command = Callable[..., Result]

CONFIG = """\
audits:
  - {name: gaussian-noise-on-a-bounded-sum, claim: gaussian(mu=1), mechanism: {builtin: gaussian, params: {sigma: 1.0}},
     pairs: [{d0: [0], d1: [1]}], trials: 100, attacks: threshold, seed: 0, expect: no violation}
  - {name: laplace-with-half-of-the-noise-it-claims-to-add, claim: pure(epsilon=1), trials: 600, confirm: never,
     mechanism: {builtin: laplace, params: {scale: 0.2}}, pairs: [{d0: [0], d1: [1]}], attacks: threshold, seed: 0}
  - {name: much-too-short, claim: gaussian(mu=1), mechanism: {builtin: gaussian, params: {sigma: 1.0}},
     pairs: [{d0: [0], d1: [1]}], trials: 5, attacks: threshold, seed: 0}
  - {name: broken, claim: gaussian(mu=1), mechanism: {python: 'bad.py:f'}, pairs: [{d0: [0], d1: [1]}]}
"""
NAMES = [
    "gaussian-noise-on-a-bounded-sum",
    "laplace-with-half-of-the-noise-it-claims-to-add",
    "much-too-short",
    "broken",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "c.yaml").write_text(CONFIG)
    (tmp_path / "bad.py").write_text("def f(dataset, rng):\n    raise ValueError('no \\u202e way\\x1b[2J')\n")
    return tmp_path


def holds(shown: str, name: str) -> bool:
    return any(all(piece in shown for piece in wrapped(name, width)) for width in range(6, len(name) + 1))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_run_at_80_columns_cuts_no_name_and_no_error(
    folder: Path, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams have an encoding, as in a terminal.  Fails by chance < 1 in 10**6: the seeds are fixed."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner(charset=encoding).invoke(app, ["run", "c.yaml", "--no-pdf"], catch_exceptions=False)
    assert done.exit_code == 1
    shown, said = done.stdout_bytes.decode(encoding), done.stderr_bytes.decode(encoding)
    assert max(map(len, shown.splitlines())) <= 80
    joined = re.sub(r"\s+", "", shown)
    assert all(holds(shown, name) for name in NAMES)
    for words in ("proven,claimed1;notconfirmed", "couldnotseemuch", "5runsperdatasetaretoofew"):
        assert words in joined
    assert "no \\u202e way\\x1b[2J on run 0" in " ".join(shown.split())  # no file has this reason
    signs = "▲○◇" if encoding == "utf-8" else "Xo?"
    verdicts = [f"{sign} {word}" for sign, word in zip(signs, ("violation", "no violation", "inconclusive"))]  # noqa: B905
    for verdict in verdicts:
        assert verdict in shown
        assert verdict in said
    assert f"2 of 4  {NAMES[1]}  {verdicts[0]}" in said
    assert "\x1b" not in shown + said
    assert "\u202e" not in shown + said


def test_results_are_on_stdout_and_messages_on_stderr(folder: Path, command: Command) -> None:
    """`test_a_run_at_80_columns_cuts_no_name_and_no_error` reads both streams of a table."""
    done = command("run", "c.yaml", "--no-pdf", "--format", "json")
    assert done.exit_code == 1
    assert all(name in done.stdout for name in NAMES)
    assert "of 4  " in done.stderr
    assert "of 4  " not in done.stdout
    found = json.loads(done.stdout)
    assert [one["name"] for one in found] == NAMES
    assert [one["line"] for one in found] == [2, 4, 6, 8]
    assert json.loads((folder / found[1]["result"]).read_text())["verdict"] == "violation"


@pytest.mark.usefixtures("folder")
def test_x_stops_at_the_first_violation(command: Command) -> None:
    done = command("run", "c.yaml", "--no-pdf", "-x")
    assert done.exit_code == 1
    assert "stopped at the first violation (-x)" in done.stderr
    assert f"Not run: {', '.join(NAMES[2:])}." in done.stdout
    words = "1 of the 2 claims shown refuted; the command had 4 audits.  If all 4 claims were true"
    assert words in done.stdout  # all four audits shared the guarantee
    found = json.loads(command("run", "c.yaml", "--no-pdf", "-x", "-q", "--format", "json").stdout)
    assert [one["reason"] for one in found[2:]] == ["not run: after the first violation (-x)"] * 2


@pytest.mark.usefixtures("folder")
def test_only_chooses_audits_by_name(command: Command) -> None:
    def names(*patterns: str) -> list[str]:
        options = [word for pattern in patterns for word in ("--only", pattern)]
        done = command("run", "c.yaml", "--no-pdf", "-q", "--format", "json", *options)
        return [one["name"] for one in json.loads(done.stdout)]

    assert names("much-too-short") == ["much-too-short"]
    assert names("much*", "gauss*") == [NAMES[0], NAMES[2]]
    done = command("run", "c.yaml", "--only", "much-to-short", "--only", "zzz")
    assert done.exit_code == 2
    assert "--only much-to-short: no audit has this name; did you mean much-too-short?" in done.stderr
    assert f"--only zzz: no audit has this name; the audits are {', '.join(NAMES)}" in done.stderr


def test_rate_and_time_left_are_of_the_runs_so_far() -> None:
    times = iter([10.0, 12.0, 14.0])
    pace = Pace(lambda: next(times))

    def at(trials: int) -> Progress:
        return Progress(trials=trials, allowed=1000, log_e=0.0, log_threshold=3.0)

    assert all(map(math.isnan, pace.measured(at(0))))
    assert pace.measured(at(100)) == (50.0, 18.0)
    assert pace.measured(at(400)) == (100.0, 6.0)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def noisy_sum(dataset: list[float], rng: np.random.Generator) -> float:
    return sum(dataset) + rng.normal()


def at(trials: int) -> Progress:
    return Progress(trials=trials, allowed=1000, log_e=0.0, log_threshold=math.log(100))


def test_a_terminal_shows_one_line_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, times = Terminal(), iter(range(100))
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: SimpleNamespace(columns=110))
    line = lines._Line("sum", None, stream, lambda: float(next(times)))
    for trials in (0, 250, 500):
        line(at(trials))
    line.end()
    drawn = stream.getvalue().split("\r")
    assert drawn[3].startswith(
        "[##########          ] sum · 500 of 1,000 runs · 125 runs/s · ≤ 4 s left · evidence 1 of"
    )
    assert drawn[-1] == ""
    assert drawn[-2].strip() == "", "the line is removed at the end"
    assert all(len(part) < 110 for part in drawn)


def test_a_log_gets_a_line_every_few_seconds() -> None:
    stream, times = io.StringIO(), iter(range(100))
    line = lines._Line("sum", None, stream, lambda: float(next(times)))
    for trials in range(0, 1000, 100):
        line(at(trials))
    line.end()
    assert "\r" not in stream.getvalue()
    assert 2 <= len(stream.getvalue().splitlines()) <= 4


def test_true_and_false_are_allowed_and_other_values_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    """The evidence and the output of an audit do not depend on the display."""
    results = [
        audit(noisy_sum, "gaussian(mu=1)", Pair([0], [1]), attacks="logistic", trials=60, seed=1, progress=progress)
        for progress in (True, False)
    ]
    assert results[0].e_value == results[1].e_value
    assert capsys.readouterr().out == ""
    with pytest.raises(TypeError, match="progress must be True, or a function"):
        audit(noisy_sum, "gaussian(mu=1)", Pair([0], [1]), seed=1, progress="yes")  # type: ignore[arg-type]
