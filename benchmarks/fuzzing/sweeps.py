"""Fuzz the files of sweeps: catalogues, and the outcome that `dpaudit sweep --resume` and its report read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from dpaudit.config import ConfigError
from dpaudit.config.sweeps import catalogues, cells_of, read_catalogue
from dpaudit.result.sweeps import CellState, Sweep, SweptCell
from dpaudit_reports.formats.run import Screen
from dpaudit_reports.formats.sweeps import text

from .readers import TextFile
from .target import Wrong

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


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


class SweepFile(TextFile):
    """The outcome of a sweep, of which the report and the terminal show every text."""

    name, share, file, refusals = "sweep", 0.06, "sweep.json", (ValueError,)

    def values(self) -> list[Any]:
        cells = [
            SweptCell(
                name=f"laplace-{number}-{version}",
                title=f"laplace-{number}",
                constructor="laplace",
                values={"type": str(number)},
                version=version,
                state=state,
                reason="a reason" if state is CellState.NOT_AUDITED else "",
                trials=100,
                rounds=2,
                seconds=1.5,
                last_seconds=0.5,
                p_value=None if state is CellState.NOT_AUDITED else 0.5,
                claim="" if state is CellState.NOT_AUDITED else "pure(epsilon=1)",
                certified="" if state is CellState.NOT_AUDITED else "ε ≥ 0.2 / 1 at δ = 0",
                ratio=0.2,
                detectable="ε = 1.5",
            )
            for version in ("1.0", "2.0")
            for number, state in enumerate(CellState)
        ]
        sweep = Sweep(
            library="opendp",
            package="opendp",
            catalogue="opendp.yaml",
            versions=("1.0", "2.0"),
            confidence=0.999,
            false_alarm=0.01,
            shared=True,
            number="0123abcd",
            seconds=60.0,
            spent=59.0,
            answer_seconds=5.0,
            interrupted=False,
            cells=tuple(cells),
        )
        return [sweep.to_dict()]

    def read(self, file: Path) -> None:
        shown = text(Sweep.from_json(file), Screen(width=80))
        if found := _CONTROL.search(shown):
            raise Wrong(f"the table of a sweep has the control character {found[0]!r}")
