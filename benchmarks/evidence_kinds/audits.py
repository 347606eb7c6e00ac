"""Audits that use each argument of `audit`, audits of dependent runs, and audits with each attack."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import AuditResult, CommandMechanism, GaussianDP, MechanismError, Pair, SearchPairs, Timed, audit, batched
from evidence_kinds import PAIR, SEVERAL, Found, NoisyRecords, Rng, family, noisy_sum, noisy_sums, noisy_vector

_FAST = ["threshold", "logistic"]


def _audited(mechanism: Any, claim: str, pairs: Any = PAIR, **settings: Any) -> Callable[[Path], AuditResult]:
    """Return a kind of evidence that consists of one call of `audit`."""
    arguments = {"trials": 400, "attacks": _FAST, "seed": 41, "name": "audit", **settings}
    return lambda _: audit(mechanism, claim, pairs, **arguments)


_METHODS = {
    "sequential, violation": _audited(noisy_sum, "gaussian(mu=0.3)"),
    "sequential, none found": _audited(noisy_sum, "gaussian(mu=1)"),
    "sequential, too few runs": _audited(noisy_sum, "gaussian(mu=6)", trials=30),
    "sequential, another seed": _audited(noisy_sum, "gaussian(mu=0.3)", seed=42),
    "sequential, confidence 0.9": _audited(noisy_sum, "gaussian(mu=0.3)", confidence=0.9),
    "sequential, long": _audited(noisy_sums, "gaussian(mu=0.97)", trials=20_000),
    "fixed, violation": _audited(noisy_sum, "gaussian(mu=0.3)", method="fixed"),
    "fixed, none found": _audited(noisy_sum, "gaussian(mu=1)", method="fixed"),
    "fixed, too few runs": _audited(noisy_sum, "gaussian(mu=6)", method="fixed", trials=30),
    "fixed, claim with a delta": _audited(noisy_sum, "approximate(epsilon=0.5, delta=1e-5)", method="fixed"),
    "fixed, confidence 0.999": _audited(noisy_sum, "gaussian(mu=0.3)", method="fixed", confidence=0.999),
    "fixed, long": _audited(noisy_sums, "gaussian(mu=0.97)", method="fixed", trials=40_000),
    "detect, seen": _audited(noisy_sum, "gaussian(mu=1)", detect="gaussian(mu=3)"),
    "detect, unseen": _audited(noisy_sum, "gaussian(mu=1)", detect=GaussianDP(1.05)),
    "detect, fixed": _audited(noisy_sum, "gaussian(mu=1)", detect=GaussianDP(1.05), method="fixed"),
    "two jobs": _audited(noisy_sum, "gaussian(mu=0.3)", jobs=2),
    "two jobs, batched": _audited(noisy_sums, "gaussian(mu=0.97)", jobs=2, trials=5_000),
}

# --- Pairs of datasets


def _fails_on_three(dataset: Sequence[float], rng: Rng) -> float:
    if len(dataset) == 3:
        raise ValueError("three records")
    return noisy_sum(dataset, rng)


def _drawn(rng: Rng) -> list[float]:
    return [round(float(x), 3) for x in rng.random(3)]


def _relation(relation: Any, d0: list[float], d1: list[float]) -> Callable[[Path], AuditResult]:
    return _audited(noisy_sum, "gaussian(mu=0.5)", Pair(d0, d1, relation=relation), trials=200)


def _search(mechanism: Any = None, **arguments: Any) -> Callable[[Path], AuditResult]:
    pairs = SearchPairs(**{"size": 4, "most": 4, **arguments})
    return _audited(mechanism or NoisyRecords(), "pure(epsilon=0.5)", pairs, trials=300, attacks="logistic")


def _table(dataset: Sequence[Mapping[str, Any]], rng: Rng) -> Any:
    return [sum(row["age"] or 0 for row in dataset) / 50 + rng.normal(), sum(row["city"] == "A" for row in dataset)]


_THREE = [*SEVERAL, Pair([0, 0, 0], [0, 0], label="three")]
_EQUAL = [*SEVERAL[:2], Pair([2], [2], label="equal")]
_PAIRS = {
    "several, sequential": _audited(noisy_sum, "gaussian(mu=0.5)", SEVERAL),
    "several, fixed": _audited(noisy_sum, "gaussian(mu=0.5)", SEVERAL, method="fixed"),
    "several, one fails": _audited(_fails_on_three, "gaussian(mu=0.5)", _THREE),
    "several, one fails, fixed": _audited(_fails_on_three, "gaussian(mu=0.5)", _THREE, method="fixed"),
    "several, one equal": _audited(noisy_sum, "gaussian(mu=0.5)", _EQUAL),
    "equal datasets": _audited(noisy_sum, "gaussian(mu=0.5)", Pair([2], [2])),
    "add_remove": _relation("add_remove", [0, 1], [0, 1, 1]),
    "replace_one": _relation("replace_one", [0, 1], [0, 2]),
    "unspecified": _relation("unspecified", [0, 1], [1, 2, 3]),
}
_SEARCHES = {
    "add_remove": _search(relation="add_remove", most=8),
    "replace_one with bounds": _search(relation="replace_one", bounds=(-1.0, 1.0), most=8),
    "one_value": _search(noisy_vector, relation="one_value", bounds=(0, 4), whole=True),
    "all_values": _search(noisy_vector, relation="all_values", step=0.5),
    "schema": _search(_table, relation="add_remove", schema={"age": (18, 90), "city": ["A", "B"]}, out_of_domain=False),
    "generator": _search(relation="replace_one", generator=_drawn, seed=3),
    "build": _search(relation="add_remove", build=np.array, out_of_domain=False),
}

# --- Mechanisms that fail, or whose runs are dependent


def _raises(rate: float, dataset: Sequence[float], rng: Rng) -> float:
    if rng.random() < rate * (1 + sum(dataset)):
        raise LookupError(f"no record {int(rng.integers(3))}")
    return noisy_sum(dataset, rng)


@batched
def _one_too_few(dataset: Sequence[float], n: int, rng: Rng) -> Any:
    return rng.normal(size=n - 1)


@batched
def _reused(dataset: Sequence[float], n: int, rng: Rng) -> Any:
    """Return noisy sums in which five consecutive runs share the same noise."""
    return sum(dataset) + np.repeat(rng.normal(size=n), 5)[:n]


def _constant(dataset: Sequence[float], rng: Rng) -> float:
    return float(sum(dataset))


def _global_state(dataset: Sequence[float], rng: Rng) -> float:
    return float(sum(dataset) + np.random.normal())  # noqa: NPY002 - the audit seeds numpy's global generator


def _changes_its_dataset(dataset: list[float], rng: Rng) -> float:
    dataset.append(1.0)
    return noisy_sum(dataset, rng)


def _refused(_: Path) -> Found:
    """Return the error messages of audits that stop before they measure anything."""
    says = {}
    calls: dict[str, Callable[[], AuditResult]] = {
        "a run that raises": lambda: audit(partial(_raises, 1.0), "pure(epsilon=1)", PAIR, seed=1),
        "a short batch": lambda: audit(_one_too_few, "pure(epsilon=1)", PAIR, seed=1),
        "no claim": lambda: audit(noisy_sum, "gaussian(sigma=1)", PAIR, seed=1),
        "no trials": lambda: audit(noisy_sum, "gaussian(mu=1)", PAIR, trials=0, seed=1),
        "no attack": lambda: audit(noisy_sum, "gaussian(mu=1)", PAIR, attacks="logistics", seed=1),
        "no confidence": lambda: audit(noisy_sum, "gaussian(mu=1)", PAIR, confidence=95, seed=1),
    }
    for name, call in calls.items():
        try:
            says[name] = call().verdict.name
        except (ValueError, TypeError, MechanismError) as error:
            says[name] = f"{type(error).__name__}: {error}"
    return says


_RARELY, _OFTEN = partial(_raises, 0.004), partial(_raises, 0.2)
_FAILURES = {
    "an outcome": _audited(_OFTEN, "pure(epsilon=0.3)", failures="outcome"),
    "an outcome, fixed": _audited(_OFTEN, "pure(epsilon=0.3)", failures="outcome", method="fixed"),
    "an outcome, auto": _audited(_OFTEN, "pure(epsilon=0.3)", failures="outcome", attacks="auto"),
    "stop": _audited(_RARELY, "gaussian(mu=1)", failures="stop"),
    "stop, fixed": _audited(_RARELY, "gaussian(mu=1)", failures="stop", method="fixed"),
    "retried": _audited(_OFTEN, "gaussian(mu=0.5)", failures="retry"),
    "refused": _refused,
}
_DOUBTS = {
    "reused noise": _audited(_reused, "gaussian(mu=0.3)", trials=2_000),
    "reused noise, fixed": _audited(_reused, "gaussian(mu=0.3)", trials=2_000, method="fixed"),
    "constant outputs": _audited(_constant, "gaussian(mu=1)"),
    "global random state": _audited(_global_state, "gaussian(mu=0.5)"),
    "a dataset that is changed": _audited(_changes_its_dataset, "gaussian(mu=0.5)"),
}

# --- Stores of trials and external programs

_PROGRAM = """\
import json, random, sys
for line in sys.stdin:
    request = json.loads(line)
    draw = random.Random(request["seed"])
    total = sum(request["dataset"])
    outputs = [total + draw.gauss(0, 1) for _ in range(request["n"])]
    print(json.dumps({"outputs": outputs}), flush=True)
