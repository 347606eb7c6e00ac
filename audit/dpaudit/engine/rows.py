"""Tables of a result: the history of the evidence, a row for each pair and attack, and observed errors of scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.sequential import SequentialAudit
from dpaudit.inference.power import rule_of_three_rate
from dpaudit.learning import Learner
from dpaudit.numerics import Array
from dpaudit.pairs.difference import MAX_DATASET, brief, hidden_difference
from dpaudit.result.evidence import Evidence, pair_log_e
from dpaudit.result.values import AttackRow, Detectable, History, PairRow
from dpaudit.result.words import if_curve

_POINTS = 400  # maximum number of thresholds of the curve of scores


def history(run: SequentialAudit) -> History:
    """Return the log-wealth at every interim analysis, in nats."""
    return History(
        trials=np.array([trials for trials, _ in run.history], dtype=np.int64),
        log_e=np.array([log_e for _, log_e in run.history], dtype=np.float64),
    )


def pair_rows(run: SequentialAudit, evidence: Evidence) -> tuple[PairRow, ...]:
    """Return one row for each pair, in order; a fixed audit has bet on the outputs of its pilot only."""
    pairs, spent = run.collector.sampler.pairs, run.collector.spent
    wealth = pair_log_e(evidence, run.tested) or run.pair_log_e
    return tuple(
        PairRow(
            label=str(pair),
            relation=pair.relation,
            d0=brief(pair.d0, MAX_DATASET),
            d1=brief(pair.d1, MAX_DATASET),
            difference=hidden_difference(pair.d0, pair.d1, MAX_DATASET),
            trials=trials,
            log_e=log_e,
        )
        for pair, trials, log_e in zip(pairs, spent, wealth, strict=True)
    )


def attack_rows(learners: Sequence[Learner]) -> tuple[AttackRow, ...]:
    """Return one row for each attack: its mean weight over all pairs, and its mean log-loss over pairs that used it."""
    rows: list[AttackRow] = []
    for index, attack in enumerate(learners[0].attacks):
        weights = [learner.weights().get(index, 0.0) for learner in learners]
        losses = [loss for learner in learners if not math.isnan(loss := learner.mean_loss(index))]
        used = any(index in learner.weights() for learner in learners)
        rows.append(
            AttackRow(
                name=attack.name,
                weight=float(np.mean(weights)),
                log_loss=float(np.mean(losses)) if losses else math.nan,
                note="; ".join(dict.fromkeys(learner.absence(index) for learner in learners)) if not used else "",
            )
        )
    return tuple(rows)


def detectable(
    least: TradeoffFunction | None, place: str, attained_if: str, *, shown: int, largest_epsilon: float
) -> Detectable:
    """Describe the smallest violation that an audit could have detected, if there is one."""
    return Detectable(
        claim="" if least is None else str(least),
        assumption="" if least is None else f"{if_curve(least, place)} and {attained_if}",
        rule_of_three_rate=rule_of_three_rate(shown),
        largest_epsilon=largest_epsilon,
    )


def observed_curve(scores0: Array, scores1: Array) -> tuple[Array, Array]:
    """Return both errors of the attack "d1 if the score is above t", from alpha = 1 to 0, at a few hundred points."""
    out, into = np.sort(scores0), np.sort(scores1)
    sides = [side for side in (out, into) if len(side)]
    cuts = [side[np.linspace(0, len(side) - 1, _POINTS // 2).astype(int)] for side in sides]
    at = np.unique(np.concatenate(cuts))
    alpha = np.append(1.0, 1 - np.searchsorted(out, at, side="right") / max(len(out), 1))
    beta = np.append(0.0, np.searchsorted(into, at, side="right") / max(len(into), 1))
    alpha[-1], beta[-1] = 0.0, 1.0
    return alpha, beta
