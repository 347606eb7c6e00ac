"""`dpaudit compare`: runs the same audits with several versions of a package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.ending import leave, refuse
from dpaudit.cli.options import RUNS, SHOWN, Configs, RunOptions, with_run_options
from dpaudit.cli.run import checked_settings, run_and_judge
from dpaudit.cli.terminal import say
from dpaudit.cli.values import check_choice
from dpaudit.settings.audit import BACKENDS

if TYPE_CHECKING:
    from dpaudit.cli.run_configs import Outcome
    from dpaudit.config import PlannedAudit
    from dpaudit.result.model import AuditResult


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
        _report(variants, outcome, options, full=full)
    leave(code)


def _report(
    variants: Mapping[tuple[str, str], PlannedAudit], outcome: Outcome, options: RunOptions, *, full: bool
) -> None:
    """Print the table of versions, and write DIR/comparison.pdf."""
    from dpaudit.cli.console import screen
    from dpaudit.cli.terminal import drawn
    from dpaudit.result.atomic_write import write_placed
    from dpaudit_reports import comparison, to_pdf
    from dpaudit_reports.formats.versions import text

    by_name = {result.name: result for result in outcome.results}
    audits: dict[str, dict[str, AuditResult]] = {}
    missing: dict[tuple[str, str], str] = {}
    for (name, version), variant in variants.items():
        shown = audits.setdefault(name, {})
        if variant.config.name in by_name:
            shown[version] = by_name[variant.config.name]
        else:
            missing[name, version] = outcome.reasons.get(variant.config.name, "not run")
    drawn(text(audits, screen(), missing))
    try:
        if not options.no_pdf:
            document = to_pdf(comparison(audits, missing, full=full), paper=options.paper)
            write_placed(options.output / "comparison.pdf", document)
    except OSError as error:
        say(f"{options.shown}/comparison.pdf could not be written: {error.strerror}")
