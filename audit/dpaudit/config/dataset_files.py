"""Datasets in files: `d0: people.csv` names a file, and `d1: {drop: 17}` the change that makes the neighbour.

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
from typing import Literal

from dpaudit.pairs.pair import Relation
from dpaudit.settings.limits import MAX_DATA_BYTES
from dpaudit.text.foreign_files import read_foreign
from dpaudit.text.printable import one_line
from dpaudit.text.spelling import hint
from dpaudit.values import Foreign

ENDINGS = (".csv", ".json")
"""The endings of the names of files with datasets."""

Change = Literal["drop", "replace", "add"]
CHANGES: Mapping[Change, Relation] = {"drop": "add_remove", "replace": "replace_one", "add": "add_remove"}
"""The changes that make a neighbour, and the neighbouring relation of each."""

Reader = Callable[[str], tuple[Foreign, str]]
"""Returns the dataset of a file and the SHA-256 of its text, as `read_dataset` does."""

_MISSING = ("", "NA")  # cells of a numeric column without a value; R writes NA
_SEPARATORS = {";": "semicolons", "\t": "tabs"}
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?")
_NOT_FINITE = ("nan", "NaN", "inf", "-inf")  # what numpy and pandas write


def is_file(dataset: Foreign) -> bool:
    """Return whether a dataset of a config is the name of a file."""
    return isinstance(dataset, str) and dataset.endswith(ENDINGS)


def check_change(change: Foreign) -> Change:
    """Return the kind of a change such as {"drop": 17}, {"replace": {17: {"age": 90}}} or {"add": {"age": 90}}."""
    forms = "{drop: 17}, {replace: {17: ...}} or {add: ...}; records are counted from 0"
    if not isinstance(change, dict) or len(change) != 1:
        raise ValueError(f"if d0 is a file, d1 must be a file or a change such as {forms}")
    ((kind, value),) = change.items()
    known = next((one for one in CHANGES if one == kind), None)
    if known is None:
        raise ValueError(f"unknown change {kind!r:.40}; {hint(str(kind), CHANGES, f'write {forms}')}")
    if known == "drop" and not _is_place(value):
        raise ValueError("drop must be the number of a record, counted from 0, such as {drop: 17}")
    one = isinstance(value, dict) and len(value) == 1 and all(map(_is_place, value))
    if known == "replace" and not one:
        raise ValueError("replace must name one record by its number, counted from 0, such as {replace: {17: ...}}")
    return known


def in_words(file: str, change: Foreign) -> str:
    """Return a label of the pair, such as "people.csv without record 17 (counted from 0)"."""
    ((kind, value),) = change.items()
    match kind:
        case "drop":
            return f"{file} without record {value} (counted from 0)"
        case "replace":
            return f"{file} with record {next(iter(value))} (counted from 0) replaced"
        case _:
            return f"{file} with one more record"


def reader(folder: Path) -> Reader:
    """Return a function that reads each file of a folder once."""
    return functools.cache(lambda name: read_dataset(name, folder))


def read_dataset(name: str, folder: Path) -> tuple[Foreign, str]:
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


def changed(records: Foreign, change: Foreign, name: str) -> list[Foreign]:
    """Return the neighbour of a dataset."""
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


def _record(given: Foreign, like: Foreign, name: str, *, whole: bool) -> Foreign:
    """Return a record with the columns of another one."""
    if not isinstance(like, dict):
        return given
    if not isinstance(given, dict):
        raise ValueError(f"{name}: a record must be a mapping of columns to values, such as {{age: 90}}")
    for column in given:
        if column not in like:
            meant = hint(str(column), map(one_line, like), f"it has {_columns(len(like))}, which its records name")
            raise ValueError(f"{name}: has no column {column!r:.80}; {meant}")
    if whole and (missing := like.keys() - given.keys()):
        unnamed = ', one of which has the name ""' * ("" in missing)
        raise ValueError(f"{name}: the added record lacks {len(missing):,} of {_columns(len(like))}{unnamed}")
    return {**like, **given}


def _columns(count: int) -> str:
    return f"{count:,} column{'s' * (count != 1)}"


def _is_place(value: Foreign) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _rows(text: str) -> list[Foreign]:
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


def _values(cells: list[str]) -> list[Foreign]:
    """Return a column.  Texts such as 007, which are no plain numbers, make the whole column text."""
    stated = [cell for cell in cells if cell not in _MISSING]
    finite = [cell for cell in stated if cell not in _NOT_FINITE]
    if finite and len(finite) == len(stated) and all(map(_WHOLE.fullmatch, finite)):
        return [None if cell in _MISSING else int(cell) for cell in cells]
    if finite and all(map(_NUMBER.fullmatch, finite)):
        return [None if cell in _MISSING else float(cell) for cell in cells]
    return list(cells)
