"""The results of one command, and its formats for programs: JSON, CSV, GitHub annotations, JUnit XML and SARIF.

Each format is a function `NAME_text(run, screen) -> str`, which escapes foreign text.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote
from xml.etree import ElementTree

from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.result.words import words_of
from dpaudit.text import NO_RESULT, SIGNS, Sign, __version__, joined, one_line
from dpaudit_reports.blocks import flat
from dpaudit_reports.claimed import certified_of_claimed, enlarged, headline
from dpaudit_reports.document import newest
from dpaudit_reports.sections.answer import verdict_text
from dpaudit_reports.verdicts import reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One audit of a command: its result, or the reason why it has no result."""

    name: str
    result: AuditResult | None = None
    reason: str = ""  # why the audit has no result; "" if `result` is given
    failed: bool = False  # whether the audit failed; False if the command ended before the audit began
    expected: str | None = None  # the config's `expect`: "violation", "no violation" or None
    file: Path | None = None  # the config, as the user named it
    line: int = 1  # line of the config at which the audit begins
    saved: Path | None = None  # the JSON file of the result

    @property
    def sign(self) -> Sign:
        """The sign, word and colour of the verdict."""
        return NO_RESULT if self.result is None else SIGNS[self.result.verdict.value]

    @property
    def as_expected(self) -> bool | None:
        """Whether the verdict is the expected verdict of the config; None if the config expects no verdict."""
        if self.expected is None:
            return None
        wanted = Verdict.VIOLATION if self.expected == "violation" else Verdict.NO_VIOLATION
        return self.result is not None and self.result.verdict is wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All audits of one command, in the order of the configs."""

    audits: Sequence[Audited]
    together: str = ""  # a sentence about all audits together

    @classmethod
    def of(cls, results: Sequence[AuditResult], expected: Sequence[str | None] | None = None) -> Run:
        """Return a run that holds only results."""
        wanted = [None] * len(results) if expected is None else expected
        return cls(audits=[Audited(name=r.name, result=r, expected=e) for r, e in zip(results, wanted, strict=True)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """Properties of the device that shows a table."""

    width: int | None = None  # in character cells; None if lines may have any length, e.g. in a file
    encoding: str = "utf-8"
    terminal: bool = False  # whether colours are shown, subject to NO_COLOR and TERM


_NAMES = {"ε": "epsilon", "μ": "mu"}

Fact: TypeAlias = str | int | float | bool | list[str] | None  # what JSON can hold
_TRACEBACK = "Traceback (most recent call last)"


def facts(audited: Audited) -> dict[str, Fact]:
    """Return the facts with all digits.  Every audit has the same keys; an inapplicable value is None."""
    result = audited.result
    bound = headline(result) if result is not None and result.bounds_valid else None
    return {
        "name": audited.name,
        "verdict": None if result is None else result.verdict.value,
        "claim": None if result is None else str(result.claim),
        "confidence": None if result is None else result.confidence,
        "method": None if result is None else result.method,
        "runs_per_dataset": None if result is None else result.trials_used,
        "stopped_by": None if result is None else result.stopped_by,
        "p_value": None if result is None else finite(result.p_value),
        "e_value": None if result is None else finite(result.e_value),
        "parameter": None if bound is None else _NAMES[bound.symbol],
        "delta": None if bound is None else bound.delta,
        "certified_at_least": None if bound is None else finite(bound.certified),
        "claimed_at_most": None if bound is None else finite(bound.claimed),
        "detectable": detectable(result) or None,
        "confirmation": None if result is None or result.confirmation is None else result.confirmation.outcome,
        "seconds": None if result is None else finite(round(result.elapsed_s, 3)),
        "expected": audited.expected,
        "as_expected": audited.as_expected,
        "config": None if audited.file is None else str(audited.file),
        "line": None if audited.file is None else audited.line,
        "result": None if audited.saved is None else str(audited.saved),
        "assumption": None if result is None else words_of(result.evidence).assumption or None,
        "reason": (audited.reason if result is None else reason(result)) or None,
        "warnings": [] if result is None else list(result.warnings),
    }


def finite(value: float) -> float | str | None:
    """Convert a float for JSON.  Infinity becomes "inf", as in result files, and NaN becomes None."""
    if math.isnan(value):
        return None
    return str(value) if math.isinf(value) else value


def detectable(result: AuditResult | None) -> str:
    """Return the smallest violation that would have been found with 90 % probability."""
    if result is None or result.violated or not result.bounded:
        return ""
    return enlarged(result.detectable.claim) or "nothing"


def certified(result: AuditResult) -> str:
    """Return the certified bound on the claim's own parameter with the claim, as "ε ≥ 1.003 at δ = 0 (claim 1)"."""
    return flat(certified_of_claimed(result))


