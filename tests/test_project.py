"""The project file pins what tests need, a source distribution is complete, and the README works as printed."""

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from typer.testing import CliRunner

import dpaudit
from dpaudit.cli.app import app
from dpaudit.engine.result_parts import provenance_of

from .unseeded import CONFIDENCE_OPTION

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONSTRAINTS, OLDEST = (
    dict(line.lower().split("==") for line in (ROOT / name).read_text("utf-8").splitlines() if line and line[0] != "#")
    for name in ("constraints.txt", "constraints-oldest.txt")
)
EXTRAS = PROJECT["project"]["optional-dependencies"]
DIRECT = [
    requirement
    for requirement in map(
        Requirement,
        [
            *PROJECT["project"]["dependencies"],
            *(text for extra in ("quickstart", "accounting", "dask", "unit") for text in EXTRAS[extra]),
        ],
    )
    if requirement.name != "dpaudit"
]
LINT = [Requirement(text) for text in EXTRAS["lint"]]  # tests require that these linters find nothing


@pytest.mark.parametrize("requirement", LINT, ids=lambda requirement: requirement.name)
def test_linters_and_stubs_are_pinned_exactly(requirement: Requirement) -> None:
    assert str(requirement.specifier) == f"=={CONSTRAINTS[requirement.name.lower()]}"


