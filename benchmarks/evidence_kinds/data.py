"""Audits with every kind of output and of claim.

An additional record makes large outputs more likely.
"""

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

from dpaudit import (
    ApproxDP,
    AuditResult,
    GaussianDP,
    LaplaceDP,
    Pair,
    PrivacyLoss,
    PureDP,
    RenyiDP,
    TabulatedTradeoff,
    Timed,
    TradeoffFunction,
    ZeroConcentratedDP,
    audit,
    batched,
    compose,
    parse_claim,
    register_encoder,
)
from evidence_kinds import PAIR, Found, Rng, family, noisy_sums

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


# --- Claims of every kind and operations on claims: their trade-off functions, and an audit of each claim.

_ALPHA = np.concatenate([[0.0, 1e-12, 1e-6], np.linspace(0.001, 0.999, 60), [1.0]])
_EPSILON = np.concatenate([[-np.inf, -3.0], np.linspace(-1, 4, 41), [20.0, np.inf]])
_DELTA = np.array([0.0, 1e-12, 1e-5, 0.01, 0.3, 1.0])


def _steps() -> TabulatedTradeoff:
    """Return a trade-off function that is not its own inverse."""
    return TabulatedTradeoff(alpha=[0, 0.1, 0.5, 1], beta=[1, 0.6, 0.2, 0])


CLAIMS: Mapping[str, Callable[[], TradeoffFunction]] = {
    "pure": lambda: PureDP(0.5),
    "approximate": lambda: ApproxDP(epsilon=0.4, delta=0.01),
    "gaussian": lambda: GaussianDP(0.5),
    "laplace": lambda: LaplaceDP(0.5),
    "zcdp": lambda: ZeroConcentratedDP(0.05),
    "renyi, one order": lambda: RenyiDP(order=4, epsilon=0.3),
    "renyi, several orders": lambda: RenyiDP(order=(2, 4, 16), epsilon=(0.1, 0.2, 0.9)),
    "tabulated": _steps,
    "tabulated, inverse": lambda: _steps().inverse(),
    "tabulated, symmetrised": lambda: _steps().symmetrized(),
    "privacy loss": lambda: PrivacyLoss(epsilon=[0.0, 0.5, 1.0], delta=[0.2, 0.05, 0.001]),
    "composed, closed form": lambda: compose(GaussianDP(0.3), GaussianDP(0.4)),
    "composed, of two kinds": lambda: compose(PureDP(0.2), GaussianDP(0.3)),
    "composed, with a delta": lambda: compose(LaplaceDP(0.2), ApproxDP(epsilon=0.2, delta=1e-3)),
    "repeated, gaussian": lambda: GaussianDP(0.1).repeated(16),
    "repeated, pure": lambda: PureDP(0.1).repeated(6),
    "repeated, zcdp": lambda: ZeroConcentratedDP(0.01).repeated(5),
    "group, gaussian": lambda: GaussianDP(0.2).group(3),
    "group, approximate": lambda: ApproxDP(epsilon=0.2, delta=1e-3).group(2),
    "group, laplace": lambda: LaplaceDP(0.2).group(2),
    "subsampled": lambda: GaussianDP(1.0).subsampled(0.3),
    "subsampled, add_remove": lambda: GaussianDP(1.0).subsampled(0.3, relation="add_remove"),
    "subsampled, replace_one": lambda: PureDP(1.0).subsampled(0.3, relation="replace_one"),
    "subsampled and repeated": lambda: GaussianDP(1.0).subsampled(0.1, relation="add_remove").repeated(8),
}
_ALSO_FIXED = {"approximate", "laplace", "renyi, several orders", "tabulated", "privacy loss", "subsampled, add_remove"}
_MISTAKES = (
    "1",
    "(1, 1e-5)",
    "eps=1, delta=1e-5",
    "gausian(mu=1)",
    "gaussian(sigma=1)",
    "gaussian(mu=-1)",
    "pure(epsilon=log(3))",
    "pure(epsilon=1",
    "approximate(epsilon=1, delta=2)",
    "repeated(pure(epsilon=1), n=0.5)",
    "tabulated(alpha=(0, 1), beta=(0, 1))",
)


def _curves(claim: TradeoffFunction) -> list[object]:
    both = claim.symmetrized()
    return [
        claim.beta(_ALPHA),
        claim.delta(_EPSILON),
        claim.epsilon(_DELTA),
        claim.mu(),
        claim.inverse().beta(_ALPHA),
        [both.beta(_ALPHA), both.delta(_EPSILON), both.epsilon(_DELTA), both.mu()],
    ]


def _claimed(name: str, _: Path) -> Found:
    claim = CLAIMS[name]()
    audited = partial(audit, noisy_sums, claim, PAIR, trials=300, attacks="threshold", seed=61, name="claim")
    fixed = {"fixed": audited(method="fixed")} if name in _ALSO_FIXED else {}
    return {
        "curves": _curves(claim),
        "text": [str(claim), claim.label, str(parse_claim(str(claim))), str(claim.symmetrized())],
        "sequential": audited(method="sequential"),
        **fixed,
    }


def _mistakes(_: Path) -> Found:
    says = {}
    for text in _MISTAKES:
        try:
            says[text] = str(parse_claim(text))
        except ValueError as error:
            says[text] = str(error)
    return says


FAMILIES += [
    *family("claim", {name: partial(_claimed, name) for name in CLAIMS}),
    *family("claim", {"mistakes in a text": _mistakes}),
]
