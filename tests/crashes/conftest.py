"""A folder with configs, and a temporary folder for what dpaudit rescues after an error."""

from pathlib import Path

import pytest

from .command_line import CONFIG, MANY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "c.yaml").write_text(CONFIG)
    (tmp_path / "many.yaml").write_text(MANY)
    return tmp_path


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the temporary folder of this process and of those that the test starts."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder
