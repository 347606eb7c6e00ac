"""`dpaudit bisect`: finds the releases of a package at which the verdict of audits changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.options import RUNS, Configs, Only, RunOptions, option, whole_option, with_run_options
from dpaudit.cli.terminal import code_of, drawn, interrupted_code, leave, refuse, say, screen, waiting

if TYPE_CHECKING:
    from dpaudit.result.command_outcomes import Bisection
    from dpaudit.result.model import AuditResult


@with_run_options
def bisect(
    configs: Configs,
    package: Annotated[str, typer.Argument(metavar="PACKAGE", help="Package that the configs require.")],
    *,
    options: RunOptions,
    from_: Annotated[
        str | None, option("Oldest release.  Default: the first.", "--from", metavar="VERSION", panel=RUNS)
    ] = None,
    to: Annotated[
        str | None, option("Newest release.  Default: the latest.", "--to", metavar="VERSION", panel=RUNS)
    ] = None,
    most: Annotated[
        int | None,
        whole_option(
            panel=RUNS,
            least=2,  # one for each end of the range
            help="Maximum number of releases to audit.  Default: 2 * ceil(log2(N)) + 2 of N releases, and one more for "
            "each release that the configs require.",
        ),
    ] = None,
    only: Only = None,
) -> None:
    """Find the releases of a package at which the verdict changes, and write DIR/bisection.json.

    The releases are those of pip's package index.  Audited are the release that the config requires, both ends of the
    range, and then the middle between a good and a bad release.  The remaining audits, up to --most, look for changes
    elsewhere.

    Pre-releases and yanked releases are left out unless --from or --to names them.  Releases that cannot be installed,
    loaded or run once are skipped.  The search ends after three releases in a row that the network keeps from being
    installed.

    A release is bad if an audit refutes its claim, and good if no violation was found.  If the audits miss the fault of
    a bad release, the command may name a wrong one; the probability of this is not bounded.

    All audits share one guarantee: the command refutes any true claim with probability at most 1 - confidence.

    Exit codes: 0 no bad release found; 1 a bad release found; 2 wrong usage or config, or no release can be audited; 3
    inconclusive: no bad release found, and an audit was inconclusive, or the oldest release, the newest release or most
    of the chosen releases could not be audited; 4 internal error.
    """
    with waiting("loading", shown=not options.quiet):
        from dpaudit.cli.audit_releases import Search, release_range
        from dpaudit.config.files import only_named, read_configs
        from dpaudit.config.versions import requiring
        from dpaudit.result.command_outcomes import State
    audits = requiring(only_named(read_configs(configs), only or []), package)
    pythons = {one.config.mechanism.python_version for one in audits}
    with waiting(f"asking pip for the releases of {package}", shown=not options.quiet):
        between = release_range(package, pythons, from_, to)
    for message in between.unread:
        say(f"a package index could not be read, so releases may be missing: {message}")
    search = Search(audits, package, between, options, most)
    outcome = search.run()
    states = outcome.states
    if all(state in (None, State.SKIPPED) for state in states):
        if outcome.interrupted:
            leave(interrupted_code())
        refuse(f"no release of {package} could be audited; see the messages above")
    _report(outcome, options)
    tried = [state for state in states if state is not None]
    complete = {states[0], states[-1]} == {State.GOOD} and 2 * tried.count(State.GOOD) >= len(tried)
    unfinished = outcome.interrupted or outcome.offline or State.OPEN in states
    leave(code_of(violated=State.BAD in states, broken=search.runner.broken, incomplete=unfinished or not complete))


def _report(outcome: Bisection, options: RunOptions) -> None:
    """Print the outcome, and write DIR/bisection.json and DIR/bisection.pdf."""
    from dpaudit.cli.report import BISECTION
    from dpaudit.cli.runner import write_file
    from dpaudit_reports import comparison, to_pdf
    from dpaudit_reports.command_outcomes import bisection_text

    drawn(bisection_text(outcome, screen()))
    results: dict[str, dict[str, AuditResult]] = {}
    missing: dict[tuple[str, str], str] = {}
    for release in outcome.releases:
        missing |= {(title, release.version): reason for title, reason in release.missing.items()}
        for title, result in release.results.items():
            results.setdefault(title, {})[release.version] = result
    written = write_file(BISECTION, json.dumps(outcome.to_dict(), indent=1) + "\n", options)
    if results and not options.no_pdf:
        written &= write_file("bisection.pdf", to_pdf(comparison(results, missing), paper=options.paper), options)
    if written and not options.quiet:
        say(f"the history is in {options.shown}/{BISECTION}, and the results of the audits are next to it")
