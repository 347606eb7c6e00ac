"""Scripts of `dpaudit reproduce`: they run without dpaudit, separate wrong from right mechanisms, and hold no code of
the result file.
"""

import ast
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from dpaudit import AuditResult, Pair, PureDP, audit
from dpaudit.cli.app import app
from dpaudit.reproduce.literals import Unwritable
from dpaudit.reproduce.script import MAX_LINES, as_markdown, script_of

Command = Callable[..., Result]

MECHANISMS = """\
SCALE = 0.1


def number(dataset, rng):
    return sum(dataset) + rng.laplace(0, SCALE)


class Vector:
    def __init__(self, times):
        self.times = times

    def sample(self, dataset, n, rng):
        return rng.laplace(0, self.times * SCALE, (n, len(dataset))) + dataset


def word(dataset, rng):
    return "yes" if (rng.random() < 0.5 + 0.04 / SCALE) == dataset[0] else "no"


def fails(dataset, rng):
    if dataset[0] and rng.random() < 0.08 / SCALE - 0.05:
        raise ValueError("negative size")
    return 1.0
"""
CONFIG = """\
audits:
  - {name: number, claim: pure(epsilon=1), mechanism: {python: "release.py:number"},
     pairs: [{d0: [0, 1], d1: [1, 1]}], attacks: median_clipped, seed: 1}
  - {name: vector, claim: gaussian(mu=1), mechanism: {python: "release.py:Vector", params: {times: 1}},
     pairs: [{d0: [0, 0, 0], d1: [0, 1, 0]}], attacks: logistic, seed: 1}
  - {name: word, claim: "approximate(epsilon=1, delta=1e-5)", mechanism: {python: "release.py:word"},
     pairs: [{d0: [true], d1: [false]}], attacks: plug_in_ratio, seed: 1}
  - {name: fails, claim: pure(epsilon=1), mechanism: {python: "release.py:fails"},
     pairs: [{d0: [0], d1: [1]}], attacks: plug_in_ratio, failures: outcome, seed: 1}
  - {name: noise, claim: gaussian(mu=1), mechanism: {builtin: gaussian, params: {sigma: 0.1}},
     pairs: [{d0: [0], d1: [1]}], attacks: median_clipped, seed: 1}
"""
NAMES = ("number", "vector", "word", "fails", "noise")
REFUTED = "These runs refute the claim."
NOT_REFUTED = "These runs do not refute the claim, which does not show that the claim is true."
DRIVER = """\
import runpy, sys
for script in sys.argv[1:]:
    sys.path.insert(0, script.rpartition("/")[0])
    sys.modules.pop("release", None)
    runpy.run_path(script)
    del sys.path[0]
assert "dpaudit" not in sys.modules
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with mechanisms and with results of their audits, which are violations."""
    folder = tmp_path_factory.mktemp("audited")
    (folder / "release.py").write_text(MECHANISMS)
    (folder / "c.yaml").write_text(CONFIG)
    done = CliRunner().invoke(
        app, ["run", str(folder / "c.yaml"), "--no-pdf", "-q", "--confirm", "never", "-o", str(folder)]
    )
    assert done.exit_code == 1, done.output
    return folder


def stored(folder: Path, name: str) -> AuditResult:
    return AuditResult.from_json(folder / f"{name}.json")


