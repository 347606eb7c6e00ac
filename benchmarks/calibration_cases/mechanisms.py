"""Mechanisms of which dpaudit once refuted true claims, or called independent runs dependent.

They keep a cache, return rare outputs, reuse output arrays, change datasets in place, or run into timeouts that depend
on the load.  Every claim is true for a single run on a fresh dataset.
"""

from __future__ import annotations

import functools
import itertools
import math
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from calibration_cases import Misbehaving
from dpaudit import AuditResult, Pair, audit, batched
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.testing import AuditInconclusive, PrivacyViolation, assert_private

Rng = np.random.Generator
Mechanism = Callable[..., Any]
PAIR = Pair([0], [1])

# --- Caches: mechanisms that make only one independent run on each dataset, however often they are called

_FILE = """
import functools
import numpy as np

kept = {}

@functools.lru_cache
def noisy(value):
    return value + np.random.default_rng().laplace()

def laplace(dataset, rng):
    return noisy(dataset[0])

def responses(dataset, rng):
    if dataset[0] not in kept:
        kept[dataset[0]] = dataset[0] ^ int(rng.random() < 1 / (1 + np.e))
    return kept[dataset[0]]

def unbiased(dataset, rng):
    return (responses(dataset, rng) - 1 / (1 + np.e)) / (1 - 2 / (1 + np.e))
"""


def _audited(mechanism: Any, seed: int, **settings: Any) -> AuditResult:
    return audit(mechanism, "pure(epsilon=1)", PAIR, trials=400, confidence=0.95, seed=seed, **settings)


def _lru_cache(seed: int) -> AuditResult:
    noise = np.random.default_rng(seed)

    @functools.lru_cache
    def noisy(value: int) -> float:
        return value + float(noise.laplace())

    return _audited(lambda dataset, rng: noisy(dataset[0]), seed)


def _responses(seed: int) -> AuditResult:
    """Audit randomised response that draws one answer for each dataset and then repeats it."""
    kept: dict[int, int] = {}

    def release(dataset: list[int], rng: np.random.Generator) -> int:
        if dataset[0] not in kept:
            kept[dataset[0]] = dataset[0] ^ int(rng.random() < 1 / (1 + np.e))
        return kept[dataset[0]]

    return _audited(release, seed)


class _Keeps:
    """A mechanism that draws its noise once for each dataset."""

    def __init__(self) -> None:
        self.kept: dict[int, float] = {}

    def __call__(self, dataset: list[int], rng: np.random.Generator) -> float:
        return self.kept.setdefault(dataset[0], dataset[0] + float(rng.laplace()))


def _object(seed: int) -> AuditResult:
    return _audited(_Keeps(), seed)


def _filled_before(seed: int) -> AuditResult:
    """Audit a mechanism whose cache was filled by an earlier audit."""
    mechanism = _Keeps()
    _audited(mechanism, seed)
    return _audited(mechanism, seed + 1)


def _fixed(seed: int) -> AuditResult:
    return _audited(_Keeps(), seed, method="fixed")


def _in_a_file(name: str) -> Any:
    def audited(seed: int) -> AuditResult:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / f"caches{seed}.py").write_text(_FILE)
            return _audited(PythonMechanism(f"caches{seed}.py:{name}", folder=Path(folder)), seed)

    return audited


# --- Independent runs that must not be called dependent


def rare(probability: float) -> Any:
    """Return a mechanism that ignores the dataset, and whose output is 1 with this probability, and otherwise 0."""

    @batched
    def release(dataset: Any, n: int, rng: Rng) -> Any:
        return (rng.random(n) < probability).astype(int)

    return release


@batched
def rare_signs(dataset: Any, n: int, rng: Rng) -> Any:
    """Return n outputs, which ignore the dataset: 0, or with probability 0.002 one of -1 and 1."""
    return np.where(rng.random(n) < 0.002, rng.choice([-1, 1], n), 0)


@batched
def geometric(dataset: Any, n: int, rng: Rng) -> Any:
    return rng.geometric(0.5, n)


@batched
def zipf(dataset: Any, n: int, rng: Rng) -> Any:
    return np.minimum(rng.zipf(1.5, n), 10**9)


def _independent(mechanism: Any, attacks: Any, trials: int, method: Any, seed: int) -> AuditResult:
    terms: Any = {"attacks": attacks, "trials": trials, "method": method, "confidence": 0.95}
    return audit(mechanism, "pure(epsilon=1)", PAIR, seed=seed, **terms)


# --- Rare outputs that change the type of all outputs of a batch


