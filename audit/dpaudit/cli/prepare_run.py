"""Checks before the first audit: the guarantee, the claims, the output folder, the mechanisms and the backend."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dpaudit.claims import TradeoffFunction
from dpaudit.cli.ending import print_traceback
from dpaudit.cli.terminal import keep_stdout, say
from dpaudit.config import PlannedAudit
from dpaudit.mechanisms import MechanismError
from dpaudit.mechanisms.own_process import foreign_error_state
from dpaudit.mechanisms.raised import in_words, message_of, raised
from dpaudit.mechanisms.sources import source_of
from dpaudit.result.atomic_write import link_in, refuse_link
from dpaudit.result.suite import Promise
from dpaudit.sampling.backends import BackendError, backend
from dpaudit.settings.audit import BACKENDS, DEFAULTS, AuditSettings, Confirm, Resume
from dpaudit.text.foreign_files import open_foreign
from dpaudit.text.signs import PAPERS
from dpaudit.values import Foreign

_PATIENCE = 10.0  # seconds after which the command names the mechanism that is still being loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettings:
    """Settings that all audits of one command share."""

    output: Path  # absolute, because a mechanism may change the working directory when it is loaded
    shown: str = ""  # the output folder as the user wrote it
    trials: int | None = None  # None selects the trials of each config
    confidence: float | None = None  # None selects the confidence of each config
    confirm: Confirm = None  # None selects the `confirm` of each config
    seed: int | None = None  # None selects the seed of each config
    jobs: int = DEFAULTS.jobs
    backend: str = BACKENDS[0]
    scheduler: str | None = None  # address of the backend
    each: bool = False  # whether each audit runs at its own confidence
    pdf: bool = True
    paper: str = PAPERS[0]  # size of the pages of the PDF
    keep_outputs: bool = False  # whether outputs are saved to DIR/NAME.trials
    resume: Resume = DEFAULTS.resume  # which saved outputs are resumed
    quiet: bool = False
    verbose: bool = False  # whether the text of each result goes to stderr
    debug: bool = False
    log: Path | None = None  # file of the event log, see `event_log`
    form: str = "table"  # format of the results on stdout, see `dpaudit_reports.formats`
    stop_first: bool = False  # whether the command ends at the first violation
    needs_all: bool = True  # whether a mechanism that does not load ends the command before the first audit

    def __post_init__(self) -> None:
        if not self.shown:
            object.__setattr__(self, "shown", str(self.output))

    def over(self, settings: AuditSettings) -> AuditSettings:
        """Return the settings of a config with the overrides of the command line."""
        return replace(
            settings,
            trials=settings.trials if self.trials is None else self.trials,
            confidence=settings.confidence if self.confidence is None else self.confidence,
            confirm=settings.confirm if self.confirm is None else self.confirm,
            seed=settings.seed if self.seed is None else self.seed,
            jobs=self.jobs,
            store=self.output / f"{settings.name}.trials" if self.keep_outputs else None,
            resume=self.resume,
        )


class NotReady(Exception):
    """The audits cannot start, e.g. because a mechanism does not load."""

    def __init__(self, *problems: str, reason: str = "", cause: str = "") -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.reason = reason or str(self)
        self.cause = cause or self.reason  # the reason without what differs between audits of one kind


def share_guarantee(planned: Sequence[PlannedAudit], command: CommandSettings) -> Promise:
    try:
        return Promise.of([command.over(one.settings).confidence for one in planned], each=command.each)
    except ValueError as error:
        raise NotReady(str(error)) from None


def check_claims(planned: Sequence[PlannedAudit], command: CommandSettings) -> None:
    """Build the claims of the configs, so that an impossible claim is reported before any mechanism is loaded."""
    problems = []
    for one in planned:
        try:
            one.claims()
        except ValueError as error:
            print_traceback(command.debug)
            problems.append(f"{one.file}:{one.line}: audit {one.config.name}: {error}")
    if problems:
        raise NotReady(*problems)


def prepare_folder(
    planned: Sequence[PlannedAudit], command: CommandSettings, *, others: Sequence[str] = ()
) -> set[str]:
    """Create the output folder; return the names of audits whose results the folder already holds."""
    shown = command.shown
    if os.path.isfile(command.output):
        raise NotReady(f"--output {shown}: is a file; name a folder, which will be created")
    try:
        if (link := link_in(Path(shown))) is not None and _is_of_others(command.output):
            raise NotReady(
                f"--output {shown} leads through a symbolic link to {os.readlink(link)}, and the folder "
                f"{command.output} holds files but no result of dpaudit; if it is the right folder, name it with -o"
            )
        command.output.mkdir(parents=True, exist_ok=True)
        refuse_link(command.output)
        with tempfile.NamedTemporaryFile(prefix=".dpaudit-", suffix=".part", dir=command.output) as probe:
            probe.write(b"probe")
    except (OSError, RuntimeError) as error:
        raise NotReady(f"--output {shown}: {getattr(error, 'strerror', None) or error}") from None
    problems = [f"{words}; remove it or use another -o" for name in others if (words := _unwritable(command, name))]
    there = set()
    for one in planned:
        name = one.config.name
        endings = ["json", *(["pdf"] if command.pdf else []), *(["lock"] if one.config.mechanism.isolated else [])]
        found = [words for ending in endings if (words := _unwritable(command, f"{name}.{ending}"))]
        problems += [f"{one.file}:{one.line}: {words}; remove it or use another -o" for words in found]
        if os.path.exists(command.output / f"{name}.json"):
            there.add(name)
    if problems:
        raise NotReady(*problems)
    return there


def _unwritable(command: CommandSettings, name: str) -> str:
    """Say why a file cannot be written; "" if it can."""
    file, shown = command.output / name, f"{command.shown}/{name}"
    try:
        mode = os.lstat(file).st_mode
    except OSError as error:
        return "" if isinstance(error, FileNotFoundError) else f"{shown}: {error.strerror}"  # such as a too long name
    if stat.S_ISDIR(mode):
        return f"{shown} is a folder"
    if stat.S_ISLNK(mode):
        return f"{shown} is a symbolic link to {os.readlink(file)}"
    return "" if stat.S_ISREG(mode) else f"{shown} is a pipe or a device"  # writing to a pipe waits for a reader


def _is_of_others(folder: Path) -> bool:
    """Whether a folder holds files, but no result or store: a link in a checkout may lead to any folder."""
    files = list(folder.iterdir()) if folder.is_dir() else []
    for file in files:
        with contextlib.suppress(OSError), open_foreign(file) as stream:
            if file.suffix == ".trials" or (file.suffix == ".json" and b'"format": "dpaudit-' in stream.read(100)):
                return False
    return bool(files)


@contextlib.contextmanager
def _sign_of_life(planned: PlannedAudit, command: CommandSettings) -> Iterator[None]:
    """Print what is being loaded if the `with` block takes long, because an import may hang."""
    config = planned.config
    limit = "" if "timeout" in config.model_fields_set else "; `timeout:` in the config limits this time"
    what = planned.code or f"the mechanism of audit {config.name}"
    words = f"audit {config.name}: still loading {what}, after {_PATIENCE:g} s{limit}; Ctrl-C ends the command"
    timer = threading.Timer(_PATIENCE, lambda: None if command.quiet else say(words))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def load(planned: PlannedAudit, command: CommandSettings) -> tuple[Foreign, TradeoffFunction]:
    place = f"{planned.file}:{planned.code_line or planned.line}: audit {planned.config.name}: mechanism"
    keep_stdout()
    try:
        with (
            _sign_of_life(planned, command),
            foreign_error_state(),
            contextlib.redirect_stdout(sys.stderr),
        ):  # stdout is for results, and another program may read it
            mechanism, claim = planned.load()
        source_of(mechanism)  # read the source now, because the file may be edited before the audit begins
        return mechanism, claim
    except Exception as error:
        print_traceback(command.debug)
        reason = message_of(error) if isinstance(error, MechanismError | ValueError) else raised(error)
        raise NotReady(f"{place}: {reason}", reason=reason, cause=_cause(error)) from None


def _cause(error: BaseException) -> str:
    """Return the exception of the user's code behind a MechanismError, in words; "" if there is none."""
    behind = error.__cause__ if isinstance(error, MechanismError) else None
    if behind is None:
        return ""
    return _cause(behind) or (message_of(behind) if isinstance(behind, MechanismError) else in_words(behind))


@contextlib.contextmanager
def workers(command: CommandSettings) -> Iterator[None]:
    """Run mechanisms on the chosen backend during the `with` block."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(backend(command.backend, command.scheduler))
        except (BackendError, ValueError) as error:
            raise NotReady(f"--backend {command.backend}: {error}") from None
        yield
