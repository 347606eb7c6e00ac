"""Suites with a baseline whose fixtures or mechanisms begin with the same random numbers every night.

Each audit stands for one test over 24 nights.  The result is that of the first night on which the true
claim is refuted, or else of the last night.  The test's share of the budget is so large that the first chain gets the
whole budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit import AuditResult, Pair
from dpaudit.testing import AuditInconclusive, PrivacyViolation, assert_private, session
from dpaudit.testing.session import Allowance, Baseline, Entry, Settings
from false_alarm_cases import Case

NIGHTS, TRIALS, BUDGET = 24, 300, 0.05

Release = Callable[[Any, np.random.Generator], float]


def _from_global_state(seed: int) -> Release:
    """Return a mechanism that draws from numpy's global state, after `np.random.seed(seed)` as in a fixture."""
    np.random.seed(seed)  # noqa: NPY002
    return lambda dataset, rng: dataset[0] + np.random.normal()  # noqa: NPY002


def _from_its_own_generator(seed: int) -> Release:
    """Return a mechanism with its own generator, which begins with the same seed in each session."""
    own = np.random.default_rng(seed)
    return lambda dataset, rng: dataset[0] + own.normal()


def _from_its_own_generator_and_a_little_from_the_audit(seed: int) -> Release:
    """Return the mechanism of `_from_its_own_generator` plus fresh noise of size 1e-9, so that no output repeats."""
    own = np.random.default_rng(seed)
    return lambda dataset, rng: dataset[0] + own.normal() + 1e-9 * rng.normal()


def _from_the_audit(seed: int) -> Release:
    return lambda dataset, rng: dataset[0] + rng.normal()


def _nights(begun: Callable[[int], Release], seed: int) -> AuditResult:
    node, baseline = f"test_it[{seed}]", Baseline(false_alarm=BUDGET)
    for night in range(1, NIGHTS + 1):
        allowance = Allowance(
            node=node,
            share=BUDGET * math.pi**2 / 6,
            settings=Settings(false_alarm=BUDGET, report=None, run=night),
            entry=baseline.tests.get(node, Entry(number=1)),
        )
        session.current = allowance
        try:
            result = assert_private(begun(seed), "gaussian(mu=1)", Pair([0], [1]), trials=TRIALS, attacks="logistic")
        except (AuditInconclusive, PrivacyViolation) as error:
            if error.result is None:
                raise
            result = error.result
        finally:
            session.current = None
        if result.violated:
            break
        baseline = baseline.after(allowance.records, founders=1)
    return result


def _case(name: str, begun: Callable[[int], Release]) -> Case:
    return Case(name=f"24 nights with a baseline, {name}", audit=lambda seed: _nights(begun, seed), audits=30)


CASES = [
    _case("numpy's global generator seeded by a fixture", _from_global_state),
    _case("a generator of the mechanism with a fixed seed", _from_its_own_generator),
    _case(
        "a generator of the mechanism with a fixed seed, and tiny fresh noise",
        _from_its_own_generator_and_a_little_from_the_audit,
    ),
    _case("draws from the given rng", _from_the_audit),
]
