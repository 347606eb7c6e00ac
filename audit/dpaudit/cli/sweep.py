"""`dpaudit sweep`: audits every constructor of a library over a grid of types and parameters."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.lookup import list_code
from dpaudit.cli.options import PLACES, RUNS, RunOptions, option, whole_option, with_run_options
from dpaudit.cli.report import SWEEP, SWEEP_PDF
from dpaudit.cli.terminal import code_of, drawn, leave, refuse, say, screen, show, waiting
from dpaudit.settings import BACKENDS, cores

if TYPE_CHECKING:
    from dpaudit.result.command_outcomes import Sweep

_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600}

_Library = Annotated[
    str,
    typer.Argument(
        metavar="LIBRARY[==VERSION]", help="Library with a catalogue, such as opendp, or a catalogue's .yaml file."
    ),
]
_Only = Annotated[
    list[str] | None,
    option(
        "Audit only cells or constructors with this name or pattern, such as 'make_laplace*'; repeatable.",
        metavar="NAME",
        panel=RUNS,
    ),
]
_Time = Annotated[str, option("Total time, such as 90s, 30m or 2h.", "--time", metavar="TIME", panel=RUNS)]
_With = Annotated[
    list[str] | None,
    option(
        "Also audit this version, and report what differs; repeatable.", "--with", metavar="PKG==VERSION", panel=RUNS
    ),
]
_Jobs = Annotated[
    int | None,
    whole_option(
        panel=PLACES,
        help="Number of cells that are audited at once, each in a worker process; -1 uses all cores.  Default: 2, or 1 "
        "on one core.  With dask or ray, number of worker processes of one cell.",
    ),
]
_DryRun = Annotated[bool, option("List the cells and their code, without running the code.", "--dry-run", panel=RUNS)]


@with_run_options
def sweep(
    library: _Library,
    *,
    options: RunOptions,
    only: _Only = None,
    time: _Time = "30m",
    with_: _With = None,
    jobs: _Jobs = None,
    dry_run: _DryRun = False,
) -> None:
    """Audit every constructor of a library over types and parameters, and write DIR/sweep.json and DIR/sweep.pdf.

    A catalogue lists the constructors, and a grid of types and parameters for each.  Each cell of a grid is one audit,
    whose claim and pairs are read from the object of the library.  With ==VERSION, the audits run in an environment
    with this version.  Without, they run in this process if the library is installed, and otherwise in an environment
    with the newest version that the catalogue names.

    Each cell gets a share of the time, and further time goes to the cells whose evidence grows.  Building environments
    does not count.  Cells that cannot be audited are reported, and the sweep goes on.

    All cells share one guarantee: if all claims are true, the sweep reports any violation with probability at most 1 -
    confidence.

    DIR/NAME.trials keeps the outputs of each cell.  After an interruption, --resume loses at most the running block.

    Exit codes: 0 no violation found; 1 violation; 2 wrong usage or catalogue, or no cell can be audited; 3
    inconclusive or not completed: a cell has no verdict, a round failed, or a file could not be written; 4 internal
    error.
    """
    if options.resume_anyway:
        refuse(
            "--resume=anyway is not allowed, because the guarantee of a sweep does not cover outputs of other audits"
        )
    seconds = seconds_of(time)
    if jobs is None and options.backend == BACKENDS[0]:
        options = replace(options, jobs=min(2, cores()))  # each worker process needs some 200 MB of memory
    with waiting("loading", shown=not options.quiet):
        from dpaudit.cli.prepare_run import prepare_folder
        from dpaudit.cli.sweep_cells import Sweeping
        from dpaudit.config.sweeps import planned_sweep
        from dpaudit.result.command_outcomes import CellState
    plan = planned_sweep(library, with_ or [], only or [], options.trials)
    if dry_run:
        list_code(cell.planned for cell in plan.cells)
        number = f"{len(plan.cells)} cells" if len(plan.cells) > 1 else "1 cell"
        show(f"{number}, with {seconds / len(plan.cells):.3g} s for each on average")
        return
    prepare_folder([cell.planned for cell in plan.cells], replace(options, no_pdf=True), others=(SWEEP, SWEEP_PDF))
    with _sole_use(options):
        sweeping = Sweeping(plan, seconds, options)
        sweeping.run()
        runner, outcome = sweeping.runner, sweeping.outcome
        if not runner.interrupted and all(row.result is None for row in sweeping.rows):
            say(f"the reasons are in {options.shown}/{SWEEP}")
            refuse(f"no cell of {library} could be audited; see the messages above")
        written = _report(outcome, options)
    leave(
        code_of(
            violated=bool(outcome.of(CellState.VIOLATION)),
            broken=runner.broken,
            incomplete=bool(outcome.of(CellState.INCONCLUSIVE, CellState.NOT_AUDITED))
            or (runner.interrupted or runner.unwritten or not written)
            or any(row.unfinished for row in sweeping.rows),
        )
    )


@contextlib.contextmanager
def _sole_use(options: RunOptions) -> Iterator[None]:
    """Hold the output folder, whose files are written again and again, until the block ends or this process dies."""
    import fcntl

    handle = os.open(options.output, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            refuse(f"{options.shown} is in use by another sweep; wait until it ends, or name another folder with -o")
        yield
    finally:
        os.close(handle)


def seconds_of(text: str) -> float:
    """Convert a time such as 90s, 30m, 1.5h or 1h30m to seconds, or refuse it."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|m|h)", text)
    if not parts or "".join(number + unit for number, unit in parts) != re.sub(r"\s", "", text):
        meant = f"; did you mean {text}m?" if re.fullmatch(r"[0-9]{1,4}", text) else ""
        refuse(f"--time must be a time with a unit, such as 90s, 30m, 2h or 1h30m, got {text[:40]!r}{meant}")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not seconds > 0:
        refuse(f"--time must be above 0, got {text[:40]}")
    return seconds


def _report(outcome: Sweep, options: RunOptions) -> bool:
    """Show the outcome and write the PDF; return whether that succeeded."""
    from dpaudit.cli.runner import write_file
    from dpaudit_reports import sweep_report, to_pdf
    from dpaudit_reports.terminal import document_text

    report = sweep_report(outcome)
    drawn(document_text(replace(report, back=()), screen()))  # the report has the table of all cells
    written = options.no_pdf or write_file(SWEEP_PDF, to_pdf(report, paper=options.paper), options)
    if not (options.quiet or outcome.interrupted):
        place = f"{options.shown}/{SWEEP_PDF}, and the results are next to it"
        say(f"the results are in {options.shown}" if options.no_pdf else f"the map is in {place}")
    return written
