"""`dpaudit sweep` with two cells at once: the rule, lost workers, interruptions, and no process that is left behind."""

import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from dpaudit.cli import runner
from dpaudit.cli.one_audit import End, EventLog, Outcome, Task, make
from dpaudit.cli.options import RunOptions
from dpaudit.config.planned import ConfigError
from dpaudit.config.sweeps import Cell, catalogues, cells_of, only_matching, read_catalogue
from dpaudit.engine.schedule import FIRST_TRIALS, Round, Spent, next_round
from dpaudit.libraries.inside import opendp as inside
from dpaudit.result.suite import Promise

from .crashes.test_internal_errors import alive, children, ends
from .replaced_audits import HEAD, replaced_audits, states, swept, written

NEW = Spent(log_threshold=9.0, most=100_000)
_PATIENCE = 60.0  # seconds; far longer than this test takes on a busy machine


class Simulated:
    """Workers that make their rounds in this process, when they are awaited.

    Attributes:
        together: The cells of each moment at which rounds were awaited.
        dies: The beginning of the names of cells whose worker dies.
    """

    together: list[list[int]]
    dies = "none"
    interrupt_at = 10**9

    def __init__(self, number: int, options: RunOptions, promise: Promise) -> None:
        self._number, self._about, self.tasks = number, (options, promise), list[Task]()
        type(self).together = []

    @property
    def free(self) -> bool:
        return len(self.tasks) < self._number

    def start(self, task: Task) -> None:
        self.tasks.append(task)

    def ended(self, seconds: float) -> list[tuple[Task, Outcome]]:
        self.together.append([task.number for task in self.tasks])
        if len(self.together) == self.interrupt_at:
            raise KeyboardInterrupt
        task = self.tasks.pop(0)
        if task.name.startswith(self.dies):
            return [(task, Outcome(end=End.FAILED, reason="the process ended: SIGSEGV", seconds=0.1))]
        return [(task, self._made(task))]

    def interrupt(self) -> list[tuple[Task, Outcome]]:
        ended = [(task, self._made(task)) for task in self.tasks]
        return [(task, one if "dropped" in task.name else Outcome(end=End.INTERRUPTED)) for task, one in ended]

    def close(self) -> None:
        self.tasks.clear()

    def _made(self, task: Task) -> Outcome:
        return make(task, *self._about, EventLog(None), shown=False)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> type[Simulated]:
    chosen = type("Chosen", (Simulated,), {})
    monkeypatch.setattr(runner, "Workers", chosen)
    return chosen


def test_a_running_cell_gets_no_second_round_and_first_rounds_may_take_longer() -> None:
    used = replace(NEW, trials=300, seconds=2.0, last_seconds=2.0)
    assert next_round([replace(NEW, busy=True), NEW], 100, at_once=2) == Round(1, FIRST_TRIALS, 100)
    assert next_round([NEW] * 4, 100, at_once=2) == Round(0, FIRST_TRIALS, 25.0)
    assert next_round([replace(used, busy=True)], 100, at_once=2) is None
    found = next_round([replace(used, log_e=8.0, busy=True), used], 100, at_once=2)
    assert found.cell == 1


def test_two_cells_are_audited_at_once_and_have_the_same_verdicts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workers: type[Simulated]
) -> None:
    audits = replaced_audits(monkeypatch, tmp_path, "good", "bad", "failed")
    assert swept("--time", "2s", "--jobs", "2", "--seed", "3").exit_code == 1
    assert max(map(len, workers.together)) == 2
    assert all(len(set(cells)) == len(cells) for cells in workers.together), "a cell has one round at a time"
    two, seeds = states(), {name: seed for name, _, _, seed in audits.rounds}
    assert swept("--time", "2s", "--seed", "3", "-o", "one").exit_code == 1
    assert {name: seed for name, _, _, seed in audits.rounds} == seeds
    assert two == {
        **dict.fromkeys(("good-0.5", "good-1.0"), "no violation found"),
        **dict.fromkeys(("bad-0.5", "bad-1.0"), "violation"),
        **dict.fromkeys(("failed-0.5", "failed-1.0"), "not audited"),
    }


def test_a_lost_worker_closes_its_cell_also_for_a_resumed_sweep(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workers: type[Simulated]
) -> None:
    """The run that ended the worker must not be repeated because of its outcome."""
    audits = replaced_audits(monkeypatch, tmp_path, "good", "fragile")
    swept("--time", "0.3s", "--jobs", "2")
    first = {name for name, _, _, _ in audits.rounds}
    assert "fragile-0.5-1.1.5" in first
    workers.dies = "fragile-0.5"
    swept("--time", "3s", "--jobs", "2", "--resume")
    assert {cell["title"]: cell["closed"] for cell in written()["cells"]}["fragile-0.5"]
    before = len(audits.rounds)
    workers.dies = "none"
    swept("--time", "9s", "--jobs", "2", "--resume")
    later = {name for name, _, _, _ in audits.rounds[before:]}
    assert later
    assert "fragile-0.5-1.1.5" not in later


def test_an_interruption_keeps_failed_runs_and_the_elapsed_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workers: type[Simulated]
) -> None:
    replaced_audits(monkeypatch, tmp_path, "dropped", "good")
    workers.interrupt_at = 2
    done = swept("--time", "2s", "--jobs", "2")
    assert done.exit_code == 3
    assert written()["interrupted"]
    assert states() == {
        "dropped-0.5": "inconclusive",
        "dropped-1.0": "inconclusive",
        "good-0.5": "not audited",  # its blocks are in the store
        "good-1.0": "not audited",
    }
    assert written()["spent"] == pytest.approx(0.3), "the clock, and not the sum over cells"


HANGS = """\
import os, time
class Hangs:
    delta = 0.0
    def __init__(self, epsilon, dtype="int"):
        self.epsilon = epsilon
    def quick_result(self, data):
        open(f"started-{self.epsilon}", "w").close()
        while True:
            time.sleep(0.01)
"""


@pytest.mark.chance
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.slow  # crashes/test_internal_errors.py ends `dpaudit run` in the same way
def test_all_processes_end_with_the_sweep(tmp_path: Path) -> None:
    module = tmp_path / "pydp" / "algorithms"
    module.mkdir(parents=True)
    for file, text in (("../__init__", ""), ("__init__", ""), ("laplacian", HANGS)):
        (module / f"{file}.py").write_text(text)
    entry = "  - {call: Hangs, grid: {epsilon: [0.5, 1.0]}, arguments: {epsilon: $epsilon}}\n"
    (tmp_path / "hangs.yaml").write_text(HEAD + entry)
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        [sys.executable, "-m", "dpaudit", "sweep", "hangs.yaml", "-q", "--no-pdf", "--jobs", "2", "-o", "out"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as dpaudit:
        end = time.monotonic() + _PATIENCE
        while len(list(tmp_path.glob("started-*"))) < 2 and time.monotonic() < end and dpaudit.poll() is None:
            time.sleep(0.02)
        others = children(dpaudit.pid)
        assert len([other for other in others if alive(other)]) >= 2
        dpaudit.send_signal(signal.SIGTERM)
        shown, said = dpaudit.communicate(timeout=_PATIENCE)
    assert [other for other in others if not ends(other)] == []
    assert dpaudit.returncode == 3, shown + said
    assert "interrupted; the later audits were not run.  To resume: dpaudit sweep" in said
    assert "the sweep was interrupted" in (tmp_path / "out" / "sweep.json").read_text()


# --- catalogues of sweeps: what comes with dpaudit, how cells are made, and what is refused, with file and line


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
