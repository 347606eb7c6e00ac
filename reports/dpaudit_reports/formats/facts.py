"""The audits of one command, and the facts about each: numbers for programs, and words for messages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.result.words import words_of
from dpaudit.text import NO_RESULT, SIGNS, Sign, joined, one_line
from dpaudit_reports.blocks import flat
from dpaudit_reports.claimed import certified_of_claimed, enlarged, headline
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
        return cls(
            audits=[Audited(name=r.name, result=r, expected=e) for r, e in zip(results, wanted, strict=True)],
        )


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
    if result is None or result.violated or not result.bounds_valid:
        return ""
    return enlarged(result.detectable.claim) or "nothing"


def certified(result: AuditResult) -> str:
    """Return the certified bound on the claim's own parameter and the claimed value, as "ε ≥ 1.003 / 1 at δ = 0"."""
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
