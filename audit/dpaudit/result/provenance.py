"""Defines the provenance of a result: date, machine, versions, code, and the command or test that made the result.

A result file stores the provenance as the object `environment`; the function `key` returns the keys of this object.  A
result file may have been edited.  Therefore values with unknown keys or wrong types are stored unchanged in `other`,
and no other code uses these values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dpaudit.values import Foreign, Json, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """The path and the hash of a mechanism's source file."""

    path: str
    sha256: str  # SHA-256 hash of the file's content when the audit began


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Json) -> float | None:
    return value if isinstance(value, float) else None


def _texts(value: Json) -> tuple[str, ...] | None:
    return tuple(value) if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value) else None


def _named(*kinds: type) -> Callable[[Json], JsonObject | None]:
    """Return a function that reads JSON objects whose values have one of the given types."""

    def read(value: Json) -> JsonObject | None:
        fits = isinstance(value, Mapping) and all(isinstance(x, str) and isinstance(y, kinds) for x, y in value.items())
        return dict(value) if fits else None

    return read


def _file(value: Json) -> SourceFile | None:
    fits = isinstance(value, Mapping) and set(value) == {"path", "sha256"}
    path, sha256 = (value["path"], value["sha256"]) if fits else (None, None)
    return SourceFile(path=path, sha256=sha256) if isinstance(path, str) and isinstance(sha256, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The recorded origin of a result.  A field is None if the result does not state a value for it."""

    date: str | None = None  # time at which the audit began, in ISO 8601 format
    seed: int | None = None
    mechanism: str | None = None  # name of the mechanism
    python: str | None = None  # version of the Python interpreter
    platform: str | None = None
    packages: Mapping[str, str] | None = None  # versions of dpaudit and its dependencies, by package name
    # versions of the packages that the mechanism uses, by package name
    mechanism_packages: Mapping[str, str] | None = None
    # SHA-256 hash of each package's files in an isolated environment, by package name
    mechanism_hashes: Mapping[str, str] | None = None
    mechanism_file: SourceFile | None = None
    mechanism_modules: Mapping[str, str] | None = None  # SHA-256 hash of each module's file, by path
    identity: Mapping[str, str] | None = None  # what a replay compares: see `sampling.identity`
    outputs: str | None = None  # hash of all outputs of the audit
    first_outputs: tuple[str, ...] | None = None  # hashes of the first outputs of the audit
    attack_seconds: Mapping[str, float] | None = None  # time in seconds spent in each attack, by name
    runs_after_evidence: int | None = None  # number of runs on each dataset that were only made to test independence
    running_times: str | None = None  # how running times were measured, see `mechanisms.timing`
    # number of runs on each dataset in the second stage of the pilot phase; see `engine.fixed`
    second_stage_trials: int | None = None
    config: str | None = None  # file name of the config of the audit
    folder: str | None = None  # absolute path of the folder of the config
    source: str | None = None  # source of the claim, as stated in the config
    claim_stated_by: str | None = None
    command: str | None = None  # command line that started the audit
    audit: str | None = None  # config of the audit in YAML, with masks in place of secrets
    data_files: Mapping[str, str] | None = None  # SHA-256 hash of each file with a dataset that the config names
    command_number: str | None = None  # random identifier that all results of a command share
    command_audits: int | None = None  # number of audits that the command ran
    command_confidence: float | None = None  # joint confidence of the verdicts of the command
    test: str | None = None  # identifier of the test that made the audit
    call: int | None = None  # number of the audit within its test, counted from 1
    suite_seed: int | None = None
    other: Mapping[str, Json] = field(default_factory=dict)  # values of a result file that fit no field, by key
    order: tuple[str, ...] = field(default=(), repr=False, compare=False)  # order of the keys in the result file

    @classmethod
    def read(cls, environment: Mapping[str, Json]) -> Provenance:
        """Read the provenance from the object `environment` of a result file."""
        found = {
            name: value
            for name, (place, read) in _FILE.items()
            if place in environment and (value := read(environment[place])) is not None
        }
        typed = set(map(key, found))
        other = {name: value for name, value in environment.items() if name not in typed}
        return cls(**found, other=other, order=tuple(environment))

    @property
    def environment(self) -> Mapping[str, Json]:
        """The provenance as the object `environment` of a result file, in a read-only mapping."""
        known = {key(name): _plain(value) for name in _FILE if (value := getattr(self, name)) is not None}
        stated = {**self.other, **known}
        keys = dict.fromkeys([name for name in self.order if name in stated] + list(stated))
        return MappingProxyType({name: stated[name] for name in keys})

    def besides(self, *fields: str) -> JsonObject:
        """Return the object `environment` without the given fields of `Provenance`."""
        left_out = set(map(key, fields))
        return {name: value for name, value in self.environment.items() if name not in left_out}


def _plain(value: Foreign) -> Json:
    match value:
        case SourceFile():
            return dataclasses.asdict(value)
        case Mapping():
            return dict(value)
        case tuple():
            return list(value)
    return value


_FILE: dict[str, tuple[str, Callable[[Json], Foreign]]] = {
    "date": ("date", _text),
    "seed": ("seed", _whole),
    "mechanism": ("mechanism", _text),
    "python": ("python", _text),
    "platform": ("platform", _text),
    "packages": ("packages", _named(str)),
    "mechanism_packages": ("packages of the mechanism", _named(str)),
    "mechanism_hashes": ("hashes of the mechanism's packages", _named(str)),
    "mechanism_file": ("file of the mechanism", _file),
    "mechanism_modules": ("modules of the mechanism", _named(str)),
    "identity": ("identity", _named(str)),
    "outputs": ("outputs", _text),
    "first_outputs": ("first outputs", _texts),
    "attack_seconds": ("seconds of attacks", _named(int, float)),
    "runs_after_evidence": ("runs after the evidence", _whole),
    "running_times": ("running times", _text),
    "second_stage_trials": ("trials of the second stage", _whole),
    "config": ("config", _text),
    "folder": ("folder", _text),
    "source": ("source", _text),
    "claim_stated_by": ("claim stated by", _text),
    "command": ("command", _text),
    "audit": ("audit", _text),
    "data_files": ("files of datasets", _named(str)),
    "command_number": ("number of the command", _text),
    "command_audits": ("audits of the command", _whole),
    "command_confidence": ("confidence of the command", _number),
    "test": ("test", _text),
    "call": ("call", _whole),
    "suite_seed": ("suite_seed", _whole),
}
"""For each field: the key in result files, and a function that reads the value or returns None for a wrong type."""


def key(name: str) -> str:
    """Return the key of a field of `Provenance` in result files.  Reports also use the key as a label."""
    return _FILE[name][0]
