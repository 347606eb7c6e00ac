"""Where a result comes from: when, where and with what it was made, of which code, and by which command or test.

In a result file this is the object `environment`, whose keys are those of `key` below.  Anybody may have written a
file: what it states under other keys, or of another type, is kept as it is in `other` and decides nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """The file of a mechanism."""

    path: str
    sha256: str  # of its content when the audit began


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, float) else None


def _texts(value: Any) -> tuple[str, ...] | None:
    return tuple(value) if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value) else None


def _named(kind: Any) -> Callable[[Any], Mapping[str, Any] | None]:
    def read(value: Any) -> Mapping[str, Any] | None:
        fits = isinstance(value, Mapping) and all(isinstance(x, str) and isinstance(y, kind) for x, y in value.items())
        return dict(value) if fits else None

    return read


def _file(value: Any) -> SourceFile | None:
    fits = isinstance(value, Mapping) and set(value) == {"path", "sha256"}
    path, sha256 = (value["path"], value["sha256"]) if fits else (None, None)
    return SourceFile(path=path, sha256=sha256) if isinstance(path, str) and isinstance(sha256, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What a result records about its origin.  None stands for what it does not state."""

    date: str | None = None  # when the audit began, ISO 8601
    seed: int | None = None
    mechanism: str | None = None  # its name
    python: str | None = None  # version
    platform: str | None = None
    packages: Mapping[str, str] | None = None  # versions of dpaudit and what it rests on
    mechanism_packages: Mapping[str, str] | None = None
    mechanism_file: SourceFile | None = None
    mechanism_modules: Mapping[str, str] | None = None  # SHA-256 by path
    outputs: str | None = None  # digest of all outputs
    first_outputs: tuple[str, ...] | None = None  # digests of the first ones
    attack_seconds: Mapping[str, float] | None = None
    runs_after_evidence: int | None = None  # per dataset; test independence only
    second_stage_trials: int | None = None  # runs per dataset; see `engine.fixed`
    config: str | None = None  # name of the config's file
    folder: str | None = None  # absolute, of the config
    source: str | None = None  # of the claim, as the config states it
    claim_stated_by: str | None = None
    command: str | None = None  # command line
    audit: str | None = None  # the config itself, YAML
    command_number: str | None = None  # drawn, the same in all its results
    command_audits: int | None = None
    command_confidence: float | None = None  # of all its verdicts together
    test: str | None = None  # id of the test that audited
    call: int | None = None  # number of the audit within that test, from 1
    suite_seed: int | None = None
    other: Mapping[str, Any] = field(default_factory=dict)  # what a file states besides, by its keys
    order: tuple[str, ...] = field(default=(), repr=False, compare=False)  # of the keys of a file

    @classmethod
    def read(cls, environment: Mapping[str, Any]) -> Provenance:
        """The provenance that a result file states."""
        found = {
            name: value
            for name, (place, read) in _FILE.items()
            if place in environment and (value := read(environment[place])) is not None
        }
        typed = set(map(key, found))
        other = {name: value for name, value in environment.items() if name not in typed}
        return cls(**found, other=other, order=tuple(environment))

    @property
    def environment(self) -> Mapping[str, Any]:
        """What a result file states, as plain values by key; read-only."""
        known = {key(name): _plain(value) for name in _FILE if (value := getattr(self, name)) is not None}
        stated = {**self.other, **known}
        keys = dict.fromkeys([name for name in self.order if name in stated] + list(stated))
        return MappingProxyType({name: stated[name] for name in keys})

    def besides(self, *fields: str) -> dict[str, Any]:
        """The `environment` without these fields."""
        left_out = set(map(key, fields))
        return {name: value for name, value in self.environment.items() if name not in left_out}


def _plain(value: Any) -> Any:
    match value:
        case SourceFile():
            return dataclasses.asdict(value)
        case Mapping():
            return dict(value)
        case tuple():
            return list(value)
    return value


_FILE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "date": ("date", _text),
    "seed": ("seed", _whole),
    "mechanism": ("mechanism", _text),
    "python": ("python", _text),
    "platform": ("platform", _text),
    "packages": ("packages", _named(str)),
    "mechanism_packages": ("packages of the mechanism", _named(str)),
    "mechanism_file": ("file of the mechanism", _file),
    "mechanism_modules": ("modules of the mechanism", _named(str)),
    "outputs": ("outputs", _text),
    "first_outputs": ("first outputs", _texts),
    "attack_seconds": ("seconds of attacks", _named(int | float)),
    "runs_after_evidence": ("runs after the evidence", _whole),
    "second_stage_trials": ("trials of the second stage", _whole),
    "config": ("config", _text),
    "folder": ("folder", _text),
    "source": ("source", _text),
    "claim_stated_by": ("claim stated by", _text),
    "command": ("command", _text),
    "audit": ("audit", _text),
    "command_number": ("number of the command", _text),
    "command_audits": ("audits of the command", _whole),
    "command_confidence": ("confidence of the command", _number),
    "test": ("test", _text),
    "call": ("call", _whole),
    "suite_seed": ("suite_seed", _whole),
}
"""Field -> its key in result files, and what reads its value; that gives None for a value of another type."""


def key(name: str) -> str:
    """The key of a field of `Provenance` in result files, which is also its name for people."""
    return _FILE[name][0]
