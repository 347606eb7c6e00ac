"""The documentation is true: the Python code of every page runs from top to bottom, and links and commands exist."""

import ast
import importlib
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import Result

import dpaudit
from dpaudit import plan

from .unseeded import CONFIDENCE, CONFIDENCE_OPTION

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
NIGHTLY = {"after-a-violation", "attacks", "choosing", "composition", "concepts", "e-value", "libraries", "long-audits"}
NIGHTLY |= {"randomised-response", "scores", "sessions", "streams", "synthetic-data", "training", "tutorial"}
TEACHING = {"after-a-violation", "choosing", "composition", "concepts", "e-value", "index", "noise"}
TEACHING |= {"randomised-response", "scores", "sessions", "training"}
RUN_ELSEWHERE = {"reports"}  # tests/reports/test_figures.py runs this page, and checks the written files


CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().splitlines()
AS_SHOWN = all(f"{name}=={version(name)}" in CONSTRAINTS for name in ("numpy", "scipy", "scikit-learn"))
OUTPUT = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)  # a block, and the output below it


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page, except those that require a separate environment."""
    found = re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return [block for block in found if not block.startswith("# requires:")]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.chance, *[pytest.mark.slow] * (page.stem in NIGHTLY)], id=page.stem)
        for page in PAGES
        if blocks(page, "python") and page.stem not in RUN_ELSEWHERE
    ],
)
@pytest.mark.usefixtures("known_seeds")
def test_the_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tutorial audits OpenDP, which draws different noise each time, so the test raises the confidence.

    The test shortens audits of true claims and the replay, and names an attack, which changes no outcome.
    A text block below a block of Python is the output of this block, with the versions of constraints.txt.

    Fails by chance < 1 in 10**6.  All other pages use seeds.
    """
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {"__name__": "page"}
    for code, shown in OUTPUT.findall(page.read_text(encoding="utf-8")):
        if code.startswith("# requires:"):
            continue
        if page.stem == "tutorial":
            code = code.replace("confidence=0.999", f"confidence={CONFIDENCE!r}").replace(
                "trials=2000", "trials=60, attacks='logistic'"
            )
            code = code.replace("trials=5000", "trials=5000, attacks='logistic', confirm='never'")
            code = code.replace("wrong, mechanism, pair", "wrong, mechanism, pair, trials=1000, attacks='logistic'")
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), space)
        if shown and AS_SHOWN:
            assert without_seconds(printed.getvalue()) == without_seconds(shown)


@pytest.mark.parametrize("page", sorted(NIGHTLY))
def test_names_that_the_python_of_a_long_page_imports_exist(page: str) -> None:
    """`test_the_python_runs` runs these pages among the slow tests only."""
    for code in blocks(ROOT / "docs" / f"{page}.md", "python"):
        imports: list[ast.stmt] = [
            node for node in ast.parse(code).body if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        exec(compile(ast.Module(imports, []), page, "exec"), {})


def without_seconds(words: str) -> str:
    return re.sub(r" in \d+\.\d s", "", words)


@pytest.mark.parametrize("page", sorted(TEACHING))
def test_pages_that_teach_show_what_their_code_prints(page: str) -> None:
    """Each block that prints is followed by its output, which `test_the_python_runs` compares."""
    found = OUTPUT.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
    assert found
    assert all(shown for code, shown in found if "print(" in code)


def test_the_readme_shows_the_witness_of_the_front_page() -> None:
    """`test_the_python_runs` compares the front page with what the same code prints."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (shares,) = re.findall(
        r"VIOLATION: (.+ %) of the outputs of d0, and (.+ %) of the outputs of d1, are above (.+)", readme
    )
    of0, of1, threshold = shares
    witness = f"output above {threshold}: {of0} of the outputs of d0, {of1} of those of d1;"
    assert witness in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_the_sample_reports_name_no_folder_of_a_machine() -> None:
    for file in (ROOT / "docs" / "samples").glob("*.html"):
        text = re.sub(r"<style>.*?</style>", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.findall(r"(?<![\w.:/<])/\w+/[\w./-]*|[A-Z]:\\\\", text), file
    assert len(list((ROOT / "docs" / "samples").iterdir())) == 7


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for name in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / name).exists(), name


@pytest.mark.slow
def test_the_site_can_be_built(tmp_path: Path) -> None:
    """The build is strict: every page is in the index, and every link and name exists.  Needs the extra `docs`."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "-d", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "confidence" in (tmp_path / "site" / "reference" / "audit" / "index.html").read_text()
    for page in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|link)[^>]*(?:src|href)=\"?(https?://[^\" >]+)", page.read_text())
        assert not [address for address in loaded if "canonical" not in address], page


