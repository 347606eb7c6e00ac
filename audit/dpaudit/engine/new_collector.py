"""Makes the collector of an audit from its arguments."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import Collector
from dpaudit.inference.sequential.planned import Planned
from dpaudit.inference.sequential.strategy import strategy
from dpaudit.learning import Experts, Learner
from dpaudit.learning.attack import Attack, resolve_attacks
from dpaudit.mechanisms import CommandMechanism, IsolatedMechanism
from dpaudit.pairs.pair import Pair
from dpaudit.pairs.target_rows import target_rows
from dpaudit.sampling.fresh_process import NotPossible, sent
from dpaudit.sampling.runs import ExecutionSettings
from dpaudit.sampling.sampler import Sampler


def new_collector(
    mechanism: object,
    pairs: Sequence[Pair],
    attacks: str | Attack | Sequence[str | Attack],
    trials: int,
    seed: int,
    jobs: int,
    execution: ExecutionSettings,
    tested: TradeoffFunction,
    planned: Planned | None = None,
) -> Collector:
    """Return a new collector for the arguments of `audit`.  The argument `tested` is the symmetrized claim."""
    chosen = resolve_attacks(attacks, released=isinstance(mechanism, (CommandMechanism, IsolatedMechanism)))
    worth = strategy(tested, planned).of_one_pair(tested)
    return Collector(
        sampler=Sampler(mechanism, pairs, seed, jobs, execution),
        learners=[Learner(chosen, seed, i, Experts(worth), targets=t) for i, t in enumerate(map(target_rows, pairs))],
        allowed=trials,
        sent=_sent(mechanism),
    )


def _sent(mechanism: object) -> object:
    try:
        return sent(mechanism)
    except NotPossible as error:
        return error
