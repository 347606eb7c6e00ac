"""Claims, mechanisms and result files that could crash dpaudit are refused with a message."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit.config.files import read_text
from dpaudit.config.planned import ConfigError
from dpaudit.text import read_foreign

from .command_line import CONFIG, Command

BUILTIN = "{builtin: gaussian, params: {sigma: 1.0}}"


def test_a_missing_dp_accounting_is_reported_before_anything_runs(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    (folder / "mine.py").write_text("from pathlib import Path\nPath('loaded').touch()\ndef f(d, rng): return d[0]\n")
    composed = CONFIG.replace("gaussian(mu=1)", "compose(gaussian(mu=1), pure(epsilon=1))")
    (folder / "c.yaml").write_text(composed.replace(BUILTIN, "{python: 'mine.py:f'}"))
    done = command("run", "c.yaml")
    assert done.exit_code == 2
    assert 'needs dp-accounting, which is not installed: pip install "dpaudit[accounting]"' in done.stderr
    assert not (folder / "loaded").exists()
    assert not (folder / "dpaudit-results").exists()
    (folder / "c.yaml").write_text(f"{CONFIG}detect: compose(gaussian(mu=2), pure(epsilon=1))\n")
    assert command("run", "c.yaml").exit_code == 2
    code = (
        "class M:\n    claim = 'compose(gaussian(mu=2), pure(epsilon=1))'\n    def __call__(self, d, rng): return 1\n"
    )
    (folder / "states.py").write_text(f"{code}m = M()\n")
    stated = CONFIG.replace("gaussian(mu=1)", "from mechanism")
    (folder / "c.yaml").write_text(stated.replace(BUILTIN, "{python: 'states.py:m'}"))
    assert command("run", "c.yaml").exit_code == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mu=1", f"mu={'9' * 400}"),
        ("gaussian(mu=1)", "-" * 50_000 + "1"),
        ("gaussian(mu=1)", "1" + "+1" * 50_000),
        ("{d0: [0], d1: [1]}", "{search: {relation: all_values, size: 1000000000}}"),
        ("trials: 60", "trials: 100000000000000000"),
    ],
    ids=["huge number", "signs", "sums", "huge search", "huge trials"],
)
def test_hostile_configs_are_refused_with_2(old: str, new: str, folder: Path, command: Command) -> None:
    (folder / "c.yaml").write_text(CONFIG.replace(old, new))
    done = command("run", "c.yaml", "--dry-run")
    assert done.exit_code == 2
    assert "c.yaml:" in done.stderr
    assert len(done.stderr) < 600


def test_a_name_that_no_file_can_have_is_refused_before_the_first_run(folder: Path, command: Command) -> None:
    (folder / "c.yaml").write_text(CONFIG.replace("name: noise", f"name: {'漢' * 90}"))
    done = command("run", "c.yaml")
    assert done.exit_code == 2
    assert "File name too long" in done.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit(0)", "raised SystemExit: 0, at mine.py:1"),
        ("class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E()", "its message is unavailable"),
    ],
)
def test_a_module_that_ends_the_process_is_named(code: str, message: str, folder: Path, command: Command) -> None:
    (folder / "mine.py").write_text(f"{code}\n")
    (folder / "c.yaml").write_text(CONFIG.replace(BUILTIN, "{python: 'mine.py:f'}"))
    done = command("run", "c.yaml", "--no-pdf")
    assert done.exit_code == 2
    assert "c.yaml:3: audit noise: mechanism: importing mine.py" in done.stderr
    assert message in done.stderr


def test_a_mechanism_that_changes_the_folder_on_import_moves_no_file(folder: Path, command: Command) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (folder / "mine.py").write_text(
        f"import os\nos.chdir({str(elsewhere)!r})\ndef f(d, rng): return d[0] + rng.normal()\n"
    )
    (folder / "again.py").write_text("def f(d, rng): return d[0] + rng.normal()\n")
    own = CONFIG.replace(BUILTIN, "{python: 'mine.py:f'}").replace("name: noise", "name: a")
    (folder / "c.yaml").write_text(own)
    (folder / "d.yaml").write_text(own.replace("mine", "again").replace("name: a", "name: b"))
    done = command("run", "c.yaml", "d.yaml", "--no-pdf", "-o", "out", "--log-json", "log", "--resume")
    assert done.exit_code == 0, done.stderr
    assert {"a.json", "b.json", "a.trials"} <= {file.name for file in (folder / "out").iterdir()}
    assert (folder / "log").exists()
    assert not list(elsewhere.iterdir())
    assert "results are in out; to read one: dpaudit report out/a.json" in done.stderr


def test_environments_without_a_home_folder_are_reported(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HOME", "XDG_CACHE_HOME", "DPAUDIT_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: (_ for _ in ()).throw(KeyError("uid")))
    (folder / "mine.py").write_text("def f(d, rng): return 1\n")
    (folder / "c.yaml").write_text(CONFIG.replace(BUILTIN, "{python: 'mine.py:f', requires: []}"))
    done = command("run", "c.yaml")
    assert done.exit_code == 2
    assert "set DPAUDIT_CACHE" in done.stderr


LAUGHS = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 9))


@pytest.mark.parametrize(
    "more",
    [
        f"source: [&a {'A' * 150_000}{', *a' * 300}]\n",
        f"source: {{? &a {'A' * 150_000} : [{'{*a : 1}, ' * 100}]}}\n",
        f"l0: &l0 [a]\n{LAUGHS}source: *l8\n",
    ],
    ids=["text", "key", "lists"],
)
def test_a_config_that_expands_is_refused_at_once(more: str, folder: Path) -> None:
    with pytest.raises(ConfigError, match="has more than 100,000 keys and list entries") as caught:
        read_text(f"{CONFIG}{more}", folder / "c.yaml")
    assert len(str(caught.value)) < 1_000


@pytest.fixture(params=["pipe", "device", "large"])
def odd(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(read_foreign, "__defaults__", (2**20,))  # reading a quarter of a gigabyte takes a second
    path = folder / "odd"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(2**40)  # a sparse file: it needs no space on the disk
    return path


def test_an_odd_result_is_refused_at_once(odd: Path, command: Command) -> None:
    for words in (("report", odd.name), ("replay", odd.name, "--no-code")):
        done = command(*words)
        assert done.exit_code == 2
        assert "is not a regular file" in done.stderr or "the maximum size of a file to read" in done.stderr
        assert done.stderr.count("odd") == 1


def test_an_odd_config_is_refused_at_once(odd: Path, folder: Path, command: Command) -> None:
    odd.rename(folder / "odd.yaml")
    done = command("run", "odd.yaml")
    assert done.exit_code == 2
    assert "odd.yaml" in done.stderr


NEIGHBOUR = """
import os, subprocess, sys, time
from pathlib import Path
sys.path.append(str(Path(__file__).parent))
import neighbour