@pytest.mark.chance
def test_the_tutorial_works_as_it_is_typed(tmp_path: Path, command: Callable[..., Result]) -> None:
    """Only the confidence, the number of trials and the attack differ from the page.

    OpenDP draws different noise each time, so at 99.9 % the audit or its replay would refute the true claim now and
    then.  Fails by chance < 1 in 10**6.  Fewer trials change no outcome.
    """
    page = ROOT / "docs" / "tutorial.md"
    (tmp_path / "release.py").write_text(blocks(page, "python")[1])
    config = blocks(page, "yaml")[1]
    for old, new in (
        ("confidence: 0.999 ", f"confidence: {CONFIDENCE_OPTION[1]} "),
        ("trials: 2000\n", "trials: 60\nattacks: median_clipped\n"),
    ):
        assert old in config
        config = config.replace(old, new)
    (tmp_path / "audit.yaml").write_text(config)
    typed_commands = [shlex.split(block, comments=True) for block in blocks(page, "sh")[1:]]
    assert [typed[:2] for typed in typed_commands] == [["dpaudit", verb] for verb in ("plan", "run", "replay")]
    for typed in typed_commands[1:]:
        done = command(*typed[1:])
        assert done.exit_code == 0, done.output


@pytest.mark.chance
def test_the_function_of_the_tutorial_can_be_audited(tmp_path: Path, command: Callable[..., Result]) -> None:
    """The claim is true, so a violation is found with probability < 1e-6.  Fewer trials change no outcome."""
    page = ROOT / "docs" / "tutorial.md"
    (tmp_path / "ages.py").write_text(blocks(page, "python")[0])
    (tmp_path / "audit.yaml").write_text(blocks(page, "yaml")[0])
    done = command("run", "audit.yaml", "--trials", "60", "--confidence", CONFIDENCE_OPTION[1], "--no-pdf")
    assert done.exit_code == 0, done.output
    assert "count-over-40" in done.stdout


@pytest.mark.slow
def test_the_tutorials_plan_works_as_it_is_typed(command: Callable[..., Result]) -> None:
    """The test uses no randomness; the next one types another plan."""
    typed = shlex.split(blocks(ROOT / "docs" / "tutorial.md", "sh")[1], comments=True)
    assert typed[:2] == ["dpaudit", "plan"]
    done = command(*typed[1:])
    assert done.exit_code == 0, done.output
    shown = blocks(ROOT / "docs" / "tutorial.md", "text")[1]
    assert shown in done.stdout or not AS_SHOWN


def test_a_plan_states_the_time_of_slow_runs(command: Callable[..., Result]) -> None:
    """The test uses no randomness."""
    text = (ROOT / "docs" / "synthetic-data.md").read_text(encoding="utf-8")
    (typed,) = re.findall(r"^    \$ (dpaudit plan .*)$", text, re.MULTILINE)
    done = command(*shlex.split(typed)[1:])
    assert done.exit_code == 0, done.output
    last = done.stdout.splitlines()[-1]
    assert last.startswith("Runs on both datasets, 60 s each, take")
    assert f"    {last}\n" in text or not AS_SHOWN
    assert "--seconds must be a number above 0" in command(*shlex.split(typed)[1:-1], "-1").output


def test_the_reference_lists_every_public_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build of the site writes a page for each, from the docstring."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    pages = importlib.import_module("pages")
    listed = pages.names()
    assert all(pages.public(name).__doc__ for name in listed)
    assert set(dpaudit.__all__) - {name.rpartition(".")[2] for name in listed} == {"__version__"}


CHOOSING = Path(__file__).parent.parent / "docs" / "choosing.md"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "truths"),
    [
        ("gaussian(mu=1)", ("gaussian(mu=2)", "gaussian(mu=1.5)", "gaussian(mu=1.2)", "gaussian(mu=1.1)")),
        ("approximate(epsilon=4.38, delta=1e-5)", ("gaussian(mu=1.2)",)),
    ],
)
def test_mean_numbers_of_runs_are_those_that_plan_estimates(claim: str, truths: tuple[str, ...]) -> None:
    """`plan` simulates with a fixed seed, and the page shows its numbers with three digits."""
    text = CHOOSING.read_text(encoding="utf-8")
    for truth in truths:
        mean = plan(claim, truth).mean_trials
        assert mean is not None
        assert f" {float(f'{mean:.3g}'):,.0f} |" in text, (claim, truth, mean)


