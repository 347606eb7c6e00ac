"""The formats of `dpaudit run`: a table that cuts nothing off, and formats for programs."""

import csv
import dataclasses
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len

import dpaudit_reports
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.text import NO_RESULT, SIGNS, Reason, WarningCode, encodable, printable
from dpaudit_reports import FORMATS, rendered
from dpaudit_reports.formats import Audited, Run, Screen
from dpaudit_reports.terminal import tables_text, wrapped

from . import sample

LONG = "laplace-noise-with-half-of-the-scale-it-claims-to-add"
HOSTILE = 'a,b"=c\n::error::x\r%0A\x1b[2J\u202e\ud800<![CDATA[&]]>\x00'
SCREEN = Screen()


def audited(result: AuditResult, **about: Any) -> Audited:
    return Audited(name=result.name, result=result, file=Path("configs/a b.yaml"), line=7, **about)


def named(result: AuditResult, name: str) -> AuditResult:
    return dataclasses.replace(result, name=name)


def three() -> list[Audited]:
    return [
        audited(named(sample.violation(), LONG), expected="violation", saved=Path("out/x.json")),
        audited(named(sample.no_violation(), "plain"), expected="violation"),
        audited(named(sample.inconclusive(), "short")),
    ]


def everything(name: str = "broken") -> Run:
    failed = Audited(name=name, reason=f"could not be run: {name}", failed=True, file=Path("b.yaml"))
    left = Audited(name="left", reason="not run: after the first violation (-x)")
    return Run(audits=[*three(), failed, left], together="1 of 5 claims refuted.")


def squeezed(words: str) -> str:
    return re.sub(r"\s", "", words)


# --- signs


def test_there_is_one_sign_for_each_verdict_in_every_medium() -> None:
    assert list(SIGNS) == [verdict.value for verdict in Verdict]
    assert len({sign.sign for sign in [*SIGNS.values(), NO_RESULT]}) == 4
    assert not re.search("green|✓|✔", repr(SIGNS))


def test_signs_differ_in_ascii_too() -> None:
    shown = [sign.shown("ascii") for sign in SIGNS.values()]
    assert shown == ["X violation", "o no violation found", "? inconclusive"]
    assert encodable("μ ≥\u00a01.5 × 10⁻⁷ é", "ascii") == "mu >= 1.5 x 10^-7 \\xe9"
    assert encodable("μ é", "utf-8") == "μ é"
    assert encodable("μ", "no such encoding") == "mu"


# --- the table


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [20, 60, 80, 125, None])
def test_lines_of_any_width_hold_names_and_verdicts_and_keep_to_the_width(width: int | None, encoding: str) -> None:
    shown = rendered("table", everything(), Screen(width=width, encoding=encoding))
    assert all(cell_len(line) <= (width or 10_000) for line in shown.splitlines())
    assert shown.isascii() or encoding == "utf-8"
    parts = (wrapped(LONG, cells) for cells in range(4, len(LONG) + 1))
    assert any(all(part in shown for part in name) for name in parts)
    values = ["plain", "short", "broken", "Not run: left.", "1 of 5 claims refuted."]
    values += ["▲ violation", "○ no violation", "◇ inconclusive", "– no result"]
    if width is None or width >= 80:
        values += ["≥\u00a01.043 proven, claimed 1", "≥\u00a00.8719 proven, claimed 1; would have seen 1.12"]
        values += ["could not be run: broken", "NOT AS EXPECTED"]
    for value in values:
        assert squeezed(encodable(value, encoding)) in squeezed(shown), value


def test_an_audit_takes_at_most_two_lines_of_80_columns() -> None:
    loud = dataclasses.replace(sample.inconclusive(), name="a" * 40, warnings=("w " * 300,))
    shown = rendered("table", Run.of([loud, sample.violation(), sample.no_violation()]), Screen(width=80))
    assert len(shown.splitlines()) <= 6


@pytest.mark.parametrize("form", ["table", "github"])
def test_a_reason_of_several_lines_is_joined(form: str) -> None:
    reason = "could not be run: a.trials holds other trials.  What differs:\n  file of mine.py\n  seed"
    reason += "\n    Traceback (most recent call last):\n      File 1"
    failed = Audited(name="refused", reason=reason, failed=True, file=Path("b.yaml"))
    shown = rendered(form, Run(audits=[failed]), Screen(width=None))
    assert "What differs: file of mine.py seed" in shown
    assert "Traceback" not in shown
    assert "\\n" not in shown


