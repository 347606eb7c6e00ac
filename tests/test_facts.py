"""No module reads English that another module of dpaudit has written: what code acts on is a value, not a sentence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
READS = ("startswith", "endswith", "partition", "rpartition", "split", "rsplit", "removeprefix", "removesuffix", "find")
PATTERNS = ("match", "fullmatch", "search", "findall", "finditer", "sub", "split")
ENGLISH = re.compile("[A-Za-z]{3,}:? | [A-Za-z]{3,}")
FOR_PEOPLE = re.compile(r"(warning|reason|failure|region|query|note|sentence|assumption|summary)s?|\w+_words")
"""Names of texts that dpaudit writes for people."""

ALLOWED = {
    "audit/dpaudit/cli/commands.py": "a message of typer",
    "audit/dpaudit/libraries/smartnoise_sql.py": "queries in SQL",
    "audit/dpaudit/running/installer.py": "messages and settings of uv and pip",
    "audit/dpaudit/running/requirements.py": "lock files",
    "audit/dpaudit/running/sources.py": "requirements of packages",
    "audit/dpaudit/result/files.py": "messages of pydantic",
    "reports/dpaudit_reports/formats/facts.py": "tracebacks of Python",
    "reports/dpaudit_reports/pdf.py": "messages of typst",
}
"""Modules that take such text apart, and what they read: foreign text, or a syntax that users write."""


def literals(node: ast.AST, known: Mapping[str, str]) -> str:
    """Return the texts in an expression, one on each line; `known` holds those of constants."""
    found = []
    for one in ast.walk(node):
        match one:
            case ast.Constant(value=str(text)):
                found.append(text)
            case ast.Name(id=name):
                found.append(known.get(name, ""))
    return "\n".join(found)


def constants(tree: ast.Module) -> dict[str, str]:
    """Return the texts that each constant of a module holds."""
    names = [line for line in tree.body if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)]
    return {ast.unparse(line.targets[0]): literals(line.value, {}) for line in names}


def read_text(node: ast.AST) -> tuple[ast.expr, list[ast.expr]] | None:
    """Return the text that an expression takes apart, and what it looks for."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=how), args=[pattern, *given]) if how in PATTERNS:
            return given[-1], [pattern]
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name) as pattern, attr=how), args=given) if (
            how in PATTERNS and name.isupper()
        ):
            return given[-1], [pattern]
        case ast.Call(func=ast.Attribute(value=text, attr=how), args=given) if how in READS:
            return text, given
        case ast.Compare(left=ast.Constant(value=str()) as sought, ops=[ast.In() | ast.NotIn()], comparators=[text]):
            return text, [sought]
    return None


def name_of(text: ast.expr) -> str:
    """Return the last name in an expression, such as "reason" for `result.reason.strip()[0]`."""
    match text:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(value=inner, attr="strip" | "lower")):
            return name_of(inner)
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return name_of(inner)
        case ast.Call(func=function):
            return name_of(function)
    return ""


def offences(trees: Mapping[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Yield each module and expression that looks for English words, or takes apart a text for people."""
    own = {file: constants(tree) for file, tree in trees.items()}
    shared = {name: text for known in own.values() for name, text in known.items() if not name.startswith("_")}
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.expr) and (found := read_text(node)):
                text, sought = found
                words = "\n".join(literals(one, shared | own[file]) for one in sought)
                if FOR_PEOPLE.fullmatch(name_of(text)) or any(map(ENGLISH.search, words.split("\n"))):
                    yield file, f"{file}:{node.lineno}: {ast.unparse(node)}"


def test_no_module_reads_what_dpaudit_wrote_for_people() -> None:
    files = [file for part in ("audit", "attacks", "reports") for file in sorted((ROOT / part).rglob("*.py"))]
    found = list(offences({str(file.relative_to(ROOT)): ast.parse(file.read_text("utf-8")) for file in files}))
    assert [words for file, words in found if file not in ALLOWED] == []
    assert ALLOWED.keys() - dict(found).keys() == set(), "these modules need no exception"


@pytest.mark.parametrize(
    "line",
    [
        "'the pair was dropped' in warning",
        "MARK.fullmatch(text)",
        "re.sub(r'^calling .*? raised', '', text)",
        "text.removeprefix(PREFIX)",
        "result.witness.region.strip().endswith('0')",
        "str(reason)[1:].partition(':')",
        "certified_words(result).split()",
    ],
)
def test_the_test_sees(line: str) -> None:
    tree = ast.parse(f"MARK = re.compile('(.+) is missing')\nPREFIX = 'not used: '\n{line}")
    assert len(list(offences({"m.py": tree}))) == 1
    assert not list(offences({"m.py": ast.parse("path.startswith('--resume=') or 'name' in fields or text.split()")}))
