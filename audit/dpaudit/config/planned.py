"""A checked audit of a config file, ready to run."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.claims.comparison import pair_curves
from dpaudit.config.models import FROM_MECHANISM, AuditConfig, builtin_mechanism
from dpaudit.config.pair_models import Dumper, is_file, reader
from dpaudit.libraries.configured import GENERATORS, LibraryCall, Private, Read, check_fits, file_beside, read
from dpaudit.pairs.pair import Pair
from dpaudit.running.command import CommandMechanism
from dpaudit.running.environments import Lock
from dpaudit.running.foreign import MechanismError
from dpaudit.running.mechanisms import IsolatedMechanism, PythonMechanism, resolved
from dpaudit.running.outcomes import in_words
from dpaudit.running.sources import imported_from, missing_object
from dpaudit.running.worker import checked_file
from dpaudit.settings import AuditSettings, check_memory
from dpaudit.text import Refused, masked, masked_values, masked_words, one_line, shortened
from dpaudit.values import JsonObject

_MAY_RUN_INPUTS = "which may run its params and datasets as code"


class ConfigError(Refused):
    """A config, or an option that changes configs, is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAudit:
    """One audit of a config file, ready to run."""

    file: Path
    line: int
    config: AuditConfig
    code_line: int = 0
    lock: Lock | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.folder is None:  # resolve it now: loading a mechanism may change the current folder
            with contextlib.suppress(OSError):
                object.__setattr__(self, "folder", Path(os.path.realpath(self.file.parent)))

    @property
    def place(self) -> Path:
        return self.folder or self.file.parent

    @property
    def address(self) -> str:
        """Where the audit is written, for messages."""
        return f"{self.file}:{self.line}: audit {self.config.name}"

    @property
    def pairs(self) -> list[Pair]:
        files = reader(self.place)
        return [
            pair
            for entry in self.config.pairs
            for pair in (self._read.pairs if entry.from_library else entry.pairs(files))
        ]

    @property
    def data_files(self) -> dict[str, str]:
        """The SHA-256 of each file with a dataset, when `pairs` last read it."""
        return {name: digest for entry in self.config.pairs for name, digest in entry.digests.items()}

    @property
    def _read(self) -> Read:
        """The claim and the pairs that are read from the object of `mechanism.library`, which is made first."""
        mechanism = self.config.mechanism
        called = mechanism.library_call(self.place, raises=self.failures_end_runs)
        assert called is not None
        environment = None
        if mechanism.isolated:
            requires = tuple(mechanism.requires or ())
            environment = Private(requires, mechanism.python_version, self.lock, self._interpreter)
        return read(called, environment, self.config.timeout if mechanism.isolated else self._timeout)

    @property
    def settings(self) -> AuditSettings:
        config = self.config
        same = ("name", "attacks", "trials", "confidence", "method", "measure", "confirm", "seed", "detect", "memory")
        return AuditSettings(
            **{name: getattr(config, name) for name in same},
            observe_time=config.mechanism.observe_time,
            failures="stop" if self._generates and config.failures == "outcome" else config.failures,
            timeout=self._timeout,
        )

    @property
    def _generates(self) -> bool:
        """Whether the mechanism is a generator of `library: synthesizer`, which returns exceptions as outputs."""
        return self.config.mechanism.library == GENERATORS

    @property
    def failures_end_runs(self) -> bool:
        """Whether the config asks that a fit that raises stops the audit, or is retried."""
        return "failures" in self.config.model_fields_set and self.config.failures != "outcome"

    @property
    def claim_stated_by(self) -> str:
        """Who states the claim, as recorded in results."""
        if self.config.claim == FROM_MECHANISM and self._generates:
            return "the constructor of the generator"
        return "the mechanism's own accounting" if self.config.claim == FROM_MECHANISM else "the config"

    @property
    def _timeout(self) -> float | None:
        """Time limit in seconds for a call in this process; None for commands and environments."""
        mechanism = self.config.mechanism
        code = mechanism.address or mechanism.library is not None
        own = code and not mechanism.isolated and "timeout" in self.config.model_fields_set
        return self.config.timeout if own else None

    @property
    def code(self) -> str:
        """Description of the code outside dpaudit that this audit runs; "" if there is none."""
        mechanism = self.config.mechanism
        if mechanism.command is not None:
            return f"the program {shlex.join(mechanism.command)}, in {self.place}, {_MAY_RUN_INPUTS}"
        if mechanism.http is not None:
            service = mechanism.http.service(self.config.timeout)
            secrets = ", ".join(service.variables)
            given = f" and the environment variables {secrets}" if secrets else ""
            return f"the service {service.address}, which gets the datasets{given}"
        if mechanism.library is not None:
            origin = (
                f" (from {self.place})" if self._generates and file_beside(mechanism.call or "", self.place) else ""
            )
            return f"{mechanism.call}{origin} of the library {self._python}"
        if not mechanism.address:
            return ""
        module, _, name = mechanism.address.rpartition(":")
        origin = imported_from(self.place / module, name) if module.endswith(".py") else ""
        imported = f", where {module} imports {name.partition('.')[0]} from {origin}" if origin else ""
        return f"{self._python}{imported}, {_MAY_RUN_INPUTS}"

    @property
    def mechanism_file(self) -> Path | None:
        """The file of a Python mechanism that is named by a file, with links resolved; None for other mechanisms."""
        name = self.config.mechanism.address.rpartition(":")[0]
        if not name.endswith(".py"):
            return None
        try:
            return Path(os.path.realpath(self.place / name))
        except (OSError, ValueError):  # no file can have this name
            return self.place / name

    @property
    def inputs(self) -> list[str]:
        """Printable lines with the parameters and datasets that `code` receives, unmasked; else only the files."""
        mechanism = self.config.mechanism
        given: dict[str, Any] = {"params": mechanism.params, "arguments": mechanism.arguments}
        given |= {"prepare": mechanism.sql.prepare, "query": mechanism.sql.query} if mechanism.sql else {}
        given = {name: value for name, value in given.items() if value is not None}
        for index, pair in enumerate(self.config.pairs):
            for key, value in pair.model_dump(
                by_alias=True, exclude_unset=True, include={"d0", "d1", "search"}
            ).items():
                given[f"pairs[{index}].{key}{' (file)' if is_file(value) else ''}"] = value
        lines = []
        for name, value in given.items():
            try:
                text = json.dumps(value, ensure_ascii=False, default=repr)
            except TypeError:  # a key that JSON does not have, such as a date
                text = repr(value)
            note = f" ({len(text):,} characters; read the file)" if shortened(text) != text else ""
            if self.code or is_file(value):
                lines.append(f"{name}: {one_line(shortened(text))}{note}")
        return lines

    @property
    def _python(self) -> str:
        """Description of a Python mechanism and its environment."""
        mechanism = self.config.mechanism
        address = mechanism.library or f"{mechanism.address} (from {self.place})"
        if not mechanism.isolated:
            return f"{address}, in this process"
        if mechanism.interpreter:
            return f"{address}, with the Python {mechanism.interpreter}"
        packages = ", ".join(mechanism.requires or ()) or "no packages"
        version = f", Python {mechanism.python_version}" if mechanism.python_version else ""
        locked = () if self.lock is None else (line.partition(" --hash")[0] for line in self.lock.lines)
        exactly = f", exactly these: {', '.join(locked) or 'none'}" if self.lock is not None else ""
        return f"{address}, in an environment with {packages}{version}{exactly}"

    @property
    def text(self) -> str:
        """The audit as YAML for `read_text`, with a mask in place of anything that looks like a secret."""
        settings: JsonObject = self.config.model_dump(by_alias=True, exclude_unset=True)
        if "source" in settings:
            settings["source"] = masked(settings["source"])
        mechanism = settings["mechanism"]  # the address of the code is not masked, so that it stays valid
        if mechanism.get("command") is not None:
            mechanism["command"] = masked_words(mechanism["command"])
        for key in ("params", "arguments"):
            if key in mechanism:
                mechanism[key] = masked_values(mechanism[key])
        written: str = yaml.dump(settings, Dumper=Dumper, sort_keys=False, allow_unicode=True)
        return written

    def changed(self, **values: Any) -> PlannedAudit:
        """Return the audit with other values of keys of its config, which are not checked."""
        return replace(self, config=self.config.model_copy(update=values))

    def claims(self) -> tuple[TradeoffFunction | None, TradeoffFunction | None]:
        """Build the claim (None if the mechanism states it) and the claim of `detect` (None if it is missing)."""
        config = self.config
        texts = (None if config.claim == FROM_MECHANISM else config.claim, config.detect)
        claim, detect = (None if text is None else _checked(parse_claim(text)) for text in texts)
        if detect is not None:
            pair_curves(detect)
        return claim, detect

    def mechanism(self) -> Any:
        """Return the mechanism without loading, installing or starting anything."""
        config, folder = self.config.mechanism, self.place
        memory = check_memory(self.config.memory)
        if config.builtin is not None:
            return builtin_mechanism(config.builtin, config.params)
        if config.command is not None:
            one_shot, timeout = config.one_shot, self.config.timeout
            return CommandMechanism(config.command, one_shot=one_shot, timeout=timeout, cwd=folder, memory=memory)
        if config.http is not None:
            return config.http.service(self.config.timeout)
        address, params, named, code = config.python, config.params, "", ""
        if called := config.library_call(folder, raises=self.failures_end_runs):
            address, params, folder = called.address(isolated=config.isolated), called.params, called.folder
            named, code = called.named, called.code
        if config.sql is not None:
            address = "sql.py:Queries" if config.isolated else "dpaudit.libraries.inside.sql:Queries"
            params = {**config.sql.model_dump(), "folder": str(folder)}
            place, _, name = config.sql.connect.rpartition(":")
            code = f"{folder / place if place.endswith('.py') else place}:{name}"
            named, folder = f"{shortened(config.sql.query, 100)} ({config.sql.connect})", LibraryCall.folder
        assert address is not None
        if not config.isolated:
            return PythonMechanism(
                address,
                params,
                config.batched,
                folder,
                timeout=self._timeout,
                memory=memory,
                named=named,
                code=code,
                interactive=self.config.interactive,
            )
        return IsolatedMechanism(
            address=address,
            requires=tuple(config.requires or ()),
            python_version=config.python_version,
            params=params,
            batched=config.batched,
            folder=folder,
            timeout=self.config.timeout,
            memory=memory,
            named=named,
            code=code,
            lock=self.lock,
            interpreter=self._interpreter,
        )

    @property
    def _interpreter(self) -> Path | None:
        name = self.config.mechanism.interpreter
        return None if name is None else self.place / os.path.expanduser(name)

    def check(self) -> None:
        """Find mistakes in pairs, addresses and paths without running or installing anything."""
        mechanism, files = self.config.mechanism, reader(self.place)
        for entry in self.config.pairs:
            entry.pairs(files)
        if (interpreter := self._interpreter) is not None and not interpreter.is_file():
            raise ValueError(f"mechanism.interpreter: the file {interpreter} does not exist")
        module, _, name = mechanism.address.rpartition(":")
        if mechanism.isolated and module.endswith(".py"):
            try:
                path = checked_file(module, str(self.place))
            except LookupError as error:
                raise ValueError(f"mechanism: {error}") from None
            if problem := missing_object(
                path, name, same_python=not (mechanism.python_version or mechanism.interpreter)
            ):
                raise ValueError(f"mechanism: {module} {problem}")

    def load(self) -> tuple[Any, TradeoffFunction]:
        """Load or start the mechanism, in a new environment if needed, and build the claim."""
        claim: Any = self.claims()[0]
        mechanism = self.mechanism()
        if isinstance(mechanism, (CommandMechanism, IsolatedMechanism)):
            mechanism.start()
        inner = resolved(mechanism)
        if self._generates:
            for pair in self.pairs[:1]:
                check_fits(mechanism, pair)
        if claim is not None:
            return mechanism, claim
        if self.config.mechanism.library is not None:
            return mechanism, _checked(self._read.claim)
        try:
            claim = getattr(inner, "claim", None)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # includes SystemExit
            raise MechanismError(f"the mechanism's attribute claim raised {in_words(error)}") from error
        if isinstance(claim, str):  # a mechanism that cannot import this package states its claim as text
            claim = parse_claim(claim)
        if not isinstance(claim, TradeoffFunction):
            raise ValueError(
                f'claim is "{FROM_MECHANISM}", but the mechanism\'s attribute claim is {claim!r}, not a claim'
            )
        return mechanism, _checked(claim)


def _checked(claim: TradeoffFunction) -> TradeoffFunction:
    """Return the claim after computing one point of its curve, which may need the package dp-accounting."""
    try:
        claim.beta(0.5)
    except ImportError as error:
        raise ValueError(f"the claim {claim.label} cannot be computed: {error}") from None
    except (ArithmeticError, RecursionError, MemoryError) as error:
        raise ValueError(f"the claim {claim.label} cannot be computed: {type(error).__name__}: {error}") from None
    return claim
