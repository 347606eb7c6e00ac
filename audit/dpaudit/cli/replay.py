"""`dpaudit replay`: repeat the witness of a result on fresh randomness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.ending import INCONCLUSIVE, NO_VIOLATION, VIOLATION, leave, print_traceback, refuse
from dpaudit.cli.options import Debug, Jobs, NoCode, Quiet
from dpaudit.cli.report import _unreadable
from dpaudit.cli.terminal import say, show, waiting


def replay(
    file: Annotated[Path, typer.Argument(metavar="RESULT.json", help="A result that `dpaudit run` or a test wrote.")],
    trials: Annotated[int | None, typer.Option(min=1, help="Fresh runs on each dataset that are counted.")] = None,
    extend: Annotated[
        bool, typer.Option("--extend", help="Double the runs, up to 64 times, until they decide.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Of the fresh randomness; drawn unless given.")] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the config was, if it is elsewhere now.")
    ] = None,
    jobs: Jobs = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what code the replay would run.")] = False,
    no_code: NoCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Repeat the witness of a result on fresh randomness: its counts beside fresh ones, and a fresh exact p-value.

    Runs the mechanism that the result names: look at a stranger's result with `--dry-run` first.  A violation is
    confirmed at p <= 0.001, or at the audit's own significance if that is smaller.

    Exit code: 1 if fresh runs refute the claim; 0 if they do not and the result did not either; 3 if a violation is not
    confirmed, the result contradicts itself, or the fresh runs say nothing; 2 for wrong usage.
    """
    with waiting("loading", shown=not quiet):
        from dpaudit.cli.replay_file import plan_replay
        from dpaudit.mechanisms import MechanismError
        from dpaudit.result.model import AuditResult
        from dpaudit.text.printable import printable

    try:
        planned = plan_replay(AuditResult.from_json(file), folder=folder, code=not no_code)
        if dry_run:
            show(str(planned))
            return
        if not quiet:
            say(str(planned))
        found = planned.run(trials=trials, extend=extend, seed=seed, jobs=jobs or 1, quiet=quiet)
    except (ValueError, OSError, ImportError) as error:
        print_traceback(debug)
        refuse(printable(_unreadable(file, error)))
    except MechanismError as error:
        print_traceback(debug)
        say(printable(f"{file}: the mechanism could not be run: {error}"))
        leave(INCONCLUSIVE)
    show(str(found))
    leave(INCONCLUSIVE if not found.reproduced else VIOLATION if found.refuted else NO_VIOLATION)