def test_pre_commit_uses_the_pinned_versions() -> None:
    """Pre-commit uses the pinned versions of the linters, and of the packages whose types mypy reads."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert {repo["repo"] for repo in config["repos"]} == {"local"}  # other repositories would have separate versions
    used = {text.lower() for hook in hooks for text in hook["additional_dependencies"]}
    assert used <= {f"{name}=={version}" for name, version in CONSTRAINTS.items()}
    assert {f"{r.name}{r.specifier}".lower() for r in LINT} <= used


def test_every_package_of_the_test_command_is_constrained() -> None:
    names = {canonicalize_name(requirement.name) for requirement in [*DIRECT, *LINT]}
    assert names <= {canonicalize_name(name) for name in CONSTRAINTS}
    assert all(str(Version(found)) == found for found in CONSTRAINTS.values())
    assert EXTRAS["test"] == ["dpaudit[unit,lint]"]


@pytest.mark.parametrize("requirement", DIRECT, ids=lambda requirement: requirement.name)
def test_constraints_are_the_lower_bounds_and_allowed(requirement: Requirement) -> None:
    """A lower bound is known to work only if tests run with it."""
    (bound,) = [one.version for one in requirement.specifier if one.operator == ">="]
    assert Version(OLDEST[requirement.name.lower()]) == Version(bound)
    assert CONSTRAINTS[requirement.name.lower()] in requirement.specifier


def test_a_source_distribution_holds_what_its_tests_read() -> None:
    included = set(PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    read = set()
    for file in (ROOT / "tests").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        read |= set(re.findall(r"(?:ROOT|parents\[\d\]|parent\.parent) / \"([^\"]+)\"", text))
    needed = {name for name in read if (ROOT / name).exists()} | {"benchmarks"}
    for page in ("README.md", "ARCHITECTURE.md", *PAGES):
        links = re.findall(r"\]\((?!https?:)([^)#/]+)", (ROOT / page).read_text(encoding="utf-8"))
        needed |= {page, *links}
    assert {"docs", ".ci", ".github", "audit", "constraints.txt"} <= needed
    assert needed - {"pyproject.toml"} <= included  # which is in every source distribution
    assert all((ROOT / name).exists() for name in included)


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("convert gaussian(mu=1) --delta 1e-5", 0, "4.377"),
        ("list claims", 2, "error: dpaudit audits mechanisms on Linux, macOS and other POSIX systems only."),
    ],
)
def test_a_system_without_fcntl_reads_and_refuses_to_audit(command: str, code: int, words: str) -> None:
    """As on Windows."""
    assert "Operating System :: POSIX" in PROJECT["project"]["classifiers"]
    start = (
        "import sys; sys.modules |= dict.fromkeys(['fcntl', 'resource', 'pwd']); import dpaudit.__main__ as m; m.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", start, *command.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert (done.stderr if code else done.stdout).startswith(words)


def test_the_table_of_dependencies_names_each_of_them() -> None:
    rows = re.findall(
        r"^\| ([\w-]+)(?: with [^|]*)? \| \d+", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(rows) == sorted(Requirement(text).name for text in PROJECT["project"]["dependencies"])


@pytest.mark.slow
def test_the_built_wheel_works_in_a_fresh_environment(tmp_path: Path) -> None:
    """Outside the checkout, with nothing but what the wheel requires and pytest.  The seed is fixed."""
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    clone = ["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", str(tmp_path / "clone")]  # without stray files
    build = [python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(tmp_path / "clone")]
    for command in (clone, build):
        subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"dpaudit-{VERSION}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "dpaudit",
        "_dpaudit_pytest.py",
        "dpaudit_attacks",
        "dpaudit_reports",
        f"dpaudit-{VERSION}.dist-info",
    }
    assert "](docs/" not in zipfile.ZipFile(wheel).read(f"dpaudit-{VERSION}.dist-info/METADATA").decode()
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel), "pytest"], check=True
    )
    shutil.copytree(ROOT / "tests" / "plugin" / "example", tmp_path / "example")
    (tmp_path / "wrong.yaml").write_text(
        "name: wrong\nclaim: pure(epsilon=1)\nmechanism: {builtin: geometric, params: {scale: 0.3}}\n"
        "pairs: [{d0: [0], d1: [1]}]\nseed: 1\n"
    )
    for code, typed in (
        (0, "dpaudit --version"),
        (0, "dpaudit init --for rust"),
        (0, "dpaudit sweep opendp==0.16.0 --dry-run"),
        (1, "dpaudit run wrong.yaml"),
        (0, "dpaudit report dpaudit-results/wrong.json -o wrong.html"),
        (0, "pytest -q example"),
    ):
        program, *words = typed.split()
        done = subprocess.run(
            [str(Path(python).with_name(program)), *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, f"{typed}: {done.stdout}{done.stderr}"


VERSION = PROJECT["project"]["version"]
ASK = "import dpaudit, sys; print(dpaudit.__version__, 'numpy' in sys.modules)"


def _asked(*roots: Path, code: str = ASK) -> list[str]:
    """Return the output of a Python without installed packages that has these folders on its path."""
    start = f"import sys; sys.path[:0] = {[str(root) for root in roots]}; {code}"
    return subprocess.run(
        [sys.executable, "-S", "-E", "-c", start], capture_output=True, text=True, check=True
    ).stdout.split()


def _copy(to: Path) -> Path:
    (to / "dpaudit").mkdir(parents=True)
    for name in ("__init__.py", "text.py", "values.py"):
        shutil.copy(Path(str(dpaudit.__file__)).parent / name, to / "dpaudit" / name)
    return to


def test_the_version_is_that_of_the_project() -> None:
    assert dpaudit.__version__ == VERSION
    assert "__version__" in dpaudit.__all__
    assert (provenance_of(seed=1, mechanism="m").packages or {})["dpaudit"] == VERSION


def test_importing_does_not_look_for_the_version() -> None:
    code = "import dpaudit, sys; print({'importlib.metadata', 'tomllib', 'pathlib'} & set(sys.modules))"
    assert _asked(ROOT / "audit", code=code) == ["set()"]


def test_a_checkout_that_is_not_installed_knows_its_version(tmp_path: Path) -> None:
    assert _asked(ROOT / "audit") == [VERSION, "False"]
    source = _copy(tmp_path / "audit")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "dpaudit"\nversion = "9.8.7"\n')
    assert _asked(source) == ["9.8.7", "False"]


@pytest.mark.parametrize(
    "project", [None, "[project]\nname = 'other'\nversion = '9'", "[project]\nname = 'dpaudit'", "project = 3", "]"]
)
def test_an_installed_package_takes_its_version_from_its_metadata(tmp_path: Path, project: str | None) -> None:
    """A project file of another project in a parent folder must not matter."""
    source = _copy(tmp_path / "lib")
    if project is not None:
        (tmp_path / "pyproject.toml").write_text(project)
    assert _asked(source) == ["0+unknown", "False"]
    (source / "dpaudit-6.5.dist-info").mkdir()
    (source / "dpaudit-6.5.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: dpaudit\nVersion: 6.5\n")
    assert _asked(source) == ["6.5", "False"]


def test_the_installed_metadata_agree_with_the_project() -> None:
    """If they differ, the tests run with another installation: repeat `pip install -e .`."""
    assert metadata.version("dpaudit") == VERSION


README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.usefixtures("known_seeds")
@pytest.mark.parametrize("code", blocks("python"))
def test_the_python_code_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = code.replace("seed=4", "seed=4, attacks='median_clipped', confirm='never'")  # much faster
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


def test_ci_runs_the_readme_test_command() -> None:
    """CI runs exactly the second command, after changing to the root folder and looking for a browser, then lint."""
    commands = [block.strip() for block in blocks("sh")]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()
    assert "pytest" in commands[1]
    place = script.index(commands[1])
    assert [line.split()[0] for line in script[:place] if not line.startswith("#")] == ["set", "cd", "command"]


def test_the_files_it_names_exist() -> None:
    named = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    named += [word for block in blocks("sh") for word in shlex.split(block, comments=True) if word.endswith(".yaml")]
    assert named
    for name in named:
        assert (ROOT / name).exists(), name


def test_no_mechanism_is_ever_said_to_be_private() -> None:
    """No text for users contains words that no audit can justify."""
    for file in [*ROOT.glob("*.md"), *(ROOT / "reports").rglob("*.py"), *(ROOT / "audit").rglob("*.py")]:
        for line in file.read_text(encoding="utf-8").lower().splitlines():
            claims_too_much = re.search(
                r"\b(is proven private|audit passed|passed the audit|certified private)\b", line
            )
            assert not claims_too_much, f"{file}: {line}"


@pytest.fixture(scope="module")
def quickstart() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quickstart", ROOT / "configs" / "quickstart.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.chance
def test_the_quickstart_finds_the_one_mistake_and_writes_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The README's command, with one attack, a higher confidence, and few trials of the right mechanisms.

    At this confidence 500 to 1,100 runs detect the mistake, so 2,000 runs miss it with probability < 1e-6.  A right
    mechanism is refuted with probability < 1e-6, by the guarantee of the command.
    """
    config = (ROOT / "configs" / "quickstart.yaml").read_text().replace("trials:", "attacks: threshold\n    trials:")
    (tmp_path / "q.yaml").write_text(config.replace("quickstart.py", str(ROOT / "configs" / "quickstart.py")))
    monkeypatch.setenv("COLUMNS", "200")
    folder, mistake, others = tmp_path / "results", "pydp-sum-clamped-to-the-data", ("opendp-*", "pydp-bounded-sum")
    command = ["run", str(tmp_path / "q.yaml"), "-o", str(folder), "--confirm", "never", *CONFIDENCE_OPTION]
    done = CliRunner().invoke(app, [*command, "--only", mistake, "--trials", "2000"])
    assert done.exit_code == 1, done.stderr
    assert {path.name for path in folder.iterdir()} == {f"{mistake}.json", f"{mistake}.pdf"}
    assert (folder / f"{mistake}.pdf").read_bytes().startswith(b"%PDF")
    only = [part for name in others for part in ("--only", name)]
    right = CliRunner().invoke(app, [*command, *only, "--trials", "40", "--no-pdf"])
    assert right.exit_code in (0, 3), right.stderr  # 40 runs may be too few for any verdict
    verdicts = {path.stem: json.loads(path.read_text())["verdict"] for path in folder.glob("*.json")}
    assert set(verdicts) == {"opendp-gaussian-sum", "opendp-laplace-sum", "pydp-bounded-sum", mistake}
    assert [name for name, verdict in verdicts.items() if verdict == "violation"] == [mistake]
    assert "NO" not in done.stdout.split()


