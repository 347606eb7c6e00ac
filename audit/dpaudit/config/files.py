"""Reads configs from YAML files.  Every problem is reported as `file:line: key must be ..., got ...`."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dpaudit.config.dataset_files import DatasetFiles
from dpaudit.config.models import AuditConfig
from dpaudit.config.numbers import Loader
from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.config.problems import brief_text, explained
from dpaudit.mechanisms.standard_library import STANDARD_FILE, is_standard_file
from dpaudit.text.foreign_files import read_foreign
from dpaudit.text.printable import shortened
from dpaudit.text.spelling import nearest

_SUFFIXES = (".yaml", ".yml")
_MAX_FILE_BYTES = 2**20  # larger files are refused before they are parsed
_MAX_NUMBER_CHARACTERS = 1_000  # maximum length of a number; `_check_characters` states the reason
_MAX_NODES = 100_000  # maximum number of keys and list entries of a file, with aliases expanded
_SECOND_DOCUMENT = "but found another document"  # words of PyYAML's error for a second document
_MAX_LETTERS = 2**22  # maximum length of all keys and values of a file, with aliases expanded
_MAX_TEXT = 2**22  # maximum length of an audit in a result; a result repeats a config with more spaces
_SMALLER = "use several configs, or write large datasets into .csv or .json files"
_MAX_PROBLEM = 300  # maximum number of characters of a message of PyYAML, which may quote the file


def read_configs(paths: Iterable[str | Path]) -> list[PlannedAudit]:
    """Read all audits of the files, and of all .yaml and .yml files in the folders.

    Returns:
        The audits, in the order of the files.
    """
    audits: list[PlannedAudit] = []
    problems: list[str] = []
    for file in _files(paths, problems):
        try:
            audits += _read(file)
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


def _files(paths: Iterable[str | Path], problems: list[str]) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, paths):
        try:
            files += _configs_in(path)
        except ConfigError as error:
            problems += error.problems
        except OSError as error:  # for example, the name is too long
            problems.append(f"{path}: {error.strerror or error}")
    return files


def _configs_in(path: Path) -> list[Path]:
    """Return the file itself, or all configs if a folder is given."""
    if path.is_file():
        if words := _not_a_config(path):
            raise ConfigError(words)
        return [path]
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


def _not_a_config(path: Path) -> str:
    """Say what a file is if its name shows that it is no config; otherwise ""."""
    match path.suffix:
        case ".json":
            return f"{path} is no config but perhaps a result; to read a result: dpaudit report {path}"
        case ".py":
            return f"{path} is Python code, not a config; a config names it: mechanism: {{python: {path}:FUNCTION}}"
        case ".csv" | ".npz" | ".parquet" | ".jsonl" | ".ndjson":
            return f"{path} is no config but perhaps a file of scores; to audit scores: dpaudit scores {path}"
    return ""


def read_text(text: str, file: Path) -> PlannedAudit:
    """Read one audit from text that `PlannedAudit.text` wrote."""
    audits = _audits(text, file)
    if len(audits) != 1:
        raise ConfigError(f"{file}: must hold exactly one audit, got {len(audits)}")
    return audits[0]


def _read(file: Path) -> list[PlannedAudit]:
    text = _text_of(file)
    audits = _audits(text, file)
    if problems := list(_problems_of_datasets(audits, text)):
        raise ConfigError(*problems)
    return audits


def _problems_of_datasets(audits: Sequence[PlannedAudit], text: str) -> Iterable[str]:
    """Yield a message for each file with a dataset that cannot be read."""
    named = [(number, audit) for number, audit in enumerate(audits) if any(one.files for one in audit.config.pairs)]
    if not named:
        return
    content, lines = _loaded(text, audits[0].file)
    many = isinstance(content, dict) and "audits" in content
    files = DatasetFiles(audits[0].place)  # all audits of the text have the same folder
    for number, audit in named:
        for place, entry in enumerate(audit.config.pairs):
            try:
                if entry.files:
                    entry.pairs(files)
            except ValueError as error:
                path = (*(("audits", number) if many else ()), "pairs", place)
                yield f"{audit.file}:{lines.get(path, audit.line)}: pairs[{place}]: {error}"


def _text_of(file: Path) -> str:
    try:
        return read_foreign(file, _MAX_FILE_BYTES)
    except OSError as error:
        remedy = f"; {_SMALLER}" if error.errno == errno.EFBIG else ""
        raise ConfigError(f"{file}: cannot be read: {error.strerror or error}{remedy}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from None


def read_yaml(file: Path) -> tuple[object, dict[tuple[str | int, ...], int]]:
    """Read a YAML file with the limits and the checks of configs.

    Returns:
        The content, and the line of each key and list entry by its path.
    """
    return _loaded(_text_of(file), file)


def _loaded(text: str, file: Path) -> tuple[object, dict[tuple[str | int, ...], int]]:
    """Parse YAML; return its content and the line of each key."""
    try:
        root = yaml.compose(text, Loader=_Composer)
        if root is None:
            raise ConfigError(f"{file}:1: is empty; `dpaudit init` writes an example")
        lines = _Lines(file).of(root)
        return yaml.load(text, Loader=Loader), lines
    except _TooManyNodes:
        raise ConfigError(
            f"{file}: has more than {_MAX_NODES:,} keys and list entries (aliases expanded); {_SMALLER}"
        ) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        if error.problem == _SECOND_DOCUMENT:
            raise ConfigError(
                f"{file}:{line}: --- begins a second YAML document, but a file holds one document; list all audits "
                "under the key audits, or write each audit into its own file"
            ) from None
        raise ConfigError(f"{file}:{line}: is not valid YAML: {_problem_of(error)}") from None
    except (RecursionError, MemoryError):
        raise ConfigError(f"{file}: is nested too deeply or is too large to read") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # ValueError: invalid dates and numbers
        raise ConfigError(f"{file}: is not valid YAML: {shortened(str(error), _MAX_PROBLEM)}") from None


def _audits(text: str, file: Path) -> list[PlannedAudit]:
    if len(text) > _MAX_TEXT:
        raise ConfigError(f"{file}: has more than {_MAX_TEXT:,} letters")
    content, lines = _loaded(text, file)
    if not isinstance(content, dict):
        raise ConfigError(
            f"{file}:1: must hold an audit, or a list of audits under the key audits, got {type(content).__name__}"
        )
    many = "audits" in content
    if many and (set(content) != {"audits"} or not isinstance(content["audits"], list) or not content["audits"]):
        raise ConfigError(
            f"{file}:{lines[('audits',)]}: audits must be a list of audits and must be the only key of the file"
        )
    audits: list[PlannedAudit] = []
    problems: list[str] = []
    for index, values in enumerate(content["audits"] if many else [content]):
        path: tuple[str | int, ...] = ("audits", index) if many else ()
        try:
            line = lines.get(path, 1)
            named = (lines.get((*path, "mechanism", key)) for key in ("python", "command", "builtin", "library"))
            config = AuditConfig.model_validate(values)
            audit = PlannedAudit(file=file, line=line, code_line=next(filter(None, named), line), config=config)
            if (code := audit.mechanism_file) is not None and is_standard_file(str(code)):
                problems.append(f"{file}:{audit.code_line}: mechanism: {code} {STANDARD_FILE}")
            audits.append(audit)
        except ValidationError as error:
            # a missing key may stand in the file under a misspelled name, so its message comes last
            found = sorted(_distinct(error.errors()), key=lambda one: one["type"] == "missing")
            problems += [explained(details, path, lines, file) for details in found]
    if problems:
        raise ConfigError(*problems)
    return audits


class _TooManyNodes(Exception):
    """Raised if a file has more than _MAX_NODES keys and list entries."""


class _Composer(Loader):
    """Reads the structure of YAML, and stops at a file with too many nodes before the file fills the memory."""

    _composed = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node."""
        self._composed += 1
        if self._composed > 2 * _MAX_NODES:  # keys are nodes, too
            raise _TooManyNodes
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


