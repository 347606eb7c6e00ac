"""Audits described in YAML files, checked completely before any trial runs.

Every problem is reported as `file:line: key must be ..., got ...`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.mechanisms.builtin import BUILTIN
from dpaudit.mechanisms.command import CommandMechanism
from dpaudit.mechanisms.environments import project_name
from dpaudit.mechanisms.interpreters import check_version
from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.mechanisms.loading import PythonMechanism
from dpaudit.mechanisms.processes import TIMEOUT
from dpaudit.neighbours import Pair, Relation
from dpaudit.registry import resolve_attacks
from dpaudit.search import Moves, SearchPairs

FROM_MECHANISM = "from mechanism"
"""In place of a claim: the one the mechanism object itself states in its attribute `claim`."""


_MOST_BYTES = 2**20  # of a config file
_MOST_NODES = 100_000  # keys and entries in it


class ConfigError(Exception):
    """What is wrong in a config, one line for each problem."""


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
                raise ValueError(f"builtin must be one of {', '.join(BUILTIN)}, got {self.builtin!r}")
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
    size: int = Field(10, ge=1, description="records of the larger dataset, or values of the vector")
    bounds: tuple[float, float] | None = Field(None, strict=False, description="least and largest value")
    step: float | None = Field(None, gt=0, description="how far a value of a vector may move")
    whole: bool = Field(False, description="only whole numbers")
    columns: dict[str, list[Any]] | None = Field(
        None, alias="schema", description="records are tables' rows: of each column [low, high] or the categories"
    )
    strays: bool | None = Field(None, description="also values beyond the bounds, NaN, None")
    most: int = Field(12, ge=1, description="pairs at the most")
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
    trials: int = Field(100_000, ge=1, description="most runs on each dataset")
    confidence: float = Field(0.95, gt=0, lt=1)
    method: Literal["sequential", "fixed"] = "sequential"
    seed: int = 0
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
        "the machine, after which it is made again",
    )
    expect: Literal["violation", "no violation"] | None = None

    @field_validator("name")
    @classmethod
    def _file_name(cls, name: str) -> str:
        if not re.fullmatch(r"\w[\w .+-]{0,99}", name):
            raise ValueError("must be a file name of at most 100 letters, digits, spaces and . _ + -")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAudit:
    """One audit of a config file, ready to run."""

    file: Path
    line: int
    config: AuditConfig

    @property
    def pairs(self) -> list[Pair]:
        """Its pairs of datasets."""
        return [pair for entry in self.config.pairs for pair in entry.pairs()]

    @property
    def terms(self) -> dict[str, Any]:
        """Arguments of `audit` that say what is seen of a run and what becomes of one that goes wrong."""
        mechanism = self.config.mechanism
        own = mechanism.python is not None and not mechanism.isolated and "timeout" in self.config.model_fields_set
        return {
            "observe_time": mechanism.observe_time,
            "failures": self.config.failures,
            "timeout": self.config.timeout if own else None,
        }

    @property
    def code(self) -> str:
        """What of other people's code runs with this audit, in words; "" if none does."""
        mechanism = self.config.mechanism
        if mechanism.command is not None:
            return f"the program {shlex.join(mechanism.command)}, in {self.file.parent}"
        if mechanism.python is None:
            return ""
        if not mechanism.isolated:
            return f"{mechanism.python} (from {self.file.parent}), in this process"
        packages = ", ".join(mechanism.requires or ()) or "no packages"
        version = f", Python {mechanism.python_version}" if mechanism.python_version else ""
        return f"{mechanism.python} (from {self.file.parent}), in an environment with {packages}{version}"

    @property
    def text(self) -> str:
        """The audit as YAML, from which `read_text` makes it again."""
        settings = self.config.model_dump(by_alias=True, exclude_unset=True)
        written: str = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
        return written

    def named(self, name: str, *, expect: Literal["violation", "no violation"] | None) -> PlannedAudit:
        """The same audit under another name, with another expectation."""
        return replace(self, config=self.config.model_copy(update={"name": name, "expect": expect}))

    def load(self) -> tuple[Any, TradeoffFunction]:
        """The mechanism, loaded or started, and the claim.  MechanismError or ValueError says what could not be had.

        Builds the mechanism's environment if it asks for one that is not there.
        """
        mechanism = self.config.mechanism.mechanism(self.file.parent, self.config.timeout)
        if isinstance(mechanism, (CommandMechanism, IsolatedMechanism)):
            mechanism.start()
        found = mechanism.loaded if isinstance(mechanism, PythonMechanism) else mechanism
        if self.config.claim != FROM_MECHANISM:
            return mechanism, parse_claim(self.config.claim)
        claim = getattr(found, "claim", None)
        if isinstance(claim, str):  # as a mechanism must write it that cannot import this package
            claim = parse_claim(claim)
        if not isinstance(claim, TradeoffFunction):
            raise ValueError(
                f'claim is "{FROM_MECHANISM}", but the mechanism\'s attribute claim is {claim!r}, not a claim'
            )
        return mechanism, claim


