"""Audits the cells of a sweep in rounds, in the order that `engine.next_cell` chooses."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from dpaudit.claims import TradeoffFunction
from dpaudit.cli.audited import reason_of, with_provenance
from dpaudit.cli.event_log import event_log, log_result
from dpaudit.cli.prepare_run import CommandSettings, NotReady, load, workers
from dpaudit.cli.progress import ended_line, numbered, progress_bar
from dpaudit.cli.sweep_file import closes, facts_of, failed, recorded, write_sweep
from dpaudit.cli.sweep_row import Row
from dpaudit.cli.terminal import say
from dpaudit.cli.write_result import write_result
from dpaudit.config import PlannedAudit
from dpaudit.config.sweeps import Cell
from dpaudit.engine.audit import Progress, audit
from dpaudit.engine.next_cell import Round, next_round
from dpaudit.inference.sequential.strategy import log_threshold
from dpaudit.mechanisms import IsolatedMechanism, MechanismError
from dpaudit.mechanisms.environments import environment
from dpaudit.mechanisms.exits import exits_refused
from dpaudit.mechanisms.protocol import message_of
from dpaudit.mechanisms.requirements import wrong_version
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.result.sweeps import Sweep
from dpaudit.sampling.streams import stream
from dpaudit.text.printable import joined, one_line
from dpaudit.values import Foreign

_clock = time.monotonic
_NO_TIME = "no time was left"
_MAX_ALIVE = 4  # number of workers that wait for a further round of their cell
_MAX_SAID = 300  # maximum number of characters of a reason on stderr; sweep.json holds all of it


@dataclass(slots=True, kw_only=True)
class Sweeping:
    """A sweep that runs.

    Args:
        sweep: The facts about the sweep that do not change; its cells are those of an earlier run.
        rows: The cells.
        command: The settings of the command.
        promise: The joint guarantee.
    """

    sweep: Sweep
    rows: list[Row]
    command: CommandSettings
    promise: Promise
    broken: bool = False  # whether an audit ended in an internal error of dpaudit
    interrupted: bool = False
    _alive: list[IsolatedMechanism] = field(default_factory=list)  # mechanisms whose workers run
    _log: Callable[..., None] = field(default=lambda *_, **__: None)

    @property
    def results(self) -> dict[str, AuditResult]:
        """The results so far, by name."""
        return {row.cell.name: row.result for row in self.rows if row.result is not None}

    @property
    def outcome(self) -> Sweep:
        """The outcome so far."""
        spent = sum(row.seconds for row in self.rows)
        cells = tuple(map(recorded, self.rows))
        return replace(self.sweep, cells=cells, spent=spent, interrupted=self.interrupted)

    @exits_refused()
    def go_on(self) -> None:
        """Make rounds until the time is over, no cell can go on, or the user interrupts."""
        try:
            with event_log(self.command.log) as self._log, workers(self.command):
                self._build_environments()
                while (chosen := self._next()) is not None:
                    self._make(self.rows[chosen.cell], chosen)
                    self.save()
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            while self._alive:
                self._alive.pop().close()
        for row in self.rows:
            if row.result is None and not row.reason:
                row.reason = "the sweep was interrupted" if self.interrupted else _NO_TIME
        self.save()

    def save(self) -> None:
        """Write DIR/sweep.json."""
        write_sweep(self.outcome, self.command)

    def _next(self) -> Round | None:
        left = self.sweep.seconds - sum(row.seconds for row in self.rows)
        return next_round([row.spent for row in self.rows], left)

    def _build_environments(self) -> None:
        """Build all environments before the time of the sweep begins; close the cells of those that fail."""
        failed: dict[object, str] = {}
        for row in self.rows:
            mechanism = row.cell.planned.config.mechanism
            if not mechanism.isolated or row.closed:
                continue
            wanted = (tuple(mechanism.requires or ()), mechanism.python_version)
            if wanted not in failed:
                failed[wanted] = self._environment(*wanted, row.cell.version)
            if failed[wanted]:
                row.reason, row.closed, row.retried = failed[wanted], True, True

    def _environment(self, requires: Sequence[str], python_version: str | None, version: str) -> str:
        """Build an environment; return the reason if that fails or gives another version, and otherwise ""."""
        try:
            reason = wrong_version(environment(requires, python_version).packages, self.sweep.package, version)
        except MechanismError as error:
            reason = message_of(error)
        if reason:
            say(f"the environment with {', '.join(requires)} cannot be used, so its cells are not audited: {reason}")
        return reason

    def _make(self, row: Row, chosen: Round) -> None:
        """Make one round of a cell, and keep its result or the reason why there is none."""
        began, number = _clock(), self.rows.index(row) + 1
        row.rounds += 1
        try:
            result = self._audited(row, chosen, numbered(number, len(self.rows), row.cell.name))
        except KeyboardInterrupt:
            raise
        except NotReady as error:
            row.reason, row.closed, row.retried = error.reason, True, row.result is None
        except BaseException as error:
            row.reason, broken = reason_of(error, self.command)
            row.closed, self.broken = True, self.broken or broken
        else:
            self._keep(row, result, number)
        finally:
            row.last_seconds = max(_clock() - began, 1e-9)
            row.seconds += row.last_seconds
        if row.reason and not self.command.quiet:
            say(f"{row.cell.name} could not be audited: {one_line(row.reason)[:_MAX_SAID]}")

    def _keep(self, row: Row, result: AuditResult, number: int) -> None:
        interrupted = result.stopped_by == "interruption"
        if interrupted and not failed(result):  # the result of the round before stays, and the store has all blocks
            raise KeyboardInterrupt
        row.result, row.closed, row.facts = result, closes(result), facts_of(result)
        if not self.command.quiet:
            say(ended_line(number, len(self.rows), result))
        if result.violated:
            for warning in result.warnings:
                say(f"{row.cell.name}: {joined(warning)}")
        write_result(result, self.command)
        log_result(self._log, result)
        if interrupted:
            raise KeyboardInterrupt

    def _audited(self, row: Row, chosen: Round, place: str) -> AuditResult:
        """Resume the audit of a cell up to a number of runs, or until the time of the round is over."""
        planned = seeded(row.cell.planned, self.command.seed)
        mechanism, claim = load(planned, self.command)
        self._log("started", audit=row.cell.name, claim=str(claim))
        try:
            with progress_bar(place, shown=not self.command.quiet, log_threshold=log_threshold(row.confidence)) as bar:
                ends = _clock() + chosen.seconds

                def report(now: Progress) -> None:
                    if bar is not None:
                        bar(now)
                    # after a failed run, a second pass over the store would repeat this run
                    if _clock() > ends and now.trials < now.allowed and not now.failed:
                        raise _TimeIsOver(now.trials)

                try:
                    result = self._resumed(row, planned, mechanism, claim, chosen.trials, report)
                except _TimeIsOver as over:  # read the stored runs again, for the result at this number of runs
                    result = self._resumed(row, planned, mechanism, claim, over.trials, bar)
        finally:
            self._keep_alive(mechanism)
        return with_provenance(result, planned, self.promise)

    def _keep_alive(self, mechanism: Foreign) -> None:
        """Keep the workers of the last cells, because starting a worker may take longer than its runs."""
        if isinstance(mechanism, IsolatedMechanism):
            self._alive = [one for one in self._alive if one != mechanism] + [mechanism]
            while len(self._alive) > _MAX_ALIVE:
                self._alive.pop(0).close()

    def _resumed(
        self,
        row: Row,
        planned: PlannedAudit,
        mechanism: Foreign,
        claim: TradeoffFunction,
        trials: int,
        report: Callable[[Progress], None] | None,
    ) -> AuditResult:
        command = replace(self.command, trials=trials, seed=None, keep_outputs=True)
        settings = replace(command.over(planned.settings), confidence=row.confidence, progress=report)
        return audit(mechanism, claim, planned.pairs, **settings.keywords)


class _TimeIsOver(Exception):
    """Raised between two blocks if the time of a round is over."""

    def __init__(self, trials: int) -> None:
        super().__init__(trials)
        self.trials = trials


def seeded(planned: PlannedAudit, seed: int | None) -> PlannedAudit:
    """Return an audit with a seed that depends on the seed of the command and on the name of the cell.

    Args:
        planned: The audit.
        seed: The seed of the command; None draws the seed of each cell at its first round.
    """
    if seed is None:
        return planned
    own = int(stream(seed, "sweep", planned.config.name).integers(10**9))
    return replace(planned, config=planned.config.model_copy(update={"seed": own}))


def answer_seconds(seconds: float, cells: int) -> float:
    """Return the maximum time of one answer of a mechanism: two fair shares, but 5 to 60 seconds.

    Args:
        seconds: The seconds of the sweep.
        cells: The number of cells.
    """
    return min(max(2 * seconds / cells, 5.0), 60.0)


def with_timeout(cells: Sequence[Cell], seconds: float) -> list[Cell]:
    """Return the cells with a time limit for each answer of their mechanisms."""
    return [replace(cell, planned=replace(cell.planned, config=_timed(cell.planned, seconds))) for cell in cells]


def _timed(planned: PlannedAudit, seconds: float) -> Foreign:
    return planned.config.model_copy(update={"timeout": seconds})
