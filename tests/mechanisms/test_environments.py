"""Private environments, and the forms of requirements and Python versions."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError, Pair
from dpaudit.mechanisms import environments
from dpaudit.mechanisms.environments import cached_environment, environment, pinned_version, project_name
from dpaudit.mechanisms.installer import check_installed, pip_of
from dpaudit.mechanisms.interpreters import check_version
from dpaudit.mechanisms.local_files import local_hashes
from dpaudit.mechanisms.requirements import unmet
from dpaudit.sampling.runs import ExecutionSettings
from dpaudit.sampling.store_identity import identity

from .programs import isolated, wheel


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the requirement of a package.  Its environment is in the cache once a test has asked for it."""
    return wheel(tmp_path_factory.mktemp("tiny"), "tinynoise", "1.2", "def noise(rng): return rng.gauss(0, 1)\n")


def test_an_environment_has_its_packages_and_is_built_once(
    tmp_path: Path, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import tinynoise\ndef release(dataset, rng): return tinynoise.noise(rng)"
    mechanism = isolated(tmp_path, code, requires=[tiny])
    assert isinstance(mechanism.sample(0, 1, rng())[0], float)
    assert mechanism.packages["tinynoise"] == "1.2"
    monkeypatch.setattr(environments, "_build", None)  # a call would fail
    assert environment([tiny]) == environment((tiny,))


def test_a_failed_installation_shows_the_output_of_the_installer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    wanting = wheel(tmp_path, "wanting", "1.0", "", requires="no-such-thing-anywhere==3")
    before = set(environments.cache_folder().rglob("*"))
    with pytest.raises(
        MechanismError, match=r"installing wanting @ .* failed; (pip|uv) printed:\n(.*\n)*.*no-such-thing-anywhere"
    ):
        environment([wanting])
    left = set(environments.cache_folder().rglob("*")) - before
    assert {path.suffix for path in left if path.is_file()} <= {".lock", ".used"}


def test_an_interrupted_environment_is_rebuilt_only_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = wheel(tmp_path, "tinyhalf", "1.0", "x = 1\n")
    program = f"""
import time
from dpaudit.mechanisms import environments
environments._run = lambda *given: time.sleep(600)  # an installer that never ends
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


def test_a_missing_python_is_reported() -> None:
    with pytest.raises(MechanismError, match=r"no Python 3\.99 was found on PATH, in .*; install it"):
        environment([], "3.99")


@pytest.mark.parametrize("version", ["3", "3.x", "2.7", "3.7", "py3.11", "", "3.١١", "3.0000011"])
def test_an_invalid_python_version_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="python_version must"):
        check_version(version)


@pytest.mark.parametrize(
    ("requirement", "project"),
    [
        ("opendp==0.14.2", "opendp"), ("Pure_LDP >= 1", "pure-ldp"), ("a.b[c]~=1.0", "a-b"), ("x @ file:///x.whl", "x"),
        ("numpy<2 ; python_version < '3.9'", "numpy"), ("torch", "torch"),
    ],
)  # fmt: skip
def test_a_requirement_has_a_project_name(requirement: str, project: str) -> None:
    assert project_name(requirement) == project


@pytest.mark.parametrize(
    "requirement",
    [
        "", "-r file", "--index-url=x", "./folder", "a b", "==1", "a\nb", "a\n", "a==1 --index-url=x", "a==1, b==2",
        "a==newest", "a[b==1", "a; b", "a @", "a==1 # why", "a~=1",
        "a; " + "(" * 3000,
    ],
)  # fmt: skip
def test_what_is_not_a_requirement_is_refused(requirement: str) -> None:
    with pytest.raises(ValueError, match="a requirement must read like"):
        project_name(requirement)


@pytest.mark.parametrize(
    ("requirement", "pinned"),
    [
        ("opendp==0.14.2", ("opendp", "0.14.2")), ("Some_Thing == 1.0rc1", ("Some_Thing", "1.0rc1")),
        ("a==1!2.0+local", ("a", "1!2.0+local")), ("a", None), ("a>=1", None), ("a==1.*", None), ("a===1", None),
        ("a==1,!=2", None), ("a[b]==1", None), ("a==1; python_version > '3'", None), ("a @ file:///x.whl", None),
    ],
)  # fmt: skip
def test_only_a_plain_exact_version_is_pinned(requirement: str, pinned: tuple[str, str] | None) -> None:
    assert pinned_version(requirement) == pinned


def test_variables_of_pip_cannot_send_packages_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the variables alone would make the installation fail or go elsewhere, and so would all together."""
    for setting in ("TARGET", "PREFIX", "ROOT"):
        monkeypatch.setenv(f"PIP_{setting}", str(tmp_path / "elsewhere"))
    for setting in ("DRY_RUN", "USER", "REQUIRE_VIRTUALENV"):
        monkeypatch.setenv(f"PIP_{setting}", "1")
    found = environment([wheel(tmp_path, "tinyhere", "1.0", "x = 1\n")])
    assert found.packages["tinyhere"] == "1.0"
    assert not (tmp_path / "elsewhere").exists()


def builds(*_: object) -> None:
    raise ZeroDivisionError("built again")


def test_an_installation_that_went_elsewhere_is_refused_and_never_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = wheel(tmp_path, "tinylost", "1.0", "x = 1\n")
    (tmp_path / "pip.conf").write_text(f"[install]\ntarget = {tmp_path / 'elsewhere'}\n")
    with monkeypatch.context() as changed:
        changed.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
        changed.setattr(shutil, "which", lambda name: None)  # uv does not read pip.conf
        with pytest.raises(MechanismError, match=r"the environment lacks tinylost @ .* see `pip config list`"):
            environment([tiny])
    assert (tmp_path / "elsewhere" / "tinylost.py").exists()
    found = environment([tiny])  # installed again, where it belongs
    assert found.packages == {"tinylost": "1.0"}
    assert list(found.python.parents[1].rglob("tinylost.py"))


def test_pip_is_started_once_where_that_is_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner is a file of pip that no documentation promises."""
    python = tmp_path / "python"
    assert pip_of(sys.executable, python)[0] == str(python)
    monkeypatch.setattr("dpaudit.mechanisms.installer._RUNNER", "a file that pip lacks")
    command = pip_of(sys.executable, python)
    assert (command[0], command[-2:]) == (sys.executable, ["--python", str(python)])


@pytest.mark.parametrize(
    ("inside", "mode"), [("", 0o777), ("", 0o775), ("environments", 0o1777), ("environments", 0o720)]
)
def test_a_cache_into_which_others_can_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str, mode: int
) -> None:
    """Others could put their own Python there, which would then run with the rights of this user."""
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(environments, "_build", builds)
    for folder in ("cache", "cache/environments"):
        (tmp_path / folder).mkdir(mode=0o700)
    (tmp_path / "cache" / inside).chmod(mode)
    with pytest.raises(MechanismError, match=rf"other users can write to .* \(mode {mode:o}\).* set DPAUDIT_CACHE"):
        environment([])


def test_beside_a_default_cache_of_another_user_is_an_own_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that runs as root may have a home folder of the user outside."""
    monkeypatch.delenv("DPAUDIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert environments.named_cache() == tmp_path / "dpaudit"
    (tmp_path / "dpaudit").mkdir(mode=0o700)
    assert environments.named_cache() == tmp_path / "dpaudit"
    if os.geteuid() == 0:
        os.chown(tmp_path / "dpaudit", 12345, -1)
    else:  # the folder then belongs to another user than this process seems to have
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert environments.named_cache() == tmp_path / f"dpaudit-{os.geteuid()}"


@pytest.mark.parametrize("inside", ["", "environments"])
def test_a_cache_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str) -> None:
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(environments, "_build", builds)
    for folder in ("cache", "cache/environments"):
        (tmp_path / folder).mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(tmp_path / "cache" / inside, 12345, -1)
    else:  # the folders then belong to another user than this process seems to have
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(MechanismError, match=r"belongs to another user \(uid \d+\).* set DPAUDIT_CACHE"):
        environment([])


def test_a_link_inside_the_cache_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a cache like /tmp anybody can make links, and a link to a folder of this user looks like the user's."""
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(environments, "_build", builds)
    for folder in ("real", "elsewhere"):
        (tmp_path / folder).mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "real")  # by the user's own choice
    with pytest.raises(ZeroDivisionError, match="built again"):
        environment([])
    shutil.rmtree(tmp_path / "real" / "environments")
    (tmp_path / "real").chmod(0o1777)
    (tmp_path / "real" / "environments").symlink_to(tmp_path / "elsewhere")
    for find in (environment, cached_environment):
        with pytest.raises(MechanismError, match="environments is a link, so the content may be replaced"):
            find([])


