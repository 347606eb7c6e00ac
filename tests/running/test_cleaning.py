"""`dpaudit clean` removes environments in the cache and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from dpaudit.running.environments import cached_environments, environment, remove

Command = Callable[..., Result]
STEM = "py3.11-0123456789abcdef"


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of environments of an empty cache."""
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "environments"
    folder.mkdir(parents=True, mode=0o700)
    return folder


def planted(folder: Path) -> Path:
    """Write what looks like a complete environment."""
    inside = folder / STEM / "bin"
    inside.mkdir(parents=True)
    (inside / "python").write_bytes(b"x" * 100_000)
    (folder / STEM / "dpaudit.json").write_text(
        '{"python": "3.11", "requires": ["opendp==0.14.2"], "packages": {}, "lock": null}'
    )
    return inside.parent


def test_environments_are_listed_and_removed_only_with_yes(command: Command, cached: Path) -> None:
    folder = planted(cached)
    listed = command("clean")
    assert listed.exit_code == 0
    assert "0.1 MB  unused for    0 days  opendp==0.14.2, Python 3.11" in listed.stdout
    assert str(folder) in listed.stdout
    assert "To remove them: dpaudit clean --yes" in listed.stderr
    assert folder.exists()
    done = command("clean", "--yes")
    assert (done.exit_code, "removed 1 of 1" in done.stderr) == (0, True)
    assert {path.suffix for path in cached.iterdir()} == {".lock", ".used"}
    assert "there are no environments" in command("clean", "--yes").stderr


def test_other_files_and_what_links_lead_to_stay(command: Command, cached: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    folder = planted(cached)
    (folder / "out").symlink_to(precious)  # inside an environment
    (cached / f"{STEM}-linked12").symlink_to(precious)  # named like an environment
    for name in ("mine", "py3.11", f"{STEM}x-abcd", "py3.11-zzz-abcd", "py2.7-0123456789abcdef-abcd"):
        (cached / name).mkdir()
    (cached / f"{STEM}-afile123").write_text("a file, no folder")
    before = {path.name for path in cached.iterdir()} - {folder.name}
    assert command("clean", "--yes").exit_code == 0
    assert {path.name for path in cached.iterdir()} - {f"{STEM}.lock", f"{STEM}.used"} == before
    assert (precious / "file").read_text() == "mine"


def test_an_environment_in_use_stays_and_a_removed_one_is_built_again(command: Command, cached: Path) -> None:
    program = (
        "import sys; from dpaudit.running.environments import environment\n"
        "environment([]); print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ.copy()
    ) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == "ready\n"
        done = command("clean", "--yes")
        assert done.exit_code == 3
        assert "stays: the environment is in use" in done.stderr
        user.kill()
    assert command("clean", "--yes").exit_code == 0
    assert cached_environments() == []
    assert environment([]).python.exists()
    (one,) = cached_environments()
    with pytest.raises(BlockingIOError):
        remove(one)  # this process uses it


def test_an_interrupted_installation_is_listed_as_such(cached: Path) -> None:
    (cached / f"{STEM}-abcd_123" / "lib").mkdir(parents=True)
    (one,) = cached_environments()
    assert one.about == "an incomplete installation"
    remove(one)
    assert not (cached / f"{STEM}-abcd_123").exists()
