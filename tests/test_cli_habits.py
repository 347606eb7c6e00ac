"""Wrong command lines that newcomers type, each with its exit code and the words of the answer.

An answer says what was found and where, what is allowed, and what to do.  No command of the table runs an audit.
"""

import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from dpaudit.cli.app import COMMANDS, app
from dpaudit.cli.start import CASES
from dpaudit.config.files import read_configs
from dpaudit_reports import FORMATS
from dpaudit_reports.formats import Audited, facts

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
    f"site {RESULT} -o taken": (2, ("error: --output: taken holds files that dpaudit did not write, or that were changed since: index.html",)),
    f"site {RESULT} -o c.yaml": (2, ("--output: c.yaml is a file; name a folder, which will be created",)),
    f"site {RESULT} -o site --url example.org": (2, ("--url must be an address such as https://example.org/audits, got 'example.org'",)),
    "site dpaudit-results -o dpaudit-results": (2, ("--output dpaudit-results: holds the results; name another folder, such as dpaudit-results/site",)),
    # convert and plan
    "convert": (2, ("Missing argument 'CLAIM'", "Try 'dpaudit convert -h' for help")),
    "convert 'gausian(mu=1)'": (2, ("error: unknown claim 'gausian'; did you mean gaussian?  Write gaussian(mu=...)",)),
    "convert 'gaussian(sigma=1)'": (2, ("gaussian has no parameter sigma", "mu = sensitivity / sigma")),
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
    (path / "taken").mkdir()
    (path / "taken" / "index.html").write_text("mine")
    (path / "dpaudit-results").mkdir()
    sample.violation().to_json(path / RESULT)
    return path


@pytest.fixture
def wrong(folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    monkeypatch.chdir(folder)
    before = contents(folder)
    yield command
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, bytes]:
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


