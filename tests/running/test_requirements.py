"""The forms of requirements and of Python versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpaudit import MechanismError
from dpaudit.running.requirements import check_version, local_hashes, pinned_version, project_name, unmet


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
