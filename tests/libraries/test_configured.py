"""Configs name a library, a call and its arguments; the claim and the pairs are read from the object."""

import ast
import errno
import math
import random
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dpaudit.libraries.inside as package
from dpaudit import Pair, PureDP, ZeroConcentratedDP, audit
from dpaudit.cli.app import app
from dpaudit.config.files import read_configs, read_text
from dpaudit.config.pair_models import numeric_arguments
from dpaudit.config.planned import ConfigError
from dpaudit.libraries import audit_subject, opendp, synthesizer
from dpaudit.libraries.configured import LibraryCall, read
from dpaudit.libraries.inside import opendp as inside
from dpaudit.running import MechanismError
from dpaudit.running.outcomes import of_machine

from ..unseeded import CONFIDENCE_OPTION, audit_unseeded

LAPLACE = """\
name: laplace
mechanism:
  library: opendp
  call: make_laplace
  arguments:
    input_domain: {atom_domain: {T: i32}}
    input_metric: {absolute_distance: {T: i32}}
    scale: 2.0
"""


def planned(tmp_path: Path, text: str) -> Any:
    (tmp_path / "c.yaml").write_text(text)
    (audit,) = read_configs([tmp_path / "c.yaml"])
    return audit


def test_a_config_without_claim_and_pairs_gets_those_of_the_object(tmp_path: Path) -> None:
    audit = planned(tmp_path, LAPLACE)
    mechanism, claim = audit.load()
    assert claim == PureDP(0.5)
    assert {(pair.d0, pair.d1) for pair in audit.pairs} >= {(0, 1), (2147483646, 2147483647)}
    assert len(mechanism.loaded.sample(0, 3, np.random.default_rng(0))) == 3


def test_the_text_of_the_audit_gives_the_same_audit(tmp_path: Path) -> None:
    audit = planned(tmp_path, LAPLACE)
    again = read_text(audit.text, tmp_path / "c.yaml")
    assert again.config == audit.config
    assert again.pairs == audit.pairs


def test_a_stated_claim_and_stated_pairs_come_first(tmp_path: Path) -> None:
    audit = planned(
        tmp_path, f"{LAPLACE}claim: pure(epsilon=3)\npairs:\n  - {{d0: 5, d1: 6}}\n  - from_library: true\n"
    )
    assert audit.load()[1] == PureDP(3.0)
    assert (audit.pairs[0].d0, audit.pairs[0].d1) == (5, 6)
    assert len(audit.pairs) > 3


def test_numbers_of_a_library_may_be_expressions(tmp_path: Path) -> None:
    """The privacy loss is 1 / scale = log(3); other arguments stay text."""
    audit = planned(tmp_path, LAPLACE.replace("scale: 2.0", "scale: 1/log(3)"))
    assert audit.load()[1].epsilon(0.0) == pytest.approx(math.log(3))
    assert numeric_arguments({"sensitivity": "2*2", "T": "32", "a": [{"epsilon": "1/2", "delta": 0.1}]}) == {
        "sensitivity": 4,
        "T": "32",
        "a": [{"epsilon": 0.5, "delta": 0.1}],
    }
    assert type(numeric_arguments({"sensitivity": "2*2"})["sensitivity"]) is int


def test_calls_can_be_nested_and_have_positional_arguments() -> None:
    inner = {"make_laplace": [{"atom_domain": {"T": "i32"}}, {"absolute_distance": {"T": "i32"}}, 2.0]}
    found = read(LibraryCall(library="opendp", call="make_pureDP_to_zCDP", arguments=[inner]))
    assert found.claim == ZeroConcentratedDP(0.125)
    assert read(LibraryCall(library="pydp", call="Count", arguments={"epsilon": 0.5})).claim == PureDP(0.5)


def test_the_distance_of_the_config_reaches_the_privacy_map(tmp_path: Path) -> None:
    assert planned(tmp_path, f"{LAPLACE}  d_in: 3\n").load()[1] == PureDP(1.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("opendp", "opendb"), "c.yaml:2: mechanism: unknown library 'opendb'; did you mean opendp?"),
        (("  call: make_laplace\n", ""), "c.yaml:2: mechanism: call is missing"),
        (("  call:", "  batched: true\n  call:"), "params, batched and observe_time are not allowed with library"),
        (("name:", "pairs: [{from_library: true, label: x}]\nname:"), "from_library must be the only key of its entry"),
        (("scale: 2.0", "scale: log(x)"), "arguments: scale must be a number such as 0.5, 1/3 or log(3), got 'log(x)'"),
    ],
)
def test_a_wrong_config_is_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        planned(tmp_path, LAPLACE.replace(*change))
    assert message in str(error.value)