def test_colours_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    run = Run(audits=three())
    assert "\x1b" not in rendered("table", run, Screen(width=80))
    assert "\x1b[1;31m▲ violation" in rendered("table", run, Screen(width=80, terminal=True))
    monkeypatch.setenv("NO_COLOR", "1")
    plain = rendered("table", run, Screen(width=80, terminal=True))
    assert "31m" not in plain
    assert "▲ violation" in plain


def test_a_command_without_results_has_no_table() -> None:
    assert rendered("table", Run(audits=[Audited(name="a", reason="not run")]), SCREEN) == ""
    assert rendered("table", Run(audits=[]), SCREEN) == ""


@pytest.mark.parametrize("width", [24, 80, None])
def test_versions_are_lines_of_any_width(width: int | None) -> None:
    audits = {
        "sum": {"lib==1": sample.violation(), "lib==2": sample.no_violation()},
        "x": {"lib==2": sample.violation()},
    }
    shown = tables_text(dpaudit_reports.comparison(audits), Screen(width=width))
    assert all(cell_len(line) <= (width or 10_000) for line in shown.splitlines())
    if width is None:
        assert re.search(r"^ *sum +▲ lib==1 +proven 1.04 times the claim .*$", shown, re.MULTILINE)
        assert re.search(r"^ *x +– lib==1 +could not be run\b", shown, re.MULTILINE)


# --- formats for programs


def test_json_has_one_object_for_each_audit() -> None:
    found = json.loads(rendered("json", everything(), SCREEN))
    assert [one["name"] for one in found] == [LONG, "plain", "short", "broken", "left"]
    assert [one["verdict"] for one in found] == [*(verdict.value for verdict in Verdict), None, None]
    assert found[0]["certified_at_least"] == 1.0432
    assert (found[0]["parameter"], found[0]["delta"], found[0]["claimed_at_most"]) == ("mu", None, 1.0)
    assert (found[0]["as_expected"], found[1]["as_expected"], found[2]["as_expected"]) == (True, False, None)
    assert (found[0]["config"], found[0]["line"], found[0]["result"]) == ("configs/a b.yaml", 7, "out/x.json")
    assert found[3]["reason"] == "could not be run: broken"
    assert len({tuple(one) for one in found}) == 1
    assert json.loads(rendered("json", Run(audits=[]), SCREEN)) == []


def test_json_holds_infinite_and_unknown_numbers() -> None:
    odd = dataclasses.replace(sample.violation(), e_value=math.inf, p_value=math.nan)
    (found,) = json.loads(rendered("json", Run.of([odd]), SCREEN))
    assert (found["e_value"], found["p_value"]) == ("inf", None)


def test_csv_has_a_row_for_each_audit_and_no_formula() -> None:
    run = everything()
    rows = list(csv.DictReader(io.StringIO(rendered("csv", run, SCREEN))))
    objects = json.loads(rendered("json", run, SCREEN))
    assert list(rows[0]) == list(objects[0])
    assert [row["name"] for row in rows] == [one["name"] for one in objects]
    assert float(rows[0]["p_value"]) == objects[0]["p_value"]
    assert (rows[0]["as_expected"], rows[1]["as_expected"], rows[2]["as_expected"]) == ("true", "false", "")
    for name in ("=1+1", "+1", "-1", "@x"):
        text = rendered("csv", Run(audits=[Audited(name=name)]), SCREEN)
        assert next(csv.DictReader(io.StringIO(text)))["name"] == f"'{name}"


