"""Requirements and lock files: what they may hold, and that `dpaudit run --locked` installs nothing else."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from dpaudit import MechanismError
from dpaudit.running.environments import FORMAT, environment, read_lock
from dpaudit.running.requirements import check_version, local_hashes, pinned_version, project_name, unmet

from ..crashes.command_line import CONFIG as PLAIN_CONFIG
from .programs import CONFIG, Command, wheel

A, B = "a" * 64, "b" * 64
HEAD = f'{FORMAT}\n# python: 3.11\n# requires: ["x==1.0"]\n'


@pytest.fixture
def project(audited: Path) -> Path:
    shutil.rmtree(audited / "out")
    return audited


def test_a_locked_run_installs_exactly_what_the_first_run_installed(command: Command, audited: Path) -> None:
    out, packages = audited / "out", audited / "packages"
    lock = (out / "noise.lock").read_text()
    hashes = json.loads((out / "noise.json").read_text())["environment"]["hashes of the mechanism's packages"]
    assert sorted(hashes) == ["tinydep", "tinylock"]
    assert f"tinydep==1.0 --hash={hashes['tinydep']}" in lock
    wheel(packages, "tinydep", "2.0", "WORD = 'bad'\n")  # without a lock, this one would be installed
    assert command("run", "c.yaml", "-o", "out", "--no-pdf", "--locked").exit_code in (0, 3)
    saved = json.loads((out / "noise.json").read_text())["environment"]
    assert saved["packages of the mechanism"] == {"tinydep": "1.0", "tinylock": "1.0"}
    assert saved["hashes of the mechanism's packages"] == hashes
    assert (out / "noise.lock").read_text() == lock


def test_a_package_with_the_same_version_and_other_content_is_refused(command: Command, audited: Path) -> None:
    wheel(audited / "packages", "tinydep", "1.0", "WORD = 'other'\n")
    done = command("run", "c.yaml", "-o", "out", "--no-pdf", "--locked")
    assert done.exit_code == 2
    assert "Hash mismatch for `tinydep==1.0`" in done.stderr


def test_a_locked_run_without_a_lock_file_is_refused(command: Command, project: Path) -> None:
    for words in (("--locked",), ("--locked", "--dry-run")):
        done = command("run", "c.yaml", "-o", "out", *words)
        assert done.exit_code == 2
        assert "c.yaml:1: audit noise: --locked: there is no lock file" in done.stderr
        assert "Run once without --locked to write" in done.stderr


def test_a_lock_of_other_requirements_is_refused(command: Command, project: Path) -> None:
    (project / "out").mkdir()
    (project / "out" / "noise.lock").write_text(f"{HEAD}x==1.0 --hash=sha256:{A}\n")
    done = command("run", "c.yaml", "-o", "out", "--locked")
    assert done.exit_code == 2
    assert "was made for requires ['x==1.0'], but this audit has ['tinylock==1.0']" in done.stderr


def test_a_lock_that_lacks_a_dependency_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = wheel(tmp_path, "tinyneeded", "1.0", "")
    needs = wheel(tmp_path, "tinyneeds", "1.0", "", requires="tinyneeded")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    lock = environment([needs, needed]).lock
    short = read_lock("\n".join(line for line in lock.text.split("\n") if not line.startswith("tinyneeded")))
    with pytest.raises(MechanismError, match=r"no trusted hash was provided for:\s+`tinyneeded`"):
        environment([needs, needed], lock=short)
    assert set(environment([needs, needed], lock=lock).packages) == {"tinyneeded", "tinyneeds"}


def test_an_audit_without_an_environment_needs_no_lock(command: Command, project: Path) -> None:
    (project / "c.yaml").write_text(
        CONFIG.replace("{python: m.py:release, requires: [tinylock==1.0]}", "{builtin: gaussian, params: {sigma: 1.5}}")
    )
    assert command("run", "c.yaml", "-o", "out", "--no-pdf", "--locked").exit_code in (0, 3)
    assert not (project / "out" / "noise.lock").exists()


def test_a_link_named_like_the_lock_file_is_refused(command: Command, project: Path) -> None:
    (project / "out").mkdir()
    (project / "precious").write_text("mine")
    (project / "out" / "noise.lock").symlink_to(project / "precious")
    assert command("run", "c.yaml", "-o", "out", "--no-pdf").exit_code == 2
    assert (project / "precious").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: the line must be '# dpaudit-lock/1'"),
        (f"{FORMAT}\nx==1 --hash=sha256:{A}\n", "1: the file must state"),
        (f"{HEAD.replace('3.11', '2.7')}\n", "1: .*python_version must"), (f"{FORMAT}\n# requires: {{}}\n", "1: "),
        (f"{FORMAT}\n# python: 3.11\n# requires: {'[' * 100_000}\n", "1: the file must state"),
        *(
            (f"{HEAD}{line}\n", "4: the line must be a package with its hash")
            for line in (
                "--index-url=http://evil", "x==1.0", f"x>=1 --hash=sha256:{A}", f"x==1.0 --hash=sha256:{A[1:]}",
                f"x==1.0 --hash=sha256:{A} --index-url=y", f"x @ http://e.org/${{HOME}} --hash=sha256:{A}",
            )
        ),
    ],
)  # fmt: skip
def test_what_is_no_lock_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        read_lock(text)


def test_a_lock_is_read_back() -> None:
    text = (
        f'{FORMAT}\n# python: 3.11\n# requires: ["x==1.0", "y @ https://example.org/y-1.whl"]\n'
        f"x==1.0 --hash=sha256:{A}\ny @ https://example.org/y-1.whl --hash=sha256:{B}\n"
    )
    lock = read_lock(text)
    assert lock.hashes == {"x": f"sha256:{A}", "y": f"sha256:{B}"}
    assert read_lock(lock.text) == lock


@pytest.mark.parametrize("version", ["3", "2.7", "3.7", "py3.11", ""])
def test_an_invalid_python_version_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="python_version must"):
        check_version(version)


@pytest.mark.parametrize(
    ("requirement", "project"),
    [
        ("opendp==0.14.2", "opendp"), ("Pure_LDP >= 1", "pure-ldp"), ("a.b[c]~=1.0", "a-b"), ("x @ file:///x.whl", "x"),
        ("numpy<2 ; python_version < '3.9'", "numpy"), ("torch", "torch"), ("x @ git+https://e.org/x", "x"),
    ],
)  # fmt: skip
def test_a_requirement_has_a_project_name(requirement: str, project: str) -> None:
    assert project_name(requirement) == project


@pytest.mark.parametrize(
    "requirement",
    [
        "", "-r file", "--index-url=x", "./folder", "a b", "a\nb", "a==1 --index-url=x", "a==1, b==2", "a[b==1",
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


@pytest.mark.parametrize(
    ("requires", "missing"),
    [
        (["A_b>=1"], []), (["a.b==1.2"], []), (["a-b>2"], ["a-b>2"]), (["c"], ["c"]), (["pre>=1"], []),
        (["c; python_version < '3.9'"], []), (["c; python_version >= '3.9'"], ["c; python_version >= '3.9'"]),
        (["a-b @ file:///x.whl"], []), (["odd==1"], ["odd==1"]), ([], []),
    ],
)  # fmt: skip
def test_unmet_requirements_are_found(requires: list[str], missing: list[str]) -> None:
    assert unmet(requires, {"a-b": "1.2", "Pre": "2.0rc1", "odd": "not a version"}, "3.11") == missing


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ("tiny-1.0-py3-none-any.whl", "is the name of a file and not of a project; write NAME @ file:///FOLDER/tiny"),
        ("tiny.ZIP ; python_version > '3'", "is the name of a file"), ("x @ x.whl", "must be absolute"),
        ("x @ file:x.whl", "must be absolute"), ("x @ file://server/x.whl", "must be absolute"),
    ],
)  # fmt: skip
def test_a_file_without_an_absolute_url_is_refused(requirement: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        project_name(requirement)


@pytest.mark.parametrize(
    "url", ["https://user:secret@e.org/x.whl", "https://secret@e.org/x", "https://e.org/?token=secret"]
)
def test_a_password_in_a_requirement_is_refused_and_not_repeated(url: str) -> None:
    """Results, lock files and stores record requirements."""
    with pytest.raises(ValueError, match="the URL of x holds a user name, password or token") as error:
        project_name(f"x @ {url}")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("path", ["", "/x.whl", "/pipe", "/a%00b"])
def test_a_local_file_that_cannot_be_read_is_refused(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MechanismError, match=r"x @ file:.* cannot be read: "):
        local_hashes([f"x @ {tmp_path.as_uri()}{path}"])


# --- a replay and a comparison measure the packages of the audit, or say that they did not


UNLOCKED = "warning: the replay did not use the exact packages of the audit, but packages that the installer chose"


@pytest.fixture
def here(audited: Path, shared_audit: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the copy on the machine of the audit, where its environment need not be built again."""
    monkeypatch.setenv("DPAUDIT_CACHE", str(shared_audit / "cache"))
    return audited


