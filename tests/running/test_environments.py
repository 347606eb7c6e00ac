"""Private environments: how they are installed, cached and removed."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError
from dpaudit.running import environments
from dpaudit.running.environments import cached_environments, environment, remove
from dpaudit.running.requirements import index_settings, pip_variables, variables
from dpaudit.running.sources import missing_object, source_of

from .programs import Command, isolated, wheel


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


def test_modules_are_compiled_once_and_kept_with_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    caplog.set_level("INFO", "dpaudit.running")
    requires = [wheel(tmp_path, "tinycompiled", "1.0", "WORD = 1")]
    mechanism = isolated(
        tmp_path, "import tinycompiled\ndef release(dataset, rng): return tinycompiled.WORD", requires=requires
    )
    with mechanism:
        assert list(mechanism.sample(0, 1, np.random.default_rng(0))) == [1]
    compiled = {file.name.partition(".")[0] for file in (tmp_path / "cache").rglob("bytecode/**/*.pyc")}
    assert {"tinycompiled", "mine"} <= compiled
    assert not list(tmp_path.glob("__pycache__"))
    assert [record.msg.split()[0] for record in caplog.records] == ["building", "the"]


def test_an_existing_interpreter_is_used_as_it_is(tmp_path: Path) -> None:
    code = "import sys\ndef release(dataset, rng): return sys.prefix, type(rng).__name__"
    with isolated(tmp_path, code, interpreter=Path(sys.executable)) as mechanism:
        assert list(mechanism.sample(0, 1, np.random.default_rng(0))) == [(sys.prefix, "Generator")]
    assert mechanism.packages["numpy"] == np.__version__
    assert mechanism.installed is None
    for wrong, reason in ((Path("/bin/cat"), "does not answer like a Python"), (tmp_path / "python", "No such file")):
        with pytest.raises(MechanismError, match=f"interpreter {wrong} cannot be used: .*{reason}"):
            isolated(tmp_path, code, interpreter=wrong).start()


MISTAKEN = """\
name: first
claim: gaussian(mu=1)
mechanism: {python: m.py:release, requires: [no-such-package-anywhere]}
pairs: [{d0: [0], d1: [1]}]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("m.py:release", "n.py:release", "mechanism: the file n.py does not exist .*; did you mean m.py"),
        ("m.py:release", "m.py:relaese", "mechanism: m.py has no object 'relaese'; did you mean release"),
        ("m.py:release", "broken.py:release", "mechanism: broken.py cannot be compiled: .*line 1"),
        ("d1: [1]", "d1: rows.csv", "rows.csv"),
        ("pairs:", "detect: gaussian(mu=0.5)\npairs:", "detect must be a violation"),
        ("requires: [no-such-package-anywhere]", "interpreter: bin/python", "interpreter: the file .* does not exist"),
    ],
)
def test_mistakes_are_told_before_an_environment_is_built(
    old: str, new: str, message: str, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second audit is checked as well before the environment of the first one is built."""
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "m.py").write_text("import no_such_package\ndef release(dataset, rng): return rng.random()\n")
    (tmp_path / "broken.py").write_text("def release(:\n")
    second = MISTAKEN.replace("first", "second").replace(old, new)
    for name, text in (("a.yaml", MISTAKEN), ("b.yaml", second)):
        (tmp_path / name).write_text(text)
    done = command("run", "a.yaml", "b.yaml", "--no-pdf")
    assert done.exit_code == 2, done.output
    assert re.search(message, done.stderr.replace("\n", " ")), done.stderr
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("code", ["from x import *", "exec('release = 1')", "globals()['release'] = 1"])
def test_a_file_that_may_have_the_object_is_not_refused(code: str, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(code)
    assert missing_object(str(tmp_path / "m.py"), "release", same_python=True) == ""
    (tmp_path / "m.py").write_text("def other(): pass\nclass release: pass")
    assert missing_object(str(tmp_path / "m.py"), "release.run", same_python=True) == ""


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