def test_claims_are_the_libraries_own(quickstart: ModuleType) -> None:
    assert quickstart.OpenDPSum("laplace", 1.0, 3).claim.epsilon(0.0) == pytest.approx(1.0)
    assert quickstart.OpenDPSum("laplace", 0.5, 3).claim.epsilon(0.0) == pytest.approx(2.0)
    assert quickstart.PyDPSum(0.7, 0.0, 1.0).claim.epsilon(0.0) == 0.7


# --- the files for contributors and continuous integration are true: they parse, and run the documented commands


GITHUB = ROOT / ".github"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
YAML = sorted([*GITHUB.rglob("*.yml"), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"])
PAGES = ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md"]
LINTERS = ["ruff check .", "ruff format --check .", "mypy"]


def _read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


WORKFLOW: dict[Any, Any] = _read(GITHUB / "workflows" / "ci.yml")
JOBS: dict[str, Any] = WORKFLOW["jobs"]
PAGES_WORKFLOW: dict[Any, Any] = _read(GITHUB / "workflows" / "pages.yml")


def _steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in JOBS.items():
        for step in job["steps"]:
            yield name, step


def _commands(job: str) -> list[str]:
    return [step["run"] for name, step in _steps() if name == job and "run" in step]


def _documented() -> list[str]:
    return _normal("".join(re.findall(r"```sh\n(.*?)```", CONTRIBUTING, re.DOTALL)).replace(".venv/bin/", ""))


def _normal(script: str) -> list[str]:
    lines = script.replace("\\\n", "").replace(" && ", "\n").splitlines()
    return [shlex.join(words) for line in lines if (words := shlex.split(line, comments=True))]


def test_nothing_may_be_written_and_actions_have_a_version() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert not [name for name, job in JOBS.items() if "permissions" in job]
    used = [step["uses"] for _, step in _steps() if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/(checkout|setup-python|upload-artifact)@v[1-9][0-9]*", action) for action in used)
    checkouts = [step for _, step in _steps() if step.get("uses", "").startswith("actions/checkout")]
    assert len(checkouts) == len(JOBS)
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)
    assert all(job["timeout-minutes"] <= 360 for job in JOBS.values())
    assert "pull_request_target" not in WORKFLOW[True]  # `on` is a truth value in YAML 1.1


def test_no_command_holds_text_of_others() -> None:
    """An expression inside `run:` is inserted into a shell command, and a title of a pull request may hold code."""
    steps = [step for job in PAGES_WORKFLOW["jobs"].values() for step in job["steps"]]
    assert not [step["run"] for step in [*steps, *(step for _, step in _steps())] if "${{" in step.get("run", "")]


def test_only_the_job_without_code_of_the_project_may_publish_pages() -> None:
    jobs = PAGES_WORKFLOW["jobs"]
    assert PAGES_WORKFLOW["permissions"] == {"contents": "read"}
    assert PAGES_WORKFLOW[True] == {"workflow_dispatch": None}  # `on` is a truth value in YAML 1.1
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "build": None,
        "deploy": {"pages": "write", "id-token": "write"},
    }
    assert [step["uses"] for step in jobs["deploy"]["steps"]] == ["actions/deploy-pages@v4"]
    assert jobs["build"]["steps"][0]["with"] == {"persist-credentials": False}
    assert all(job["timeout-minutes"] <= 360 for job in jobs.values())


def test_each_python_of_the_classifiers_is_tested() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    versions = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert JOBS["newest"]["strategy"]["matrix"]["python"] == versions
    assert f'requires-python = ">={versions[0]}"' in project
    others = [
        step["with"]["python-version"]
        for name, step in _steps()
        if "setup-python" in step.get("uses", "") and name != "newest"
    ]
    assert set(others) == {versions[0]}


@pytest.mark.parametrize("job", ["newest", "oldest", "nightly", "sdist"])
def test_a_job_runs_what_is_documented(job: str) -> None:
    """Every command is in CONTRIBUTING.md, word for word."""
    documented = _documented()
    for command in _normal("\n".join(_commands(job))):
        if command != "python -m pip freeze --exclude-editable":  # for the log
            assert command in documented


def test_lint_is_the_same_everywhere() -> None:
    assert _commands("pinned") == ["bash .ci/run"]  # which another test compares with the README
    last = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-len(LINTERS) :]
    assert last == [f".venv/bin/python -m {command}" for command in LINTERS]
    assert {f"python -m {command}" for command in LINTERS} <= set(_documented())
    hooks = [hook["entry"] for repo in _read(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert hooks == ["ruff check --force-exclude", "ruff format --force-exclude", "mypy"]


def test_slow_tests_run_by_night_only() -> None:
    nightly = {name for name, job in JOBS.items() if "== 'schedule'" in job["if"]}
    assert nightly == {"nightly"} == {name for name in JOBS if any("-m slow" in text for text in _commands(name))}
    assert all(job["if"] == "github.event_name != 'schedule'" for name, job in JOBS.items() if name != "nightly")
    assert WORKFLOW[True]["schedule"]


@pytest.mark.parametrize("name", PAGES)
def test_links_and_files_of_the_page_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        path, _, anchor = link.partition("#")
        file = path or name  # a link without a path leads to a heading of the same page
        assert (ROOT / file).exists(), link
        if anchor:
            titles = re.findall(r"^#+ (.+)$", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, link


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", ".github/pull_request_template.md"])
def test_the_paths_it_names_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:audit|attacks|reports|tests|benchmarks|docs|configs)/[\w./-]*\w", text))
    named |= set(re.findall(r"`([\w-]+\.(?:md|txt|toml))`", text))
    assert named or name.startswith(".github")
    missing = [path for path in named if not (ROOT / path).exists()]
    assert [path for path in missing if "NAME" not in path] == []


def test_version_and_address_are_the_same_everywhere() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    citation = _read(ROOT / "CITATION.cff")
    assert f'version = "{citation["version"]}"' in project
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert f'license = "{citation["license"]}"' in project
    assert f'Homepage = "{citation["repository-code"]}"' in project
    contact = _read(GITHUB / "ISSUE_TEMPLATE" / "config.yml")["contact_links"][0]["url"]
    assert contact == f"{citation['repository-code']}/security/policy"
    assert f"## [{citation['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
