"""Reads files of scores in the formats CSV, NPZ, Parquet and JSON lines."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import warnings
import zipfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpaudit.engine.read_scores import FEWEST, SCORE_ADVICE, exact_floats
from dpaudit.numerics import Array
from dpaudit.settings import MAX_LINE, MAX_SCORES, shown
from dpaudit.text import nearest, open_foreign, shortened

SCORE, INCLUDED, RUN = "score", "included", "run"
TWO = ("scores0", "scores1")  # arrays of an NPZ file
_COINS = dict.fromkeys(("1", "1.0", "true", "t", "yes"), 1) | dict.fromkeys(("0", "0.0", "false", "f", "no"), 0)
_BETWEEN = (",", ";", "\t")  # separators of columns
_QUICK = 2**32  # maximum size of a file in bytes that is read in one step, which keeps a long line in memory

Row = tuple[int, Any, Any, list[Any]]  # line, score, inclusion, and run if there is one


class BadScores(Exception):
    """Raised if a file holds no valid scores; the message says where and why."""


class ScoresFile(NamedTuple):
    scores0: Array  # scores of runs on d0, or of excluded canaries
    scores1: Array  # scores of runs on d1, or of included canaries
    run: tuple[Any, Any] | None = None  # for each score of either array, its run; None if there is no column `run`


def read_scores_file(path: Path) -> ScoresFile:
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise BadScores(f"{path}: the name must end in one of {', '.join(_READERS)}")
    try:
        found = read(path)
        for side, scores in enumerate(found[:2]):
            if len(scores) < FEWEST:
                raise ValueError(
                    f"at least {FEWEST} scores must have {INCLUDED} = {side}, or be in {TWO[side]}; got {len(scores)}"
                )
        return found
    except (OSError, ValueError, ImportError) as error:
        words = str(getattr(error, "strerror", None) or error)
    except Exception as error:  # csv, zipfile, zlib, numpy and pyarrow raise many kinds of errors for a damaged file
        words = f"the file is damaged: {type(error).__name__}: {error}"
    raise BadScores(f"{path}: {shortened(words)}")


def _csv(path: Path) -> ScoresFile:
    with io.TextIOWrapper(open_foreign(path), encoding="utf-8-sig", newline="") as text:
        first = text.readline(MAX_LINE)
        between = next((one for one in _BETWEEN if one in first), ",")
        if path.stat().st_size <= _QUICK and (found := _quick(text, first, between)) is not None:
            return found
        text.seek(0)
        rows = csv.reader(_lines(text), strict=True, delimiter=between)
        try:
            return _of_rows(_cells(rows))
        except csv.Error as error:
            raise ValueError(f"line {rows.line_num}: {error}") from None


def _quick(text: io.TextIOWrapper, first: str, between: str) -> ScoresFile | None:
    """Read the rows after the first line in one step; None if they need a closer look, row by row."""
    header = [name.strip() for name in first.split(between)]
    if RUN in header or not all(header.count(name) == 1 for name in (SCORE, INCLUDED)):
        return None
    places = [header.index(name) for name in (SCORE, INCLUDED)]
    try:
        with warnings.catch_warnings(action="error"):
            found = np.loadtxt(text, delimiter=between, comments=None, quotechar='"', ndmin=2)
    except (ValueError, UserWarning):
        return None
    if found.shape[1] != len(header):
        return None
    scores, coins = found[:, places].T
    if np.any(np.isnan(scores)) or np.any((coins != 0) & (coins != 1)):
        return None
    return _by_coin(scores, coins, None)


def _cells(rows: Any) -> Iterator[Row]:
    """Yield the line of each row, and its three cells."""
    header = [name.strip() for name in next(rows, [])]
    if not header:
        raise ValueError(f"is empty; it must have a header with the columns {SCORE} and {INCLUDED}")
    if SCORE not in header:
        try:
            list(map(float, header))
        except ValueError:
            pass  # `_place` explains what is missing
        else:
            raise ValueError(f"has no header; add a first line that names the columns, such as {SCORE},{INCLUDED}")
    places = [_place(header, name) for name in (SCORE, INCLUDED, *([RUN] if RUN in header else []))]
    for row in filter(None, rows):
        if len(row) != len(header):
            raise ValueError(f"line {rows.line_num} has {len(row)} columns, but the header has {len(header)}")
        score, included, *run = (row[place] for place in places)
        yield rows.line_num, score, included, run


def _place(names: Sequence[str], name: str) -> int:
    if name not in names:
        meant = nearest(name, names)
        hint = f"; is it {meant!r}?" if meant else ""
        listed = shortened(", ".join(names) or "no columns", 150)
        meaning = "; it must be 1 for included canaries and for runs on d1, and 0 for the others" * (name == INCLUDED)
        raise ValueError(f"there is no column {name!r} among {listed}{hint}{meaning}")
    if names.count(name) > 1:
        raise ValueError(f"the column {name!r} occurs twice")
    return names.index(name)


def _json_lines(path: Path) -> ScoresFile:
    def rows() -> Iterator[Row]:
        for number, line in enumerate(_lines(text), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number} is not valid JSON: {error}") from None
            if not isinstance(row, dict) or not {SCORE, INCLUDED} <= row.keys():
                raise ValueError(f"line {number}: must be an object with {SCORE!r} and {INCLUDED!r}")
            yield number, row[SCORE], row[INCLUDED], [row[RUN]] if RUN in row else []

    with io.TextIOWrapper(open_foreign(path), encoding="utf-8-sig") as text:
        return _of_rows(rows())


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    """Yield the lines; refuse an endless one before it fills the memory."""
    while line := text.readline(MAX_LINE):
        if len(line) == MAX_LINE:
            raise ValueError(f"a line has more than {MAX_LINE:,} characters")
        yield line


def _of_rows(rows: Iterator[Row]) -> ScoresFile:
    """Collect scores, coins (`included`) and runs, which are numbered in order of their first occurrence."""
    scores, coins, runs, numbers = array("d"), array("b"), array("q"), dict[str, int]()
    for line, given, included, run in rows:
        coin = _coin(included, f"line {line}")
        try:
            score = float(given)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"line {line}: {SCORE} must be a number, got {shown(given)}") from None
        if math.isnan(score):
            raise ValueError(f"line {line}: {SCORE} is nan; {SCORE_ADVICE}")
        scores.append(score)
        coins.append(coin)
        for one in run:
            if one is None or not (name := str(one).strip()):
                raise ValueError(f"line {line}: {RUN} must name a run, got {shown(one)}")
            runs.append(numbers.setdefault(name, len(numbers)))
        if runs and len(runs) != len(scores):
            raise ValueError(f"line {line}: {RUN} must be given for all scores or for none")
    return _by_coin(np.array(scores), np.array(coins), np.array(runs) if runs else None)


def _coin(included: Any, place: str) -> int:
    coin = _COINS.get(str(included).strip().lower())
    if coin is None:
        words = "must be 0 or 1 (or true, false, t, f, yes, no)"
        raise ValueError(f"{place}: {INCLUDED} {words}, got {shown(included)}")
    return coin


def _by_coin(scores: Array, coins: Any, runs: Any) -> ScoresFile:
    """Split scores and runs into canaries left out and canaries included."""
    if any(column.shape != scores.shape for column in (coins, *([] if runs is None else [runs]))):
        sizes = f"there are {len(scores):,} values of {SCORE!r}, but {coins.size:,} of {INCLUDED!r}"
        raise ValueError(sizes if runs is None else f"{sizes} and {runs.size:,} of {RUN!r}")
    if np.any(wrong := (coins != 0) & (coins != 1)):
        place = int(np.argmax(wrong))
        raise ValueError(f"row {place + 1}: {INCLUDED} must be 0 or 1 (or true, false), got {coins[place]:g}")
    sides = coins == 0, coins == 1
    return ScoresFile(scores[sides[0]], scores[sides[1]], None if runs is None else (runs[sides[0]], runs[sides[1]]))


def _npz(path: Path) -> ScoresFile:
    with open_foreign(path) as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("the file is not an NPZ file, which is an archive of arrays")
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            names = list(arrays)
            unpacked = sum(member.file_size for member in arrays.zip.infolist())
            if unpacked > 8 * MAX_SCORES:
                raise ValueError(f"the arrays have {unpacked:,} bytes; the maximum is {8 * MAX_SCORES:,}")
            if all(name in names for name in TWO):
                return ScoresFile(_numbers(arrays[TWO[0]], TWO[0]), _numbers(arrays[TWO[1]], TWO[1]))
            if SCORE not in names or INCLUDED not in names:
                words = f"{TWO[0]!r} and {TWO[1]!r}, or {SCORE!r} and {INCLUDED!r}"
                raise ValueError(f"the file must hold {words}; got {', '.join(names)}")
            runs = arrays[RUN] if RUN in names else None
            if runs is not None and runs.dtype.kind not in "biuU":
                raise ValueError(f"{RUN} must be one whole number or text for each score, got {runs.dtype}")
            return _by_coin(_numbers(arrays[SCORE], SCORE), _numbers(arrays[INCLUDED], INCLUDED), runs)


def _numbers(values: Any, name: str) -> Array:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        kind = values.dtype.name
        raise ValueError(
            f"{name} must be a list of numbers, got shape {values.shape} of {kind}; save it as float32 of one dimension"
        )
    if len(values) > MAX_SCORES:  # as floats, even small numbers take eight bytes each
        raise ValueError(f"{name} has {len(values):,} values; the maximum is {MAX_SCORES:,}")
    numbers = exact_floats(values, name)
    if np.any(missing := np.isnan(numbers)):
        raise ValueError(f"{name}[{np.argmax(missing)}] is nan; {SCORE_ADVICE}")
    return numbers


def _parquet(path: Path) -> ScoresFile:
    open_foreign(path).close()  # refuses a pipe or a device
    try:
        arrow, parquet = map(importlib.import_module, ("pyarrow", "pyarrow.parquet"))
    except ImportError:
        words = 'Parquet needs pyarrow (pip install "dpaudit[parquet]"); or write the scores as CSV or NPZ'
        raise ImportError(words) from None
    # pyarrow reads by itself: a thread of it that frees an object of Python while Python ends would end the process
    with arrow.OSFile(str(path)) as opened:
        file = parquet.ParquetFile(opened)
        names = list(file.schema_arrow.names)
        columns = [name for name in (SCORE, INCLUDED, RUN) if name != RUN or RUN in names]
        for name in columns:
            _place(names, name)
        table = file.read(columns=columns, use_threads=False)
    for name in columns:
        if table.column(name).null_count:
            raise ValueError(f"row {table.column(name).is_null().index(True).as_py() + 1}: {name} is null")

    def is_text(column: Any) -> bool:
        kind, types = column.type, arrow.types
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))

    scores, coins, runs = table.column(SCORE), table.column(INCLUDED), None
    if is_text(scores) or arrow.types.is_decimal(scores.type):
        try:
            scores = scores.cast(arrow.string()).cast(arrow.float64())
        except arrow.ArrowInvalid as error:
            raise ValueError(f"{SCORE} must be numbers: {error}") from None
    if is_text(coins):
        coins = arrow.chunked_array([[_coin(coin, f"row {row}") for row, coin in enumerate(coins.to_pylist(), 1)]])
    if RUN in names:
        runs = table.column(RUN)
        if arrow.types.is_floating(runs.type):
            raise ValueError(f"{RUN} must be one whole number or text for each score, got {runs.type}")
        runs = runs.cast(arrow.string()).combine_chunks().dictionary_encode().indices.to_numpy()
    return _by_coin(_numbers(scores.to_numpy(), SCORE), _numbers(coins.to_numpy(), INCLUDED), runs)


_READERS: dict[str, Callable[[Path], ScoresFile]] = {
    ".csv": _csv,
    ".npz": _npz,
    ".parquet": _parquet,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
}
