"""Generates pairs of neighbouring datasets on which an audit may detect a violation, the most promising pairs first.

An audit of several pairs makes more trials on the pairs with growing evidence, and all pairs share one betting wealth.
For K pairs, the logarithm of the wealth is reduced by at most log(2 K) (docs/statistics.md), and every pair requires
some trials.  So the number K of generated pairs is small.

The patterns for vectors of query answers come from Ding, Wang, Wang, Zhang & Kifer 2018, "Detecting violations of
differential privacy", Table 1.  The patterns for records reproduce the inputs of known bugs.  In a table of two to ten
rows, one row has a large share; the targets follow Annamalai, Ganev & De Cristofaro 2024, "What do you want from theory
alone?".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dpaudit.pairs.pair import Pair
from dpaudit.pairs.records import Records, Schema, check_bounds, numeric, of_numbers, of_table, read_schema, rounded
from dpaudit.text import relation_meant
from dpaudit.values import Dataset, Record, key


def tiny_tables(schema: Schema, relation: str, size: int, *, unusual: bool) -> Iterator[Pair]:
    """Yield pairs of tables, the most promising pairs first."""
    rows, most = of_table(schema), min(size, 10)
    numbers = [column for column, entries in schema.items() if numeric(entries)]
    low, high = rows.at(0.0), rows.at(1.0)
    many, few = [low] * (most - 1), [low] * max(1, min(4, most - 1))
    spread = [_varied(schema, number, most - 1) for number in range(most - 1)]
    plans: list[tuple[list[Record], Record, str]] = [
        (few, high, "a row far from all"),
        (many, {**low, **{c: high[c] for c in schema if c not in numbers}}, "new categories"),
        (many, {**low, **{c: high[c] for c in numbers}}, "extreme values"),
        ([low], high, "two rows"),
        (spread, high, "an extreme row among varied rows"),
    ]
    if unusual:
        new = {c: f"not {entries[0]}" for c, entries in schema.items() if c not in numbers}
        plans += [(few, {**low, **new}, "unknown categories")] if new else []
        plans += [(few, stray, label) for label, stray in rows.unusual]
    for rest, target, label in plans:
        if relation == "add_remove":
            yield Pair(list(rest), [*rest, target], "add_remove", label)
        else:
            old = high if target == low else low
            yield Pair([*rest, old], [*rest, target], "replace_one", label)


def _varied(schema: Schema, number: int, count: int) -> Record:
    """Return one of `count` rows whose numbers stay in the lower half, and whose categories omit the last."""
    share = number / max(1, 2 * count)
    row: dict[str, Record] = of_table(schema).at(share)
    for column, entries in schema.items():
        if not numeric(entries):
            row[column] = entries[number % max(1, len(entries) - 1)]
    return row


Moves = Literal["add_remove", "replace_one", "one_value", "all_values"]
MOVES: tuple[str, ...] = get_args(Moves)

_MAX_DRAWS = 100  # maximum number of calls of the user's generator for each requested pair


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPairs:
    """A generator of candidate pairs for an audit: `audit(mechanism, claim, SearchPairs(relation="add_remove"))`.

    Every iteration over the object yields the same pairs in the same order.

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
        generator: A function that replaces the built-in patterns.  The function receives a numpy Generator and returns
            a Pair, or a sequence of records from which neighbouring datasets are made.
        build: A function that converts each generated dataset, such as `numpy.array` or `pandas.DataFrame`.
        most: The maximum number of generated pairs: by default 4 for the relation "all_values", and 12 for others.
        seed: The seed of the numpy Generator that `generator` receives.

    Raises:
        ValueError: If the value of an argument is not allowed.  Iteration raises this error if `generator` never
            returns two different neighbouring datasets.
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
        if not self.size >= 1:
            raise ValueError(f"size must be at least 1, got {self.size}")
        if self.most is not None and not self.most >= 1:
            raise ValueError(f"most must be at least 1, got {self.most}")
        if self.step is not None and not 0 < self.step < math.inf:
            raise ValueError(f"step must be > 0 and finite, got {self.step}")
        if self.bounds is not None:
            check_bounds("bounds", self.bounds)
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
        seen: set[Hashable] = set()
        for pair in self._candidates():
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

    def _candidates(self) -> Iterator[Pair]:
        if self.generator is not None:
            return self._drawn(self.generator)
        if self._moves_values:
            return self._vectors()
        if self.tiny and self.schema is not None:
            return tiny_tables(self.schema, self.relation, self.size, unusual=bool(self.out_of_domain))
        kinds = of_numbers(self.bounds, self.whole) if self.schema is None else of_table(self.schema)
        return self._records(kinds)

    def _records(self, kinds: Records) -> Iterator[Pair]:
        low, high, middle = kinds.at(0.0), kinds.at(1.0), kinds.at(0.5)
        many = self.size - 1
        spread = [kinds.at(share) for share in np.linspace(0, 1, many)]
        half = [low] * (many - many // 2) + [high] * (many // 2)
        stated = self.bounds is not None or self.schema is not None
        out_of_domain = kinds.unusual if (stated if self.out_of_domain is None else self.out_of_domain) else []
        if self.relation == "add_remove":
            plans = [
                ([low] * many, high, "one above"),
                ([high] * many, low, "one below"),
                ([], high, "empty, and one high"),
                ([high] * many, high, "all equal, high"),
                *([(half, stray, label) for label, stray in out_of_domain]),
                (half, high, "half-half"),
                ([], low, "empty, and one low"),
                (spread, high, "spread, and a duplicate"),
                (spread, middle, "spread, and one in the middle"),
                ([low] * many, low, "all equal, low"),
            ]
            for rest, one, label in plans:
                yield Pair(list(rest), [*rest, one], "add_remove", label)
            return
        replaced = [
            ([low] * many, low, high, "one above"),
            ([high] * many, high, low, "one below"),
            (half, low, high, "half-half"),
            ([middle] * many, low, high, "extremes"),
            *([(half, low, stray, label) for label, stray in out_of_domain]),
            (spread, low, high, "spread, a duplicate moved"),
            ([middle] * many, middle, high, "all equal, one above"),
            ([middle] * many, middle, low, "all equal, one below"),
        ]
        for rest, old, new, label in replaced:
            yield Pair([*rest, old], [*rest, new], "replace_one", label)

    def _vectors(self) -> Iterator[Pair]:
        """Yield pairs of vectors.  A changed value moves by `step`, or only to the bound if the bound is nearer."""
        low, high = self.bounds or (0.0, 2.0)
        step = self.step if self.step is not None else (1.0 if self.bounds is None else None)
        shares = (0.5,) if self.bounds is None else (0.5, 0.0, 1.0, 0.25, 0.75)
        bases = [rounded(low + share * (high - low), self.whole) for share in shares]
        move = (high - low) if step is None else step

        patterns = self._one_moves if self.relation == "one_value" else self._all_move
        for base in bases:
            for d0, d1, label in patterns(base, min(base + move, high), max(base - move, low)):
                yield Pair(d0, d1, "unspecified", label if base == bases[0] else f"{label}, around {base:g}")
        if self.relation == "one_value" and step is None:
            yield from self._neighbouring(bases)

    def _one_moves(self, base: float, more: float, less: float) -> Iterator[tuple[list[float], list[float], str]]:
        rest = [base] * (self.size - 1)
        yield [base, *rest], [more, *rest], "one above"
        yield [base, *rest], [less, *rest], "one below"
        if self.size > 1:
            yield [*rest, base], [*rest, more], "last one above"
            slope = [rounded(base + (more - base) * i / (self.size - 1), self.whole) for i in range(self.size)]
            yield slope, [more, *slope[1:]], "slope, first above"

    def _all_move(self, base: float, more: float, less: float) -> Iterator[tuple[list[float], list[float], str]]:
        d, half = self.size, self.size - self.size // 2
        flat = [base] * d
        yield flat, [more] * half + [less] * (d - half), "half-half"
        yield flat, [more] * d, "all above"
        yield flat, [less, *[more] * (d - 1)], "one below, rest above"
        yield flat, [more, *[base] * (d - 1)], "one above"
        yield flat, [less] * d, "all below"
        yield flat, [more, *[less] * (d - 1)], "one above, rest below"
        yield flat, [less, *[base] * (d - 1)], "one below"
        yield [base] * half + [less] * (d - half), [less] * half + [base] * (d - half), "extremes"

    def _neighbouring(self, bases: Sequence[float]) -> Iterator[Pair]:
        """Yield pairs that differ little in one value, as a mechanism may map close values to unrelated categories."""
        low, high = self.bounds or (0.0, 2.0)
        for base in bases:
            near = base + (1 if self.whole else (high - low) / 100)
            if near <= high:
                rest = [base] * (self.size - 1)
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
            before, one, after = records[:place], records[place], records[place + 1 :]
            if self.relation == "add_remove":
                yield Pair([*before, *after], records, "add_remove", f"without and with record {place}")
                continue
            again = generator(rng)
            if isinstance(again, Pair):
                yield again
            elif other := list(again):
                new = other[int(rng.integers(len(other)))]
                yield Pair([*before, one, *after], [*before, new, *after], "replace_one", f"record {place} replaced")
