"""Catalogues of sweeps: what comes with dpaudit, how cells are made, and what is refused, with file and line."""

from __future__ import annotations

import math
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from dpaudit.config.planned import ConfigError
from dpaudit.config.sweeps import Cell, catalogues, cells_of, only_matching, read_catalogue
from dpaudit.libraries.inside import opendp as inside

CATALOGUE = """\
library: opendp
package: opendp
versions: ["0.9", "0.14.2"]
environments:
  - {versions: "<0.14", requires: [numpy<2], python_version: "3.10"}
entries:
  - call: make_laplace
    grid:
      type: {i32: {domain: {atom_domain: {T: i32}}, metric: [1, 2]}}
      scale: [1, 2.5]
    arguments: {input_domain: $type.domain, more: [$scale, {deep: $type.metric}]}
  - call: make_new
    name: new one
    versions: ">=0.14"
    requires: [polars]
    grid: {d: [1, 2]}
    d_in: $d
"""


def read(tmp_path: Path, text: str) -> list[Cell]:
    (tmp_path / "own.yaml").write_text(text)
    return cells_of(read_catalogue(str(tmp_path / "own.yaml")), "0.14.2", pinned=True, settings={})


def test_a_grid_gives_a_cell_for_each_combination(tmp_path: Path) -> None:
    first, second, third, _ = read(tmp_path, CATALOGUE)
    assert (first.name, first.title) == ("make_laplace-i32-1-0.14.2", "make_laplace-i32-1")
    assert second.values == {"type": "i32", "scale": "2.5"}
    mechanism = second.planned.config.mechanism
    assert mechanism.arguments == {"input_domain": {"atom_domain": {"T": "i32"}}, "more": [2.5, {"deep": [1, 2]}]}
    assert mechanism.requires == ["opendp==0.14.2"]
    assert third.planned.line == 12
    assert (third.planned.config.mechanism.requires, third.planned.config.mechanism.d_in) == (
        ["opendp==0.14.2", "polars"],
        1,
    )


def test_older_versions_have_their_own_entries_and_environments(tmp_path: Path) -> None:
    read(tmp_path, CATALOGUE)
    catalogue = read_catalogue(str(tmp_path / "own.yaml"))
    cells = cells_of(catalogue, "0.9", pinned=True, settings={"trials": 70})
    assert {cell.constructor for cell in cells} == {"make_laplace"}
    config = cells[0].planned.config
    assert (config.mechanism.requires, config.mechanism.python_version) == (["opendp==0.9", "numpy<2"], "3.10")
    assert config.trials == 70
    assert catalogue.newest == "0.14.2"
    assert cells_of(catalogue, "0.9", pinned=False, settings={})[0].planned.config.mechanism.requires is None


