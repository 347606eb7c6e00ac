"""Reads catalogues of libraries, and turns each cell of their grids into a planned audit.

A catalogue is data: it names calls of the library, and packages by name and version.  `configs/sweeps` has one
catalogue for each library, and a user's own file has the same format.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version
from pydantic import ValidationError

from dpaudit.config.files import matching, read_yaml
from dpaudit.config.models import AuditConfig
from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.config.problems import explained
from dpaudit.config.sweep_models import CatalogueConfig, EntryConfig, check_version_number
from dpaudit.text import hint
from dpaudit.values import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    file: Path
    config: CatalogueConfig
    lines: tuple[int, ...]

    @property
    def newest(self) -> str:
        return max(self.config.versions, key=Version)

    @property
    def installed(self) -> str | None:
        """The version of the package that this process can import; None if it can import none."""
        module: str = import_module(f"dpaudit.libraries.inside.{self.config.library}").MODULE
        try:
            return metadata.version(self.config.package) if importlib.util.find_spec(module) else None
        except metadata.PackageNotFoundError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One audit of a sweep: a constructor with one value of each axis, in one version of the library."""

    title: str
    constructor: str
    values: Mapping[str, str]
    version: str
    planned: PlannedAudit

    @property
    def name(self) -> str:
        return self.planned.config.name


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    catalogue: Catalogue
    versions: tuple[str, ...]
    cells: list[Cell]


def planned_sweep(library: str, others: Sequence[str], patterns: Sequence[str], trials: int | None) -> SweepPlan:
    """Read the catalogue of LIBRARY or LIBRARY==VERSION, and list the cells, also those of other versions."""
    name, _, wanted = library.partition("==")
    if not wanted and (library.endswith("==") or any(sign in name for sign in "<>~!=,")):
        raise ConfigError(f"LIBRARY {library[:100]!r}: write NAME or NAME==VERSION, such as opendp==0.16.0")
    catalogue = read_catalogue(name)
    project = catalogue.config.package
    here = None if wanted else catalogue.installed
    versions = [_version("LIBRARY", wanted, project) if wanted else here or catalogue.newest]
    for other in others:
        version = _version("--with", other.removeprefix(f"{project}=="), project)
        if any(Version(version) == Version(one) for one in versions):
            raise ConfigError(f"--with {other}: the version {version} is given twice")
        versions.append(version)
    settings: JsonObject = {} if trials is None else {"trials": trials}
    cells = [
        cell
        for number, version in enumerate(versions)
        for cell in cells_of(catalogue, version, pinned=here is None or number > 0, settings=settings)
    ]
    order = {title: number for number, title in enumerate(dict.fromkeys(cell.title for cell in cells))}
    cells.sort(key=lambda cell: order[cell.title])
    if not cells:
        raise ConfigError(f"{catalogue.file}: no entry is for version {' or '.join(versions)}; see its keys `versions`")
    return SweepPlan(catalogue=catalogue, versions=tuple(versions), cells=only_matching(cells, patterns))


def _version(option: str, text: str, package: str) -> str:
    try:
        return check_version_number(text)
    except ValueError:
        raise ConfigError(
            f"{option}: {text[:40]!r} is not a version of {package}; write a number such as 1.2.3"
        ) from None


def catalogues() -> dict[str, Path]:
    """Return the files of the catalogues that come with dpaudit, by library."""
    here = Path(__file__).resolve()
    folders = [here.parent / "catalogues", *(above / "configs" / "sweeps" for above in here.parents[3:4])]
    folder = next((one for one in folders if one.is_dir()), folders[0])
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def read_catalogue(name: str) -> Catalogue:
    known = catalogues()
    file = known.get(name.lower().replace("-", "_"))
    if file is None:
        file = Path(name)
        if file.suffix not in (".yaml", ".yml"):
            allowed = f"the libraries with a catalogue are {', '.join(known) or 'none'}"
            raise ConfigError(
                f"LIBRARY {name[:100]!r} is neither a library with a catalogue nor a .yaml file; "
                + hint(name, known, allowed)
            )
    content, lines = read_yaml(file)
    if not isinstance(content, dict):
        raise ConfigError(f"{file}:1: must hold a catalogue with the keys {', '.join(CatalogueConfig.model_fields)}")
    try:
        config = CatalogueConfig.model_validate(content)
    except ValidationError as error:
        # a value that fits no member of a union fails once for each member
        distinct = {one["loc"][:3]: one for one in error.errors()}.values()
        raise ConfigError(*(explained(one, (), lines, file, CatalogueConfig) for one in distinct)) from None
    starts = tuple(lines.get(("entries", index), 1) for index in range(len(config.entries)))
    return Catalogue(file=file, config=config, lines=starts)


