"""Fuzz the files that dpaudit reads: configs, results, saved streams, catalogues of sweeps, and scores."""

from __future__ import annotations

import io
import json
import os
import zipfile
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dpaudit import AuditResult, OnlineAudit, Pair, audit
from dpaudit.catalogue import Gaussian
from dpaudit.cli.score_files import BadScores, read_scores_file
from dpaudit.config.files import read_configs
from dpaudit.config.planned import ConfigError
from dpaudit.config.sweeps import catalogues, cells_of, read_catalogue

from .mutations import SCRAPS, VALUES, Random, Target, Wrong, encoded, of_bytes, of_text, of_values

_CONFIGS = Path(__file__).parents[2] / "configs"
_FORMATS = Path(__file__).parents[2] / "tests" / "formats"


class TextFile(Target):
    """A text file.  Half of the mutations change its characters; the other half change its parsed values."""

    file: str
    refusals: tuple[type[Exception], ...]

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.samples = [(self.written(values), values) for values in self.values()]

    @abstractmethod
    def values(self) -> list[Any]:
        """Return the parsed contents of valid files."""

    @abstractmethod
    def read(self, file: Path) -> None:
        """Read a file with dpaudit and use its contents."""

    def written(self, values: Any) -> str:
        """Return the text of a file with the given values."""
        return json.dumps(values)

    def finished(self, values: Any) -> Any:
        """Complete mutated values, for example with a correct checksum."""
        return values

    def attempt(self, rng: Random) -> str:
        text, values = self.samples[rng.integers(len(self.samples))]
        if rng.random() < 0.5:
            self.tried = of_text(text, rng)
        else:
            self.tried = self.written(self.finished(of_values(values, rng)))
        file = self.folder / self.file
        file.write_bytes(encoded(self.tried))
        try:
            self.read(file)
        except self.refusals:
            return "refused"
        return "read"


class Config(TextFile):
    """Audit configs from this repository."""

    name, share, file, refusals = "config", 0.16, "config.yaml", (ConfigError,)

    def values(self) -> list[Any]:
        return [yaml.safe_load(file.read_text()) for file in sorted(_CONFIGS.rglob("*.y*ml"))]

    def written(self, values: Any) -> str:
        return yaml.dump(values, allow_unicode=True)

    def read(self, file: Path) -> None:
        for one in read_configs([file]):
            str(one.code)


class Result(TextFile):
    """Result files of this version and of earlier versions of dpaudit.

    The results of this version come from every method that needs only a builtin mechanism.
    """

    name, share, file, refusals = "result", 0.2, "result.json", (ValueError,)

    def values(self) -> list[Any]:
        pairs = [Pair([0], [1]), Pair([0], [0])]
        new = [
            audit(Gaussian(1.0), "gaussian(mu=0.5)", pairs, trials=300, method=method, seed=0, confidence=0.95)
            for method in ("sequential", "fixed")
        ]
        return [
            *(result.to_dict() for result in new),
            *(json.loads(file.read_text()) for file in sorted(_FORMATS.glob("result-*.json"))),
        ]

    def read(self, file: Path) -> None:
        result = AuditResult.from_json(file)
        str(result)


class Stream(TextFile):
    """The saved state of an `OnlineAudit`, from which the audit is resumed."""

    name, share, file, refusals = "stream", 0.08, "stream.json", (ValueError,)

    def values(self) -> list[Any]:
        found = []
        for steps, outputs in ((120, _numbers), (30, _records)):
            stream = OnlineAudit("gaussian(mu=1)", seed=0, attacks="median_clipped")
            rng = np.random.default_rng(0)
            for _ in range(steps):
                stream.update(outputs(stream.coin(), rng))
            stream.to_json(self.folder / self.file)
            found.append(json.loads((self.folder / self.file).read_text()))
        return found

    def read(self, file: Path) -> None:
        stream = OnlineAudit.from_json(file)
        stream.coin()
        stream.update(0.5)
        str(stream.result())
        stream.to_json(file)


def _numbers(side: int, rng: Random) -> float:
    return side + float(rng.normal())


def _records(side: int, rng: Random) -> Any:
    return {"a": [side, float(rng.normal())], "b": "text"}


class CatalogueFile(TextFile):
    """A catalogue of a library, from which the cells of a sweep are planned."""

    name, share, file, refusals = "catalogue", 0.06, "catalogue.yaml", (ConfigError,)

    def values(self) -> list[Any]:
        found = [yaml.safe_load(file.read_text()) for file in catalogues().values()]
        return [one | {"entries": one["entries"][first : first + 3]} for one in found for first in (0, 4)]

    def written(self, values: Any) -> str:
        return yaml.dump(values, allow_unicode=True)

    def read(self, file: Path) -> None:
        catalogue = read_catalogue(str(file))
        for cell in cells_of(catalogue, catalogue.newest, pinned=True, settings={}):
            str(cell.planned.code)


# --- Scores

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
