"""Catalogues of libraries (`configs/sweeps`): data that name calls and packages; and the audits of their grids."""

from __future__ import annotations

import importlib.util
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from pydantic import AfterValidator, BaseModel, Field, ValidationError, ValidationInfo, field_validator, model_validator

from dpaudit.config.files import explained, matching, read_yaml
from dpaudit.config.models import AuditConfig
from dpaudit.config.pair_models import Strict
from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.libraries.configured import SWEPT
from dpaudit.running.requirements import check_version
from dpaudit.text import hint
from dpaudit.values import JsonObject

MAX_CELLS = 2_000  # maximum number of cells of a catalogue; the cells share the significance of the sweep

_PACKAGES = {  # the name of each library on the package index
    "opendp": "opendp",
    "diffprivlib": "diffprivlib",
    "pydp": "python-dp",
    "smartnoise_sql": "smartnoise-sql",
    "tumult": "tmlt.core",
}
_LABEL = re.compile(r"\w[\w .+-]{0,39}")
_LABELS = "must have at most 40 letters, digits, spaces and . _ + -"
_AXIS = re.compile(r"[A-Za-z_]\w{0,39}")


def _checked_version(text: str) -> str:
    try:
        Version(text if text == text.strip() else "")
    except ValueError:
        raise ValueError(f"must be a version such as 0.16.0, got {text[:40]!r}") from None
    return text


def _checked_range(text: str) -> str:
    try:
        SpecifierSet(text).contains("1")
    except ValueError:
        raise ValueError(f'must be a range of versions such as ">=0.14,<0.17", got {text[:80]!r}') from None
    return text


def _without_addresses(requires: list[str]) -> list[str]:
    """Refuse requirements that name files or addresses."""
    for requirement in requires:
        try:
            by_version = Requirement(requirement).url is None
        except InvalidRequirement:
            by_version = False
        if not by_version:
            raise ValueError(f"must name packages and versions such as numpy<2, got {requirement[:80]!r}")
    return requires


_Range = Annotated[str, AfterValidator(_checked_range)]
_Requirements = Annotated[list[str], AfterValidator(_without_addresses)]


class EntryConfig(Strict):
    """A constructor of the library with its arguments, over a grid of values.

    A text `$NAME` in the arguments stands for the value of the axis NAME, and `$NAME.KEY` for a part of this value.
    """

    name: str | None = Field(None, description="name of the entry in reports; by default, the call")
    call: str = Field(description="function or class of the library, such as make_laplace")
    arguments: JsonObject | list[Any] | None = Field(None, description="arguments of the call")
    d_in: int | float | list[float] | str = Field(1, description="distance of neighbouring datasets, for opendp")
    grid: dict[str, list[Any] | JsonObject] = Field(
        default_factory=dict, description="axes: for each name a list of values, or a mapping of labels to values"
    )
    versions: _Range = Field("", description='versions of the package that have this call, such as ">=0.14"')
    requires: _Requirements = Field(default_factory=list, description="further packages of the environment")

    @field_validator("name")
    @classmethod
    def _a_name(cls, name: str | None) -> str | None:
        if name is not None and not _LABEL.fullmatch(name):
            raise ValueError(f"{_LABELS}, got {name[:80]!r}")
        return name

    @field_validator("grid")
    @classmethod
    def _axes(cls, grid: dict[str, list[Any] | JsonObject]) -> dict[str, list[Any] | JsonObject]:
        for axis, values in grid.items():
            if not _AXIS.fullmatch(axis):
                raise ValueError(f"the name of an axis must be an identifier such as T or scale, got {axis[:80]!r}")
            if not values:
                raise ValueError(f"the axis {axis} must have at least one value")
        return grid

    def labelled(self, axis: str) -> dict[str, Any]:
        """Return the values of an axis by their labels."""
        values = self.grid[axis]
        if isinstance(values, dict):
            pairs = list(values.items())
        else:
            if any(not isinstance(value, str | int | float) for value in values):
                raise ValueError(f"grid.{axis}: a value that is a list or a mapping needs a label: {{LABEL: VALUE}}")
            pairs = [(str(value).lower() if isinstance(value, bool) else str(value), value) for value in values]
        labels: set[str] = set()
        for label, _ in pairs:
            if not _LABEL.fullmatch(label):
                written = f"write a mapping: {{{axis}: {{LABEL: VALUE}}}}"
                raise ValueError(f"grid.{axis}: a label {_LABELS}, got {label[:80]!r}; {written}")
            if label in labels:
                raise ValueError(f"grid.{axis}: the value {label} is given twice")
            labels.add(label)
        return dict(pairs)


