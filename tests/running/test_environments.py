"""Private environments: how they are installed, cached and removed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

from dpaudit import MechanismError
from dpaudit.running import environments
from dpaudit.running.environments import cached_environments, environment, remove
from dpaudit.running.requirements import index_settings, pip_variables, variables
from dpaudit.running.sources import source_of

from .programs import isolated, wheel


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def builds(*_: object) -> None:
    raise ZeroDivisionError("built again")


def test_an_environment_has_its_packages_and_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = wheel(tmp_path, "tinynoise", "1.2", "def noise(rng): return rng.gauss(0, 1)\n")
    code = "import tinynoise\ndef release(dataset, rng): return tinynoise.noise(rng)"
    mechanism = isolated(tmp_path, code, requires=[tiny])
    assert isinstance(mechanism.sample(0, 1, rng())[0], float)
    assert mechanism.packages == {"tinynoise": "1.2"}
    assert mechanism.installed is not None
    monkeypatch.setattr(environments, "_build", builds)
    assert environment([tiny]) == environment((tiny,))


def test_a_failed_installation_shows_the_output_of_the_installer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wanting = wheel(tmp_path, "wanting", "1.0", "", requires="no-such-thing-anywhere==3")
    before = set(environments.environments_folder().glob("*"))
    with pytest.raises(
        MechanismError, match=r"installing wanting @ .* failed; uv printed:\n(.*\n)*.*no-such-thing-anywhere"
    ):
        environment([wanting])
    left = set(environments.environments_folder().glob("*")) - before
    assert {path.suffix for path in left} == {".lock", ".used"}


def test_an_interrupted_environment_is_rebuilt_only_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = wheel(tmp_path, "tinyhalf", "1.0", "x = 1\n")
    program = f"""
import time
from dpaudit.running import environments
environments.run_uv = lambda *given: time.sleep(600)  # an installer that never ends
environments.environment([{tiny!r}])
"""
    process = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "DPAUDIT_CACHE": str(cache)})

    def begun() -> set[Path]:
        return {path for path in (cache / "environments").glob("*-*-*") if path.is_dir()}

    before = begun()
    while process.poll() is None and begun() <= before:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    built: list[Path] = []
    build = environments._build

    def counted(*given: Any) -> Any:
        built.append(given[0])
        return build(*given)

    monkeypatch.setattr(environments, "_build", counted)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: environment([tiny]), range(4)))
    assert found[0].packages["tinyhalf"] == "1.0"
    assert all(one == found[0] for one in found)
    assert len(built) == 1
    assert begun() == before


@pytest.mark.slow
def test_an_environment_whose_python_was_removed_is_rebuilt(tmp_path: Path) -> None:
    tiny = wheel(tmp_path, "tinygone", "1.0", "")
    python = environment([tiny]).python
    python.unlink()
    python.symlink_to("/nowhere/python3")
    assert environment([tiny]).python.exists()


def test_a_missing_python_is_reported() -> None:
    with pytest.raises(MechanismError, match=r"making an environment with Python 3\.99 failed; uv printed:\n.*3\.99"):
        environment([], "3.99")


def test_a_cache_into_which_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others could put their own Python there, which would then run with the rights of this user."""
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "made" / "cache"))
    monkeypatch.setattr(environments, "_build", builds)
    before = os.umask(0)
    try:
        with pytest.raises(ZeroDivisionError, match="built again"):
            environment([])
    finally:
        os.umask(before)
    folder = environments.environments_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o1777)
    with pytest.raises(MechanismError, match=r"other users of this machine can change .* set DPAUDIT_CACHE"):
        environment([])
    folder.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(folder, 12345, -1)
    else:  # the folder then belongs to another user than this process seems to have
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(MechanismError, match=r"other users of this machine can change .* set DPAUDIT_CACHE"):
        environment([])


def test_a_file_with_another_content_gets_another_environment_and_another_identity(tmp_path: Path) -> None:
    """Once the environment of the first content was used for ever."""
    code = "import tinyfile\ndef release(dataset, rng): return tinyfile.X"
    answers, hashes = [], []
    for value in (1, 2):
        tiny = wheel(tmp_path, "tinyfile", "1.0", f"X = {value}\n")
        with isolated(tmp_path, code, requires=[tiny]) as mechanism:
            answers.append(mechanism.sample(0, 1, rng())[0])
            hashes.append(source_of(mechanism).hashes["tinyfile"])
    assert answers == [1, 2]
    assert hashes[0] != hashes[1]


