"""Running the audits of configs, one after the other: what is said while they run, and what is written."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpaudit.claims import TradeoffFunction
from dpaudit.cli.console import ended_line, log_to_stderr, print_results, progress_bar
from dpaudit.cli.internal_errors import command_line, report_internal_error
from dpaudit.cli.terminal import say
from dpaudit.config import FROM_MECHANISM, MOST_NAME_BYTES, PlannedAudit
from dpaudit.engine.audit import Progress, audit
from dpaudit.inference.sequential.strategy import log_threshold
from dpaudit.mechanisms import MechanismError
from dpaudit.mechanisms.places import raised
from dpaudit.mechanisms.protocol import message_of
from dpaudit.mechanisms.sources import source_of
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import Promise
from dpaudit.result.values import Verdict
from dpaudit.sampling.backends import BackendError, backend


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What all audits of one command share."""

    settings: dict[str, Any]  # trials, confidence, seed: instead of the configs'
    output: Path  # absolute: a mechanism may change the working directory when it is loaded
    shown: str = ""  # the output folder as the user wrote it
    jobs: int = 1
    backend: str = "loky"
    scheduler: str | None = None  # of the backend
    each: bool = False  # every audit keeps its own confidence
    pdf: bool = True
    resume: bool = False
    quiet: bool = False
    debug: bool = False
    log: Path | None = None  # where events go, one JSON object a line


class NotReady(Exception):
    """A mechanism that cannot be had, or a folder that cannot be written; says where."""


@dataclass(slots=True)
class Outcome:
    """What became of the audits of one command."""

    results: list[AuditResult] = field(default_factory=list)
    expected: list[str | None] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # audits that could not be run, or whose result was lost
    broken: list[str] = field(default_factory=list)  # audits that ended in an error of dpaudit's own
    written: int = 0  # results in the output folder
    interrupted: bool = False


def run_all(planned: Sequence[PlannedAudit], how: How) -> Outcome:
    """Run audits, write and print their results.

    Raises:
        NotReady: Before anything has run.
    """
    if not how.quiet:
        log_to_stderr("dpaudit.environments")
    promise = _promise(planned, how)
    _check_claims(planned, how)
    replaced = _ready_folder(planned, how)
    ready = [(one, *_loaded(one, how)) for one in planned]
    outcome = Outcome()
    with _events(how.log) as tell, _workers(how):
        try:
            for number, ((one, mechanism, claim), confidence) in enumerate(
                zip(ready, promise.confidences, strict=True), 1
            ):
                result = _run_one(one, mechanism, claim, confidence, promise, how, tell, outcome)
                if result is None:
                    continue
                outcome.results.append(result)
                outcome.expected.append(one.config.expect)
                if not how.quiet:
                    say(ended_line(number, len(planned), result))
                place = _write(result, how)
                outcome.written += place == how.output
                if place is None:
                    outcome.failed.append(result.name)
                elif place == how.output and not how.quiet and result.name in replaced:
                    say(f"{result.name}.json replaced the one of an earlier run")
                elif place != how.output and result.name in replaced:
                    say(f"{result.name}.json in {how.shown or how.output} is still the one of an earlier run")
                _tell_result(tell, result)
                if not how.quiet or result.verdict is not Verdict.NO_VIOLATION:
                    for warning in result.warnings:
                        say(f"{one.file}:{one.line}: audit {result.name}: {warning}")
                if result.stopped_by == "interruption":
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            outcome.interrupted = True
            say(_interrupted(how))
    if outcome.results:
        print_results(outcome.results, outcome.expected, promise.words(outcome.results))
        if not how.quiet and outcome.written:
            say(f"results are in {how.shown or how.output}")
    return outcome


def _promise(planned: Sequence[PlannedAudit], how: How) -> Promise:
    try:
        return Promise.of([how.settings.get("confidence", one.config.confidence) for one in planned], each=how.each)
    except ValueError as error:
        raise NotReady(str(error)) from None


def _check_claims(planned: Sequence[PlannedAudit], how: How) -> None:
    """Build the claims that the configs state: whether they can be had is known before any mechanism is loaded."""
    problems = []
    for one in planned:
        try:
            one.claims()
        except ValueError as error:
            _trace(how)
            problems.append(f"{one.file}:{one.line}: audit {one.config.name}: {error}")
    if problems:
        raise NotReady("\n".join(problems))


