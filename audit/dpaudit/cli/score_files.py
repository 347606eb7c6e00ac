"""Reads files of scores in the formats CSV, NPZ, Parquet and JSON lines."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import zipfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpaudit.engine.read_scores import FEWEST, SCORE_ADVICE, exact_floats
from dpaudit.numerics.arrays import Array
from dpaudit.result.several_runs_evidence import MAX_RUNS
from dpaudit.settings.limits import shown
from dpaudit.text.foreign_files import open_foreign
from dpaudit.text.printable import shortened
from dpaudit.text.spelling import nearest

SCORE, INCLUDED, RUN = "score", "included", "run"
TWO = ("scores0", "scores1")  # arrays of an NPZ file
_TRUE, _FALSE = ("1", "1.0", "true", "t", "yes"), ("0", "0.0", "false", "f", "no")
MAX_SCORES = 2**28  # maximum number of scores (2 GiB): a small compressed file may expand a millionfold
MAX_LINE_CHARACTERS = 2**20  # a longer line is refused before it fills the memory
MAX_NAME_CHARACTERS = 1000  # maximum length of the name of a run
_NONE: Any = object()  # stands for the run of a row without a run
_BATCH = 4096  # rows of a Parquet file that are read at once
_NAMES = 10  # maximum number of columns or arrays that a message lists
_COMPARED = 100  # maximum number of columns, and length of their names, in the search for a misspelt name
_SHOWN = 60  # maximum length of a name in a message, in characters
_MAX_WORDS = 300  # maximum length of another library's message about a damaged file, in characters


class BadScores(Exception):
    """Raised if a file holds no valid scores; the message says where and why."""


class ScoresFile(NamedTuple):
    """The scores of a file."""

    scores0: Array  # scores of runs on d0, or of excluded canaries
    scores1: Array  # scores of runs on d1, or of included canaries
    run: tuple[Any, Any] | None = None  # for each score of either array, its run; None if there is no column `run`


def read_scores_file(path: Path) -> ScoresFile:
    """Return the scores of a file."""
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise BadScores(f"{path}: the name must end in one of {', '.join(_READERS)}")
    try:
        found = read(path)
        for side, scores in enumerate(found[:2]):
            if len(scores) < FEWEST:
                raise ValueError(f"at least {FEWEST} scores must have {INCLUDED} = {side}; got {len(scores)}")
        return found
    except _Empty:
        raise BadScores(f"{path} is empty; it must have a header with the columns {SCORE} and {INCLUDED}") from None
    except _Missing as error:
        raise BadScores(f"{path}: {error}") from None
    except (OSError, ValueError, csv.Error, RecursionError) as error:
        words = str(getattr(error, "strerror", None) or error)
        raise BadScores(f"{path}: {shortened(words, _MAX_WORDS)}") from None
    except Exception as error:  # zipfile, zlib, numpy and pyarrow raise many kinds of errors for a damaged file
        words = shortened(f"{type(error).__name__}: {error}", _MAX_WORDS)
        raise BadScores(f"{path}: the file is damaged: {words}") from None


class _Missing(Exception):
    """Raised if a column is missing or ambiguous, or if pyarrow is not installed."""


class _Empty(Exception):
    """Raised if a CSV file has no lines."""


class _Found:
    """Collects scores and runs by their coins (`included`), and stores each as eight bytes."""

    def __init__(self) -> None:
        self.sides, self.runs = (array("d"), array("d")), (array("q"), array("q"))
        self._numbers: dict[str, int] = {}

    def number(self, run: Any, where: str) -> int:
        """Return the number of a run; runs are numbered from 0 in order of their first occurrence."""
        if run is None or not (name := str(run).strip()):
            raise ValueError(f"{where}: {RUN} must name a run, got {shown(run)}")
        if len(name) > MAX_NAME_CHARACTERS:
            raise ValueError(
                f"{where}: the name of a {RUN} has {len(name):,} characters; the maximum is {MAX_NAME_CHARACTERS:,}"
            )
        number = self._numbers.setdefault(name, len(self._numbers))
        if number == MAX_RUNS:
            raise ValueError(f"{where}: {RUN} names more than {MAX_RUNS:,} runs, which is the maximum")
        return number

    def file(self) -> ScoresFile:
        """Return all collected scores and runs."""
        first, second = (np.frombuffer(side, dtype=np.float64) for side in self.sides)
        labels = tuple(np.frombuffer(side, dtype=np.int64) for side in self.runs)
        return ScoresFile(first, second, (labels[0], labels[1]) if self._numbers else None)


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    number = 0
    while line := text.readline(MAX_LINE_CHARACTERS):
        number += 1
        if len(line) == MAX_LINE_CHARACTERS:
            raise ValueError(f"line {number} has more than {MAX_LINE_CHARACTERS:,} characters")
        yield line


def _rows(text: io.TextIOWrapper) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line and its columns.  Refuse a quote that is open at the end of a line."""
    rows = csv.reader(_lines(text), strict=True)
    number = 0
    try:
        for row in rows:
            number += 1
            if rows.line_num != number:
                raise ValueError(f"line {number}: its quotes do not end on this line")
            yield number, row
    except csv.Error as error:
        raise ValueError(f"line {number + 1}: {error}") from None


