"""Running the audits of configs, one after the other: what is said while they run, and what is written."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from dpaudit.claims import TradeoffFunction
from dpaudit.config import FROM_MECHANISM, PlannedAudit
from dpaudit.console import log_to_stderr, print_results, progress_bar
from dpaudit.engine import Progress, audit
from dpaudit.mechanisms import MechanismError
from dpaudit.result import AuditResult
from dpaudit.trials.backends import BackendError, backend


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What all audits of one command share."""

    settings: dict[str, Any]  # trials, confidence, seed: instead of the configs'
    output: Path
    jobs: int = 1
    backend: str = "loky"
    scheduler: str | None = None  # of the backend
    pdf: bool = True
    resume: bool = False
    quiet: bool = False
    debug: bool = False
    log: Path | None = None  # where events go, one JSON object a line


class NotReady(Exception):
    """A mechanism that cannot be had, or a folder that cannot be written; says where."""


def run_all(planned: Sequence[PlannedAudit], how: How) -> tuple[list[AuditResult], list[str]]:
    """Run audits, write and print their results; these, and the names of audits that could not be run.

    NotReady before anything has run.
    """
    if not how.quiet:
        log_to_stderr("dpaudit.environments")
    ready = [(one, *_loaded(one, how)) for one in planned]
    try:
        how.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotReady(f"--output {how.output}: {error.strerror}") from None
    results: list[AuditResult] = []
    expected: list[str | None] = []
    failed: list[str] = []
    with _events(how.log) as tell, _workers(how):
        for one, mechanism, claim in ready:
            name = one.config.name
            tell("started", audit=name, claim=str(claim))
            try:
                result = _run_one(one, mechanism, claim, how, tell)
            except (MechanismError, ValueError) as error:
                if how.debug:
                    raise
                _say(f"{one.file}:{one.line}: audit {name} could not be run: {error}")
                tell("failed", audit=name, reason=str(error))
                failed.append(name)
                continue
            results.append(result)
            expected.append(one.config.expect)
            _write(result, how)
            _tell_result(tell, result)
            if not how.quiet:
                for warning in result.warnings:
                    _say(f"{one.file}:{one.line}: audit {name}: {warning}")
            if result.stopped_by == "interruption":
                _say(_interrupted(how))
                break
    if results:
        print_results(results, expected)
        if not how.quiet:
            _say(f"results are in {how.output}")
    return results, failed


def _loaded(planned: PlannedAudit, how: How) -> tuple[Any, TradeoffFunction]:
    try:
        return planned.load()
    except (MechanismError, ValueError) as error:
        if how.debug:
            raise
        raise NotReady(f"{planned.file}:{planned.line}: audit {planned.config.name}: mechanism: {error}") from None


def _run_one(
    planned: PlannedAudit, mechanism: Any, claim: TradeoffFunction, how: How, tell: Callable[..., None]
) -> AuditResult:
    config = planned.config
    with progress_bar(config.name, shown=not how.quiet) as bar:

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
            **{"trials": config.trials, "confidence": config.confidence, "seed": config.seed} | how.settings,
        )
    about = {
        "config": planned.file.name,
        "folder": planned.file.parent.resolve().as_posix(),
        "source": config.source,
        "claim stated by": "the mechanism's own accounting" if config.claim == FROM_MECHANISM else "the config",
        "command": " ".join(["dpaudit", *sys.argv[1:]]),
        "audit": planned.text,
    }
    return replace(result, environment={**result.environment, **about})


def _write(result: AuditResult, how: How) -> None:
    try:
        result.to_json(how.output / f"{result.name}.json")
        if how.pdf:
            result.to_pdf(how.output / f"{result.name}.pdf")
    except OSError as error:
        _say(f"the result of {result.name} could not be written to {how.output}: {error.strerror}{_elsewhere(result)}")


def _elsewhere(result: AuditResult) -> str:
    """Where a result is that could not be written to where it belongs, in words."""
    with contextlib.suppress(OSError):
        file = Path(tempfile.mkdtemp(prefix="dpaudit-")) / f"{result.name}.json"
        result.to_json(file)
        return f"; its JSON is in {file}"
    return ""


def _interrupted(how: How) -> str:
    command = " ".join(["dpaudit", *sys.argv[1:]])
    if how.resume:
        return f"interrupted; the audits after this one were not run.  To go on: {command}"
    return (
        "interrupted; the audits after this one were not run, and the outputs of this one were not kept.  "
        f"Outputs are kept with --resume: {command} --resume"
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
    """A function that writes an event as a line of JSON, to `file` or nowhere."""
    if file is None:
        yield lambda kind, **about: None
        return
    try:
        stream = file.open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        raise NotReady(f"--log-json {file}: {error.strerror}") from None
    with stream:

        def tell(kind: str, **about: Any) -> None:
            finite = {key: None if value != value else value for key, value in about.items()}  # JSON has no NaN
            stream.write(json.dumps({"event": kind, **finite}, ensure_ascii=False) + "\n")

        yield tell


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


def _say(text: str) -> None:
    typer.echo(text, err=True)
