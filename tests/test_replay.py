"""Replays of results: unchanged results reproduce, and edited results do not."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from dpaudit import AuditResult, GaussianDP, Pair, audit, batched, replay
from dpaudit.inference.fixed.exact_binomial import p_value
from dpaudit.result.confirmation import ONE_SEQUENCE

PAIR = Pair([0], [1], label="one record")
FAST: dict[str, Any] = {"attacks": "median_clipped"}  # these tests are about counts and not about learning
NEVER: dict[str, Any] = {"confidence": 0.95, "confirm": "never"}


@batched
def noisy(dataset: list[float], n: int, rng: np.random.Generator) -> Any:
    return rng.normal(dataset[0], 1.0, n)


@pytest.fixture(scope="module", params=["sequential", "fixed"])
def violation(request: pytest.FixtureRequest) -> AuditResult:
    return audit(noisy, GaussianDP(0.5), PAIR, **FAST, trials=800, method=request.param, seed=3, **NEVER)


def test_a_violation_shows_again(violation: AuditResult) -> None:
    """Fails by chance < 1 in 10**6: 300 runs show the violation, and there are 1,000."""
    found = replay(violation, noisy, [Pair([0], [0.1]), PAIR], **FAST, trials=1000, seed=4)
    assert found.refuted
    assert found.reproduced
    counts = found.counts
    assert (counts.n0, counts.n1) == (1000, 1000)
    y = counts.n1 - counts.false_negatives
    exact = p_value(GaussianDP(0.5), counts.false_positives, 1000, y, 1000)
    assert found.p_value == pytest.approx(2 * exact * (1 + ONE_SEQUENCE), rel=1e-12)
    assert found.seed == 4
    assert "Confirmed: fresh runs refute the claim again" in str(found)


@pytest.mark.parametrize(
    ("mu", "conclusive", "words"),
    [
        (1.0, True, "Fresh runs refute the claim, but the replay may have run other code than the audit"),
        (0.0, False, "Not confirmed: fresh runs do not refute the claim, but the replay may have run other code"),
    ],
)
def test_a_replay_of_changed_code_confirms_nothing(
    violation: AuditResult, mu: float, conclusive: bool, words: str
) -> None:
    """Fails by chance < 1 in 10**6: 300 of 1,000 runs suffice, or a true claim is tested at 0.001, seeded."""

    @batched
    def mechanism(dataset: list[float], n: int, rng: np.random.Generator) -> Any:
        return rng.normal(mu * dataset[0], 1.0, n)

    found = replay(violation, mechanism, PAIR, **FAST, trials=1000, seed=4)
    assert "code or datasets have changed since the audit: content of the mechanism (sha256 " in found.changes[-1]
    assert not found.reproduced
    assert found.conclusive is conclusive
    assert words in str(found)
    assert "Confirmed:" not in str(found)


def test_no_violation_is_replayed_too() -> None:
    result = audit(noisy, GaussianDP(1.0), PAIR, **FAST, trials=150, seed=0, confidence=0.95)
    assert not result.violated
    found = replay(result, noisy, PAIR, **FAST, trials=150, seed=0)
    assert found.reproduced
    assert not dataclasses.replace(found, p_value=0.0).reproduced  # the result found no violation, but fresh runs do


def test_what_cannot_be_replayed_is_reported(violation: AuditResult) -> None:
    with pytest.raises(ValueError, match=r"pair one record, which is not among the given pairs: \[0\] \| \[2\]"):
        replay(violation, noisy, Pair([0], [2]), seed=0)
    with pytest.raises(ValueError, match="trials must be at least 1"):
        replay(violation, noisy, PAIR, trials=0, seed=0)
    with pytest.raises(ValueError, match="has no witness that could be replayed"):
        replay(dataclasses.replace(violation, witness=None), noisy, PAIR, seed=0)


def test_runs_that_depend_on_each_other_confirm_nothing(violation: AuditResult) -> None:
    cycle = batched(lambda dataset, n, rng: (np.arange(n) % 7) / 7 + 3.0 * dataset[0])
    found = replay(violation, cycle, PAIR, **FAST, trials=200, seed=0)
    assert found.p_value == 1.0
    assert not found.reproduced
    assert found.warnings


# --- the command

Command = Callable[..., Result]

_CONFIG = """
name: replayed
seed: 0
confidence: 0.95
claim: pure(epsilon=1)
mechanism: {python: "own.py:lies", params: {epsilon: 3}}
pairs: [{d0: [0], d1: [1]}]
trials: 1000
attacks: threshold
"""
_OWN = """
import math
def lies(epsilon):
    def mechanism(dataset, rng):
        return dataset[0] ^ int(rng.random() < 1 / (1 + math.exp(epsilon)))
    return mechanism