def read_configs(paths: Iterable[str | Path]) -> list[PlannedAudit]:
    """All audits of the files, and of all .yaml and .yml files in the folders.  ConfigError lists every problem."""
    audits: list[PlannedAudit] = []
    problems: list[str] = []
    for file in _files(paths, problems):
        try:
            audits += _read(file)
        except ConfigError as error:
            problems.append(str(error))
    first: dict[str, PlannedAudit] = {}
    for audit in audits:
        other = first.setdefault(audit.config.name, audit)
        if other is not audit:
            problems.append(
                f"{audit.file}:{audit.line}: name must be unlike any other, but {audit.config.name!r} is also "
                f"at {other.file}:{other.line}"
            )
    if problems:
        raise ConfigError("\n".join(problems))
    return audits


def with_requirements(audits: Iterable[PlannedAudit], requirements: Sequence[str]) -> list[PlannedAudit]:
    """The audits with other versions: each requirement takes the place of those of the same project.

    ConfigError if a requirement is not one, or if no audit requires its project.
    """
    changed = list(audits)
    seen: set[str] = set()
    for requirement in requirements:
        try:
            project = project_name(requirement)
        except ValueError as error:
            raise ConfigError(f"--with: {error}") from None
        if project in seen:
            raise ConfigError(f"--with: {project} is given twice")
        seen.add(project)
        before, changed = changed, [_with_requirement(audit, project, requirement) for audit in changed]
        if all(new is old for new, old in zip(changed, before, strict=True)):
            known = sorted({project_name(r) for audit in before for r in audit.config.mechanism.requires or []})
            raise ConfigError(
                f"--with {requirement}: no audit has {project} under requires; they have {', '.join(known) or 'none'}"
            )
    return changed


def _with_requirement(audit: PlannedAudit, project: str, requirement: str) -> PlannedAudit:
    mechanism = audit.config.mechanism
    if project not in map(project_name, mechanism.requires or ()):
        return audit
    requires = [requirement if project_name(r) == project else r for r in mechanism.requires or ()]
    changed = mechanism.model_copy(update={"requires": requires})
    return replace(audit, config=audit.config.model_copy(update={"mechanism": changed}))


def _files(paths: Iterable[str | Path], problems: list[str]) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml"))
            files += inside
            if not inside:
                problems.append(f"{path}: there is no .yaml file in this folder")
        elif path.is_file():
            files.append(path)
        else:
            problems.append(f"{path}: there is no such file or folder")
    return files


def read_text(text: str, file: Path) -> PlannedAudit:
    """The audit that `PlannedAudit.text` was of; `file`: the config that it was read from, for paths relative to it.

    ConfigError if the text is not of one audit.
    """
    audits = _audits(text, file)
    if len(audits) != 1:
        raise ConfigError(f"{file}: must hold one audit, got {len(audits)}")
    return audits[0]


def _read(file: Path) -> list[PlannedAudit]:
    try:
        size = file.stat().st_size
        if size > _MOST_BYTES:
            raise ConfigError(f"{file}: has {size:,} bytes; a config has at most {_MOST_BYTES:,}")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from None
    return _audits(text, file)


