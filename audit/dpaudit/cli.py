"""The command line: parses, calls, prints.  Results go to stdout, talk to stderr.

Exit codes: 0 no violation found, 1 violation, 2 wrong usage or config, 3 inconclusive or could not be completed; of
several audits the most serious one counts (1 over 3 over 0; 2 before anything runs).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from dpaudit.claims import TradeoffFunction
    from dpaudit.config import PlannedAudit
    from dpaudit.result import AuditResult
    from dpaudit.running import How

NO_VIOLATION, VIOLATION, WRONG_USAGE, INCONCLUSIVE = 0, 1, 2, 3

app = typer.Typer(
    name="dpaudit",
    help="Empirical audits of differential-privacy claims.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"dpaudit {version('dpaudit')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Empirical audits of differential-privacy claims."""


def main() -> None:
    """Entry point of the command `dpaudit`."""
    app()


Configs = Annotated[list[Path], typer.Argument(metavar="CONFIG...", help="Config files, or folders of them.")]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where results go.")]
Trials = Annotated[int | None, typer.Option(min=1, help="Most runs on each dataset, instead of the configs'.")]
Confidence = Annotated[float | None, typer.Option(help="Between 0 and 1, instead of the configs'.")]
Seed = Annotated[int | None, typer.Option(help="Instead of the configs'.")]
Jobs = Annotated[
    int | None, typer.Option(help="Processes the mechanisms run in; -1 for all.  1 unless given; -1 with dask and ray.")
]
Backend = Annotated[
    str, typer.Option(metavar="loky|dask|ray", help="Whose processes they are: this machine's or a cluster's.")
]
Scheduler = Annotated[str | None, typer.Option(metavar="ADDR", help="Of dask, e.g. tcp://127.0.0.1:8786, or of ray.")]
NoPdf = Annotated[bool, typer.Option("--no-pdf", help="Write no PDF documents.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only the table of results, no progress.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Keep all outputs in DIR/NAME.trials, and go on from those that are there.")
]
LogJson = Annotated[
    Path | None, typer.Option("--log-json", metavar="FILE", help="Add events to FILE, one JSON object a line.")
]
NoCode = Annotated[bool, typer.Option("--no-code", help="Refuse whatever runs code that is not dpaudit's own.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show Python tracebacks of errors.")]
_RESULTS = Path("dpaudit-results")


