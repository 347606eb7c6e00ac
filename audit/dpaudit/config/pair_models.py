"""The keys of a config that describe pairs of datasets, and the files that hold datasets.

A config of a stranger may name any file of yours, also through a link, so no message quotes the content of a file.
"""

from __future__ import annotations

import csv
import errno
import functools
import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

from dpaudit.pairs.pair import Pair, Relation, check_relation
from dpaudit.pairs.search import Moves, SearchPairs, bounds_or_list
from dpaudit.rounding import read_number
from dpaudit.settings import MAX_DATA_BYTES
from dpaudit.text import hint, one_line, read_foreign
from dpaudit.values import Dataset, Record

_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$")


class Loader(yaml.SafeLoader):
    """Reads plain YAML values, with 1e5 as a number."""


class Dumper(yaml.SafeDumper):
    """Writes YAML for `Loader`; quotes the text "1e5", so that this text does not become a number."""


for _kind in (Loader, Dumper):
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def number(value: object) -> object:
    """Convert text such as "0.5", "1e5" or "1/3" to a number, and return any other value unchanged."""
    found = read_number(value) if isinstance(value, str) else None
    return value if found is None else found


def whole(value: object) -> object:
    """Convert a number or text with a whole value, such as 1e5 or "100", to int; return any other value unchanged."""
    found = number(value)
    return int(found) if isinstance(found, float) and found.is_integer() else value


NUMERIC = ("epsilon", "delta", "sensitivity", "scale")
"""Arguments of libraries that are numbers, so that expressions such as log(3) are allowed."""


def numeric_arguments(arguments: Any) -> Any:
    """Convert text such as "log(3)" in the arguments `NUMERIC`, at any depth; a whole sensitivity becomes an int."""
    if isinstance(arguments, list):
        return [numeric_arguments(value) for value in arguments]
    if not isinstance(arguments, dict):
        return arguments
    found = {name: numeric_arguments(value) for name, value in arguments.items()}
    for name in NUMERIC:
        if not isinstance(found.get(name), str):
            continue
        value = number(whole(found[name]) if name == "sensitivity" else found[name])
        if isinstance(value, str):
            raise ValueError(f"arguments: {name} must be a number such as 0.5, 1/3 or log(3), got {value[:80]!r}")
        found[name] = value
    return found


Number = Annotated[float, BeforeValidator(number)]  # a number in a config
Whole = Annotated[int, BeforeValidator(whole)]  # a whole number in a config


_CHECKED_SIZE = 10  # number of records for the check of a search; mistakes in a search do not depend on this number

ENDINGS = (".csv", ".json")  # the endings of the names of files with datasets

Change = Literal["drop", "replace", "add"]
CHANGES: Mapping[Change, Relation] = {"drop": "add_remove", "replace": "replace_one", "add": "add_remove"}
"""The changes that make a neighbour, and the neighbouring relation of each."""

Reader = Callable[[str], tuple[Any, str]]
"""Returns the dataset of a file and the SHA-256 of its text, as `read_dataset` does."""

_MISSING = ("", "NA")  # cells of a numeric column without a value; R writes NA
_SEPARATORS = {";": "semicolons", "\t": "tabs"}
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?")
_NOT_FINITE = ("nan", "NaN", "inf", "-inf")  # what numpy and pandas write


