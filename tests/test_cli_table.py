"""The output of `dpaudit run`: the table, the formats, progress, and the choice of audits."""

import dataclasses
import io
import json
import math
import re
import shutil
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from dpaudit import AuditResult, GaussianDP, Pair, Verdict, audit, batched
from dpaudit.cli.app import app
from dpaudit.cli.options import RunOptions
from dpaudit.cli.runner import InOrder
from dpaudit.config.files import read_configs
from dpaudit.engine import progress_line as lines
from dpaudit.engine.audit import Progress
from dpaudit.engine.progress_line import Pace
from dpaudit.inference.e_bh import shared_confidences, significance
from dpaudit.result.provenance import Provenance, key
from dpaudit.result.suite import Promise, named_together, promised_together
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


# --- one guarantee for one command: it bounds the false alarms of all its audits together


COMMAND, AUDITS, PROMISED = map(key, ("command_number", "command_audits", "command_confidence"))

ONE = (
    "- {{name: {name}, claim: gaussian(mu=1), mechanism: {{builtin: gaussian, params: {{sigma: {sigma}}}}}, "
    "pairs: [{{d0: [0], d1: [1]}}], attacks: threshold, trials: {trials}, seed: 3, confidence: {confidence}}}\n"
)


def configs(file: Path, sigmas: Sequence[float], *, confidence: float = 0.95, trials: int = 60) -> Path:
    audits = (ONE.format(name=f"a{i}", sigma=s, trials=trials, confidence=confidence) for i, s in enumerate(sigmas))
    file.write_text("audits:\n" + "".join(audits))
    return file


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999, 1 - 1e-7, 1 - 1e-12])
@pytest.mark.parametrize("audits", [2, 3, 7, 12, 97, 1000])
def test_significances_of_one_command_add_up_to_no_more_than_it_promises(confidence: float, audits: int) -> None:
    shares = shared_confidences([confidence] * audits)
    assert sum(1 - Fraction(share) for share in shares) <= 1 - Fraction(repr(confidence))
    assert all(0 < share < 1 for share in shares)
    assert Promise.of([confidence] * audits).false_alarm == significance(confidence)


def test_a_promise_that_cannot_be_split_is_refused() -> None:
    with pytest.raises(ValueError, match="too close to 1"):
        shared_confidences([math.nextafter(1.0, 0.0)] * 12)
    with pytest.raises(ValueError, match="strictly between 0 and 1, got 95"):
        shared_confidences([95.0, 0.9])


def test_every_audit_of_run_is_made_at_its_share_and_records_the_command(tmp_path: Path, command: Command) -> None:
    """Fails by chance < 1 in 10**6: the seeds are fixed."""
    configs(tmp_path / "c.yaml", [1.0, 0.2, 1.0])
    done = command("run", "c.yaml", "--no-pdf", "--confirm", "never")
    assert done.exit_code == 1
    found = [AuditResult.from_json(tmp_path / "dpaudit-results" / f"a{i}.json") for i in range(3)]
    assert {result.confidence for result in found} == set(shared_confidences([0.95] * 3))
    assert [result.verdict for result in found][1] is Verdict.VIOLATION
    assert found[1].p_value <= 0.05 / 3
    assert {(result.environment[AUDITS], result.environment[PROMISED]) for result in found} == {(3, 0.95)}
    assert len({result.environment[COMMAND] for result in found}) == 1
    words = (
        "1 of 3 claims refuted.  If all 3 claims were true, this command would refute one or more of them with "
        "probability at most 5 %."
    )
    assert words in done.stdout
    assert "e-BH" not in done.stdout
    assert promised_together(found) == words.partition("  ")[2]
    assert named_together(found) == ""


def test_each_keeps_the_confidence_of_every_audit(tmp_path: Path, command: Command) -> None:
    """Fails by chance < 1 in 10**6: the seeds are fixed."""
    configs(tmp_path / "c.yaml", [1.0, 0.2, 1.0], confidence=0.99)
    done = command("run", "c.yaml", "--no-pdf", "--each", "--confirm", "never")
    found = [AuditResult.from_json(tmp_path / "dpaudit-results" / f"a{i}.json") for i in range(3)]
    assert {result.confidence for result in found} == {0.99}
    assert all(COMMAND not in result.environment for result in found)
    assert "1 of 3 claims refuted, each at its own confidence." in done.stdout
    assert "with probability at most 3 %." in done.stdout


