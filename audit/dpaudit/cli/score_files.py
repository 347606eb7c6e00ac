"""Files of scores: CSV, NPZ, Parquet and JSON lines, read piece by piece."""

from __future__ import annotations

import csv
import importlib
import json
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.text.spelling import nearest

SCORE, INCLUDED = "score", "included"
TWO = ("scores0", "scores1")  # arrays of an NPZ file
_TRUE, _FALSE = ("1", "1.0", "true", "t", "yes"), ("0", "0.0", "false", "f", "no")
_BATCH = 100_000  # rows of a Parquet file that are read at once


class BadScores(Exception):
    """Raised if a file holds no valid scores; the message says where and why."""


def read_scores_file(path: Path) -> tuple[Array, Array]:
    """Return the scores of d0, or of excluded canaries, and the scores of d1, or of included canaries.

    Raises:
        BadScores: If the file cannot be read as scores.
    """
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise BadScores(f"{path}: scores are read from {', '.join(_READERS)}, not from {path.suffix or 'such a file'}")
    try:
        return read(path)
    except (OSError, ValueError, csv.Error) as error:
        words = str(getattr(error, "strerror", None) or error)
        raise BadScores(words if str(path) in words else f"{path}: {words}") from None


def _csv(path: Path) -> tuple[Array, Array]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        score, included = (_place(header, name, path) for name in (SCORE, INCLUDED))
        widest = max(score, included)

        def values() -> Iterator[tuple[Any, Any]]:
            for row in rows:
                if len(row) > widest:
                    yield row[score], row[included]
                elif row:
                    raise ValueError(f"line {rows.line_num} has {len(row)} columns, but the header has {len(header)}")

        return _split(values(), "line", 2)


def _place(header: list[str], name: str, path: Path) -> int:
    names = [one.strip() for one in header]
    if name not in names:
        meant = nearest(name, names)
        hint = f"; is it {meant!r}?" if meant else ""
        raise BadScores(f"{path}: there is no column {name!r} among {', '.join(names) or 'no columns'}{hint}")
    return names.index(name)


def _json_lines(path: Path) -> tuple[Array, Array]:
    with path.open(encoding="utf-8") as file:

        def values() -> Iterator[tuple[Any, Any]]:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                row = json.loads(line)
                for name in (SCORE, INCLUDED):
                    if not isinstance(row, dict) or name not in row:
                        raise ValueError(f"line {number}: it must be an object with {SCORE!r} and {INCLUDED!r}")
                yield row[SCORE], row[INCLUDED]

        return _split(values(), "object", 1)


def _split(rows: Iterator[tuple[Any, Any]], unit: str, first: int) -> tuple[Array, Array]:
    """Divide scores by their coins into two arrays, with eight bytes for each score."""
    sides = array("d"), array("d")
    for number, (score, included) in enumerate(rows, first):
        side = _coin(included)
        try:
            sides[side].append(float(score))  # type: ignore[index]
        except (TypeError, ValueError):
            what = f"{INCLUDED} must be 0 or 1 (or true, false), got {included!r}"
            what = what if side is None else f"{SCORE} must be a number, got {score!r}"
            raise ValueError(f"{unit} {number}: {what}") from None
    return np.frombuffer(sides[0], dtype=np.float64), np.frombuffer(sides[1], dtype=np.float64)


def _coin(given: Any) -> int | None:
    text = str(given).strip().lower()
    return 1 if text in _TRUE else 0 if text in _FALSE else None


def _npz(path: Path) -> tuple[Array, Array]:
    with np.load(path, allow_pickle=False) as file:
        names = list(file)
        if all(name in names for name in TWO):
            return _column(file[TWO[0]], TWO[0]), _column(file[TWO[1]], TWO[1])
        if not (SCORE in names and INCLUDED in names):
            raise ValueError(
                f"it must hold {TWO[0]!r} and {TWO[1]!r}, or {SCORE!r} and {INCLUDED!r}; it holds {', '.join(names)}"
            )
        return _by_coin(_column(file[SCORE], SCORE), file[INCLUDED])


def _column(values: Any, name: str) -> Array:
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be one number for each score, got shape {values.shape} of {values.dtype}")
    return np.asarray(values, dtype=np.float64)


def _by_coin(scores: Array, included: Any) -> tuple[Array, Array]:
    if included.shape != scores.shape:
        raise ValueError(f"there are {len(scores):,} of {SCORE!r}, but {included.size:,} of {INCLUDED!r}")
    if not np.all((included == 0) | (included == 1)):
        raise ValueError(f"{INCLUDED} must be 0 or 1 (or true, false)")
    chosen = included == 1
    return scores[~chosen], scores[chosen]


def _parquet(path: Path) -> tuple[Array, Array]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        words = f"{path}: Parquet needs pyarrow (pip install pyarrow); or write the scores as CSV or NPZ"
        raise BadScores(words) from None
    file = parquet.ParquetFile(path)
    names = list(file.schema_arrow.names)
    for name in (SCORE, INCLUDED):
        _place(names, name, path)
    sides: tuple[list[Array], list[Array]] = ([], [])
    for batch in file.iter_batches(batch_size=_BATCH, columns=[SCORE, INCLUDED]):
        scores, included = (batch.column(name).to_numpy(zero_copy_only=False) for name in (SCORE, INCLUDED))
        for side, values in zip(sides, _by_coin(_column(scores, SCORE), included), strict=True):
            side.append(values)
    first, second = (np.concatenate(side) if side else np.zeros(0) for side in sides)
    return first, second


_READERS: dict[str, Callable[[Path], tuple[Array, Array]]] = {
    ".csv": _csv,
    ".npz": _npz,
    ".parquet": _parquet,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
}
