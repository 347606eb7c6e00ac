"""Files sweep.json with very many wrong entries are refused without a copy of each entry in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dpaudit.result.sweeps import FORMAT, Sweep

MANY: dict[str, dict[str, Any]] = {
    "cells": {"cells": [{}] * 20_000},
    "cells.0": {"cells": [[]] * 20_000},
    "versions": {"versions": [[]] * 20_000},
    "object": {str(i): 0 for i in range(20_000)},
    "values": {"cells": [{"values": {str(i): 0 for i in range(20_000)}}]},
}


@pytest.mark.parametrize("place", MANY)
def test_very_many_wrong_cells_of_a_sweep_are_read_up_to_the_first_ones(place: str, tmp_path: Path) -> None:
    """pydantic takes 2 kB for each wrong entry."""
    (tmp_path / "sweep.json").write_text(json.dumps({"format": FORMAT, **MANY[place]}))
    with pytest.raises(ValueError, match=r"is not the outcome of a sweep: .*(0.name|should be|maximum is)") as caught:
        Sweep.from_json(tmp_path / "sweep.json")
    wrong = caught.value.__context__
    assert not isinstance(wrong, ValidationError) or wrong.error_count() <= 2000