def test_a_new_cache_can_be_written_by_its_user_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "made" / "cache"))
    monkeypatch.setattr(environments, "_build", builds)
    before = os.umask(0)
    try:
        with pytest.raises(ZeroDivisionError, match="built again"):
            environment([])
    finally:
        os.umask(before)
    for folder in ("cache", "cache/environments"):
        assert (tmp_path / "made" / folder).stat().st_mode & 0o777 == 0o700
    (tmp_path / "made" / "cache").chmod(0o1777)  # as /tmp, where others cannot rename what is not theirs
    with pytest.raises(ZeroDivisionError, match="built again"):
        environment([])


def test_an_environment_of_an_earlier_version_without_its_packages_is_rebuilt(
    tiny: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = environment([tiny])
    pointer = cache / "environments" / f"{built.python.parents[1].name.rpartition('-')[0]}.json"
    about = json.loads(pointer.read_text())
    wrong: dict[str, Any]
    for wrong in ({"folder": "../elsewhere"}, {"folder": "/"}, {"folder": None}, {"packages": []}, {"packages": {}}):
        pointer.write_text(json.dumps({**about, **wrong}))
        with monkeypatch.context() as changed:
            changed.setattr(environments, "_build", builds)
            with pytest.raises(ZeroDivisionError, match="built again"):
                environment([tiny])
    rebuilt = environment([tiny])
    assert rebuilt.packages["tinynoise"] == "1.2"
    assert rebuilt.python != built.python


def test_missing_files_of_a_package_are_noticed(tmp_path: Path, tiny: str) -> None:
    built = environment([tiny])
    (module,) = built.python.parents[1].rglob("tinynoise.py")
    kept = module.rename(tmp_path / "kept.py")
    try:
        with pytest.raises(MechanismError, match=r"files of these packages are missing: tinynoise \(tinynoise.py\)"):
            check_installed(built.python, [], "3.11")
    finally:
        kept.rename(module)


@pytest.mark.parametrize(
    ("requires", "missing"),
    [
        (["A_b>=1"], []), (["a.b==1.2"], []), (["a-b>2"], ["a-b>2"]), (["c"], ["c"]), (["pre>=1"], []),
        (["c; python_version < '3.9'"], []), (["c; python_version >= '3.9'"], ["c; python_version >= '3.9'"]),
        (["a-b @ file:///x.whl"], []), (["./folder"], []), (["odd==1"], []), ([], []),
    ],
)  # fmt: skip
def test_unmet_requirements_are_found(requires: list[str], missing: list[str]) -> None:
    assert unmet(requires, {"a-b": "1.2", "Pre": "2.0rc1", "odd": "not a version"}, "3.11") == missing


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ("tiny-1.0-py3-none-any.whl", "is the name of a file and not of a project; write NAME @ file:///FOLDER/tiny"),
        ("tiny-1.0.tar.gz", "is the name of a file"), ("tiny.ZIP ; python_version > '3'", "is the name of a file"),
        ("x @ ./x-1.0-py3-none-any.whl", "must begin with https:// or file:///"),
        ("x @ x.whl", "must begin with https:// or file:///"), ("x @ file:x.whl", "must be absolute"),
        ("x @ file://x.whl", "must be absolute"), ("x @ file://server/x.whl", "must be absolute"),
        ("./tiny-1.0-py3-none-any.whl", "a requirement must read like"),
    ],
)  # fmt: skip
def test_a_file_without_an_absolute_url_is_refused(requirement: str, message: str) -> None:
    """What it means would depend on the current folder, which may be a stranger's."""
    with pytest.raises(ValueError, match=message):
        project_name(requirement)