def test_pairs_of_a_library_need_a_library(tmp_path: Path) -> None:
    text = "name: x\nclaim: pure(epsilon=1)\nmechanism: {builtin: laplace}\npairs: [{from_library: true}]\n"
    with pytest.raises(ConfigError, match=r"from_library is allowed with mechanism\.library only"):
        planned(tmp_path, text)


def test_only_constructors_of_opendp_are_called() -> None:
    """Private functions free memory, so that a config without code ended the process by a double free."""
    modules = [import_module(f"opendp.{home}") for home in ("measurements", "domains", "metrics", "measures")]
    public = {name for module in modules for name in module.__all__ if callable(getattr(module, name, None))}
    called = {name for name in public if inside._constructor(name) is not None}
    assert {"make_laplace", "vector_domain", "absolute_distance", "max_divergence", "approximate"} <= called
    assert not any(name.startswith(("_", "then_")) or "user" in name for name in called)
    assert {"_domain_free", "_metric_free", "_measure_free", "domain_debug", "user_domain"} <= public - called
    freed = {"_domain_free": {"this": {"atom_domain": {"T": "i32"}}}}
    assert inside._built(freed) is freed
    for name in ("_domain_free", "make_nothing", "Callable"):
        with pytest.raises(MechanismError, match=rf"opendp 0\.\d+\.\d+ has no constructor {name}"):
            read(LibraryCall(library="opendp", call=name, arguments={"this": 1}))


