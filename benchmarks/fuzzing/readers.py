"""Fuzz the text files that dpaudit reads: configs, results and saved states of online audits."""

from __future__ import annotations

import json
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dpaudit import AuditResult, OnlineAudit, Pair, audit
from dpaudit.catalogue import Gaussian
from dpaudit.config import ConfigError, read_configs

from .mutations import Random, encoded, of_text, of_values
from .target import Target

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
