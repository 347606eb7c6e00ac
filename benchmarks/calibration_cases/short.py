"""Claims that are exactly true, in short audits at low confidence, where false alarms are frequent enough to count.

The last mechanisms have eight usual outputs and a rare one of another type or form.  A score that depended on the other
outputs of a call refuted such claims.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from calibration_cases import Row, refuted, too_large
from dpaudit import AuditResult, Pair, audit, batched, parse_claim
from measure import Limit, Outcome

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
_RARE = (0.4 - 1e-5) * math.exp(-1.1)
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
        name="equal laws", mechanism=partial(_response, 0.0, 0.5), claim="pure(epsilon=0)", trials=60, settings=_PLUG_IN
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
    Case(name="50 pairs", mechanism=_response, claim="pure(epsilon=1)", trials=1_500, pairs=50, settings=_PLUG_IN),
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
    Case(
        name="category that d1 shows more often",
        mechanism=partial(_of_law, [1 - _RARE, _RARE], [0.6, 0.4]),
        claim="approximate(epsilon=1.1, delta=1e-5)",
        trials=150,
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


def short_audits() -> list[Row]:
    return [
        Row(
            cells=(case.name, f"{case.trials:,}", f"{case.confidence:g}"),
            measure=partial(audited, case.name),
            limits=refuted(1 - case.confidence, "epsilon"),
            seeds=200,
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
    return _errors(result, delta, float(claim.epsilon(delta)) + _TOLERANCE)


def _errors(result: AuditResult, delta: float, epsilon: float) -> Outcome:
    too_much = too_large(result.epsilon_lower(delta), epsilon, _TOLERANCE)
    return {"refuted": float(result.violated), "epsilon": too_much}


# --- Rare outputs

KINDS: dict[str, tuple[Callable[[int], Any], Any]] = {  # the usual output i, and the rare output
    "int": (float, 3),
    "float": (lambda i: i, 0.5),
    "NaN": (lambda i: i, math.nan),
    "None": (lambda i: i, None),
    "bool": (lambda i: i, True),
    "text": (lambda i: i, "suppressed"),
    "bytes": (lambda i: i, b"?"),
    "Decimal": (lambda i: i, Decimal("0.5")),
    "number of numpy": (lambda i: i, np.float32(0.5)),
    "longer list": (lambda i: [i, 1], [0, 1, 2]),
    "missing key": (lambda i: {"a": i, "b": 1}, {"a": 0}),
    "missing column": (lambda i: [{"a": i, "b": 1}, {"a": 0, "b": i}], [{"a": 0}, {"a": 1}]),
}
_IN_ARRAYS = ("int", "float", "NaN", "bool", "number of numpy")


@dataclass(frozen=True)
class Rare:
    """A randomised response with epsilon = 1 on eight outputs, and a rare output that is e times as likely on d1."""

    kind: str
    rate: float  # of the rare output on d1

    def law(self, dataset: int) -> list[float]:
        rare = self.rate if dataset else self.rate / math.e
        usual = [_ODDS if (i >= 4) == bool(dataset) else 1 - _ODDS for i in range(8)]
        return [(1 - rare) * p / 4 for p in usual] + [rare]

    @property
    def epsilon(self) -> float:
        """The epsilon of the mechanism, rounded up."""
        return max(abs(math.log(q / p)) for p, q in zip(self.law(0), self.law(1), strict=True)) * (1 + 1e-12)

    def many(self, dataset: int, n: int, rng: np.random.Generator) -> list[Any]:
        usual, rare = KINDS[self.kind]
        places = rng.choice(9, size=n, p=self.law(dataset)).tolist()
        return [usual(place) if place < 8 else copy.deepcopy(rare) for place in places]

    def __call__(self, dataset: int, rng: np.random.Generator) -> Any:
        return self.many(dataset, 1, rng)[0]


class Listed(Rare):
    """The same, with many runs in one call."""

    def sample(self, dataset: int, n: int, rng: np.random.Generator) -> Any:
        return self.many(dataset, n, rng)


class Together(Rare):
    """The same, in an array, whose type may depend on all outputs."""

    def sample(self, dataset: int, n: int, rng: np.random.Generator) -> Any:
        return np.array(self.many(dataset, n, rng))


ROUTES: dict[str, type[Rare]] = {"array": Together, "list": Listed, "object": Rare, "two workers": Rare}


def rare_outputs() -> list[Row]:
    rows = []
    for i, kind in enumerate(KINDS):
        trials = {"missing column": 200}.get(kind, 500 if i >= 9 else 1_000)  # the features of such outputs take time
        for j, route in enumerate(
            ("array" if kind in _IN_ARRAYS else "list", "two workers" if i % 4 == 3 else "object")
        ):
            rows.append(_rare(kind, route, (1, 3, 10)[(i + j) % 3], trials, 0.95))
    alone = {"attacks": "plug_in_ratio"}
    return [
        *rows,
        _rare("float", "array", 1, 100_000, 0.99, **alone),
        _rare("float", "array", 1, 20_000, 0.99),
        _rare("NaN", "array", 1, 20_000, 0.99),
        _rare("float", "list", 3, 20_000, 0.95, **alone),
        _rare("float", "array", 2, 20_000, 0.95, method="fixed", **alone),
    ]


def _rare(kind: str, route: str, expected: int, trials: int, confidence: float, **settings: Any) -> Row:
    words = ", ".join(f"{name} {value}" for name, value in settings.items())
    terms = {"trials": trials, "confidence": confidence, **settings, **({"jobs": 2} if route == "two workers" else {})}
    return Row(
        cells=(kind, route, f"{expected} of {trials:,}", f"{confidence:g}", words),
        measure=partial(with_a_rare_output, ROUTES[route](kind, expected / trials), terms),
        limits={**refuted(1 - confidence, "epsilon"), "inconclusive": Limit(rate=0.01)},
        seeds=200,
    )


def with_a_rare_output(mechanism: Rare, terms: dict[str, Any], seed: int) -> Outcome:
    """Run one audit; return whether it refuted the claim, certified a too large epsilon, or was inconclusive."""
    result = audit(mechanism, f"pure(epsilon={mechanism.epsilon!r})", Pair(0, 1), seed=seed, **terms)
    inconclusive = float(result.verdict.name == "INCONCLUSIVE")
    return {**_errors(result, 0.0, mechanism.epsilon), "inconclusive": inconclusive}
