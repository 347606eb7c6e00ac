"""`benchmarks/same_evidence.py` notices a change of evidence, and no change of names."""

from __future__ import annotations

import copy
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpaudit import AuditResult, Pair, audit, batched
from dpaudit.catalogue import BUILTIN
from dpaudit.learning.attack import attack_classes

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
FEW = "one run/"  # kinds that take no time


@pytest.fixture
def evidence(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("same_evidence")


@pytest.fixture
def digests(evidence: Any) -> Any:
    return importlib.import_module("evidence_kinds.digests")


@batched
def release(dataset: list[float], n: int, rng: Any) -> Any:
    return sum(dataset) + rng.normal(size=n)


def audited(seed: int, claim: str = "gaussian(mu=0.3)") -> AuditResult:
    options: dict[str, Any] = {"attacks": "median_clipped", "trials": 200, "confirm": "never"}
    return audit(release, claim, Pair([0], [1]), seed=seed, name="a name", **options)


def plain(result: AuditResult, folder: Path) -> Any:
    result.to_json(folder / "result.json")
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))


def renamed(values: Any) -> Any:
    """The same content under other keys, which stand in another order."""
    if isinstance(values, dict):
        return {f"new_{key}": renamed(value) for key, value in reversed(values.items())}
    return [renamed(value) for value in values] if isinstance(values, list) else values


def numbers(values: Any) -> Iterator[tuple[Any, Any]]:
    """Where each number stands: its container, and its key or index there."""
    for key, value in list(values.items() if isinstance(values, dict) else enumerate(values)):
        if isinstance(value, dict | list):
            yield from numbers(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield values, key


def test_a_reference_is_written_and_kept(evidence: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "reference.json"
    assert evidence.main(["--write", str(file), "--only", FEW]) == 0
    assert evidence.main(["--check", str(file), "--only", FEW]) == 0
    assert f"0 of {len(evidence.kinds(FEW))} kinds differ" in capsys.readouterr().out


def test_a_kind_that_differs_is_named_with_its_parts(
    evidence: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "reference.json"
    evidence.main(["--write", str(file), "--only", FEW])
    reference = json.loads(file.read_text(encoding="utf-8"))
    kinds = reference["kinds"]
    kinds["one run/violation"][1]["bounds"] = "00000000"
    del kinds["one run/too few"]
    kinds["one run/of earlier"] = kinds["one run/none found"]
    file.write_text(json.dumps(reference), encoding="utf-8")
    capsys.readouterr()
    assert evidence.main(["--check", str(file), "--only", FEW]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == ["one run/of earlier: is gone", "one run/too few: is new", "one run/violation: bounds differs"]
    assert len(said) == 4


def test_a_reference_of_other_versions_is_refused(
    evidence: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "reference.json"
    file.write_text(json.dumps({"holds for": {**evidence.holds_for(), "numpy": "1.0"}, "kinds": {}}), encoding="utf-8")
    assert evidence.main(["--check", str(file), "--only", FEW]) == 2
    said = capsys.readouterr().err
    assert "numpy 1.0" in said
    assert "old commit" in said


def test_nothing_is_written_if_a_kind_cannot_be_run(
    evidence: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(names: Any, folder: Path) -> Any:
        raise ImportError("no such name")

    family = importlib.import_module("evidence_kinds").Family
    monkeypatch.setattr(evidence, "FAMILIES", [family(names=("one run/broken",), run=broken)])
    assert evidence.main(["--write", str(tmp_path / "reference.json")]) == 2
    assert not (tmp_path / "reference.json").exists()
    assert 'one run/broken: "ImportError: no such name"' in capsys.readouterr().err


def test_another_seed_changes_the_digests_and_the_same_seed_none(digests: Any) -> None:
    one, same, other = (digests.digests(digests.parts(audited(seed))) for seed in (1, 1, 2))
    assert one == same
    changed = {part for part in one if one[part] != other[part]}
    assert changed >= {"p-value", "bounds", "curve", "witness", "history", "outputs", "summary", "file"}
    assert "verdict" not in changed


def test_another_claim_changes_the_verdict_but_not_the_first_outputs(digests: Any) -> None:
    one, other = (digests.parts(audited(1, claim)) for claim in ("gaussian(mu=0.3)", "gaussian(mu=3)"))
    assert one["verdict"] != other["verdict"]
    assert one["outputs"].split(",")[:2] == other["outputs"].split(",")[:2]


def test_other_names_of_keys_and_another_format_change_no_digest(digests: Any, tmp_path: Path) -> None:
    values = plain(audited(1), tmp_path)
    text = digests.written(digests.file_content(values))
    assert digests.written(digests.file_content(renamed(values))) == text
    assert digests.written(digests.file_content({**values, "format": "dpaudit-result/99"})) == text


def test_every_number_of_a_file_counts(digests: Any, tmp_path: Path) -> None:
    values = digests.file_content(plain(audited(1), tmp_path))
    text = digests.written(values)
    changed = copy.deepcopy(values)
    places = list(numbers(changed))
    assert len(places) > 300
    for container, key in places:
        before = container[key]
        container[key] = before * (1 + 1e-9) + (before == 0)
        assert digests.written(changed) != text
        container[key] = before
    assert digests.written(changed) == text


def test_the_order_of_a_list_counts(digests: Any) -> None:
    assert digests.written({"counts": [[3, 5]]}) != digests.written({"counts": [[5, 3]]})


def test_an_object_without_known_content_is_refused(digests: Any) -> None:
    with pytest.raises(TypeError, match="object has no text"):
        digests.written(object())


def test_every_builtin_mechanism_and_every_attack_is_audited(evidence: Any) -> None:
    kinds = set(evidence.kinds())
    assert {f"builtin/{name}/{method}" for name in BUILTIN for method in ("sequential", "fixed")} <= kinds
    known = {getattr(kind, "former_names", (name,))[0] for name, kind in attack_classes().items()}
    assert {f"attack/{name}" for name in known} <= kinds


def test_the_reference_has_all_kinds(evidence: Any) -> None:
    reference = json.loads(evidence.REFERENCE.read_text(encoding="utf-8"))
    assert list(reference["kinds"]) == evidence.kinds()
    assert len(reference["kinds"]) == len(set(evidence.kinds())) >= 40
    assert reference["holds for"].keys() == evidence.holds_for().keys()