def release(dataset, rng):
    child = subprocess.run([sys.executable, "-c", "import neighbour; print(neighbour.NUMBER)"], capture_output=True)
    return [os.getpid(), neighbour.NUMBER, int(child.stdout)]
"""
CALLS = """
import os
from pathlib import Path
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.backends import called_elsewhere

def release(dataset):
    return PythonMechanism("release.py:release").loaded(dataset, None)

for jobs in (1, 2):
    for process, *numbers in called_elsewhere(release, [[0], [0]], jobs):
        assert process != os.getpid()
        assert numbers == [7, 7]
assert "PYTHONSAFEPATH" not in os.environ
"""


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """Return a folder with modules that record their import, named like modules that the workers import."""
    (tmp_path / "joblib").mkdir()
    spy = f"from pathlib import Path\nPath({str(tmp_path / 'imported')!r}).open('a').write(__name__ + ' ')\n"
    for module in ("joblib/__init__", "random", "pickle", "runpy", "signal", "threading", "numpy"):
        (tmp_path / f"{module}.py").write_text(spy)
    return tmp_path


def run(folder: Path, code: str) -> None:
    """Run a program in a folder.  As for the program `dpaudit`, only the program's own folder is in the path."""
    (folder / "bin").mkdir()
    (folder / "bin" / "program").write_text(code)
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, "bin/program"], cwd=folder, env=variables, capture_output=True, text=True, timeout=100
    )
    assert not (folder / "imported").exists(), (folder / "imported").read_text()
    assert done.returncode == 0, done.stderr


def test_workers_import_nothing_from_the_current_folder_but_a_mechanism_and_its_programs_do(strange: Path) -> None:
    """The module of the mechanism appends its folder to the path."""
    (strange / "release.py").write_text(NEIGHBOUR)
    (strange / "neighbour.py").write_text("NUMBER = 7\n")
    run(strange, CALLS)