def coerced(rare: Any, rate: float) -> Any:
    """Return a mechanism whose runs are exactly pure(epsilon=1), and whose batches numpy converts to one type.

    The audit must not refute the claim, and it may end without a verdict, because outputs depend on their batch.

    Args:
        rare: The rare output.
        rate: Probability of the rare output under d0; under d1 the probability is e times as large.
    """

    def run(dataset: list[int], rng: Rng) -> Any:
        if rng.random() < rate * math.exp(dataset[0]):
            return rare
        # A double cannot hold the last bits of such whole numbers.
        return 2**60 + int(rng.integers(-1000, 1000)) if isinstance(rare, float) else float(rng.normal())

    @batched
    def release(dataset: list[int], n: int, rng: Rng) -> Any:
        return np.array([run(dataset, rng) for _ in range(n)])

    return release


def _asserted(claim: str, seed: int) -> AuditResult:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return assert_private(
                rare(1e-3), claim, PAIR, attacks="logistic", trials=4000, seed=seed, false_alarm=0.05, report=folder
            )
        except (AuditInconclusive, PrivacyViolation) as error:
            if error.result is None:
                raise
            return error.result


def _coerced(rare: Any, rate: float, method: str, seed: int) -> AuditResult:
    terms: Any = {"attacks": ["logistic", "histogram"], "trials": 2000, "confidence": 0.95, "method": method}
    return audit(coerced(rare, rate), "pure(epsilon=1)", PAIR, seed=seed, **terms)


# --- Shared state, and the clock


def array_per_dataset() -> Mechanism:
    """Return a mechanism that is exactly gaussian(mu=1), and returns the same array in all runs on one dataset."""
    buffers: dict[int, Any] = {}

    def release(dataset: list[int], rng: Rng) -> Any:
        buffer = buffers.setdefault(dataset[0], np.empty(2))
        buffer[:] = rng.normal(size=2)
        buffer[0] += dataset[0]
        return buffer

    return release


def one_array() -> Mechanism:
    """Return a mechanism that is exactly gaussian(mu=1), and returns the same array in all runs."""
    buffer = np.empty(2)

    def release(dataset: list[int], rng: Rng) -> Any:
        buffer[:] = rng.normal(size=2)
        buffer[0] += dataset[0]
        return buffer

    return release


def array_per_batch() -> Any:
    """Return a batched mechanism that is exactly gaussian(mu=1), with one array for each batch size."""
    buffers: dict[int, Any] = {}

    @batched
    def release(dataset: list[int], n: int, rng: Rng) -> Any:
        buffer = buffers.setdefault(n, np.empty((n, 2)))
        buffer[:] = rng.normal(size=(n, 2))
        buffer[:, 0] += dataset[0]
        return buffer

    return release


class Release:
    """A number plus Laplace noise of scale 1, written into one array that belongs to this object."""

    def __init__(self, value: int) -> None:
        self.value, self.output = value, np.empty(1)

    def run(self, rng: Rng) -> Any:
        self.output[0] = self.value + rng.laplace()
        return self.output


def cached_object() -> Mechanism:
    """Return a mechanism that is exactly laplace(epsilon=1), and keeps one `Release` for each dataset."""

    @lru_cache
    def release_of(value: int) -> Release:
        return Release(value)

    return lambda dataset, rng: release_of(dataset[0]).run(rng)


def accumulates(dataset: Any, rng: Rng) -> float:
    """Add noise to the dataset in place, and return its sum; on a fresh dataset, mu is 0.58."""
    dataset += rng.normal(size=dataset.shape)
    return float(dataset.sum())


def shuffles(dataset: Any, rng: Rng) -> float:
    """Shuffle the dataset in place, and return its first number plus noise; on a fresh dataset, mu is below 1."""
    rng.shuffle(dataset)
    return float(dataset[0]) + float(rng.normal())


def drifting() -> Mechanism:
    """Return a mechanism that ignores its data, and whose running time follows a simulated load: a sine of time."""
    runs = itertools.count()

    def release(dataset: list[int], rng: Rng) -> float:
        if next(runs) > 20:  # an audit has no result if its first run fails
            load = 1 + 0.8 * math.sin(2 * math.pi * time.perf_counter() / 0.1)
            time.sleep(rng.exponential(2e-4) * load)
        return float(rng.random() < 0.5)

    return release


def drifting_and_telling() -> Mechanism:
    """Return such a mechanism whose large outputs take longer, so that the load decides which runs are retried."""
    runs = itertools.count()

    def release(dataset: list[int], rng: Rng) -> float:
        load = 1 + 0.8 * math.sin(2 * math.pi * time.perf_counter() / 0.1)
        output = float(rng.exponential())
        if next(runs) > 20:
            time.sleep(2e-4 * output * load)
        return output

    return release


