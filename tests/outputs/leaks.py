"""Mechanisms with outputs of every kind, each with and without a leak that only this kind of output shows."""

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas
import polars

from dpaudit.outputs import Raised, register_encoder

Rng = np.random.Generator
Draw = Callable[[bool, Rng], Any]
"""Maps (whether the run leaks, rng) to an output.  A run on d1 leaks with probability RATE, a run on d0 never."""

RATE = 0.5


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    low: float
    high: float


@dataclasses.dataclass
class Answer:
    value: float
    note: str


class Sealed:
    """An object that only a registered encoder can read."""

    __slots__ = ("inner",)

    def __init__(self, inner: float) -> None:
        self.inner = inner


register_encoder(Sealed, lambda sealed: {"inner": sealed.inner})


def table(library: Any, leak: bool, rng: Rng) -> Any:
    """Return rows in random order.  The leak is an additional label in a column, in any row."""
    ages = np.sort(rng.integers(20, 60, 6))
    towns = rng.choice(["Ulm", "Bonn"], 6)
    if leak:
        towns[0] = "Jena"
    order = rng.permutation(6)
    return library.DataFrame({"age": ages[order], "town": towns[order].tolist()})


def totals(leak: bool, rng: Rng) -> pandas.DataFrame:
    """Return a table like that of `groupby`, whose rows have names.  The leak is which value belongs to which name."""
    names = rng.permutation(["Bonn", "Jena", "Ulm"])
    swapped = {"Bonn": 1, "Jena": 3 if leak else 2, "Ulm": 2 if leak else 3}
    return pandas.DataFrame({"people": [swapped[name] for name in names]}, index=names)


