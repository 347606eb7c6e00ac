"""Fuzz the catalogues of sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dpaudit.config import ConfigError
from dpaudit.config.sweeps import catalogues, cells_of, read_catalogue

from .readers import TextFile


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
