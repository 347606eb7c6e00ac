"""`dpaudit run` runs the audits of config files, and `dpaudit compare` runs them with several versions of a package."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dpaudit.cli.lookup import list_code
from dpaudit.cli.options import RUNS, SHOWN, Configs, NoCode, Only, RunOptions, choice_option, option, with_run_options
from dpaudit.cli.terminal import code_of, drawn, leave, refuse, say, screen, waiting
from dpaudit_reports import FORMATS

if TYPE_CHECKING:
    from dpaudit.cli.runner import Runner
    from dpaudit.config.planned import PlannedAudit
    from dpaudit.result.model import AuditResult

_With = Annotated[
    list[str] | None,
    option("Version of a package; overrides the configs' `requires`.", "--with", metavar="PKG==VERSION", panel=RUNS),
]
_DryRun = Annotated[
    bool, option("Check the configs and list their code, without running the code.", "--dry-run", panel=RUNS)
]
_Locked = Annotated[
    bool, option("Install exactly the packages in DIR/NAME.lock, which an earlier run wrote.", "--locked", panel=RUNS)
]
_StopFirst = Annotated[bool, option("Stop at the first violation.", "-x", "--exitfirst", panel=RUNS)]
_Form = Annotated[
    str, choice_option("Format of the results on stdout; messages go to stderr.", FORMATS, "--format", panel=SHOWN)
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

    The audits of one command share one guarantee: if all claims are true, it reports any violation with probability at
    most 1 - confidence.

    A config names code, and running the config runs that code.  Check a stranger's config with `--dry-run` first.

    Exit codes: 0 no violation found, 1 violation, 2 wrong usage or config, 3 inconclusive or not completed, and 4
    internal error.
    """
    with waiting("loading", shown=not options.quiet):
        from dpaudit.config.files import only_named, read_configs
        from dpaudit.config.versions import with_locks, with_requirements
    with waiting("reading", shown=not options.quiet and sys.stderr.isatty()):
        planned = only_named(with_requirements(read_configs(configs), with_ or []), only or [])
        planned = with_locks(planned, options.output) if locked else planned
    if dry_run:
        list_code(planned)
    foreign = [f"{one.file}:{one.line}: {one.config.name} runs {one.code}" for one in planned if one.code]
    if no_code and foreign:
        refuse("\n".join(["--no-code allows builtin mechanisms only:", *foreign]))
    if not dry_run:
        leave(_exit_code(_made(planned, options, stop_first=stop_first, form=form)))


def _made(
    planned: Sequence[PlannedAudit],
    options: RunOptions,
    *,
    needs_all: bool = True,
    stop_first: bool = False,
    form: str = "table",
) -> Runner:
    """Make all audits, or refuse them before the first run; show all results, and the name of the output folder."""
    with waiting("loading the audits", shown=not options.quiet and sys.stderr.isatty()):
        from dpaudit.cli.runner import InOrder
        from dpaudit_reports import rendered
        from dpaudit_reports.formats import Audited, Run
    policy = InOrder(planned, needs_all=needs_all, stop_first=stop_first)
    runner = policy.run(options)
    if policy.stopped and not options.quiet:
        say("stopped at the first violation (-x); the later audits were not run")
    ended = "after the first violation (-x)" if policy.stopped else "the command was interrupted"
    audits = []
    for one in planned:
        name = one.config.name
        outcome = runner.outcomes.get(name)
        audits.append(
            Audited(
                name=name,
                result=None if outcome is None else outcome.result,
                reason=f"not run: {ended}" if outcome is None else outcome.words,
                failed=outcome is not None and outcome.result is None,
                expected=one.config.expect,
                file=one.file,
                line=one.line,
                saved=runner.saved.get(name),
            )
        )
    drawn(rendered(form, Run(audits=audits, together=runner.promise.words(runner.results)), screen()))
    if not options.quiet and (to_open := _to_open(runner)):
        say(f"results are in {options.shown}{to_open}")
    return runner


def _exit_code(runner: Runner) -> int:
    from dpaudit.result.values import Verdict

    results = runner.results
    unanswered = any(result.verdict is Verdict.INCONCLUSIVE for result in results)
    failed = any(outcome.result is None for outcome in runner.outcomes.values())
    return code_of(
        violated=any(result.violated for result in results),
        broken=runner.broken,
        incomplete=failed or unanswered or runner.unwritten or runner.interrupted,
    )


def _to_open(runner: Runner) -> str:
    """Return the name of a file to open: the report of the first violation, or of the first audit; "" if none is."""
    options = runner.options
    here = [one for one in runner.results if one.name in runner.saved]
    here = [one for one in here if runner.saved[one.name].parent == Path(options.shown)]
    if not here:
        return ""
    result = next((one for one in here if one.violated), here[0])
    pdf = runner.saved[result.name].with_suffix(".pdf")
    if options.no_pdf or not (options.output / pdf.name).is_file():
        return f"; to read one: dpaudit report {shlex.quote(str(runner.saved[result.name]))}"
    return f"; open {pdf}" if len(here) == 1 else f"; each audit has a report, such as {pdf}"


@with_run_options
def compare(
    configs: Configs,
    with_: Annotated[
        list[str],
        option(
            "Version to compare; repeat for each version.  Spaces separate packages of one version, such as "
            "'lib==1.0 numpy==1.26.4'.",
            "--with",
            metavar="PKG==VERSION",
            panel=RUNS,
        ),
    ],
    locked: Annotated[
        bool,
        option(
            "Install exactly the packages in DIR/NAME.lock, which an earlier comparison wrote.", "--locked", panel=RUNS
        ),
    ] = False,
    full: Annotated[
        bool, option("Add all sections of each audit to the document, on two pages each.", "--full", panel=SHOWN)
    ] = False,
    *,
    options: RunOptions,
) -> None:
    """Run the same audits with several versions of a package, and write one document, DIR/comparison.pdf.

    Each `--with` names a version, which replaces the one that the configs require.  Audits that do not require the
    package are skipped.  If one `--with` names several packages, it also installs those that the configs do not
    require.

    Audits are rows, and versions are columns.  If a version cannot be installed or imported, the reason is below the
    table.

    All audits share one guarantee.  The exit codes are those of `dpaudit run`.
    """
    if not options.quiet:
        say("loading ...")
    from dpaudit.cli.runner import write_file
    from dpaudit.config.files import read_configs
    from dpaudit.config.versions import side_by_side, with_locks
    from dpaudit_reports import comparison, to_pdf
    from dpaudit_reports.terminal import tables_text

    variants = side_by_side(read_configs(configs), with_)
    if locked:
        variants = dict(zip(variants, with_locks(variants.values(), options.output), strict=True))
    runner = _made(list(variants.values()), replace(options, no_pdf=True), needs_all=False)
    if runner.results:
        audits: dict[str, dict[str, AuditResult]] = {}
        missing: dict[tuple[str, str], str] = {}
        for (name, version), variant in variants.items():
            results, outcome = audits.setdefault(name, {}), runner.outcomes.get(variant.config.name)
            if outcome is not None and outcome.result is not None:
                results[version] = outcome.result
            else:
                missing[name, version] = "not run" if outcome is None else outcome.words
        compared = comparison(audits, missing, full=full)
        drawn(tables_text(compared, screen()))
        if not options.no_pdf:
            write_file("comparison.pdf", to_pdf(compared, paper=options.paper), options)
    leave(_exit_code(runner))
