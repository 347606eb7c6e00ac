"""Generates candidate pairs (d0, d1, label) of plain values, the most promising first; some may be too far apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, count, cycle, islice
from operator import ne

from dpaudit.libraries.cells import FLOATS, INTEGERS, Cells
from dpaudit.pairs.pair import Pair, Relation
from dpaudit.values import Dataset, Record, key

Candidate = tuple[Dataset, Dataset, str]


def first_pairs(candidates: Iterable[Candidate], relation: Relation, *, most: int) -> list[Pair]:
    """Return the first pairs of two different datasets, each pair once."""
    pairs: dict[frozenset[Hashable], Pair] = {}
    for d0, d1, label in candidates:
        keys = frozenset([key(d0), key(d1)])
        if len(keys) == 2:
            pairs.setdefault(keys, Pair(d0, d1, relation, label))
        if len(pairs) == most:
            break
    return list(pairs.values())


SIZE = 10  # number of records of a dataset whose size the domain leaves open
_LARGE = 2.0**40  # a number whose floating-point grid is much coarser than that of 1
_STEPS = 2**12  # shares of a distance are multiples of 1 / _STEPS, so that most of them are exact floats


def numbers(cells: Cells, distance: float) -> Iterator[Candidate]:
    """Yield pairs of numbers at the given distance, near the ends of the domain and of the type."""
    least, most = cells.limits or (0, 0)
    plans: list[tuple[float, float, str]] = []
    for base in [0, *(base for base in cells.usual if base != 0)]:
        around = f", around {base:g}" if base else ""
        plans += [(base, base + distance, f"one above{around}"), (base, base - distance, f"one below{around}")]
    plans += [
        (most - distance, most, "up to the largest number"),
        (least + distance, least, "down to the smallest number"),
    ]
    if cells.kind in FLOATS:
        plans += [
            (_LARGE, _LARGE + distance, "one above, large numbers"),
            (distance / 3, distance / 3 + distance, "one above, many decimals"),
            (0.0, FLOATS[cells.kind][0], "a subnormal number"),
        ]
    for x, y, label in plans:
        d0, d1 = cells.exact(x), cells.exact(y)
        if d0 is not None and d1 is not None:
            yield d0, d1, label


def vectors(cells: Cells, size: int | None, distance: float, *, norm: float) -> Iterator[Candidate]:
    """Yield pairs of vectors at the given distance in the L1, the L2 or the LInf norm."""
    n = size or 3
    least, most = cells.limits or (0, 0)
    share = distance / (1 if norm == math.inf else n ** (1 / norm))
    fine = distance * math.floor(share / distance * _STEPS) / _STEPS
    share, half = math.floor(share) if isinstance(cells.low, int) else fine, n - n // 2
    plans: list[tuple[Record, list[float], str]] = []
    for base in dict.fromkeys([cells.exact(0) if cells.exact(0) is not None else cells.middle, *cells.usual]):
        around, rest = f", around {base:g}" if base else "", [base] * (n - 1)
        plans += [
            (base, [base + distance, *rest], f"first above{around}"),
            (base, [base - distance, *rest], f"first below{around}"),
            (base, [base + share] * n, f"all above{around}"),
            (base, [base + share] * half + [base - share] * (n - half), f"half-half{around}"),
            (base, [*rest, base + distance], f"last above{around}"),
            (base, [base - share] * n, f"all below{around}"),
            (base, [base + share, *[base - share] * (n - 1)], f"one above, rest below{around}"),
        ]
    plans.append((cells.exact(most), [most - distance, *[most] * (n - 1)], "first below the largest number"))
    plans.append((cells.exact(least), [least + distance, *[least] * (n - 1)], "first above the smallest number"))
    for start, moved, label in plans:
        if start is not None:  # a moved number outside the domain becomes None, which excludes the pair
            yield [start] * n, [cells.exact(number) for number in moved], label


def added(cells: Cells, most: int) -> Iterator[Candidate]:
    """Yield pairs of lists of records in which the second list has `most` additional records."""
    low, high, many = cells.low, cells.high, SIZE - 1
    half = [low] * (many - many // 2) + [high] * (many // 2)
    plans = [
        ([low] * many, high, "one above"),
        ([high] * many, low, "one below"),
        ([], high, "empty, and one high"),
        *[(half, stray, f"half-half, and {label}") for label, stray in cells.unusual],
        ([high] * many, high, "all equal, high"),
        (half, high, "half-half"),
        ([low], low, "one record, and a duplicate"),
        (list(islice(cycle(cells.usual), many)), cells.middle, "spread, and one in the middle"),
        ([], low, "empty, and one low"),
    ]
    for rest, record, label in plans:
        yield list(rest), [*rest, *[record] * most], label


def replaced(cells: Cells, size: int | None, most: int) -> Iterator[Candidate]:
    """Yield pairs of lists of records that differ in the first `most` records."""
    n = SIZE if size is None else size
    most = min(most, n)
    low, high, many = cells.low, cells.high, n - most
    half = [low] * (many - many // 2) + [high] * (many // 2)
    plans = [
        ([low] * many, low, high, "one above"),
        ([high] * many, high, low, "one below"),
        (half, low, high, "half-half"),
        *[(half, low, stray, f"half-half, and {label}") for label, stray in cells.unusual],
        ([cells.middle] * many, low, high, "extremes"),
        *[([stray] * many, stray, low, f"all equal, {label}") for label, stray in cells.unusual[:1]],
    ]
    for rest, old, new, label in plans:
        yield [*[old] * most, *rest], [*[new] * most, *rest], label


def choices(cells: Cells) -> Iterator[Candidate]:
    """Yield pairs of different values: the two ends, and an ordinary value against each unusual value."""
    yield cells.low, cells.high, f"{cells.low!r} and {cells.high!r}"
    for label, stray in cells.unusual:
        yield cells.low, stray, f"{cells.low!r} and {label}"
    for other in cells.usual[1:-1]:
        yield cells.low, other, f"{cells.low!r} and {other!r}"


def bits(weight: int | None) -> Iterator[Candidate]:
    """Yield pairs of bit vectors with at most `weight` ones.  Only the last pair has a vector of more than one byte."""
    most = 8 if weight is None else min(weight, 8)
    first, last = (1 << most) - 1, (0xFF << (8 - most)) & 0xFF
    yield bytes([0]), bytes([1]), "no bit and the lowest bit"
    yield bytes([0]), bytes([0x80]), "no bit and the highest bit"
    yield bytes([1]), bytes([0x80]), "the lowest bit and the highest bit"
    yield bytes([first]), bytes([last]), "the lowest bits and the highest bits"
    yield bytes([0]), bytes([first]), "no bit and as many as allowed"
    yield bytes([1]), bytes([1, 0]), "the same bits in vectors of two lengths"


def counts(
    keys: Cells, values: Cells, changed: int, total: float, largest: float, hints: Sequence[float]
) -> Iterator[Candidate]:
    """Yield pairs of mappings from keys to numbers in which at most `changed` keys differ."""
    step = values.exact(min(total, largest))
    if not step:
        return
    names = list(dict.fromkeys([*keys.usual, *(stray for _, stray in keys.unusual)]))
    others = {name: values.exact(SIZE) for name in names[1:3]}
    new = names[0]
    yield {}, {new: step}, "empty, and one new key"
    yield others, {**others, new: step}, "one new key"
    for base in dict.fromkeys([*hints, SIZE]):
        before, after = values.exact(base), values.exact(base + step)
        if before is not None and after is not None:
            yield {**others, new: before}, {**others, new: after}, f"one count above {base:g}"
    share = values.exact(min(total / changed, largest))
    if changed > 1 and share:
        several = dict.fromkeys(names[:changed], share)
        yield {}, several, f"empty, and {len(several)} new keys"


def tables(
    columns: Mapping[str, Cells],
    user: str | None,
    *,
    keys_are_public: bool,
    thresholds: Sequence[int] = (),
    most_rows: int = 10,
    groups: int | None = None,
) -> Iterator[Candidate]:
    """Yield pairs of tables in which the second has one more user, or one more row; a user of the first has one row."""
    usual, high = ({name: cells.usual[end] for name, cells in columns.items()} for end in (0, -1))
    spread = [
        {name: cells.usual[number % len(cells.usual)] for name, cells in columns.items()}
        for number in range(max(SIZE, most_rows))
    ]
    others = spread[: SIZE if keys_are_public else SIZE - 1]
    plans: list[tuple[list[dict[str, Record]], list[dict[str, Record]], str]] = []
    if user is not None and groups is not None:
        values = {name: list(islice(_distinct(cells), groups)) for name, cells in columns.items()}
        apart = [{name: entries[row % len(entries)] for name, entries in values.items()} for row in range(groups)]
        plans.append((others, apart, f"one row in each of {groups} groups"))
    for threshold in thresholds:
        plans.append(([high] * threshold, [high], f"a group of {threshold} rows, and one row"))
    plans.append((others, [high], "one row"))
    if user is not None:
        ends = [
            {
                name: (cells.low, cells.high)[(number >> place) % 2]
                for place, (name, cells) in enumerate(columns.items())
            }
            for number in range(most_rows)
        ]
        plans += [
            (others, [high] * most_rows, "many rows in one group"),
            (others, spread[:most_rows], "many rows in many groups"),
            (others, ends, "many rows, and all extremes"),
        ]
    strays = [  # the first unusual number of each column is tried early; if groups are public, categories have none
        (place > 0 or cells.limits is None, [{**usual, name: stray}], f"one row with {label} in {name}")
        for name, cells in columns.items()
        if name != user and not (keys_are_public and cells.limits is None)
        for place, (label, stray) in enumerate(cells.unusual)
    ]
    plans += [(others, new, label) for late, new, label in strays if not late]
    plans += [] if keys_are_public else [([], [high], "empty, and one row")]
    plans += [(others, new, label) for late, new, label in strays if late]
    for rest, new, label in plans:
        rows = [*rest, *new]
        if user is not None:
            users = [*range(len(rest)), *[len(rest) + 1] * len(new)]
            texts = columns[user].kind == "String"
            rows = [{**row, user: f"user {n}" if texts else n} for row, n in zip(rows, users, strict=True)]
        d1 = {name: [row[name] for row in rows] for name in columns}
        yield {name: entries[: len(rest)] for name, entries in d1.items()}, d1, label


def _distinct(cells: Cells) -> Iterator[Record]:
    """Yield different values of a column of categories or integers, first the usual ones."""
    yield from cells.usual
    if cells.kind == "String":
        yield from (f"group {number}" for number in count(len(cells.usual)))
    elif cells.kind in INTEGERS and cells.limits is not None:
        least, most = math.ceil(cells.limits[0]), math.floor(cells.limits[1])
        start = max(least, min(0, most))
        further = chain(range(start, most + 1), range(start - 1, least - 1, -1))
        yield from (number for number in further if number not in cells.usual)


Distance = Fraction | float  # inf if the metric does not define a distance between the two datasets


def absolute(x: Dataset, y: Dataset) -> Distance:
    """Return |x - y|.  Two equal values, such as inf and inf, have distance 0."""
    if key(x) == key(y):
        return Fraction(0)
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in (x, y)):
        return math.inf
    return abs(Fraction(x) - Fraction(y))


def differences(x: Dataset, y: Dataset) -> list[Distance]:
    """Return |x_i - y_i| for each i; [inf] for vectors of different lengths."""
    return list(map(absolute, x, y)) if len(x) == len(y) else [math.inf]


def symmetric(x: Dataset, y: Dataset) -> Distance:
    """Return the number of records that must be added or removed to change one multiset into the other."""
    before, after = Counter(map(key, x)), Counter(map(key, y))
    return Fraction((before - after).total() + (after - before).total())


def map_distances(x: Mapping[Hashable, float], y: Mapping[Hashable, float]) -> tuple[int, Distance, Distance, Distance]:
    """Return how many keys differ, and the L1 norm, the squared L2 norm and the maximum of the differences."""
    keys = list(x.keys() | y.keys())
    different = sum(k not in x or k not in y or absolute(x[k], y[k]) != 0 for k in keys)
    apart = differences([x.get(k, 0) for k in keys], [y.get(k, 0) for k in keys])
    return different, sum(apart), sum(d**2 for d in apart), max(apart, default=Fraction(0))


DISTANCES: Mapping[str, Callable[[Dataset, Dataset], Distance]] = {
    "AbsoluteDistance": absolute,
    "L1Distance": lambda x, y: sum(differences(x, y), Fraction(0)),
    "L2Distance": lambda x, y: sum((d**2 for d in differences(x, y)), Fraction(0)),
    "LInfDistance": lambda x, y: max(differences(x, y), default=Fraction(0)),
    "SymmetricDistance": symmetric,
    "InsertDeleteDistance": symmetric,
    "ChangeOneDistance": lambda x, y: symmetric(x, y) / 2 if len(x) == len(y) else math.inf,
    "HammingDistance": lambda x, y: sum(map(ne, map(key, x), map(key, y))) if len(x) == len(y) else math.inf,
    "DiscreteDistance": lambda x, y: Fraction(key(x) != key(y)),
}
"""Distance functions by the name of OpenDP's metric.  That of `L2Distance` is a square.

`symmetric` serves `InsertDeleteDistance`, too, since generated pairs add or replace records at one end of a list.
"""


def within(metric: str, x: Dataset, y: Dataset, limit: float) -> bool:
    """Return whether the distance of two datasets is at most `limit`."""
    bound = Fraction(limit) ** 2 if metric == "L2Distance" else Fraction(limit)
    return DISTANCES[metric](x, y) <= bound