@app.command()
def run(
    configs: Configs,
    output: Output = _RESULTS,
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

    A config's `python:`, `command:` and `requires:` run code, and running the config runs it: look at a stranger's
    config with `--dry-run` first.  Exit code: 0 no violation found, 1 violation, 2 wrong usage or config, 3
    inconclusive or could not be completed.
    """
    from dpaudit.config import ConfigError, read_configs, with_requirements

    try:
        planned = with_requirements(read_configs(configs), with_ or [])
    except ConfigError as error:
        _refuse(str(error))
    if dry_run:
        for one in planned:
            typer.echo(f"{one.config.name}: runs {one.code or 'no code but dpaudit itself'}")
    if no_code and (
        foreign := [f"{one.file}:{one.line}: {one.config.name} runs {one.code}" for one in planned if one.code]
    ):
        _refuse("\n".join(["--no-code allows builtin mechanisms only:", *foreign]))
    if dry_run:
        return
    how = _how(
        output=output,
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
    raise typer.Exit(_run_all(planned, how)[1])


@app.command()
def compare(
    configs: Configs,
    with_: Annotated[
        list[str], typer.Option("--with", metavar="PKG==VERSION", help="A version; give the option for each of them.")
    ],
    output: Output = _RESULTS,
    trials: Trials = None,
    confidence: Confidence = None,
    seed: Seed = None,
    jobs: Jobs = None,
    backend: Backend = "loky",
    scheduler: Scheduler = None,
    resume: Resume = False,
    log_json: LogJson = None,
    no_pdf: NoPdf = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the same audits on several versions of a package: one table, and one document DIR/comparison.pdf.

    Each version is `name==number` and takes the place of what the configs require; audits that do not require the
    package are left out.  Exit codes as for `dpaudit run`.
    """
    from dpaudit.config import ConfigError, read_configs, side_by_side

    how = _how(
        output=output,
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
        _refuse(str(error))
    results, code = _run_all(list(variants.values()), how)
    if results and not no_pdf:
        from dpaudit_reports import comparison, write_pdf

        by_name = {result.name: result for result in results}
        audits: dict[str, dict[str, AuditResult]] = {}
        for (name, version), variant in variants.items():
            if variant.config.name in by_name:
                audits.setdefault(name, {})[version] = by_name[variant.config.name]
        write_pdf(comparison(audits), output / "comparison.pdf")
    raise typer.Exit(code)


def _how(
    *, output: Path, trials: int | None, confidence: float | None, seed: int | None, jobs: int | None, **others: Any
) -> How:
    from dpaudit.running import How

    if confidence is not None and not 0 < confidence < 1:
        _refuse(f"--confidence must lie strictly between 0 and 1, got {confidence}")
    if jobs is not None and (jobs == 0 or jobs < -1):
        _refuse(f"--jobs must be -1 or at least 1, got {jobs}")
    if jobs is None:
        jobs = 1 if others["backend"] == "loky" else -1
    given = {"trials": trials, "confidence": confidence, "seed": seed}
    settings = {name: value for name, value in given.items() if value is not None}
    return How(settings=settings, output=output, jobs=jobs, **others)


def _run_all(planned: list[PlannedAudit], how: How) -> tuple[list[AuditResult], int]:
    """Results, and the exit code."""
    from dpaudit.running import NotReady, run_all

    try:
        results, failed = run_all(planned, how)
    except NotReady as error:
        _refuse(str(error))
    return results, _exit_code(results, failed=bool(failed))


def _exit_code(results: list[AuditResult], *, failed: bool) -> int:
    from dpaudit.result import Verdict

    if any(result.violated for result in results):
        return VIOLATION
    if failed or any(result.verdict is Verdict.INCONCLUSIVE for result in results):
        return INCONCLUSIVE
    return NO_VIOLATION


@app.command()
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
    from dpaudit.mechanisms import MechanismError
    from dpaudit.printable import printable
    from dpaudit.replaying import plan_replay
    from dpaudit.result import AuditResult

    try:
        planned = plan_replay(AuditResult.from_json(file), folder=folder, code=not no_code)
        if dry_run:
            typer.echo(str(planned))
            return
        if not quiet:
            _say(str(planned))
        found = planned.run(trials=trials, extend=extend, seed=seed, jobs=jobs or 1, quiet=quiet)
    except (ValueError, OSError) as error:
        if debug:
            raise
        _refuse(printable(f"{file}: {error}" if str(file) not in str(error) else str(error)))
    except MechanismError as error:
        if debug:
            raise
        _say(printable(f"{file}: the mechanism could not be run: {error}"))
        raise typer.Exit(INCONCLUSIVE) from None
    typer.echo(str(found))
    raise typer.Exit(INCONCLUSIVE if not found.reproduced else VIOLATION if found.refuted else NO_VIOLATION)


@app.command()
def report(
    files: Annotated[list[Path], typer.Argument(metavar="RESULT.json...", help="Results that `dpaudit run` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The document to write: .pdf, .html or .md.  Else: print."),
    ] = None,
) -> None:
    """Make one document of one or many results, or print it.

    Results that are not what their own counts give are refused.  A result of another version of dpaudit whose p-value
    this one does not compute from its counts gets a warning in the report.
    """
    from dataclasses import replace

    from dpaudit.engine.replay import contradictions, unchecked
    from dpaudit.result import AuditResult
    from dpaudit_reports import print_report, write_report

    try:
        results = [AuditResult.from_json(file) for file in files]
        wrong = [f"{file}: {words}" for file, one in zip(files, results, strict=True) for words in contradictions(one)]
        if wrong:
            _refuse("\n".join(["the results contradict themselves, so they were changed:", *wrong]))
        for i, words in enumerate(map(unchecked, results)):
            if words:
                _say(f"{files[i]}: {words}")
                results[i] = replace(results[i], warnings=(*results[i].warnings, words))
        if output is None:
            print_report(results)
        else:
            write_report(results, output)
    except (ValueError, OSError) as error:
        _refuse(str(error))


@app.command()
def convert(
    claims: Annotated[
        list[str], typer.Argument(metavar="CLAIM...", help='E.g. "gaussian(mu=1)"; `dpaudit list claims`.')
    ],
    delta: Annotated[float | None, typer.Option(help="Print only the least epsilon at this delta.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Print only the least delta at this epsilon.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw curve and profile: .svg, .pdf, .png.")] = None,
) -> None:
    """Say what a claim means in other terms: epsilon, delta, mu, the trade-off curve."""
    from dpaudit.claims import parse_claim
    from dpaudit.numbers import upper

    if delta is not None and epsilon is not None:
        _refuse("--delta and --epsilon exclude each other")
    try:
        parsed = [parse_claim(text) for text in claims]
        if delta is not None:
            lines = [upper(claim.epsilon(delta), 10) for claim in parsed]
        elif epsilon is not None:
            lines = [upper(float(claim.delta(epsilon)), 10) for claim in parsed]
        else:
            lines = [line for claim in parsed for line in _conversions(claim)]
        if plot is not None:
            from dpaudit_reports import plot_claims

            plot_claims(parsed).savefig(plot)
    except (ValueError, ImportError, OSError) as error:
        _refuse(str(error))
    for line in lines:
        typer.echo(line)


def _conversions(claim: TradeoffFunction) -> list[str]:
    from dpaudit.numbers import lower, upper

    errors = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
    return [
        str(claim),
        f"  mu             {upper(claim.mu(), 10):>12s}",
        *(
            f"  epsilon        {upper(claim.epsilon(d), 10):>12s}  at delta = {d:g}"
            for d in (0.0, 1e-9, 1e-6, 1e-5, 1e-3)
        ),
        *(
            f"  delta          {upper(float(claim.delta(e)), 10):>12s}  at epsilon = {e:g}"
            for e in (0.0, 0.5, 1.0, 2.0, 5.0)
        ),
        *(f"  type II error  {lower(float(claim.beta(a)), 10):>12s}  at type I error {a:g}" for a in errors),
    ]


@app.command()
def plan(
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help='What is promised, e.g. "gaussian(mu=1)".')],
    truth: Annotated[str, typer.Argument(metavar="TRUTH", help='What is suspected to hold, e.g. "gaussian(mu=1.2)".')],
    power: Annotated[float, typer.Option(help="Probability with which the violation is to be found.")] = 0.9,
    confidence: Annotated[float, typer.Option(help="Of the audit.")] = 0.99,
) -> None:
    """Say how many trials it takes to refute CLAIM if only TRUTH holds."""
    from dpaudit.planning import plan as plan_trials

    try:
        typer.echo(str(plan_trials(claim, truth, power=power, confidence=confidence)))
    except (ValueError, ImportError) as error:
        _refuse(str(error))


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(metavar="attacks|claims|mechanisms|configs")],
) -> None:
    """List the attacks, claims, builtin mechanisms, or the configs in this folder."""
    listings = {"attacks": _attacks, "claims": _claims, "mechanisms": _mechanisms, "configs": _configs}
    if what not in listings:
        _refuse(f"list must be followed by one of {', '.join(listings)}; got {what!r}")
    rows = listings[what]()
    width = max((len(name) for name, _ in rows), default=0)
    for name, about in rows:
        typer.echo(f"{name:{width}s}  {about}".rstrip())