def test_a_file_with_another_content_gets_another_environment_and_another_identity(tmp_path: Path) -> None:
    """Once the environment of the first content was used for ever."""
    code = "import tinyfile\ndef release(dataset, rng): return tinyfile.X"
    answers, identities = [], []
    for value in (1, 2):
        tiny = wheel(tmp_path, "tinyfile", "1.0", f"X = {value}\n")
        with isolated(tmp_path, code, requires=[tiny]) as mechanism:
            answers.append(mechanism.sample(0, 1, rng())[0])
            identities.append(identity(mechanism, [Pair(0, 1)], 0, ExecutionSettings())["hashes of the packages"])
    assert answers == [1, 2]
    assert identities[0] != identities[1]


def test_a_folder_or_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MechanismError, match=r"names a folder, whose content may change .* pip wheel --no-deps"):
        environment([f"x @ {tmp_path.as_uri()}"])
    with pytest.raises(MechanismError, match=r"x.whl cannot be read: No such file"):
        environment([f"x @ {tmp_path.as_uri()}/x.whl"])


def test_two_files_of_a_project_are_refused(tmp_path: Path) -> None:
    """Only one of the two hashes would be part of the identity."""
    files = [
        f"x @ {tmp_path.as_uri()}/{name}.whl ; python_version {sign} '3'" for name, sign in (("a", ">="), ("b", "<"))
    ]
    for name in "ab":
        (tmp_path / f"{name}.whl").write_text(name)
    with pytest.raises(MechanismError, match="names a second file of x"):
        local_hashes(files)


@pytest.mark.parametrize("login", ["user:secret@", "token@"])
def test_a_password_in_a_requirement_is_refused_and_not_repeated(login: str) -> None:
    """Results, lock files and stores record requirements."""
    with pytest.raises(ValueError, match="the URL of x holds a user name or password") as error:
        project_name(f"x @ https://{login}example.org/x-1.0-py3-none-any.whl")
    assert login not in str(error.value)