"""


def test_a_result_file_is_replayed_where_its_config_was(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "audit.yaml").write_text(_CONFIG)
    (tmp_path / "a" / "own.py").write_text(_OWN)
    assert command("run", "a", "-o", "out", "--no-pdf", "-q", "--confirm", "never").exit_code == 1
    done = command("replay", "out/replayed.json", "--trials", "100")
    assert done.exit_code == 1, done.stderr
    assert "Confirmed: fresh runs refute the claim again" in done.stdout
    assert "region: output in {1}" in done.stdout
    (tmp_path / "a").rename(tmp_path / "b")
    done = command("replay", "out/replayed.json")
    assert done.exit_code == 2
    assert f"the folder of the audit's config, {tmp_path / 'a'}, does not exist" in done.stderr
    assert "give the config's folder with --folder" in done.stderr
    assert command("replay", "out/replayed.json", "--folder", "b", "--trials", "100").exit_code == 1
    done = command("replay", "out/replayed.json", "--folder", "b", "--no-code")
    assert done.exit_code == 2
    assert "--no-code refuses it" in done.stderr
    result = json.loads((tmp_path / "out" / "replayed.json").read_text())
    (tmp_path / "edited.json").write_text(json.dumps(result | {"verdict": "inconclusive"}))
    done = command("replay", "edited.json", "--folder", "b", "--trials", "100")
    assert done.exit_code == 2
    assert "its verdict is 'inconclusive', but its counts give a p-value of" in done.stderr


def test_results_without_a_config_say_so(command: Command, tmp_path: Path) -> None:
    audit(noisy, GaussianDP(0.5), PAIR, **FAST, trials=50, seed=0, **NEVER).to_json(tmp_path / "r.json")
    done = command("replay", "r.json")
    assert done.exit_code == 2
    assert "Call dpaudit.replay(result, mechanism, pairs) instead" in done.stderr
    (tmp_path / "r.json").write_text("{}")
    done = command("replay", "r.json")
    assert done.exit_code == 2
    assert "r.json is not a complete result of dpaudit" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_replay_from_another_folder_runs_the_audited_code_and_says_if_it_has_changed(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another `own.py` in the current folder was once run instead."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    Path("audit.yaml").write_text(_CONFIG)
    Path("own.py").write_text(_OWN)
    assert command("run", "audit.yaml", "-o", "../out", "--no-pdf", "-q", "--confirm", "never").exit_code == 1
    reported = json.loads((tmp_path / "out" / "replayed.json").read_text())["environment"]["file of the mechanism"]
    assert reported["path"] == str(tmp_path / "a" / "own.py")
    assert reported["sha256"] == hashlib.sha256(_OWN.encode()).hexdigest()
    monkeypatch.chdir(tmp_path / "b")
    Path("own.py").write_text("def lies(epsilon):\n    return lambda dataset, rng: float(rng.normal())\n")
    done = command("replay", "../out/replayed.json", "--trials", "100")
    assert done.exit_code == 1, done.stderr
    assert "changed since" not in done.stdout
    (tmp_path / "a" / "own.py").write_text(f"{_OWN}\n# edited\n")
    done = command("replay", "../out/replayed.json", "--trials", "100")
    assert "code or datasets have changed since the audit: file own.py (sha256 " in done.stdout
    assert "Confirmed" not in done.stdout
    assert "Fresh runs refute the claim, but the replay may have run other code than the audit" in done.stdout
    assert done.exit_code == 1  # the present code violates the claim


def test_a_replay_of_a_fixed_audit_with_the_audits_own_seed_is_refused() -> None:
    """The replay would count the runs of the audit again as fresh runs.  The seed decides."""
    result = audit(noisy, GaussianDP(0.5), PAIR, **FAST, trials=200, method="fixed", seed=3, **NEVER)
    with pytest.raises(ValueError, match="seed 3 is the seed of the audit"):
        replay(result, noisy, PAIR, trials=100, seed=3)
