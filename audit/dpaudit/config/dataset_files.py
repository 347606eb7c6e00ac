"""Datasets in files: `d0: people.csv` names a file, and `d1: {drop: 17}` the change that makes the neighbour.

A file holds data only, so reading it runs no code.  A config of a stranger may lie beside links to other files
of yours, so a relative name leads to a file in the folder of the config, and not through a link.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from dpaudit.pairs.pair import Relation
from dpaudit.text.foreign_files import read_foreign
from dpaudit.text.printable import one_line, shortened
from dpaudit.text.spelling import hint
from dpaudit.values import Foreign

ENDINGS = (".csv", ".json")
"""The endings of the names of files with datasets."""

Change = Literal["drop", "replace", "add"]
CHANGES: Mapping[Change, Relation] = {"drop": "add_remove", "replace": "replace_one", "add": "add_remove"}
"""The changes that make a neighbour, and the neighbouring relation of each."""

_MAX_FILE_BYTES = 2**24  # larger files would fill the memory of every process that runs the mechanism
_MAX_CELLS = 500_000  # maximum number of values of a CSV file, as in the searches of a config
_MAX_ALL_BYTES = 2**25  # maximum size of all files of a config together
_MAX_RECORDS = 5_000_000  # maximum number of records of the neighbours of a config together
_MAX_NAME = 60  # maximum number of characters of a column's name in a message
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?")


def is_file(dataset: Foreign) -> bool:
    """Return whether a dataset of a config is the name of a file."""
    return isinstance(dataset, str) and dataset.endswith(ENDINGS)


def check_change(change: Foreign) -> Change:
    """Return the kind of a change such as {"drop": 17}, {"replace": {17: {"age": 90}}} or {"add": {"age": 90}}.

    Raises:
        ValueError: If the value is no change.
    """
    forms = "{drop: 17}, {replace: {17: ...}} or {add: ...}; records are counted from 0"
    if not isinstance(change, dict) or len(change) != 1:
        raise ValueError(f"if d0 is a file, d1 must be a file or a change such as {forms}")
    ((kind, value),) = change.items()
    for known in CHANGES:
        if kind == known:
            break
    else:
        raise ValueError(f"unknown change {str(kind)[:40]!r}; {hint(str(kind)[:40], list(CHANGES), f'write {forms}')}")
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


class DatasetFiles:
    """The files of a config: each is read once, and all of them together are limited.

    Args:
        folder: The folder of the config.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[str, tuple[Foreign, str]] = {}
        self._bytes = self._records = 0

    def read(self, name: str) -> tuple[Foreign, str]:
        """Return the dataset of a file and the SHA-256 of its text, as `read_dataset` does.

        Raises:
            ValueError: If the file cannot be read, or all files together are too large.
        """
        if name not in self._found:
            with contextlib.suppress(OSError, ValueError):  # `read_dataset` states the reason
                self._bytes += os.stat(self._folder / name).st_size
            if self._bytes > _MAX_ALL_BYTES:
                raise ValueError(
                    f"{name}: the files with datasets of this config have {self._bytes:,} bytes up to this one; the "
                    f"maximum is {_MAX_ALL_BYTES:,} together"
                )
            self._found[name] = read_dataset(name, self._folder)
        return self._found[name]

    def count(self, dataset: Foreign) -> None:
        """Count the records of a neighbour.

        Raises:
            ValueError: If the neighbours of the config have too many records together.
        """
        self._records += len(dataset) if isinstance(dataset, list) else 1
        if self._records > _MAX_RECORDS:
            raise ValueError(
                f"the pairs of this config up to this one have {self._records:,} records; the maximum is "
                f"{_MAX_RECORDS:,} together, so use fewer pairs or smaller files"
            )


