"""Scripts of `dpaudit reproduce` that once described another dataset, another call or another event than the audit."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, Pair, PureDP, audit
from dpaudit.config.files import read_configs
from dpaudit.reproduce.calls import library_lines
from dpaudit.reproduce.script import MAX_LINES, script_of
from dpaudit.result.values import Condition, Counts, Interval, Region
from dpaudit.values import OUTPUT


@pytest.fixture(scope="module")
def found() -> AuditResult:
    """Return a violation.  The audit has a seed, so that it always finds the violation."""

    def released(dataset: list[int], rng: np.random.Generator) -> float:
        return dataset[0] + rng.laplace(0.0, 0.01)

    pair = Pair([0], [1], label="edge")
    return audit(released, PureDP(1.0), pair, attacks="median_clipped", seed=1, confirm="never")


def of_config(found: AuditResult, *, mechanism: str = "") -> AuditResult:
    mechanism = mechanism or "{builtin: laplace, params: {scale: 0.01}}"
    pairs = "[{d0: [0], d1: [1], label: edge}]"
    text = f"name: x\nclaim: pure(epsilon=1)\nmechanism: {mechanism}\npairs: {pairs}\n"
    return replace(found, provenance=replace(found.provenance, audit=text))


def test_the_script_holds_the_datasets_of_the_witness_even_if_another_pair_has_its_label() -> None:
    """The script held the first of the pairs, although the witness may belong to the second.  The audit has a seed."""

    def released(dataset: list[int], rng: np.random.Generator) -> float:
        return dataset[0] + rng.laplace(0.0, 0.01)

    pairs = [Pair([0], [0], label="edge"), Pair([0], [1], label="edge")]
    result = audit(released, PureDP(1.0), pairs, attacks="median_clipped", seed=1, confirm="never")
    for text in (script_of(result).text, script_of(of_config(result)).text):
        assert "D0 = [0]\nD1 = [1]\n" in text


def ran(text: str, capsys: pytest.CaptureFixture[str], *, runs: int = 50) -> list[str]:
    """Run a script with few runs, and return the lines that it prints."""
    text = re.sub(r"RUNS = \d+", f"RUNS = {runs}", text).replace("default_rng()", "default_rng(7)")
    exec(compile(text, "script", "exec"), {})
    return capsys.readouterr().out.splitlines()


def test_a_script_says_if_the_event_could_not_be_read_from_any_output(
    found: AuditResult, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a script said only that its runs do not refute the claim."""
    assert found.witness is not None
    part = ("{}[{}]", OUTPUT, "a")
    for condition in (
        Condition(feature=part, intervals=(Interval(low=3),)),
        Condition(feature=("{} is a whole number", part), negated=True),
    ):
        witness = replace(found.witness, described=Region(condition=condition))
        text = script_of(of_config(replace(found, witness=witness))).text
        assert len(text.splitlines()) <= MAX_LINES
        raised = "The condition of the event raised an exception on every run."
        assert ran(text, capsys)[1:] == [raised]
    assert ran(script_of(of_config(found)).text, capsys)[1:] == ["These runs refute the claim."]


def test_the_script_says_if_its_event_is_not_the_region_of_the_audit(found: AuditResult) -> None:
    """A description may agree with the region for 85 % of the outputs, and a region may move during the audit."""
    assert found.witness is not None
    region = Region(condition=Condition(intervals=(Interval(low=0.5),)))
    later, moving = replace(found.witness, counted="later"), replace(found.witness, counted="moving")
    for described, witness, exact in (
        (region, later, True),
        (region, moving, False),
        (replace(region, nearly=True), later, False),
    ):
        text = script_of(of_config(replace(found, witness=replace(witness, described=described)))).text
        assert (" in the event.\n" in text) is exact
        assert ("its region, which this event approximates.\n" in text) is not exact


def test_a_mechanism_gets_the_kind_of_generator_that_the_audit_passed(found: AuditResult) -> None:
    """An environment without numpy passes a `random.Random`, which has other methods than a generator of numpy."""
    result = of_config(found, mechanism="{python: 'a.py:f', requires: [opendp==0.14.1]}")
    for packages, random in (({"opendp": "0.14.1"}, True), ({"opendp": "0.14.1", "numpy": "2.0.0"}, False)):
        about = replace(result.provenance, mechanism_packages=packages)
        text = script_of(replace(result, provenance=about)).text
        assert ("rng = Random()" in text) is random
        assert ("rng = np.random.default_rng()" in text) is not random
    assert "Random()" not in script_of(of_config(found)).text


