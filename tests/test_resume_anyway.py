"""A store of another audit is continued only on request, and each later result states the differences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from dpaudit import AuditResult

from .stores import refused, stored

CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism: {builtin: gaussian, params: {sigma: 1.0}}
pairs: [{d0: [0], d1: [1]}]
attacks: median_clipped
trials: 60
seed: 0
"""


def steady(dataset: Any, rng: Any) -> float:
    return float(dataset[0] + rng.normal(0, 1.5))


def loud(dataset: Any, rng: Any) -> float:
    return float(dataset[0] + rng.normal(0, 2.5))


def told(result: AuditResult) -> list[str]:
    return [str(warning) for warning in result.warnings if "resume=anyway" in str(warning)]


def test_anyway_continues_with_the_runs_of_the_store_and_lists_what_differs(tmp_path: Path) -> None:
    stored(steady, tmp_path / "s")
    refused(loud, tmp_path / "s", "mechanism", "content of the mechanism")
    mixed = stored(loud, tmp_path / "s", trials=90, resume="anyway")
    assert mixed.trials_used == 90
    assert any(str(warning).startswith("60 of the 90 runs per dataset come from a store") for warning in mixed.warnings)
    (words,) = told(mixed)
    assert "since trial 60, these parts differ: mechanism (steady before, loud now), content of the mech" in words
    assert "the guarantee does not cover the mixture" in words


def test_each_later_audit_of_a_mixed_store_repeats_the_differences(tmp_path: Path) -> None:
    stored(steady, tmp_path / "s")
    mixed = stored(loud, tmp_path / "s", trials=90, resume="anyway")
    again = stored(loud, tmp_path / "s", trials=120)  # the store now belongs to this mechanism
    assert told(again) == told(mixed)
    refused(steady, tmp_path / "s", "mechanism")
    both = stored(steady, tmp_path / "s", trials=150, resume="anyway")
    assert len(told(both)) == 2


def test_the_same_audit_has_no_warning_with_anyway(tmp_path: Path) -> None:
    stored(steady, tmp_path / "s")
    assert told(stored(steady, tmp_path / "s", trials=90, resume="anyway")) == []


def test_a_store_that_was_continued_with_another_seed_has_that_seed(tmp_path: Path) -> None:
    stored(steady, tmp_path / "s")
    stored(steady, tmp_path / "s", seed=5, resume="anyway")
    again = stored(steady, tmp_path / "s", seed=None)
    assert again.provenance.seed == 5
    assert "seed (0 before, 5 now)" in told(again)[0]


def test_outputs_with_and_without_times_are_never_mixed(tmp_path: Path) -> None:
    stored(steady, tmp_path / "s")
    with pytest.raises(ValueError, match=r"resume=anyway cannot continue the store.*observe_time"):
        stored(steady, tmp_path / "s", observe_time=True, resume="anyway")
    assert told(stored(steady, tmp_path / "s")) == []


def test_the_command_line_continues_only_with_the_value_anyway(command: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    assert command("run", "c.yaml", "-o", "out", "--resume", "--no-pdf").exit_code == 0
    (tmp_path / "c.yaml").write_text(CONFIG.replace("1.0", "1.1"))
    assert command("run", "c.yaml", "-o", "out", "--resume", "--no-pdf").exit_code == 3
    done = command("run", "c.yaml", "-o", "out", "--resume=anyway", "--no-pdf")
    assert done.exit_code == 0
    assert "these parts differ: content of the mechanism" in done.stderr
    saved = json.loads((tmp_path / "out" / "noise.json").read_text())
    assert any("these parts differ: content of the mechanism" in warning for warning in saved["warnings"])
    report = command("report", "out/noise.json")
    assert "these parts differ: content of the mechanism" in " ".join(report.stdout.split())


@pytest.mark.parametrize("word", ["--resume=foo", "--resume=", "--resume=Anyway", "--resume=same"])
@pytest.mark.parametrize("name", ["run", "compare"])
def test_another_value_of_resume_is_wrong_usage(
    command: Callable[..., Result], tmp_path: Path, name: str, word: str
) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    done = command(name, "c.yaml", word, "-o", "out")
    assert done.exit_code == 2
    assert "--resume=anyway, which" in " ".join(done.stderr.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


def test_resume_never_takes_the_next_word_as_its_value(command: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "anyway").mkdir()
    (tmp_path / "anyway" / "c.yaml").write_text(CONFIG)
    assert command("run", "--resume", "anyway", "-o", "out", "--no-pdf").exit_code == 0
    assert (tmp_path / "out" / "noise.trials").exists()
