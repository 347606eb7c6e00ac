"""A replay confirms nothing if the result states other things than the config or the test that the replay runs."""

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
from dpaudit.cli.replay_file import plan_replay
from dpaudit.engine import provenance
from dpaudit.engine.provenance import changed_since, provenance_of
from dpaudit.engine.replay import contradictions
from dpaudit.engine.replay_agreement import pair_differences, same_claim
from dpaudit.engine.replay_outcome import Replay
from dpaudit.mechanisms.sources import Source
from dpaudit.pairs.brief import MAX_DATASET, brief
from dpaudit.result.values import PairRow
from dpaudit.testing.assertion import carry_out as assert_private_as
from dpaudit.testing.replaying import replay_in_test
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
trials: 200
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


def _about(**change: Any) -> Edit:
    return lambda values: values["environment"].update({name.replace("_", " "): new for name, new in change.items()})


def _row(**change: Any) -> Edit:
    return lambda values: values["pairs"][0].update(change)


@pytest.fixture(scope="module")
def honest(values: Any) -> Replay:
    """Return a replay of the honest result."""
    return plan_replay(_edited(values, lambda _: None)).run(trials=100, seed=1, quiet=True)


def test_an_honest_result_is_reproduced(honest: Replay) -> None:
    """Fails by chance < 1 in 10**6: the claim allows twice the effect, and the p-value must be above 0.001."""
    assert (honest.differences, honest.changes) == ((), ())
    assert honest.reproduced


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_in_config("gaussian(mu=1)", "from mechanism"), "claim is gaussian(mu=1) in the result, but gaussian(mu=0.5)"),
        (_in_config("gaussian(mu=1)", "from mechanism"), "author of the claim is the config in the result, but"),
        (_in_config("gaussian(mu=1)", "gaussian(mu=0.9)"), "but gaussian(mu=0.9) in the replay"),
        (_about(claim_stated_by="the mechanism's own accounting"), "in the result, but the config in the replay"),
        (_about(claim_stated_by=["the mechanism"]), "author of the claim is ['the mechanism'] in the result"),
        (_about(source="the manual"), "source is the manual in the result, but a paper in the replay"),
        (_about(mechanism="OpenDP"), "mechanism is OpenDP in the result, but"),
        (lambda values: values.update(name="OpenDP"), "name is OpenDP in the result, but replayed in the replay"),
        (_in_config("trials: 200", "trials: 200\nmethod: fixed"), "method is sequential in the result, but fixed"),
        (_in_config("d1:\n  - 1", "d1:\n  - 0.5"), "dataset d1 of the pair neighbours is [1] in the result, but [0.5]"),
        (_row(relation="replace_one"), "relation of the pair neighbours is replace_one in the result, but unspecified"),
        (lambda values: values["evidence"].update(planned=_PLANNED), "violation to detect is gaussian(mu=2) in the"),
        (_row(d0="[7]"), "dataset d0 of the pair neighbours is [7] in the result, but [0] in the replay"),
        (_row(difference="a record added"), "difference of the pair neighbours is a record added in the result"),
        (_row(label="others"), "the pair others is in the result, but not in the replay"),
        (_row(label="others"), "the result has no row for the pair neighbours of its witness"),
    ],
)
def test_a_replay_confirms_nothing_if_the_result_differs_from_its_config(
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
    assert "No conclusion: the replay ran the config, which differs from the statements of the result." in str(found)
    assert "Confirmed" not in str(found)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_in_config("attacks: median_clipped", "attacks: logistic"), "attacks is median_clipped in the result, but"),
        (_about(packages_of_the_mechanism={"opendp": "0.12"}), "packages that the replay did not use: opendp"),
    ],
)
def test_a_replay_with_other_attacks_or_packages_confirms_nothing(values: Any, edit: Edit, words: str) -> None:
    found = plan_replay(_edited(values, edit)).run(trials=100, seed=1, quiet=True)
    assert any(words in line for line in found.changes), found.changes
    assert not found.reproduced
    assert found.conclusive  # about the code that the replay ran


def _stating(result: AuditResult, **about: Any) -> AuditResult:
    return dataclasses.replace(result, provenance=dataclasses.replace(result.provenance, **about))


def test_a_package_without_recorded_version_or_hash_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(packages={"opendp": "0.12", "numpy": "2"}, hashes={"opendp": "sha256:a", "numpy": "sha256:b"})
    recorded = provenance_of(seed=1, mechanism="f", source=source)
    monkeypatch.setattr(provenance, "source_of", lambda mechanism: source)
    assert changed_since(recorded, None) == []
    (words,) = changed_since(dataclasses.replace(recorded, mechanism_packages={"numpy": "2"}), None)
    assert words == "the result records no version of opendp, so the replay may have run another version"
    (words,) = changed_since(dataclasses.replace(recorded, mechanism_hashes={"opendp": "sha256:a"}), None)
    assert words == "the result records no hash of numpy, so the replay may have run other content"


@batched
def _noisy(dataset: list[float], n: int, rng: np.random.Generator) -> Any:
    return rng.normal(len(dataset), 1.0, n)


def test_a_replay_in_python_compares_the_pair() -> None:
    pair = Pair([0], [0, 1], "add_remove", "one more")
    result = audit(_noisy, GaussianDP(1.0), pair, attacks="median_clipped", trials=100, seed=1)
    other = Pair([0], [0, 2], "add_remove", "one more")
    found = replay(result, _noisy, other, attacks="median_clipped", trials=100, seed=2)
    assert found.changes == ("the dataset d1 of the pair one more is [0, 1] in the result, but [0, 2] in the replay",)
    assert not found.reproduced