class EnvironmentConfig(Strict):
    """What the environments of some versions also need."""

    versions: _Range = Field(description='versions of the package, such as "<0.5"')
    requires: _Requirements = Field(default_factory=list, description="further packages, such as numpy<2")
    python_version: Annotated[str, AfterValidator(check_version)] | None = Field(
        None, description='version of Python, such as "3.8"'
    )


class CatalogueConfig(Strict):
    """A catalogue of one library."""

    library: str = Field(description=f"one of {', '.join(SWEPT)}")
    package: str = Field(description="name of the library on the package index")
    versions: list[str] = Field(min_length=1, description="versions for which the catalogue was checked")
    environments: list[EnvironmentConfig] = Field(default_factory=list)
    entries: list[EntryConfig] = Field(min_length=1)

    @field_validator("library")
    @classmethod
    def _known(cls, library: str) -> str:
        if library not in SWEPT:
            otherwise = f"library must be one of {', '.join(SWEPT)}"
            raise ValueError(f"unknown library {library[:100]!r}; {hint(library, SWEPT, otherwise)}")
        return library

    @field_validator("package")
    @classmethod
    def _own_package(cls, package: str, info: ValidationInfo) -> str:
        library = info.data.get("library", "")
        if package != (own := _PACKAGES.get(library, package)):
            raise ValueError(f"the package of {library} is {own}, got {package[:80]!r}")
        return package

    @field_validator("versions")
    @classmethod
    def _numbers(cls, versions: list[str]) -> list[str]:
        return [_checked_version(version) for version in versions]

    @model_validator(mode="after")
    def _few(self) -> CatalogueConfig:
        cells = sum(math.prod(map(len, entry.grid.values())) for entry in self.entries)
        if cells > MAX_CELLS:
            raise ValueError(f"the grids have {cells:,} cells; the maximum is {MAX_CELLS:,}")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    file: Path
    config: CatalogueConfig
    lines: tuple[int, ...]  # of the entries

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
    package = catalogue.config.package
    here = None if wanted else catalogue.installed
    versions: dict[Version, str] = {}
    for option, given in [("LIBRARY", wanted or here or catalogue.newest), *(("--with", other) for other in others)]:
        text = given.removeprefix(f"{package}==").removeprefix(f"{name}==")
        try:
            number = Version(_checked_version(text))
        except ValueError:
            problem = f"{text[:40]!r} is not a version of {package}; write one such as {package}==1.2.3"
            raise ConfigError(f"{option}: {problem}") from None
        if option == "--with" and text == given:
            raise ConfigError(f"--with {text}: write {package}=={text}")
        if number in versions:
            raise ConfigError(f"--with {given}: the version {text} is given twice")
        versions[number] = text
    cells = [
        cell
        for place, version in enumerate(versions.values())
        for cell in cells_of(
            catalogue, version, pinned=here is None or place > 0, settings={} if trials is None else {"trials": trials}
        )
    ]
    if not cells:
        which = " or ".join(versions.values())
        raise ConfigError(f"{catalogue.file}: no entry is for version {which}; see its keys `versions`")
    order = {title: place for place, title in enumerate(dict.fromkeys(cell.title for cell in cells))}
    cells = only_matching(sorted(cells, key=lambda cell: order[cell.title]), patterns)
    return SweepPlan(catalogue=catalogue, versions=tuple(versions.values()), cells=cells)


def catalogues() -> dict[str, Path]:
    """Return the files of the catalogues that come with dpaudit, by library."""
    here = Path(__file__).resolve()
    folders = [here.parent / "catalogues", *(above / "configs" / "sweeps" for above in here.parents[3:4])]
    folder = next((one for one in folders if one.is_dir()), folders[0])
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def read_catalogue(name: str) -> Catalogue:
    known = catalogues()
    file = known.get(name.lower().replace("-", "_")) or Path(name)
    if file.suffix not in (".yaml", ".yml"):
        meant = hint(name, known, f"the libraries with a catalogue are {', '.join(known) or 'none'}")
        raise ConfigError(f"LIBRARY {name[:100]!r} is neither a library with a catalogue nor a .yaml file; {meant}")
    content, lines = read_yaml(file)
    if not isinstance(content, dict):
        raise ConfigError(f"{file}:1: must hold a catalogue with the keys {', '.join(CatalogueConfig.model_fields)}")
    try:
        config = CatalogueConfig.model_validate(content)
    except ValidationError as error:
        # a value that fits no member of a union fails once for each member
        distinct = {one["loc"][:3]: one for one in error.errors()}.values()
        inside: dict[str | int, type[BaseModel]] = {"entries": EntryConfig, "environments": EnvironmentConfig}
        raise ConfigError(*(explained(one, (), lines, file, CatalogueConfig, inside) for one in distinct)) from None
    starts = tuple(lines.get(("entries", index), 1) for index in range(len(config.entries)))
    return Catalogue(file=file, config=config, lines=starts)


