"""Which small faults do the tests notice?

    python benchmarks/mutants.py [--mutants 300] [--seed 0] [--jobs 2] [--seconds 40] [--store FILE] [--against FILE]

A mutant is the code of dpaudit with one operator, number or condition changed.  The mutants are drawn from claims,
inference, learning, mechanisms and sampling, each with the same probability.  A mutant is killed if one of the test
files that import the changed module, or a name of its package, fails; files that import the module are run first, and
then those that import the fewest modules of dpaudit, until the first failure or for `--seconds`.  `--against` takes
the store of an earlier command, and the exit code is 1 if a mutant that was killed then survives now.  Mutants are
named by their function and change, so that a function may move.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import importlib.abc
import importlib.machinery
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from measure import ROOT, Expected, Outcome, Outcomes, Store, Table, run, texts

PRODUCT = ROOT / "audit"
KILLED, SURVIVED, UNDECIDED = "killed", "survived", "out of time"
PACKAGES = ("claims", "inference", "learning", "running")
_SWAPS: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module."""

    module: str
    place: int  # of the node in the order of `ast.walk`
    name: str


def _changed(node: ast.AST) -> ast.expr | None:
    """Change a node, and return it; None if the node cannot change."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        node.ops[0] = _SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _SWAPS:
        node.op = _SWAPS[type(node.op)]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value: Any = node.value
        node.value = value + 1 if isinstance(value, int) else value * 1.5 + 1e-3
    elif isinstance(node, ast.IfExp):
        node.body, node.orelse = node.orelse, node.body
    else:
        return None
    return node


def mutated(tree: ast.Module, place: int) -> ast.Module:
    """Change the node at a place of a tree, and return the tree."""
    _changed(next(node for i, node in enumerate(ast.walk(tree)) if i == place))
    return ast.fix_missing_locations(tree)


def mutants(number: int, seed: int) -> list[Mutant]:
    """Draw mutants, by hashes of their names, so that the same ones are drawn after functions have moved."""
    found = list[Mutant]()
    for package in PACKAGES:
        every: dict[str, Mutant] = {}
        for path in sorted((PRODUCT / "dpaudit" / package).rglob("*.py")):
            module = ".".join(path.relative_to(PRODUCT).with_suffix("").parts).removesuffix(".__init__")
            for place, name in _changes(ast.parse(path.read_text(encoding="utf-8"))):
                every.setdefault(name, Mutant(module, place, name))
        order = sorted(every, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
        found += [every[name] for name in order[: number // len(PACKAGES)]]
    return found


def _changes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the place and the name of each mutant of a module."""
    places = {id(node): i for i, node in enumerate(ast.walk(tree))}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in (node for statement in function.body for node in ast.walk(statement)):
            if isinstance(node, ast.expr) and (changed := _changed(copy.deepcopy(node))) is not None:
                yield places[id(node)], f"{function.name}: {ast.unparse(node)} -> {ast.unparse(changed)}"


def tests_of(module: str) -> list[str]:
    """Return the test files that import a module or its package, first those of the module with the fewest imports."""
    package, _, last = module.rpartition(".")
    direct = re.compile(rf"\b{re.escape(module)}\b|from {re.escape(package)} import .*\b{last}\b")
    users = re.compile(rf"\b{re.escape(package)}\b")
    texts = {path: text for path, text in _texts_of_tests().items() if direct.search(text) or users.search(text)}
    return sorted(texts, key=lambda path: (not direct.search(texts[path]), texts[path].count("dpaudit"), path))


@cache
def _texts_of_tests() -> dict[str, str]:
    return {str(path): path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))}


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed tree."""

    def __init__(self, module: str, tree: ast.Module, path: Path) -> None:
        self.module, self.tree, self.path = module, tree, path

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.module:
            return None
        folders = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        spec = importlib.machinery.ModuleSpec(name, self, origin=str(self.path), is_package=folders is not None)
        spec.has_location = True
        spec.submodule_search_locations = folders
        return spec

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)


def outcome(mutant: Mutant, seconds: float) -> str:
    """Return KILLED, SURVIVED or UNDECIDED for one mutant."""
    child = os.fork()
    if child == 0:
        _in_child(mutant)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return SURVIVED if os.waitstatus_to_exitcode(status) == 0 else KILLED
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return UNDECIDED


def _in_child(mutant: Mutant) -> None:
    import pytest

    os.setsid()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    path = PRODUCT / (mutant.module.replace(".", "/") + ".py")
    path = path if path.exists() else path.with_suffix("") / "__init__.py"
    tree = mutated(ast.parse(path.read_text(encoding="utf-8")), mutant.place)
    sys.meta_path.insert(0, _Changed(mutant.module, tree, path))
    os.chdir(ROOT)
    os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests_of(mutant.module)]))


def _preload() -> None:
    """Import what tests import, except dpaudit, so that each fork begins sooner."""
    modules = "numpy scipy.stats scipy.optimize sklearn.linear_model hypothesis pytest typer.testing"
    for name in modules.split():
        __import__(name)


def measured(mutant: Mutant, seconds: float, seed: int) -> Outcome:
    return {"mutant": mutant.name, "outcome": outcome(mutant, seconds)}


def tables(options: argparse.Namespace) -> list[Table]:
    _preload()
    before = Store(Path(options.against)).done.values() if options.against else []
    killed = {one["mutant"] for one in before if one["outcome"] == KILLED}

    def kept(mutant: Mutant, outcomes: Outcomes) -> bool:
        return outcomes[0]["outcome"] != SURVIVED or mutant.name not in killed

    return [
        Table(
            headings=("module", "mutant"),
            columns={"outcome": texts("outcome")},
            cases=[
                Expected(
                    cells=(mutant.module, mutant.name.replace("|", "/")),
                    measure=partial(measured, mutant, options.seconds),
                    stored_as=mutant.name,
                    right=partial(kept, mutant),
                )
                for mutant in mutants(options.mutants, options.seed)
            ],
            threads=True,
        )
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, mutants=300, seed=0, seconds=40.0, against=""))
