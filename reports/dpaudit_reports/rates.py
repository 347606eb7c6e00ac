"""The counts of a rejection region in natural frequencies, with exact intervals, and the names of the two datasets."""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass, replace
from enum import Enum

from dpaudit.claims import Reported
from dpaudit.result.model import AuditResult
from dpaudit.result.summary import allowed_rate, beyond_reports
from dpaudit.result.values import PairRow, Witness
from dpaudit.result.words import quotation
from dpaudit.rounding import NOT_KNOWN, at_least, at_most, count
from dpaudit_reports.blocks import Code, Span, Strong, bare
from dpaudit_reports.verdicts import fresh


class RegionStatus(Enum):
    """The conclusions that a report may draw from the region of a result."""

    NONE = "no region"
    VOID = "counts that prove nothing"
    WITNESS = "a region that shows the violation"
    TESTED = "a region frozen beforehand, without a violation"
    CLOSEST = "a region chosen by its counts, without a violation"
    FAR = "no region near a violation"


def region_status(result: AuditResult) -> RegionStatus:
    """Return the conclusion that a report may draw from the region that the result names."""
    found = result.witness
    if found is None or not result.evidence.kind.of_pairs:
        return RegionStatus.NONE
    if not result.bounds_valid:
        return RegionStatus.VOID
    if result.violated:
        return RegionStatus.WITNESS
    if frozen(result):
        return RegionStatus.TESTED
    return RegionStatus.CLOSEST if found.near else RegionStatus.FAR


def intervals(found: Witness) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Return the 95 % intervals of alpha and beta, ((lower, upper), (lower, upper)); None if the witness has none."""
    if math.isnan(found.alpha_upper):
        return None
    return (found.alpha_lower, found.alpha_upper), (found.beta_lower, found.beta_upper)


def frozen(result: AuditResult) -> bool:
    """Return whether the region and the number of its outputs were fixed before these outputs came."""
    return result.evidence.kind.frozen or (result.witness is not None and result.witness.counted == "frozen")


def interval_text(interval: tuple[float, float] | None) -> str:
    """Return an interval of a rate as text, rounded outwards, such as "21.6 to 25.5 %"."""
    if interval is None:
        return NOT_KNOWN
    rests = [100 - 100 * rate for rate in interval]  # a rate near 1 has enough digits to differ from 1
    low, high = (max(3, 3 - math.floor(math.log10(rest))) if 0 < rest < 1 else 3 for rest in rests)
    first = bare(at_least(100 * interval[0], low))
    return f"{first} to {bare(at_most(100 * interval[1], high))}\u00a0%"


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The numbers of outputs of d0 and of d1 in a region."""

    hits0: int
    n0: int
    hits1: int
    n1: int
    # largest hits1 that the claim allows on average; None if no such comparison is valid, see `frequencies`
    most: int | None
    moving: bool  # whether the region changed while its outputs were counted
    later: bool  # whether the region was fixed before these outputs came, but not the number of runs
    runs: str  # "fresh runs" if new runs followed the refutation, otherwise "runs"
    sides: Sides


def frequencies(result: AuditResult) -> Frequencies | None:
    """Return the counts of the result's region; None if the result has no region or no counts of one dataset.

    The claim's limit `most`, rounded up, takes the rate on d0 at the upper end of its 95 % interval.  It is set if
    region and number of runs were fixed before counting.  If only the region was fixed, rates are biased against the
    claim, so it is set only if the whole interval of the rate on d1 is above it.
    """
    found = result.witness
    if found is None or not result.evidence.kind.of_pairs:
        return None
    (hits0, n0, hits1, n1), most = found.counts.hits, None
    moving, later = intervals(found) is None, found.counted == "later" and not frozen(result)
    if (frozen(result) or later) and not moving and not math.isnan(rate := allowed_rate(result)):
        allowed = min(n1, math.ceil(rate * n1))
        if not later or (hits1 > allowed and 1 - found.beta_upper > rate):
            most = allowed
    runs, shown = "fresh runs" if fresh(result) else "runs", sides(result, found.pair)
    return Frequencies(hits0, n0, hits1, n1, most, moving, later, runs, shown)


def counted(result: AuditResult, found: Frequencies) -> str:
    """Return the counts as the beginning of a sentence, or as two sentences if the region changed."""
    assert result.witness is not None
    times1 = f"{count(found.hits1)} of {count(found.n1)} {found.runs} {found.sides.on1}"
    times0 = f"{count(found.hits0)} of {count(found.n0)} {found.sides.on0}"
    if found.moving:
        return (
            f"The attack's region changed while the attack learned. It held the outputs of {times1} and of {times0}. "
            f"At the end, the region was: {result.witness.region}."
        )
    if isinstance(result.claim, Reported):
        k0, k1 = (count(times) for times in beyond_reports(result.witness))
        return (
            f"{k0} of {count(found.n0)} {found.runs} {found.sides.name0} showed more than they report and survived; "
            f"{k1} of {count(found.n1)} {found.sides.name1} looked like them"
        )
    return f"{subject(result.witness)} in {times1} and in {times0}"


