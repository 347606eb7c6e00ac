"""The programs of `benchmarks/` do what they say, and pages show their results: calibration, costs, same evidence."""

import copy
import dataclasses
import importlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dpaudit import AuditResult, Pair, audit, batched
from dpaudit.catalogue import BUILTIN
from dpaudit.learning.attack import attack_classes

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def calibration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    module, measure = importlib.import_module("calibration"), importlib.import_module("measure")
    marks = "".join(f"<!-- calibration, {name}: {end} -->\n" for name in ("versions", *module.PARTS) for end in ENDS)
    (tmp_path / "page.md").write_text(marks)
    monkeypatch.setattr(measure, "versions", lambda: VERSIONS)
    monkeypatch.setattr(measure, "newest", lambda: 0.0)
    monkeypatch.setattr(measure, "files_of", lambda case: (BENCHMARKS / "calibration.py",))
    monkeypatch.setattr(module, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results.json")
    return module


ENDS = ("begin", "end")
VERSIONS = {"dpaudit": "1.0", "code": "c0de", "python": "3.11", "numpy": "2.0", "scipy": "1.0", "scikit-learn": "1.0"}


def saved() -> tuple[Any, dict[str, Any], str]:
    results = json.loads((BENCHMARKS / "calibration.json").read_text(encoding="utf-8"))
    page = (BENCHMARKS / "calibration.md").read_text(encoding="utf-8")
    return importlib.import_module("calibration"), results, page


def test_the_page_holds_the_saved_results() -> None:
    """If this fails, run `python benchmarks/calibration.py --seeds 0 --write`, or restore the page."""
    module, results, text = saved()
    assert module.page_with(results, text) == text
    assert {row["part"] for row in results["rows"]} == {name for name, part in module.PARTS.items() if part.on_page}
    assert all(row["audits"] > 0 for row in results["rows"])
    with pytest.raises(ValueError, match="must contain '<!-- calibration, streams: begin -->'"):
        module.page_with(results, text.replace("<!-- calibration, streams: begin -->", ""))


def test_every_saved_row_can_be_measured_again() -> None:
    module, results, _ = saved()
    rows = {(table.name, case.cells): case for table in module.tables(None) for case in table.cases}
    for row in results["rows"]:
        limits = rows[row["part"], tuple(row["cells"])].limits
        assert {name: {"rate": limit.rate, "least": limit.least} for name, limit in limits.items()} == row["limits"]


EVENTS = ("refuted", "mu", "epsilon", "band", "inconclusive", "found", "false", "came true")  # of all parts


def rows_of(module: Any, name: str, made: list[tuple[str, int]], failing: set[int]) -> list[Any]:
    """Return a row of a part, whose audit records that it was made, and fails for some seeds."""
    cases, measure = importlib.import_module("calibration_cases"), importlib.import_module("measure")

    def audited(seed: int) -> dict[str, float]:
        if seed in failing:
            raise OSError("the machine is switched off")
        made.append((name, seed))
        return dict.fromkeys(EVENTS, float(seed == 1))

    cells = tuple(f"{heading} of {name}" for heading in module.PARTS[name].cells)
    return [cases.Row(cells=cells, measure=audited, limits={"refuted": measure.Limit(rate=0.05)}, seeds=4)]


def test_a_command_that_was_interrupted_makes_only_the_missing_audits(
    calibration: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[tuple[str, int]] = []
    failing = {2}
    parts = {name: partial(rows_of, calibration, name, made, failing) for name in calibration.PARTS}
    changed = {name: dataclasses.replace(part, rows=parts[name]) for name, part in calibration.PARTS.items()}
    monkeypatch.setattr(calibration, "PARTS", changed)
    command = ["--jobs", "1", "--store", str(tmp_path / "store.jsonl")]
    assert calibration.main([*command, "--only", "streams"]) == 1
    assert made == [("streams", 0), ("streams", 1)]
    assert "streams: stream of streams, length of streams: A REPETITION FAILED" in capsys.readouterr().out
    failing.clear()
    with (tmp_path / "store.jsonl").open("a") as file:
        file.write('{"key": "the last line was interru')
    assert calibration.main([*command, "--only", "streams", "--write"]) == 2
    assert made == [("streams", seed) for seed in range(4)]
    assert "6 rows have no outcome of the present code" in capsys.readouterr().err
    assert not (tmp_path / "results.json").exists()
    assert calibration.main([*command, "--seeds", "3", "--write"]) == 0
    assert made[4:] == [(name, seed) for name in parts if name != "streams" for seed in range(3)]
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| stream of streams | length of streams | 4 | at most 2 | 1 |" in text
    assert "They count 22 audits" in text
    made.clear()
    assert calibration.main([*command, "--seeds", "0", "--write"]) == 0
    assert (made, (tmp_path / "page.md").read_text(encoding="utf-8")) == ([], text)


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("benchmarks", "docs"):
        monkeypatch.syspath_prepend(str(ROOT / folder))


FEW = ("violation", "none found", "too few")


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
    options: dict[str, Any] = {"attacks": "median_clipped", "trials": 150, "confirm": "never"}
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
    evidence: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = audited(1)
    family = importlib.import_module("evidence_kinds").family
    monkeypatch.setattr(evidence, "FAMILIES", family("one run", dict.fromkeys(FEW, lambda folder: made)))
    file = tmp_path / "reference.json"
    assert evidence.main(["--write", str(file)]) == 0
    reference = json.loads(file.read_text(encoding="utf-8"))
    kinds = reference["kinds"]
    kinds["one run/violation"][1]["bounds"] = "00000000"
    del kinds["one run/too few"]
    kinds["one run/of earlier"] = kinds["one run/none found"]
    file.write_text(json.dumps(reference), encoding="utf-8")
    capsys.readouterr()
    assert evidence.main(["--check", str(file)]) == 1
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
    places = [place for i, place in enumerate(numbers(changed)) if isinstance(place[1], str) or i % 10 == 0]
    assert len(places) > 60
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
    of_sessions = {"session_law", "session_sums", "reported_law"}  # `tests/test_sessions.py` audits sessions
    assert {f"attack/{name}" for name in known - of_sessions} <= kinds


def test_the_reference_has_all_kinds(evidence: Any) -> None:
    reference = json.loads(evidence.REFERENCE.read_text(encoding="utf-8"))
    assert list(reference["kinds"]) == evidence.kinds()
    assert len(reference["kinds"]) == len(set(evidence.kinds())) >= 40
    assert reference["holds for"].keys() == evidence.holds_for().keys()
