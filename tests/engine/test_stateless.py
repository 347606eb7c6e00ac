"""Code that cannot keep anything from run to run is distinguished from code that may."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from dpaudit.catalogue import BUILTIN
from dpaudit.mechanisms.stateless import forgets, portable

from ..unseeded import unseeded_generator
from .doubts import Frozen, Keeps, a_fixed_seed, no_noise


@functools.lru_cache
def _noisy(value: int) -> float:
    return value + float(unseeded_generator().laplace())


def cached_by_lru(dataset: list[int], rng: np.random.Generator) -> float:
    return _noisy(dataset[0])


def _reads_a_table(dataset: list[int], rng: np.random.Generator) -> float:
    return _TABLE[dataset[0]] * 0.5


def _writes_a_table(dataset: list[int], rng: np.random.Generator) -> float:
    if dataset[0] not in _TABLE:
        _TABLE[dataset[0]] = 1
    return _TABLE[dataset[0]] * 0.5


def _writes_a_global(dataset: list[int], rng: np.random.Generator) -> float:
    global _KEPT
    _KEPT = _KEPT or float(rng.normal())
    return _KEPT


def _keeps_on_itself(dataset: list[int], rng: np.random.Generator) -> float:
    _keeps_on_itself.kept = 1.0  # type: ignore[attr-defined]
    return 1.0


def _keeps_in_a_default(dataset: list[int], rng: np.random.Generator, kept: dict[int, float] = {}) -> float:  # noqa: B006
    return kept.setdefault(dataset[0], float(rng.normal()))


_TABLE = {0: 1, 1: 2}
_KEPT = 0.0


def _nonlocal() -> Any:
    kept = 0.0

    def release(dataset: list[int], rng: np.random.Generator) -> float:
        nonlocal kept
        kept = kept or float(rng.normal())
        return kept

    return release


@pytest.mark.parametrize(
    ("mechanism", "nothing"),
    [
        (a_fixed_seed, True),
        (no_noise, True),
        (Frozen(1.0), True),
        (BUILTIN["fixed_seed"](), True),
        (_reads_a_table, True),
        (_writes_a_table, False),
        (_writes_a_global, False),
        (_keeps_on_itself, False),
        (_keeps_in_a_default, False),
        (_nonlocal(), False),
        (cached_by_lru, False),
        (Keeps(), False),
    ],
)
def test_code_that_may_keep_outputs_is_told_from_code_that_cannot(mechanism: Any, nothing: bool) -> None:
    assert forgets(mechanism, [0], [1]) is nothing
    if mechanism is not cached_by_lru:  # a new process imports the module again, with an empty cache
        assert portable(mechanism) is nothing