@pytest.mark.parametrize("violations", [5000, 5530])
def test_a_script_says_if_its_runs_may_be_too_few(found: AuditResult, violations: int) -> None:
    """Such a script hardly ever refutes the claim, and its reader believed that the audit was wrong."""
    assert found.witness is not None
    claim = PureDP(0.1)
    counts = Counts(false_positives=5000, n0=10000, false_negatives=10000 - violations, n1=10000)
    result = of_config(replace(found, claim=claim, witness=replace(found.witness, counts=counts)))
    script = script_of(result)
    words = f"{script.runs:,} runs may be too few to refute the claim"
    assert script.few.startswith(words)
    assert f"# {words}" in script.text
    assert not script_of(of_config(found)).few


def test_calls_of_opendp_have_tuples_and_nested_constructors_where_the_audit_had_them() -> None:
    """`dpaudit.libraries.inside.opendp` makes tuples of these lists, because OpenDP refuses lists."""
    space = {"input_domain": {"atom_domain": {"bounds": [0, 9]}}, "input_metric": {"absolute_distance": {"T": "i32"}}}
    call = library_lines("opendp", "make_geometric", {**space, "scale": 2.0, "bounds": [0, 10]})[-1]
    assert "atom_domain(bounds=(0, 9))" in call
    assert call.endswith("bounds=(0, 10))")
    noise = {"make_laplace": [{"atom_domain": {"T": "i32"}}, {"absolute_distance": {"T": "i32"}}, 2.0]}
    call = library_lines("opendp", "make_composition", [[noise, noise]])[-1]
    assert call.count("make_laplace(atom_domain(T='i32'), absolute_distance(T='i32'), 2.0)") == 2
    assert call.startswith("release = make_composition([")


GENERATOR = """\
class Leaks:
    def __init__(self, budget):
        self.budget = budget

    def fit(self, table, times=1):
        if len(table) < 5:
            raise ValueError("too few rows")
        self.top = times * float(max(table["age"]))

    def draw(self, rows):
        import pandas
        return pandas.DataFrame({"age": [self.top] * rows})
"""
GENERATOR_CONFIG = """\
name: x
claim: pure(epsilon=1)
mechanism:
  library: synthesizer
  call: leaks.py:Leaks
  arguments:
    make: {budget: 1.0}
    schema: {city: [Bonn, Ulm], age: [0, 100]}
    fit_arguments: {times: 2}
    sample: draw
    rows: 3
    most: 1
trials: 60
seed: 1
"""


@pytest.mark.parametrize("column", ["age", pytest.param("raised", marks=pytest.mark.slow)])
def test_a_script_of_a_generator_makes_fits_and_samples_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """The call `leaks.py:Leaks` is no Python name, and was refused.  Outputs are constant, so chance is absent."""
    (tmp_path / "leaks.py").write_text(GENERATOR.replace("< 5", "< 0") if column == "age" else GENERATOR)
    (tmp_path / "c.yaml").write_text(GENERATOR_CONFIG)
    (planned,) = read_configs([tmp_path / "c.yaml"])
    mechanism, claim = planned.load()
    result = audit(mechanism, claim, planned.pairs, attacks="plug_in_ratio", trials=60, seed=1, name="x")
    assert result.violated
    script = script_of(replace(result, provenance=replace(result.provenance, audit=planned.text)))
    assert (script.missing, script.module) == ((), "leaks")
    assert len(script.text.splitlines()) <= MAX_LINES
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "leaks", raising=False)
    namespace: dict[str, Any] = {}
    exec(script.text.replace(f"RUNS = {script.runs}", "RUNS = 50"), namespace)
    assert namespace["p"] <= 0.001
    release = namespace["release"]
    released = release([{"city": "Bonn", "age": 1}] * 5)
    assert released.to_dict("list") == {"age": [2.0] * 3}
    if column == "raised":
        assert str(namespace["outcome"]([{"city": "Bonn", "age": 1}])) == "too few rows"