def unescaped(words: str) -> str:
    for code, character in (("%0A", "\n"), ("%0D", "\r"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        words = words.replace(code, character)
    return words


def test_github_annotates_the_config() -> None:
    """The grammar is that of GitHub's "Workflow commands for GitHub Actions"."""
    lines = rendered("github", everything(), SCREEN).splitlines()
    commands = [re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line) for line in lines]
    assert [found and found[1] for found in commands] == ["error", "notice", "warning", "error", "warning"]
    assert commands[0] is not None
    properties = dict(part.split("=") for part in commands[0][2].split(","))
    assert properties == {"file": "configs/a b.yaml", "line": "7", "title": f"▲ {LONG}"}
    words = unescaped(commands[0][3])
    assert words.startswith("The claim μ = 1 is false. The output is above 0.52 in 404 of 700 runs")
    assert words.endswith(" As expected.")


# Keys that the standard requires or allows in the written objects; SARIF 2.1.0, sections 3.13 to 3.58.
LEVELS = {"none", "note", "warning", "error"}
KINDS = {"notApplicable", "pass", "fail", "review", "open", "informational"}


def test_sarif_follows_the_standard() -> None:
    log = json.loads(rendered("sarif", everything(), SCREEN))
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    rules = [rule["id"] for rule in driver["rules"]]
    assert driver["name"] == "dpaudit"
    assert run["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    assert len(run["results"]) == 3
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["kind"] in KINDS
        assert result["level"] in LEVELS
        assert result["kind"] == "fail" or result["level"] == "none"  # section 3.27.10
        assert result["message"]["text"]
        (place,) = result["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "configs/a%20b.yaml"
        assert place["physicalLocation"]["region"]["startLine"] >= 1
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
    assert [result["kind"] for result in run["results"]] == ["fail", "informational", "open"]  # never "pass"
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert [note["level"] for note in invocation["toolExecutionNotifications"]] == ["warning", "error", "warning"]
    complete = json.loads(rendered("sarif", Run(audits=three()[:2]), SCREEN))["runs"][0]["invocations"][0]
    assert complete == {"executionSuccessful": True, "toolExecutionNotifications": []}


def test_junit_satisfies_both_schemas() -> None:
    """The rules of Ant's JUnit.xsd (Windy Road), which are stricter than those of Jenkins's junit-10.xsd."""
    text = rendered("junit", everything(), SCREEN)
    assert text.isascii()
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    (suite,) = root
    needed = {"name", "package", "id", "timestamp", "hostname", "tests", "failures", "errors", "time"}
    assert set(suite.attrib) == needed
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
    tags = [child.tag for child in suite]
    assert tags == ["properties", *["testcase"] * 5, "system-out", "system-err"]
    cases = suite.findall("testcase")
    assert all(set(case.attrib) == {"name", "classname", "time"} and float(case.attrib["time"]) >= 0 for case in cases)
    assert [[child.tag for child in case] for case in cases] == [["failure"], [], ["error"], ["error"], ["error"]]
    assert all(set(child.attrib) == {"type", "message"} for case in cases for child in case)
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("5", "1", "3")
    assert "did not refute Gaussian differential privacy" in (suite.findtext("system-out") or "")


# --- foreign text


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("width", [80, None])
def test_foreign_text_is_harmless_in_every_format(form: str, width: int | None) -> None:
    warned = dataclasses.replace(
        sample.inconclusive(), name=HOSTILE, warnings=(Reason(f"too few to see {HOSTILE}", WarningCode.TOO_FEW),)
    )
    run = Run(audits=[*everything(HOSTILE).audits, audited(warned)], together=HOSTILE)
    text = rendered(form, run, Screen(width=width))
    assert printable(text) == text  # no control character but line breaks, and no change of direction
    lines = text.splitlines()
    text.encode()  # and no surrogate
    if form == "github":
        assert len(lines) == 6
        assert all(re.match(r"::(error|warning|notice) file=|::warning title=", line) for line in lines)
    else:
        assert not any(line.lstrip().startswith("::") for line in lines)
    if form in {"json", "sarif"}:
        json.loads(text)
    if form == "json":
        assert json.loads(text)[5]["name"] == HOSTILE  # complete, by JSON's own escapes
    if form == "csv":
        assert len(list(csv.reader(io.StringIO(text)))) == 7
    if form == "junit":
        assert len(ElementTree.fromstring(text).findall(".//testcase")) == 6


def test_no_format_calls_a_mechanism_private() -> None:
    def words(audits: Sequence[Audited]) -> str:
        return "".join(rendered(form, Run(audits=audits), SCREEN).lower() for form in FORMATS)

    assert not re.search(r"is private|\bpass(ed)?\b|success\b", words(three()))
