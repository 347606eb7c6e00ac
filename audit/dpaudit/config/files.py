"""Reads configs from YAML files.  Every problem is reported as `file:line: key must be ..., got ...`."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dpaudit.catalogue import BUILTIN
from dpaudit.claims import parse_claim
from dpaudit.config.models import AuditConfig, MechanismConfig
from dpaudit.config.pair_models import Loader, PairConfig, SearchConfig, reader
from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.rounding import comma_meant
from dpaudit.running.worker import STANDARD_FILE, is_standard_file
from dpaudit.settings import MAX_ENTRIES, percent_meant, shown
from dpaudit.text import hint, nearest, read_foreign, relation_meant, shortened

Place = tuple[str | int, ...]  # the keys and numbers of entries that lead to a value of a YAML file
Lines = Mapping[Place, int]  # the line of each key and list entry

T = TypeVar("T")
_SUFFIXES = (".yaml", ".yml")


def read_configs(paths: Iterable[str | Path]) -> list[PlannedAudit]:
    """Read all audits of the files, and of all .yaml and .yml files in the folders, in the order of the files."""
    files: list[Path] = []
    audits: list[PlannedAudit] = []
    problems: list[str] = []
    for path in map(Path, paths):
        try:
            files += _configs_in(path)
        except ConfigError as error:
            problems += error.problems
        except OSError as error:  # for example, the name is too long
            problems.append(f"{path}: {error.strerror or error}")
    for file in files:
        try:
            audits += _audits(file)
        except ConfigError as error:
            problems += error.problems
    first: dict[str, PlannedAudit] = {}
    for audit in audits:
        other = first.setdefault(audit.config.name, audit)
        if other is not audit:
            problems.append(
                f"{audit.file}:{audit.line}: name must be unique, but {audit.config.name!r} is also used at "
                f"{other.file}:{other.line}"
            )
    if problems:
        raise ConfigError(*problems)
    return audits


def _configs_in(path: Path) -> list[Path]:
    if path.is_file():
        match path.suffix:
            case ".json":
                problem = f"is no config but perhaps a result; to read a result: dpaudit report {path}"
            case ".py":
                problem = f"is Python code, not a config; a config names it: mechanism: {{python: {path}:FUNCTION}}"
            case ".csv" | ".npz" | ".parquet" | ".jsonl" | ".ndjson":
                problem = f"is no config but perhaps a file of scores; to audit scores: dpaudit scores {path}"
            case _:
                return [path]
        raise ConfigError(f"{path} {problem}")
    if not path.is_dir():
        raise ConfigError(f"{path}: no such file or folder{_config_meant(path)}")
    inside = sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES and p.is_file())
    if not inside:
        raise ConfigError(f"{path}: no .yaml file in this folder; `dpaudit init` writes an example")
    return inside


def _config_meant(path: Path) -> str:
    """Return a hint for a path that does not exist, or ""."""
    if str(path) == "anyway":
        return "; to resume from the outputs of another audit, write --resume=anyway with an equals sign"
    if ":" in path.name:
        return "; a config names the code: write mechanism: {python: " + str(path) + "} into a .yaml file"
    try:
        meant = nearest(path.name, [p.name for p in path.parent.iterdir() if p.is_dir() or p.suffix in _SUFFIXES], 0.75)
    except OSError:
        return ""
    return f"; did you mean {path.with_name(meant)}?" if meant else ""


def read_text(text: str, file: Path) -> PlannedAudit:
    """Read one audit from text that `PlannedAudit.text` wrote."""
    audits = _audits(file, text)
    if len(audits) != 1:
        raise ConfigError(f"{file}: must hold exactly one audit, got {len(audits)}")
    return audits[0]


def only_named(audits: Sequence[PlannedAudit], patterns: Sequence[str]) -> list[PlannedAudit]:
    """Return the audits whose names match a pattern, in their original order; all audits if there is no pattern."""
    names = [audit.config.name for audit in audits]
    return matching([([audit.config.name], audit) for audit in audits], patterns, "no audit has", "audits", names)


def matching(
    named: Sequence[tuple[Sequence[str], T]], patterns: Sequence[str], problem: str, kind: str, known: Sequence[str]
) -> list[T]:
    """Return the things one of whose names matches a pattern; all things if there is no pattern."""
    all_names = [name for names, _ in named for name in names]
    problems = [
        f"--only {pattern}: {problem} this name; "
        + hint(pattern, known, f"the {kind} are {shortened(', '.join(known))}")
        for pattern in patterns
        if not any(fnmatch.fnmatchcase(name, pattern) for name in all_names)
    ]
    if problems:
        raise ConfigError(*problems)
    wanted = {name for pattern in patterns for name in all_names if fnmatch.fnmatchcase(name, pattern)}
    return [thing for names, thing in named if not patterns or not wanted.isdisjoint(names)]


def read_yaml(file: Path, text: str | None = None) -> tuple[object, Lines]:
    """Read YAML from a file, or from the given text; return the content, and the line of each key and entry."""
    if text is None:
        try:
            text = read_foreign(file)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        loader = Loader(text)
        root = loader.get_single_node()
        if root is None:
            raise ConfigError(f"{file}:1: is empty; `dpaudit init` writes an example")
        lines: dict[Place, int] = {}
        size = 0
        for place, line, letters in _lines(root, (), file):
            lines[place] = line
            size += 1 + letters // 40
            if size > 2 * MAX_ENTRIES:  # keys count, too
                raise ConfigError(
                    f"{file}: it has more than {MAX_ENTRIES:,} keys and list entries (aliases expanded); use several "
                    "configs, or write large datasets into .csv or .json files"
                )
        return loader.construct_document(root), lines
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        if error.problem == "but found another document":
            raise ConfigError(
                f"{file}:{line}: --- begins a second YAML document, but a file holds one document; list all audits "
                "under the key audits, or write each audit into its own file"
            ) from None
        words = shortened(str(error.problem or error.context))
        raise ConfigError(f"{file}:{line}: is not valid YAML: {words}") from None
    except (RecursionError, MemoryError):
        raise ConfigError(f"{file}: is nested too deeply or is too large to read") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # ValueError: invalid dates and numbers
        raise ConfigError(f"{file}: is not valid YAML: {shortened(str(error))}") from None


def _lines(node: yaml.Node, path: Place, file: Path) -> Iterable[tuple[Place, int, int]]:
    """Yield the line and the letters of every key and list entry.  Refuse duplicate keys."""
    yield path, node.start_mark.line + 1, len(node.value) if isinstance(node, yaml.ScalarNode) else 0
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line, name = key.start_mark.line + 1, str(key.value)
            if name in seen:
                raise ConfigError(f"{file}:{line}: key {shortened(name)} is given twice")
            seen.add(name)
            yield from _lines(value, (*path, name), file)
            yield (*path, name), line, len(name)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(value, (*path, index), file)


def _audits(file: Path, text: str | None = None) -> list[PlannedAudit]:
    """Read the audits of a config and their files with datasets; or only the audits of a text."""
    content, lines = read_yaml(file, text)
    if not isinstance(content, dict):
        raise ConfigError(
            f"{file}:1: must hold an audit, or a list of audits under the key audits, got {type(content).__name__}"
        )
    many = "audits" in content
    if many and (set(content) != {"audits"} or not isinstance(content["audits"], list) or not content["audits"]):
        raise ConfigError(
            f"{file}:{lines[('audits',)]}: audits must be a list of audits and must be the only key of the file; for a "
            "key of all audits, use an option such as --trials, or write it once with YAML's &name and *name"
        )
    audits: list[PlannedAudit] = []
    problems: list[str] = []
    read = reader(Path(os.path.realpath(file.parent)))
    for index, values in enumerate(content["audits"] if many else [content]):
        path: Place = ("audits", index) if many else ()
        line = lines.get(path, 1)
        try:
            config = AuditConfig.model_validate(values)
        except ValidationError as error:
            errors: dict[Place, ErrorDetails] = {}
            for one in error.errors():  # a value that fits no member of a union fails once for each member
                errors.setdefault(one["loc"][:2] if one["loc"][:1] == ("attacks",) else one["loc"], one)
            # a missing key may stand in the file under a misspelled name, so its message comes last
            ordered = sorted(errors.values(), key=lambda one: one["type"] == "missing")
            problems += [explained(one, path, lines, file) for one in ordered]
            continue
        named = (lines.get((*path, "mechanism", key)) for key in ("python", "command", "builtin", "library"))
        audit = PlannedAudit(file=file, line=line, code_line=next(filter(None, named), line), config=config)
        audits.append(audit)
        if (code := audit.mechanism_file) is not None and is_standard_file(str(code)):
            problems.append(f"{file}:{audit.code_line}: mechanism: {code} {STANDARD_FILE}")
        for place, entry in enumerate(config.pairs):
            try:
                if text is None and entry.files:
                    entry.pairs(read)
            except ValueError as error:
                problems.append(f"{file}:{lines.get((*path, 'pairs', place), line)}: pairs[{place}]: {error}")
    if problems:
        raise ConfigError(*problems)
    return audits


_KINDS = {
    "int_type": "must be a whole number such as 1000 or 1e5",
    "int_from_float": "must be a whole number such as 1000 or 1e5",
    "float_type": "must be a number such as 0.5, 1e-5 or 1/3",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "too_short": "must have at least one entry",
    "greater_than_equal": "must be at least {ge:,}",
    "greater_than": "must be greater than {gt:g}",
    "less_than_equal": "must be at most {le:,}",
    "less_than": "must be less than {lt:g}",
}
"""Words for kinds of errors of pydantic.  The names in braces are those of pydantic's limits."""