def _replayed(command: Command, *options: str) -> Result:
    return command("replay", "out/noise.json", "--trials", "40", "--seed", "1", "-q", *options)


def _edit(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    file = folder / "out" / "noise.json"
    values = json.loads(file.read_text())
    edit(values["environment"])
    file.write_text(json.dumps(values))


def test_a_replay_installs_the_packages_of_the_audit(
    audited: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer release of a dependency is out, and a replay without a lock would measure that one."""
    wheel(audited / "packages", "tinydep", "2.0", "WORD = 'bad'\n")
    done = _replayed(command)
    assert done.exit_code == 0, done.stderr
    assert UNLOCKED not in done.stdout
    monkeypatch.setenv("DPAUDIT_CACHE", str(audited / "another cache"))
    named = command("replay", "out/noise.json", "--dry-run")
    assert "exactly these: tinydep==1.0, tinylock==1.0" in named.stdout


def test_a_replay_refuses_packages_with_other_content_or_says_so(audited: Path, command: Command) -> None:
    wheel(audited / "packages", "tinydep", "1.0", "WORD = 'other'\n")
    done = _replayed(command)
    assert done.exit_code == 3
    assert "Hash mismatch for `tinydep==1.0`" in done.stderr
    assert "--unlocked lets the installer choose others" in done.stderr
    done = _replayed(command, "--unlocked")
    assert done.exit_code == 0, done.stderr
    assert f"{UNLOCKED} (--unlocked)" in done.stdout
    assert "content of package tinydep" in done.stdout


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda a: a.pop("hashes of the mechanism's packages"), "the result has no hashes of the audit's packages"),
        pytest.param(
            lambda a: a.update({"python": "3.9.1"}), "the audit ran with Python 3.9.1", marks=pytest.mark.slow
        ),
    ],
)
def test_a_replay_that_cannot_be_locked_says_why(
    here: Path, command: Command, edit: Callable[[dict[str, Any]], object], reason: str
) -> None:
    _edit(here, edit)
    done = _replayed(command)
    assert done.exit_code == 0, done.stderr
    assert f"{UNLOCKED}: {reason}" in done.stdout


def test_a_comparison_can_be_locked(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = ("compare", "c.yaml", "--with", "tinylock==1.0", "--no-pdf", "-q")
    done = command(*compare, "--locked")
    assert done.exit_code == 2
    assert "there is no lock file" in done.stderr
    assert command(*compare).exit_code == 0
    wheel(here / "packages", "tinydep", "1.0", "WORD = 'other'\n")
    monkeypatch.setenv("UV_CACHE_DIR", str(here / "another cache"))  # the first one still holds the locked file
    done = command(*compare, "--locked")
    assert done.exit_code == 2
    assert "Hash mismatch for `tinydep==1.0`" in done.stderr


# --- a dry run of a replay names every package, reads no device, and writes nothing


@pytest.fixture
def new_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "new cache"))
    return tmp_path / "new cache"


def _result(folder: Path, command: Command, requires: list[str], packages: dict[str, str]) -> str:
    """Write a stranger's result with these requirements and packages, and invented hashes."""
    (folder / "c.yaml").write_text(PLAIN_CONFIG)
    assert command("run", "c.yaml", "-o", "out", "--no-pdf", "-q").exit_code == 0
    file = folder / "out" / "noise.json"
    values = json.loads(file.read_text())
    about = values["environment"]
    about["audit"] = about["audit"].replace("builtin: gaussian", f"python: m.py:f\n  requires: {json.dumps(requires)}")
    about["packages of the mechanism"] = packages
    about["hashes of the mechanism's packages"] = dict.fromkeys(packages, f"sha256:{64 * 'a'}")
    file.write_text(json.dumps(values))
    return str(file)


def test_a_dry_run_names_every_package_that_a_replay_installs(
    tmp_path: Path, command: Command, new_cache: Path
) -> None:
    file = _result(tmp_path, command, ["numpy"], {"numpy": "1.26.4", "evil-package": "6.6.6"})
    done = command("replay", file, "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert "in an environment with numpy, exactly these: evil-package==6.6.6, numpy==1.26.4, which" in done.stdout
    assert not new_cache.exists()


@pytest.mark.parametrize("packages", [{"numpy": "1.26.4"}, {"evil-package": "6.6.6"}])
def test_packages_that_do_not_meet_the_requirements_are_not_installed(
    tmp_path: Path, command: Command, packages: dict[str, str]
) -> None:
    from dpaudit import AuditResult
    from dpaudit.cli.replay_file import plan_replay

    planned = plan_replay(AuditResult.from_json(_result(tmp_path, command, ["numpy>=2"], packages)))
    assert planned.audit.lock is None
    (words,) = planned.warnings
    assert "the packages in the result do not meet the audit's requirement numpy>=2" in words


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/dev/zero", "is not a regular file but a folder, device or pipe"),
        ("/nowhere/x.whl", "cannot be read: No such file"),
    ],
)
def test_a_result_that_requires_an_odd_file_is_refused_at_once(
    tmp_path: Path, command: Command, new_cache: Path, path: str, reason: str
) -> None:
    file = _result(tmp_path, command, [f"x @ file://{path}"], {"x": "1.0"})
    refusal = command("replay", file, "--dry-run")
    assert refusal.exit_code == 2
    assert reason in refusal.stderr
    assert "the mechanism failed to run" not in refusal.stderr
