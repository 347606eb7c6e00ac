"""Local files of requirements that are not hashed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaudit import MechanismError
from dpaudit.mechanisms import local_files
from dpaudit.mechanisms.local_files import local_hashes


@pytest.mark.parametrize("path", ["a/../x.whl", "./x.whl", "a/%2e%2e/x.whl", "a%5Cx.whl"])
def test_a_url_that_an_installer_may_resolve_otherwise_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "a").mkdir()
    for file in ("x.whl", "a\\x.whl"):
        (tmp_path / file).write_text("x")
    with pytest.raises(MechanismError, match="so an installer may read another file"):
        local_hashes([f"x @ {tmp_path.as_uri()}/{path}"])


def test_files_of_the_system_are_not_read_and_all_files_share_one_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight GiB of /proc/self/pagemap were once hashed for each requirement."""
    (tmp_path / "empty").touch()
    for file in ("/proc/self/maps", str(tmp_path / "empty")):
        with pytest.raises(
            MechanismError, match="cannot be read" if not Path(file).exists() else "names an empty file"
        ):
            local_hashes([f"x @ file://{file}"])
    monkeypatch.setattr(local_files, "_MAX_BYTES", 25)
    for name in "ab":
        (tmp_path / name).write_text(name * 10)
    (tmp_path / "again").hardlink_to(tmp_path / "a")
    files = [f"{name} @ {(tmp_path / name).as_uri()}" for name in ("a", "b", "again")]
    hashes = local_hashes(files)  # the same file counts once
    assert hashes["a"] == hashes["again"] != hashes["b"]
    (tmp_path / "c").write_text("c" * 10)
    with pytest.raises(MechanismError, match="c: the required local files are larger than 25 bytes together"):
        local_hashes([*files, f"c @ {(tmp_path / 'c').as_uri()}"])