Command = Callable[..., Result]
STEM = "py3.11-0123456789abcdef"


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


@pytest.fixture
def clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Use an empty home folder without settings."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
    return monkeypatch


def folder() -> Path:
    return environments._folder("3.11", ["tinylaw==1.0"], None)


def test_settings_of_pip_count_unless_uv_has_its_own(tmp_path: Path, clear: pytest.MonkeyPatch) -> None:
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    (tmp_path / ".config" / "pip" / "pip.conf").write_text(
        "[global]\nindex-url = https://conf/simple\nextra_index_url =\n  https://a/simple\n  https://b/simple\n"
        "[install]\nno-index = true\ncert = /c.pem\n"
    )
    clear.delenv("SSL_CERT_FILE", raising=False)
    clear.setenv("PIP_FIND_LINKS", "/one /two")
    found = variables()
    assert found["UV_INDEX_URL"] == "https://conf/simple"
    assert found["UV_EXTRA_INDEX_URL"] == "https://a/simple https://b/simple"
    assert found["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert (found["UV_FIND_LINKS"], found["UV_NO_INDEX"], found["SSL_CERT_FILE"]) == ("/one,/two", "true", "/c.pem")
    clear.setenv("PIP_INDEX_URL", "https://variable/simple")
    assert variables()["UV_INDEX_URL"] == pip_variables()["PIP_INDEX_URL"] == "https://variable/simple"
    clear.setenv("UV_DEFAULT_INDEX", "https://own/simple")
    clear.setenv("UV_INDEX", "mine=https://c/simple")
    assert pip_variables()["PIP_INDEX_URL"] == "https://own/simple"
    assert pip_variables()["PIP_EXTRA_INDEX_URL"] == "https://c/simple https://a/simple https://b/simple"
    (tmp_path / "uv.toml").write_text('index-url = "https://uv/simple"\n')
    clear.setenv("UV_CONFIG_FILE", str(tmp_path / "uv.toml"))
    assert not {"UV_INDEX_URL", "UV_EXTRA_INDEX_URL"} & variables().keys()
    assert variables()["UV_FIND_LINKS"] == "/one,/two"
    clear.setenv("PIP_CONFIG_FILE", os.devnull)
    assert "UV_NO_INDEX" not in variables()


@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX_URL", "UV_INDEX"])
def test_another_index_gets_another_environment(name: str, clear: pytest.MonkeyPatch) -> None:
    """A wheel of the same version from another index may hold other code."""
    found = {folder()}
    for url in ("https://one.example/simple", "https://two.example/simple"):
        clear.setenv(name, url)
        found.add(folder())
    assert len(found) == 3


@pytest.mark.parametrize("file", [".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml", "xdg/pip/pip.conf"])
def test_another_settings_file_gets_another_environment(file: str, tmp_path: Path, clear: pytest.MonkeyPatch) -> None:
    before = folder()
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("[global]\nindex-url = https://one.example/simple\n")
    assert folder() != before


def test_credentials_are_neither_kept_nor_part_of_the_key(clear: pytest.MonkeyPatch) -> None:
    found = set()
    for password in ("secret", "s3cret"):
        clear.setenv("PIP_INDEX_URL", f"https://user:{password}@one.example/simple")
        assert index_settings()["UV_INDEX_URL"] == "https://one.example/simple"
        found.add(folder())
    assert len(found) == 1, "a new password does not rebuild all environments"


@pytest.mark.parametrize("name", ["uv.toml", pytest.param("pyproject.toml", marks=pytest.mark.slow)])
def test_settings_and_packages_of_the_current_folder_have_no_effect(
    tmp_path: Path, clear: pytest.MonkeyPatch, name: str
) -> None:
    for place, version in (("strange", "9.0"), ("own", "1.0")):
        (tmp_path / place).mkdir()
        wheel(tmp_path / place, "tinypick", version, "")
    links = f'find-links = ["{tmp_path / "strange"}"]\n'
    project = '[project]\nname = "a"\nversion = "1"\n[tool.uv]\n'
    (tmp_path / "strange" / name).write_text(links if name == "uv.toml" else project + links)
    clear.chdir(tmp_path / "strange")
    clear.setenv("UV_NO_INDEX", "1")
    (tmp_path / ".config" / "uv").mkdir(parents=True)
    (tmp_path / ".config" / "uv" / "uv.toml").write_text(f'find-links = ["{tmp_path / "own"}"]\n')
    assert environment(["tinypick"]).packages == {"tinypick": "1.0"}
