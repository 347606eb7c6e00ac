"""What a result records about its origin: date, machine, versions, code, command or test, and the design of training.

A result file holds it as the object `environment`, with the keys of `key`.  The file may have been edited, so unknown
keys and values of wrong types are kept in `other`, which no other code uses.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_type_hints

import numpy as np

from dpaudit.numerics import Array
from dpaudit.values import Json, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """The path and the hash of a mechanism's source file."""

    path: str
    sha256: str  # SHA-256 hash of the file's content when the audit began


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
    identity: Mapping[str, str] | None = None  # what a replay compares: see `running.identity`
    outputs: str | None = None  # hash of all outputs of the audit
    first_outputs: tuple[str, ...] | None = None  # hashes of the first outputs of the audit
    attack_seconds: Mapping[str, float] | None = None  # time in seconds spent in each attack, by name
    runs_before_evidence: int | None = None  # number of runs on each dataset that only chose the analysts of sessions
    runs_after_evidence: int | None = None  # number of runs on each dataset that were only made to test independence
    running_times: str | None = None  # how running times were measured, see `running.foreign.CLOCKS`
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

    @property
    def of_sessions(self) -> bool:
        """Whether `audit_interactive` made the result: only it records a pilot, which may have no sessions."""
        return self.runs_before_evidence is not None

    @classmethod
    def read(cls, environment: Mapping[str, Json]) -> Provenance:
        """Read the provenance from the object `environment` of a result file."""
        found: dict[str, Any] = {}
        for name, adapter in _adapters().items():
            with suppress(ValueError, TypeError):  # a value of another type stays in `other`
                value = adapter.validate_json(json.dumps(environment.get(key(name))), strict=True)
                found |= {} if value is None else {name: value}
        typed = set(map(key, found))
        other = {name: value for name, value in environment.items() if name not in typed}
        return cls(**found, other=other, order=tuple(environment))

    @property
    def environment(self) -> Mapping[str, Json]:
        """The provenance as the object `environment` of a result file, in a read-only mapping."""
        known: JsonObject = {}
        for name in _NAMES:
            match getattr(self, name):
                case None:
                    pass
                case SourceFile() as file:
                    known[key(name)] = dataclasses.asdict(file)
                case Mapping() as mapping:
                    known[key(name)] = dict(mapping)
                case tuple() as values:
                    known[key(name)] = list(values)
                case value:
                    known[key(name)] = value
        stated = {**self.other, **known}
        keys = dict.fromkeys([*(name for name in self.order if name in stated), *stated])
        return MappingProxyType({name: stated[name] for name in keys})

    def besides(self, *fields: str) -> JsonObject:
        """Return the object `environment` without the given fields of `Provenance`."""
        left_out = set(map(key, fields))
        return {name: value for name, value in self.environment.items() if name not in left_out}


@cache
def _adapters() -> dict[str, Any]:
    from pydantic import TypeAdapter  # loads slowly

    hints = get_type_hints(Provenance)
    return {name: TypeAdapter(hints[name]) for name in _NAMES}


_KEYS = {
    "mechanism_packages": "packages of the mechanism",
    "mechanism_hashes": "hashes of the mechanism's packages",
    "mechanism_file": "file of the mechanism",
    "mechanism_modules": "modules of the mechanism",
    "first_outputs": "first outputs",
    "attack_seconds": "seconds of attacks",
    "runs_before_evidence": "runs before the evidence",
    "runs_after_evidence": "runs after the evidence",
    "running_times": "running times",
    "second_stage_trials": "trials of the second stage",
    "claim_stated_by": "claim stated by",
    "data_files": "files of datasets",
    "command_number": "number of the command",
    "command_audits": "audits of the command",
    "command_confidence": "confidence of the command",
}
"""The keys in result files of fields whose key is not their name."""

_NAMES = [one.name for one in dataclasses.fields(Provenance) if one.name not in ("other", "order")]


def key(name: str) -> str:
    """Return the key of a field of `Provenance` in result files.  Reports also use the key as a label."""
    return _KEYS.get(name, name)


Design = Literal["many runs", "one run", "step by step", "sequential", "fixed"]
"""The design of an audit of training: a function of `dpaudit.training`, or the method of `dpaudit.audit`."""

BARS = 30  # number of bars of the histograms

_OUTSIDE = 0.005  # share of all scores beyond each end of the histograms; the last bars count these scores


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecord:
    """The design of an audit of training, and histograms of both sides' scores, whose end bars count all beyond."""

    design: Design
    training: str = ""
    canary: str = ""
    edges: tuple[float, ...] = ()
    out: tuple[int, ...] = ()
    into: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not all(math.isfinite(low) and low < high < math.inf for low, high in pairwise(self.edges)):
            raise ValueError("the edges of the histograms of scores must increase and be finite")
        bars = max(0, len(self.edges) - 1)
        if {len(self.out), len(self.into)} != {bars} or min((0, *self.out, *self.into)) < 0:
            raise ValueError(f"the histograms of scores must have {bars} counts of 0 or more for each side")


Histograms: TypeAlias = tuple[tuple[float, ...], tuple[int, ...], tuple[int, ...]]
"""The values `edges`, `out` and `into` of a `TrainingRecord`."""


def histograms(out: Array, into: Array) -> Histograms:
    """Return the histograms of the scores of both sides; nan counts as the lowest score."""
    sides = [np.where(np.isnan(side), -np.inf, side) for side in (out, into)]
    finite = np.concatenate(sides)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return (), (), ()
    low, high = (float(end) for end in np.quantile(finite, [_OUTSIDE, 1 - _OUTSIDE]))
    spread = max(high - low, 1e-9 * max(abs(low), abs(high)), 1e-300)
    edges = np.linspace(low - spread / BARS, high + spread / BARS, BARS + 1)
    if not (np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0)):
        return (), (), ()
    first, second = (np.histogram(np.clip(side, edges[0], edges[-1]), edges)[0].tolist() for side in sides)
    return tuple(edges.tolist()), tuple(first), tuple(second)


def numbers(scores: Sequence[object] | Array) -> Array | None:
    """Return scores as floats; None if some score is not a number."""
    values = np.asarray(scores)
    return values.astype(np.float64) if values.ndim == 1 and values.dtype.kind in "biuf" else None
