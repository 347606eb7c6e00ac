"""The keys of a catalogue: the constructors of a library, with a grid of types and parameters for each."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from dpaudit.config.pair_models import Strict
from dpaudit.libraries.configured import SWEPT
from dpaudit.running.requirements import check_version
from dpaudit.text import hint
from dpaudit.values import JsonObject

MAX_CELLS = 2_000
"""Maximum number of cells of a catalogue.  The cells share the significance of the sweep."""

_PACKAGES = {  # the name of each library on the package index
    "opendp": "opendp",
    "diffprivlib": "diffprivlib",
    "pydp": "python-dp",
    "smartnoise_sql": "smartnoise-sql",
    "tumult": "tmlt.core",
}
_LABEL = re.compile(r"\w[\w .+-]{0,39}")
_AXIS = re.compile(r"[A-Za-z_]\w{0,39}")


def check_version_number(text: str) -> str:
    try:
        Version(text)
        if text != text.strip():
            raise ValueError
    except ValueError:
        raise ValueError(f"must be a version such as 0.16.0, got {text[:40]!r}") from None
    return text


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text).contains("1")
    except ValueError:
        raise ValueError(f'must be a range of versions such as ">=0.14,<0.17", got {text[:80]!r}') from None
    return text


def _by_version(requires: list[str]) -> list[str]:
    """Refuse requirements that name files or addresses."""
    for requirement in requires:
        try:
            named = Requirement(requirement).url is None
        except InvalidRequirement:
            named = False
        if not named:
            raise ValueError(f"must name packages and versions such as numpy<2, got {requirement[:80]!r}")
    return requires


_Range = Annotated[str, AfterValidator(_specifier)]
_Requirements = Annotated[list[str], AfterValidator(_by_version)]


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
            raise ValueError(f"must have at most 40 letters, digits, spaces and . _ + -, got {name[:80]!r}")
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

    @property
    def title(self) -> str:
        return self.name or self.call

    def axes(self) -> dict[str, dict[str, Any]]:
        return {axis: _labelled(axis, values) for axis, values in self.grid.items()}


def _labelled(axis: str, values: list[Any] | JsonObject) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(values, list) and any(not isinstance(value, str | int | float) for value in values):
        raise ValueError(f"grid.{axis}: a value that is a list or a mapping needs a label: {{LABEL: VALUE}}")
    labels = values if isinstance(values, dict) else [str(v).lower() if isinstance(v, bool) else str(v) for v in values]
    for label, value in zip(labels, values.values() if isinstance(values, dict) else values, strict=True):
        if not _LABEL.fullmatch(label):
            raise ValueError(
                f"grid.{axis}: a label must have at most 40 letters, digits, spaces and . _ + -, got {label[:80]!r}; "
                f"write a mapping: {{{axis}: {{LABEL: VALUE}}}}"
            )
        if label in found:
            raise ValueError(f"grid.{axis}: the value {label} is given twice")
        found[label] = value
    return found


class EnvironmentConfig(Strict):
    """What the environments of some versions also need."""

    versions: _Range = Field(description='versions of the package, such as "<0.5"')
    requires: _Requirements = Field(default_factory=list, description="further packages, such as numpy<2")
    python_version: str | None = Field(None, description='version of Python, such as "3.8"')

    @field_validator("python_version")
    @classmethod
    def _version(cls, version: str | None) -> str | None:
        return None if version is None else check_version(version)


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
        return [check_version_number(version) for version in versions]

    @model_validator(mode="after")
    def _few(self) -> CatalogueConfig:
        cells = sum(math.prod(map(len, entry.grid.values())) for entry in self.entries)
        if cells > MAX_CELLS:
            raise ValueError(f"the grids have {cells:,} cells; the maximum is {MAX_CELLS:,}")
        return self