def test_scripts_separate_wrong_from_right_mechanisms_without_dpaudit(folder: Path, tmp_path: Path) -> None:
    """The same scripts run beside the audited file and beside one with enough noise.

    The runs have seeds.  Fails by chance < 1 in 10**6: the wrong mechanisms lose far more than they claim, and the
    right ones lose less than half of it.
    """
    good = tmp_path / "good"
    good.mkdir()
    (good / "release.py").write_text(MECHANISMS.replace("SCALE = 0.1", "SCALE = 4.0"))
    scripts = []
    for name in NAMES:
        text = re.sub(r"RUNS = \d+", "RUNS = 1000", script_of(stored(folder, name)).text)
        text = text.replace("default_rng()", "default_rng(7)")
        assert len(text.splitlines()) <= MAX_LINES
        for place in (folder, good):
            (place / f"script_{name}.py").write_text(text.replace("rng.normal(0.0, 0.1)", "rng.normal(0.0, 4.0)")
                                                     if place is good else text)  # fmt: skip
            scripts.append(str(place / f"script_{name}.py"))
    done = subprocess.run([sys.executable, "-c", DRIVER, *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1::2] == [REFUTED, NOT_REFUTED] * len(NAMES)
    assert all("p <= " in line for line in done.stdout.splitlines()[::2])


@pytest.mark.chance
def test_a_script_of_opendp_writes_out_the_constructors(
    tmp_path: Path, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """OpenDP cannot be seeded.  Fails by chance < 1 in 10**6: the noise has a scale of 0.5 or 20, for epsilon = 1."""
    pytest.importorskip("opendp")
    (tmp_path / "o.yaml").write_text(
        "name: odp\nclaim: pure(epsilon=1)\nconfidence: 0.9999999\nattacks: median_clipped\n"
        "mechanism:\n  library: opendp\n  call: make_laplace\n  arguments:\n    input_domain: {atom_domain: {T: i32}}\n"
        "    input_metric: {absolute_distance: {T: i32}}\n    scale: 0.5\n"
    )
    done = command("run", "o.yaml", "--no-pdf", "-q", "--confirm", "never")
    assert done.exit_code == 1, done.output
    done = command("reproduce", "dpaudit-results/odp.json", "-o", "script.py")
    assert done.exit_code == 0, done.output
    text = re.sub(r"RUNS = \d+", "RUNS = 1000", Path("script.py").read_text())
    assert "release = make_laplace(input_domain=atom_domain(T='i32'), input_metric=absolute_distance(T='i32')" in text
    Path("right.py").write_text(text.replace("scale=0.5", "scale=20.0"))
    Path("script.py").write_text(text)
    capsys.readouterr()
    for script in ("script.py", "right.py"):
        runpy.run_path(script)
    assert capsys.readouterr().out.splitlines()[1::2] == [REFUTED, NOT_REFUTED]


def test_the_command_writes_the_script_or_markdown(folder: Path, command: Command) -> None:
    assert command("reproduce", str(folder / "word.json"), "-o", "s.py").exit_code == 0
    text = Path("s.py").read_text()
    assert text == script_of(stored(folder, "word")).text
    assert text in command("reproduce", str(folder / "word.json")).stdout
    assert command("reproduce", str(folder / "word.json"), "--markdown", "-o", "s.md").exit_code == 0
    page = Path("s.md").read_text()
    assert f"```python\n{text}```\n" in page
    assert "is private" not in page
    assert "does not show that the claim is true" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("word.json", "-o", "s.txt"), "--output s.txt: the file is a Python script, so its name must end in .py"),
        (("word.json", "-o", "release.py"), "the script imports release.py, so it needs another name"),
    ],
)
def test_wrong_usage_is_explained(folder: Path, command: Command, arguments: tuple[str, ...], message: str) -> None:
    done = command("reproduce", str(folder / arguments[0]), *arguments[1:])
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""


def changed(result: AuditResult, **values: Any) -> AuditResult:
    about = {name: values.pop(name) for name in ("audit", "mechanism") if name in values}
    assert result.witness is not None
    pairs = values.pop("pairs", result.pairs)
    name = values.pop("name", result.name)
    return replace(
        result,
        name=name,
        pairs=pairs,
        witness=replace(result.witness, **values),
        provenance=replace(result.provenance, **about),
    )