def cells_of(catalogue: Catalogue, version: str, *, pinned: bool, settings: Mapping[str, Any]) -> list[Cell]:
    """Return the cells of a catalogue for one version of the package."""
    problems: list[str] = []
    found: dict[str, Cell] = {}
    for entry, line in zip(catalogue.config.entries, catalogue.lines, strict=True):
        if not _within(version, entry.versions):
            continue
        try:
            for cell in _cells(catalogue, entry, line, version, pinned, settings):
                other = found.setdefault(cell.name.casefold(), cell)
                if other is not cell:
                    raise ValueError(
                        f"the cell {cell.title} also belongs to the entry at line {other.planned.line}; give one of "
                        "the entries another name"
                    )
        except ValueError as error:
            problems.append(f"{catalogue.file}:{line}: {error}")
    if problems:
        raise ConfigError(*problems)
    return list(found.values())


def only_matching(cells: Sequence[Cell], patterns: Sequence[str]) -> list[Cell]:
    """Return the cells whose title or constructor matches a pattern; all cells if there is no pattern."""
    names = list(dict.fromkeys(cell.constructor for cell in cells))
    named = [((cell.title, cell.constructor, cell.name), cell) for cell in cells]
    return matching(named, patterns, "no cell and no constructor has", "constructors", names)


def _filled(value: Any, values: Mapping[str, Any], used: set[str]) -> Any:
    """Replace `$NAME` and `$NAME.KEY` by values of the grid, and record the used axes."""
    if isinstance(value, dict):
        return {key: _filled(part, values, used) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, values, used) for part in value]
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    axis, _, key = value[1:].partition(".")
    if axis not in values:
        raise ValueError(f"{value[:80]} is no axis of grid; {hint(axis, values, f'the axes are {_listed(values)}')}")
    used.add(axis)
    if not key:
        return values[axis]
    part = values[axis]
    if not isinstance(part, dict) or key not in part:
        known = _listed(part) if isinstance(part, dict) else "none, as the value is no mapping"
        raise ValueError(f"{value[:80]}: a value of the axis {axis} has no key {key[:40]}; its keys are {known}")
    return part[key]


def _cells(
    catalogue: Catalogue, entry: EntryConfig, line: int, version: str, pinned: bool, settings: Mapping[str, Any]
) -> Iterable[Cell]:
    axes = entry.axes()
    used: set[str] = set()
    needs = _environment(catalogue.config, entry, version) if pinned else {}
    for labels in itertools.product(*axes.values()):
        chosen = dict(zip(axes, labels, strict=True))
        values = {axis: axes[axis][label] for axis, label in chosen.items()}
        title = "-".join([entry.title, *labels])
        d_in = _filled(entry.d_in, values, used)
        mechanism = {"library": catalogue.config.library, "call": entry.call, "d_in": d_in, **needs}
        if entry.arguments is not None:
            mechanism["arguments"] = _filled(entry.arguments, values, used)
        if unused := [axis for axis in axes if axis not in used]:
            raise ValueError(f"grid: the axis {unused[0]} is not used; write ${unused[0]} in the arguments")
        config = _config({"name": f"{title}-{version}", "mechanism": mechanism, **settings})
        planned = PlannedAudit(file=catalogue.file, line=line, config=config)
        yield Cell(title=title, constructor=entry.title, values=chosen, version=version, planned=planned)


def _config(values: Mapping[str, Any]) -> AuditConfig:
    try:
        return AuditConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = [str(part) for part in first["loc"] if part != "mechanism"]
        if (own := first.get("ctx", {}).get("error")) is not None:
            raise ValueError(f"{place[0]}: {own}" if place else str(own)) from None
        words = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise ValueError(f"{place[0]}: {words}, got {first['input']!r:.80}") from None


def _environment(config: CatalogueConfig, entry: EntryConfig, version: str) -> JsonObject:
    """Return the keys `requires` and `python_version` of a cell."""
    fitting = [one for one in config.environments if _within(version, one.versions)]
    others = [requirement for one in fitting for requirement in one.requires]
    pythons = [one.python_version for one in fitting if one.python_version is not None]
    return {
        "requires": [f"{config.package}=={version}", *others, *entry.requires],
        **({"python_version": pythons[0]} if pythons else {}),
    }


def _within(version: str, versions: str) -> bool:
    return SpecifierSet(versions).contains(version, prereleases=True)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(str, names)) or "none"