def _attacks() -> list[tuple[str, str]]:
    from dpaudit.registry import attack_classes

    return [(name, _first_line(kind)) for name, kind in attack_classes().items()]


def _claims() -> list[tuple[str, str]]:
    from dpaudit.claims import CLAIMS, OPERATIONS

    return [(name, _first_line(kind)) for name, kind in {**CLAIMS, **OPERATIONS}.items()]


def _mechanisms() -> list[tuple[str, str]]:
    from dpaudit.mechanisms.builtin import BUILTIN

    return [(name, _first_line(kind)) for name, kind in BUILTIN.items()]


def _configs() -> list[tuple[str, str]]:
    from dpaudit.config import ConfigError, read_configs

    found: list[tuple[str, str]] = []
    for file in sorted(p for p in Path().rglob("*.y*ml") if p.suffix in (".yaml", ".yml")):
        try:
            found += [(str(file), audit.config.name) for audit in read_configs([file])]
        except ConfigError:
            continue  # some other YAML file
    return found


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().split("\n")[0]


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The config to write.")] = Path("audit.yaml"),
) -> None:
    """Write a commented config to start from."""
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(_STARTING_CONFIG)
    except FileExistsError:
        _refuse(f"{file} exists already; name another file")
    except OSError as error:
        _refuse(f"{file}: {error.strerror}")
    _say(f"wrote {file}; run it with: dpaudit run {file}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of configs, for editors."""
    from dpaudit.config import schema as config_schema

    typer.echo(json.dumps(config_schema(), indent=2))


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _refuse(text: str) -> NoReturn:
    _say(text)
    raise typer.Exit(WRONG_USAGE)


_STARTING_CONFIG = """\
# An audit of one mechanism.  Run it with: dpaudit run audit.yaml
name: my-audit
source: where the claim is made, e.g. a URL          # printed in the report

# What is promised about every pair of neighbouring datasets: `dpaudit list claims`
claim: gaussian(mu=1)

mechanism:
  builtin: gaussian               # `dpaudit list mechanisms`; or your own code:
  params: {sigma: 1.0}
  # python: my_module.py:release  # a function (dataset, rng) -> output, in a file beside this one
  # batched: true                 # if it takes (dataset, n, rng) and returns n outputs

# Two datasets that count as neighbours.  The audit tries to tell the outputs on d0 from those on d1.
pairs:
  - {d0: [0, 0, 1], d1: [0, 1, 1], relation: replace_one}

trials: 100000      # most runs on each dataset; it stops earlier once the claim is refuted
confidence: 0.999   # a true claim is called violated with probability at most 1 - confidence
expect: no violation
"""
