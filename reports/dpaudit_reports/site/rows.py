"""The rows of the index: the facts about each audit, and the order of the rows in each column."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice

from dpaudit.result.checks import unchecked
from dpaudit.result.model import AuditResult
from dpaudit.text.printable import one_line, shortened
from dpaudit.text.rounding import count, percent_at_least
from dpaudit_reports.blocks import Code, Text
from dpaudit_reports.claimed import Bound, certified_of_claimed, headline, label
from dpaudit_reports.document import date_of
from dpaudit_reports.numbers import MAX_ENTRIES, some_of
from dpaudit_reports.verdicts import MARKS, WORST_FIRST, outcome, title_of

UNKNOWN = -1  # rank of a row without a value; such rows come last


@dataclass(frozen=True)
class Entry:
    """An audit of the site."""

    result: AuditResult
    digest: str  # hash of the content of the result
    address: str  # name of the page, without its ending

    @property
    def page(self) -> str:
        """The file name of the page."""
        return f"{self.address}.html"

    @property
    def badge(self) -> str:
        """The file name of the badge."""
        return f"{self.address}.svg"

    @property
    def title(self) -> str:
        """The name of the audit on one line."""
        return shortened(one_line(title_of(self.result)))

    @property
    def claim(self) -> str:
        """The claim on one line."""
        return shortened(one_line(label(self.result.claim)))

    @cached_property
    def unchecked(self) -> str:
        """What this version of dpaudit does not confirm about the numbers of the result; "" if it confirms all."""
        return unchecked(self.result)

    @property
    def note(self) -> str:
        """The words after the verdict."""
        return ", not checked" if self.unchecked else ""

    @cached_property
    def library(self) -> str:
        """The audited packages with their versions; "" if the result records none."""
        return some_of([shortened(one_line(package)) for package in _audited(self.result)], 2)

    @cached_property
    def date(self) -> datetime | None:
        """The date of the audit in UTC, if the result records it."""
        return date_of(self.result)

    @cached_property
    def bound(self) -> Bound | None:
        """The certified bound; None if nothing is certified, or no single parameter."""
        bound = headline(self.result) if self.result.bounds_valid else None
        return None if bound is None or math.isnan(bound.certified) else bound

    @property
    def _excess(self) -> float:
        """The certified bound divided by the claimed value; -1 if nothing is certified."""
        if self.bound is None:
            return -1.0
        return self.bound.certified / self.bound.claimed if 0 < self.bound.claimed < math.inf else 0.0


def _audited(result: AuditResult) -> list[str]:
    """Return the packages that the config or the mechanism names, in this order; or else all, with what they need."""
    about = result.provenance
    packages = about.mechanism_packages or {}
    texts = (about.audit or "", about.mechanism or "", about.config or "")
    words = _words(" ".join(text[:100_000] for text in texts))
    places = {name: words.find(_words(name)) for name in islice(packages, MAX_ENTRIES) if _words(name).strip()}
    places = {name: place for name, place in places.items() if place >= 0}
    return [f"{name} {packages[name]}" for name in sorted(places, key=places.__getitem__) or packages]


def _words(text: str) -> str:
    return f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "


def worst_first(entries: Sequence[Entry]) -> list[Entry]:
    """Return violations, then inconclusive audits, and first those with the largest bound for their claim."""
    return sorted(
        entries,
        key=lambda one: (WORST_FIRST.index(one.result.verdict), -one._excess, one.title.casefold(), one.digest),
    )


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the index."""

    title: str
    cells: Sequence[Text]
    ranks: Sequence[int]  # place of each row in the first order of the column; UNKNOWN comes last
    order: str  # the first order in words
    first: str = "descending"  # the first order for `aria-sort`
    align: str = ""


def columns(entries: Sequence[Entry]) -> list[Column]:
    """Return the columns of the index."""
    results = [one.result for one in entries]
    marks = [MARKS[result.verdict] for result in results]
    verdicts = [
        f"{mark.sign} {mark.word}{outcome(one.result)}{one.note}" for one, mark in zip(entries, marks, strict=True)
    ]
    confidences = [result.confidence for result in results]
    shown = [percent_at_least(confidence) for confidence in confidences]
    sure = Column("Confidence", shown, _ranks([-one for one in confidences]), "highest first", align="right")
    bounds = [one.bound and (one.bound.symbol, one.bound.delta or 0.0, -one.bound.certified) for one in entries]
    certified = [certified_of_claimed(result) for result in results]
    runs = [result.trials_used for result in results]
    days = [one.date.strftime("%Y-%m-%d") if one.date else "–" for one in entries]
    return [
        Column("Verdict", verdicts, list(range(len(entries))), "worst first", "ascending"),
        _by_text("Audit", [one.title for one in entries]),
        _by_text("Claim", [one.claim for one in entries], code=True),
        *([sure] if len(set(confidences)) > 1 else []),
        Column("Certified / claimed", certified, _ranks(bounds), "largest bound first"),
        Column(
            "Runs",
            [count(number) for number in runs],
            _ranks([-number for number in runs]),
            "most first",
            align="right",
        ),
        _by_text("Library", [one.library for one in entries]),
        Column("Date", days, _ranks([one.date and -one.date.timestamp() for one in entries]), "newest first"),
    ]


def _by_text(title: str, texts: Sequence[str], *, code: bool = False) -> Column:
    cells: list[Text] = [(Code(text),) if code else text or "–" for text in texts]
    return Column(title, cells, _ranks([text.casefold() or None for text in texts]), "A to Z", "ascending")


def _ranks(keys: Sequence[object]) -> list[int]:
    places = {key: place for place, key in enumerate(sorted({key for key in keys if key is not None}))}  # type: ignore[type-var]
    return [UNKNOWN if key is None else places[key] for key in keys]