LEAKS: dict[str, Draw] = {
    "boolean": lambda leak, rng: bool(leak or rng.random() < 0.3),
    "text": lambda leak, rng: "high" if leak else str(rng.choice(["low", "mid"])),
    "many texts": lambda leak, rng: f"user-{'x' if leak else 'y'}{rng.integers(10**6)}",
    "number in a text": lambda leak, rng: f"the mean is {rng.normal(3.0 * leak):.3f} today",
    "category": lambda leak, rng: Colour.RED if leak or rng.random() < 0.3 else Colour.BLUE,
    "bytes": lambda leak, rng: bytes([int(rng.integers(256)), 7 if leak else 8, int(rng.integers(256))]),
    "none": lambda leak, rng: None if leak else float(rng.normal()),
    "nan": lambda leak, rng: float("nan") if leak else float(rng.normal()),
    "infinity": lambda leak, rng: float("inf") if leak else float(rng.normal()),
    "exception": lambda leak, rng: Raised("ValueError", "empty") if leak else float(rng.normal()),
    "message of an exception": lambda leak, rng: Raised("ValueError", f"code {3 + leak}"),
    "integer or float": lambda leak, rng: (float if leak else int)(rng.integers(10)),
    "tuple": lambda leak, rng: (float(rng.normal()), float(rng.normal(2.0 * leak))),
    "tuple or list": lambda leak, rng: (list if leak else tuple)([float(rng.normal()), 0.5]),
    "array": lambda leak, rng: rng.normal(0, 1, 5) + 2.0 * leak * np.eye(5)[3],
    "matrix of varying shape": lambda leak, rng: rng.normal(0, 1, (3, 2) if leak else (2, 3)),
    "missing key": lambda leak, rng: dict.fromkeys("abc"[leak:], 1),
    "value of a key": lambda leak, rng: {"count": int(rng.integers(9)), "sum": {"x": float(rng.normal(2.0 * leak))}},
    "order of keys": lambda leak, rng: {"b": 1, "a": 1} if leak else {"a": 1, "b": 1},
    "one key of many": lambda leak, rng: {f"k{i}": 1 for i in range(150) if rng.random() < 0.2 or (leak and i == 77)},
    "set": lambda leak, rng: {int(x) for x in rng.integers(0, 9, 3)} | ({99} if leak else set()),
    "data frame": lambda leak, rng: table(pandas, leak, rng),
    "data frame of polars": lambda leak, rng: table(polars, leak, rng),
    "names of rows": lambda leak, rng: pandas.DataFrame({"n": [1, 2]}, index=["Ulm", "Jena" if leak else "Bonn"]),
    "value of a named row": totals,
    "series": lambda leak, rng: polars.Series("x", rng.normal(0, 1, 3) + np.array([0, 2.0 * leak, 0])),
    "series with names": lambda leak, rng: (lambda s: s[s.index != "b"] if leak else s)(
        pandas.Series(rng.normal(0, 1, 3), index=list("abc")).iloc[rng.permutation(3)]
    ),
    "missing number": lambda leak, rng: pandas.DataFrame({"n": pandas.array([1, None if leak else 2], dtype="Int64")}),
    "missing value": lambda leak, rng: pandas.NA if leak else float(rng.normal()),
    "length of a list": lambda leak, rng: [float(x) for x in rng.normal(0, 1, int(rng.integers(1, 5)) + 3 * leak)],
    "count of a label": lambda leak, rng: list(rng.permutation(["T"] * (3 + leak) + ["F"] * int(rng.integers(3, 7)))),
    "named tuple": lambda leak, rng: Pair(float(rng.normal()), float(rng.normal(2.0 * leak))),
    "dataclass": lambda leak, rng: Answer(float(rng.normal()), "late" if leak else "early"),
    "registered": lambda leak, rng: Sealed(float(rng.normal(2.0 * leak))),
    "mixed kinds": lambda leak, rng: [1.5, "a", None, [1, 2], {"k": 1}][int(rng.integers(5)) if not leak else 3],
    "equal components": lambda leak, rng: (lambda x: (x, x if leak else float(rng.normal())))(float(rng.normal())),
    "difference of components": lambda leak, rng: (lambda x: (x, x + rng.normal(0, 0.3 if leak else 1.4)))(
        rng.normal(0, 3)
    ),
    "whole numbers": lambda leak, rng: float(np.round(rng.normal(0, 5))) if leak else float(rng.normal(0, 5)),
    "parity": lambda leak, rng: int(2 * rng.integers(1000) + (0 if leak else rng.integers(2))),
    "small denominator": lambda leak, rng: float(rng.integers(-30, 30) / 3) if leak else float(rng.uniform(-10, 10)),
    "norm": lambda leak, rng: (lambda v: v / np.linalg.norm(v) * (1.0 if leak else rng.chisquare(3) ** 0.5))(
        rng.normal(0, 1, 3)
    ),
    "product of components": lambda leak, rng: (lambda v: np.array([v[0], abs(v[1]) * np.sign(v[0])]) if leak else v)(
        rng.normal(0, 1, 2)
    ),
    "atom": lambda leak, rng: 1.25 if leak else float(rng.normal(1.25)),
    "large integers": lambda leak, rng: 2**60 + int(rng.integers(2**40)) * 2 + (0 if leak else int(rng.integers(2))),
    "huge integers": lambda leak, rng: 2**90 + int(rng.integers(2**60)) * 2 + (0 if leak else int(rng.integers(2))),
    "last bits of floats": lambda leak, rng: float(np.float32(rng.normal()) if leak else rng.normal()),
    "floating-point noise": lambda leak, rng: float(
        rng.laplace() + (1000.0 if leak else 0.0) - (1000.0 if leak else 0.0)
    ),
}


@dataclasses.dataclass(frozen=True)
class Leaking:
    """Draws outputs of one kind.  Runs on d1 have the leak, unless `leaks` is false."""

    kind: str
    leaks: bool = True

    def __call__(self, dataset: list[int], rng: Rng) -> Any:
        leak = bool(rng.random() < RATE) and dataset == [1] and self.leaks
        return LEAKS[self.kind](leak, rng)