def _ready_folder(planned: Sequence[PlannedAudit], how: How) -> set[str]:
    """Make the output folder, and see that results can be written there; names of results that are there already."""
    shown = how.shown or str(how.output)
    try:
        how.output.mkdir(parents=True, exist_ok=True)
        handle, probe = tempfile.mkstemp(prefix=".dpaudit-", suffix=".part", dir=how.output)
        try:
            os.write(handle, b"probe")
        finally:
            os.close(handle)
            os.unlink(probe)
    except (OSError, RuntimeError) as error:
        raise NotReady(f"--output {shown}: {getattr(error, 'strerror', None) or error}") from None
    problems, there = [], set()
    for one in planned:
        name = one.config.name
        if len(os.fsencode(name)) > MOST_NAME_BYTES:
            problems.append(f"{one.file}:{one.line}: name {name[:40]}… is too long for a file name")
            continue
        for ending in ("json", "pdf") if how.pdf else ("json",):
            file = how.output / f"{name}.{ending}"
            if os.path.isdir(file):
                problems.append(f"{one.file}:{one.line}: {shown}/{file.name} is a folder; remove it or use another -o")
            elif os.path.islink(file) and not os.path.exists(file) and _endless(file):
                problems.append(f"{one.file}:{one.line}: {shown}/{file.name} is a symbolic link to itself; remove it")
        if os.path.exists(how.output / f"{name}.json"):
            there.add(name)
    if problems:
        raise NotReady("\n".join(problems))
    return there


def _endless(link: Path) -> bool:
    try:
        os.stat(link)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _loaded(planned: PlannedAudit, how: How) -> tuple[Any, TradeoffFunction]:
    place = f"{planned.file}:{planned.code_line or planned.line}: audit {planned.config.name}: mechanism"
    try:
        mechanism, claim = planned.load()
        source_of(mechanism)  # now: its files may be edited before the audit begins
        return mechanism, claim
    except (MechanismError, ValueError) as error:
        _trace(how)
        raise NotReady(f"{place}: {message_of(error)}") from None
    except Exception as error:
        _trace(how)
        raise NotReady(f"{place}: {raised(error)}") from None


def _run_one(
    planned: PlannedAudit,
    mechanism: Any,
    claim: TradeoffFunction,
    confidence: float,
    promise: Promise,
    how: How,
    tell: Callable[..., None],
    outcome: Outcome,
) -> AuditResult | None:
    """The result of an audit; None if it could not be run, which is said and noted in `outcome`."""
    name = planned.config.name
    tell("started", audit=name, claim=str(claim))
    try:
        return _audited(planned, mechanism, claim, confidence, promise, how, tell)
    except (MechanismError, ValueError) as error:
        _trace(how)
        reason = message_of(error)
        outcome.failed.append(name)
    except KeyboardInterrupt:
        raise
    except MemoryError:
        _trace(how)
        reason = "the memory is full"
        outcome.failed.append(name)
    except Exception as error:
        reason = report_internal_error(error, how.output, debug=how.debug)
        outcome.broken.append(name)
    except BaseException as error:  # SystemExit and the like, which only foreign code raises here
        _trace(how)
        reason = f"the mechanism raised {raised(error)}"
        outcome.failed.append(name)
    say(f"{planned.file}:{planned.line}: audit {name} could not be run: {reason}")
    tell("failed", audit=name, reason=reason)
    return None


