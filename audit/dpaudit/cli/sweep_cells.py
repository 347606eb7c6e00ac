"""Plans a sweep, and audits its cells in rounds, in the order that `engine.next_cell` chooses."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from dpaudit.cli.prepare_run import CommandSettings, share_guarantee, workers
from dpaudit.cli.progress import ended_line, event_log, log_result, numbered, status_line
from dpaudit.cli.sweep_file import Row, closes, earlier, facts_of, failed, resume, write_sweep
from dpaudit.cli.sweep_rounds import Outcome, Task, Workers, close_workers, make_round
from dpaudit.cli.terminal import say
from dpaudit.cli.write_result import write_result
from dpaudit.config import ConfigError
from dpaudit.config.sweep_models import check_version_number
from dpaudit.config.sweeps import Catalogue, Cell, cells_of, only_matching, read_catalogue
from dpaudit.engine.next_cell import Round, next_round
from dpaudit.mechanisms import MechanismError
from dpaudit.mechanisms.environments import environment
from dpaudit.mechanisms.own_process import exits_refused
from dpaudit.mechanisms.raised import message_of
from dpaudit.mechanisms.requirements import wrong_version
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.result.sweeps import Sweep
from dpaudit.settings.audit import BACKENDS
from dpaudit.settings.limits import ALL_CORES, cores
from dpaudit.text.printable import joined, one_line, shortened
from dpaudit.values import JsonObject

_clock = time.monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    catalogue: Catalogue
    versions: tuple[str, ...]
    cells: list[Cell]

    def start(self, seconds: float, command: CommandSettings) -> Sweeping:
        """Return the sweep, ready to run; it has the results of an earlier command that it resumes."""
        promise = share_guarantee([cell.planned for cell in self.cells], command)
        before = earlier(command, [cell.name for cell in self.cells])
        wait = before.answer_seconds if before is not None else answer_seconds(seconds, len(self.cells))
        cells = [replace(cell, planned=cell.planned.changed(timeout=wait)) for cell in self.cells]
        rows = [
            Row(cell=cell, confidence=confidence) for cell, confidence in zip(cells, promise.confidences, strict=True)
        ]
        sweep = Sweep(
            library=self.catalogue.config.library,
            package=self.catalogue.config.package,
            catalogue=self.catalogue.file.name,
            versions=self.versions,
            confidence=min(promise.confidences),
            false_alarm=min(float(promise.false_alarm), 1.0),
            shared=promise.shared,
            number=promise.number,
            seconds=seconds,
            spent=0.0,
            answer_seconds=wait,
            interrupted=False,
            cells=tuple(row.recorded for row in rows),
        )
        if before is not None:
            promise = resume(before, sweep, rows, promise, command)
            sweep = replace(sweep, number=promise.number, spent=before.spent)
        at_once = 1
        if command.backend == BACKENDS[0]:  # on a cluster, the processes of `jobs` make the runs of one cell
            at_once = min(cores() if command.jobs == ALL_CORES else command.jobs, len(rows))
            command = replace(command, jobs=1)
        return Sweeping(sweep=sweep, rows=rows, command=command, promise=promise, cells=at_once)


def planned_sweep(library: str, others: Sequence[str], patterns: Sequence[str], command: CommandSettings) -> SweepPlan:
    """Read the catalogue and list the cells."""
    from packaging.version import Version

    name, _, wanted = library.partition("==")
    if not wanted and (library.endswith("==") or any(sign in name for sign in "<>~!=,")):
        raise ConfigError(f"LIBRARY {library[:100]!r}: write NAME or NAME==VERSION, such as opendp==0.16.0")
    catalogue = read_catalogue(name)
    project = catalogue.config.package
    here = None if wanted else catalogue.installed
    versions = [_version("LIBRARY", wanted, project) if wanted else here or catalogue.newest]
    for other in others:
        version = _version("--with", other.removeprefix(f"{project}=="), project)
        if any(Version(version) == Version(one) for one in versions):
            raise ConfigError(f"--with {other}: the version {version} is given twice")
        versions.append(version)
    settings: JsonObject = {} if command.trials is None else {"trials": command.trials}
    found = [
        cells_of(catalogue, version, pinned=here is None or number > 0, settings=settings)
        for number, version in enumerate(versions)
    ]
    order = {title: number for number, title in enumerate(dict.fromkeys(c.title for one in found for c in one))}
    cells = sorted((cell for one in found for cell in one), key=lambda cell: order[cell.title])
    if not cells:
        raise ConfigError(f"{catalogue.file}: no entry is for version {' or '.join(versions)}; see its keys `versions`")
    return SweepPlan(catalogue=catalogue, versions=tuple(versions), cells=only_matching(cells, patterns))


def _version(option: str, text: str, package: str) -> str:
    try:
        return check_version_number(text)
    except ValueError:
        raise ConfigError(
            f"{option}: {text[:40]!r} is not a version of {package}; write a number such as 1.2.3"
        ) from None


def answer_seconds(seconds: float, cells: int) -> float:
    """Return the maximum time of one answer of a mechanism: two fair shares, but 5 to 60 seconds."""
    return min(max(2 * seconds / cells, 5.0), 60.0)


@dataclass(slots=True, kw_only=True)
class Sweeping:
    sweep: Sweep
    rows: list[Row]
    command: CommandSettings
    promise: Promise
    cells: int = 1
    broken: bool = False  # whether an audit ended in an internal error of dpaudit
    interrupted: bool = False
    unwritten: bool = False  # whether a file could not be written
    _began: float | None = None  # time at which the first round began; None before it
    _log: Callable[..., None] = field(default=lambda *_, **__: None)

    @property
    def outcome(self) -> Sweep:
        cells = tuple(row.recorded for row in self.rows)
        return replace(self.sweep, cells=cells, spent=self._spent, interrupted=self.interrupted)

    @property
    def _spent(self) -> float:
        """Seconds from the first round on, including those of an earlier run."""
        return self.sweep.spent + (0.0 if self._began is None else max(_clock() - self._began, 0.0))

    @exits_refused()
    def go_on(self) -> None:
        """Make rounds until the time is over, no cell can go on, or the user interrupts."""
        try:
            with event_log(self.command.log) as self._log, workers(self.command):
                self._build_environments()
                self._began = _clock()
                if self.cells > 1:
                    self._make_several_at_once()
                else:
                    self._make_one_by_one()
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            close_workers()
        for row in self.rows:
            if row.result is None and not row.reason:
                row.reason = "the sweep was interrupted" if self.interrupted else "no time was left"
        self._save()

    def _save(self) -> None:
        self.unwritten = not write_sweep(self.outcome, self.command) or self.unwritten

    def _make_one_by_one(self) -> None:
        while (chosen := self._next()) is not None:
            outcome = make_round(self._task(chosen, shown=not self.command.quiet))
            self._keep_all([(chosen.cell, outcome)])
            if outcome.interrupted:
                raise KeyboardInterrupt

    def _make_several_at_once(self) -> None:
        running = Workers(self.cells)
        status = status_line(shown=not self.command.quiet)
        try:
            while True:
                while running.free and (chosen := self._next()) is not None:
                    self.rows[chosen.cell].busy = True
                    running.start(chosen.cell, self._task(chosen, shown=False))
                if not running.cells:
                    return
                names = ", ".join(one_line(self.rows[cell].cell.name) for cell in running.cells)
                left = max(self.sweep.seconds - self._spent, 0.0)
                tried = sum(row.rounds > 0 for row in self.rows)
                with status(f"{tried} of {len(self.rows)} cells, {left:.0f} s left: {names}"):
                    ended = running.ended(seconds=1.0)  # then the line is updated
                self._keep_all(ended)
        except KeyboardInterrupt:
            self._keep_all(running.interrupt())
            raise
        finally:
            running.close()

    def _keep_all(self, ended: Sequence[tuple[int, Outcome]]) -> None:
        for cell, outcome in ended:
            self.rows[cell].busy = False
            self._keep(self.rows[cell], outcome)
        if ended:
            self._save()

    def _next(self) -> Round | None:
        left = self.sweep.seconds - self._spent
        return next_round([row.spent for row in self.rows], left, at_once=self.cells)

    def _task(self, chosen: Round, *, shown: bool) -> Task:
        row = self.rows[chosen.cell]
        return Task(
            planned=row.cell.planned,
            confidence=row.confidence,
            chosen=chosen,
            command=self.command,
            promise=self.promise,
            place=numbered(chosen.cell + 1, len(self.rows), row.cell.name),
            shown=shown,
        )

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

    def _keep(self, row: Row, outcome: Outcome) -> None:
        """Keep the result of a round, or the reason why there is none."""
        row.rounds += 1
        row.last_seconds = outcome.seconds
        row.seconds += outcome.seconds
        self.broken = self.broken or outcome.broken
        result = outcome.result
        if result is None:
            if outcome.interrupted:
                return
            row.reason, row.closed, row.retried = outcome.reason, True, outcome.not_ready
            if outcome.other_audit:  # the result of earlier rounds is about another mechanism
                row.result, row.facts = None, {}
            row.unfinished = row.result is not None
            words = shortened(one_line(row.reason))
            if row.unfinished:
                say(f"{row.cell.name}: only the earlier rounds count, as a round failed: {words}")
            elif row.reason and not self.command.quiet:
                say(f"{row.cell.name} could not be audited: {words}")
        # the result of an interrupted round is not kept, because the store has all its blocks
        elif not outcome.interrupted or failed(result):
            self._keep_result(row, result)

    def _keep_result(self, row: Row, result: AuditResult) -> None:
        row.result, row.closed, row.facts = result, closes(result), facts_of(result)
        if not self.command.quiet:
            say(ended_line(self.rows.index(row) + 1, len(self.rows), result))
        if result.violated:
            for warning in result.warnings:
                say(f"{row.cell.name}: {joined(warning)}")
        # a result in another folder is no part of the sweep, which could not be resumed
        self.unwritten = write_result(result, self.command) != self.command.output or self.unwritten
        log_result(self._log, result)
