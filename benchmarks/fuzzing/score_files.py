"""Fuzz the score files that `dpaudit scores` reads: CSV, NPZ and JSON lines."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.cli.score_files import BadScores, read_scores_file

from .mutations import SCRAPS, VALUES, Random, encoded, of_bytes, of_text
from .target import Target, Wrong

_ROWS = 40


class ScoreFile(Target):
    """A file with 40 scores in one of the three formats."""

    share = 0.05
    suffix: str

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        rng = np.random.default_rng(0)
        self.included = np.arange(_ROWS) % 2
        self.scores = rng.normal(self.included)

    def mutated(self, rng: Random) -> bytes:
        """Return the bytes of a mutated file."""
        raise NotImplementedError

    def attempt(self, rng: Random) -> str:
        self.tried = content = self.mutated(rng)
        file = self.folder / f"scores{self.suffix}"
        file.write_bytes(content)
        try:
            sides = read_scores_file(file)[:2]
        except BadScores as error:
            if len(str(error)) > 2000:
                raise Wrong(f"a message of {len(str(error)):,} characters") from None
            return "refused"
        if any(side.ndim != 1 or side.dtype != np.float64 for side in sides):
            raise Wrong(f"scores of shapes {[side.shape for side in sides]}")
        return "read"


class Csv(ScoreFile):
    """A CSV file with two columns that dpaudit reads and a third column that it ignores."""

    name, suffix = "scores .csv", ".csv"

    def mutated(self, rng: Random) -> bytes:
        rows = [["note", "score", "included"]]
        rows += [['"a, b"', repr(float(s)), str(i)] for s, i in zip(self.scores, self.included, strict=True)]
        for _ in range(int(rng.integers(3))):
            cell = str(VALUES[rng.integers(len(VALUES))]) if rng.random() < 0.5 else SCRAPS[rng.integers(len(SCRAPS))]
            row = rows[rng.integers(len(rows))]
            row[rng.integers(len(row))] = cell
        text = "\n".join(",".join(row) for row in rows)
        return encoded(of_text(text, rng) if rng.random() < 0.7 else text)


class JsonLines(ScoreFile):
    """A file with one JSON object on each line."""

    name, suffix = "scores .jsonl", ".jsonl"

    def mutated(self, rng: Random) -> bytes:
        rows: list[Any] = [
            {"score": float(s), "included": bool(i)} for s, i in zip(self.scores, self.included, strict=True)
        ]
        for _ in range(int(rng.integers(3))):
            value = VALUES[rng.integers(len(VALUES))]
            place = rng.integers(len(rows))
            rows[place] = value if rng.random() < 0.3 else {"score": value, "included": 1}
            if rng.random() < 0.2:
                rows[place] = {"score": 1.0, "included": value}
        text = "\n".join(map(json.dumps, rows))
        return encoded(of_text(text, rng) if rng.random() < 0.7 else text)


class _Runs:
    """An object whose unpickling creates a file, as evidence that code was executed."""

    def __reduce__(self) -> Any:
        return os.system, ("touch RAN-pickle",)


class Npz(ScoreFile):
    """NPZ archives of arrays; some archives contain pickled code."""

    name, suffix = "scores .npz", ".npz"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        code = np.array([_Runs()], dtype=object)
        zero, one = self.scores[self.included == 0], self.scores[self.included == 1]
        samples: list[dict[str, Any]] = [
            {"score": self.scores, "included": self.included},
            {"scores0": zero, "scores1": one},
            {"scores0": zero.astype(np.float16), "scores1": one > 0},
            {"scores0": code, "scores1": one},
            {"score": self.scores, "included": code},
            {"score": self.scores.astype(complex), "included": self.included.astype("U1")},
            {"score": self.scores.reshape(2, -1), "included": np.zeros(_ROWS, dtype=[("a", "i4")])},
        ]
        self.samples = [_archive(arrays, packed) for arrays in samples for packed in (False, True)]

    def mutated(self, rng: Random) -> bytes:
        content = self.samples[rng.integers(len(self.samples))]
        if rng.random() < 0.5:
            return of_bytes(content, rng)
        changed = io.BytesIO()  # the new archive has correct checksums
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(changed, "w") as new:
            for name in old.namelist():
                body = old.read(name)
                kind = rng.integers(3)
                header = [body[:128], of_bytes(body[:128], rng), _resized(body[:128], rng)][kind]
                new.writestr(name, header + (body[128:] if kind else of_bytes(body[128:], rng)))
        return changed.getvalue()


def _archive(arrays: dict[str, Any], packed: bool) -> bytes:
    content = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(content, **arrays)
    return content.getvalue()


def _resized(header: bytes, rng: Random) -> bytes:
    """Return the header of an array in which the shape is changed."""
    shapes = [b"(99999999999,)", b"(-1,)", b"(4, 5)", b"()", b"(" + b"1, " * 10 + b")", b"__import__('os')"]
    before, found, after = header.partition(b"(")
    rest = after.partition(b")")[2]
    return (before + shapes[rng.integers(len(shapes))] + rest if found else header)[:128].ljust(128)
