"""The command line: parses, calls, prints.  Results go to stdout, talk to stderr.

Exit codes: 0 no violation found, 1 violation, 2 wrong usage or config, 3 inconclusive or could not be completed, 4
internal error; of several audits the most serious one counts (1 over 4 over 3 over 0; 2 before anything runs).
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dpaudit.cli.terminal import finish, prepare, say, show, waiting

if TYPE_CHECKING:
    from dpaudit.claims import TradeoffFunction
    from dpaudit.cli.run_configs import How, Outcome
    from dpaudit.config import PlannedAudit
    from dpaudit.result.model import AuditResult

NO_VIOLATION, VIOLATION, WRONG_USAGE, INCONCLUSIVE, INTERNAL_ERROR = 0, 1, 2, 3, 4
INTERRUPTED = 130

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
        from dpaudit.text.version import __version__

        show(f"dpaudit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Empirical audits of differential-privacy claims."""


_left: list[int] = []  # the exit codes that commands chose, of which a process has one


def main() -> None:
    """Entry point of the command `dpaudit`."""
    prepare()
    code: Any = NO_VIOLATION
    try:
        app()
    except SystemExit as end:
        code = end.code if end.code is not None else NO_VIOLATION
        if code == VIOLATION and _left != [VIOLATION]:  # typer ends with 1 when its output cannot be written
            code = INCONCLUSIVE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException as error:
        code = _broken(error)
    finish()
    sys.exit(code)


def _broken(error: BaseException) -> int:
    """Report an error of dpaudit itself; the exit code."""
    from dpaudit.cli.internal_errors import report_internal_error

    say(report_internal_error(error, debug="--debug" in sys.argv))
    return INTERNAL_ERROR


def _leave(code: int) -> NoReturn:
    _left[:] = [code]
    raise typer.Exit(code)


