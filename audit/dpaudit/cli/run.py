"""`dpaudit run` runs the audits of config files, and `dpaudit compare` runs them with several versions of a package."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.ending import code_of, leave, refuse
from dpaudit.cli.options import (
    RUNS,
    SHOWN,
    Configs,
    NoCode,
    Only,
    RunOptions,
    check_choice,
    completing,
    with_run_options,
)
from dpaudit.cli.terminal import drawn, say, screen, show, waiting
from dpaudit.settings.audit import BACKENDS, DEFAULTS, default_jobs
from dpaudit.settings.limits import check_confidence, check_confirm, check_jobs
from dpaudit.text.printable import one_line
from dpaudit.text.signs import PAPERS
from dpaudit_reports.formats import FORMATS

if TYPE_CHECKING:
    from dpaudit.cli.prepare_run import CommandSettings
    from dpaudit.cli.run_configs import Outcome
    from dpaudit.config import PlannedAudit
    from dpaudit.result.model import AuditResult

_With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="PKG==VERSION",
        rich_help_panel=RUNS,
        help="Version of a package; overrides the configs' `requires`.",
    ),
]
_DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", rich_help_panel=RUNS, help="Check the configs and list their code, without running the code."
    ),
]
_Locked = Annotated[
    bool,
    typer.Option(
        "--locked",
        rich_help_panel=RUNS,
        help="Install exactly the packages in DIR/NAME.lock, which an earlier run wrote.",
    ),
]
_StopFirst = Annotated[
    bool, typer.Option("-x", "--exitfirst", rich_help_panel=RUNS, help="Stop at the first violation.")
]
_Form = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="|".join(FORMATS),
        autocompletion=completing(FORMATS),
        rich_help_panel=SHOWN,
        help="Format of the results on stdout; messages go to stderr.",
    ),
]


@with_run_options
def run(
    configs: Configs,
    *,
    options: RunOptions,
    with_: _With = None,
    dry_run: _DryRun = False,
    no_code: NoCode = False,
    locked: _Locked = False,
    only: Only = None,
    stop_first: _StopFirst = False,
    form: _Form = "table",
) -> None:
    """Run the audits in config files and write DIR/NAME.json and DIR/NAME.pdf for each audit.

    The audits of one command share one guarantee.  If all claims are true, the probability that the
    command reports any violation is at most 1 - confidence.

    The keys `python:`, `command:` and `requires:` of a config name code, and running the config runs that code.  Check
    a stranger's config with `--dry-run` first.

    Exit codes: 0 no violation found, 1 violation, 2 wrong usage or config, 3 inconclusive or not completed, and 4
    internal error.
    """
    check_choice("--format", form, FORMATS)
    check_choice("--backend", options.backend, BACKENDS)
    with waiting("loading", shown=not options.quiet):
        from dpaudit.config import ConfigError, only_named, read_configs, with_locks, with_requirements
    try:
        with waiting("reading", shown=not options.quiet and sys.stderr.isatty()):
            planned = only_named(with_requirements(read_configs(configs), with_ or []), only or [])
            planned = with_locks(planned, options.output) if locked else planned
    except ConfigError as error:
        refuse(*error.problems)
    if dry_run:
        for one in planned:
            show(one_line(f"{one.config.name}: runs {one.code or 'no code outside dpaudit'}"))
            for line in one.inputs:
                show(f"  {line}")
    foreign = [f"{one.file}:{one.line}: {one.config.name} runs {one.code}" for one in planned if one.code]
    if no_code and foreign:
        refuse("\n".join(["--no-code allows builtin mechanisms only:", *foreign]))
    if not dry_run:
        command = checked_settings(options, pdf=not options.no_pdf)
        leave(run_and_judge(planned, replace(command, form=form, stop_first=stop_first))[1])


def checked_settings(options: RunOptions, *, pdf: bool) -> CommandSettings:
    """Check the options that typer does not check, and combine them with their defaults."""
    from dpaudit.cli.prepare_run import CommandSettings

    confidence, jobs = options.confidence, options.jobs
    check_choice("--paper", options.paper, PAPERS)
    try:
        if confidence is not None:
            check_confidence(confidence, "--confidence", written=f"{confidence}".removesuffix(".0"))
        if jobs is not None:
            check_jobs(jobs, "--jobs")
        confirm = None if options.confirm is None else check_confirm(options.confirm, "--confirm")
    except ValueError as error:
        refuse(str(error))
    unchanged = ("output", "shown", "trials", "confidence", "seed", "backend", "scheduler", "each", "paper", "quiet")
    return CommandSettings(
        **{name: getattr(options, name) for name in (*unchanged, "verbose", "debug")},
        confirm=confirm,
        jobs=default_jobs(options.backend) if jobs is None else jobs,
        pdf=pdf,
        keep_outputs=options.resume or options.resume_anyway,
        resume="anyway" if options.resume_anyway else DEFAULTS.resume,
        log=options.log_json,
    )


def run_and_judge(planned: list[PlannedAudit], command: CommandSettings) -> tuple[Outcome, int]:
    with waiting("loading the audits", shown=not command.quiet and sys.stderr.isatty()):
        from dpaudit.cli.prepare_run import NotReady
        from dpaudit.cli.run_configs import run_all
    try:
        outcome = run_all(planned, command)
    except NotReady as error:
        refuse(*error.problems)
    return outcome, _exit_code(outcome)


def _exit_code(outcome: Outcome) -> int:
    from dpaudit.result.values import Verdict

    unanswered = any(result.verdict is Verdict.INCONCLUSIVE for result in outcome.results)
    return code_of(
        violated=any(result.violated for result in outcome.results),
        broken=bool(outcome.broken),
        incomplete=bool(outcome.failed) or outcome.interrupted or unanswered,
    )


@with_run_options
def compare(
    configs: Configs,
    with_: Annotated[
        list[str],
        typer.Option(
            "--with",
            metavar="PKG==VERSION",
            rich_help_panel=RUNS,
            help="Version to compare; repeat for each version.  Spaces separate packages of one version, such as "
            "'lib==1.0 numpy==1.26.4'.",
        ),
    ],
    locked: Annotated[
        bool,
        typer.Option(
            "--locked",
            rich_help_panel=RUNS,
            help="Install exactly the packages in DIR/NAME.lock, which an earlier comparison wrote.",
        ),
    ] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            rich_help_panel=SHOWN,
            help="Add all sections of each audit to the document, on about three pages.",
        ),
    ] = False,
    *,
    options: RunOptions,
) -> None:
    """Run the same audits with several versions of a package, and write one document, DIR/comparison.pdf.

    Each `--with` names a version as `package==number`, which replaces the version that the configs require.  Audits
    that do not require the package are skipped.  If one `--with` names several packages, it also installs those that
    the configs do not require.

    The document has audits as rows and versions as columns.  A version that cannot be installed or imported is a cell
    with the reason below the table.

    All audits share one guarantee.  The exit codes are those of `dpaudit run`.
    """
    from dpaudit.config import ConfigError, read_configs, side_by_side, with_locks

    check_choice("--backend", options.backend, BACKENDS)
    if not options.quiet:
        say("loading ...")
    command = checked_settings(options, pdf=False)
    try:
        variants = side_by_side(read_configs(configs), with_)
        if locked:
            variants = dict(zip(variants, with_locks(variants.values(), options.output), strict=True))
    except ConfigError as error:
        refuse(*error.problems)
    outcome, code = run_and_judge(list(variants.values()), replace(command, needs_all=False))
    if outcome.results:
        _report_versions(variants, outcome, options, full=full)
    leave(code)


def _report_versions(
    variants: Mapping[tuple[str, str], PlannedAudit], outcome: Outcome, options: RunOptions, *, full: bool
) -> None:
    from dpaudit.result.atomic_write import write_placed
    from dpaudit_reports import comparison, to_pdf
    from dpaudit_reports.terminal import tables_text

    by_name = {result.name: result for result in outcome.results}
    audits: dict[str, dict[str, AuditResult]] = {}
    missing: dict[tuple[str, str], str] = {}
    for (name, version), variant in variants.items():
        shown = audits.setdefault(name, {})
        if variant.config.name in by_name:
            shown[version] = by_name[variant.config.name]
        else:
            missing[name, version] = outcome.reasons.get(variant.config.name, "not run")
    compared = comparison(audits, missing, full=full)
    drawn(tables_text(compared, screen()))
    try:
        if not options.no_pdf:
            write_placed(options.output / "comparison.pdf", to_pdf(compared, paper=options.paper))
    except OSError as error:
        say(f"{options.shown}/comparison.pdf could not be written: {error.strerror}")
