"""Wrong command lines that newcomers type, each with its exit code and the words of the answer.

An answer says what was found and where, what is allowed, and what to do.  No command of the table runs an audit.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from dpaudit.cli.app import COMMANDS

from .reports import sample
from .test_config_mistakes import CONFIG

Command = Callable[..., Result]

PINNED = "name: pinned\n" + CONFIG.replace("name: noise\n", "").replace(
    "  builtin: gaussian\n  params: {sigma: 1.0}\n", "  python: mine.py:release\n  requires: [opendp==0.14.2]\n"
)
SCORES = "score,included\n" + "".join(f"{number % 7},{number % 2}\n" for number in range(60))
LONG = "a" * 300
RESULT = "dpaudit-results/noise.json"

# ruff: noqa: E501  (one command line a row)
WRONG: dict[str, tuple[int, tuple[str, ...]]] = {
    # the command itself
    "rum c.yaml": (2, ("No such command 'rum'", "Did you mean 'run'?")),
    "audit c.yaml": (2, ("No such command 'audit'", "Try 'dpaudit -h' for help")),
    "c.yaml": (2, ("No such command 'c.yaml'.  Write: dpaudit run c.yaml",)),
    "replay noise.json": (2, (f"noise.json: No such file or directory; did you mean {RESULT}?",)),
    # run: configs
    "run": (2, ("Missing argument 'CONFIG'", "Try 'dpaudit run -h' for help")),
    "run c.yml": (2, ("error: c.yml: no such file or folder; did you mean c.yaml?",)),
    f"run {LONG}": (2, ("File name too long",)),
    "run empty": (2, ("error: empty: no .yaml file in this folder", "`dpaudit init` writes an example")),
    "run notes.txt": (2, ("notes.txt:1: must hold an audit, or a list of audits under the key audits, got str",)),
    "run mine.py": (2, ("mine.py is Python code, not a config", "mechanism: {python: mine.py:FUNCTION}")),
    "run mine.py:release": (2, ("no such file or folder", "write mechanism: {python: mine.py:release} into a .yaml file")),
    f"run {RESULT}": (2, ("is no config but perhaps a result", f"dpaudit report {RESULT}")),
    "run s.csv": (2, ("is no config but perhaps a file of scores", "dpaudit scores s.csv")),
    "run c.yaml c.yaml": (2, ("name must be unique, but 'noise' is also used at c.yaml:1",)),
    # run: options
    "run c.yaml --trails 100": (2, ("No such option: --trails", "--trials")),
    "run c.yaml --trials ten": (2, ("'--trials': must be a whole number such as 1000 or 1e5, got 'ten'",)),
    "run c.yaml --trials 100,000": (2, ("got '100,000'; write 100000",)),
    "run c.yaml --confidence 95": (2, ("error: --confidence must lie strictly between 0 and 1, got 95; did you mean 0.95?",)),
    "run c.yaml --confidence 95%": (2, ("must be a number such as 0.5, 1e-5 or 1/3, got '95%'; did you mean 0.95?",)),
    "run c.yaml --confidence 0,99": (2, ("got '0,99'; write 0.99",)),
    "run c.yaml --jobs 0": (2, ("error: --jobs must be -1 or at least 1, got 0",)),
    "run c.yaml --backend daks": (2, ("error: --backend must be one of loky, dask, ray; got 'daks'; did you mean dask?",)),
    "run c.yaml --scheduler tcp://127.0.0.1:8786": (2, ("scheduler is allowed only with the backends dask and ray",)),
    "run c.yaml --format jsn": (2, ("error: --format must be one of table, json", "got 'jsn'; did you mean json?")),
    "run c.yaml --only nois": (2, ("error: --only nois: no audit has this name; did you mean noise?",)),
    "run c.yaml --with numpy==2": (2, ("--with numpy==2: no audit requires numpy; the audits require no packages",)),
    "run pinned.yaml --with opndp==0.15": (2, ("--with opndp==0.15: no audit requires opndp; did you mean opendp?",)),
    "run pinned.yaml --with opendp=0.15": (2, ('a requirement must read like "opendp==0.14.2", got \'opendp=0.15\'',)),
    "run pinned.yaml --no-code": (2, ("--no-code allows builtin mechanisms only:", "pinned.yaml:1: pinned runs")),
    "run pinned.yaml --locked": (2, ("pinned.lock",)),
    "run c.yaml --output notes.txt": (2, ("error: --output notes.txt: is a file; name a folder, which will be created",)),
    "run c.yaml --log-json elsewhere/log": (2, ("error: --log-json", "elsewhere/log: No such file or directory")),
    "run c.yaml --resume anyway": (2, ("anyway: no such file or folder", "write --resume=anyway with an equals sign")),
    "run c.yaml --resume=anywy": (2, ("Invalid value for --resume: got 'anywy'", "--resume=anyway")),
    # compare
    "compare c.yaml": (2, ("Missing option '--with'", "Try 'dpaudit compare -h' for help")),
    "compare pinned.yaml --with 'opendp==0.15 opendp==0.16'": (2, ("opendp is given twice",)),
    "compare pinned.yaml --with 'opendp==0.15 numpy'": (2, ("got 'opendp==0.15 numpy'; spaces separate several",)),
    "run c.yaml --paper leter": (2, ("--paper must be one of a4, letter; got 'leter'; did you mean letter?",)),
    "init new.yaml --for pyhton": (2, ("--for must be one of builtin, python", "did you mean python?")),
    # bisect
    "bisect": (2, ("Missing argument 'CONFIG'", "Try 'dpaudit bisect -h' for help")),
    "bisect c.yaml opendp": (2, ("error: PACKAGE opendp: no audit requires opendp; the audits require no packages",)),
    "bisect pinned.yaml opendp==0.15": (2, ("error: PACKAGE must be a name such as opendp, got 'opendp==0.15'; see --from and --to",)),
    # replay and report
    "replay": (2, ("Missing argument 'RESULT.json'", "Try 'dpaudit replay -h' for help")),
    "replay c.yaml": (2, ("c.yaml is a config, not a result; run it first: dpaudit run c.yaml",)),
    "replay dpaudit-results": (2, (f"dpaudit-results is a folder; name a result, such as {RESULT}",)),
    "replay dpaudit-results/nois.json": (2, (f"No such file or directory; did you mean {RESULT}?",)),
    "reproduce": (2, ("Missing argument 'RESULT.json'",)),
    "replay broken.json": (2, ("broken.json is not a complete result of dpaudit",)),
    f"replay {RESULT} --folder elsewhere": (2, ("error: --folder elsewhere: there is no such folder",)),
    "report": (2, ("Missing argument 'RESULT.json'", "Try 'dpaudit report -h' for help")),
    "report empty": (2, ("empty: no result (NAME.json) in this folder; `dpaudit run` writes results",)),
    "report other.json": (2, ("other.json is not a complete result of dpaudit", "its format is 'None'")),
    f"report {RESULT} -o report.docx": (2, ("must end in .pdf, .html, .htm or .md, got report.docx",)),
    f"report {RESULT} -o elsewhere/report.pdf": (2, ("--output elsewhere/report.pdf: the folder elsewhere does not exist; create it first",)),
    # site
    "site": (2, ("Missing argument 'RESULT.json'", "Try 'dpaudit site -h' for help")),
    f"site {RESULT}": (2, ("Missing option", "--output", "Try 'dpaudit site -h' for help")),
    f"site {RESULT} -o c.yaml": (2, ("--output: c.yaml is a file; name a folder, which will be created",)),
    f"site {RESULT} -o site --url example.org": (2, ("--url must be an address such as https://example.org/audits, got 'example.org'",)),
    "site dpaudit-results -o dpaudit-results": (2, ("--output dpaudit-results: holds the results; name another folder, such as dpaudit-results/site",)),
    # convert and plan
    "convert": (2, ("Missing argument 'CLAIM'", "Try 'dpaudit convert -h' for help")),
    "convert 'gausian(mu=1)'": (2, ("error: unknown claim 'gausian'; did you mean gaussian?  Write gaussian(mu=...)",)),
    "convert gaussian": (2, ("'gaussian' has no parameters; write gaussian(mu=...)",)),
    "convert 'gaussian(mu=1'": (2, ("claim 'gaussian(mu=1' lacks a )",)),
    "convert 'gaussian(sigma=1)'": (2, ("gaussian has no parameter sigma", "mu = sensitivity / sigma")),
    "convert 1": (2, ("'1' is not a claim; did you mean pure(epsilon=1)?",)),
    "convert 'log(3)'": (2, ("'log(3)' is not a claim; did you mean pure(epsilon=log(3))?",)),
    "convert '(1e-5, 1)'": (2, ("did you mean approximate(epsilon=1, delta=1e-05)?",)),
    "convert eps=1 --delta 2": (2, ("delta must lie in [0, 1], got 2",)),
    "convert eps=1 --delta 1e-5 --epsilon 1": (2, ("--delta and --epsilon cannot be used together; give one of them",)),
    "convert eps=1 --plot elsewhere/curve.svg": (2, ("--plot elsewhere/curve.svg: the folder elsewhere does not exist",)),
    "plan": (2, ("Missing argument 'CLAIM'", "Try 'dpaudit plan -h' for help")),
    "plan eps=1 eps=2 --power 90": (2, ("error: --power must lie strictly between 0 and 1, got 90; did you mean 0.9?",)),
    # list, init, schema and clean
    "list": (2, ("Missing argument 'KIND'", "Try 'dpaudit list -h' for help")),
    "list claim": (2, ("KIND must be one of attacks, claims, mechanisms, configs; got 'claim'; did you mean claims?",)),
    "init c.yaml": (2, ("error: c.yaml already exists; choose another file name",)),
    "schema c.yaml": (2, ("unexpected extra argument", "c.yaml", "Try 'dpaudit schema -h' for help")),
    "clean --ys": (2, ("No such option: --ys", "--yes")),
    # scores
    "scores": (2, ("Missing argument 'FILE'", "Try 'dpaudit scores -h' for help")),
    "scores s.csv --independence none --included-at-random coin": (2, ("--included-at-random must be coins or fixed_number; got 'coin'; did you mean coins?",)),
    "scores ss.csv --independence runs": (2, ("error: ss.csv: No such file or directory; did you mean s.csv?",)),
    "scores notes.txt --independence runs": (2, ("notes.txt: the name must end in one of .csv, .npz",)),
    "scores wrong.csv --independence runs": (2, ("wrong.csv: there is no column 'score' among scor, included; is it 'scor'?",)),
    "scores s.csv --independence runs --claim 'gausian(mu=1)'": (2, ("unknown claim 'gausian'; did you mean gaussian?",)),
    "scores s.csv --independence runs --delta 5": (2, ("error: --delta must lie in [0, 1], got 5",)),
    "scores s.csv --independence runs --assuming gausian": (2, ("--assuming must be gaussian or a claim with one ?", "got 'gausian'; did you mean gaussian?")),
    "scores s.csv --independence runs -o scores.doc": (2, ("error: --output scores.doc: the name must end in one of .json, .pdf, .html, .htm, .md",)),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of the table; no command of the table changes a file."""
    path = tmp_path_factory.mktemp("wrong")
    (path / "c.yaml").write_text(CONFIG)
    (path / "pinned.yaml").write_text(PINNED)
    (path / "mine.py").write_text("def release(d, rng): return d[0] + rng.normal()\n")
    (path / "notes.txt").write_text("an audit\n")
    (path / "s.csv").write_text(SCORES)
    (path / "wrong.csv").write_text(SCORES.replace("score", "scor"))
    (path / "broken.json").write_text("{")
    (path / "other.json").write_text('{"a": 1}')
    (path / "empty").mkdir()
    (path / "dpaudit-results").mkdir()
    sample.violation().to_json(path / RESULT)
    return path


@pytest.fixture
def wrong(folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Return `command` in the folder of the table."""
    monkeypatch.chdir(folder)
    before = contents(folder)
    yield command
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder with their bytes."""
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_command_line_is_explained(line: str, wrong: Command) -> None:
    code, words = WRONG[line]
    done = wrong(*shlex.split(line))
    assert done.exit_code == code
    for part in words:
        assert part in done.stderr
    assert "Traceback" not in done.output
    assert done.stdout == ""
    assert len(done.stderr) < 1500


def test_the_table_has_every_command() -> None:
    assert set(COMMANDS) - {"help", "sweep", "words"} <= {line.split()[0] for line in WRONG}


@pytest.mark.parametrize("line", ["run c.yaml --trials ten", "run c.yaml --trails 5", "replay", "list", "rum c.yaml"])
def test_boxes_of_errors_fit_80_columns(line: str, wrong: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, wrong(*shlex.split(line)).stderr.splitlines())) <= 80