def cells_of(catalogue: Catalogue, version: str, *, pinned: bool, settings: Mapping[str, Any]) -> list[Cell]:
    """Return the cells of a catalogue for one version; `pinned` cells run in an environment with this version."""
    problems: list[str] = []
    cells: dict[str, Cell] = {}
    for entry, line in zip(catalogue.config.entries, catalogue.lines, strict=True):
        if not SpecifierSet(entry.versions).contains(version, prereleases=True):
            continue
        try:
            for cell in _cells_of_entry(catalogue, entry, line, version, pinned, settings):
                other = cells.setdefault(cell.name.casefold(), cell)
                if other is not cell:
                    raise ValueError(
                        f"the cell {cell.title} also belongs to the entry at line {other.planned.line}; give one of "
                        "the entries another name"
                    )
        except ValueError as error:
            problems.append(f"{catalogue.file}:{line}: {error}")
    if problems:
        raise ConfigError(*problems)
    return list(cells.values())


def only_matching(cells: Sequence[Cell], patterns: Sequence[str]) -> list[Cell]:
    """Return the cells whose title or constructor matches a pattern; all cells if there is no pattern."""
    constructors = list(dict.fromkeys(cell.constructor for cell in cells))
    named = [((cell.title, cell.constructor, cell.name), cell) for cell in cells]
    return matching(named, patterns, "no cell and no constructor has", "constructors", constructors)


def _cells_of_entry(
    catalogue: Catalogue, entry: EntryConfig, line: int, version: str, pinned: bool, settings: Mapping[str, Any]
) -> Iterable[Cell]:
    axes = {axis: entry.labelled(axis) for axis in entry.grid}
    constructor = entry.name or entry.call
    needs: JsonObject = {}
    if pinned:
        environments = catalogue.config.environments
        fitting = [one for one in environments if SpecifierSet(one.versions).contains(version, prereleases=True)]
        others = [requirement for one in fitting for requirement in one.requires]
        needs["requires"] = [f"{catalogue.config.package}=={version}", *others, *entry.requires]
        pythons = [one.python_version for one in fitting if one.python_version is not None]
        needs |= {"python_version": pythons[0]} if pythons else {}
    used: set[str] = set()
    for labels in itertools.product(*axes.values()):
        chosen = dict(zip(axes, labels, strict=True))
        values = {axis: axes[axis][label] for axis, label in chosen.items()}
        title = "-".join([constructor, *labels])
        d_in = _filled(entry.d_in, values, used)
        mechanism = {"library": catalogue.config.library, "call": entry.call, "d_in": d_in, **needs}
        if entry.arguments is not None:
            mechanism["arguments"] = _filled(entry.arguments, values, used)
        if unused := [axis for axis in axes if axis not in used]:
            raise ValueError(f"grid: the axis {unused[0]} is not used; write ${unused[0]} in the arguments")
        config = _config({"name": f"{title}-{version}", "mechanism": mechanism, **settings})
        planned = PlannedAudit(file=catalogue.file, line=line, config=config)
        yield Cell(title=title, constructor=constructor, values=chosen, version=version, planned=planned)


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
        axes = f"the axes are {', '.join(values) or 'none'}"
        raise ValueError(f"{value[:80]} is no axis of grid; {hint(axis, values, axes)}")
    used.add(axis)
    part = values[axis]
    if not key:
        return part
    if not isinstance(part, dict) or key not in part:
        known = (", ".join(map(str, part)) or "none") if isinstance(part, dict) else "none, as the value is no mapping"
        raise ValueError(f"{value[:80]}: a value of the axis {axis} has no key {key[:40]}; its keys are {known}")
    return part[key]


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
