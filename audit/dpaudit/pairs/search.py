"""Generates pairs of neighbouring datasets on which an audit may detect a violation, the most promising pairs first.

K pairs share one wealth, whose logarithm they reduce by at most log(2 K) (docs/guarantees.md), so K is small.  The
patterns for vectors come from Ding, Wang, Wang, Zhang & Kifer 2018, "Detecting violations of differential privacy",
Table 1; those for records from known bugs; those for tiny tables from Annamalai, Ganev & De Cristofaro 2024, "What do
you want from theory alone?".
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from dpaudit.pairs.pair import Pair
from dpaudit.text import relation_meant
from dpaudit.values import Dataset, Record, key

Moves = Literal["add_remove", "replace_one", "one_value", "all_values"]
MOVES: tuple[str, ...] = get_args(Moves)

Schema = Mapping[str, Sequence[Record]]  # a mapping from each column to (low, high) or to a list of categories

_MAX_DRAWS = 100  # maximum number of calls of the user's generator for each requested pair
_FAR_WIDTHS = 1000.0  # distance of out-of-range values from the bounds, in multiples of the width of the bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPairs:
    """A generator of candidate pairs for an audit: `audit(mechanism, claim, SearchPairs(relation="add_remove"))`.

    Every iteration yields the same pairs in the same order.  It raises ValueError if `generator` never returns two
    different neighbouring datasets, and so does the constructor for other values than these.

    Args:
        relation: The neighbouring relation.  If "add_remove", one dataset has one additional record.  If "replace_one",
            one record differs.  If "one_value", one value of a vector differs.  If "all_values", all values of a vector
            may differ, such as the answers to several queries after a change of one record.
        size: The number of records of the larger dataset, or the number of values of the vector.
        bounds: The smallest and the largest allowed value.  If None, records are in [0, 1], and values of vectors are
            in [0, 2], mostly 1.
        step: The maximum change of a value in a vector; None allows any other value in `bounds`, or a change by 1.
        whole: If True, all generated numbers are integers.
        schema: A mapping from each column name to a tuple (low, high) or to a list of categories; records are then
            dicts.
        out_of_domain: Whether to generate records outside the stated domain, such as values outside the bounds, NaN and
            None.  By default, such records are generated if `bounds` or `schema` is given.
        tiny: Whether datasets are tables of two to ten rows, and the target is a new category, an extreme value, or a
            row far from all others; requires `schema`.  `size` limits the number of rows.
        generator: A function that replaces the built-in patterns.  It receives a numpy Generator and returns a Pair, or
            a sequence of records from which neighbouring datasets are made.
        build: A function that converts each generated dataset, such as `numpy.array` or `pandas.DataFrame`.
        most: The maximum number of generated pairs: by default 4 for the relation "all_values", and 12 for others.
        seed: The seed of the numpy Generator that `generator` receives.
    """

    relation: Moves
    size: int = 10
    bounds: tuple[float, float] | None = None
    step: float | None = None
    whole: bool = False
    schema: Schema | None = None
    out_of_domain: bool | None = None
    tiny: bool = False
    generator: Callable[[np.random.Generator], Iterable[Record] | Pair] | None = None
    build: Callable[[Dataset], Dataset] | None = None
    most: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.relation not in MOVES:
            meant = relation_meant(self.relation, MOVES)
            raise ValueError(f"relation must be one of {', '.join(MOVES)}, got {self.relation!r}{meant}")
        for name, number in (("size", self.size), ("most", self.most)):
            if number is not None and not number >= 1:
                raise ValueError(f"{name} must be at least 1, got {number}")
        if self.step is not None and not 0 < self.step < math.inf:
            raise ValueError(f"step must be > 0 and finite, got {self.step}")
        if self.bounds is not None:
            _check_bounds("bounds", self.bounds)
        if self.whole and any(value != math.floor(value) for value in (*(self.bounds or ()), self.step or 1)):
            raise ValueError(f"with whole=True, bounds and step must be integers, got {self.bounds} and {self.step}")
        if self.schema is not None:
            if self._moves_values or self.bounds is not None:
                raise ValueError(
                    'a schema needs relation "add_remove" or "replace_one", and must be given without bounds'
                )
            object.__setattr__(self, "schema", read_schema(self.schema))
        if self.tiny and (self.schema is None or not self.size >= 2):
            raise ValueError("tiny tables need a schema, and a size of at least 2")

    @property
    def _moves_values(self) -> bool:
        return self.relation in ("one_value", "all_values")

    @property
    def _limit(self) -> int:
        if self.most is not None:
            return self.most
        return 4 if self.relation == "all_values" else 12  # small, because all pairs share the trials of the audit

    def __iter__(self) -> Iterator[Pair]:
        if self.generator is not None:
            candidates = self._drawn(self.generator)
        elif self._moves_values:
            candidates = self._vectors()
        elif self.tiny and self.schema is not None:
            candidates = self._tiny_tables(self.schema)
        else:
            candidates = self._datasets()
        seen: set[Hashable] = set()
        for pair in candidates:
            keys = key(pair.d0), key(pair.d1)
            if keys in seen or keys[0] == keys[1]:
                continue  # patterns may give equal datasets for short vectors or coarse values
            seen.add(keys)
            build = self.build or (lambda dataset: dataset)
            yield Pair(build(pair.d0), build(pair.d1), pair.relation, pair.label)
            if len(seen) == self._limit:
                return
        if not seen and self.generator is None:
            raise ValueError("all pairs have equal datasets; give wider bounds, a larger step or more categories")
        if not seen:
            draws = self._limit * _MAX_DRAWS
            raise ValueError(f"{draws} calls of the generator gave no two different datasets; return varying records")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __str__(self) -> str:
        return f"search: {self.relation}, size {self.size}, {len(self)} pairs"

    def _datasets(self) -> Iterator[Pair]:
        """Yield datasets of numbers within the bounds, or of rows of a table."""
        at: Callable[[float], Record]
        if self.schema is None:
            bottom, top = self.bounds or (0.0, 1.0)
            far = _FAR_WIDTHS * (top - bottom)

            def number(share: float) -> float:
                return _rounded(bottom + share * (top - bottom), self.whole)

            at = number
            unusual = [
                ("one NaN", math.nan),
                ("one above the bounds", _rounded(top + far, self.whole)),
                ("one below the bounds", _rounded(bottom - far, self.whole)),
            ]
        else:
            at, unusual = _rows(self.schema)
        low, high, middle = at(0.0), at(1.0), at(0.5)
        many = self.size - 1
        spread = [at(share) for share in np.linspace(0, 1, many)]
        half = [low] * (many - many // 2) + [high] * (many // 2)
        stated = self.bounds is not None or self.schema is not None
        if not (stated if self.out_of_domain is None else self.out_of_domain):
            unusual = []
        if self.relation == "add_remove":
            added = [
                ([low] * many, high, "one above"),
                ([high] * many, low, "one below"),
                ([], high, "empty, and one high"),
                ([high] * many, high, "all equal, high"),
                *([(half, stray, label) for label, stray in unusual]),
                (half, high, "half-half"),
                ([], low, "empty, and one low"),
                (spread, high, "spread, and a duplicate"),
            ]
            for rest, new, label in added:
                yield Pair(list(rest), [*rest, new], "add_remove", label)
            for before in range(max(many - 2, 0), many):  # an even and an odd number; code may depend on the order
                rest = [*[low] * before, high]
                yield Pair(rest, [low, *rest], "add_remove", f"{before + 1} records, high last, and a first one low")
            yield Pair(spread, [*spread, middle], "add_remove", "spread, and one in the middle")
            yield Pair([low] * many, [low] * (many + 1), "add_remove", "all equal, low")
            return
        replaced = [
            ([low] * many, low, high, "one above"),
            ([high] * many, high, low, "one below"),
            (half, low, high, "half-half"),
            ([middle] * many, low, high, "extremes"),
            *([(half, low, stray, label) for label, stray in unusual]),
            (spread, low, high, "spread, a duplicate moved"),
            ([middle] * many, middle, high, "all equal, one above"),
            ([middle] * many, middle, low, "all equal, one below"),
        ]
        for rest, old, new, label in replaced:
            yield Pair([*rest, old], [*rest, new], "replace_one", label)

    def _tiny_tables(self, schema: Schema) -> Iterator[Pair]:
        at, unusual = _rows(schema)
        rest = min(self.size, 10) - 1
        numbers = [column for column, entries in schema.items() if numeric(entries)]
        labels = [column for column in schema if column not in numbers]
        low, high = at(0.0), at(1.0)
        many, few = [low] * rest, [low] * max(1, min(4, rest))
        spread = []  # rows whose numbers stay in the lower half, and whose categories omit the last
        for place in range(rest):
            varied = {column: schema[column][place % max(1, len(schema[column]) - 1)] for column in labels}
            spread.append({**at(place / max(1, 2 * rest)), **varied})
        plans: list[tuple[list[Record], Record, str]] = [
            (few, high, "a row far from all"),
            (many, {**low, **{column: high[column] for column in labels}}, "new categories"),
            (many, {**low, **{column: high[column] for column in numbers}}, "extreme values"),
            ([low], high, "two rows"),
            (spread, high, "an extreme row among varied rows"),
        ]
        if self.out_of_domain:
            new = {column: f"not {schema[column][0]}" for column in labels}
            plans += [(few, {**low, **new}, "unknown categories")] if new else []
            plans += [(few, stray, label) for label, stray in unusual]
        for others, target, label in plans:
            if self.relation == "add_remove":
                yield Pair(list(others), [*others, target], "add_remove", label)
            else:
                yield Pair([*others, high if target == low else low], [*others, target], "replace_one", label)

    def _vectors(self) -> Iterator[Pair]:
        """Yield pairs of vectors.  A changed value moves by `step`, or only to the bound if the bound is nearer."""
        low, high = self.bounds or (0.0, 2.0)
        step = self.step if self.step is not None else (1.0 if self.bounds is None else None)
        shares = (0.5,) if self.bounds is None else (0.5, 0.0, 1.0, 0.25, 0.75)
        bases = [_rounded(low + share * (high - low), self.whole) for share in shares]
        move = (high - low) if step is None else step
        n, half = self.size, self.size - self.size // 2
        for base in bases:
            more, less = min(base + move, high), max(base - move, low)
            flat, rest = [base] * n, [base] * (n - 1)
            if self.relation == "one_value":
                slope = [_rounded(base + (more - base) * i / max(1, n - 1), self.whole) for i in range(n)]
                patterns = [(flat, [more, *rest], "one above"), (flat, [less, *rest], "one below")]
                if n > 1:
                    patterns.append((flat, [*rest, more], "last one above"))
                    patterns.append((slope, [more, *slope[1:]], "slope, first above"))
            else:
                patterns = [
                    (flat, [more] * half + [less] * (n - half), "half-half"),
                    (flat, [more] * n, "all above"),
                    (flat, [less, *[more] * (n - 1)], "one below, rest above"),
                    (flat, [more, *rest], "one above"),
                    (flat, [less] * n, "all below"),
                    (flat, [more, *[less] * (n - 1)], "one above, rest below"),
                    (flat, [less, *rest], "one below"),
                    ([base] * half + [less] * (n - half), [less] * half + [base] * (n - half), "extremes"),
                ]
            for d0, d1, label in patterns:
                yield Pair(d0, d1, "unspecified", label if base == bases[0] else f"{label}, around {base:g}")
        if self.relation == "one_value" and step is None:  # a mechanism may map close values to unrelated categories
            for base in bases:
                near = base + (1 if self.whole else (high - low) / 100)
                if near <= high:
                    rest = [base] * (n - 1)
                    yield Pair([base, *rest], [near, *rest], "unspecified", f"the next value, around {base:g}")

    def _drawn(self, generator: Callable[[np.random.Generator], Iterable[Record] | Pair]) -> Iterator[Pair]:
        rng = np.random.default_rng(self.seed)
        for _ in range(self._limit * _MAX_DRAWS):
            drawn = generator(rng)
            if isinstance(drawn, Pair):
                yield drawn
                continue
            if self._moves_values:
                raise ValueError(f'for relation "{self.relation}" the generator must return a Pair')
            records = list(drawn)
            if not records:
                continue
            place = int(rng.integers(len(records)))
            before, old, after = records[:place], records[place], records[place + 1 :]
            if self.relation == "add_remove":
                yield Pair([*before, *after], records, "add_remove", f"without and with record {place}")
                continue
            again = generator(rng)
            if isinstance(again, Pair):
                yield again
            elif other := list(again):
                new = other[int(rng.integers(len(other)))]
                yield Pair([*before, old, *after], [*before, new, *after], "replace_one", f"record {place} replaced")


def _rows(schema: Schema) -> tuple[Callable[[float], dict[str, Record]], list[tuple[str, Record]]]:
    """Return a function from 0 to the smallest row and from 1 to the largest, and the rows out of the domain."""

    def at(share: float) -> dict[str, Record]:
        row: dict[str, Record] = {}
        for column, entries in schema.items():
            if numeric(entries):
                low, high = entries
                row[column] = _rounded(low + share * (high - low), isinstance(low, int) and isinstance(high, int))
            else:
                row[column] = entries[round(share * (len(entries) - 1))]
        return row

    unusual: list[tuple[str, Record]] = []
    numbers = [column for column, entries in schema.items() if numeric(entries)]
    labels = [column for column in schema if column not in numbers]
    if numbers:
        beyond = {c: schema[c][1] + _FAR_WIDTHS * (schema[c][1] - schema[c][0]) for c in numbers}
        unusual.append(("one NaN", {**at(0.0), **dict.fromkeys(numbers, math.nan)}))
        unusual.append(("one above the bounds", {**at(0.0), **beyond}))
    if labels:
        unusual.append(("one without a category", {**at(1.0), **dict.fromkeys(labels)}))
    return at, unusual


def read_schema(schema: Any) -> dict[str, Sequence[Record]]:
    """Return a schema with plain values: a tuple of two numbers, or a list of categories, for each column."""
    if not isinstance(schema, Mapping):
        raise ValueError(
            "schema must be a dict that maps each column to (low, high) or to a list of categories, got "
            f"{type(schema).__name__}"
        )
    if not schema:
        raise ValueError("schema must have at least one column")
    return {column: _read_column(f"schema: {column}", entries) for column, entries in schema.items()}


def _read_column(where: str, values: Any) -> Sequence[Record]:
    listed = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    if not (listed or (hasattr(values, "tolist") and hasattr(values, "__len__"))) or len(values) == 0:
        got = "a set, which has no order" if isinstance(values, set | frozenset) else f"{values!r}"
        example = f"; one category is [{values!r}]" if isinstance(values, str) and values else ""
        raise ValueError(f"{where} must be (low, high) or a list of categories, got {got}{example}")
    plain = [value.item() if type(value).__module__ == "numpy" else value for value in values]
    found = tuple(plain) if isinstance(values, tuple) else plain
    if numeric(found):
        _check_bounds(where, found)
        return found
    if isinstance(found, tuple) and len(found) == 2 and all(map(is_date, found)):
        raise ValueError(
            f"{where} has two dates, {found[0]} and {found[1]}, but bounds must be numbers; give numbers, such as days "
            "since a date, and convert them in the mechanism, or give a list of more dates as categories"
        )
    if twice := next((text for text, times in Counter(map(repr, found)).items() if times > 1), ""):
        raise ValueError(f"{where} has the category {twice} twice; give each category once")
    return found


def is_date(value: object) -> bool:
    return isinstance(value, datetime.date | datetime.time | datetime.timedelta)


def bounds_or_list(values: Sequence[Record]) -> Sequence[Record]:
    """Return an entry of a schema from YAML or JSON, which have only lists: two numbers or two dates are bounds."""
    found = tuple(values)
    return found if numeric(found) or (len(found) == 2 and all(map(is_date, found))) else list(values)


def _check_bounds(name: str, bounds: Sequence[Record]) -> None:
    if not (len(bounds) == 2 and -math.inf < bounds[0] < bounds[1] < math.inf):
        raise ValueError(f"{name} must be (low, high), both finite and low < high, got {bounds!r}")


def numeric(values: Sequence[Record]) -> bool:
    """Return whether the entry of a schema is a tuple of two numbers, and thus the bounds of a numeric column."""
    pair = isinstance(values, tuple) and len(values) == 2
    return pair and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


def _rounded(value: float, whole: bool) -> float:
    """Return a number, rounded down to an integer if `whole`."""
    return math.floor(value) if whole else float(value)