def with_minus(words: str) -> str:
    """Return words whose negative numbers have the sign of print in place of a hyphen."""
    return re.sub(r"(?<![\w.)\]])-(?=\d)", "−", words)


def subject(found: Witness) -> str:
    """Return what the counts are about, as the beginning of a sentence."""
    condition = found.described.condition
    if condition is None or found.described.nearly:
        return f"The output was in the region ({with_minus(found.region).replace(': ', ' ')})"
    if condition.of_output:
        return f"The output is {with_minus(str(condition.values))}"
    return f"{quotation(str(condition))} was true"


_RECORD_LENGTH = 24  # maximum length of a record that a sentence names, in characters
SHOWN_LENGTH = 120  # maximum length of a dataset that is shown in full, in characters


@dataclass(frozen=True, slots=True)
class Sides:
    """Names of the two datasets of a pair."""

    name0: str  # of d0, such as "without the record"
    name1: str
    on0: str  # name of d0 in a sentence that already mentions d1, such as "without it"
    on1: str  # such as "with the record 1.0"
    change: str = ""  # the change from d0 to d1, such as "one record added"; "" if the change is not known


UNNAMED = Sides("on the first dataset", "on the second dataset", "on the first", "on the second dataset")


def sides(result: AuditResult, label: str) -> Sides:
    """Return names for the datasets of the pair with this label, from the texts of its datasets or their records."""
    row, found = row_of(result, label), result.witness
    first, second = (None, None) if row is None else (_records(row.d0), _records(row.d1))
    cut = first is None or second is None
    stored = found.datasets if cut and found is not None and found.pair == label else ()
    if stored and all(one and isinstance(one[0], list) for one in stored):
        first, second = (list(map(repr, one[0])) for one in stored)
    if first is None or second is None:
        return UNNAMED
    start, end = _common(first, second)
    old, new = first[start : len(first) - end], second[start : len(second) - end]
    short = not cut and max(map(len, [*old, *new]), default=0) <= _RECORD_LENGTH
    match len(old), len(new):
        case 0, 1:
            extra = f"with the record {new[0]}" if short else "with the record"
            return Sides("without the record", "with the record", "without it", extra, "one record added")
        case 1, 0:
            extra = f"without the record {old[0]}" if short else "without the record"
            return Sides("with the record", "without the record", "with it", extra, "one record removed")
        case 1, 1 if short:
            names = f"with {old[0]}", f"with {new[0]}", f"with {old[0]} in its place", f"with the record {new[0]}"
            return Sides(*names, "one record replaced")
        case 1, 1:
            return replace(UNNAMED, change="one record replaced")
    return UNNAMED


def row_of(result: AuditResult, label: str) -> PairRow | None:
    """Return the first pair with this label; None if there is none."""
    return next((row for row in result.pairs if row.label == label), None)


def difference(text0: str, text1: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return both texts as spans; the different part is emphasised, and long common parts are shortened."""
    first, second = _tokens(text0), _tokens(text1)
    start, end = _common(first, second)
    return _marked(first, start, end), _marked(second, start, end)


def _common(first: list[str], second: list[str]) -> tuple[int, int]:
    """Return the lengths of the longest common beginning and of the longest common end of the rest."""
    shortest = min(len(first), len(second))
    start = next((i for i in range(shortest) if first[i] != second[i]), shortest)
    most = shortest - start
    return start, next((i for i in range(most) if first[-1 - i] != second[-1 - i]), most)


def _marked(tokens: list[str], start: int, end: int) -> tuple[Span, ...]:
    stop = len(tokens) - end
    own = tokens[start:stop]
    while own and (own[0].isspace() or own[0] == ","):
        start, own = start + 1, own[1:]
    before, after = "".join(tokens[:start]), "".join(tokens[stop:])
    mine = ends("".join(own), SHOWN_LENGTH)
    common = SHOWN_LENGTH if sum(map(len, tokens)) <= SHOWN_LENGTH else SHOWN_LENGTH // 2
    if not mine:
        return (Code(ends("".join(tokens), common)),)
    found = (Code(ends(before, common)), Strong(mine), Code(ends(after, common)))
    return tuple(span for span in found if span.text)


def ends(text: str, most: int = SHOWN_LENGTH) -> str:
    """Return a text that is shortened to its two ends if it has more than `most` characters."""
    half = most // 2 - 1
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"


def _tokens(text: str) -> list[str]:
    return re.findall(r"[-+]?\w+(?:\.\w+)*|\s+|[^\w\s]", text)


def _records(text: str) -> list[str] | None:
    """Return the texts of a dataset's records; None if the text is not a complete Python list or tuple."""
    if len(text) > 2_000 or "…" in text or "..." in text:
        return None
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return list(map(repr, found)) if isinstance(found, list | tuple) else None
