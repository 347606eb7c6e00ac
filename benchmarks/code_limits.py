"""Lists files and functions that are too long or too complex, and counts how often `Any` is written.

    python benchmarks/code_limits.py [FOLDER ...]      audit, attacks, reports, tests and benchmarks unless given

A file may have at most 400 lines.  A function may have at most 60 lines without its docstring, and a cyclomatic
complexity of at most 15 (`ruff`, C901).  A comment `# long: REASON` declares an exception; the reason must have at
least three words.  If the comment stands on a line of a function's signature, the function is exempt from both limits
for functions.  If the comment stands on a separate line before the first statement of a file, the file is exempt from
the limit for files.  An exception that is no longer needed is reported as an error.

The exit code is 1 if any file or function is reported, and 0 otherwise.  The command also prints how often the three
packages use `Any`, apart from imports.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("audit", "attacks", "reports")
FOLDERS = (*PACKAGES, "tests", "benchmarks")
MAX_LINES_OF_A_FILE = 400
MAX_LINES_OF_A_FUNCTION = 60
MAX_COMPLEX = 15
_EXCEPTION = re.compile(r"#\s*long:\s*(.*)")
_MIN_WORDS = 3  # minimum number of words in the reason for an exception

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Offence:
    """A file or function that exceeds a limit, or an invalid exception.

    An exception is invalid if it is not needed or has no reason.
    """

    file: str  # path of the file, relative to the root of the repository
    line: int
    words: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.words}"


def offences(root: Path = ROOT, folders: Sequence[str] = FOLDERS) -> list[Offence]:
    """Return all offences in the Python files of the given folders, in order of file and line."""
    entangled = _entangled(root, folders)
    files = [file for folder in folders for file in sorted((root / folder).rglob("*.py"))]
    return sorted(found for file in files for found in _of_file(file, root, entangled))


def uses_of_any(root: Path = ROOT, folders: Sequence[str] = PACKAGES) -> int:
    """Count the uses of the name `Any` in the given folders, apart from imports."""
    trees = [ast.parse(file.read_bytes()) for folder in folders for file in sorted((root / folder).rglob("*.py"))]
    return sum(
        (isinstance(node, ast.Name) and node.id == "Any") or (isinstance(node, ast.Attribute) and node.attr == "Any")
        for tree in trees
        for node in ast.walk(tree)
    )


def _of_file(file: Path, root: Path, entangled: dict[tuple[Path, int], int]) -> Iterator[Offence]:
    text = file.read_text(encoding="utf-8")
    lines, tree, name = text.splitlines(), ast.parse(text), str(file.relative_to(root))
    beyond = [f"{len(lines)} lines, at most {MAX_LINES_OF_A_FILE}"] if len(lines) > MAX_LINES_OF_A_FILE else []
    yield from _judged(name, 1, "the file has", beyond, _reason(lines[: _head(tree, lines)], alone=True))
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        length, complexity = _length(function), entangled.get((file, function.lineno), 0)
        beyond = [f"{length} lines, at most {MAX_LINES_OF_A_FUNCTION}"] * (length > MAX_LINES_OF_A_FUNCTION)
        beyond += [f"complexity {complexity}, at most {MAX_COMPLEX}"] * (complexity > MAX_COMPLEX)
        reason = _reason(lines[function.lineno - 1 : _signature_end(function)])
        yield from _judged(name, function.lineno, f"{function.name} has", beyond, reason)


def _judged(name: str, line: int, subject: str, beyond: list[str], reason: str | None) -> Iterator[Offence]:
    """Yield the offences of a file or function, considering the reason of its exception if one is declared."""
    if reason is None:
        if beyond:
            yield Offence(file=name, line=line, words=f"{subject} {' and '.join(beyond)}")
    elif not beyond:
        yield Offence(file=name, line=line, words=f"{subject} an exception (# long) that it does not need")
    elif len(reason.split()) < _MIN_WORDS:
        yield Offence(file=name, line=line, words=f"{subject} an exception (# long) without a reason")


def _reason(lines: Sequence[str], *, alone: bool = False) -> str | None:
    """Return the reason in the comment `# long: REASON` of the given lines; None if no line has such a comment."""
    for line in lines:
        found = _EXCEPTION.match(line) if alone else _EXCEPTION.search(line)
        if found:
            return found[1]
    return None


def _head(tree: ast.Module, lines: Sequence[str]) -> int:
    """Return the number of lines before the first statement of a file, not counting its docstring as a statement."""
    later = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    return later[0].lineno - 1 if later else len(lines)


def _signature_end(function: Function) -> int:
    """Return the number of the last line of a function's signature.

    If signature and body share a line, the number of this line is returned.
    """
    return max(function.lineno, function.body[0].lineno - 1)


def _length(function: Function) -> int:
    """Return the number of lines of a function from `def` to its end, without its docstring."""
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def _entangled(root: Path, folders: Sequence[str]) -> dict[tuple[Path, int], int]:
    """Map the file and line of each too complex function to its cyclomatic complexity."""
    command = ["ruff", "check", "--isolated", "--ignore-noqa", "--no-cache", "--select", "C901"]
    limit = ["--config", f"lint.mccabe.max-complexity={MAX_COMPLEX}", "--output-format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", *command, *limit, *folders], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode > 1:
        raise RuntimeError(f"ruff ended with {done.returncode}: {done.stderr}")
    found = {}
    for one in json.loads(done.stdout):
        if complexity := re.search(r"\((\d+) > \d+\)", one["message"]):
            found[Path(one["filename"]), int(one["location"]["row"])] = int(complexity[1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=FOLDERS, metavar="FOLDER", help="relative to the repository")
    folders = parser.parse_args().folders
    found = offences(ROOT, folders)
    print(*found, sep="\n")
    print(f"{len(found)} to report; Any is written {uses_of_any()} times in {', '.join(PACKAGES)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
