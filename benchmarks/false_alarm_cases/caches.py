"""Mechanisms with a cache, which make only one independent run on each dataset, however often they are called."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import AuditResult, Pair, audit
from dpaudit.running.mechanisms import PythonMechanism
from false_alarm_cases import Case

_PAIR = Pair([0], [1])
_CLAIM = "pure(epsilon=1)"
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
    return audit(mechanism, _CLAIM, _PAIR, trials=400, confidence=0.95, seed=seed, **settings)


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


CASES = [
    Case(name="lru_cache per dataset", audit=_lru_cache),
    Case(name="randomised response in a dict", audit=_responses),
    Case(name="object that keeps its outputs", audit=_object),
    Case(name="object that keeps its outputs, second audit", audit=_filled_before),
    Case(name="object that keeps its outputs, fixed method", audit=_fixed),
    Case(name="lru_cache in a file, run in fresh processes", audit=_in_a_file("laplace"), audits=10),
    Case(name="randomised response kept in a file, fresh processes", audit=_in_a_file("responses"), audits=20),
    Case(name="unbiased randomised response kept in a file", audit=_in_a_file("unbiased"), audits=20),
]