_ROW = PairRow(label="objects", relation="unspecified", d0="[0]", d1="[1]", trials=10, log_e=0.0)


class _Records:
    """A dataset whose text holds its address."""


def test_texts_that_differ_between_processes_are_no_difference() -> None:
    first, second = _Records(), _Records()
    pair = Pair((first, 0), (first, 1), label="objects")
    result = audit(_noisy, GaussianDP(1.0), pair, trials=100, seed=1, attacks="median_clipped")
    assert pair_differences(result, Pair((second, 0), (second, 1), label="objects")) == []
    assert len(pair_differences(result, Pair((second, 2), (second, 1), label="objects"))) == 1
    row = dataclasses.replace(result.pairs[0], d0="({'b', 'a'}, 0)")
    with_set = Pair(({"a", "b"}, 0), (first, 1), label="objects")
    assert pair_differences(dataclasses.replace(result, pairs=(row,)), with_set) == []


@pytest.mark.parametrize(
    ("audited", "replayed"),
    [
        (np.array([5.0]), np.array([0.5])),
        (np.array([-1.0]), np.array([1.0])),
        (np.array([0, 1]), np.array([1, 0])),
        (np.array([0, 0, 0, 2.5]), np.array([0, 0, 0, -5.2])),
        ({(1, 2), (3, 4)}, {(1, 4), (3, 2)}),
        ([{1}, 0], [{0}, 1]),
        ({"first": {0}, "second": 1}, {"second": 1, "first": {0}}),
        ((_Records(), "a" * 9000), (_Records(), "b" * 9000)),
    ],
)
def test_a_replay_compares_signs_points_and_order_in_the_texts_of_objects(
    values: Any, audited: Any, replayed: Any
) -> None:
    row = dataclasses.replace(_ROW, d0=brief(audited, MAX_DATASET), d1="[1]")
    result = dataclasses.replace(_edited(values, lambda _: None), pairs=(row,))
    assert pair_differences(result, Pair(audited, [1], label="objects")) == []
    (words,) = pair_differences(result, Pair(replayed, [1], label="objects"))
    assert words.startswith("the dataset d0 of the pair objects is ")
    assert ("only their beginnings were compared" in words) is row.d0.endswith("…")


def test_long_texts_that_differ_in_addresses_are_no_difference(values: Any) -> None:
    text = brief((_Records(), "a" * 9000), MAX_DATASET).replace(" at 0x", " at 0x7")
    row = dataclasses.replace(_ROW, d0=f"{text[: MAX_DATASET - 1]}…")
    result = dataclasses.replace(_edited(values, lambda _: None), pairs=(row,))
    assert pair_differences(result, Pair((_Records(), "a" * 9000), [1], label="objects")) == []


def test_rounding_errors_of_accountants_are_no_other_claim() -> None:
    assert same_claim(parse_claim("approximate(epsilon=1, delta=1e-5)"), parse_claim("(1.0000000000001, 1e-5)"))
    assert not same_claim(parse_claim("(1, 1e-5)"), parse_claim("(1, 1.001e-5)"))
    assert not same_claim(parse_claim("pure(epsilon=1)"), parse_claim("gaussian(mu=1)"))


def test_a_command_is_no_surer_than_each_of_its_audits(values: Any) -> None:
    result = _edited(values, lambda _: None)
    assert contradictions(_stating(result, command_confidence=0.95)) == []
    (words,) = contradictions(_stating(result, command_confidence=0.9999))
    assert words == "its verdict holds at confidence 0.95, but all verdicts of its command together at 0.9999"


def test_a_result_of_a_test_may_not_show_a_config(values: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_it.py").touch()
    with pytest.raises(ValueError, match="names both a test and a config"):
        plan_replay(_edited(values, _about(test="test_it.py::test_it")))


def test_a_replay_in_a_test_compares_the_claim_of_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs without pytest, and its assertion has the claim mu=2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_it.py").touch()
    node, pair = "test_it.py::test_it", Pair([0], [0, 1])
    result = audit(_noisy, GaussianDP(1.0), pair, attacks="median_clipped", trials=100, seed=1, name="test_it")
    result = _stating(result, test=node)

    def run(_: object) -> None:
        allowance = Allowance(node=node, share=1e-3, settings=Settings())
        assert_private_as(allowance, _noisy, GaussianDP(2.0), pair, attacks="median_clipped", name="test_it")

    monkeypatch.setattr(pytest, "main", run)
    found = replay_in_test(result, trials=100, extend=False, seed=2, jobs=1)
    assert found.differences == ("the claim is gaussian(mu=1) in the result, but gaussian(mu=2) in the replay",)
    assert not found.conclusive
    assert "the result differs from its test: the claim is" in str(found)


def test_a_replay_in_a_test_compares_the_violation_to_detect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs without pytest, and its assertion should detect mu = 1.5, not mu = 3."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_it.py").touch()
    node, pair = "test_it.py::test_it", Pair([0], [0, 1])
    result = audit(
        _noisy, GaussianDP(1.0), pair, attacks="median_clipped", trials=100, seed=1, name="test_it", detect="mu=3"
    )
    result = _stating(result, test=node)

    def run(_: object) -> None:
        allowance = Allowance(node=node, share=1e-3, settings=Settings())
        assert_private_as(
            allowance, _noisy, GaussianDP(1.0), pair, detect=1.5, attacks="median_clipped", name="test_it"
        )

    monkeypatch.setattr(pytest, "main", run)
    found = replay_in_test(result, trials=100, extend=False, seed=2, jobs=1)
    words = "the violation to detect is gaussian(mu=3) in the result, but gaussian(mu=1.25) in the replay"
    assert found.differences == (words,)
    assert not found.conclusive
