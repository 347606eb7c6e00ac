"""The names of the two datasets of a pair in a report, and where the datasets differ."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from dpaudit.result.model import AuditResult
from dpaudit.result.values import PairRow
from dpaudit_reports.blocks import Code, Span, Strong

_MAX_RECORD = 24  # maximum length of a record that a sentence names, in characters
MAX_SHOWN = 120  # maximum length of a dataset that is shown in full, in characters


@dataclass(frozen=True, slots=True)
class Sides:
    """Names of the two datasets of a pair."""

    name0: str  # of d0, such as "without the record"
    name1: str
    on0: str  # name of d0 in a sentence that already mentions d1, such as "without it"
    on1: str  # such as "with the record 1.0"
    change: str = ""  # the change from d0 to d1, such as "one record added"; "" if the change is not known


UNNAMED = Sides("on d0", "on d1", "on d0", "on d1")


def sides(result: AuditResult, label: str) -> Sides:
    """Return names for the datasets of the pair with this label, from the text of its datasets."""
    row = row_of(result, label)
    first, second = (None, None) if row is None else (_records(row.d0), _records(row.d1))
    if first is None or second is None:
        return UNNAMED
    if extra := _extra(first, second):
        return Sides("without the record", "with the record", "without it", f"with {extra}", "one record added")
    if extra := _extra(second, first):
        return Sides("with the record", "without the record", "with it", f"without {extra}", "one record removed")
    differing = [(old, new) for old, new in zip(first, second, strict=False) if old != new]
    if len(first) != len(second) or len(differing) != 1:
        return UNNAMED
    old, new = differing[0]
    if max(len(old), len(new)) > _MAX_RECORD:
        return replace(UNNAMED, change="one record replaced")
    return Sides(
        f"with {old}", f"with {new}", f"with {old} in its place", f"with the record {new}", "one record replaced"
    )


def row_of(result: AuditResult, label: str) -> PairRow | None:
    """Return the first pair with this label; None if there is none."""
    return next((row for row in result.pairs if row.label == label), None)


def difference(text0: str, text1: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return both texts as spans; the different part is emphasised, and long common parts are shortened."""
    first, second = _tokens(text0), _tokens(text1)
    shortest = min(len(first), len(second))
    start = next((i for i in range(shortest) if first[i] != second[i]), shortest)
    most = shortest - start
    end = next((i for i in range(most) if first[-1 - i] != second[-1 - i]), most)
    return _marked(first, start, end), _marked(second, start, end)


def _marked(tokens: list[str], start: int, end: int) -> tuple[Span, ...]:
    stop = len(tokens) - end
    own = tokens[start:stop]
    while own and (own[0].isspace() or own[0] == ","):
        start, own = start + 1, own[1:]
    before, after = "".join(tokens[:start]), "".join(tokens[stop:])
    mine = ends("".join(own), MAX_SHOWN)
    common = MAX_SHOWN if sum(map(len, tokens)) <= MAX_SHOWN else MAX_SHOWN // 2
    if not mine:
        return (Code(ends("".join(tokens), common)),)
    found = (Code(ends(before, common)), Strong(mine), Code(ends(after, common)))
    return tuple(span for span in found if span.text)


def ends(text: str, most: int = MAX_SHOWN) -> str:
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


def _extra(fewer: list[str], more: list[str]) -> str:
    """Return the name of the record that only `more` has; "" if the difference is not exactly one record."""
    if len(more) != len(fewer) + 1:
        return ""
    at = next((i for i, record in enumerate(fewer) if record != more[i]), len(fewer))
    if fewer[at:] != more[at + 1 :]:
        return ""
    return f"the record {more[at]}" if len(more[at]) <= _MAX_RECORD else "the record"
