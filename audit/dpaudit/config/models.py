"""What a config may say: the keys, their types, and what of them goes together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from dpaudit.catalogue import BUILTIN
from dpaudit.claims import parse_claim
from dpaudit.learning.attack import resolve_attacks
from dpaudit.mechanisms.command import CommandMechanism
from dpaudit.mechanisms.environments import project_name
from dpaudit.mechanisms.interpreters import check_version
from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.mechanisms.processes import TIMEOUT
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.pairs.pair import Pair, Relation
from dpaudit.pairs.search import Moves, SearchPairs
from dpaudit.text.spelling import hint

MAX_NAME_BYTES = 200
"""Of an audit's name: file systems allow 255 bytes, of which NAME.trials and its companions need some."""

FROM_MECHANISM = "from mechanism"
"""In place of a claim: the one the mechanism object itself states in its attribute `claim`."""


def _whole(value: Any) -> Any:
    """1e5 in YAML is a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class MechanismConfig(_Strict):
    """What is audited: exactly one of `python`, `command` and `builtin`."""

    python: str | None = Field(
        None, description="package.module:object, or path/to/file.py:object relative to this file"
    )
    command: list[str] | None = Field(
        None, min_length=1, description="a program and its arguments, run in this file's folder"
    )
    builtin: str | None = Field(None, description=f"one of {', '.join(BUILTIN)}")
    params: dict[str, Any] | None = Field(None, description="if given, the object is a factory, called once with these")
    batched: bool = Field(False, description="the mechanism takes (dataset, n, rng) and returns n outputs")
    observe_time: bool = Field(False, description="the running time of a trial is part of what the attacker sees")
    requires: list[str] | None = Field(
        None, description="packages; `python` then runs in an environment that has just these"
    )
    python_version: str | None = Field(None, description='of that environment, e.g. "3.11"')

    @field_validator("requires")
    @classmethod
    def _requirements(cls, requires: list[str] | None) -> list[str] | None:
        for requirement in requires or []:
            project_name(requirement)
        return requires

    @field_validator("python_version")
    @classmethod
    def _version(cls, version: str | None) -> str | None:
        return None if version is None else check_version(version)

    @model_validator(mode="after")
    def _one_of(self) -> MechanismConfig:
        if [self.python, self.command, self.builtin].count(None) != 2:
            raise ValueError("must have exactly one of the keys python, command, builtin")
        if self.python is None and self.isolated:
            raise ValueError("requires and python_version go with python only")
        if self.command is not None and (self.params is not None or self.batched):
            raise ValueError("params and batched do not go with command; give the program arguments")
        if self.builtin is not None:
            if self.builtin not in BUILTIN:
                otherwise = f"builtin must be one of {', '.join(BUILTIN)}"
                meant = hint(self.builtin, BUILTIN, otherwise)
                raise ValueError(
                    f"unknown builtin mechanism {self.builtin[:100]!r}; {meant}  `dpaudit list mechanisms` lists all"
                )
            try:
                BUILTIN[self.builtin](**(self.params or {}))
            except (TypeError, ValueError) as error:
                raise ValueError(f"params do not fit builtin {self.builtin}: {error}") from None
        return self

    @property
    def isolated(self) -> bool:
        """Whether it runs in an environment of its own."""
        return self.requires is not None or self.python_version is not None

    def mechanism(self, folder: Path, timeout: float | None = TIMEOUT) -> Any:
        """The mechanism; nothing is loaded, installed or started yet."""
        if self.builtin is not None:
            return BUILTIN[self.builtin](**(self.params or {}))
        if self.command is not None:
            return CommandMechanism(self.command, timeout=timeout, cwd=folder)
        assert self.python is not None
        if self.isolated:
            return IsolatedMechanism(
                address=self.python,
                requires=tuple(self.requires or ()),
                python_version=self.python_version,
                params=self.params,
                batched=self.batched,
                folder=folder,
                timeout=timeout,
            )
        return PythonMechanism(self.python, self.params, self.batched, folder)


class SearchConfig(_Strict):
    """Candidate pairs, the most telling ones first; see `dpaudit.SearchPairs`."""

    relation: Moves
    size: int = Field(10, ge=1, le=100_000, description="records of the larger dataset, or values of the vector")
    bounds: tuple[float, float] | None = Field(None, strict=False, description="least and largest value")
    step: float | None = Field(None, gt=0, description="how far a value of a vector may move")
    whole: bool = Field(False, description="only whole numbers")
    columns: dict[str, list[Any]] | None = Field(
        None, alias="schema", description="records are tables' rows: of each column [low, high] or the categories"
    )
    strays: bool | None = Field(None, description="also values beyond the bounds, NaN, None")
    most: int | None = Field(
        None, ge=1, le=1_000, description="pairs at the most; 4 for relation all_values and 12 otherwise, unless given"
    )
    seed: int = 0

    @model_validator(mode="after")
    def _fits(self) -> SearchConfig:
        self.pairs()
        return self

    def pairs(self) -> list[Pair]:
        """The pairs, in order."""
        settings = self.model_dump(exclude={"columns"})
        return list(SearchPairs(**settings, schema=self.columns))


class PairConfig(_Strict):
    """Two neighbouring datasets, as YAML values; or, with the key `search` alone, those of a search."""

    d0: Any = None
    d1: Any = None
    relation: Relation = "unspecified"
    label: str = ""
    search: SearchConfig | None = None

    @model_validator(mode="after")
    def _one_of(self) -> PairConfig:
        given = self.model_fields_set
        if "search" in given and len(given) > 1:
            raise ValueError("search must stand alone, without d0, d1, relation or label")
        if missing := {"d0", "d1"} - given if "search" not in given else set():
            raise ValueError(f"must have d0 and d1, or search; {' and '.join(sorted(missing))} is missing")
        return self

    def pairs(self) -> list[Pair]:
        """One pair, or those of the search."""
        return [Pair(self.d0, self.d1, self.relation, self.label)] if self.search is None else self.search.pairs()


class AuditConfig(_Strict):
    """One audit."""

    name: str = Field(description="of the audit; its results are written to NAME.json and NAME.pdf")
    source: str = Field("", description="where the claim is made: URL, section")
    claim: str = Field(description=f'e.g. "gaussian(mu=1)", or "{FROM_MECHANISM}"')
    mechanism: MechanismConfig
    pairs: list[PairConfig] = Field(min_length=1)
    attacks: str | list[str] = "auto"
    trials: Annotated[int, BeforeValidator(_whole)] = Field(
        100_000, ge=1, le=2**53, description="most runs on each dataset; 1e5 is read as 100000"
    )
    confidence: float = Field(0.99, gt=0, lt=1)
    method: Literal["sequential", "fixed"] = "sequential"
    seed: int | None = Field(None, description="of all randomness but the mechanism's own; a fresh one unless given")
    detect: str | None = Field(None, description="a violation, as a claim, that the audit should be able to see")
    timeout: float = Field(
        TIMEOUT,
        gt=0,
        description="seconds without an answer after which a command or an environment is given up; if given, also "
        "the most that a run of a python mechanism may take, or a call of a batched one",
    )
    failures: Literal["stop", "outcome", "retry"] = Field(
        "stop",
        description="what a run that raises is: the end of the audit, an outcome that the analyst sees, or a fault of "
        "the machine, after which it is retried",
    )
    expect: Literal["violation", "no violation"] | None = None

    @field_validator("name")
    @classmethod
    def _file_name(cls, name: str) -> str:
        if not re.fullmatch(r"\w[\w .+-]{0,99}", name):
            raise ValueError("must be a file name of at most 100 letters, digits, spaces and . _ + -")
        if len(name.encode()) > MAX_NAME_BYTES:
            raise ValueError(f"must have at most {MAX_NAME_BYTES} bytes as a file name, got {len(name.encode())}")
        return name

    @field_validator("claim", "detect")
    @classmethod
    def _a_claim(cls, text: str | None) -> str | None:
        if text is not None and text != FROM_MECHANISM:
            parse_claim(text)
        return text

    @field_validator("attacks")
    @classmethod
    def _known(cls, attacks: str | list[str]) -> str | list[str]:
        resolve_attacks(attacks)
        return attacks

    @model_validator(mode="after")
    def _has_a_claim(self) -> AuditConfig:
        if self.claim == FROM_MECHANISM and self.mechanism.python is None:
            raise ValueError(f'claim: "{FROM_MECHANISM}" goes with mechanism.python only; state the claim here')
        return self


def schema() -> dict[str, Any]:
    """JSON Schema of a config file, for editors."""
    audit = AuditConfig.model_json_schema(ref_template="#/$defs/{model}")
    definitions = audit.pop("$defs", {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dpaudit config",
        "$defs": {**definitions, "AuditConfig": audit},
        "anyOf": [
            {"$ref": "#/$defs/AuditConfig"},
            {
                "type": "object",
                "properties": {"audits": {"type": "array", "items": {"$ref": "#/$defs/AuditConfig"}, "minItems": 1}},
                "required": ["audits"],
                "additionalProperties": False,
            },
        ],
    }