HOSTILE = (
    'x\n__import__("os").system("touch hit")\n#',
    "x\r__import__('os').system('touch hit')\r#",
    '"""\n__import__("os").system("touch hit")\n"""',
    "\u2028__import__('os')\x1b[2J",
    "```\n<script>",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_a_strangers_result_cannot_add_code(folder: Path, text: str) -> None:
    """All code of the script is that of the same result with a harmless name; only comments and literals differ."""
    honest = stored(folder, "number")
    about = honest.provenance.audit
    assert about is not None
    row = replace(honest.pairs[0], d0=text, d1=text)
    datasets: Any = ([text], [{"tuple": [{"dict": [[text, [text]]]}]}])
    for hostile in (
        changed(honest, name=text),
        changed(honest, audit=None, mechanism=text, pairs=(row,), datasets=([], [{"array": [text], "dtype": text}])),
        changed(honest, datasets=datasets),
    ):
        script = script_of(hostile)
        for word in (script.text, as_markdown(hostile, script)):
            assert word.isascii()
            assert all(line.isprintable() for line in word.splitlines())
            assert sum(line.startswith("```") for line in word.splitlines()) == 2 * (word != script.text)
        names = {node.id for node in ast.walk(ast.parse(script.text)) if isinstance(node, ast.Name)}
        assert not {"__import__", "SystemExit"} & names
        assert script.text.startswith('"""Counts an event')
        assert not script.text.splitlines()[1].startswith("# coding")


@pytest.mark.parametrize("text", HOSTILE[::2])
def test_regions_of_a_strangers_result_cannot_add_code(folder: Path, text: str) -> None:
    values = json.loads((folder / "number.json").read_text())
    written = 0
    for described in hostile_regions(text):
        values["witness"]["described"]["condition"] = described
        try:
            script = script_of(AuditResult.from_dict(values))
        except Unwritable:
            continue
        written += 1
        calls = {ast.unparse(one.func) for one in ast.walk(ast.parse(script.text)) if isinstance(one, ast.Call)}
        assert "__import__" not in calls
        assert all(line.isascii() and line.isprintable() for line in script.text.splitlines())
    assert written >= 6


def hostile_regions(text: str) -> Iterator[Any]:
    output = ["output"]
    above = {"intervals": [{"low": 3}]}
    for label in (text, [text], ["{}", text], ["bytes {}", [text]], ["raised {}", [text]], ["array of {}", [text]]):
        yield {"listed": [label]}
        yield {"feature": ["{}[{}]", output, label], **above}
        yield {"feature": ["number of {} in {}", label, output], **above}
        yield {"feature": ["{} in {}", label, output]}
        for part in (output, ["type of {}", output], ["shape of {}", output]):
            yield {"feature": ["{} is {}", part, label]}
    for feature in ([text], ["length of {}", text], [f"{text}{{}}", output], [f"length of {{}}{text}", output]):
        yield {"feature": feature, **above}


@pytest.mark.parametrize(
    "values",
    [
        {"feature": "__import__('os')"},
        {"feature": ["length of {}", {"a": 1}]},
        {"listed": [{"a": 1}]},
        {"listed": 3},
        {"intervals": [{"low": "__import__('os')"}]},
        {"intervals": [[1, 2]]},
        {"missing": "__import__('os')"},
    ],
)
def test_a_condition_of_other_types_is_no_result(folder: Path, values: Any) -> None:
    stored = json.loads((folder / "number.json").read_text())
    stored["witness"]["described"]["condition"] = values
    with pytest.raises(ValueError, match="witness"):
        AuditResult.from_dict(stored)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("release.py:number", "release.py:number(1)", "the object of the mechanism must be a valid Python name"),
        ("release.py:number", "signal.py:number", "signal.py"),
        ("release.py:number", "release.py:number\n  params: {password: abc}", "looks like a secret"),
        ("release.py:number", "release.py:number\n  params: {url: 'https://u:***@h'}", "hides a parameter"),
    ],
)
def test_names_and_secrets_of_a_config_are_refused(folder: Path, old: str, new: str, message: str) -> None:
    honest = stored(folder, "number")
    with pytest.raises(Unwritable, match=message.replace("(", r"\(")):
        script_of(changed(honest, audit=honest.provenance.audit.replace(old, new)))


def test_secrets_in_datasets_become_a_place_to_fill_in(folder: Path) -> None:
    honest = stored(folder, "number")
    row = replace(honest.pairs[0], d0="a secret", d1="[1, 2, 3…")
    datasets: Any = ([{"dict": [["token", "abcdefgh12345"]]}], [])
    script = script_of(changed(honest, audit=None, pairs=(row,), datasets=datasets))
    assert "abcdefgh12345" not in script.text
    assert script.missing[1:] == ("write the dataset D0", "write the dataset D1")
    assert 'assert D0 is not ... and D1 is not ..., "fill in the datasets"' in script.text


def test_an_audit_in_python_gets_a_place_to_fill_in() -> None:
    """Fails by chance < 1 in 10**6: the audit has a seed."""

    def nothing(dataset: list[int], rng: np.random.Generator) -> int:
        return dataset[0]

    result = audit(nothing, PureDP(1.0), Pair([0], [1]), attacks="threshold", seed=1)
    script = script_of(result)
    assert "D0 = [0]\nD1 = [1]\n" in script.text
    assert 'raise NotImplementedError("fill in the function release")' in script.text
    assert len(script.missing) == 1
    assert "nothing" in script.missing[0]


def test_only_violations_with_a_region_are_reproduced(folder: Path) -> None:
    result = stored(folder, "number")
    with pytest.raises(Unwritable, match="reports no violation"):
        script_of(replace(result, verdict=type(result.verdict).NO_VIOLATION))
    with pytest.raises(Unwritable, match="no rejection region"):
        script_of(replace(result, witness=None))
