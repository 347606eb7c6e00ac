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
from dpaudit_reports.blocks import Code, Text
from dpaudit_reports.claimed import Bound, certified_of_claimed, headline, label
from dpaudit_reports.confirmed import outcome
from dpaudit_reports.document import date_of
from dpaudit_reports.marks import MARKS, WORST_FIRST, title_of
from dpaudit_reports.numbers import count, percent_at_least

_MAX_PACKAGES = 2  # packages in the index; the page of the audit has all of them
_MAX_CONFIG = 100_000  # characters of a config in which packages are sought
_MAX_COMPARED = 1_000  # packages that are sought
_MAX_WORDS = 8  # words of the name of a package that is sought
UNKNOWN = -1
"""The rank of a row without a value.  Such rows come last."""


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
        packages = _audited(self.result)
        more = f" and {len(packages) - _MAX_PACKAGES} more" if len(packages) > _MAX_PACKAGES else ""
        return shortened(one_line(", ".join(packages[:_MAX_PACKAGES]))) + more

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
    """Return the audited packages with their versions, in the order in which the config or the mechanism names them.

    A result also lists the packages that the audited packages need.  If neither config nor mechanism names a package,
    all packages are returned.  Only the first words and packages are compared, because a file may hold very many.
    """
    about = result.provenance
    packages = about.mechanism_packages or {}
    texts = (about.audit or "", about.mechanism or "", about.config or "")
    words = _words(" ".join(text[:_MAX_CONFIG] for text in texts))
    names = {name: _words(name) for name in islice(packages, _MAX_COMPARED)}
    first: dict[tuple[str, ...], int] = {}  # place of each sequence of words that is as long as a name
    for length in {len(name) for name in names.values() if 0 < len(name) <= _MAX_WORDS}:
        for start in range(len(words) - length + 1):
            first.setdefault(tuple(words[start : start + length]), start)
    places = {name: place for name, own in names.items() if (place := first.get(tuple(own))) is not None}
    return [f"{name} {packages[name]}" for name in sorted(places, key=places.__getitem__) or packages]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def worst_first(entries: Sequence[Entry]) -> list[Entry]:
    """Return violations, then inconclusive audits, and first those with the largest bound for their claim."""
    return sorted(
        entries,
        key=lambda one: (WORST_FIRST.index(one.result.verdict), -one._excess, one.title.casefold(), one.digest),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the index."""

    title: str
    cells: Sequence[Text]
    ranks: Sequence[int]  # place of each row in the first order of the column; UNKNOWN comes last
    order: str  # the first order in words
    first: str  # the first order for `aria-sort`
    align: str = ""


def columns(entries: Sequence[Entry]) -> list[Column]:
    """Return the columns of the index."""
    marks = [MARKS[one.result.verdict] for one in entries]
    confidences = [one.result.confidence for one in entries]
    found = [
        Column(
            title="Verdict",
            cells=[
                f"{mark.sign} {mark.word}{outcome(one.result)}{one.note}"
                for one, mark in zip(entries, marks, strict=True)
            ],
            ranks=list(range(len(entries))),
            order="worst first",
            first="ascending",
        ),
        _by_text("Audit", [one.title for one in entries]),
        _by_text("Claim", [one.claim for one in entries], code=True),
        Column(
            title="Certified / claimed",
            cells=[certified_of_claimed(one.result) for one in entries],
            ranks=_ranks(
                [one.bound and (one.bound.symbol, one.bound.delta or 0.0, -one.bound.certified) for one in entries]
            ),
            order="largest bound first",
            first="descending",
        ),
        Column(
            title="Runs",
            cells=[count(one.result.trials_used) for one in entries],
            ranks=_ranks([-one.result.trials_used for one in entries]),
            order="most first",
            first="descending",
            align="right",
        ),
        _by_text("Library", [one.library for one in entries]),
        Column(
            title="Date",
            cells=[one.date.strftime("%Y-%m-%d") if one.date else "–" for one in entries],
            ranks=_ranks([one.date and -one.date.timestamp() for one in entries]),
            order="newest first",
            first="descending",
        ),
    ]
    if len(set(confidences)) > 1:
        found.insert(
            3,
            Column(
                title="Confidence",
                cells=[percent_at_least(confidence) for confidence in confidences],
                ranks=_ranks([-confidence for confidence in confidences]),
                order="highest first",
                first="descending",
                align="right",
            ),
        )
    return found


def _by_text(title: str, texts: Sequence[str], *, code: bool = False) -> Column:
    return Column(
        title=title,
        cells=[(Code(text),) if code else text or "–" for text in texts],
        ranks=_ranks([text.casefold() or None for text in texts]),
        order="A to Z",
        first="ascending",
    )


def _ranks(keys: Sequence[object]) -> list[int]:
    """Return the place of each key among the sorted keys; UNKNOWN for None."""
    places = {key: place for place, key in enumerate(sorted({key for key in keys if key is not None}))}  # type: ignore[type-var]
    return [UNKNOWN if key is None else places[key] for key in keys]
