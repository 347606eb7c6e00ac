"""A dry run of a replay names every package, reads no device, and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Command = Callable[..., Result]
CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism: {builtin: gaussian, params: {sigma: 1.5}}
pairs: [{d0: [0], d1: [1]}]
attacks: median_clipped
trials: 40
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return tmp_path / "new cache"


def _result(folder: Path, command: Command, requires: list[str], packages: dict[str, str]) -> str:
    """Write a stranger's result with these requirements and packages, and invented hashes."""
    (folder / "c.yaml").write_text(CONFIG)
    assert command("run", "c.yaml", "-o", "out", "--no-pdf", "-q").exit_code == 0
    file = folder / "out" / "noise.json"
    values = json.loads(file.read_text())
    about = values["environment"]
    about["audit"] = about["audit"].replace("builtin: gaussian", f"python: m.py:f\n  requires: {json.dumps(requires)}")
    about["packages of the mechanism"] = packages
    about["hashes of the mechanism's packages"] = dict.fromkeys(packages, f"sha256:{64 * 'a'}")
    file.write_text(json.dumps(values))
    return str(file)


def test_a_dry_run_names_every_package_that_a_replay_installs(tmp_path: Path, command: Command, cache: Path) -> None:
    file = _result(tmp_path, command, ["numpy"], {"numpy": "1.26.4", "evil-package": "6.6.6"})
    done = command("replay", file, "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert "in an environment with numpy, exactly these: evil-package==6.6.6, numpy==1.26.4, which" in done.stdout
    assert not cache.exists()


@pytest.mark.parametrize("packages", [{"numpy": "1.26.4"}, {"evil-package": "6.6.6"}])
def test_packages_that_do_not_meet_the_requirements_are_not_installed(
    tmp_path: Path, command: Command, packages: dict[str, str]
) -> None:
    from dpaudit import AuditResult
    from dpaudit.cli.replay_file import plan_replay

    planned = plan_replay(AuditResult.from_json(_result(tmp_path, command, ["numpy>=2"], packages)))
    assert planned.audit is not None
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
    tmp_path: Path, command: Command, cache: Path, path: str, reason: str
) -> None:
    file = _result(tmp_path, command, [f"x @ file://{path}"], {"x": "1.0"})
    refusal = command("replay", file, "--dry-run")
    assert refusal.exit_code == 2
    assert reason in refusal.stderr
    assert "the mechanism failed to run" not in refusal.stderr
