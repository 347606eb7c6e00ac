"""Datasets in files: what a config may name, how a file is read, and how a change makes a neighbour."""

import math
import os
import re
import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from dpaudit.config.files import read_configs
from dpaudit.config.pair_models import changed, read_dataset
from dpaudit.running import MechanismError, worker
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.worker import is_standard_file, refusal

from .conftest import Command

PEOPLE = "name,age,zip,income\nAda,36,02139,1e3\nBo,,00501,2.5\n\nCy,7,94105,-3\n"
ROWS: list[dict[str, Any]] = [
    {"name": "Ada", "age": 36, "zip": "02139", "income": 1000.0},
    {"name": "Bo", "age": None, "zip": "00501", "income": 2.5},
    {"name": "Cy", "age": 7, "zip": "94105", "income": -3.0},
]
CONFIG = """\
name: ages
claim: pure(epsilon=1)
mechanism: {python: ages.py:total}
pairs:
  - {d0: people.csv, d1: {drop: 0}}
trials: 60
attacks: logistic
seed: 1
"""
AGES = "def total(people, rng): return sum(p['age'] or 0 for p in people) + rng.laplace(scale=40.0)\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "counts.json").write_text("[1, 2, 3]")
    (tmp_path / "c.yaml").write_text(CONFIG)
    (tmp_path / "ages.py").write_text(AGES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_rows_of_a_csv_file_are_records(here: Path) -> None:
    """A column is numeric only if all cells are plain numbers, so codes with leading zeros stay text."""
    assert read_dataset("people.csv", here)[0] == ROWS
    (here / "people.csv").write_bytes(b"\xef\xbb\xbf" + PEOPLE.replace("\n", "\r\n").encode())
    assert read_dataset("people.csv", here)[0] == ROWS
    assert read_dataset("counts.json", here)[0] == [1, 2, 3]


@pytest.mark.parametrize(
    ("d1", "expected", "relation", "label"),
    [
        ("{drop: 1}", [ROWS[0], ROWS[2]], "add_remove", "people.csv without record 1 (counted from 0)"),
        (
            "{replace: {2: {age: 90}}}",
            [*ROWS[:2], {**ROWS[2], "age": 90}],
            "replace_one",
            "people.csv with record 2 (counted from 0) replaced",
        ),
        (
            "{add: {name: D, age: 1, zip: '1', income: 0}}",
            [*ROWS, {"name": "D", "age": 1, "zip": "1", "income": 0}],
            "add_remove",
            "people.csv with one more record",
        ),
        ("counts.json", [1, 2, 3], "unspecified", ""),
    ],
)
def test_a_change_makes_the_neighbour(here: Path, d1: str, expected: list[Any], relation: str, label: str) -> None:
    (here / "c.yaml").write_text(CONFIG.replace("{drop: 0}", d1))
    (pair,) = read_configs([here / "c.yaml"])[0].pairs
    assert (pair.d0, pair.d1, pair.relation, pair.label) == (ROWS, expected, relation, label)


def test_a_mapping_without_a_file_is_a_dataset(here: Path) -> None:
    (here / "c.yaml").write_text(CONFIG.replace("people.csv", "[1]"))
    (pair,) = read_configs([here / "c.yaml"])[0].pairs
    assert pair.d1 == {"drop": 0}
    assert changed([1, 2], {"replace": {0: 5}}, "x") == [5, 2]


WRONG = {
    "{drop: 3}": "c.yaml:5: pairs[0]: people.csv: has no record 3; it has 3 records, from 0 to 2",
    "{drop: 1, add: 2}": "if d0 is a file, d1 must be a file or a change such as {drop: 17}",
    "{dorp: 1}": "unknown change 'dorp'; did you mean drop?",
    "{replace: 3}": "replace must name one record by its number, counted from 0",
    "{replace: {0: {aeg: 1}}}": "people.csv: has no column 'aeg'; did you mean age?",
    "{add: {age: 1}}": "people.csv: the added record lacks 3 of 4 columns",
    "other.csv": "c.yaml:5: pairs[0]: other.csv: cannot be read: No such file or directory",
    "short.csv": "short.csv: line 3 has 1 cells, but there are 2 columns",
    "twice.csv": "twice.csv: no two columns may have the same name; rename one in the first line",
    "latin.csv": "latin.csv: cannot be read: the text is not encoded as UTF-8",
    "broken.json": "broken.json:2: is not valid JSON: Expecting value",
    "pipe.csv": "pipe.csv: cannot be read: is not a regular file but a folder, device or pipe",
    "semicolons.csv": "semicolons.csv: its cells are separated by semicolons; separate them by commas",
}


@pytest.mark.parametrize("d1", WRONG)
def test_wrong_files_and_changes_are_refused(here: Path, d1: str, command: Callable[..., Result]) -> None:
    """All are refused before any run, and no message quotes the content of a file."""
    (here / "short.csv").write_text("a,b\n1,2\n3\n")
    (here / "twice.csv").write_text("a,a\n1,2\n")
    (here / "empty.csv").write_text("\n")
    (here / "semicolons.csv").write_text("secret;b\n1;2\n")
    (here / "quote.csv").write_text('a,b\n"secret,2\n')
    (here / "latin.csv").write_bytes(b"name\n\xe4\n")
    (here / "broken.json").write_text("[1,\n secret]")
    (here / "deep.json").write_text("[" * 200_000)
    os.mkfifo(here / "pipe.csv")
    (here / "c.yaml").write_text(CONFIG.replace("{drop: 0}", d1))
    done = command("run", "c.yaml")
    assert done.exit_code == 2
    assert WRONG[d1] in done.stderr
    assert "secret" not in done.stderr
    assert len(done.stderr) < 500


def test_a_file_may_lie_elsewhere_or_behind_links(here: Path) -> None:
    """DVC and git-annex replace files by links into a cache, and configs often lie in a folder beside the data."""
    (here / "configs").mkdir()
    (here / "cache").mkdir()
    (here / "cache" / "0123abcd").write_text(PEOPLE)
    (here / "linked.csv").symlink_to(here / "cache" / "0123abcd")
    (here / "data").symlink_to(here)
    for name in ("linked.csv", "data/people.csv", "../data/linked.csv", str(here / "linked.csv")):
        folder = here / "configs" if name.startswith("..") else here
        (folder / "c.yaml").write_text(CONFIG.replace("people.csv", name))
        (pair,) = read_configs([folder / "c.yaml"])[0].pairs
        assert (pair.d0, pair.d1) == (ROWS, ROWS[1:]), name


@pytest.mark.parametrize("d1", ["{drop: 9}", "{drop: 0}", "{replace: {0: 5}}", "{replace: {0: {a: 1}}}", "{add: {}}"])
@pytest.mark.parametrize("option", ["--no-code", "--dry-run"])
def test_nothing_shows_the_content_of_a_file_behind_a_link(
    here: Path, d1: str, option: str, command: Callable[..., Result]
) -> None:
    """A checkout may hold links to files of the reader, and --no-code does not refuse builtin mechanisms."""
    (here / "credentials").write_text("https://user:secret@host,secret\nsecret,secret\n")
    (here / "link.csv").symlink_to(here / "credentials")
    builtin = CONFIG.replace("{python: ages.py:total}", "{builtin: laplace}")
    (here / "c.yaml").write_text(builtin.replace("people.csv", "link.csv").replace("{drop: 0}", d1))
    done = command("run", "c.yaml", option, "--no-pdf")
    assert done.exit_code == (2 if d1 != "{drop: 0}" else 0 if option == "--dry-run" else 3), done.output
    assert "secret" not in done.output
    assert not list(here.glob("dpaudit-results/*.json"))


def test_a_table_of_pandas_or_numpy_keeps_its_numbers(here: Path) -> None:
    """pandas writes its index as a column without a name, and missing numbers as NaN where it is told so."""
    (here / "people.csv").write_text(",x,y,code\n0,1.5,NA,NA\n1,inf,7,FR\n2,-inf,NA,007\n")
    expected = [
        {"": 0, "x": 1.5, "y": None, "code": "NA"},
        {"": 1, "x": math.inf, "y": 7, "code": "FR"},
        {"": 2, "x": -math.inf, "y": None, "code": "007"},
    ]
    assert read_dataset("people.csv", here)[0] == expected
    (here / "people.csv").write_text("x,name\n1,nan\nNaN,inf\n")
    (one, two), _ = read_dataset("people.csv", here)
    assert (one, two["name"], math.isnan(two["x"])) == ({"x": 1.0, "name": "nan"}, "inf", True)
    with pytest.raises(ValueError, match='lacks 2 of 2 columns, one of which has the name ""'):
        changed([{"": 0, "x": 1}], {"add": {}}, "people.csv")


def test_an_audit_of_a_file_runs_and_is_listed(here: Path, command: Callable[..., Result]) -> None:
    """The claim is true: the age 36 needs noise of scale 36 for epsilon 1.  The seed is fixed."""
    listed = command("run", "c.yaml", "--dry-run")
    assert '  pairs[0].d0 (file): "people.csv"' in listed.stdout
    done = command("run", "c.yaml", "--no-pdf", "-q")
    assert done.exit_code in (0, 3), done.output
    result = (here / "dpaudit-results" / "ages.json").read_text()
    assert "people.csv without record 0" in result
    assert "d0: people.csv" in result


def test_a_replay_confirms_nothing_if_a_file_of_datasets_has_changed(
    here: Path, command: Callable[..., Result]
) -> None:
    """The result shows only the beginning of a dataset, so the change is in its hash only.  The seeds are fixed."""
    (here / "people.csv").write_text(PEOPLE + "".join(f"N{i},1,1,1\n" for i in range(50)))
    (here / "ages.py").write_text(AGES.replace("scale=40.0", "scale=1.0"))
    assert command("run", "c.yaml", "--no-pdf", "-q").exit_code == 1
    file = "dpaudit-results/ages.json"
    again = ("replay", file, "--seed", "2", "--trials", "60")
    same = command(*again)
    assert "Confirmed" in same.stdout, same.output
    (here / "people.csv").write_text((here / "people.csv").read_text().replace("N49,1,", "N49,2,"))
    other = command(*again)
    assert "Confirmed" not in other.stdout
    assert "code or datasets have changed since the audit: d0 (sha256 " in other.stdout


def test_the_example_of_the_documentation_is_read(here: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "choosing.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(pairs:\n.*?)```", page, re.DOTALL)
    (here / "c.yaml").write_text(CONFIG[: CONFIG.index("pairs:")] + example)
    (here / "people.csv").write_text("age,city\n" + "30,Paris\n" * 18)
    relations = [pair.relation for pair in read_configs([here / "c.yaml"])[0].pairs]
    assert relations == ["add_remove", "replace_one", "add_remove"]


# --- a dry run names all code that a config would run, and shows the arguments of that code


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