def read_dataset(name: str, folder: Path) -> tuple[Foreign, str]:
    """Read the dataset of a file.

    Args:
        name: The file, relative to `folder`, or an absolute path.
        folder: The folder of the config.

    Returns:
        The dataset, which is the rows of a CSV file as dictionaries, or the content of a JSON file; and the SHA-256 of
        the text of the file.

    Raises:
        ValueError: If the file cannot be read; the message states where and why, and quotes no content.
    """
    try:
        text = read_foreign(_located(name, folder), _MAX_FILE_BYTES)
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        content = text.removeprefix("\ufeff")
        return _rows(content) if name.endswith(".csv") else json.loads(content), digest
    except OSError as error:
        raise ValueError(f"{name}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{name}: cannot be read: the text is not encoded as UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{name}:{error.lineno}: is not valid JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError(f"{name}: is nested too deeply") from None
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None


def _located(name: str, folder: Path) -> Path:
    """Return the real path of a file.

    Raises:
        ValueError: If a relative name leads through a link or out of the folder, or if the file that a link names has
            another ending than the files of datasets.
    """
    inside = Path(os.path.realpath(folder))
    real = Path(os.path.realpath(inside / name))
    if not Path(name).is_absolute():
        plain = Path(os.path.normpath(inside / name))
        if not plain.is_relative_to(inside):
            raise ValueError("lies outside the folder of the config; name such a file by its absolute path")
        if real != plain:
            raise ValueError("is a symbolic link, or lies behind one; name the file itself")
    if real.suffix not in ENDINGS:
        raise ValueError(f"is a symbolic link to a file whose name does not end in {' or '.join(ENDINGS)}")
    return real


def changed(records: Foreign, change: Foreign, name: str) -> list[Foreign]:
    """Return the neighbour of a dataset.

    Args:
        records: The dataset.
        change: The change, which `check_change` accepts.
        name: The file of the dataset, for messages.

    Raises:
        ValueError: If the dataset has no records, or if it lacks the record or the columns that the change names.
    """
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
    """Return a record with the columns of another one.

    Args:
        given: The values that the config states.
        like: Another record of the dataset, or the replaced record.
        name: The file, for messages.
        whole: Whether all columns must be given; otherwise missing columns keep the values of `like`.
    """
    if not isinstance(like, dict):
        return given
    columns = list(like)
    if not isinstance(given, dict):
        raise ValueError(
            f"{name}: a record must be a mapping of columns to values, such as {{{_shown(columns[0])}: ...}}"
        )
    for column in given:
        if column not in like:
            known = list(map(_shown, columns))
            raise ValueError(f"{name}: has no column {column!r:.80}; {hint(str(column), known, _listed(known))}")
    if whole and (missing := [column for column in columns if column not in given]):
        raise ValueError(f"{name}: the added record lacks {', '.join(map(_shown, missing))[:200]}")
    return {**like, **given}


def _listed(columns: Sequence[str]) -> str:
    return f"its columns are {', '.join(columns)}"[:200]


def _shown(column: Foreign) -> str:
    """Return the name of a column for a message, which must not quote a whole line of a file."""
    return one_line(shortened(str(column), _MAX_NAME))


def _is_place(value: Foreign) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _rows(text: str) -> list[Foreign]:
    """Return the rows of a CSV file with a header; a column is numeric if all of its cells are numbers or empty."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = next(reader, [])
    if not any(header):
        raise ValueError("must begin with a line of column names")
    if len(set(header)) < len(header) or not all(header):
        raise ValueError("every column must have a name, and no two columns the same name")
    rows: list[list[str]] = []
    for row in reader:
        if row and len(row) != len(header):
            raise ValueError(f"line {reader.line_num} has {len(row)} cells, but there are {len(header)} columns")
        rows += [row] if row else []
        if len(rows) * len(header) > _MAX_CELLS:
            raise ValueError(f"has more than {_MAX_CELLS:,} values")
    columns = [_values([row[i] for row in rows]) for i in range(len(header))]
    return [dict(zip(header, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(cells: list[str]) -> list[Foreign]:
    """Return a column.  Texts such as 007, which are no plain numbers, make the whole column text."""
    filled = [cell for cell in cells if cell]
    for form, convert in ((_WHOLE, int), (_NUMBER, float)):
        if filled and all(form.fullmatch(cell) for cell in filled):
            return [convert(cell) if cell else None for cell in cells]
    return list(cells)
