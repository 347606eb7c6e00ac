"""A replay compares the claim, the code and the datasets of a result with what the replay runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dpaudit import AuditResult, GaussianDP, Pair, audit, batched, replay
from dpaudit.claims import parse_claim
from dpaudit.cli import replay_file
from dpaudit.cli.app import app
from dpaudit.cli.replay_file import plan_replay, replay_in_test
from dpaudit.engine.replay_outcome import Replay, same_claim
from dpaudit.running import fresh_process
from dpaudit.testing import assert_private, session
from dpaudit.testing.session import Allowance, Settings

Edit = Callable[[dict[str, Any]], object]
_PLANNED = {"violations": ["gaussian(mu=2)"], "confidence": 0.95}
_CONFIG = """
name: replayed
seed: 0
confidence: 0.95
source: a paper
claim: gaussian(mu=1)
mechanism: {builtin: gaussian, params: {sigma: 2}}
pairs: [{d0: [0], d1: [1], label: neighbours}]
attacks: median_clipped
trials: 60
"""


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the values of an honest result of the command."""
    folder = tmp_path_factory.mktemp("audited")
    (folder / "audit.yaml").write_text(_CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(app, ["run", "audit.yaml", "-o", "out", "--no-pdf", "-q"], catch_exceptions=False)
    assert done.exit_code == 0
    return json.loads((folder / "out" / "replayed.json").read_text())


def _edited(values: Any, edit: Edit) -> AuditResult:
    copy = json.loads(json.dumps(values))
    edit(copy)
    return AuditResult.from_dict(copy)


def _in_config(old: str, new: str) -> Edit:
    def edit(values: dict[str, Any]) -> None:
        text = values["environment"]["audit"]
        assert old in text
        values["environment"]["audit"] = text.replace(old, new)

    return edit


@pytest.fixture(scope="module")
def honest(values: Any) -> Replay:
    """Return a replay of the honest result, whose fresh runs are made in this process."""

    def here(runs0: Any, runs1: Any, since: float) -> Any:
        return fresh_process._made((runs0, runs1), since, lambda reads: None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fresh_process, "_in_a_new_process", here)
        return plan_replay(_edited(values, lambda _: None)).run(trials=40, seed=1, quiet=True)


def test_an_honest_result_is_reproduced(honest: Replay) -> None:
    """Fails by chance < 1 in 10**6: the claim allows twice the effect, and the p-value must be above 0.001."""
    assert (honest.differences, honest.changes) == ((), ())
    assert honest.reproduced


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_in_config("gaussian(mu=1)", "from mechanism"), "claim is gaussian(mu=1) in the result, but gaussian(mu=0.5)"),
        (_in_config("gaussian(mu=1)", "gaussian(mu=0.9)"), "but gaussian(mu=0.9) in the replay"),
        (lambda values: values["evidence"].update(planned=_PLANNED), "violation to detect is gaussian(mu=2) in the"),
    ],
)
def test_a_replay_concludes_nothing_if_the_config_states_another_claim(
    values: Any, honest: Replay, monkeypatch: pytest.MonkeyPatch, edit: Edit, words: str
) -> None:
    """The mechanism does not run again, because the differences do not depend on its outputs."""
    result = _edited(values, edit)
    monkeypatch.setattr(replay_file, "replay", lambda *_, **__: dataclasses.replace(honest, result=result))
    found = plan_replay(result).run(quiet=True)
    assert any(words in line for line in found.differences), found.differences
    assert not found.conclusive
    assert not found.reproduced
    assert f"the result differs from its config: {found.differences[0]}" in str(found)
    assert "No conclusion: the replay ran the config, whose claim differs from that of the result." in str(found)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_in_config("attacks: median_clipped", "attacks: logistic"), "attacks is median_clipped in the result, but"),
        (_in_config("sigma: 2", "sigma: 3"), "have changed since the audit: content of the mechanism (sha256 "),
        (_in_config("d1:\n  - 1", "d1:\n  - 0.5"), "have changed since the audit: d1 (sha256 "),
        (_in_config("label: neighbours", "label: neighbours\n  relation: replace_one"), "audit: relation (unspecified"),
        (lambda values: values["environment"].pop("identity"), "does not record the code and the datasets"),
    ],
)
def test_a_replay_with_other_attacks_code_or_datasets_says_so_and_confirms_nothing(
    values: Any, edit: Edit, words: str
) -> None:
    found = plan_replay(_edited(values, edit)).run(trials=40, seed=1, quiet=True)
    assert any(words in line for line in found.changes), found.changes
    assert not found.reproduced
    assert found.conclusive  # about the code that the replay ran


def test_rounding_errors_of_accountants_are_no_other_claim() -> None:
    assert same_claim(parse_claim("approximate(epsilon=1, delta=1e-5)"), parse_claim("(1.0000000000001, 1e-5)"))
    assert not same_claim(parse_claim("(1, 1e-5)"), parse_claim("(1, 1.001e-5)"))
    assert not same_claim(parse_claim("pure(epsilon=1)"), parse_claim("gaussian(mu=1)"))


@batched
def _noisy(dataset: list[float], n: int, rng: np.random.Generator) -> Any:
    return rng.normal(len(dataset), 1.0, n)


def test_a_replay_in_python_compares_the_pair() -> None:
    pair = Pair([0], [0, 1], "add_remove", "one more")
    result = audit(_noisy, GaussianDP(1.0), pair, attacks="median_clipped", trials=40, seed=1)
    assert replay(result, _noisy, pair, attacks="median_clipped", trials=40, seed=2).changes == ()
    other = Pair([0], [0, 2], "add_remove", "one more")
    (words,) = replay(result, _noisy, other, attacks="median_clipped", trials=40, seed=2).changes
    assert words.startswith("code or datasets have changed since the audit: d1 (sha256 ")


def test_a_replay_in_a_test_compares_the_claim_and_the_violation_to_detect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test runs without pytest, and its assertion has the claim mu=2 and should detect mu = 2.5, not mu = 3."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_it.py").touch()
    node, pair = "test_it.py::test_it", Pair([0], [0, 1])
    result = audit(_noisy, GaussianDP(1.0), pair, attacks="median_clipped", trials=60, seed=1, detect="mu=3")
    result = dataclasses.replace(result, provenance=dataclasses.replace(result.provenance, test=node))

    def run(_: object) -> None:
        monkeypatch.setattr(session, "current", Allowance(node=node, share=1e-3, settings=Settings()))
        assert_private(_noisy, GaussianDP(2.0), pair, detect=2.5, attacks="median_clipped", name="test_it")

    monkeypatch.setattr(pytest, "main", run)
    found = replay_in_test(result, trials=60, extend=False, seed=2, jobs=1)
    claim, violation = found.differences
    assert claim == "the claim is gaussian(mu=1) in the result, but gaussian(mu=2) in the replay"
    assert violation.startswith("the violation to detect is gaussian(mu=3) in the result, but gaussian(mu=")
    assert not found.conclusive
    assert "the result differs from its test: the claim is" in str(found)