class Strict(BaseModel):
    """A part of a config: unknown keys and values of a wrong type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SearchConfig(Strict):
    """Candidate pairs, the most revealing pairs first; see `dpaudit.SearchPairs`."""

    relation: Moves
    size: Whole = Field(
        10, ge=1, le=100_000, description="number of records in the larger dataset, or of values in the vector"
    )
    bounds: tuple[Number, Number] | None = Field(None, strict=False, description="smallest and largest value")
    step: Number | None = Field(None, gt=0, description="maximum change of a value in a vector")
    whole: bool = Field(False, description="use only whole numbers")
    columns: dict[str, list[Record]] | None = Field(
        None,
        alias="schema",
        description="records are rows of a table: for each column [low, high] or a list of categories",
    )
    out_of_domain: bool | None = Field(
        None, description="also try values beyond the bounds, NaN and None; by default if bounds or a schema are given"
    )
    tiny: bool = Field(
        False,
        description="use tables of two to ten rows, with a new category, an extreme value or a row far from all others",
    )
    most: Whole | None = Field(
        None, ge=1, le=1_000, description="maximum number of pairs; default 4 for relation all_values, otherwise 12"
    )
    seed: Whole = 0

    @model_validator(mode="after")
    def _fits(self) -> SearchConfig:
        self.pairs(min(self.size, _CHECKED_SIZE))
        return self

    def pairs(self, size: int | None = None) -> list[Pair]:
        columns = self.columns  # YAML has only lists, and two numbers are bounds
        schema = None if columns is None else {name: bounds_or_list(values) for name, values in columns.items()}
        settings = self.model_dump(exclude={"columns"}) | {"schema": schema, "size": size or self.size}
        return list(SearchPairs(**settings))


class PairConfig(Strict):
    """Two neighbouring datasets, the pairs of a `search`, or the pairs of a library's object.

    A dataset is a YAML value, or the name of a .csv or .json file.
    """

    d0: Dataset = Field(None, description="a dataset, or the name of a .csv or .json file beside the config")
    d1: Dataset = Field(
        None, description="a dataset or a file; if d0 is a file, also {drop: 17}, {replace: {17: ...}} or {add: ...}"
    )
    relation: Relation = "unspecified"
    label: str = ""
    search: SearchConfig | None = None
    _digests: dict[str, str] = PrivateAttr(default_factory=dict)
    from_library: Literal[True] | None = Field(
        None, description="use the pairs that dpaudit generates for the object of `mechanism.library`"
    )

    @model_validator(mode="after")
    def _one_of(self) -> PairConfig:
        given = self.model_fields_set
        if "search" in given and len(given) > 1:
            raise ValueError("search must be the only key of its entry, without d0, d1, relation and label")
        if "from_library" in given and len(given) > 1:
            raise ValueError("from_library must be the only key of its entry")
        if missing := {"d0", "d1"} - given if not given & {"search", "from_library"} else set():
            raise ValueError(f"must have d0 and d1, or search; {' and '.join(sorted(missing))} is missing")
        if is_file(self.d0) and not is_file(self.d1):
            check_change(self.d1)
        if not (self.files or self.search or self.from_library):
            check_relation(Pair(self.d0, self.d1, self.relation))
        return self

    @property
    def files(self) -> list[str]:
        """The names of files with datasets."""
        return [dataset for dataset in (self.d0, self.d1) if is_file(dataset)]

    @property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of each file when it was last read."""
        return self._digests

    def pairs(self, read: Reader) -> list[Pair]:
        """Return the pair, or the pairs of the search.  `PlannedAudit.pairs` reads the pairs of a library."""
        if self.from_library:
            return []
        if self.search is not None:
            return self.search.pairs()
        datasets = [self.d0, self.d1]
        for place, name in enumerate(datasets):
            if is_file(name):
                datasets[place], self._digests[name] = read(name)
        d0, d1, relation, label = *datasets, self.relation, self.label
        if is_file(self.d0) and not is_file(self.d1):
            d1, label = changed(d0, self.d1, self.d0), label or label_of(self.d0, self.d1)
            if "relation" not in self.model_fields_set:
                relation = CHANGES[check_change(self.d1)]
        pair = Pair(d0, d1, relation, label)
        if self.files:
            check_relation(pair)
        return [pair]


def is_file(dataset: Any) -> bool:
    """Return whether a dataset of a config is the name of a file."""
    return isinstance(dataset, str) and dataset.endswith(ENDINGS)


def check_change(change: Any) -> Change:
    """Return the kind of a change such as {"drop": 17}, {"replace": {17: {"age": 90}}} or {"add": {"age": 90}}."""
    forms = "{drop: 17}, {replace: {17: ...}} or {add: ...}; records are counted from 0"
    if not isinstance(change, dict) or len(change) != 1:
        raise ValueError(f"if d0 is a file, d1 must be a file or a change such as {forms}")
    ((kind, value),) = change.items()
    known = next((change for change in CHANGES if change == kind), None)
    if known is None:
        raise ValueError(f"unknown change {kind!r:.40}; {hint(str(kind), CHANGES, f'write {forms}')}")
    if known == "drop" and not _is_place(value):
        raise ValueError("drop must be the number of a record, counted from 0, such as {drop: 17}")
    if known == "replace" and not (isinstance(value, dict) and len(value) == 1 and all(map(_is_place, value))):
        raise ValueError("replace must name one record by its number, counted from 0, such as {replace: {17: ...}}")
    return known