def _csv(path: Path) -> ScoresFile:
    with io.TextIOWrapper(open_foreign(path), encoding="utf-8-sig", newline="") as text:
        rows = _rows(text)
        number, header = next(rows, (0, []))
        if not number:
            raise _Empty
        score, included = (_place(header, name) for name in (SCORE, INCLUDED))
        run = _place(header, RUN) if RUN in map(str.strip, header) else None
        widest = max(score, included, run or 0)

        def values() -> Iterator[tuple[Any, Any, Any]]:
            for number, row in rows:
                if len(row) == len(header) or (len(row) < len(header) and len(row) > widest):
                    yield row[score], row[included], _NONE if run is None else row[run]
                elif row:
                    raise ValueError(f"line {number} has {len(row)} columns, but the header has {len(header)}")

        return _split(values(), "line", 2)


def _place(header: Sequence[str], name: str) -> int:
    names = [one.strip() for one in header]
    if name not in names:
        meant = nearest(name, [one for one in names[:_COMPARED] if len(one) < _COMPARED])
        hint = f"; is it {meant!r}?" if meant else ""
        raise _Missing(f"there is no column {name!r} among {_listed(names) or 'no columns'}{hint}")
    if names.count(name) > 1:
        raise _Missing(f"the column {name!r} occurs twice")
    return names.index(name)


def _listed(names: Sequence[str]) -> str:
    first = ", ".join(shortened(name, _SHOWN) for name in names[:_NAMES])
    return first + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")


def _json_lines(path: Path) -> ScoresFile:
    with io.TextIOWrapper(open_foreign(path), encoding="utf-8") as text:
        return _split(_objects(text), "object", 1)


