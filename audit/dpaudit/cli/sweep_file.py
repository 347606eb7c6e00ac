"""What is known about the cells of a sweep: written to DIR/sweep.json, and read again when the sweep is resumed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpaudit.cli.prepare_run import CommandSettings, NotReady
from dpaudit.cli.read_results import SWEEP
from dpaudit.cli.sweep_rounds import seeded
from dpaudit.cli.terminal import say
from dpaudit.config.sweeps import Cell
from dpaudit.engine.next_cell import Spent
from dpaudit.inference.sequential.strategy import log_threshold
from dpaudit.result.atomic_write import write_placed
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.result.sweeps import CellState, Sweep, SweptCell
from dpaudit.text.printable import joined, shortened
from dpaudit.text.reasons import Reason, WarningCode, has_code
from dpaudit.values import Foreign
from dpaudit_reports.claimed import headline, ranges
from dpaudit_reports.formats.facts import certified, detectable
from dpaudit_reports.verdicts import reason, why_inconclusive


@dataclass(slots=True, kw_only=True)
class Row:
    cell: Cell
    confidence: float
    result: AuditResult | None = None
    reason: str = ""
    closed: bool = False
    retried: bool = False
    busy: bool = False
    unfinished: bool = False
    facts: dict[str, Foreign] = field(default_factory=dict)
    rounds: int = 0
    seconds: float = 0.0
    last_seconds: float = 0.0

    @property
    def spent(self) -> Spent:
        """What the rule that chooses the next round knows."""
        result = self.result
        return Spent(
            trials=0 if result is None else result.trials_allowed,
            seconds=self.seconds,
            last_seconds=self.last_seconds,
            log_e=0.0 if result is None or not result.bounds_valid else -math.log(max(result.p_value, 1e-300)),
            log_threshold=log_threshold(self.confidence),
            most=self.cell.planned.config.trials,
            closed=self.closed,
            busy=self.busy,
        )

    @property
    def recorded(self) -> SweptCell:
        cell, words = self.cell, Reason(joined(self.reason), foreign=Reason.of(self.reason).foreign)
        return SweptCell(
            name=cell.name,
            title=cell.title,
            constructor=cell.constructor,
            values=dict(cell.values),
            version=cell.version,
            closed=self.closed and not self.retried,
            rounds=self.rounds,
            seconds=self.seconds,
            last_seconds=self.last_seconds,
            **(self.facts or {"state": CellState.NOT_AUDITED, "reason": words}),
        )


def facts_of(result: AuditResult) -> dict[str, Foreign]:
    """Return the fields of a record that depend on the result only."""
    place, bound = ranges(result), headline(result)
    few = any(has_code(why, WarningCode.TOO_FEW) for why in why_inconclusive(result))  # one reason for many cells
    known = place is not None and result.bounds_valid and bound is not None and not math.isnan(bound.certified)
    return {
        "state": CellState(result.verdict.value),
        "reason": "the runs are too few to see any violation" if few else joined(reason(result)),
        "trials": result.trials_used,
        "p_value": result.p_value,
        "claim": result.claim.label,
        "certified": certified(result),
        "ratio": place.certified if place is not None and known and math.isfinite(place.certified) else None,
        "detectable": detectable(result),
    }


def closes(result: AuditResult) -> bool:
    """Whether a cell with this result gets no further rounds, because its evidence or a failed run ended it."""
    return result.stopped_by != "trials" or failed(result)


def failed(result: AuditResult) -> bool:
    """Whether a failed run ended the trials of a pair."""
    return any(has_code(warning, WarningCode.FAILURE) for warning in result.warnings)


def write_sweep(sweep: Sweep, command: CommandSettings) -> bool:
    """Write DIR/sweep.json, and return whether that succeeded.  An error is reported, and the sweep goes on."""
    try:
        write_placed(command.output / SWEEP, json.dumps(sweep.to_dict(), indent=1) + "\n")
    except OSError as error:
        say(f"{command.shown}/{SWEEP} could not be written: {error.strerror}")
        return False
    return True


def earlier(command: CommandSettings, names: Sequence[str]) -> Sweep | None:
    """Return the sweep that the output folder holds; None if there is none."""
    file = command.output / SWEEP
    there = file.is_file()
    stores = [name for name in names if (command.output / f"{name}.trials").exists()]
    if not command.keep_outputs and (there or stores):
        what = "a sweep" if there else f"stored outputs, such as {stores[0]}.trials"
        raise NotReady(f"{command.shown} holds {what}; add --resume, or name another folder with -o")
    if not there:
        return None
    try:
        return Sweep.from_json(file)
    except (ValueError, OSError) as error:
        why = getattr(error, "strerror", None) or error
        raise NotReady(f"{command.shown}/{SWEEP} cannot be resumed: {why}") from None


def resume(before: Sweep, after: Sweep, rows: Sequence[Row], promise: Promise, command: CommandSettings) -> Promise:
    """Fill the rows with the earlier results; return the joint guarantee with the number of the earlier command."""
    shown, promise = f"{command.shown}/{SWEEP}", replace(promise, number=before.number)
    _compare(before, after, [row.cell.name for row in rows], shown)
    problems = []
    for row, cell in zip(rows, before.cells, strict=True):
        row.rounds, row.seconds, row.last_seconds = cell.rounds, cell.seconds, cell.last_seconds
        if cell.state is CellState.NOT_AUDITED and cell.closed:
            row.reason, row.closed = Reason(cell.reason, foreign=True), True
        file = command.output / f"{cell.name}.json"
        if cell.state is CellState.NOT_AUDITED and not file.is_file():
            continue
        try:
            row.result = _checked(AuditResult.from_json(file), row, promise, command)
            row.closed, row.facts = cell.closed or closes(row.result), facts_of(row.result)
            # code in this process may have changed although its version is the same; reading the store again shows it
            if row.result.violated and not row.cell.planned.config.mechanism.isolated:
                row.closed = False
        except (ValueError, OSError, ImportError) as error:
            problems.append(f"{shown} cannot be resumed: {getattr(error, 'strerror', None) or error}: {file.name}")
    if problems:
        raise NotReady(*problems)
    return promise


def _checked(result: AuditResult, row: Row, promise: Promise, command: CommandSettings) -> AuditResult:
    """Refuse the result of another audit or command."""
    number = promise.recorded(result.provenance).command_number
    if result.confidence != row.confidence or result.provenance.command_number != number:
        raise ValueError("the result comes from another command")
    if result.provenance.audit != seeded(row.cell.planned, command.seed).text:
        raise ValueError("the result is that of an audit with other arguments, packages, pairs or seed")
    return result


def _compare(before: Sweep, after: Sweep, names: Sequence[str], shown: str) -> None:
    """Refuse a sweep with other cells or another guarantee, because the guarantee covers a fixed list of cells."""
    old = [cell.name for cell in before.cells]
    if old != list(names):
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