def why(audited: Audited) -> str:
    """Return the reason why the audit is inconclusive or has no result, on one line; otherwise ""."""
    return joined(audited.reason.partition(_TRACEBACK)[0] if audited.result is None else reason(audited.result))


def sentence(audited: Audited) -> str:
    """Return the verdict of a report on one printable line, for a message of another program."""
    if audited.result is None:
        return f"no result: {why(audited)}"
    expected = {None: "", True: " As expected.", False: " Not as expected."}[audited.as_expected]
    return one_line(f"{verdict_text(audited.result)}{expected}")


_FORMULA = ("=", "+", "-", "@")  # a spreadsheet reads a cell that begins with one of these characters as a formula


def json_text(run: Run, screen: Screen) -> str:
    """Return an array with one object and one line for each audit, in ASCII, which keeps foreign text harmless."""
    rows = ",\n".join(json.dumps(facts(audited), ensure_ascii=True, allow_nan=False) for audited in run.audits)
    return f"[\n{rows}\n]\n" if rows else "[]\n"


def csv_text(run: Run, screen: Screen) -> str:
    """Return the rows.  One cell holds all warnings, separated by " | "."""
    stream = io.StringIO()
    rows = csv.writer(stream, lineterminator="\n")
    rows.writerow(facts(Audited(name="")))
    rows.writerows(map(_cell, facts(audited).values()) for audited in run.audits)
    return stream.getvalue()


def _cell(value: object) -> str:
    if value is None or isinstance(value, int | float):
        return "" if value is None else repr(value).lower()
    words = one_line(" | ".join(value) if isinstance(value, list) else str(value))
    return f"'{words}" if words.startswith(_FORMULA) else words  # an apostrophe marks the cell as text


_LEVELS = {Verdict.VIOLATION: "error", Verdict.NO_VIOLATION: "notice", Verdict.INCONCLUSIVE: "warning"}  # of GitHub