def case(name: str, mechanism: Callable[[], Any], claim: str, pair: Callable[[], Pair], **options: Any) -> Misbehaving:
    """Return a case of audits at 95 % confidence; `mechanism` and `pair` make new objects for each audit."""
    about = {key: options.pop(key) for key in ("mu", "audits") if key in options}

    def audited(seed: int) -> AuditResult:
        return audit(mechanism(), claim, pair(), **{"trials": 1000, "seed": seed, "confidence": 0.95} | options)

    return Misbehaving(name, audited, **about)


def numbers() -> Pair:
    return Pair([0], [1])


def arrays() -> Pair:
    return Pair(np.zeros(3), np.array([0.0, 0.0, 1.0]))


_TWO = ["logistic", "threshold"]
_TERMS = {"attacks": "plug_in_ratio", "timeout": 1e-3, "failures": "outcome"}

CASES = [
    Misbehaving("lru_cache per dataset", _lru_cache),
    Misbehaving("randomised response in a dict", _responses),
    Misbehaving("object that keeps its outputs", _object),
    Misbehaving("object that keeps its outputs, second audit", _filled_before),
    Misbehaving("object that keeps its outputs, fixed method", _fixed),
    Misbehaving("lru_cache in a file, run in fresh processes", _in_a_file("laplace"), audits=10),
    Misbehaving("randomised response kept in a file, fresh processes", _in_a_file("responses"), audits=20),
    Misbehaving("unbiased randomised response kept in a file", _in_a_file("unbiased"), audits=20),
    *(
        Misbehaving(
            f"independent runs: {name}, {attacks}, {method}",
            partial(_independent, mechanism, attacks, trials, method),
            audits=audits,
            conclusive=True,
        )
        for name, mechanism, attacks, trials, method, audits in (
            ("an outcome of probability 0.001", rare(1e-3), "logistic", 4000, "sequential", 200),
            ("an outcome of probability 0.001", rare(1e-3), "auto", 4000, "sequential", 30),
            ("an outcome of probability 0.001", rare(1e-3), "events", 4000, "sequential", 100),
            ("an outcome of probability 0.001", rare(1e-3), "logistic", 4000, "fixed", 100),
            ("an outcome of probability 0.0005", rare(5e-4), "events", 8000, "sequential", 60),
            ("rare -1 and 1", rare_signs, "logistic", 4000, "sequential", 100),
            ("geometric noise", geometric, "logistic", 4000, "sequential", 30),
            ("Zipf noise", zipf, "logistic", 4000, "sequential", 30),
        )
    ),
    *(
        Misbehaving(f"an assertion about rare outputs, {claim}", partial(_asserted, claim), mu=0.0, conclusive=True)
        for claim in ("pure(epsilon=1)", "gaussian(mu=1)")
    ),
    *(
        Misbehaving(
            f"a rare {name} that changes the type of a batch, {method}",
            partial(_coerced, rare, rate, method),
            audits=30,
        )
        for name, rare, rate in (("text", "error", 0.01), ("NaN", math.nan, 0.002), ("None", None, 0.01))
        for method in ("sequential", "fixed")
    ),
    case("an array that is used again, per dataset", array_per_dataset, "gaussian(mu=1)", numbers, attacks=_TWO, mu=1),
    case(
        "an array that is used again, per dataset, fixed",
        array_per_dataset,
        "gaussian(mu=1)",
        numbers,
        attacks="logistic",
        method="fixed",
        mu=1,
    ),
    case("an array that is used again, 25 runs", array_per_dataset, "gaussian(mu=1)", numbers, attacks=_TWO, trials=25),
    case("one array that is used again", one_array, "gaussian(mu=1)", numbers, attacks=_TWO, mu=1),
    case("an array that is used again, in batches", array_per_batch, "gaussian(mu=1)", numbers, attacks=_TWO, mu=1),
    case("one cached object per dataset", cached_object, "laplace(epsilon=1)", numbers),
    case("noise added to the dataset", lambda: accumulates, "gaussian(mu=1)", arrays, attacks="logistic", mu=1),
    case("noise added to the dataset, 28 runs", lambda: accumulates, "gaussian(mu=1)", arrays, trials=28, mu=1),
    case("a dataset that is shuffled", lambda: shuffles, "gaussian(mu=1)", arrays, attacks="logistic", mu=1),
    case("timeouts under a load that drifts", drifting, "pure(epsilon=0.1)", numbers, audits=20, **_TERMS),
    case(
        "timeouts under a load that drifts, retried",
        drifting_and_telling,
        "pure(epsilon=0.1)",
        numbers,
        audits=20,
        **_TERMS | {"failures": "retry", "timeout": 5e-4, "attacks": "logistic"},
    ),
    case(
        "timeouts under a load that drifts, times observed",
        drifting,
        "pure(epsilon=0.1)",
        numbers,
        audits=20,
        **_TERMS | {"observe_time": True},
    ),
]
