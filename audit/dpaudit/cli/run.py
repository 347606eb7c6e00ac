"""`dpaudit run`: run the audits of config files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpaudit.cli.ending import INCONCLUSIVE, INTERNAL_ERROR, NO_VIOLATION, VIOLATION, leave, refuse
from dpaudit.cli.options import (
    RESULTS,
    Backend,
    Confidence,
    Configs,
    Debug,
    Each,
    Jobs,
    LogJson,
    NoCode,
    NoPdf,
    Output,
    Quiet,
    Resume,
    Scheduler,
    Seed,
    Trials,
    absolute,
)
from dpaudit.cli.terminal import show, waiting

if TYPE_CHECKING:
    from dpaudit.cli.run_configs import How, Outcome
    from dpaudit.config import PlannedAudit
    from dpaudit.result.model import AuditResult


def run(
    configs: Configs,
    output: Output = RESULTS,
    trials: Trials = None,
    confidence: Confidence = None,
    seed: Seed = None,
    jobs: Jobs = None,
    backend: Backend = "loky",
    scheduler: Scheduler = None,
    with_: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="PKG==VERSION", help="Instead of what the configs require of that package."),
    ] = None,
    each: Each = False,
    resume: Resume = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check the configs, and say what code they would run.")
    ] = False,
    no_code: NoCode = False,
    log_json: LogJson = None,
    no_pdf: NoPdf = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the audits of config files; writes DIR/NAME.json and DIR/NAME.pdf for each.

    The audits of one command share one promise: if all claims are true, any violation is reported with probability at
    most 1 - confidence.

    A config's `python:`, `command:` and `requires:` run code, and running the config runs it: look at a stranger's
    config with `--dry-run` first.  Exit code: 0 no violation found, 1 violation, 2 wrong usage or config, 3
    inconclusive or could not be completed, 4 internal error.
    """
    output, shown, log_json = absolute(output), str(output), None if log_json is None else absolute(log_json)
    with waiting("loading", shown=not quiet):
        from dpaudit.config import ConfigError, read_configs, with_requirements

        try:
            planned = with_requirements(read_configs(configs), with_ or [])
        except ConfigError as error:
            refused = str(error)
        else:
            refused = ""
    if refused:
        refuse(refused)
    if dry_run:
        for one in planned:
            show(f"{one.config.name}: runs {one.code or 'no code but dpaudit itself'}")
    if no_code and (
        foreign := [f"{one.file}:{one.line}: {one.config.name} runs {one.code}" for one in planned if one.code]
    ):
        refuse("\n".join(["--no-code allows builtin mechanisms only:", *foreign]))
    if dry_run:
        return
    how = checked_settings(
        output=output,
        shown=shown,
        each=each,
        trials=trials,
        confidence=confidence,
        seed=seed,
        jobs=jobs,
        backend=backend,
        scheduler=scheduler,
        pdf=not no_pdf,
        resume=resume,
        log=log_json,
        quiet=quiet,
        debug=debug,
    )
    leave(run_and_judge(planned, how)[1])


def checked_settings(
    *, output: Path, trials: int | None, confidence: float | None, seed: int | None, jobs: int | None, **others: Any
) -> How:
    from dpaudit.cli.run_configs import How

    if confidence is not None and not 0 < confidence < 1:
        hint = f"; did you mean {confidence / 100:g}?" if 1 < confidence < 100 else ""
        refuse(f"--confidence must lie strictly between 0 and 1, got {confidence:g}{hint}")
    if jobs is not None and (jobs == 0 or jobs < -1):
        refuse(f"--jobs must be -1 or at least 1, got {jobs}")
    if jobs is None:
        jobs = 1 if others["backend"] == "loky" else -1
    given = {"trials": trials, "confidence": confidence, "seed": seed}
    settings = {name: value for name, value in given.items() if value is not None}
    return How(settings=settings, output=output, jobs=jobs, **others)


def run_and_judge(planned: list[PlannedAudit], how: How) -> tuple[list[AuditResult], int]:
    """Results, and the exit code."""
    with waiting("loading the audits", shown=not how.quiet and sys.stderr.isatty()):
        from dpaudit.cli.run_configs import NotReady, run_all
    try:
        outcome = run_all(planned, how)
    except NotReady as error:
        refuse(str(error))
    return outcome.results, _exit_code(outcome)


def _exit_code(outcome: Outcome) -> int:
    """The most serious of what happened: a violation, an internal error, no answer, no violation."""
    from dpaudit.result.values import Verdict

    if any(result.violated for result in outcome.results):
        return VIOLATION
    if outcome.broken:
        return INTERNAL_ERROR
    unanswered = any(result.verdict is Verdict.INCONCLUSIVE for result in outcome.results)
    return INCONCLUSIVE if outcome.failed or outcome.interrupted or unanswered else NO_VIOLATION
