"""`dpaudit replay`: tests the witness of a result on fresh runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.options import PLACES, RUNS, SHOWN, Debug, NoCode, option, whole_option
from dpaudit.cli.report import unreadable
from dpaudit.cli.terminal import INCONCLUSIVE, code_of, complain, leave, print_traceback, refuse, say, show, waiting
from dpaudit.settings import DEFAULTS, MIN_TRIALS, check_jobs
from dpaudit.text import SIGNS

_Trials = Annotated[
    int | None,
    whole_option(
        "Number of fresh runs per dataset to count.  Default: derived from the result.", least=MIN_TRIALS, panel=RUNS
    ),
]
_Extend = Annotated[
    bool, option("Double the runs until the replay is conclusive, up to a factor of 64.", "--extend", panel=RUNS)
]
_Seed = Annotated[int | None, whole_option("Seed of the fresh runs; random if omitted.", panel=RUNS)]
_Folder = Annotated[
    Path | None, option("Folder of the config, if the config has moved since the audit.", metavar="DIR", panel=PLACES)
]
_Jobs = Annotated[int | None, whole_option("Number of worker processes; -1 uses all cores.  Default: 1.", panel=PLACES)]
_DryRun = Annotated[
    bool,
    option(
        "List the code, the claim and the number of runs of the replay, without running it.", "--dry-run", panel=RUNS
    ),
]
_Unlocked = Annotated[
    bool, option("Let the installer choose packages; do not require the audit's hashes.", "--unlocked", panel=RUNS)
]
_Quiet = Annotated[bool, option("Hide progress; show only the result.", "-q", "--quiet", panel=SHOWN)]


def replay(
    file: Annotated[
        Path, typer.Argument(metavar="RESULT.json", help="A result written by `dpaudit run` or by a test.")
    ],
    trials: _Trials = None,
    extend: _Extend = False,
    seed: _Seed = None,
    folder: _Folder = None,
    jobs: _Jobs = None,
    dry_run: _DryRun = False,
    unlocked: _Unlocked = False,
    no_code: NoCode = False,
    quiet: _Quiet = False,
    debug: Debug = False,
) -> None:
    """Test the witness of a result on fresh runs, and report the old counts, the new counts and an exact p-value.

    The replay runs the mechanism that the result names, with the same packages if the audit had an environment of its
    own (`requires:`).  Check a stranger's result with `--dry-run` first.

    A violation is confirmed if p is at most 0.001 and at most the audit's own significance level, if code and datasets
    have not changed since the audit, and if the config or the test states the same claim as the result.

    Exit codes: 0 neither the result nor the fresh runs show a violation; 1 the fresh runs refute the claim; 2 wrong
    usage; 3 the fresh runs do not confirm the result's violation, the result has another claim than its config or
    test, or the fresh runs are inconclusive.
    """
    if folder is not None and not os.path.isdir(folder):
        refuse(f"--folder {folder}: there is no such folder")
    try:
        check_jobs(DEFAULTS.jobs if jobs is None else jobs, "--jobs")
    except ValueError as error:
        refuse(str(error))
    with waiting("loading", shown=not quiet):
        from dpaudit.cli.replay_file import plan_replay
        from dpaudit.engine.replay_outcome import lines_of
        from dpaudit.result.model import AuditResult
        from dpaudit.result.values import Verdict
        from dpaudit.running import MechanismError

    planned = None
    try:
        planned = plan_replay(AuditResult.from_json(file), folder=folder, code=not no_code, locked=not unlocked)
        lines = planned.described(trials, extend=extend)
        if dry_run:
            for line in (*lines, *(f"  {line}" for line in (planned.audit.inputs if planned.audit else ()))):
                show(line)
            return
        if not quiet:
            say("\n".join(lines))
        found = planned.run(trials=trials, extend=extend, seed=seed, jobs=jobs or DEFAULTS.jobs, quiet=quiet)
    except (ValueError, OSError, ImportError, OverflowError) as error:
        print_traceback(debug)
        refuse(unreadable(file, error))
    except MechanismError as error:
        print_traceback(debug)
        if planned is None:
            refuse(f"{file}: {error}")
        complain(f"{file}: the mechanism failed to run: {error}")
        if planned.audit is not None and planned.audit.lock is not None:
            say("the replay installs the exact packages of the audit; --unlocked lets the installer choose others")
        leave(INCONCLUSIVE)
    verdict = Verdict.INCONCLUSIVE
    if found.conclusive:
        verdict = Verdict.VIOLATION if found.refuted else Verdict.NO_VIOLATION
    lines = lines_of(found)
    lines[0] = f"{SIGNS[found.result.verdict.value].sign} {lines[0]}"
    lines[-1] = f"{SIGNS[verdict.value].sign} {lines[-1]}"
    show("\n".join(lines))
    leave(code_of(violated=verdict is Verdict.VIOLATION, broken=False, incomplete=not found.conclusive))