def test_confidence_of_the_command_line_is_that_of_the_whole_command(tmp_path: Path, command: Command) -> None:
    """Fails by chance < 1 in 10**6: the seeds are fixed."""
    configs(tmp_path / "c.yaml", [1.0, 1.0])
    done = command("run", "c.yaml", "--no-pdf", "--confidence", "0.999")
    assert "0 of 2 claims refuted.  If all 2 claims were true" in done.stdout
    assert "at most 0.1 %." in done.stdout
    values = json.loads((tmp_path / "dpaudit-results" / "a0.json").read_text())
    assert 1 - values["confidence"] <= 0.0005
    assert values["environment"][PROMISED] == 0.999


def test_audits_that_cannot_be_run_count_among_those_that_share(tmp_path: Path) -> None:
    """The number of audits is fixed before anything runs.  The test uses no randomness."""
    planned = read_configs([configs(tmp_path / "c.yaml", [1.0, 1.0, 1.0], trials=40)])
    outcome = InOrder(planned).run(RunOptions(output=tmp_path / "out", no_pdf=True, quiet=True))
    assert [result.environment[AUDITS] for result in outcome.results] == [3, 3, 3]
    assert {result.confidence for result in outcome.results} == set(shared_confidences([0.95] * 3))


@cache
def audited() -> AuditResult:
    release = batched(lambda d, n, rng: d[0] + rng.normal(size=n))
    return audit(release, GaussianDP(1.0), Pair([0], [1]), trials=40, seed=1, confidence=0.95)


def result(name: str, **changes: Any) -> AuditResult:
    return dataclasses.replace(audited(), name=name, **changes)


def test_results_of_different_commands_are_corrected_by_e_bh() -> None:
    """The test uses no randomness: verdicts and e-values are set."""
    true = result("true", e_value=0.5)
    weak, strong = (result("bad", e_value=e, verdict=Verdict.VIOLATION) for e in (21.0, 40.0))
    stands = named_together([true, strong])
    assert stands.startswith("1 of 2 refuted, each at 95 %.")
    assert stands.endswith("  After an e-BH correction for this, all refutations stand.")
    assert (
        "no refutation stands yet.  To settle it, run all audits in one command, or each with --confidence 0.976."
        in (named_together([true, weak]))
    )
    clear, clearer = (result(name, e_value=1e4, verdict=Verdict.VIOLATION) for name in ("clear", "clearer"))
    assert "After an e-BH correction for this, only the refutation of clear stands." in named_together(
        [true, true, weak, clear]
    )
    assert "only the refutations of clear, clearer stand." in named_together([*[true] * 4, weak, clear, clearer])
    assert named_together([true, true]) == named_together([strong]) == ""


def test_an_inconclusive_audit_is_never_named_whatever_its_wealth_before_the_failure() -> None:
    """The moment before a failing run is no stopping time.  The test uses no randomness."""
    failed = result("failed", e_value=1007.0, verdict=Verdict.INCONCLUSIVE)
    bad = result("bad", e_value=21.0, verdict=Verdict.VIOLATION)
    words = named_together([failed, bad])
    assert "failed" not in words
    assert "no refutation stands yet" in words  # if e = 1007 were counted, `bad` would need only e = 20
    assert "only the refutation of bad stands" not in words


def test_a_shared_promise_is_believed_only_of_results_whose_confidences_add_up_to_it() -> None:
    """The test uses no randomness."""
    about = {COMMAND: "1", AUDITS: 2, PROMISED: 0.95}
    one, other = (
        result(name, provenance=Provenance.read(about), verdict=Verdict.VIOLATION, e_value=50.0) for name in "ab"
    )
    assert promised_together([one, other]) == ""  # each result has the confidence 95 % of a single audit
    share = shared_confidences([0.95] * 2)[0]
    one, other = (dataclasses.replace(found, confidence=share, _computed_at=None) for found in (one, other))
    assert promised_together([one, other]).startswith("If all 2 claims were true")
    part = [
        dataclasses.replace(found, verdict=Verdict.NO_VIOLATION, provenance=Provenance.read({**about, AUDITS: 20}))
        for found in (one, other)
    ]
    assert promised_together(part).startswith(
        "0 of the 2 claims shown refuted; the command had 20 audits.  If all 20 claims were true, this command would"
    )
    stranger = dataclasses.replace(other, provenance=Provenance.read({**about, COMMAND: "2"}))
    assert promised_together([one, stranger]) == ""
    assert promised_together([one, one]) == ""
