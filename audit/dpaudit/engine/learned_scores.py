"""Scores that are learned from one part of the outputs and computed for the held-out part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.engine.rows import attack_rows
from dpaudit.learning import FIRST_FIT, Learner
from dpaudit.learning.attack import Attack, resolve_attacks
from dpaudit.numerics import Array
from dpaudit.outputs import OutputError, Outputs
from dpaudit.result.values import AttackRow
from dpaudit.running.streams import stream
from dpaudit.text import Reason, WarningCode

SHARE = 1 / 3  # share of the outputs from which the score is learned
_GROWTH = 1.3  # factor by which the number of outputs that were learned from grows with each block


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Scores of the held-out outputs, and the attacks that computed them."""

    scores0: Array
    scores1: Array
    rows: tuple[AttackRow, ...]
    dependent: tuple[str, ...]  # reasons why the scores are invalid; empty if none was found


def learned_scores(
    outputs0: list[Any], outputs1: list[Any], attacks: str | Attack | Sequence[str | Attack], seed: int, *, coins: bool
) -> Learned:
    """Learn a score from a third of the outputs, and score the other two thirds, the held-out outputs.

    The third is sampled at random, so given its outputs, the law of the held-out outputs is unchanged.  The score of a
    held-out output is a function of that output alone.  So the theorems about given scores apply.
    """
    parts0, parts1 = split_outputs(len(outputs0), len(outputs1), stream(seed, "split"), coins=coins)
    few = min(len(parts0[0]), len(parts1[0]))
    if few < 2 * FIRST_FIT or min(len(parts0[1]), len(parts1[1])) < 1:
        raise ValueError(
            f"{len(outputs0)} and {len(outputs1)} outputs are too few to learn a score from a third of them: "
            f"this third must contain {2 * FIRST_FIT} of each list; give more outputs, or give scores that are numbers"
        )
    learner = Learner(resolve_attacks(attacks), seed, 0)
    past0, past1 = ([outputs[i] for i in part[0][:few]] for outputs, part in ((outputs0, parts0), (outputs1, parts1)))
    try:
        _learn(learner, past0, past1)
        rest = [
            Outputs.read([outputs[i] for i in part[1]]) for outputs, part in ((outputs0, parts0), (outputs1, parts1))
        ]
    except OutputError as error:
        raise ValueError(f"an output cannot be read: {error}") from None
    if not learner.ready:
        raise ValueError("no attack could learn a score from the outputs; give scores that are numbers")
    scores0, scores1 = learner.score_counted(*rest)
    void = (Reason(learner.void, WarningCode.VOID),) if learner.void else ()
    return Learned(scores0, scores1, attack_rows([learner]), void)


def split_outputs(
    n0: int, n1: int, rng: np.random.Generator, *, coins: bool
) -> tuple[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]], ...]:
    """Return the indices of the outputs to learn from and of the outputs to count, for each dataset."""
    if coins:
        learned = rng.permutation(n0 + n1)[: round(SHARE * (n0 + n1))]
        chosen = np.zeros(n0 + n1, dtype=np.bool_)
        chosen[learned] = True
        sides = chosen[:n0], chosen[n0:]
        return tuple((rng.permutation(np.flatnonzero(side)), np.flatnonzero(~side)) for side in sides)
    found = []
    for n in (n0, n1):
        order = rng.permutation(n)
        found.append((order[: round(SHARE * n)], order[round(SHARE * n) :]))
    return tuple(found)


def _learn(learner: Learner, outputs0: list[Any], outputs1: list[Any]) -> None:
    """Pass the outputs to the learner block by block, as an audit does."""
    start, n = 0, len(outputs0)
    while start < n:
        stop = min(n, max(start + FIRST_FIT, round(_GROWTH * start)))
        block = learner.read(outputs0[start:stop], outputs1[start:stop])
        if learner.ready:
            learner.score_fresh(*block)
        learner.learn(*block)
        start = stop