class _Lines:
    """Finds the lines of all keys and list entries of a file, and refuses hostile files."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._letters = 0  # length of all texts so far; an alias counts each time it is used
        self._checked: set[int] = set()  # ids of the nodes whose characters were checked; an alias is the same node

    def of(self, root: yaml.Node) -> dict[tuple[str | int, ...], int]:
        """Return the line of each key and list entry by its path."""
        lines = dict(islice(self._under(root, ()), _MAX_NODES + 1))
        if len(lines) > _MAX_NODES:
            raise _TooManyNodes
        return lines

    def _under(self, node: yaml.Node, path: tuple[str | int, ...]) -> Iterable[tuple[tuple[str | int, ...], int]]:
        """Yield the line of every key and list entry.  Refuse duplicate keys; YAML would keep the last value."""
        yield path, node.start_mark.line + 1
        self._check(node)
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                self._check(key)
                line, name = key.start_mark.line + 1, self._name(key)
                if name in seen:
                    raise ConfigError(f"{self._file}:{line}: key {brief_text(name)} is given twice")
                seen.add(name)
                for inner, inner_line in self._under(value, (*path, name)):
                    yield inner, line if inner == (*path, name) else inner_line
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                yield from self._under(value, (*path, index))

    def _name(self, key: yaml.Node) -> str:
        if not isinstance(key, yaml.ScalarNode):  # the text of a list of aliases may be endless
            raise ConfigError(f"{self._file}:{key.start_mark.line + 1}: a key must be text, not a list or a mapping")
        return str(key.value)

    def _check(self, node: yaml.Node) -> None:
        if not isinstance(node, yaml.ScalarNode):
            return
        self._letters += len(node.value)
        if self._letters > _MAX_LETTERS:
            raise ConfigError(f"{self._file}: has more than {_MAX_LETTERS:,} letters (aliases expanded); {_SMALLER}")
        if id(node) not in self._checked:
            self._checked.add(id(node))
            _check_characters(node, self._file)


def _check_characters(node: yaml.ScalarNode, file: Path) -> None:
    """Refuse characters that cannot be written, and numbers that take long to read.

    A lone surrogate such as "\\ud800" is half of a character and cannot be written to a file.  YAML 1.1 reads 1:1:1...
    as one number, in quadratic time.
    """
    if node.tag.endswith((":int", ":float")) and len(node.value) > _MAX_NUMBER_CHARACTERS:
        raise ConfigError(
            f"{file}:{node.start_mark.line + 1}: the number {node.value[:40]}… has {len(node.value):,} characters; "
            f"the maximum is {_MAX_NUMBER_CHARACTERS}"
        )
    if re.search("[\ud800-\udfff]", node.value):
        raise ConfigError(
            f"{file}:{node.start_mark.line + 1}: {node.value[:40]!r} contains half of a character "
            "(a lone surrogate); write the whole character"
        )


def _distinct(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Keep one error for each place, because a value that fits no member of a union fails once for each member."""
    return list({e["loc"][:2] if e["loc"][:1] == ("attacks",) else e["loc"]: e for e in reversed(errors)}.values())[
        ::-1
    ]


def _problem_of(error: yaml.MarkedYAMLError) -> str:
    return shortened(str(error.problem or error.context), _MAX_PROBLEM)
