"""Only the evidence depends on the method of an audit: no other code compares methods or tests for a class of evidence.

So a new way to audit is a class of evidence, its line in `result/evidence.py`, and an example in
`tests/test_evidence.py`; reports, command line, engine and tests' assertions need no change.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpaudit.result.evidence import KINDS

from .test_imports import MODULES

OWN = re.compile(r"dpaudit\.result\.(\w+_)?evidence|dpaudit\.settings\.audit")  # the settings may ask
METHODS = {kind.method for kind in KINDS}
CLASSES = {kind.__name__ for kind in KINDS}
WORDS = re.compile("|".join(("no guarantee holds", "too few to see", "must be independent", "global random state")))


def of_method(node: ast.expr) -> bool:
    """Return whether an expression is the method of an audit, or the name of a method."""
    match node:
        case ast.Attribute(attr="method") | ast.Name(id="method"):
            return True
        case ast.Constant(value=str() as text):
            return text in METHODS
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return any(map(of_method, parts))
    return False


def named(node: ast.expr) -> set[str]:
    """Return all names in an expression, and the last parts of dotted names."""
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


@pytest.mark.parametrize("module", sorted(name for name in MODULES if not OWN.fullmatch(name)))
def test_nobody_else_asks_how_an_audit_was_made(module: str) -> None:
    found = sorted(questions(MODULES[module].read_text(encoding="utf-8")))
    assert not found, f"{MODULES[module]}: lines {found}; ask the evidence for what depends on it"


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


def test_files_are_looked_at() -> None:
    assert len(MODULES) > 250
    assert all(isinstance(file, Path) for file in MODULES.values())