def _loaded(text: str, file: Path) -> tuple[Any, dict[tuple[str | int, ...], int]]:
    """What the YAML says, and the lines of its keys."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            raise ConfigError(f"{file}:1: is empty; `dpaudit init` writes an example")
        lines = dict(islice(_lines(root, (), file), _MOST_NODES + 1))  # an alias counts as often as it is used
        if len(lines) > _MOST_NODES:
            raise ConfigError(f"{file}: holds more than {_MOST_NODES:,} keys and entries, aliases written out")
        return yaml.load(text, Loader=yaml.SafeLoader), lines
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{file}:{line}: is not YAML: {error.problem or error.context}") from None
    except RecursionError:
        raise ConfigError(f"{file}: is nested too deeply") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # ValueError: of dates and numbers that are none
        raise ConfigError(f"{file}: is not YAML: {error}") from None


def _audits(text: str, file: Path) -> list[PlannedAudit]:
    content, lines = _loaded(text, file)
    if not isinstance(content, dict):
        raise ConfigError(f"{file}:1: must hold an audit or a list of them under audits:, got {type(content).__name__}")
    many = "audits" in content
    if many and (set(content) != {"audits"} or not isinstance(content["audits"], list) or not content["audits"]):
        raise ConfigError(f"{file}:{lines[('audits',)]}: audits must be a list of audits and the file's only key")
    audits: list[PlannedAudit] = []
    problems: list[str] = []
    for index, values in enumerate(content["audits"] if many else [content]):
        path: tuple[str | int, ...] = ("audits", index) if many else ()
        try:
            audits.append(PlannedAudit(file=file, line=lines.get(path, 1), config=AuditConfig.model_validate(values)))
        except ValidationError as error:
            problems += [_problem(details, path, lines, file, values) for details in _distinct(error.errors())]
    if problems:
        raise ConfigError("\n".join(problems))
    return audits


def _lines(node: yaml.Node, path: tuple[str | int, ...], file: Path) -> Iterable[tuple[tuple[str | int, ...], int]]:
    """The line of every key and list entry.  A key given twice is refused: YAML would keep the last one silently."""
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line, name = key.start_mark.line + 1, str(key.value)
            if name in seen:
                raise ConfigError(f"{file}:{line}: key {name} is given twice")
            seen.add(name)
            for inner, inner_line in _lines(value, (*path, name), file):
                yield inner, line if inner == (*path, name) else inner_line
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(value, (*path, index), file)


def _distinct(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """One error for each place: a value that fits no member of a union fails once for each."""
    return list({e["loc"][:2] if e["loc"][:1] == ("attacks",) else e["loc"]: e for e in reversed(errors)}.values())[
        ::-1
    ]


def _problem(
    error: ErrorDetails,
    base: tuple[str | int, ...],
    lines: Mapping[tuple[str | int, ...], int],
    file: Path,
    values: Any,
) -> str:
    location = (*base, *error["loc"])
    shown = location
    while shown and shown not in lines:
        shown = shown[:-1]
    line = lines.get(shown, 1)
    key = _dotted(location if error["type"] == "missing" else shown) or "the audit"
    match error["type"]:
        case "missing":
            return f"{file}:{line}: {key} is missing"
        case "extra_forbidden":
            return f"{file}:{line}: {key} is not a known key; allowed are {', '.join(_allowed(error['loc']))}"
        case "value_error":
            return f"{file}:{line}: {key}: {error['ctx']['error']}"
        case "literal_error":
            return f"{file}:{line}: {key} must be {error['ctx']['expected']}, got {error['input']!r}"
    reason = error["msg"][0].lower() + error["msg"][1:]
    return f"{file}:{line}: {key}: {reason}, got {error['input']!r}"


def _dotted(location: Sequence[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _allowed(location: Sequence[str | int]) -> list[str]:
    models: dict[str | int, type[BaseModel]] = {"mechanism": MechanismConfig, "pairs": PairConfig}
    model = models.get(location[0], AuditConfig) if len(location) > 1 else AuditConfig
    return list(model.model_fields)


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
