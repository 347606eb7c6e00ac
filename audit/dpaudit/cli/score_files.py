"""Files of scores: CSV, NPZ, Parquet and JSON lines, read piece by piece."""

from __future__ import annotations

import csv
import importlib
import io
import json
import zipfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from dpaudit.engine.read_scores import exact_floats
from dpaudit.numerics.arrays import Array
from dpaudit.settings.limits import shown
from dpaudit.text.foreign_files import open_foreign
from dpaudit.text.printable import shortened
from dpaudit.text.spelling import nearest

SCORE, INCLUDED, RUN = "score", "included", "run"
TWO = ("scores0", "scores1")  # arrays of an NPZ file
_TRUE, _FALSE = ("1", "1.0", "true", "t", "yes"), ("0", "0.0", "false", "f", "no")
MAX_SCORES = 2**28  # of a compressed file, which may be a millionth of the memory that it fills: 2 GiB of numbers
MAX_LINE_CHARACTERS = 2**20  # a longer line of text is no score, and would be kept in memory whole
_NONE: Any = object()  # where a row has no run
_BATCH = 100_000  # rows of a Parquet file that are read at once
_NAMES = 10  # columns or arrays that a message lists
_COMPARED = 100  # columns, and characters of their names, among which a misspelt name is looked for
_SHOWN = 60  # characters of a name in a message
_MAX_WORDS = 300  # characters of what another library says about a damaged file


class BadScores(Exception):
    """Raised if a file holds no valid scores; the message says where and why."""


class ScoresFile(NamedTuple):
    """The scores of a file."""

    scores0: Array  # of d0, or of excluded canaries
    scores1: Array  # of d1, or of included canaries
    run: tuple[Any, Any] | None = None  # the runs of both, if there is a column `run`


def read_scores_file(path: Path) -> ScoresFile:
    """Return the scores of a file.

    Raises:
        BadScores: If the file cannot be read as scores.
    """
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise BadScores(f"{path}: scores are read from {', '.join(_READERS)}, not from {path.suffix or 'such a file'}")
    try:
        with open_foreign(path) as file:
            return read(file)
    except _Missing as error:
        raise BadScores(f"{path}: {error}") from None
    except (OSError, ValueError, csv.Error, RecursionError) as error:
        words = str(getattr(error, "strerror", None) or error)
        raise BadScores(f"{path}: {shortened(words, _MAX_WORDS)}") from None
    except Exception as error:  # zipfile, zlib, numpy and pyarrow raise many kinds about a damaged file
        words = shortened(f"{type(error).__name__}: {error}", _MAX_WORDS)
        raise BadScores(f"{path}: it is damaged: {words}") from None


class _Missing(Exception):
    """Something that the file needs is not there."""


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    number = 0
    while line := text.readline(MAX_LINE_CHARACTERS):
        number += 1
        if len(line) == MAX_LINE_CHARACTERS:
            raise ValueError(f"line {number} has more than {MAX_LINE_CHARACTERS:,} characters")
        yield line


