"""Checks before the first audit: the guarantee, the claims, the output folder and the mechanisms."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpaudit.claims import TradeoffFunction
from dpaudit.cli.options import RunOptions
from dpaudit.cli.terminal import keep_stdout, print_traceback, say
from dpaudit.config.planned import PlannedAudit
from dpaudit.engine.arguments import planned_of
from dpaudit.result.atomic_write import link_in, refuse_link
from dpaudit.result.suite import Promise
from dpaudit.running import MechanismError
from dpaudit.running.foreign import foreign_code
from dpaudit.running.outcomes import in_words, message_of, raised
from dpaudit.running.sources import source_of
from dpaudit.text import Refused, open_foreign

_PATIENCE = 10.0  # seconds after which the command names the mechanism that is still being loaded


class NotReady(Refused):
    """The audits cannot start, e.g. because a mechanism does not load."""

    def __init__(self, *problems: str, reason: str = "", cause: str = "") -> None:
        super().__init__(*problems)
        self.reason = reason or str(self)
        self.cause = cause or self.reason  # the reason without what differs between audits of one kind


def share_guarantee(planned: Sequence[PlannedAudit], options: RunOptions) -> Promise:
    try:
        return Promise.of([options.over(one.settings).confidence for one in planned], each=options.each)
    except ValueError as error:
        raise NotReady(str(error)) from None


def check_configs(planned: Sequence[PlannedAudit], options: RunOptions) -> None:
    """Report what is wrong with claims before any mechanism is loaded; before environments are built, all that can be.

    Building an environment takes long, and what is loaded in this process shows its mistakes at once.
    """
    problems, slow = [], any(one.config.mechanism.isolated for one in planned)
    for one in planned:
        try:
            claim, detect = one.claims()
            if slow:
                if claim is not None and detect is not None:
                    planned_of([detect], claim, options.over(one.settings).confidence)
                one.check()
        except (ValueError, MechanismError) as error:
            print_traceback(options.debug)
            problems.append(f"{one.address}: {error}")
    if problems:
        raise NotReady(*problems)


def prepare_folder(planned: Sequence[PlannedAudit], options: RunOptions, *, others: Sequence[str] = ()) -> None:
    """Create the output folder, and refuse files that the command could not write; `others` are names in the folder."""
    shown = options.shown
    if os.path.isfile(options.output):
        raise NotReady(f"--output {shown}: is a file; name a folder, which will be created")
    try:
        if (link := link_in(Path(shown))) is not None and _is_of_others(options.output):
            raise NotReady(
                f"--output {shown} leads through a symbolic link to {os.readlink(link)}, and the folder "
                f"{options.output} holds files but no result of dpaudit; if it is the right folder, name it with -o"
            )
        options.output.mkdir(parents=True, exist_ok=True)
        refuse_link(options.output)
        with tempfile.NamedTemporaryFile(prefix=".dpaudit-", suffix=".part", dir=options.output) as probe:
            probe.write(b"probe")
    except (OSError, RuntimeError) as error:
        raise NotReady(f"--output {shown}: {getattr(error, 'strerror', None) or error}") from None
    if options.log_json is not None:
        try:
            options.log_json.open("a").close()
        except OSError as error:
            raise NotReady(f"--log-json {options.log_json}: {error.strerror}") from None
    places = [("", name) for name in others]
    for one in planned:
        endings = ["json", *([] if options.no_pdf else ["pdf"]), *(["lock"] if one.config.mechanism.installs else [])]
        places += [(f"{one.file}:{one.line}: ", f"{one.config.name}.{ending}") for ending in endings]
    problems = [(place, _unwritable(options, name)) for place, name in places]
    if any(words for _, words in problems):
        raise NotReady(*(f"{place}{words}; remove it or use another -o" for place, words in problems if words))


def _unwritable(options: RunOptions, name: str) -> str:
    """Say why a file cannot be written; "" if it can."""
    file, shown = options.output / name, f"{options.shown}/{name}"
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


def load(planned: PlannedAudit, options: RunOptions) -> tuple[Any, TradeoffFunction]:
    """Load a mechanism and its claim; if that takes long, say what is being loaded, because an import may hang."""
    config = planned.config
    limit = "" if "timeout" in config.model_fields_set else "; `timeout:` in the config limits this time"
    what = planned.code or f"the mechanism of audit {config.name}"
    words = f"audit {config.name}: still loading {what}, after {_PATIENCE:g} s{limit}; Ctrl-C ends the command"
    timer = threading.Timer(_PATIENCE, lambda: None if options.quiet else say(words))
    timer.daemon = True
    keep_stdout()
    timer.start()
    try:
        with foreign_code(), contextlib.redirect_stdout(sys.stderr):  # another program may read stdout
            mechanism, claim = planned.load()
        source_of(mechanism)  # read the source now, because the file may be edited before the audit begins
        return mechanism, claim
    except Exception as error:
        print_traceback(options.debug)
        reason = message_of(error) if isinstance(error, MechanismError | ValueError) else raised(error)
        place = f"{planned.file}:{planned.code_line or planned.line}: audit {config.name}: mechanism"
        raise NotReady(f"{place}: {reason}", reason=reason, cause=_cause(error)) from None
    finally:
        timer.cancel()


def _cause(error: BaseException) -> str:
    """Return the exception of the user's code behind a MechanismError, in words; "" if there is none."""
    behind = error.__cause__ if isinstance(error, MechanismError) else None
    if behind is None:
        return ""
    return _cause(behind) or (message_of(behind) if isinstance(behind, MechanismError) else in_words(behind))
