"""A folder with configs."""

from pathlib import Path

import pytest

from .command_line import CONFIG, MANY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "c.yaml").write_text(CONFIG)
    (tmp_path / "many.yaml").write_text(MANY)
    return tmp_path
