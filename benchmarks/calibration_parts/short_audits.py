"""Claims that are exactly true, in short audits at low confidence, where false alarms are frequent enough to count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from calibration_parts import Outcome, Row
from calibration_parts.limit import Limit
from dpaudit import Pair, audit, batched, parse_claim

_ODDS = math.e / (1 + math.e)
_TOLERANCE = 1e-9


def _of_law(p: list[float], q: list[float]) -> Any:
    return batched(lambda dataset, n, rng: rng.choice(len(p), size=n, p=(p, q)[dataset[0]]))


def _response(delta: float = 0.0, odds: float = _ODDS) -> Any:
    """Return a randomised response that reveals its dataset with probability delta."""
    p = [(1 - delta) * odds, (1 - delta) * (1 - odds), delta, 0.0]
    return _of_law(p, [p[1], p[0], 0.0, delta])


def _mixed(dataset: list[int], rng: Any) -> Any:
    """Return one of twelve outputs of different types; six of them are e times as likely on each dataset."""
    likely = (rng.random() < _ODDS) == bool(dataset[0])
    place = int(rng.integers(6))
    return ([None, "a", 1, 1.0, [1, 2], {"x": 1}] if likely else [True, "b", 2, math.nan, (1, 2), {"x": 2.5}])[place]


def _failing(dataset: list[int], rng: Any) -> int:
    likely = (rng.random() < _ODDS) == bool(dataset[0])
    if likely and rng.random() < 0.5:
        raise ValueError("no answer")
    return int(likely)


def _failing_losses(dataset: list[int], rng: Any) -> int:
    """Fail on some of the outputs on which bets lose."""
    likely = (rng.random() < _ODDS) == bool(dataset[0])
    if likely == (dataset[0] == 0) and rng.random() < 0.02:
        raise ValueError("no answer")
    return int(likely)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A mechanism, the claim that it satisfies exactly, and a short audit."""

    name: str
    mechanism: Callable[[], Any]
    claim: str
    trials: int
    confidence: float = 0.5
    pairs: int = 1
    settings: dict[str, Any] = field(default_factory=dict)


_PLUG_IN, _FIXED = {"attacks": "plug_in_ratio"}, {"attacks": "plug_in_ratio", "method": "fixed"}
_SIX = [0.5 * (1 - _ODDS), 0.3 * (1 - _ODDS), 0.2 * (1 - _ODDS), 0.5 * _ODDS, 0.3 * _ODDS, 0.2 * _ODDS]
_SIX_OTHER = [*_SIX[3:], *_SIX[:3]]
_CAUCHY = math.log((3 + math.sqrt(5)) / 2)
CASES = [
    Case(name="response", mechanism=_response, claim="pure(epsilon=1)", trials=30, settings=_PLUG_IN),
    Case(
        name="response, histogram",
        mechanism=_response,
        claim="pure(epsilon=1)",
        trials=60,
        confidence=0.8,
        settings={"attacks": "histogram"},
    ),
    Case(
        name="equal laws",
        mechanism=partial(_response, 0.0, 0.5),
        claim="pure(epsilon=0)",
        trials=60,
        settings=_PLUG_IN,
    ),
    Case(
        name="infinite loss",
        mechanism=partial(_response, 0.3, 0.5),
        claim="approximate(epsilon=0, delta=0.3)",
        trials=40,
        settings=_PLUG_IN,
    ),
    Case(
        name="revealing response",
        mechanism=partial(_response, 0.01),
        claim="approximate(epsilon=1, delta=0.01)",
        trials=1_000,
        settings=_PLUG_IN,
    ),
    Case(
        name="mostly revealing response",
        mechanism=partial(_response, 0.9),
        claim="approximate(epsilon=1, delta=0.9)",
        trials=100,
        settings=_PLUG_IN,
    ),
    Case(
        name="Cauchy noise",
        mechanism=lambda: batched(lambda dataset, n, rng: dataset[0] + rng.standard_cauchy(n)),
        claim=f"pure(epsilon={_CAUCHY + 1e-12!r})",
        trials=200,
    ),
    Case(
        name="50 pairs",
        mechanism=_response,
        claim="pure(epsilon=1)",
        trials=1_500,
        pairs=50,
        settings=_PLUG_IN,
    ),
    Case(
        name="six values",
        mechanism=partial(_of_law, _SIX, _SIX_OTHER),
        claim="pure(epsilon=1)",
        trials=4_000,
        settings=_PLUG_IN,
    ),
    Case(
        name="six values, fixed",
        mechanism=partial(_of_law, _SIX, _SIX_OTHER),
        claim="pure(epsilon=1)",
        trials=300,
        confidence=0.8,
        settings=_FIXED,
    ),
    Case(name="twelve outputs of all types", mechanism=lambda: _mixed, claim="pure(epsilon=1)", trials=80),
    Case(
        name="failures are outcomes",
        mechanism=lambda: _failing,
        claim="pure(epsilon=1)",
        trials=100,
        settings={**_PLUG_IN, "failures": "outcome"},
    ),
    Case(
        name="losses fail, six pairs",
        mechanism=lambda: _failing_losses,
        claim="pure(epsilon=1)",
        trials=400,
        pairs=6,
        settings=_PLUG_IN,
    ),
]
_CASES = {case.name: case for case in CASES}


def rows() -> list[Row]:
    return [
        Row(
            part="short audits",
            cells=(case.name, f"{case.trials:,}", f"{case.confidence:g}"),
            audit=partial(audited, case.name),
            limits=dict.fromkeys(("refuted", "epsilon"), Limit(rate=1 - case.confidence)),
            full=200,
            sources=("calibration_parts/short_audits.py",),
        )
        for case in CASES
    ]


def audited(name: str, seed: int) -> Outcome:
    """Run one audit; return whether it refuted the claim, and whether it certified a too large epsilon."""
    case = _CASES[name]
    claim = parse_claim(case.claim)
    pairs = [Pair([0, i], [1, i]) for i in range(case.pairs)]
    terms: dict[str, Any] = {"trials": case.trials, "confidence": case.confidence, **case.settings}
    result = audit(case.mechanism(), claim, pairs, seed=seed, **terms)
    delta = float(claim.parameters.get("delta", 0.0))
    true = float(claim.epsilon(delta))
    return {
        "refuted": float(result.violated),
        "epsilon": float(result.epsilon_lower(delta) > true * (1 + _TOLERANCE) + _TOLERANCE),
    }