def _audited(
    planned: PlannedAudit,
    mechanism: Any,
    claim: TradeoffFunction,
    confidence: float,
    promise: Promise,
    how: How,
    tell: Callable[..., None],
) -> AuditResult:
    config = planned.config
    threshold = log_threshold(confidence)
    with progress_bar(config.name, shown=not how.quiet, log_threshold=threshold) as bar:

        def report(now: Progress) -> None:
            if bar is not None:
                bar(now)
            tell("progress", audit=config.name, trials=now.trials, allowed=now.allowed, log_e=now.log_e)

        result = audit(
            mechanism,
            claim,
            planned.pairs,
            attacks=config.attacks,
            method=config.method,
            detect=config.detect,
            jobs=how.jobs,
            store=how.output / f"{config.name}.trials" if how.resume else None,
            progress=report,
            name=config.name,
            **planned.terms,
            **{"trials": config.trials, "seed": config.seed} | how.settings | {"confidence": confidence},
        )
    about = {
        "config": planned.file.name,
        "folder": planned.file.parent.resolve().as_posix(),
        "source": config.source,
        "claim stated by": "the mechanism's own accounting" if config.claim == FROM_MECHANISM else "the config",
        "command": command_line(),
        "audit": planned.text,
        **promise.environment,
    }
    return replace(result, environment={**result.environment, **about})


def _write(result: AuditResult, how: How) -> Path | None:
    """Write JSON and PDF; the folder in which the JSON was kept, if it was.  Nothing but an interruption is raised."""
    kept = False
    try:
        result.to_json(how.output / f"{result.name}.json")
        kept = True
        if how.pdf:
            result.to_pdf(how.output / f"{result.name}.pdf")
    except KeyboardInterrupt:
        if not kept:  # what was measured is not thrown away
            with contextlib.suppress(Exception):
                result.to_json(how.output / f"{result.name}.json")
        raise
    except Exception as error:
        _trace(how)
        place = how.shown or str(how.output)
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {message_of(error)}"
        if kept:
            say(f"the PDF of {result.name} could not be made: {reason}; its JSON is in {place}")
            return how.output
        file = _elsewhere(result)
        where = "" if file is None else f"; its JSON is in {file}"
        say(f"the result of {result.name} could not be written to {place}: {reason}{where}")
        return None if file is None else file.parent
    return how.output


def _elsewhere(result: AuditResult) -> Path | None:
    """Write a result to a temporary folder, since it could not be written to where it belongs."""
    with contextlib.suppress(Exception):
        file = Path(tempfile.mkdtemp(prefix="dpaudit-")) / f"{result.name}.json"
        result.to_json(file)
        return file
    return None


def _interrupted(how: How) -> str:
    if how.resume:
        return f"interrupted; the audits after this one were not run.  To go on: {command_line()}"
    return (
        "interrupted; the audits after this one were not run, and the outputs of this one were not kept.  "
        f"Outputs are kept with --resume: {command_line()} --resume"
    )


@contextlib.contextmanager
def _workers(how: How) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(backend(how.backend, how.scheduler))
        except (BackendError, ValueError) as error:
            raise NotReady(f"--backend {how.backend}: {error}") from None
        yield


@contextlib.contextmanager
def _events(file: Path | None) -> Iterator[Callable[..., None]]:
    """A function that writes an event as a line of JSON, to `file` or nowhere.  It never raises."""
    if file is None:
        yield lambda kind, **about: None
        return
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise NotReady(f"--log-json {file}: {error.strerror}") from None
    works = True

    def tell(kind: str, **about: Any) -> None:
        nonlocal works
        if not works:
            return
        finite = {key: None if value != value else value for key, value in about.items()}  # JSON has no NaN
        try:
            line = json.dumps({"event": kind, **finite}, ensure_ascii=False) + "\n"
            left = line.encode("utf-8", "backslashreplace")
            while left:
                left = left[os.write(handle, left) :]
        except (OSError, ValueError, TypeError) as error:
            works = False
            say(f"--log-json {file}: {message_of(error)}; no more events are written, the audits go on")

    try:
        yield tell
    finally:
        with contextlib.suppress(OSError):
            os.close(handle)


def _tell_result(tell: Callable[..., None], result: AuditResult) -> None:
    tell(
        "ended",
        audit=result.name,
        verdict=result.verdict.value,
        p_value=result.p_value,
        mu_lower=result.mu_lower,
        trials=result.trials_used,
        stopped_by=result.stopped_by,
        elapsed_s=round(result.elapsed_s, 3),
        warnings=list(result.warnings),
    )


def _trace(how: How) -> None:
    """With --debug, show where the exception comes from that is being handled."""
    if how.debug:
        say("".join(traceback.format_exception(*sys.exc_info())).rstrip())