_INSIDE: dict[str | int, type[BaseModel]] = {"mechanism": MechanismConfig, "pairs": PairConfig, "search": SearchConfig}
"""The models of the keys that hold other keys."""


def explained(
    error: ErrorDetails,
    base: Place,
    lines: Lines,
    file: Path,
    model: type[BaseModel] = AuditConfig,
    inside: Mapping[str | int, type[BaseModel]] = _INSIDE,
) -> str:
    """Return a message about a wrong value, as `file:line: key must be ..., got ...`."""
    location = (*base, *error["loc"])
    written = location
    while written and written not in lines:
        written = written[:-1]
    place = f"{file}:{lines.get(written, 1)}"
    key = _dotted(location if error["type"] == "missing" else written) or "the audit"
    match error["type"]:
        case "missing":
            return f"{place}: {key} is missing"
        case "extra_forbidden":
            allowed = _keys(next((inside[p] for p in error["loc"][-2::-1] if p in inside), model))
            known = [*allowed, "audits"] if len(error["loc"]) == 1 and model is AuditConfig else allowed
            meant = hint(str(error["loc"][-1]), known, f"allowed are {', '.join(allowed)}")
            if places := [str(place) for place, inner in _INSIDE.items() if error["loc"][-1] in _keys(inner)]:
                meant = f"it is a key of {' and of '.join(places)}"  # such as `requires` outside of `mechanism`
            return f"{place}: {key} is not a known key; {meant}"
        case "value_error":
            return f"{place}: {key}: {error['ctx']['error']}"
        case "literal_error":
            words = f"{place}: {key} must be {error['ctx']['expected']}, got {shown(error['input'])}"
            return words + relation_meant(error["input"], re.findall("'([^']*)'", error["ctx"]["expected"]))
        case kind if kind in _KINDS:
            words = _KINDS[kind].format(**error.get("ctx", {}))
            return f"{place}: {key} {words}, got {shown(error['input'])}{_meant(written, error['input'])}"
    reason = error["msg"][0].lower() + error["msg"][1:]
    return f"{place}: {key}: {reason}, got {shown(error['input'])}{_meant(written, error['input'])}"


