"""Replays: unchanged results reproduce, edited ones do not, and what differs from the audit is named."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from dpaudit import AuditResult, GaussianDP, Pair, audit, batched, replay
from dpaudit.claims import parse_claim
from dpaudit.cli import replay_file
from dpaudit.cli.app import app
from dpaudit.cli.replay_file import plan_replay, replay_in_test
from dpaudit.engine.replay_outcome import Replay, same_claim
from dpaudit.inference.fixed.exact_binomial import p_value
from dpaudit.result.confirmation import ONE_SEQUENCE
from dpaudit.running import fresh_process
from dpaudit.testing import assert_private, session
from dpaudit.testing.session import Allowance, Settings

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
    """Fails by chance < 1 in 10**6: 300 runs show the violation, and there are 1,000.

    By the union bound, one of two replays confirms a false alarm with probability at most `CONFIRMED`.
    """
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


Edit = Callable[[dict[str, Any]], object]
_PLANNED = {"violations": ["gaussian(mu=2)"], "confidence": 0.95}
_PLAIN = """
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
    folder = tmp_path_factory.mktemp("audited")
    (folder / "audit.yaml").write_text(_PLAIN)
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
