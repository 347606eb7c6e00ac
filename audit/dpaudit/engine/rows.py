"""Tables of a result: the history of the evidence, one row for each pair and attack, and what the audit cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaudit.engine.collector import Collector
from dpaudit.engine.sequential import SequentialAudit
from dpaudit.learning import Learner
from dpaudit.pairs.pair import brief
from dpaudit.result.values import AttackRow, History, PairRow


def history(run: SequentialAudit) -> History:
    return History(
        trials=np.array([trials for trials, _ in run.history], dtype=np.int64),
        log_e=np.array([log_e for _, log_e in run.history], dtype=np.float64),
    )


def pair_rows(run: SequentialAudit) -> tuple[PairRow, ...]:
    pairs, spent = run.collector.sampler.pairs, run.collector.spent
    return tuple(
        PairRow(
            label=str(pair),
            relation=pair.relation,
            d0=brief(pair.d0, 200),
            d1=brief(pair.d1, 200),
            trials=trials,
            log_e=log_e,
        )
        for pair, trials, log_e in zip(pairs, spent, run.pair_log_e, strict=True)
    )


def costs(collector: Collector) -> dict[str, Any]:
    """What depends on the machine, and the fingerprint of what came out."""
    seconds: dict[str, float] = {}
    for learner in collector.learners:
        for index, spent in learner.seconds.items():
            name = learner.attacks[index].name
            seconds[name] = round(seconds.get(name, 0.0) + spent, 3)
    found: dict[str, Any] = {
        "outputs": str(collector.digest),
        "first outputs": collector.beginning.fingerprints(),
        "seconds of attacks": seconds,
    }
    return found | ({"runs after the evidence": collector.observed} if collector.observed else {})


def attack_rows(learners: Sequence[Learner]) -> tuple[AttackRow, ...]:
    """One row for each attack: means over the pairs on which it was used."""
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