def _command(name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command of `app` in which nothing unexpected passes for a verdict."""

    def registered(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def guarded(*values: Any, **named: Any) -> None:
            try:
                command(*values, **named)
            except (typer.Exit, typer.Abort, KeyboardInterrupt):
                raise
            except BaseException as error:  # SystemExit too, which only foreign code raises here
                _leave(_broken(error))

        guarded.__signature__ = inspect.signature(command, eval_str=True)  # type: ignore[attr-defined]
        app.command(name)(guarded)
        return command

    return registered


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
Quiet = Annotated[
    bool,
    typer.Option(
        "-q", "--quiet", help="No progress: only results, and the warnings of a violation or an inconclusive audit."
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Keep all outputs in DIR/NAME.trials, and go on from those that are there.")
]
LogJson = Annotated[
    Path | None, typer.Option("--log-json", metavar="FILE", help="Add events to FILE, one JSON object a line.")
]
Each = Annotated[
    bool, typer.Option("--each", help="Keep each audit's own confidence, instead of one promise for all of them.")
]
NoCode = Annotated[bool, typer.Option("--no-code", help="Refuse whatever runs code that is not dpaudit's own.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show Python tracebacks of errors.")]
_RESULTS = Path("dpaudit-results")


@_command()
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
    output, shown, log_json = _absolute(output), str(output), None if log_json is None else _absolute(log_json)
    with waiting("loading", shown=not quiet):
        from dpaudit.config import ConfigError, read_configs, with_requirements

        try:
            planned = with_requirements(read_configs(configs), with_ or [])
        except ConfigError as error:
            refused = str(error)
        else:
            refused = ""
    if refused:
        _refuse(refused)
    if dry_run:
        for one in planned:
            show(f"{one.config.name}: runs {one.code or 'no code but dpaudit itself'}")
    if no_code and (
        foreign := [f"{one.file}:{one.line}: {one.config.name} runs {one.code}" for one in planned if one.code]
    ):
        _refuse("\n".join(["--no-code allows builtin mechanisms only:", *foreign]))
    if dry_run:
        return
    how = _how(
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
    _leave(_run_all(planned, how)[1])


@_command()
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

    output, shown, log_json = _absolute(output), str(output), None if log_json is None else _absolute(log_json)
    if not quiet:
        say("loading ...")
    how = _how(
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
        _refuse(str(error))
    results, code = _run_all(list(variants.values()), how)
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
    _leave(code)


def _how(
    *, output: Path, trials: int | None, confidence: float | None, seed: int | None, jobs: int | None, **others: Any
) -> How:
    from dpaudit.cli.run_configs import How

    if confidence is not None and not 0 < confidence < 1:
        hint = f"; did you mean {confidence / 100:g}?" if 1 < confidence < 100 else ""
        _refuse(f"--confidence must lie strictly between 0 and 1, got {confidence:g}{hint}")
    if jobs is not None and (jobs == 0 or jobs < -1):
        _refuse(f"--jobs must be -1 or at least 1, got {jobs}")
    if jobs is None:
        jobs = 1 if others["backend"] == "loky" else -1
    given = {"trials": trials, "confidence": confidence, "seed": seed}
    settings = {name: value for name, value in given.items() if value is not None}
    return How(settings=settings, output=output, jobs=jobs, **others)


def _run_all(planned: list[PlannedAudit], how: How) -> tuple[list[AuditResult], int]:
    """Results, and the exit code."""
    with waiting("loading the audits", shown=not how.quiet and sys.stderr.isatty()):
        from dpaudit.cli.run_configs import NotReady, run_all
    try:
        outcome = run_all(planned, how)
    except NotReady as error:
        _refuse(str(error))
    return outcome.results, _exit_code(outcome)


def _exit_code(outcome: Outcome) -> int:
    """The most serious of what happened: a violation, an internal error, no answer, no violation."""
    from dpaudit.result.model import Verdict

    if any(result.violated for result in outcome.results):
        return VIOLATION
    if outcome.broken:
        return INTERNAL_ERROR
    unanswered = any(result.verdict is Verdict.INCONCLUSIVE for result in outcome.results)
    return INCONCLUSIVE if outcome.failed or outcome.interrupted or unanswered else NO_VIOLATION


def _absolute(path: Path) -> Path:
    """The path from the current folder as it is now: a mechanism may change the folder when it is loaded."""
    try:
        return Path(os.path.abspath(path))
    except OSError:  # the current folder has been deleted
        return path


@_command()
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
        _trace(debug)
        _refuse(printable(_unreadable(file, error)))
    except MechanismError as error:
        _trace(debug)
        say(printable(f"{file}: the mechanism could not be run: {error}"))
        _leave(INCONCLUSIVE)
    show(str(found))
    _leave(INCONCLUSIVE if not found.reproduced else VIOLATION if found.refuted else NO_VIOLATION)


@_command()
def report(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="RESULT.json...", help="Results that `dpaudit run` wrote, or folders of them."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The document to write: .pdf, .html or .md.  Else: print."),
    ] = None,
) -> None:
    """Make one document of one or many results, or print it.

    Results that are not what their own counts give are refused.  A result of another version of dpaudit whose p-value
    this one does not compute from its counts gets a warning in the report.
    """
    with waiting("loading", shown=True):
        from dataclasses import replace

        from dpaudit.engine.replay import contradictions, unchecked
        from dpaudit.result.model import AuditResult
        from dpaudit_reports import print_report, write_report

    chosen = [file for given in files for file in _results_in(given)]
    results, wrong = [], []
    for file in chosen:
        try:
            results.append(AuditResult.from_json(file))
            wrong += [f"{file}: {words}" for words in contradictions(results[-1])]
        except (ValueError, OSError, ImportError, OverflowError, RecursionError, MemoryError) as error:
            _refuse(_unreadable(file, error))
    if wrong:
        _refuse("\n".join(["the results contradict themselves, so they were changed:", *wrong]))
    try:
        for i, words in enumerate(map(unchecked, results)):
            if words:
                say(f"{chosen[i]}: {words}")
                results[i] = replace(results[i], warnings=(words, *results[i].warnings))
        if output is None:
            print_report(results)
        else:
            write_report(results, output)
    except (ValueError, OSError, ImportError) as error:
        _refuse(str(error))


def _results_in(given: Path) -> list[Path]:
    """The file, or all results in a folder."""
    if not given.is_dir():
        return [given]
    found = sorted(given.glob("*.json"))
    if not found:
        _refuse(f"{given}: there is no result (NAME.json) in this folder")
    return found


def _unreadable(file: Path, error: BaseException) -> str:
    """Why a file is no result that can be used, and what to do."""
    if file.suffix in (".yaml", ".yml"):
        return f"{file} is a config, not a result; run it first: dpaudit run {file}"
    if isinstance(error, RecursionError | MemoryError):
        return f"{file}: is nested too deeply or too large"
    text = str(error)
    return text if str(file) in text else f"{file}: {text}"


def _trace(debug: bool) -> None:
    """With --debug, show where the exception comes from that is being handled."""
    if debug:
        import traceback

        say(traceback.format_exc().rstrip())


@_command()
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
    from dpaudit.text.rounding import upper

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
        show(line)


def _conversions(claim: TradeoffFunction) -> list[str]:
    from dpaudit.text.rounding import lower, upper

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


@_command()
def plan(
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help='What is promised, e.g. "gaussian(mu=1)".')],
    truth: Annotated[str, typer.Argument(metavar="TRUTH", help='What is suspected to hold, e.g. "gaussian(mu=1.2)".')],
    power: Annotated[float, typer.Option(help="Probability with which the violation is to be found.")] = 0.9,
    confidence: Annotated[float, typer.Option(help="Of the audit.")] = 0.99,
) -> None:
    """Say how many trials it takes to refute CLAIM if only TRUTH holds."""
    with waiting("loading", shown=True):
        from dpaudit.claims import parse_claim
        from dpaudit.engine.plan import plan as plan_trials

    try:
        claims = parse_claim(claim), parse_claim(truth)
        with waiting("simulating audits", shown=True):
            found = plan_trials(*claims, power=power, confidence=confidence)
        show(str(found))
    except (ValueError, ImportError) as error:
        _refuse(str(error))


@_command("list")
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
        show(f"{name:{width}s}  {about}".rstrip())


def _attacks() -> list[tuple[str, str]]:
    from dpaudit.learning.attack import attack_classes

    return [(name, _first_line(kind)) for name, kind in attack_classes().items()]


def _claims() -> list[tuple[str, str]]:
    from dpaudit.claims import CLAIMS, OPERATIONS

    return [(name, _first_line(kind)) for name, kind in {**CLAIMS, **OPERATIONS}.items()]


def _mechanisms() -> list[tuple[str, str]]:
    from dpaudit.catalogue import BUILTIN

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


@_command()
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
    say(f"wrote {file}; run it with: dpaudit run {file}")


@_command()
def schema() -> None:
    """Print the JSON Schema of configs, for editors."""
    from dpaudit.config import schema as config_schema

    show(json.dumps(config_schema(), indent=2))


def _refuse(text: str) -> NoReturn:
    say(text)
    _leave(WRONG_USAGE)


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
