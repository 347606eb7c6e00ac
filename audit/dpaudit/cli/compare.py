"""`dpaudit compare`: run the same audits with several versions of a package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.ending import leave, refuse
from dpaudit.cli.options import (
    RESULTS,
    Backend,
    Confidence,
    Configs,
    Debug,
    Each,
    Jobs,
    LogJson,
    NoPdf,
    Output,
    Quiet,
    Resume,
    Scheduler,
    Seed,
    Trials,
    absolute,
)
from dpaudit.cli.run import checked_settings, run_and_judge
from dpaudit.cli.terminal import say

if TYPE_CHECKING:
    from dpaudit.result.model import AuditResult


def compare(
    configs: Configs,
    with_: Annotated[
        list[str], typer.Option("--with", metavar="PKG==VERSION", help="A version; give the option for each of them.")
    ],
    output: Output = RESULTS,
    trials: Trials = None,
    confidence: Confidence = None,
    seed: Seed = None,
    jobs: Jobs = None,
    backend: Backend = "loky",
    scheduler: Scheduler = None,
    each: Each = False,
    resume: Resume = False,
    log_json: LogJson = None,
    no_pdf: NoPdf = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the same audits on several versions of a package: one table, and one document DIR/comparison.pdf.

    All of them share one promise, as for `dpaudit run`.
    Each version is `name==number` and takes the place of what the configs require; audits that do not require the
    package are left out.  Exit codes as for `dpaudit run`.
    """
    from dpaudit.config import ConfigError, read_configs, side_by_side

    output, shown, log_json = absolute(output), str(output), None if log_json is None else absolute(log_json)
    if not quiet:
        say("loading ...")
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
        pdf=False,
        resume=resume,
        log=log_json,
        quiet=quiet,
        debug=debug,
    )
    try:
        variants = side_by_side(read_configs(configs), with_)
    except ConfigError as error:
        refuse(str(error))
    results, code = run_and_judge(list(variants.values()), how)
    if results and not no_pdf:
        from dpaudit_reports import comparison, write_pdf

        by_name = {result.name: result for result in results}
        audits: dict[str, dict[str, AuditResult]] = {}
        for (name, version), variant in variants.items():
            if variant.config.name in by_name:
                audits.setdefault(name, {})[version] = by_name[variant.config.name]
        try:
            write_pdf(comparison(audits), output / "comparison.pdf")
        except OSError as error:
            say(f"{shown}/comparison.pdf could not be written: {error.strerror}")
    leave(code)
