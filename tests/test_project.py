"""The project file keeps an unchanged clone working, and a source distribution whole."""

from __future__ import annotations

import re
import tomllib
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONSTRAINTS = dict(
    line.lower().split("==")
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)
JUDGES = ("ruff", "mypy", "scipy-stubs", "types-pyyaml")  # tests demand that they find nothing


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower()


@pytest.mark.parametrize("name", JUDGES)
def test_linters_and_stubs_are_pinned_exactly(name: str) -> None:
    (requirement,) = [text for text in PROJECT["project"]["optional-dependencies"]["test"] if _name(text) == name]
    assert requirement.lower() == f"{name}=={CONSTRAINTS[name]}"


def test_every_package_of_the_test_command_is_constrained() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *extras["test"], *extras["quickstart"], *extras["accounting"]]
    names = {_name(text) for text in [*wanted, *extras["dask"]]} - {"dpaudit"}
    assert names <= set(CONSTRAINTS)
    assert all(re.fullmatch(r"[0-9][0-9A-Za-z.]*", found) for found in CONSTRAINTS.values())


def test_a_source_distribution_holds_what_its_tests_read() -> None:
    included = set(PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    read = set()
    for file in (ROOT / "tests").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        read |= set(re.findall(r"(?:ROOT|parents\[\d\]|parent\.parent) / \"([^\"]+)\"", text))
    needed = {name for name in read if (ROOT / name).exists()} | {"benchmarks"}
    assert {"docs", ".ci", "audit", "constraints.txt"} <= needed
    assert needed - {"pyproject.toml"} <= included  # which is in every source distribution
    assert all((ROOT / name).exists() for name in included)


@pytest.mark.parametrize("module", ["dpaudit.engine", "dpaudit_attacks.spline", "_dpaudit_pytest", "tests.test_cli"])
def test_a_warning_of_our_own_code_is_an_error(module: str) -> None:
    with pytest.raises(RuntimeWarning, match="divide by zero"):
        warnings.warn_explicit("divide by zero", RuntimeWarning, "file.py", 1, module=module)


@pytest.mark.filterwarnings("ignore:to be expected")
@pytest.mark.parametrize(
    ("module", "category"),
    [("sklearn.utils", UserWarning), ("dpaudit.engine", DeprecationWarning), ("dpaudit.engine", FutureWarning)],
)
def test_a_warning_of_another_package_fails_no_test(module: str, category: type[Warning]) -> None:
    """Deprecations are laid on the calling module, which may be ours."""
    warnings.warn_explicit("to be expected", category, "file.py", 1, module=module)
    kept = [found for found in warnings.filters if found[0] == "error" and found[3] is not None]
    assert all(not found[3].match("sklearn.utils") for found in kept)  # type: ignore[union-attr]
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("default", "a release from tomorrow", UserWarning)
        warnings.warn_explicit("a release from tomorrow", category, "file.py", 2, module=module)
    assert len(caught) == 1