def _meant(location: Sequence[str | int], value: object) -> str:
    """Return a hint for a value of a wrong type, or ""."""
    match location[-1] if location else "":
        case "confidence":
            number = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*%?", str(value).strip())
            return (number and percent_meant(number[1])) or comma_meant(value, ".")
        case "claim" | "detect":
            text = f"eps={value}"
            if isinstance(value, dict):
                text = ", ".join(f"{key}={one}" for key, one in value.items())
            elif isinstance(value, list):
                text = ", ".join(map(str, value))
            try:
                return f'; did you mean "{parse_claim(text)}"?'
            except ValueError:
                return '; a claim is text such as "pure(epsilon=1)"'
        case "mechanism" if isinstance(value, str):
            return f"; write {{builtin: {value}}}" if value in BUILTIN else f"; write {{python: {value}}}"
        case "command" | "requires" if isinstance(value, str):
            return f"; write [{value}]"
        case "python_version":
            return f'; write "{value}" with quotation marks'
        case "search":
            return "; write {relation: add_remove}, for example"
        case "pairs" if isinstance(value, dict):
            return "; put a dash before the pair, or write [{d0: ..., d1: ...}]"
        case int() if "pairs" in location:
            return "; write {d0: ..., d1: ...}"
        case "trials" | "seed" | "size" | "most":
            return comma_meant(value, "")
    return comma_meant(value, ".")


def _dotted(location: Sequence[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
