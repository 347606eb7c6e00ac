"""The policy of `sweep`: rounds of the cells that `engine.schedule` chooses, and what DIR/sweep.json keeps of them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpaudit.cli.one_audit import End, Outcome, Task, failed
from dpaudit.cli.options import RunOptions
from dpaudit.cli.prepare_run import NotReady, share_guarantee
from dpaudit.cli.report import SWEEP
from dpaudit.cli.runner import Runner, write_file
from dpaudit.cli.terminal import say
from dpaudit.config.planned import PlannedAudit
from dpaudit.config.sweeps import SweepPlan
from dpaudit.engine.schedule import Spent, next_round
from dpaudit.inference.sequential.strategy import log_threshold
from dpaudit.result.command_outcomes import CellState, Sweep, SweptCell
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.running import MechanismError
from dpaudit.running.environments import environment
from dpaudit.running.outcomes import message_of
from dpaudit.running.requirements import wrong_version
from dpaudit.running.streams import stream
from dpaudit.settings import ALL_CORES, BACKENDS, cores
from dpaudit.text import Reason, WarningCode, has_code, joined, one_line, shortened
from dpaudit_reports.claimed import headline, ranges
from dpaudit_reports.formats import certified, detectable
from dpaudit_reports.verdicts import reason as why_no_verdict
from dpaudit_reports.verdicts import why_inconclusive

_clock = time.monotonic


@dataclass(slots=True, kw_only=True)
class Row:
    """A cell during a sweep."""

    planned: PlannedAudit  # the audit of the cell, with the seed and the time limit of this sweep
    confidence: float
    version: str
    swept: SweptCell  # what sweep.json holds
    result: AuditResult | None = None
    closed: bool = False  # whether it gets no further rounds by this command; `swept.closed`: nor by a resumed one
    busy: bool = False
    unfinished: bool = False  # whether a round failed after the result of an earlier round

    @property
    def spent(self) -> Spent:
        """What the rule that chooses the next round knows."""
        result = self.result
        return Spent(
            trials=0 if result is None else result.trials_allowed,
            seconds=self.swept.seconds,
            last_seconds=self.swept.last_seconds,
            log_e=0.0 if result is None or not result.bounds_valid else -math.log(max(result.p_value, 1e-300)),
            log_threshold=log_threshold(self.confidence),
            most=self.planned.config.trials,
            closed=self.closed,
            busy=self.busy,
        )

    def record(self, result: AuditResult | None, *, closed: bool = False, reason: str = "") -> None:
        """Replace the result, and derive what is recorded about it; without a result, the reason is recorded."""
        self.result = result
        facts: dict[str, Any] = {"state": CellState.NOT_AUDITED, "reason": reason}
        if result is not None:
            place, bound = ranges(result), headline(result)
            # one reason for many cells
            few = any(has_code(why, WarningCode.TOO_FEW) for why in why_inconclusive(result))
            known = place is not None and result.bounds_valid and bound is not None and not math.isnan(bound.certified)
            facts = {
                "state": CellState(result.verdict.value),
                "reason": "the runs are too few to see any violation" if few else joined(why_no_verdict(result)),
                "trials": result.trials_used,
                "p_value": result.p_value,
                "claim": result.claim.label,
                "certified": certified(result),
                "ratio": place.certified if place is not None and known and math.isfinite(place.certified) else None,
                "detectable": detectable(result),
            }
        of_cell = ("name", "title", "constructor", "values", "version", "rounds", "seconds", "last_seconds")
        self.swept = SweptCell(**{name: getattr(self.swept, name) for name in of_cell}, **facts, closed=closed)


def answer_seconds(seconds: float, cells: int) -> float:
    """Return the maximum time of one answer of a mechanism: two fair shares, but 5 to 60 seconds."""
    return min(max(2 * seconds / cells, 5.0), 60.0)


class Sweeping:
    """A sweep, ready to run; it has the results of an earlier command that it resumes."""

    def __init__(self, plan: SweepPlan, seconds: float, options: RunOptions) -> None:
        promise = share_guarantee([cell.planned for cell in plan.cells], options)
        before = _earlier(options, [cell.name for cell in plan.cells])
        wait = before.answer_seconds if before is not None else answer_seconds(seconds, len(plan.cells))
        self.rows = []
        for cell, confidence in zip(plan.cells, promise.confidences, strict=True):
            planned = cell.planned.changed(timeout=wait)
            if options.seed is not None:  # the seed of a cell depends on its name
                planned = planned.changed(seed=int(stream(options.seed, "sweep", cell.name).integers(10**9)))
            swept = SweptCell(
                name=cell.name,
                title=cell.title,
                constructor=cell.constructor,
                values=dict(cell.values),
                version=cell.version,
                state=CellState.NOT_AUDITED,
            )
            self.rows.append(Row(planned=planned, confidence=confidence, version=cell.version, swept=swept))
        self._sweep = Sweep(
            library=plan.catalogue.config.library,
            package=plan.catalogue.config.package,
            catalogue=plan.catalogue.file.name,
            versions=plan.versions,
            confidence=min(promise.confidences),
            false_alarm=min(float(promise.false_alarm), 1.0),
            shared=promise.shared,
            number=promise.number if before is None else before.number,
            seconds=seconds,
            spent=0.0 if before is None else before.spent,
            answer_seconds=wait,
            interrupted=False,
            cells=tuple(row.swept for row in self.rows),
        )
        if before is not None:
            promise = replace(promise, number=before.number)
            _resume(before, self._sweep, self.rows, promise, options)
        at_once, jobs = 1, options.jobs
        if options.backend == BACKENDS[0]:  # on a cluster, the processes of `jobs` make the runs of one cell
            at_once, jobs = min(cores() if jobs == ALL_CORES else jobs or 1, len(self.rows)), 1
        # the rows have their seeds and numbers of runs already
        options = replace(options, jobs=jobs, no_pdf=True, resume=True, seed=None, trials=None)
        self.runner = Runner(options=options, promise=promise, at_once=at_once, status=self._status)
        self._began: float | None = None  # time at which the first round began; None before it

    @property
    def outcome(self) -> Sweep:
        cells = tuple(row.swept for row in self.rows)
        return replace(self._sweep, cells=cells, spent=self._spent, interrupted=self.runner.interrupted)

    @property
    def _spent(self) -> float:
        """Seconds from the first round on, including those of an earlier run."""
        return self._sweep.spent + (0.0 if self._began is None else max(_clock() - self._began, 0.0))

    def run(self) -> None:
        """Make rounds until the time is over, no cell can go on, or the user interrupts."""
        self.runner.run(self)
        for row in self.rows:
            if row.result is None and not row.swept.reason:
                why = "the sweep was interrupted" if self.runner.interrupted else "no time was left"
                row.record(None, reason=why)
        self._save()

    def next(self) -> Task | None:
        """Build the environments before the first round, and start the round that the rule chooses."""
        if self._began is None:
            self._build_environments()
            self._began = _clock()
        left = self._sweep.seconds - self._spent
        part = next_round([row.spent for row in self.rows], left, at_once=self.runner.at_once)
        if part is None:
            return None
        row, number = self.rows[part.cell], part.cell
        row.busy = True
        return Task(number=number, audits=len(self.rows), planned=row.planned, confidence=row.confidence, part=part)

    def ended(self, task: Task, outcome: Outcome) -> None:
        """Keep the result of a round, or the reason why there is none."""
        row, result = self.rows[task.number], outcome.result
        row.busy = False
        seconds = row.swept.seconds + outcome.seconds
        row.swept = replace(row.swept, rounds=row.swept.rounds + 1, seconds=seconds, last_seconds=outcome.seconds)
        if result is not None:
            row.closed = closes(result)
            row.record(result, closed=row.closed)
        elif outcome.end is not End.INTERRUPTED:
            row.closed, closed = True, outcome.end is not End.NOT_READY
            # the result of earlier rounds counts, unless it is about another mechanism
            row.unfinished = row.result is not None and outcome.end is not End.OTHER_AUDIT
            if row.unfinished:
                row.swept, why = replace(row.swept, closed=closed), shortened(one_line(outcome.reason))
                say(f"{task.name}: only the earlier rounds count, as a round failed: {why}")
            else:
                row.record(None, closed=closed, reason=joined(outcome.reason))
        self._save()

    def _status(self) -> str:
        tried = sum(row.swept.rounds > 0 for row in self.rows)
        left = max(self._sweep.seconds - self._spent, 0.0)
        return f"{tried} of {len(self.rows)} cells, {left:.0f} s left: "

    def _save(self) -> None:
        if not write_file(SWEEP, json.dumps(self.outcome.to_dict(), indent=1) + "\n", self.runner.options):
            self.runner.unwritten = True

    def _build_environments(self) -> None:
        """Build all environments before the time of the sweep begins; close the cells of those that fail."""
        unusable: dict[object, str] = {}
        for row in self.rows:
            mechanism = row.planned.config.mechanism
            if not mechanism.installs or row.closed:
                continue
            requires, python_version = tuple(mechanism.requires or ()), mechanism.python_version
            why = unusable.get((requires, python_version))
            if why is None:
                try:
                    packages = environment(requires, python_version).packages
                    why = wrong_version(packages, self._sweep.package, row.version)
                except MechanismError as error:
                    why = message_of(error)
                if why:
                    what = f"the environment with {', '.join(requires)} cannot be used"
                    say(f"{what}, so its cells are not audited: {why}")
                unusable[requires, python_version] = why
            if why:
                row.closed = True
                if row.result is None:
                    row.record(None, reason=joined(why))


def closes(result: AuditResult) -> bool:
    """Whether a cell with this result gets no further rounds, because its evidence or a failed run ended it."""
    return result.stopped_by != "trials" or failed(result)


def _earlier(options: RunOptions, names: Sequence[str]) -> Sweep | None:
    """Return the sweep that the output folder holds; None if there is none."""
    file = options.output / SWEEP
    there = file.is_file()
    stores = [name for name in names if (options.output / f"{name}.trials").exists()]
    if not options.keep_outputs and (there or stores):
        what = "a sweep" if there else f"stored outputs, such as {stores[0]}.trials"
        raise NotReady(f"{options.shown} holds {what}; add --resume, or name another folder with -o")
    try:
        return Sweep.from_json(file) if there else None
    except (ValueError, OSError) as error:
        why = getattr(error, "strerror", None) or error
        raise NotReady(f"{options.shown}/{SWEEP} cannot be resumed: {why}") from None


def _resume(before: Sweep, after: Sweep, rows: Sequence[Row], promise: Promise, options: RunOptions) -> None:
    """Fill the rows with the earlier results; other cells or another guarantee are refused."""
    shown, old, names = f"{options.shown}/{SWEEP}", *([cell.name for cell in one.cells] for one in (before, after))
    if old != names:
        other = ", ".join(sorted({*old} ^ {*names}))
        which = f": {shortened(other)}" if other else " in another order"
        raise NotReady(
            f"{shown} is a sweep of other cells{which}.  The guarantee covers a fixed list of cells, so repeat the "
            "options --only and --with of the earlier command, or name another folder with -o"
        )
    if Fraction(before.confidence) != Fraction(after.confidence) or before.shared != after.shared:
        raise NotReady(
            f"{shown} is a sweep at another confidence; repeat --confidence and --each of the earlier command, or "
            "name another folder with -o"
        )
    for row, cell in zip(rows, before.cells, strict=True):
        row.swept = replace(row.swept, rounds=cell.rounds, seconds=cell.seconds, last_seconds=cell.last_seconds)
        file = options.output / f"{cell.name}.json"
        if cell.state is CellState.NOT_AUDITED and not file.is_file():
            row.closed = cell.closed
            if row.closed:
                row.record(None, closed=True, reason=Reason(cell.reason, foreign=True))
            continue
        try:
            result = AuditResult.from_json(file)
            number = promise.recorded(result.provenance).command_number
            if result.confidence != row.confidence or result.provenance.command_number != number:
                raise ValueError("the result comes from another command")
            if result.provenance.audit != row.planned.text:
                raise ValueError("the result is that of an audit with other arguments, packages, pairs or seed")
        except (ValueError, OSError, ImportError) as error:
            why = getattr(error, "strerror", None) or error
            raise NotReady(f"{shown} cannot be resumed: {why}: {file.name}") from None
        row.closed = cell.closed or closes(result)
        # code in this process may have changed although its version is the same; reading the store again shows it
        if result.violated and not row.planned.config.mechanism.isolated:
            row.closed = False
        row.record(result, closed=row.closed)