def _objects(text: io.TextIOWrapper) -> Iterator[tuple[Any, Any, Any]]:
    for number, line in enumerate(_lines(text), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            what = "is nested too deeply" if isinstance(error, RecursionError) else f"is not valid JSON: {error}"
            raise ValueError(f"line {number} {what}") from None
        for name in (SCORE, INCLUDED):
            if not isinstance(row, dict) or name not in row:
                raise ValueError(f"line {number}: must be an object with {SCORE!r} and {INCLUDED!r}")
        yield row[SCORE], row[INCLUDED], row.get(RUN, _NONE)


def _split(rows: Iterator[tuple[Any, Any, Any]], unit: str, first: int) -> ScoresFile:
    """Divide scores by their coins (`included`) into two arrays."""
    found, named = _Found(), False
    for number, (given, included, run) in enumerate(rows, first):
        if (side := _coin(included)) is None:
            words = "must be 0 or 1 (or true, false, t, f, yes, no)"
            raise ValueError(f"{unit} {number}: {INCLUDED} {words}, got {shown(included)}")
        try:
            score = float(given)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{unit} {number}: {SCORE} must be a number, got {shown(given)}") from None
        if math.isnan(score):
            raise ValueError(f"{unit} {number}: {SCORE} is nan; {SCORE_ADVICE}")
        found.sides[side].append(score)
        if run is not _NONE:
            found.runs[side].append(found.number(run, f"{unit} {number}"))
            named = True
        if named and len(found.runs[side]) != len(found.sides[side]):
            raise ValueError(f"{unit} {number}: {RUN} must be given for all scores or for none")
    return found.file()


def _coin(given: Any) -> int | None:
    text = str(given).strip().lower()
    return 1 if text in _TRUE else 0 if text in _FALSE else None


def _npz(path: Path) -> ScoresFile:
    with ExitStack() as stack:
        file = stack.enter_context(open_foreign(path))
        if not zipfile.is_zipfile(file):
            raise ValueError("the file is not an NPZ file, which is an archive of arrays")
        file.seek(0)
        arrays = stack.enter_context(np.load(file, allow_pickle=False))
        names = list(arrays)
        for chosen in (TWO, (SCORE, INCLUDED)):
            if all(name in names for name in chosen):
                break
        else:
            raise ValueError(
                f"the file must hold {TWO[0]!r} and {TWO[1]!r}, or {SCORE!r} and {INCLUDED!r}; got {_listed(names)}"
            )
        unpacked = sum(member.file_size for member in arrays.zip.infolist())
        if unpacked > 8 * MAX_SCORES:
            raise ValueError(f"the arrays have {unpacked:,} bytes; the maximum is {8 * MAX_SCORES:,}")
        first, second = (arrays[name] for name in chosen)
        runs = arrays[RUN] if RUN in names and chosen != TWO else None
    if chosen == TWO:
        sides = _column(first, TWO[0]), _column(second, TWO[1])
        for name, side in zip(TWO, sides, strict=True):
            if len(side) < FEWEST:
                raise ValueError(f"{name} must hold at least {FEWEST} scores; got {len(side)}")
        return ScoresFile(*sides)
    return _with_runs(_by_coin(_column(first, SCORE), second), second, runs)


def _with_runs(scores: tuple[Array, Array], included: Any, runs: Any) -> ScoresFile:
    """Split the run of each score into two groups: canaries left out and canaries included."""
    if runs is None:
        return ScoresFile(*scores)
    if runs.shape != included.shape or runs.dtype.kind not in "biuU":
        raise ValueError(f"{RUN} must be one whole number or text for each score, got {runs.shape} of {runs.dtype}")
    if runs.dtype.kind == "U" and (room := runs.itemsize // 4) > MAX_NAME_CHARACTERS:
        raise ValueError(f"names in {RUN} have up to {room:,} characters; the maximum is {MAX_NAME_CHARACTERS:,}")
    chosen = included == 1
    return ScoresFile(*scores, (runs[~chosen], runs[chosen]))


def _column(values: Any, name: str) -> Array:
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be a list of numbers, got shape {values.shape} of {values.dtype}")
    if len(values) > MAX_SCORES:  # as floats, even small numbers take eight bytes each
        raise ValueError(f"{name} has {len(values):,} scores; the maximum of a compressed file is {MAX_SCORES:,}")
    scores = exact_floats(values, name)
    if np.any(missing := np.isnan(scores)):
        raise ValueError(f"{name}[{np.argmax(missing)}] is nan; {SCORE_ADVICE}")
    return scores


def _by_coin(scores: Array, included: Any, before: int = 0) -> tuple[Array, Array]:
    """Split an array into canaries left out and canaries included; `before` is the number of earlier rows."""
    if included.shape != scores.shape:
        raise ValueError(f"there are {len(scores):,} values of {SCORE!r}, but {included.size:,} of {INCLUDED!r}")
    if np.any(wrong := (included != 0) & (included != 1)):
        place = int(np.argmax(wrong))
        raise ValueError(f"row {before + place + 1}: {INCLUDED} must be 0 or 1 (or true, false), got {included[place]}")
    chosen = included == 1
    return scores[~chosen], scores[chosen]


def _parquet(path: Path) -> ScoresFile:
    open_foreign(path).close()  # refuses a pipe or a device
    try:
        arrow, types, parquet = map(importlib.import_module, ("pyarrow", "pyarrow.types", "pyarrow.parquet"))
    except ImportError:
        raise _Missing(
            'Parquet needs pyarrow (pip install "dpaudit[parquet]"); or write the scores as CSV or NPZ'
        ) from None
    # pyarrow reads by itself: a thread of it that frees an object of Python while Python ends would end the process
    with arrow.OSFile(str(path)) as file:
        table = parquet.ParquetFile(file)
        return _of_batches(table, _checked_columns(table, types))


def _of_batches(table: Any, columns: list[str]) -> ScoresFile:
    found, before = _Found(), 0  # number of rows in earlier batches
    for batch in table.iter_batches(batch_size=_BATCH, columns=columns, use_threads=False):
        if before + len(batch) > MAX_SCORES:
            raise ValueError(f"the file has more than {MAX_SCORES:,} rows, the maximum of a compressed file")
        for name in columns:
            if (column := batch.column(name)).null_count:
                raise ValueError(f"row {before + column.is_null().index(True).as_py() + 1}: {name} is null")
        scores, included = (batch.column(name).to_numpy(zero_copy_only=False) for name in (SCORE, INCLUDED))
        scores = _column(scores, f"{SCORE} (from row {before + 1:,})" if before else SCORE)
        for side, values in enumerate(_by_coin(scores, included, before)):
            found.sides[side].frombytes(values.tobytes())
        if RUN in columns:
            runs = _numbered(batch.column(RUN), found, f"rows {before + 1:,} to {before + len(batch):,}")
            for side, labels in enumerate(_by_coin(runs, included, before)):
                found.runs[side].frombytes(labels.tobytes())
        before += len(batch)
    return found.file()


def _checked_columns(table: Any, types: Any) -> list[str]:
    """Return the columns to read; refuse wrong types."""
    names = list(table.schema_arrow.names)
    columns = [SCORE, INCLUDED, *([RUN] if RUN in names else [])]
    for name in columns:
        kind = table.schema_arrow.field(_place(names, name)).type
        inner = kind.value_type if name == RUN and types.is_dictionary(kind) else kind
        others = (types.is_string, types.is_large_string) if name == RUN else (types.is_floating,)
        if not any(allowed(inner) for allowed in (types.is_integer, types.is_boolean, *others)):
            what = "one whole number or text for each score" if name == RUN else "a list of numbers"
            raise ValueError(f"{name} must be {what}, got {shortened(str(kind), _SHOWN)}")
    return columns


def _numbered(runs: Any, found: _Found, where: str) -> Any:
    """Return the run number of each row of a batch."""
    coded = runs if hasattr(runs, "dictionary") else runs.dictionary_encode()
    used, places = np.unique(coded.indices.to_numpy(), return_inverse=True)
    return np.array([found.number(coded.dictionary[int(i)].as_py(), where) for i in used], dtype=np.int64)[places]


_READERS: dict[str, Callable[[Path], ScoresFile]] = {
    ".csv": _csv,
    ".npz": _npz,
    ".parquet": _parquet,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
}