def label_of(file: str, change: Any) -> str:
    """Return a label of the pair, such as "people.csv without record 17 (counted from 0)"."""
    ((kind, value),) = change.items()
    if kind == "add":
        return f"{file} with one more record"
    if kind == "drop":
        return f"{file} without record {value} (counted from 0)"
    return f"{file} with record {next(iter(value))} (counted from 0) replaced"


def reader(folder: Path) -> Reader:
    """Return a function that reads each file of a folder once."""
    return functools.cache(lambda name: read_dataset(name, folder))


def read_dataset(name: str, folder: Path) -> tuple[Any, str]:
    """Return the rows of a CSV file as dictionaries, or the content of a JSON file; and the SHA-256 of its text."""
    try:
        text = read_foreign(folder / name, MAX_DATA_BYTES)
        content = text.removeprefix("\ufeff")
        dataset = _rows(content) if name.endswith(".csv") else json.loads(content)
        return dataset, hashlib.sha256(text.encode("utf-8")).hexdigest()
    except OSError as error:
        remedy = "; read it in Python, and pass the datasets to dpaudit.audit" if error.errno == errno.EFBIG else ""
        raise ValueError(f"{name}: cannot be read: {error.strerror or error}{remedy}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{name}: cannot be read: the text is not encoded as UTF-8; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{name}:{error.lineno}: is not valid JSON: {error.msg}") from None
    except (csv.Error, ValueError, RecursionError) as error:
        raise ValueError(f"{name}: {error}") from None


def changed(records: Any, change: Any, name: str) -> list[Any]:
    if not isinstance(records, list):
        raise ValueError(f"{name}: must hold a list of records, so that one can be changed")
    ((kind, value),) = change.items()
    if kind == "add":
        return [*records, _record(value, records[0] if records else None, name, whole=True)]
    place, given = (value, None) if kind == "drop" else next(iter(value.items()))
    if place >= len(records):
        found = f"{len(records):,} records, from 0 to {len(records) - 1:,}" if records else "no records"
        raise ValueError(f"{name}: has no record {place}; it has {found}")
    rest = records[:place], records[place + 1 :]
    new = [] if kind == "drop" else [_record(given, records[place], name, whole=False)]
    return [*rest[0], *new, *rest[1]]


def _record(given: Any, like: Any, name: str, *, whole: bool) -> Any:
    """Return a record with the columns of another one."""
    if not isinstance(like, dict):
        return given
    if not isinstance(given, dict):
        raise ValueError(f"{name}: a record must be a mapping of columns to values, such as {{age: 90}}")
    columns = f"{len(like):,} column{'s' * (len(like) != 1)}"
    for column in given:
        if column not in like:
            meant = hint(str(column), map(one_line, like), f"it has {columns}, which its records name")
            raise ValueError(f"{name}: has no column {column!r:.80}; {meant}")
    if whole and (missing := like.keys() - given.keys()):
        unnamed = ', one of which has the name ""' * ("" in missing)
        raise ValueError(f"{name}: the added record lacks {len(missing):,} of {columns}{unnamed}")
    return {**like, **given}


def _is_place(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _rows(text: str) -> list[Any]:
    """Return the rows of a CSV file with a header; a column is numeric if all of its cells are numbers or empty."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = next(reader, [])
    if not any(header):
        raise ValueError("must begin with a line of column names")
    if len(header) == 1 and (mark := re.search("[;\t]", header[0])):
        raise ValueError(f"its cells are separated by {_SEPARATORS[mark[0]]}; separate them by commas")
    if len(set(header)) < len(header):
        raise ValueError("no two columns may have the same name; rename one in the first line")
    rows: list[list[str]] = []
    for row in reader:
        if row and len(row) != len(header):
            raise ValueError(f"line {reader.line_num} has {len(row)} cells, but there are {len(header)} columns")
        rows += [row] if row else []
    columns = [_values([row[i] for row in rows]) for i in range(len(header))]
    return [dict(zip(header, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(cells: list[str]) -> list[Any]:
    """Return a column.  Texts such as 007, which are no plain numbers, make the whole column text."""
    stated = [cell for cell in cells if cell not in _MISSING]
    finite = [cell for cell in stated if cell not in _NOT_FINITE]
    if finite and len(finite) == len(stated) and all(map(_WHOLE.fullmatch, finite)):
        return [None if cell in _MISSING else int(cell) for cell in cells]
    if finite and all(map(_NUMBER.fullmatch, finite)):
        return [None if cell in _MISSING else float(cell) for cell in cells]
    return list(cells)
