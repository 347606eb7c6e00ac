"""Configs name a library, a call and its arguments; the claim and the pairs are read from the object."""

from __future__ import annotations

import math
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dpaudit import Pair, PureDP, ZeroConcentratedDP
from dpaudit.cli.app import app
from dpaudit.config import ConfigError, read_configs, read_text
from dpaudit.config.pair_models import numeric_arguments
from dpaudit.libraries import opendp
from dpaudit.libraries.configured import LibraryCall, read
from dpaudit.libraries.inside import opendp as inside
from dpaudit.running import MechanismError

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
        assert about.mechanism_packages is not None
        assert about.mechanism_packages["opendp"] == version("opendp")
