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


def test_a_kind_that_differs_is_named_with_its_parts(
    evidence: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "reference.json"
    assert evidence.main(["--write", str(file), "--only", FEW]) == 0
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


def test_another_seed_changes_the_digests_and_the_same_seed_none(digests: Any) -> None:
    one, same, other = (digests.digests(digests.parts(audited(seed))) for seed in (1, 1, 2))
    assert one == same
    changed = {part for part in one if one[part] != other[part]}
    assert changed >= {"p-value", "bounds", "curve", "witness", "history", "outputs", "summary", "file"}
    assert "verdict" not in changed


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
