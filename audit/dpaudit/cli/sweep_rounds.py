"""Makes one round of a cell of a sweep, in this process or in a worker process."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from dpaudit.claims import TradeoffFunction
from dpaudit.cli.audited import reason_of, with_provenance
from dpaudit.cli.event_log import event_log
from dpaudit.cli.prepare_run import CommandSettings, NotReady, load
from dpaudit.cli.progress import progress_bar
from dpaudit.config import PlannedAudit
from dpaudit.engine.audit import Progress, audit
from dpaudit.engine.next_cell import Round
from dpaudit.inference.sequential.strategy import log_threshold
from dpaudit.mechanisms import IsolatedMechanism
from dpaudit.mechanisms.exits import exits_refused
from dpaudit.mechanisms.raised import message_of
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.sampling.store_file import StoreRefused
from dpaudit.sampling.streams import stream
from dpaudit.values import Foreign

_clock = time.monotonic
_MAX_ALIVE = 4  # number of workers that wait for a further round of their cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A round of a cell."""

    planned: PlannedAudit
    confidence: float
    chosen: Round
    command: CommandSettings
    promise: Promise
    place: str
    shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a round has shown."""

    result: AuditResult | None = None
    reason: str = ""
    not_ready: bool = False
    other_audit: bool = False
    broken: bool = False
    interrupted: bool = False
    died: bool = False
    seconds: float = 0.0


_alive: list[IsolatedMechanism] = []  # mechanisms whose workers this process keeps for further rounds


def close_workers() -> None:
    """End the workers that this process keeps for further rounds."""
    while _alive:
        _alive.pop().close()


@exits_refused()
def make_round(task: Task) -> Outcome:
    """Make a round, and return what it has shown.  The function never raises."""
    began = _clock()
    try:
        found = _made(task)
    except KeyboardInterrupt:
        found = Outcome(interrupted=True)
    return replace(found, seconds=max(_clock() - began, 1e-9))


def _made(task: Task) -> Outcome:
    try:
        result = audited(task)
    except KeyboardInterrupt:
        raise
    except NotReady as error:
        return Outcome(reason=error.reason, not_ready=True)
    except StoreRefused as error:
        return Outcome(reason=message_of(error), not_ready=not error.other_audit, other_audit=error.other_audit)
    except BaseException as error:
        reason, broken = reason_of(error, task.command)
        return Outcome(reason=reason, broken=broken)
    return Outcome(result=result, interrupted=result.stopped_by == "interruption")


def audited(task: Task) -> AuditResult:
    """Resume the audit of a cell up to a number of runs, or until the time of the round is over."""
    planned = seeded(task.planned, task.command.seed)
    mechanism, claim = load(planned, task.command)
    with suppress(NotReady), event_log(task.command.log) as log:
        log("started", audit=planned.settings.name, claim=str(claim))
    try:
        with progress_bar(task.place, shown=task.shown, log_threshold=log_threshold(task.confidence)) as bar:
            ends = _clock() + task.chosen.seconds

            def report(now: Progress) -> None:
                if bar is not None:
                    bar(now)
                # after a failed run, a second pass over the store would repeat this run
                if _clock() > ends and now.trials < now.allowed and not now.failed:
                    raise _TimeIsOver(now.trials)

            try:
                result = _resumed(task, planned, mechanism, claim, task.chosen.trials, report)
            except _TimeIsOver as over:  # read the stored runs again, for the result at this number of runs
                result = _resumed(task, planned, mechanism, claim, over.trials, bar)
    finally:
        _keep_alive(mechanism)
    return with_provenance(result, planned, task.promise)


def _keep_alive(mechanism: Foreign) -> None:
    """Keep the workers of the last cells, because starting a worker may take longer than its runs."""
    if isinstance(mechanism, IsolatedMechanism):
        _alive[:] = [one for one in _alive if one != mechanism] + [mechanism]
        while len(_alive) > _MAX_ALIVE:
            _alive.pop(0).close()


def _resumed(
    task: Task,
    planned: PlannedAudit,
    mechanism: Foreign,
    claim: TradeoffFunction,
    trials: int,
    report: Callable[[Progress], None] | None,
) -> AuditResult:
    command = replace(task.command, trials=trials, seed=None, keep_outputs=True)
    settings = replace(command.over(planned.settings), confidence=task.confidence, progress=report)
    return audit(mechanism, claim, planned.pairs, **settings.keywords)


class _TimeIsOver(Exception):
    """Raised between two blocks if the time of a round is over."""

    def __init__(self, trials: int) -> None:
        super().__init__(trials)
        self.trials = trials


def seeded(planned: PlannedAudit, seed: int | None) -> PlannedAudit:
    """Return an audit with a seed that depends on the seed of the command and on the name of the cell."""
    if seed is None:
        return planned
    own = int(stream(seed, "sweep", planned.config.name).integers(10**9))
    return replace(planned, config=planned.config.model_copy(update={"seed": own}))