def test_the_notebooks_are_those_of_their_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """`test_the_python_runs` runs the same code.  If this fails, run `python docs/notebooks.py`."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    notebooks = importlib.import_module("notebooks")
    for name in notebooks.PAGES:
        text = (ROOT / "docs" / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
        assert text == notebooks.notebook(name), name
        sources = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        assert sources == [block.strip() for block in blocks(ROOT / "docs" / f"{name}.md", "python")]


# --- the list of threats names existing tests, so that a test supports each of its statements


PAGE = (ROOT / "tests" / "threats.md").read_text(encoding="utf-8")
LINES = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| what a")]
NODES = sorted(set(re.findall(r"`(tests/[^`]*::[^`]*)`", PAGE)))


def test_each_line_of_the_table_names_a_test() -> None:
    assert len(LINES) >= 30
    assert [line for line in LINES if not re.search(r"\| `tests/[\w/]+\.py::test_\w+` \|$", line)] == []


@pytest.mark.parametrize("node", NODES)
def test_the_named_test_exists_and_is_run(node: str) -> None:
    file, _, name = node.partition("::")
    module = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = [item for item in module.body if isinstance(item, ast.FunctionDef) and item.name == name]
    assert len(found) == 1, f"{file} has no test {name}"
    marks = "\n".join(map(ast.unparse, found[0].decorator_list))  # single parameters may be slow
    assert not re.search(r"^pytest\.mark\.(skip|xfail|slow)\b", marks, re.M), f"{node} is not run every time"


# --- the site in headless Chromium


DOCS = Path(__file__).parent.parent / "docs"
NUMBER = re.compile(r"-?\d+\.\d+")
LONG = {"audited-curve", "score-choices", "spinner-curve"}
IMAGE = re.compile(r"!\[([^\]]*)\]\(figures/([\w-]+)\.svg\)")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], str]]:
    monkeypatch.syspath_prepend(str(DOCS))
    found: dict[str, Callable[[], str]] = runpy.run_path(str(DOCS / "figures.py"))["FIGURES"]
    return found


def assert_same(drawn: str, name: str) -> None:
    """Compare a figure with its file.  Positions may differ by a tenth of a pixel, as versions of SciPy do."""
    file = (DOCS / "figures" / f"{name}.svg").read_text(encoding="utf-8")
    assert NUMBER.sub("", drawn) == NUMBER.sub("", file), name
    pairs = zip(NUMBER.findall(drawn), NUMBER.findall(file), strict=True)
    assert max(abs(float(one) - float(other)) for one, other in pairs) < 0.11, name


def test_the_files_are_what_the_command_draws(figures: dict[str, Callable[[], str]]) -> None:
    """If this fails, run `python docs/figures.py`."""
    assert {file.stem for file in (DOCS / "figures").iterdir()} == set(figures)
    for name in figures.keys() - LONG:
        assert_same(figures[name](), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONG))
def test_the_file_of_a_long_simulation_is_what_the_command_draws(
    figures: dict[str, Callable[[], str]], name: str
) -> None:
    assert_same(figures[name](), name)


def test_the_picture_of_trainings_shows_the_table_of_measurements(figures: dict[str, Callable[[], str]]) -> None:
    rows: dict[float, tuple[tuple[float, ...], ...]] = sys.modules["drawing.trainings"].CERTIFIED
    text = (ROOT / "benchmarks" / "HISTORY.md").read_text(encoding="utf-8")
    for claimed, points in rows.items():
        for models, median, low, high in points:
            row = rf"\| {claimed:g} \| {models:,} \| \d+ \| {median:.2f} \| {low:.2f} \| {high:.2f} \|"
            assert re.search(row, text), (claimed, models)


def test_every_figure_is_shown_and_described(figures: dict[str, Callable[[], str]]) -> None:
    """The description is for readers who do not see the figure, so it is longer than a title."""
    shown = [image for page in DOCS.glob("*.md") for image in IMAGE.findall(page.read_text(encoding="utf-8"))]
    assert {name for _, name in shown} == set(figures)
    assert all(len(words.split()) >= 20 for words, _ in shown)
