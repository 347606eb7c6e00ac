"""A dry run names all code that a config would run, and shows the arguments of that code."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from dpaudit.running import MechanismError, worker
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.worker import is_standard_file, refusal

from .conftest import Command


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "c.yaml"


def test_a_dry_run_shows_what_the_code_is_given(config: Path, command: Command) -> None:
    (config.parent / "b.yaml").write_text(
        "name: given\nclaim: pure(epsilon=1)\n"
        "mechanism: {python: 'numpy:fromfunction', params: {token: \"open('x')\", other: \"\\e[2K\\n\"}}\n"
        f"pairs: [{{d0: \"open('y')\", d1: {'z' * 2_000}}}, "
        "{search: {relation: add_remove, size: 2, bounds: [0, 1]}}]\n"
    )
    done = command("run", "b.yaml", "--dry-run")
    assert done.exit_code == 0, done.stderr
    first, params, d0, d1, search = done.stdout.splitlines()
    assert first.endswith("in this process, which may run its params and datasets as code")
    assert params == r"""  params: {"token": "open('x')", "other": "\u001b[2K\n"}"""
    assert d0 == """  pairs[0].d0: "open('y')\""""
    assert d1.endswith("zz… (2,002 characters; read the file)")
    assert len(d1) < 600
    assert search.startswith('  pairs[1].search: {"relation": "add_remove"')


@pytest.mark.parametrize("address", ["timeit:timeit", "cProfile:run", "os.path:join", "m.py:os.system", "m.py:run"])
def test_no_mechanism_is_a_part_of_python(config: Path, command: Command, address: str) -> None:
    (config.parent / "m.py").write_text("import os\nfrom subprocess import run\n")
    config.write_text(
        "name: n\nclaim: pure(epsilon=1)\npairs: [{d0: 0, d1: 1}]\n"
        f"mechanism: {{python: '{address}', params: {{command: touch RAN}}}}\n"
    )
    done = command("run", config.name, "--no-pdf", "-q")
    assert done.exit_code in (2, 3)
    assert "Python's standard library" in done.stderr
    assert not (config.parent / "RAN").exists()


_FILE = """\
import math, numpy
import numpy.testing as t
from dpaudit import batched
from helper import other
from numpy import fromfunction as f

def own(dataset, rng): return 0.0
class Own:
    def method(self): return own
    from numpy import fromfunction
    print("RAN")
small = lambda dataset, rng: 0.0
made, wrapped, half = Own(), batched(small), math.floor
try:
    both = Own()
except ImportError:
    from numpy import fromfunction as both
single = Own()
packed = batched(lambda dataset, n, rng: [0.0] * n)
called = numpy.vectorize(own)
"""


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("both", "numpy"),
        ("Own.fromfunction", ""), ("made", ""), ("half", ""), ("called", ""), ("absent", ""), ("own.__call__", ""),
    ],
)  # fmt: skip
def test_a_dry_run_says_that_a_file_does_not_define_the_mechanism(
    config: Path, command: Command, name: str, origin: str
) -> None:
    """Otherwise the file is shown as the code, but a function of a package runs."""
    (config.parent / "m.py").write_text(_FILE)
    config.write_text(
        f"name: n\nclaim: pure(epsilon=1)\npairs: [{{d0: 0, d1: 1}}]\nmechanism: {{python: 'm.py:{name}'}}\n"
    )
    line = command("run", config.name, "--dry-run").stdout.splitlines()[0]
    imported = f", where m.py imports {name.partition('.')[0]} from {origin}" if origin else ""
    assert line.endswith(f"in this process{imported}, which may run its params and datasets as code")


STANDARD = Path(sysconfig.get_path("stdlib"))


@pytest.mark.parametrize("place", ["absolute", "through a link", "another installation"])
@pytest.mark.parametrize("isolated", [False, True])
def test_no_file_of_a_mechanism_is_a_part_of_python(
    config: Path, command: Command, place: str, isolated: bool, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(STANDARD)
    (tmp_path / "other").mkdir()
    for file in ("os.py", "site.py", "timeit.py", "subprocess.py"):
        shutil.copy(STANDARD / file, tmp_path / "other" / file)
    folder = {"absolute": STANDARD, "through a link": "link", "another installation": "other"}[place]
    config.write_text(
        "name: n\nclaim: pure(epsilon=1)\npairs: [{d0: 0, d1: 1}]\n"
        f"mechanism: {{python: '{folder}/subprocess.py:Popen', params: {{args: [touch, {tmp_path}/RAN]}}"
        f"{', requires: []' if isolated else ''}}}\n"
    )
    for options in (["--dry-run"], ["--no-pdf", "-q"]):
        done = command("run", config.name, *options)
        assert done.exit_code == 2
        assert "subprocess.py is a file of Python's standard library" in done.stderr
    mechanism = PythonMechanism(f"{folder}/subprocess.py:Popen", {"args": ["touch", "RAN"]}, folder=tmp_path)
    with pytest.raises(MechanismError, match="is a file of Python's standard library"):
        assert mechanism.loaded
    with pytest.raises(LookupError, match="is a file of Python's standard library"):
        worker._module(f"{folder}/subprocess.py", str(tmp_path))
    assert not (tmp_path / "RAN").exists()


def test_installed_packages_and_own_files_are_not_parts_of_python(tmp_path: Path) -> None:
    assert not is_standard_file(np.__file__)
    assert not is_standard_file(str(STANDARD / "site-packages" / "package" / "module.py"))
    assert not is_standard_file(str(tmp_path / "timeit.py"))
    assert not is_standard_file("\0.py")
    assert refusal(np) == refusal(np.sum) == refusal(is_standard_file) == ""


def test_a_dry_run_shows_the_folder_that_is_used(config: Path, command: Command) -> None:
    """A folder `link/..` is that above the target of the link, for the config and for its mechanism."""
    there = config.parent / "there"
    (there / "deep").mkdir(parents=True)
    (config.parent / "link").symlink_to(there / "deep")
    (there / "c.yaml").write_text(
        "{name: n, claim: pure(epsilon=1), mechanism: {python: 'm.py:f'}, pairs: [{d0: 0, d1: 1}], trials: 50}\n"
    )
    (there / "m.py").write_text("f = lambda dataset, rng: float(rng.normal())\n")
    (config.parent / "m.py").write_text("raise SystemExit('this must not run')\n")
    assert (
        f"m.py:f (from {there}), in this process, which may run "
        in command("run", "link/../c.yaml", "--dry-run").stdout
    )
    done = command("run", "link/../c.yaml", "--no-pdf", "-q")
    assert done.exit_code in (0, 3), done.stderr


def test_a_mechanism_that_fails_with_a_password_does_not_show_it(config: Path, command: Command) -> None:
    (config.parent / "m.py").write_text("def f(**params):\n    raise OSError('gone')\n")
    config.write_text(
        "name: n\nclaim: pure(epsilon=1)\npairs: [{d0: 0, d1: 1}]\n"
        "mechanism: {python: 'm.py:f', params: {password: hunter2, size: 3}}\n"
    )
    done = command("run", config.name, "--no-pdf", "-q")
    assert "with params {'password': '***', 'size': 3} raised OSError: gone" in done.stderr
    assert "hunter2" not in done.stderr
