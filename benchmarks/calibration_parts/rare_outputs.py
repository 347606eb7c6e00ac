"""Claims that are exactly true, of mechanisms with few usual outputs and a rare one of another type or form."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rare_output import Listed, Rare, Together, epsilon_of

from calibration_parts import Outcome, Row
from calibration_parts.limit import Limit
from dpaudit import CommandMechanism, Pair, audit
from dpaudit.running import IsolatedMechanism

_FILE = Path(__file__).resolve().parent.parent / "rare_output.py"
_TOLERANCE = 1e-9


def _function(kind: str, rate: float) -> Any:
    found = Rare(kind, rate)
    return lambda dataset, rng: found(dataset, rng)


def _environment(kind: str, rate: float) -> Any:
    address, params = f"{_FILE.name}:Rare", {"kind": kind, "rate": rate}
    return IsolatedMechanism(address=address, params=params, folder=_FILE.parent, requires=("numpy",))


def _program(kind: str, rate: float) -> Any:
    return CommandMechanism([sys.executable, str(_FILE), kind, repr(rate)])


ROUTES: dict[str, Callable[[str, float], Any]] = {
    "function": _function,
    "object": Rare,
    "array": Together,
    "list": Listed,
    "environment": _environment,
    "program": _program,
    "two workers": Rare,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A type of the rare output, a route, and an audit."""

    kind: str
    route: str
    expected: float  # number of rare outputs of d1 that are expected in an audit
    trials: int
    confidence: float = 0.95
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def cells(self) -> tuple[str, ...]:
        given = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return self.kind, self.route, f"{self.expected:g}", f"{self.trials:,}", f"{self.confidence:g}", given


_ROUTES = {  # two routes of each type
    "int": ("array", "function"),
    "float": ("array", "environment"),
    "NaN": ("array", "program"),
    "None": ("list", "two workers"),
    "bool": ("array", "environment"),
    "text": ("list", "program"),
    "bytes": ("list", "environment"),
    "Decimal": ("list", "object"),
    "number of numpy": ("array", "two workers"),
    "longer list": ("list", "program"),
    "missing key": ("list", "function"),
    "missing column": ("list", "object"),
}
_TRIALS = {"longer list": 500, "missing key": 500, "missing column": 200}  # the features of such outputs take time
CASES = [
    Case(kind=kind, route=route, expected=(1, 3, 10)[(i + j) % 3], trials=_TRIALS.get(kind, 1_000))
    for i, (kind, routes) in enumerate(_ROUTES.items())
    for j, route in enumerate(routes)
]
_ALONE, _FIXED = {"attacks": "plug_in_ratio"}, {"attacks": "plug_in_ratio", "method": "fixed"}
CASES += [  # in longer audits, a score that depended on the other outputs of a call refuted such claims
    Case(kind="float", route="array", expected=1, trials=100_000, confidence=0.99, settings=_ALONE),
    Case(kind="float", route="array", expected=1, trials=20_000, confidence=0.99),
    Case(kind="NaN", route="array", expected=1, trials=20_000, confidence=0.99),
    Case(kind="float", route="list", expected=3, trials=20_000, settings=_ALONE),
    Case(kind="float", route="array", expected=2, trials=20_000, settings=_FIXED),
]
_CASES = {case.cells: case for case in CASES}


def rows() -> list[Row]:
    return [
        Row(
            part="rare outputs",
            cells=case.cells,
            audit=partial(audited, case.cells),
            limits={
                "refuted": Limit(rate=1 - case.confidence),
                "epsilon": Limit(rate=1 - case.confidence),
                "inconclusive": Limit(rate=0.01),
            },
            full=200,
            sources=("calibration_parts/rare_outputs.py", "rare_output.py"),
        )
        for case in CASES
    ]


def audited(cells: tuple[str, ...], seed: int) -> Outcome:
    """Run one audit; return whether it refuted the claim, certified a too large epsilon, or was inconclusive."""
    case = _CASES[cells]
    rate = case.expected / case.trials
    epsilon = epsilon_of(rate)
    terms: dict[str, Any] = {"jobs": 2} if case.route == "two workers" else {}
    result = audit(
        ROUTES[case.route](case.kind, rate),
        f"pure(epsilon={epsilon!r})",
        Pair(0, 1),
        trials=case.trials,
        confidence=case.confidence,
        seed=seed,
        **terms,
        **case.settings,
    )
    return {
        "refuted": float(result.violated),
        "epsilon": float(result.epsilon_lower(0.0) > epsilon * (1 + _TOLERANCE)),
        "inconclusive": float(result.verdict.name == "INCONCLUSIVE"),
    }
