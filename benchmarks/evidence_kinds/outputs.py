"""Sequential and fixed audits with every kind of output.  An additional record makes large values more likely."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import AuditResult, Pair, Timed, audit, batched, register_encoder
from evidence_kinds import Rng, family

_PAIR = Pair([0], [1])
_TRIALS = 300


@dataclass(frozen=True)
class _Release:
    total: float
    kind: str


@dataclass(frozen=True)
class _Sealed:
    """An output that only a registered encoder can read."""

    content: object


class _Level(enum.Enum):
    LOW = 0
    HIGH = 1


def _unsealed(sealed: _Sealed) -> object:
    return sealed.content


def _special(x: float, rng: Rng) -> Any:
    kind = rng.random() - 0.3 * x
    return [None, math.nan, math.inf, -math.inf, x + rng.normal()][int(np.clip(5 * kind, 0, 4))]


def _frame(x: float, rng: Rng) -> Any:
    import pandas as pd

    rows = 1 + rng.poisson(1 + x)
    return pd.DataFrame({"value": x + rng.normal(size=rows), "group": rng.choice(["a", "b"], rows)})


def _mixed(x: float, rng: Rng) -> Any:
    return [True, "text", 3, x + rng.normal(), [x, "nested"], {"key": b"bytes"}][int(rng.integers(6))]


def _words(x: float, rng: Rng) -> str:
    return f"{'yes' if rng.random() < 0.3 + 0.4 * x else 'no'}, {rng.poisson(2 + x)} records"


_OUTPUTS: Mapping[str, Callable[[float, Rng], Any]] = {
    "number": lambda x, rng: x + rng.normal(),
    "whole number": lambda x, rng: int(x + rng.geometric(0.5)),
    "large whole number": lambda x, rng: 2**80 + int(x) + int(rng.geometric(0.5)),
    "bool": lambda x, rng: bool(rng.random() < 0.3 + 0.4 * x),
    "text": _words,
    "None, NaN and inf": _special,
    "bytes": lambda x, rng: rng.integers(int(x), 4, 3, dtype=np.uint8).tobytes(),
    "array": lambda x, rng: np.array([0.0, x, 0.0]) + rng.normal(size=3),
    "matrix of float32": lambda x, rng: (x + rng.normal(size=(2, 2))).astype(np.float32),
    "array of varying length": lambda x, rng: rng.normal(size=1 + rng.poisson(1 + x)),
    "list of varying length": lambda x, rng: [x + rng.normal() for _ in range(rng.poisson(2))],
    "tuple": lambda x, rng: (x + rng.normal(), "constant", bool(rng.random() < 0.5)),
    "set": lambda x, rng: set(rng.integers(0, 3 + int(x), 3).tolist()),
    "dict": lambda x, rng: {key: x + rng.normal() for key in "abc" if rng.random() < 0.4 + 0.3 * x},
    "nested dict": lambda x, rng: {"sum": {"value": x + rng.normal()}, "names": ["a"] * int(rng.integers(3))},
    "data frame": _frame,
    "dataclass": lambda x, rng: _Release(x + rng.normal(), "ab"[int(rng.integers(2))]),
    "enum": lambda x, rng: _Level(int(rng.random() < 0.3 + 0.4 * x)),
    "complex number": lambda x, rng: complex(rng.normal(), x + rng.normal()),
    "decimal": lambda x, rng: decimal.Decimal(int(100 * (x + rng.normal()))) / 100,
    "fraction": lambda x, rng: fractions.Fraction(int(rng.integers(1, 9)) + int(x), 7),
    "date": lambda x, rng: datetime.date(2024, 1, 1 + int(x) + int(rng.integers(5))),
    "exception": lambda x, rng: ValueError("large" if rng.random() < 0.3 + 0.4 * x else "small"),
    "several types": _mixed,
    "own class": lambda x, rng: _Sealed((x + rng.normal(), "sealed")),
    "with a time": lambda x, rng: Timed(x + rng.normal(), float(rng.exponential(1 + x))),
}


def _one(kind: str, dataset: list[float], rng: Rng) -> Any:
    return _OUTPUTS[kind](float(sum(dataset)), rng)


def _audit(kind: str, method: str, _: Path) -> AuditResult:
    register_encoder(_Sealed, _unsealed)
    attacks = "auto" if method == "sequential" else ["threshold", "histogram", "events"]
    return audit(
        partial(_one, kind),
        "pure(epsilon=0.3)",
        _PAIR,
        attacks=attacks,
        trials=_TRIALS,
        method=method,
        seed=21,
        name=kind,
    )


@batched
def _numbers(dataset: list[float], n: int, rng: Rng) -> Any:
    return sum(dataset) + rng.normal(size=n)


@batched
def _wholes(dataset: list[float], n: int, rng: Rng) -> Any:
    return int(sum(dataset)) + rng.geometric(0.5, n)


@batched
def _rows(dataset: list[float], n: int, rng: Rng) -> Any:
    return np.array([0.0, sum(dataset)]) + rng.normal(size=(n, 2))


@batched
def _texts(dataset: list[float], n: int, rng: Rng) -> Any:
    return ["yes" if high else "no" for high in rng.random(n) < 0.3 + 0.4 * sum(dataset)]


def _audit_batched(mechanism: Any, _: Path) -> AuditResult:
    return audit(mechanism, "pure(epsilon=0.3)", _PAIR, trials=_TRIALS, seed=22, name="batched")


FAMILIES = [
    *family("output", {f"{kind}/sequential": partial(_audit, kind, "sequential") for kind in _OUTPUTS}),
    *family("output", {f"{kind}/fixed": partial(_audit, kind, "fixed") for kind in _OUTPUTS}),
    *family(
        "batched",
        {
            "numbers": partial(_audit_batched, _numbers),
            "whole numbers": partial(_audit_batched, _wholes),
            "rows": partial(_audit_batched, _rows),
            "texts": partial(_audit_batched, _texts),
        },
    ),
]