"""


def _program(method: str, folder: Path) -> AuditResult:
    (folder / "program.py").write_text(_PROGRAM, encoding="utf-8")
    with CommandMechanism([sys.executable, "program.py"], cwd=folder) as mechanism:
        return audit(mechanism, "gaussian(mu=0.3)", PAIR, trials=400, method=method, seed=51, name="program")


def _resumed(method: str, folder: Path) -> Found:
    """Return the result of an audit that was interrupted and resumed, and the result of an uninterrupted audit."""
    reports = 0

    def interrupt(_: object) -> None:
        nonlocal reports
        reports += 1
        if reports == 4:
            raise KeyboardInterrupt

    stored = partial(audit, noisy_sum, "gaussian(mu=0.9)", PAIR, trials=600, attacks=_FAST, method=method, name="kept")
    return {
        "interrupted": stored(seed=52, store=folder / "one.trials", progress=interrupt),
        "resumed": stored(seed=52, store=folder / "one.trials"),
        "whole": stored(seed=52),
    }


_STORES = {"sequential": partial(_resumed, "sequential"), "fixed": partial(_resumed, "fixed")}
_PROGRAMS = {"sequential": partial(_program, "sequential"), "fixed": partial(_program, "fixed")}

FAMILIES = [
    *family("audit", _METHODS),
    *family("pairs", _PAIRS),
    *family("search", _SEARCHES),
    *family("failures", _FAILURES),
    *family("doubts", _DOUBTS),
    *family("store", _STORES),
    *family("program", _PROGRAMS),
]


# --- Audits with each built-in attack on suitable outputs, with several attacks, and with attacks that a user wrote.

_TRIALS = 600


@batched
def _labels(dataset: list[float], n: int, rng: Rng) -> Any:
    """Return outputs that consist of an integer and a category."""
    return np.column_stack([sum(dataset) + rng.geometric(0.5, n), rng.integers(0, 3, n)])


@batched
def _bits(dataset: list[float], n: int, rng: Rng) -> Any:
    """Return a third of the sum plus Laplace noise from the inverse distribution function.

    The last bits of these floats reveal the dataset.
    """
    u = rng.random(n) - 0.5
    with np.errstate(divide="ignore"):
        return sum(dataset) / 3 - np.sign(u) * np.log(1 - 2 * np.abs(u))


def _timed(dataset: list[float], rng: Rng) -> Timed:
    """Return an output that is independent of the dataset, with a simulated time that depends on the dataset."""
    return Timed(rng.normal(), float(rng.exponential(1.0 + sum(dataset))))


@batched
def _noisy_numbers(dataset: list[float], n: int, rng: Rng) -> Any:
    return sum(dataset) + rng.laplace(size=n)


def _rows(dataset: list[float], rng: Rng) -> Any:
    """Return a table in which one category occurs more often on d1."""
    return [{"city": str(city)} for city in rng.choice(["Bonn", "Jena", "Ulm"], 5, p=_CITIES[int(sum(dataset) > 0)])]


_CITIES = ([0.4, 0.4, 0.2], [0.3, 0.3, 0.4])

ATTACKS: Mapping[str, Any] = {
    "auto": noisy_vector,
    "events": _labels,
    "float_bits": _bits,
    "forms": noisy_vector,
    "histogram": noisy_vector,
    "known_noise": _noisy_numbers,
    "last_bit": _bits,
    "logistic": noisy_vector,
    "low_bits": _bits,
    "neighbours": noisy_vector,
    "ordered_events": _labels,
    "quadratic": noisy_vector,
    "reachable_floats": _bits,
    "time": _timed,
    "spline": noisy_vector,
    "table_queries": _rows,
    "threshold": _noisy_numbers,
    "time_and_output": _timed,
    "trees": noisy_vector,
    "whitened": noisy_vector,
}
"""Name of an attack -> mechanism."""


class _Projection:
    """A user's attack that ranks outputs by their second number."""

    name = "projection"

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        return lambda outputs: np.asarray(outputs)[:, 1]


