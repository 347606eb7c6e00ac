"""Generates candidate pairs of neighbouring datasets of plain values, the most promising pairs first.

Each function yields (d0, d1, label).  A pair may be too far apart, for example because of a rounding error; exact
distances then leave it out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, count, cycle, islice

from dpaudit.libraries.cells import FLOATS, INTEGERS, Cells
from dpaudit.pairs.pair import Pair, Relation
from dpaudit.values import Dataset, Record, key

Candidate = tuple[Dataset, Dataset, str]


def first_pairs(found: Iterable[Candidate], relation: Relation, *, most: int) -> list[Pair]:
    """Return the first pairs of two different datasets, each pair once."""
    pairs: dict[frozenset[Hashable], Pair] = {}
    for d0, d1, label in found:
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
    bases = [(0, "")] + [(base, f", around {base:g}") for base in cells.usual if base != 0]
    for base, words in bases:
        yield from _pair(cells, base, base + distance, f"one above{words}")
        yield from _pair(cells, base, base - distance, f"one below{words}")
    yield from _pair(cells, most - distance, most, "up to the largest number")
    yield from _pair(cells, least + distance, least, "down to the smallest number")
    if cells.kind in FLOATS:
        yield from _pair(cells, _LARGE, _LARGE + distance, "one above, large numbers")
        yield from _pair(cells, distance / 3, distance / 3 + distance, "one above, many decimals")
        yield from _pair(cells, 0.0, FLOATS[cells.kind][0], "a subnormal number")


def _pair(cells: Cells, x: float, y: float, label: str) -> Iterator[Candidate]:
    one, other = cells.exact(x), cells.exact(y)
    if one is not None and other is not None:
        yield one, other, label


def vectors(cells: Cells, size: int | None, distance: float, *, norm: float) -> Iterator[Candidate]:
    n = size or 3
    least, most = cells.limits or (0, 0)
    share = distance / (1 if norm == math.inf else n ** (1 / norm))
    fine = distance * math.floor(share / distance * _STEPS) / _STEPS
    share, half = math.floor(share) if isinstance(cells.low, int) else fine, n - n // 2
    plans: list[tuple[Record, list[float], str]] = []
    for base in dict.fromkeys([cells.exact(0) if cells.exact(0) is not None else cells.middle, *cells.usual]):
        words, rest = f", around {base:g}" if base else "", [base] * (n - 1)
        plans += [
            (base, [base + distance, *rest], f"first above{words}"),
            (base, [base - distance, *rest], f"first below{words}"),
            (base, [base + share] * n, f"all above{words}"),
            (base, [base + share] * half + [base - share] * (n - half), f"half-half{words}"),
            (base, [*rest, base + distance], f"last above{words}"),
            (base, [base - share] * n, f"all below{words}"),
            (base, [base + share, *[base - share] * (n - 1)], f"one above, rest below{words}"),
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
    names = list(dict.fromkeys([*keys.usual, *(stray for _, stray in keys.unusual)]))
    if step is None or step == 0:
        return
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
    """Yield pairs of tables in which the second table has one additional user, or one additional row.

    The rows of the first table belong to users 0, 1, and so on; each has one row.
    """
    others = [_row(columns, user, number) for number in range(SIZE if keys_are_public else SIZE - 1)]
    usual, high = ({name: cells.usual[end] for name, cells in columns.items()} for end in (0, -1))
    plans: list[tuple[list[dict[str, Record]], list[dict[str, Record]], str]] = []
    if user is not None and groups is not None:
        plans.append((others, _in_groups(columns, user, groups), f"one row in each of {groups} groups"))
    for threshold in thresholds:
        crowd = [{**high, user: _name(columns[user], place)} if user else high for place in range(threshold)]
        plans.append((crowd, [high], f"a group of {threshold} rows, and one row"))
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
            (others, [_row(columns, user, number) for number in range(most_rows)], "many rows in many groups"),
            (others, ends, "many rows, and all extremes"),
        ]
    strays = [  # the first unusual number of each column is tried early; if groups are public, categories have none
        (place > 0 or cells.limits is None, [{**usual, name: stray}], f"one row with {label} in {name}")
        for name, cells in columns.items()
        if name != user and not (keys_are_public and cells.limits is None)
        for place, (label, stray) in enumerate(cells.unusual)
    ]
    plans += [(others, rows, label) for late, rows, label in strays if not late]
    plans += [] if keys_are_public else [([], [high], "empty, and one row")]
    plans += [(others, rows, label) for late, rows, label in strays if late]
    for rest, new, label in plans:
        rows = [row if user is None else {**row, user: _name(columns[user], len(rest) + 1)} for row in new]
        d0, d1 = ({name: [row[name] for row in table] for name in columns} for table in (rest, [*rest, *rows]))
        yield d0, d1, label


def _row(columns: Mapping[str, Cells], user: str | None, number: int) -> dict[str, Record]:
    row = {name: cells.usual[number % len(cells.usual)] for name, cells in columns.items()}
    return row if user is None else {**row, user: _name(columns[user], number)}


def _in_groups(columns: Mapping[str, Cells], user: str, groups: int) -> list[dict[str, Record]]:
    """Return rows whose values differ in all columns of categories or integers, as far as the domain has values."""
    columns = {name: cells for name, cells in columns.items() if name != user}
    values = {name: list(islice(_distinct(cells), groups)) for name, cells in columns.items()}
    return [{name: values[name][number % len(values[name])] for name in columns} for number in range(groups)]


def _distinct(cells: Cells) -> Iterator[Record]:
    """Yield different values of a column, first the usual ones."""
    yield from cells.usual
    if cells.kind == "String":
        yield from (f"group {number}" for number in count(len(cells.usual)))
    elif cells.kind in INTEGERS and cells.limits is not None:
        least, most = cells.limits
        start = max(math.ceil(least), min(0, math.floor(most)))
        upwards = range(start, math.floor(most) + 1)
        yield from (
            number for number in chain(upwards, range(start - 1, math.ceil(least) - 1, -1)) if number not in cells.usual
        )


def _name(users: Cells, number: int) -> Record:
    return f"user {number}" if users.kind == "String" else number


Distance = Fraction | float  # inf if the metric does not define a distance between the two datasets


def absolute(x: Dataset, y: Dataset) -> Distance:
    """Return |x - y|.  Two equal values, such as inf and inf, have distance 0."""
    if key(x) == key(y):
        return Fraction(0)
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in (x, y)):
        return math.inf
    return abs(Fraction(x) - Fraction(y))


def l1(x: Dataset, y: Dataset) -> Distance:
    return sum(map(absolute, x, y), Fraction(0)) if len(x) == len(y) else math.inf


def l2(x: Dataset, y: Dataset) -> Distance:
    """Return the square of the Euclidean distance of two vectors of the same length."""
    return sum((absolute(a, b) ** 2 for a, b in zip(x, y, strict=True)), Fraction(0)) if len(x) == len(y) else math.inf


def linf(x: Dataset, y: Dataset) -> Distance:
    return max(map(absolute, x, y), default=Fraction(0)) if len(x) == len(y) else math.inf


def symmetric(x: Dataset, y: Dataset) -> Distance:
    """Return the number of records that must be added or removed to change one multiset into the other."""
    one, other = Counter(map(key, x)), Counter(map(key, y))
    return Fraction((one - other).total() + (other - one).total())


def change_one(x: Dataset, y: Dataset) -> Distance:
    """Return the number of records that must be replaced to change one multiset into the other."""
    return symmetric(x, y) / 2 if len(x) == len(y) else math.inf


def hamming(x: Dataset, y: Dataset) -> Distance:
    """Return the number of places at which two vectors of the same length differ."""
    if len(x) != len(y):
        return math.inf
    return Fraction(sum(key(a) != key(b) for a, b in zip(x, y, strict=True)))


def discrete(x: Dataset, y: Dataset) -> Distance:
    """Return 0 for equal datasets, and 1 for any other two datasets."""
    return Fraction(int(key(x) != key(y)))


def map_distances(x: Mapping[Hashable, float], y: Mapping[Hashable, float]) -> tuple[int, Distance, Distance, Distance]:
    """Return how many keys differ, and the L1 norm, the squared L2 norm and the maximum of the differences.

    A missing key counts as 0 in the norms, and as a difference even from 0 in the number of keys.
    """
    keys = list(x.keys() | y.keys())
    different = sum(k not in x or k not in y or absolute(x[k], y[k]) != 0 for k in keys)
    ones, others = [x.get(k, 0) for k in keys], [y.get(k, 0) for k in keys]
    return different, l1(ones, others), l2(ones, others), linf(ones, others)


DISTANCES: Mapping[str, Callable[[Dataset, Dataset], Distance]] = {
    "AbsoluteDistance": absolute,
    "L1Distance": l1,
    "L2Distance": l2,
    "LInfDistance": linf,
    "SymmetricDistance": symmetric,
    "InsertDeleteDistance": symmetric,
    "ChangeOneDistance": change_one,
    "HammingDistance": hamming,
    "DiscreteDistance": discrete,
}
"""Distance functions by the name of OpenDP's metric.  The distance of `L2Distance` is a square.

`symmetric` also serves `InsertDeleteDistance`, because both distances are equal for the generated pairs: these pairs
add or replace records at one end of a list.
"""


def within(metric: str, x: Dataset, y: Dataset, limit: float) -> bool:
    """Return whether the distance of two datasets is at most `limit`."""
    bound = Fraction(limit) ** 2 if metric == "L2Distance" else Fraction(limit)
    return DISTANCES[metric](x, y) <= bound
