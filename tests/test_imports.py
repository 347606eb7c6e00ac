"""Imports point downwards, as ARCHITECTURE.md draws the packages; two circles are wanted; imports are fast."""

import ast
import functools
import graphlib
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dpaudit.result.evidence import KINDS

OURS = ("dpaudit", "dpaudit_attacks", "dpaudit_reports", "_dpaudit_pytest")
ROOT = Path(__file__).parent.parent
OUTSIDE = {  # what lies outside `dpaudit`: the packages of `dpaudit` that it may import
    "dpaudit_attacks": {"numerics", "outputs"},  # one attack, one file, on any features
    "dpaudit_reports": {"claims", "numerics", "result", "rounding", "text"},  # whatever made the result
    "_dpaudit_pytest": {"testing", "text"},
}
# The methods of a result or a claim that draw plots and reports cause these cycles.
DOORS = (("dpaudit.result.model", "dpaudit_reports"), ("dpaudit.claims.base", "dpaudit_reports"))


def modules() -> dict[str, Path]:
    """Return the file of every module by name; the file of a package is its `__init__`."""
    found = {}
    for package in OURS:
        spec = find_spec(package)
        assert spec.origin is not None
        origin = Path(spec.origin)
        files = origin.parent.rglob("*.py") if origin.name == "__init__.py" else [origin]
        root = origin.parent.parent if origin.name == "__init__.py" else origin.parent
        for file in files:
            parts = file.relative_to(root).with_suffix("").parts
            found[".".join(part for part in parts if part != "__init__")] = file
    return found


MODULES = modules()


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements below a node, without their expressions, which take most of the time."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for part in getattr(node, field, ()):
            yield part
            yield from statements(part)


def imported(file: Path) -> set[str]:
    """Return the project's modules that a file imports anywhere, also in functions and by `import_module("...")`."""
    names = set()
    text = file.read_text(encoding="utf-8")
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            module = node.module or ""
            inside = {f"{module}.{alias.name}" for alias in node.names}
            names |= {name if name in MODULES else module for name in inside}
    return {name for name in {*names, *re.findall(r'import_module\(\s*"([\w.]+)"', text)} if name in MODULES}


@functools.cache
def all_imports() -> dict[str, set[str]]:
    """Return the project's other modules that each module imports; computed in a test, not during collection."""
    return {module: imported(file) - {module} for module, file in MODULES.items()}


def room(module: str) -> str:
    """Return the package of `dpaudit` that holds a module, or else the module's top-level name."""
    parts = module.split(".")
    return parts[1] if parts[0] == "dpaudit" and len(parts) > 1 else parts[0]


def floors() -> dict[str, int]:
    """Return the line, counted from below, on which ARCHITECTURE.md draws each package of `dpaudit`."""
    picture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## The packages")[1].split("\n## ")[0]
    lines = re.findall(r"^    ((?:\w+(?:/|\.py) +)+)\S", picture, flags=re.M)
    drawn = {name: floor for floor, line in enumerate(reversed(lines)) for name in re.findall(r"\w+(?=/|\.py)", line)}
    return {**drawn, "__main__": len(lines)}


def arrows_between_packages() -> dict[str, set[str]]:
    """Return the packages that each package imports, without the doors to the reports and the package itself."""
    arrows: dict[str, set[str]] = {room(module): set() for module in MODULES if module != "dpaudit"}
    for module, names in all_imports().items():
        if module != "dpaudit":
            arrows[room(module)] |= {room(name) for name in names if (module, name) not in DOORS} - {"dpaudit"}
    return {package: found - {package} for package, found in arrows.items()}


def test_imports_point_downwards_as_architecture_draws_them() -> None:
    floor = floors()
    arrows = arrows_between_packages()
    assert {*arrows} == {*floor, *OUTSIDE}
    wrong = [
        f"{package} may not import {name}"
        for package, names in arrows.items()
        for name in names
        if not (
            name in OUTSIDE
            if package not in OUTSIDE and name in OUTSIDE
            else name in OUTSIDE[package]
            if package in OUTSIDE
            else floor[name] < floor[package]
        )
    ]
    assert not wrong, "\n".join(sorted(wrong))


def test_the_whole_can_be_seen_at_once() -> None:
    """The packages, the longest way down from `cli`, and the arrows between packages, the basics apart."""
    basics = {name for name in floors() if (MODULES["dpaudit"].parent / f"{name}.py").is_file()}
    arrows = {package: names - basics for package, names in arrows_between_packages().items() if package not in basics}

    def height(package: str) -> int:
        return 1 + max((height(name) for name in arrows[package]), default=0)

    packages, high = len(arrows), height("cli")
    between = sum(map(len, arrows.values()))
    print(f"{packages} packages, {high} floors, {between} arrows between packages")  # shown by `pytest -s`
    assert packages <= 18
    assert high <= 10
    assert between <= 80


def circle(arrows: dict[str, set[str]]) -> list[str]:
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_the_only_circles_are_the_doors_from_results_and_claims_to_the_reports() -> None:
    without = dict(all_imports())
    for start, end in DOORS:
        assert end in without[start]
        without[start] = without[start] - {end}
    assert circle(without) == []
    for start, end in DOORS:
        assert {start, end} <= {*circle({**without, start: {*without[start], end}})}


