"""`dpaudit bisect`: the listing of releases, and indexes that do not answer; see `replaced_index`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from packaging.version import Version
from typer.testing import CliRunner

from dpaudit.cli import audit_releases
from dpaudit.cli.app import app
from dpaudit.running import MechanismError, installer
from dpaudit.running.installer import Releases

from .replaced_index import CONFIG, OFFLINE, Index, bisected, prose, replaced_index, written


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Index:
    return replaced_index(monkeypatch, tmp_path)


def test_pre_releases_and_yanked_releases_are_left_out_unless_an_end_names_them(index: Index) -> None:
    history = {"1.0": "b", "1.1": "b", "2.0rc1": "g", "2.0": "g", "2.1": "g", "3.0a1": "g"}
    index.left_out = {"1.0": "yanked", "2.0rc1": "pre-release", "3.0a1": "pre-release"}
    done = bisected(index, history)
    assert "First good release: 2.0. The listed release before it, 1.1, is bad." in prose(done)
    assert "Not considered between the two: 2.0rc1 (pre-release)." in prose(done)
    assert written()["changes"][0]["left_out_between"] == {"2.0rc1": "pre-release"}
    assert [one["version"] for one in written()["releases"]] == ["1.1", "2.0", "2.1"]
    assert written()["left_out"] == index.left_out
    bisected(index, history, "--from", "v1", "--to", "3.0.a1")
    assert [one["version"] for one in written()["releases"]] == ["1.0", "1.1", "2.0", "2.1", "3.0a1"]
    assert written()["left_out"] == {"2.0rc1": "pre-release"}


WRONG = {
    "--from 9.9": "--from 9.9: tinylaw has no such release for the Python of the audits. The releases are 1.1, 1",
    "--to 1.33": "--to 1.33: tinylaw has no such release for the Python of the audits; did you mean 1.3?",
    "--from 1.3 --to 1.2": "error: --from 1.3 is newer than --to 1.2; exchange them",
}


@pytest.mark.parametrize("options", WRONG)
def test_wrong_ends_are_explained(options: str, index: Index) -> None:
    done = bisected(index, "gggg", *options.split())
    assert done.exit_code == 2
    assert WRONG[options] in " ".join(done.stderr.replace("│", " ").split())
    assert not index.seeds


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("tinylow", "PACKAGE tinylow: no audit requires tinylow; did you mean tinylaw?"),
        ("tinylaw==1.0", "PACKAGE must be a name such as tinylaw, got 'tinylaw==1.0'; see --from and --to"),
    ],
)
def test_a_package_that_no_audit_requires_is_refused_before_the_index_is_asked(
    package: str, words: str, index: Index
) -> None:
    index.error = MechanismError("the index was asked")
    done = CliRunner().invoke(app, ["bisect", "noise.yaml", package])
    assert done.exit_code == 2
    assert words in done.stderr


def test_an_index_without_an_answer_ends_the_command(index: Index) -> None:
    error = index.error = MechanismError("it could not be read")
    done = bisected(index, "gg")
    assert done.exit_code == 2
    assert f"error: {error}" in done.stderr
    assert done.stdout == ""


def test_three_releases_in_a_row_without_a_network_end_the_search(index: Index) -> None:
    done = bisected(index, "g" + "w" * 30 + "g")
    assert done.exit_code == 3
    assert sum(one["state"] == "inconclusive" for one in written()["releases"]) == 3
    assert written()["ended_by_network"] is True
    assert "The network failed during several installations in a row, which ended the search." in prose(done)


@pytest.mark.parametrize(
    ("said", "failed"),
    [
        (OFFLINE, True),
        ("error: Failed to fetch: `https://x/`\n      cause: dns error", True),
        ("cause: HTTP status server error (503 Service Unavailable) for url (https://x/)", True),
        ("hint: Packages were unavailable because the network was disabled.", True),
        ("cause: HTTP status client error (404 Not Found) for url (https://x/)", False),
        ("error: No solution found when resolving dependencies", False),
        (f"cause: Call to `build_wheel` failed\n{13 * ' '}[stderr]\n{13 * ' '}Connection refused", False),
    ],
)
def test_a_network_failure_is_recognised(said: str, failed: bool) -> None:
    said = f"uv printed:\n    {said}"
    assert installer.is_network_failure(f"installing tinylaw==1.1 for Python 3.11 failed; {said}") is failed
    assert not installer.is_network_failure(f"noise.py raised an error; {said}")


def test_what_an_index_calls_a_version_is_a_version_or_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of versions become requirements and parts of file names."""
    said = f"Available versions: {'1' * 5000}, 1.0, ../../x, -r evil, 2.0 --index-url x, 1.0.post1, \x1b[31m, v3.0\n"
    said += "Unsupported versions: 0.9, ../y, 1.0\n"
    monkeypatch.setattr(subprocess, "run", lambda command, **_: CompletedProcess(command, 0, said, ""))
    found = installer.released("tinylaw")
    assert [str(version) for version in found.final] == ["1.0", "1.0.post1", "3.0"]
    assert found.left_out == {}
    assert found.unsupported == {Version("0.9")}


def test_an_index_that_could_not_be_read_is_reported_although_others_answered(index: Index) -> None:
    index.unread = ("https://example.org/simple/: 503 Server Error",)
    done = bisected(index, "gg", "-q")
    assert "releases may be missing: https://example.org/simple/: 503 Server Error" in done.stderr
    assert "releases may be missing: https://example.org/simple/: 503 Server Error." in prose(done)
    assert written()["unread"] == list(index.unread)


def test_a_release_for_only_one_python_of_the_audits_is_named_at_its_change(
    index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    second = "  - {<<: *noise, name: other, mechanism: {python: noise.py:release, requires: [tinylaw], "
    (tmp_path / "noise.yaml").write_text(CONFIG + second + 'python_version: "3.9"}}\n')

    def released(package: str, python_version: str | None = None) -> Releases:
        names = ["1.1", "1.3"] if python_version == "3.9" else ["1.1", "1.2", "1.3"]
        return Releases(final=tuple(map(Version, names)), left_out={}, unsupported=frozenset({Version("1.2.1")}))

    monkeypatch.setattr(audit_releases, "released", released)
    done = bisected(index, "ggb")
    why = "not for every Python of the audits"
    assert f"Not considered between the two: 1.2 ({why}), 1.2.1 ({why})." in prose(done)
    assert bisected(index, "ggb", "--from", "1.2.1").exit_code == 2
