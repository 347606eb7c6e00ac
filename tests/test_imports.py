"""Allowed imports, which each package states in its `__init__`; only one import cycle; and fast imports."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

OURS = ("dpaudit", "dpaudit_attacks", "dpaudit_reports", "_dpaudit_pytest")
MAY_IMPORT = {  # packages whose docstrings state no imports: the packages that they may import
    "dpaudit_attacks": {"numerics", "outputs"},
    "dpaudit_reports": {"claims", "numerics", "result", "text"},
    "_dpaudit_pytest": {"testing", "text"},
    "__main__": {"cli"},
}
# The methods of a result or a claim that draw plots and reports cause these cycles.
DOORS = (("dpaudit.result.shown", "dpaudit_reports"), ("dpaudit.claims.shown", "dpaudit_reports"))


def modules() -> dict[str, Path]:
    """Return the file of every module by name; the file of a package is its `__init__`."""
    found = {}
    for package in OURS:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        files = origin.parent.rglob("*.py") if origin.name == "__init__.py" else [origin]
        root = origin.parent.parent if origin.name == "__init__.py" else origin.parent
        for file in files:
            parts = file.relative_to(root).with_suffix("").parts
            found[".".join(part for part in parts if part != "__init__")] = file
    return found


MODULES = modules()


def imported(file: Path) -> set[str]:
    """Return the project's modules that a file imports anywhere, also in functions and by `import_module("...")`."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            module = node.module or ""
            inside = {f"{module}.{alias.name}" for alias in node.names}
            names |= {name if name in MODULES else module for name in inside}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names |= {str(arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant)}
    return {name for name in names if name in MODULES}


@functools.cache
def all_imports() -> dict[str, set[str]]:
    """Return the project's other modules that each module imports; computed in a test, not during collection."""
    return {module: imported(file) - {module} for module, file in MODULES.items()}


def room(module: str) -> str:
    """Return the package of `dpaudit` that holds a module, or else the module's top-level name."""
    parts = module.split(".")
    return parts[1] if parts[0] == "dpaudit" and len(parts) > 1 else parts[0]


def may_import(package: str) -> set[str] | None:
    """Return the imports that a package allows; None if it allows all."""
    if package in MAY_IMPORT:
        return MAY_IMPORT[package]
    text = ast.get_docstring(ast.parse(MODULES[f"dpaudit.{package}"].read_text(encoding="utf-8"))) or ""
    said = re.search(r"^May import: (.*?)\.$", text, flags=re.M | re.S)
    assert said is not None, f'dpaudit.{package}: its docstring must say "May import: ..."'
    assert re.search(r"^Public names: ", text, flags=re.M), f'dpaudit.{package} must say "Public names: "'
    return None if said[1] == "every package" else set(re.findall(r"`(\w+)`", said[1]))


@pytest.mark.parametrize("package", sorted({room(module) for module in MODULES} - {"dpaudit"}))
def test_the_modules_of_a_package_import_what_it_may(package: str) -> None:
    allowed = may_import(package)
    if allowed is None:
        return
    wrong = {
        f"{module} may not import {name}"
        for module, names in all_imports().items()
        for name in names
        if room(module) == package and room(name) not in {*allowed, package} and (module, name) not in DOORS
    }
    assert not wrong, "\n".join(sorted(wrong))


def test_a_package_needs_what_it_says() -> None:
    rooms = {room(module) for module in MODULES} - {"dpaudit"}
    for package in rooms:
        used = {room(name) for module in MODULES if room(module) == package for name in all_imports()[module]}
        assert (may_import(package) or set()) <= used, f"{package} says that it may import what it does not need"


def circles(arrows: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components with more than one module (Tarjan 1972, SIAM J. Comput. 1(2))."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for other in arrows[module]:
            if other not in number:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], number[other])
        if low[module] == number[module]:
            place = stack.index(module)
            component = set(stack[place:])
            del stack[place:]
            if len(component) > 1:
                found.append(component)

    for module in arrows:
        if module not in number:
            visit(module)
    return found


def test_the_only_circles_are_the_doors_from_results_and_claims_to_the_reports() -> None:
    without = dict(all_imports())
    for start, end in DOORS:
        assert end in without[start]
        assert any(start in circle and end in circle for circle in circles(without))
        without[start] = without[start] - {end}
    assert circles(without) == []


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


def test_no_module_lies_beside_the_packages() -> None:
    root = MODULES["dpaudit"].parent
    assert {path.name for path in root.iterdir() if path.is_file()} == {"__init__.py", "__main__.py", "py.typed"}


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import dpaudit", {"numpy", "scipy", "sklearn", "matplotlib", "pydantic", "typst"}),
        ("import dpaudit.claims", {"sklearn", "matplotlib", "pydantic", "typst", "scipy.stats", "dp_accounting"}),
        ("import dpaudit.outputs", {"sklearn", "matplotlib", "pydantic", "typst", "scipy"}),
        ("from dpaudit import audit", {"sklearn", "matplotlib", "pydantic", "typst", "joblib", "scipy.stats"}),
        (
            "from dpaudit import audit_scores, audit_one_run",
            {"sklearn", "matplotlib", "typst", "joblib", "scipy.stats"},
        ),
        ("import dpaudit.cli.run_configs", {"sklearn", "matplotlib", "typst", "scipy.stats"}),
        ("import dpaudit.training.opacus", {"opacus", "torch", "sklearn", "matplotlib", "typst", "joblib"}),
        ("import dpaudit.testing", {"matplotlib", "typst"}),
        ("import dpaudit.cli.app", {"numpy", "scipy", "sklearn", "matplotlib", "pydantic", "typst"}),
        (
            "import dpaudit_reports.formats.table, dpaudit_reports.terminal",
            {"sklearn", "matplotlib", "typst", "joblib"},
        ),
    ],
)
def test_importing_is_light(statement: str, absent: set[str]) -> None:
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not absent & set(loaded)


def test_no_test_imports_a_private_name() -> None:
    """What a test needs is public, so that the rest of a module may change."""
    found = [
        f"{file.name}: {alias.name} of {node.module}"
        for file in sorted(Path(__file__).parent.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpaudit")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert found == []