def test_cells_are_chosen_by_constructor_name_or_pattern(tmp_path: Path) -> None:
    cells = read(tmp_path, CATALOGUE)
    assert only_matching(cells, []) == cells
    assert only_matching(cells, ["make_laplace"]) == cells[:2]
    assert only_matching(cells, ["*-2*", "nothing*", "new one-1"][::2]) == cells[1:]
    with pytest.raises(ConfigError, match=r"--only make_laplce: no cell .* did you mean make_laplace\?"):
        only_matching(cells, ["make_laplce"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("library: opendp", "library: opendb"), "own.yaml:1: library: unknown library 'opendb'; did you mean opendp?"),
        (('"0.14.2"]', "new]"), "own.yaml:3: versions: must be a version such as 0.16.0, got 'new'"),
        (("package: opendp", "package: opendp==1"), "own.yaml:2: package: the package of opendp is opendp, got"),
        (("<0.14", "older"), "own.yaml:5: environments[0].versions: must be a range of versions such as"),
        (("numpy<2", "--index-url x"), "own.yaml:5: environments[0].requires: must name packages and versions"),
        (("    name: new one", "    nme: new one"), "yaml:13: entries[1].nme is not a known key; did you mean name?"),
        (("name: new one", "name: ../new"), "own.yaml:13: entries[1].name: must have at most 40 letters"),
        (("scale: [1, 2.5]", "scale: []"), "own.yaml:8: entries[0].grid: the axis scale must have at least one value"),
        (("scale: [1, 2.5]", "scale: [1, 1]"), "own.yaml:7: grid.scale: the value 1 is given twice"),
        (("scale: [1, 2.5]", "scale: [[1]]"), "yaml:7: grid.scale: a value that is a list or a mapping needs a label"),
        (("$scale", "$scal"), "own.yaml:7: $scal is no axis of grid; did you mean scale?"),
        (("[$scale, ", "[3, "), "own.yaml:7: grid: the axis scale is not used; write $scale in the arguments"),
        (("    name: new one", "    name: make_laplace-i32"), "i32-1 also belongs to the entry at line 7"),
        ((CATALOGUE, "- one"), "own.yaml:1: must hold a catalogue with the keys library, package"),
    ],
)  # fmt: skip
def test_a_wrong_catalogue_is_refused_with_its_line(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in CATALOGUE
    with pytest.raises(ConfigError) as error:
        read(tmp_path, CATALOGUE.replace(*change, 1))
    assert message in str(error.value)


def test_huge_grids_are_refused_before_they_are_expanded(tmp_path: Path) -> None:
    axes = ", ".join(f"a{n}: {list(range(10))}" for n in range(6))
    with pytest.raises(ConfigError, match=r"the grids have 1,000,002 cells; the maximum is 2,000"):
        read(tmp_path, CATALOGUE.replace("type: {", f"{axes.replace(', a', chr(10) + '      a')}\n      type: {{")
             .replace("grid: {d: [1, 2]}", "grid: {d: [1, 2]}").replace("scale: [1, 2.5]", "scale: [1]"))  # fmt: skip


@pytest.mark.parametrize("library", catalogues())
def test_the_catalogues_of_dpaudit_are_valid_for_their_versions(library: str) -> None:
    catalogue = read_catalogue(library)
    assert catalogue.config.library == library
    for release in catalogue.config.versions:
        cells = cells_of(catalogue, release, pinned=True, settings={})
        assert len(cells) >= 30
        for cell in cells:
            assert re.fullmatch(r"\w[\w .+-]{0,99}", cell.name)
            assert f"{catalogue.config.package}=={release}" in (cell.planned.config.mechanism.requires or [])
    entries = catalogue.config.entries
    assert all(math.prod(map(len, entry.grid.values())) >= 2 for entry in entries), "at least two values of a parameter"


def test_the_installed_opendp_has_every_constructor_of_its_catalogue() -> None:
    """Only the calls are looked up; `benchmarks/sweeps.py` audits them."""
    catalogue = read_catalogue("opendp")
    if catalogue.installed != version("opendp") or catalogue.installed not in catalogue.config.versions:
        pytest.skip("the catalogue was not checked with this release")
    text = catalogue.file.read_text(encoding="utf-8")
    called = set(re.findall(r"make_\w+", text))
    assert len(called) >= 20
    assert not {name for name in called if inside._constructor(name) is None}


def test_chains_of_opendp_pass_the_space_from_step_to_step() -> None:
    words = [{"vector_domain": [{"atom_domain": {"T": "i32"}}]}, {"symmetric_distance": {}}]
    steps = [{"make_clamp": {"bounds": [0, 5]}}, {"make_sum": {}}, {"make_laplace": {"scale": 5.0}}]
    made = inside.called("chain", [*words, *steps])
    assert inside.facts(made, 1)["d_out"] == pytest.approx(1.0)
    assert inside.sample(made, [1, 2, 9], 2)
    nested = inside.called("make_approximate", [{"chain": [*words, *steps]}])
    assert inside.facts(nested, 1)["d_out"][1] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale": 1}, "chain takes a list"),
        ([{"symmetric_distance": {}}], "chain takes a list"),
        ([1, 2, {"_domain_free": {}}], "a step of chain must be a constructor"),
        ([1, 2, {"atom_domain": {"T": "i32"}}], "a step of chain must be a constructor"),
        ([1, 2, {"make_user_measurement": {}}], "has no constructor make_user_measurement"),
        ([1, 2, "make_count"], "a step of chain must be a constructor"),
        ([1, 2, {"make_count": [1]}], "a step of chain must be a constructor"),
    ],
)
def test_chains_call_constructors_only(arguments: object, message: str) -> None:
    """As for other calls: private functions of OpenDP free memory."""
    with pytest.raises((TypeError, LookupError), match=message):
        inside.called("chain", arguments)


def test_the_catalogue_of_the_page_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "libraries.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(library:.*?)```", page, re.DOTALL)
    (tmp_path / "own.yaml").write_text(text)
    cells = cells_of(read_catalogue(str(tmp_path / "own.yaml")), "0.16.0", pinned=True, settings={})
    assert {"make_laplace-i32-0.7", "count-3.0"} <= {cell.title for cell in cells}
    assert len(cells) == 6
    assert "at most 2,000 cells" in page