def github_text(run: Run, screen: Screen) -> str:
    """Return one line for each audit: error, warning or notice.  A failed audit gets an error."""
    lines = []
    for audited in run.audits:
        failed = "error" if audited.failed else "warning"
        level = failed if audited.result is None else _LEVELS[audited.result.verdict]
        properties = {"title": f"{audited.sign.sign} {audited.name}"}
        if audited.file is not None:
            properties = {"file": audited.file.as_posix(), "line": str(audited.line), **properties}
        named = (f"{key}={_data(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items())
        lines.append(f"::{level} {','.join(named)}::{_data(sentence(audited))}\n")
    return "".join(lines)


def _data(words: str) -> str:
    """Escape a message as GitHub's toolkit does, so that foreign text cannot begin another command."""
    return one_line(words).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def junit_text(run: Run, screen: Screen) -> str:
    """Return one test suite with one test case for each audit, in ASCII with character references."""
    results = [audited.result for audited in run.audits if audited.result is not None]
    verdicts = Counter(result.verdict for result in results)
    about = {
        "name": "dpaudit",
        "package": "dpaudit",
        "id": "0",
        "timestamp": f"{newest(results) or datetime.now(UTC):%Y-%m-%dT%H:%M:%S}",
        "hostname": "localhost",
        "tests": str(len(run.audits)),
        "failures": str(verdicts[Verdict.VIOLATION]),
        "errors": str(verdicts[Verdict.INCONCLUSIVE] + len(run.audits) - len(results)),
        "time": f"{sum(result.elapsed_s for result in results):.3f}",
    }
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", about)
    ElementTree.SubElement(suite, "properties")
    for audited in run.audits:
        result = audited.result
        case = ElementTree.SubElement(
            suite,
            "testcase",
            name=one_line(audited.name),
            classname=one_line(audited.file.as_posix()) if audited.file else "dpaudit",
            time=f"{0.0 if result is None else result.elapsed_s:.3f}",
        )
        if result is None or result.verdict is not Verdict.NO_VIOLATION:
            kind = "failure" if result is not None and result.violated else "error"
            words = sentence(audited)
            ElementTree.SubElement(case, kind, type=audited.sign.word, message=words).text = words
    lines = [f"{audited.sign.sign} {_message(audited)}" for audited in run.audits]
    ElementTree.SubElement(suite, "system-out").text = "\n".join([*lines, *filter(None, [one_line(run.together)])])
    ElementTree.SubElement(suite, "system-err")
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True)
    return written.decode("ascii") + "\n"


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_RULES = {
    Verdict.VIOLATION: ("violation", "fail", "error", "The audit refuted the claim of differential privacy."),
    Verdict.NO_VIOLATION: (
        "no-violation-found",
        "informational",
        "none",
        "The audit found no violation.  This does not prove the claim.",
    ),
    Verdict.INCONCLUSIVE: ("inconclusive", "open", "none", "The audit cannot decide whether the claim holds."),
}


def sarif_text(run: Run, screen: Screen) -> str:
    """Return a log with one run, in ASCII."""
    unanswered = (a for a in run.audits if a.result is None or a.result.verdict is Verdict.INCONCLUSIVE)
    invocation = {
        "executionSuccessful": all(audited.result is not None for audited in run.audits),
        "toolExecutionNotifications": [
            {"level": "error" if audited.failed else "warning", **_located(audited)} for audited in unanswered
        ],
    }
    driver = {
        "name": "dpaudit",
        "version": __version__,
        "informationUri": "https://github.com/dpaudit/dpaudit",
        "rules": [
            {"id": rule, "shortDescription": {"text": words}, "defaultConfiguration": {"level": level}}
            for rule, _, level, words in _RULES.values()
        ],
    }
    ran: dict[str, object] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(audited) for audited in run.audits if audited.result is not None],
        **({"properties": {"together": one_line(run.together)}} if run.together else {}),
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [ran]}
    return json.dumps(log, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _result(audited: Audited) -> dict[str, object]:
    assert audited.result is not None
    rule, kind, level, _ = _RULES[audited.result.verdict]
    digest = hashlib.sha256(audited.name.encode("utf-8", "surrogatepass")).hexdigest()
    properties = {
        key: list(map(one_line, value))
        if isinstance(value, list)
        else one_line(value)
        if isinstance(value, str)
        else value
        for key, value in facts(audited).items()
        if value is not None
    }
    return {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(audited.result.verdict),
        "kind": kind,
        "level": level,
        **_located(audited),
        "partialFingerprints": {"dpauditName/v1": digest},
        "properties": properties,
    }


def _message(audited: Audited) -> str:
    return f"{one_line(audited.name)}: {sentence(audited)}"


def _located(audited: Audited) -> dict[str, object]:
    """Return the message of an audit, with its place in the config."""
    message, file = {"message": {"text": _message(audited)}}, audited.file
    if file is None:
        return {**message}
    artifact = {"uri": file.as_uri() if file.is_absolute() else quote(os.fsencode(file.as_posix()))}
    place = {"artifactLocation": artifact, "region": {"startLine": audited.line}}
    return {**message, "locations": [{"physicalLocation": place}]}