HEAVY = {"sklearn", "matplotlib", "typst"}
ABSENT = {  # after these statements in this order, each of which may load more than the one before
    "import dpaudit": {"numpy", "scipy", "pydantic", *HEAVY},
    "import dpaudit.cli.app": {"numpy", "scipy", "pydantic", *HEAVY},
    "import dpaudit.claims": {"pydantic", "scipy.stats", "dp_accounting", "joblib", *HEAVY},
    "from dpaudit import audit": {"pydantic", "scipy.stats", "joblib", *HEAVY},
    "import dpaudit.training.opacus": {"opacus", "torch", "joblib", *HEAVY},
}


def test_importing_is_light() -> None:
    code = "import sys\n" + "".join(f"{statement}\nprint(*sys.modules)\n" for statement in ABSENT)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for (statement, absent), loaded in zip(ABSENT.items(), done.stdout.splitlines(), strict=True):
        assert not absent & set(loaded.split()), statement


def test_no_test_imports_a_private_name() -> None:
    """What a test needs is public, so that the rest of a module may change."""
    found = [
        f"{file.name}: {name}"
        for file in sorted(Path(__file__).parent.rglob("*.py"))
        for names in re.findall(
            r"^from dpaudit\S* import (\([^)]*\)|.*)", file.read_text(encoding="utf-8"), re.MULTILINE
        )
        for name in re.findall(r"\b(_[^_]\w*)", names)
    ]
    assert found == []


BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("ruff", reason="needs the extra `lint`")  # which measures complexity
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("code_limits")


def test_no_source_file_is_beyond_a_limit(limits: Any) -> None:
    """A file has at most 400 lines, a function at most 60 lines and complexity 15."""
    assert (limits.MAX_LINES_OF_A_FILE, limits.MAX_LINES_OF_A_FUNCTION, limits.MAX_COMPLEX) == (400, 60, 15)
    assert limits.offences(folders=limits.PACKAGES) == []


LONG = "def long():\n" + "    print()\n" * 60
ENTANGLED = "def entangled(x):\n" + "    if x:\n        print()\n" * 15


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (LONG, "long has 61 lines, at most 60"),
        (ENTANGLED, "entangled has complexity 16, at most 15"),
        ("x = 1\n" * 401, "the file has 401 lines, at most 400"),
    ],
)
def test_what_is_beyond_a_limit_is_reported(limits: Any, tmp_path: Path, code: str, words: str) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "code.py").write_text(code)
    assert limits.offences(tmp_path, ["some"]) == [f"some/code.py:1: {words}"]


OWN = re.compile(r"dpaudit\.result\.(\w+_)?evidence|dpaudit\.settings")  # the settings may ask
METHODS = set(KINDS)
CLASSES = {kind.__name__ for kind in KINDS.values()}
WORDS = re.compile("|".join(("no guarantee holds", "too few to see", "must be independent", "global random state")))
ASKS = re.compile(rf"\bmethod\b|['\"]({'|'.join(METHODS)})['\"]|Evidence|Guesses|{WORDS.pattern}")  # else not parsed


def of_method(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr="method") | ast.Name(id="method"):
            return True
        case ast.Constant(value=str() as text):
            return text in METHODS
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return any(map(of_method, parts))
    return False


def named(node: ast.expr) -> set[str]:
    parts = list(ast.walk(node))
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return names | {part.attr for part in parts if isinstance(part, ast.Attribute)}


def asks_for_words(node: ast.Compare) -> bool:
    looked_for = node.left.value if isinstance(node.left, ast.Constant) else ""
    return isinstance(node.ops[0], ast.In) and bool(WORDS.search(str(looked_for)))


def questions(source: str) -> Iterator[int]:
    """Return the lines that test the method of an audit, or the subject of a warning by its words."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, comparators=others):
                if any(map(of_method, (left, *others))) or asks_for_words(node):
                    yield node.lineno
            case ast.Match(subject=subject):
                if of_method(subject):
                    yield node.lineno
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                if named(kinds) & {*CLASSES, "Guesses"}:
                    yield node.lineno
            case ast.MatchClass(cls=kind):
                if named(kind) & CLASSES:
                    yield node.lineno


def test_nobody_else_asks_how_an_audit_was_made() -> None:
    """Only the evidence depends on the method of an audit: reports, command line and engine ask the evidence.

    So a new way to audit is a class of evidence, its line in `result/evidence.py`, and an example in
    `tests/test_evidence.py`.
    """
    others = {name: file.read_text(encoding="utf-8") for name, file in MODULES.items() if not OWN.fullmatch(name)}
    found = {name: sorted(questions(text)) for name, text in others.items() if ASKS.search(text)}
    assert not {name: lines for name, lines in found.items() if lines}


@pytest.mark.parametrize(
    "source",
    [
        "if result.method == 'one_run': pass",
        "if 'fixed' != method: pass",
        "valid = certified and result.method in ('sequential', 'fixed')",
        "if result.method not in known: pass",
        "match result.method:\n    case 'fixed': pass",
        "if isinstance(result.evidence, FixedEvidence): pass",
        "if isinstance(result.evidence, evidence.FixedEvidence | None): pass",
        "match result.evidence:\n    case SequentialEvidence(): pass",
        "if 'no guarantee holds' in warning: pass",
    ],
)
def test_a_question_is_found(source: str) -> None:
    assert list(questions(source))