class _Calibrated:
    """A user's attack that returns the exact log-likelihood ratio."""

    name = "known ratio"
    calibrated = True

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        return lambda outputs: np.asarray(outputs)[:, 1] - 0.5


class _Broken:
    """A user's attack whose method `fit` raises an exception."""

    name = "broken"

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        raise ArithmeticError("no fit")


class _Company:
    """An invalid attack whose score of an output depends on the other outputs, which voids the evidence."""

    name = "company"

    def fit(self, outputs0: Any, outputs1: Any, rng: Rng) -> Any:
        def score(outputs: Any) -> Any:
            column = np.asarray(outputs)[:, 1]
            return column + 0.01 * column.mean()

        return score


def _attacked(name: str, _: Path) -> AuditResult:
    return audit(ATTACKS[name], "gaussian(mu=0.6)", PAIR, attacks=name, trials=_TRIALS, seed=31, name=name)


def _own(attacks: Any, method: str, _: Path) -> AuditResult:
    claim, pair = "gaussian(mu=0.6)", Pair([0], [1], label="own")
    return audit(noisy_vector, claim, pair, attacks=attacks, trials=_TRIALS, method=method, seed=32, name="own")


FAMILIES += [
    *family("attack", {name: partial(_attacked, name) for name in ATTACKS}),
    *family(
        "attack",
        {
            "several": partial(_own, ["logistic", "spline", "trees"], "sequential"),
            "own": partial(_own, _Projection(), "sequential"),
            "own, fixed": partial(_own, _Projection(), "fixed"),
            "own, calibrated": partial(_own, [_Calibrated(), "logistic"], "sequential"),
            "own, broken, beside another": partial(_own, [_Broken(), "logistic"], "sequential"),
            "own, broken, alone": partial(_own, _Broken(), "sequential"),
            "own, depends on company": partial(_own, _Company(), "sequential"),
        },
    ),
]
