"""Configs read from YAML files.  Every problem is reported as `file:line: key must be ..., got ...`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dpaudit.config.models import AuditConfig, MechanismConfig, PairConfig, SearchConfig
from dpaudit.config.numbers import Loader
from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.text.spelling import hint

_MOST_BYTES = 2**20  # of a config file
_MOST_NODES = 100_000  # keys and entries in it
_MOST_SHOWN = 80  # letters of a wrong value that a message repeats


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


def _files(paths: Iterable[str | Path], problems: list[str]) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml") and p.is_file())
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
        root = yaml.compose(text, Loader=Loader)
        if root is None:
            raise ConfigError(f"{file}:1: is empty; `dpaudit init` writes an example")
        lines = dict(islice(_lines(root, (), file), _MOST_NODES + 1))  # an alias counts as often as it is used
        if len(lines) > _MOST_NODES:
            raise ConfigError(f"{file}: holds more than {_MOST_NODES:,} keys and entries, aliases written out")
        return yaml.load(text, Loader=Loader), lines
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{file}:{line}: is not YAML: {error.problem or error.context}") from None
    except (RecursionError, MemoryError):
        raise ConfigError(f"{file}: is nested too deeply or too large") from None
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
            line = lines.get(path, 1)
            named = (lines.get((*path, "mechanism", key)) for key in ("python", "command", "builtin"))
            config = AuditConfig.model_validate(values)
            audits.append(PlannedAudit(file=file, line=line, code_line=next(filter(None, named), line), config=config))
        except ValidationError as error:
            problems += [_problem(details, path, lines, file, values) for details in _distinct(error.errors())]
    if problems:
        raise ConfigError("\n".join(problems))
    return audits


def _lines(node: yaml.Node, path: tuple[str | int, ...], file: Path) -> Iterable[tuple[tuple[str | int, ...], int]]:
    """The line of every key and list entry.  A key given twice is refused: YAML would keep the last one silently."""
    yield path, node.start_mark.line + 1
    _check_characters(node, file)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line, name = key.start_mark.line + 1, str(key.value)
            _check_characters(key, file)
            if name in seen:
                raise ConfigError(f"{file}:{line}: key {name} is given twice")
            seen.add(name)
            for inner, inner_line in _lines(value, (*path, name), file):
                yield inner, line if inner == (*path, name) else inner_line
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(value, (*path, index), file)


def _check_characters(node: yaml.Node, file: Path) -> None:
    """A lone surrogate, such as "\\ud800" in quotes, is half of a character, and cannot be written to any file."""
    if isinstance(node, yaml.ScalarNode) and any("\ud800" <= letter <= "\udfff" for letter in node.value):
        raise ConfigError(
            f"{file}:{node.start_mark.line + 1}: {node.value[:40]!r} holds half of a character; write the whole one"
        )


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
            allowed = _allowed(error["loc"])
            meant = hint(str(error["loc"][-1]), allowed, f"allowed are {', '.join(allowed)}")
            return f"{file}:{line}: {key} is not a known key; {meant}"
        case "value_error":
            return f"{file}:{line}: {key}: {error['ctx']['error']}"
        case "literal_error":
            return f"{file}:{line}: {key} must be {error['ctx']['expected']}, got {error['input']!r}"
    reason = error["msg"][0].lower() + error["msg"][1:]
    return f"{file}:{line}: {key}: {reason}, got {_brief(error['input'])}{_percent(key, error['input'])}"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _percent(key: str, value: Any) -> str:
    """What a confidence of 95 or "95 %" was meant to be."""
    number = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*%?", str(value).strip())
    if not key.endswith("confidence") or number is None or not 1 < float(number[1]) < 100:
        return ""
    return f"; did you mean {Decimal(number[1]).scaleb(-2).normalize():f}?"


def _dotted(location: Sequence[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _allowed(location: Sequence[str | int]) -> list[str]:
    """The keys that may stand where an unknown one was found."""
    model: type[BaseModel] = AuditConfig
    inside: dict[str | int, type[BaseModel]] = {
        "mechanism": MechanismConfig,
        "pairs": PairConfig,
        "search": SearchConfig,
    }
    for part in location[:-1]:
        model = inside.get(part, model)
    return [field.alias or name for name, field in model.model_fields.items()]