@pytest.mark.chance
def test_the_command_runs_a_library_without_any_python(tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6, by the confidence."""
    (tmp_path / "c.yaml").write_text(f"{LAPLACE}attacks: logistic\n")
    options = ["--trials", "400", "--no-pdf", "-o", str(tmp_path / "out"), *CONFIDENCE_OPTION]
    done = CliRunner().invoke(app, ["run", str(tmp_path / "c.yaml"), *options])
    assert done.exit_code == 0, done.output
    assert "pure(epsilon=0.5)" in (tmp_path / "out" / "laplace.json").read_text()


@pytest.mark.chance
def test_a_result_records_the_release_of_the_library(tmp_path: Path) -> None:
    """Only versions are compared, and no verdict."""
    mechanism, _ = planned(tmp_path, LAPLACE).load()
    mechanisms = (mechanism, opendp.subject(inside.called("make_randomized_response_bool", [0.75])).mechanism)
    for one, pair in zip(mechanisms, (Pair(0, 1), Pair(False, True)), strict=True):
        about = audit_unseeded(one, "pure(epsilon=2)", pair, trials=10, attacks="logistic").provenance
        assert about.mechanism_packages["opendp"] == version("opendp")


# --- what runs in private environments needs neither dpaudit nor a new Python


FILES = sorted(Path(package.__path__[0]).glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_module_is_valid_python_3_8_and_imports_the_standard_library_only(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
    newer = {"cache", "removeprefix", "removesuffix", "bit_count", "pairwise"}  # Python 3.9 or later
    assert newer.isdisjoint(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))


STUB = '''
class Count:
    """An algorithm with the interface of PyDP."""
    delta = 0.0

    def __init__(self, epsilon, dtype="int"):
        self.epsilon = epsilon

    def quick_result(self, data):
        return len(data)
'''


def test_a_bare_interpreter_makes_and_runs_an_object(tmp_path: Path) -> None:
    """The stub stands for a library in an environment without numpy; -I and -S hide all installed packages."""
    home = tmp_path / "pydp" / "algorithms"
    home.mkdir(parents=True)
    (home / "laplacian.py").write_text(STUB)
    (tmp_path / "python_dp-1.0.dist-info").mkdir()
    (tmp_path / "python_dp-1.0.dist-info" / "METADATA").write_text("Name: python-dp\nVersion: 1.0\n")
    code = (
        "import importlib.util, sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        f"spec = importlib.util.spec_from_file_location('_start', {str(FILES[0].parent / 'start.py')!r})\n"
        "start = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(start)\n"
        "given = dict(library='pydp', call='Count', arguments={'epsilon': 0.5})\n"
        "print(start.Called(**given).sample([1, 2, 3], 2, None))\n"
        "print(start.Called(**given).sample(start.FACTS, 1, None))\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    outputs, facts = map(ast.literal_eval, done.stdout.splitlines())
    assert outputs == [3, 3]
    assert facts == [{"epsilon": 0.5, "delta": 0.0, "name": "Count", "version": "1.0", "dtype": "int"}]


# --- runs of a generator share nothing, and a machine that has run out of something is no output of the generator


SCHEMA: dict[str, Any] = {"age": (0, 9)}
ROWS = [{"age": 3}, {"age": 4}]
FULL = [
    MemoryError("no"),
    OSError(errno.ENOSPC, "no"),
    RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory"),
]
OTHER = [ValueError("too few rows"), FileNotFoundError(errno.ENOENT, "no"), RuntimeError("cannot allocate the budget")]


class Generator:
    """A generator whose runs share the list of its argument and the array of its output."""

    shared = np.zeros(1)
    fails: BaseException | None = None

    def __init__(self, epsilon: float = 1.0, seen: list[int] | None = None) -> None:
        self.epsilon, self.seen = epsilon, [] if seen is None else seen

    def fit(self, rows: Any, asked: Any = None) -> None:
        if Generator.fails is not None and len(rows) == 2:
            raise Generator.fails
        for growing in (self.seen, [] if asked is None else asked["rows"], rows[0].get("visits", [])):
            growing.append(len(growing))
        self.sizes = [len(self.seen), 0 if asked is None else len(asked["rows"]), len(rows[0].get("visits", []))]

    def sample(self, rows: int) -> Any:
        Generator.shared += 1
        return {"n": Generator.shared[:], "sizes": self.sizes}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Generator, "fails", None)
    monkeypatch.setattr(Generator, "shared", np.zeros(1))


def subject(**settings: Any) -> Any:
    return synthesizer.subject(Generator, SCHEMA, table="rows", **settings)


def test_runs_share_neither_arguments_nor_cells_nor_outputs() -> None:
    found = subject(seen=[], fit_arguments={"asked": {"rows": []}})
    rows = [{"age": 3, "visits": [7]}]
    outputs = found.mechanism.sample(rows, 3, np.random.default_rng(0))
    assert [float(output["n"][0]) for output in outputs] == sorted({float(output["n"][0]) for output in outputs})
    assert [output["sizes"] for output in outputs] == [[1, 1, 2]] * 3
    assert rows == [{"age": 3, "visits": [7]}]


@pytest.mark.parametrize("error", FULL, ids=repr)
def test_a_machine_without_memory_or_space_is_no_output(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier runs decide how much is left, so such an error could refute a true claim."""
    assert of_machine(error)
    mechanism = subject().mechanism
    monkeypatch.setattr(Generator, "fails", error)
    with pytest.raises(type(error)):
        mechanism.sample(ROWS, 1, np.random.default_rng(0))

    def fails_on_one(dataset: int, rng: np.random.Generator) -> int:
        if dataset:
            raise error
        return int(rng.integers(2))

    with pytest.raises(MechanismError, match="is no outcome, because it depends on the machine"):
        audit(fails_on_one, PureDP(1.0), Pair(0, 1), trials=60, failures="outcome", seed=1)


@pytest.mark.parametrize("error", OTHER, ids=repr)
def test_other_errors_are_outputs(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not of_machine(error)
    mechanism = subject().mechanism
    monkeypatch.setattr(Generator, "fails", error)
    (output,) = mechanism.sample(ROWS, 1, np.random.default_rng(0))
    assert output["raised"] == type(error).__name__


def fails_on_two(made: Any, rows: Any) -> None:
    if len(rows) == 2:
        raise ValueError("two rows")


def drawn(made: Any, rows: int) -> float:
    return random.random()


def test_failures_are_respected_in_python_and_the_author_of_the_claim_is_recorded() -> None:
    pairs = [Pair(ROWS, ROWS[:1], relation="add_remove")]
    found = subject(pairs=pairs, fit=fails_on_two, sample=drawn)
    settings: dict[str, Any] = {"trials": 100, "seed": 1, "confidence": 0.9, "confirm": "never"}
    for failures in ({}, {"failures": "outcome"}):
        result = audit_subject(found, **failures, **settings)
        assert result.violated  # every output of d0 is the exception, so that this does not depend on chance
        assert result.provenance.claim_stated_by == "the constructor of the generator"
    with pytest.raises(MechanismError, match="raised ValueError: two rows"):
        audit_subject(found, failures="stop", **settings)
    assert subject(claim="pure(epsilon=9)").claim_stated_by is None