def _rows(text: io.TextIOWrapper) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line and its columns.  An open quote would otherwise hide the lines that follow."""
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


def _csv(file: BinaryIO) -> ScoresFile:
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        rows = _rows(text)
        header = next(rows, (1, []))[1]
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
    return names.index(name)


def _listed(names: Sequence[str]) -> str:
    first = ", ".join(shortened(name, _SHOWN) for name in names[:_NAMES])
    return first + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")


def _json_lines(file: BinaryIO) -> ScoresFile:
    with io.TextIOWrapper(file, encoding="utf-8") as text:
        return _split(_objects(text), "object", 1)


def _objects(text: io.TextIOWrapper) -> Iterator[tuple[Any, Any, Any]]:
    for number, line in enumerate(_lines(text), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            what = "is nested too deeply" if isinstance(error, RecursionError) else f"is no JSON: {error}"
            raise ValueError(f"line {number} {what}") from None
        for name in (SCORE, INCLUDED):
            if not isinstance(row, dict) or name not in row:
                raise ValueError(f"line {number}: it must be an object with {SCORE!r} and {INCLUDED!r}")
        yield row[SCORE], row[INCLUDED], row.get(RUN, _NONE)


def _split(rows: Iterator[tuple[Any, Any, Any]], unit: str, first: int) -> ScoresFile:
    """Divide scores by their coins into two arrays, with eight bytes for each score and for each run."""
    sides, runs = (array("d"), array("d")), (array("q"), array("q"))
    names: dict[str, int] = {}
    for number, (score, included, run) in enumerate(rows, first):
        side = _coin(included)
        try:
            sides[side].append(float(score))  # type: ignore[index]
        except (TypeError, ValueError, OverflowError):
            what = f"{INCLUDED} must be 0 or 1 (or true, false), got {shown(included)}"
            what = what if side is None else f"{SCORE} must be a number, got {shown(score)}"
            raise ValueError(f"{unit} {number}: {what}") from None
        if run is not _NONE:
            if run is None or not (name := str(run).strip()):
                raise ValueError(f"{unit} {number}: {RUN} must name a run, got {shown(run)}")
            runs[side].append(names.setdefault(name, len(names)))  # type: ignore[index]
        if names and len(runs[side]) != len(sides[side]):  # type: ignore[index]
            raise ValueError(f"{unit} {number}: {RUN} must be given for all scores or for none")
    first_, second = (np.frombuffer(side, dtype=np.float64) for side in sides)
    labels = tuple(np.frombuffer(side, dtype=np.int64) for side in runs)
    return ScoresFile(first_, second, (labels[0], labels[1]) if names else None)


def _coin(given: Any) -> int | None:
    text = str(given).strip().lower()
    return 1 if text in _TRUE else 0 if text in _FALSE else None


def _npz(file: BinaryIO) -> ScoresFile:
    if not zipfile.is_zipfile(file):
        raise ValueError("it is no NPZ file, which is an archive of arrays")
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        names = list(arrays)
        for chosen in (TWO, (SCORE, INCLUDED)):
            if all(name in names for name in chosen):
                break
        else:
            raise ValueError(
                f"it must hold {TWO[0]!r} and {TWO[1]!r}, or {SCORE!r} and {INCLUDED!r}; it holds {_listed(names)}"
            )
        unpacked = sum(member.file_size for member in arrays.zip.infolist())
        if unpacked > 8 * MAX_SCORES:
            raise ValueError(f"its arrays have {unpacked:,} bytes; the maximum is {8 * MAX_SCORES:,}")
        first, second = (arrays[name] for name in chosen)
        runs = arrays[RUN] if RUN in names and chosen != TWO else None
    if chosen == TWO:
        return ScoresFile(_column(first, TWO[0]), _column(second, TWO[1]))
    return _with_runs(_by_coin(_column(first, SCORE), second), second, runs)


def _with_runs(scores: tuple[Array, Array], included: Any, runs: Any) -> ScoresFile:
    """Divide runs by the coins, as the scores were."""
    if runs is None:
        return ScoresFile(*scores)
    if runs.shape != included.shape or runs.dtype.kind not in "biuU":
        raise ValueError(f"{RUN} must be one whole number or text for each score, got {runs.shape} of {runs.dtype}")
    chosen = included == 1
    return ScoresFile(*scores, (runs[~chosen], runs[chosen]))


def _column(values: Any, name: str) -> Array:
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be one number for each score, got shape {values.shape} of {values.dtype}")
    if len(values) > MAX_SCORES:  # small numbers take eight bytes each as floats
        raise ValueError(f"{name} has {len(values):,} scores; the maximum of a compressed file is {MAX_SCORES:,}")
    return exact_floats(values, name)


def _by_coin(scores: Array, included: Any) -> tuple[Array, Array]:
    if included.shape != scores.shape:
        raise ValueError(f"there are {len(scores):,} of {SCORE!r}, but {included.size:,} of {INCLUDED!r}")
    if not np.all((included == 0) | (included == 1)):
        raise ValueError(f"{INCLUDED} must be 0 or 1 (or true, false)")
    chosen = included == 1
    return scores[~chosen], scores[chosen]


def _parquet(file: BinaryIO) -> ScoresFile:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise _Missing(
            'Parquet needs pyarrow (pip install "dpaudit[parquet]"); or write the scores as CSV or NPZ'
        ) from None
    table = parquet.ParquetFile(file)
    names = list(table.schema_arrow.names)
    for name in (SCORE, INCLUDED):
        _place(names, name)
    columns = [SCORE, INCLUDED, *([RUN] if RUN in names else [])]
    found: list[ScoresFile] = []
    before = 0  # number of rows in earlier batches
    for batch in table.iter_batches(batch_size=_BATCH, columns=columns):
        if before + len(batch) > MAX_SCORES:
            raise ValueError(f"it has more than {MAX_SCORES:,} rows, the maximum of a compressed file")
        for name in columns:
            if (column := batch.column(name)).null_count:
                raise ValueError(f"row {before + column.is_null().index(True).as_py() + 1}: {name} is null")
        scores, included = (batch.column(name).to_numpy(zero_copy_only=False) for name in (SCORE, INCLUDED))
        runs = np.array(batch.column(RUN).to_pylist()) if RUN in names else None
        name = f"{SCORE} (from row {before + 1:,})" if before else SCORE
        before += batch.num_rows
        found.append(_with_runs(_by_coin(_column(scores, name), included), included, runs))
    if not found:
        return ScoresFile(np.zeros(0), np.zeros(0))
    first, second = (np.concatenate([part[side] for part in found]) for side in (0, 1))
    if RUN not in names:
        return ScoresFile(first, second)
    runs0, runs1 = (np.concatenate([part.run[side] for part in found if part.run]) for side in (0, 1))
    return ScoresFile(first, second, (runs0, runs1))


_READERS: dict[str, Callable[[BinaryIO], ScoresFile]] = {
    ".csv": _csv,
    ".npz": _npz,
    ".parquet": _parquet,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
}
