"""Signs that an audit of training examines nothing: no effect of the canary, diverged models, shared seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpaudit.numerics.arrays import AnyArray, Array
from dpaudit.result.model import AuditResult
from dpaudit.text.reasons import Reason

LOWEST = -np.inf
"""The score of a diverged model.  It uses neither the dataset nor a coin, so guarantees hold."""


def with_warnings(result: AuditResult, found: Iterable[str]) -> AuditResult:
    """Return the result with further warnings in front, since the last one explains an inconclusive verdict."""
    return dataclasses.replace(result, warnings=(*map(Reason.of, found), *result.warnings))


def doubts_of(train: object, *arguments: object) -> tuple[str, ...]:
    """Return what a training function itself says against the audit, by its optional method `doubts`."""
    ask: Any = getattr(train, "doubts", None)
    return tuple(ask(*arguments)) if callable(ask) else ()


def same_outputs(outputs0: AnyArray, outputs1: AnyArray) -> tuple[str, ...]:
    """Return a warning if models on both datasets, trained with equal seeds, have equal outputs."""
    if not np.array_equal(outputs0, outputs1, equal_nan=outputs0.dtype.kind == "f"):
        return ()
    return (
        f"with the same seed, {len(outputs0)} models have the same output on d0 as on d1: the training may ignore "
        "its dataset, or the canary has no gradient, or is in no batch; if it is rarely in one, train for more steps",
    )


def shared_seeds(outputs0: AnyArray, outputs1: AnyArray) -> tuple[str, ...]:
    """Return a warning if two models on one dataset have the same output."""
    for side, outputs in enumerate((outputs0, outputs1)):
        _, first, inverse = np.unique(outputs, axis=0, return_index=True, return_inverse=True)
        earlier = first[np.ravel(inverse)]
        again = np.flatnonzero(earlier != np.arange(len(outputs)))
        if len(again):
            return (
                f"runs {earlier[again[0]]} and {again[0]} on d{side} have one output, and {len(again):,} such runs "
                "were found: if outputs are continuous, these runs share a seed; runs must be independent, so draw all "
                "randomness from the rng that each run is given",
            )
    return ()


def without_nan(scores: Array, side: int) -> tuple[Array, tuple[str, ...]]:
    """Return the scores with the lowest score for diverged models, and a warning if there are any."""
    diverged = np.isnan(scores)
    if not diverged.any():
        return scores, ()
    return np.where(diverged, LOWEST, scores), (
        f"{int(diverged.sum()):,} of {len(scores):,} models on d{side} diverged (their score is nan) and got "
        "the lowest score; a smaller learning rate avoids this",
    )