# --- habits of other command lines, such as completion and `help COMMAND`, and the page with all options


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("dpaudit ru", {"run"}),
        ("dpaudit list c", {"claims", "configs"}),
        ("dpaudit run --tri", {"--trials"}),
        ("dpaudit run --format s", {"sarif"}),
        ("dpaudit run --backend ", {"loky", "dask", "ray"}),
        ("dpaudit scores s.csv --independence r", {"runs"}),
        ("dpaudit scores s.csv --included-at-random f", {"fixed_number"}),
    ],
)
def test_commands_options_and_values_are_completed(words: str, completed: set[str]) -> None:
    """The environment is the one with which bash asks for completions."""
    asked = {"_DPAUDIT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = CliRunner().invoke(app, [], env=asked, prog_name="dpaudit")
    assert set(done.stdout.split()) == completed


def test_help_command_shows_the_help_of_a_command(command: Command) -> None:
    assert command("help", "run").stdout == command("run", "--help").stdout
    assert command("help").stdout == command("--help").stdout


def test_verbose_shows_evidence_and_bounds_of_each_audit(tmp_path: Path, command: Command) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    bounds = "60 runs per dataset in"
    assert bounds not in command("run", "c.yaml", "--no-pdf").stderr
    done = command("run", "c.yaml", "--no-pdf", "-v")
    assert bounds in done.stderr
    assert "mu >= 0, epsilon >= 0 at delta = 0 proven" in done.stderr
    assert bounds not in done.stdout


@pytest.mark.parametrize(("written", "trials"), [("4e1", 40), ("2**5", 32), ("9007199254740993", 0)])
def test_numbers_on_the_command_line_may_be_expressions(
    written: str, trials: int, tmp_path: Path, command: Command
) -> None:
    """The last number is above the maximum, and no float equals it."""
    (tmp_path / "c.yaml").write_text(CONFIG)
    done = command("run", "c.yaml", "--no-pdf", "--trials", written, "--confidence", "9/10")
    if trials:
        assert f"{trials} runs" in done.stderr
    else:
        assert done.exit_code != 0
        assert "9007199254740993" in done.stderr


@pytest.mark.parametrize("case", CASES)
def test_the_starting_config_of_each_case_is_complete(
    case: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each mechanism runs once on each dataset.  Its claim is true, so no audit is needed.

    tests/running/test_clients.py runs the programs that need other tools than Python.
    """
    monkeypatch.chdir(tmp_path)
    wrote = command("init", "new.yaml", "--for", case)
    assert wrote.exit_code == 0
    assert wrote.stderr.endswith("dpaudit run new.yaml\n")
    planned, *_ = read_configs([tmp_path / "new.yaml"])
    assert {path.name for path in tmp_path.iterdir()} >= {"new.yaml", *CASES[case].files}
    assert "{file}" not in (tmp_path / "new.yaml").read_text()
    if CASES[case].readme:
        assert f"{CASES[case].build}dpaudit run new.yaml --only {planned.config.name}" in wrote.stdout
        return
    mechanism, claim = planned.load()
    found: Any = getattr(mechanism, "loaded", mechanism)
    try:
        assert claim.beta(0.1) > 0
        for dataset in (dataset for pair in planned.pairs[:2] for dataset in (pair.d0, pair.d1)):
            rng = np.random.default_rng(1)
            outputs = found.sample(dataset, 1, rng) if hasattr(found, "sample") else [found(dataset, rng)]
            assert len(outputs) == 1
    finally:
        getattr(mechanism, "close", lambda: None)()


def test_starting_files_replace_nothing(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_mechanism.py").write_text("mine")
    done = command("init", "--for", "python")
    assert done.exit_code == 2
    assert "my_mechanism.py already exists; choose another file name or another folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["my_mechanism.py"]
    done = command("init", "--for", "pyhton")
    assert done.exit_code == 2
    assert "did you mean python?" in done.stderr


DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "command-line.md").read_text(encoding="utf-8")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def section(name: str) -> str:
    return PAGE.split(f"\n### dpaudit {name}\n")[1].split("\n### ")[0]


def test_the_page_has_the_texts_of_the_program() -> None:
    """If this fails, run `python docs/options.py`."""
    script = runpy.run_path(str(DOCS / "options.py"))
    assert script["page_with"](script["sections"](), PAGE) == PAGE


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_the_options_that_help_prints(
    name: str, command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test reads the printed `--help`, not the texts of the script that writes the page."""
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setenv("TERM", "dumb")
    rows = [line for line in command(name, "--help").output.splitlines() if re.match(r"│ +\*? *-", line)]
    printed = {option for row in rows for option in OPTION.findall(row[:30])}  # before the columns of value and help
    cells = re.findall(r"^\| (`-.*?) \| ", section(name), flags=re.M)
    shown = {option for cell in cells for option in OPTION.findall(cell)}
    assert printed - {"--help", "-h"} == shown
    assert printed, "help prints at least its own option"


def test_the_page_has_the_keys_of_json() -> None:
    (listed,) = re.findall(r"The objects of `json` have these keys: (.*?)\.\n", PAGE, flags=re.S)
    assert re.findall(r"`(\w+)`", listed) == list(facts(Audited(name="")))


def test_the_page_has_the_formats() -> None:
    (table,) = re.findall(r"^\| `--format` \| for .*?\n\n", PAGE, flags=re.M | re.S)
    assert re.findall(r"^\| `(\w+)` \|", table, flags=re.M) == list(FORMATS)


def test_the_page_lists_the_keys_of_the_schema() -> None:
    """If this fails, run `python docs/keys.py`."""
    keys = runpy.run_path(str(DOCS / "keys.py"))
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert keys["page_with"](keys["sections"](), page) == page
    for key in ("failures", "out_of_domain", "python_version", "from_library", "expect"):
        assert f"| `{key}` | " in page


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("configuration", ["my-audit"]),
        ("libraries", ["noisy-count", "noisy-mean", "laplace"]),
    ],
)
def test_the_examples_are_read(page: str, names: list[str], tmp_path: Path) -> None:
    found = []
    for example in re.findall(r"```yaml\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL):
        (tmp_path / "c.yaml").write_text(example)
        found += (
            [] if "entries:" in example else [planned.config.name for planned in read_configs([tmp_path / "c.yaml"])]
        )
    assert sorted(found) == sorted(names)
