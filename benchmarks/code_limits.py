"""Lists files and functions that are too long or too complex.

    python benchmarks/code_limits.py [FOLDER ...]      audit, attacks, reports, tests and benchmarks unless given

A file may have at most 400 lines.  A function may have at most 60 lines without its docstring, and a cyclomatic
complexity of at most 15 (`ruff`, C901).  The exit code is 1 if any file or function is reported, and 0 otherwise.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("audit", "attacks", "reports")
MAX_LINES_OF_A_FILE = 400
MAX_LINES_OF_A_FUNCTION = 60
MAX_COMPLEX = 15


def offences(root: Path = ROOT, folders: Sequence[str] = (*PACKAGES, "tests", "benchmarks")) -> list[str]:
    """Return a line for each file and function of the given folders that exceeds a limit."""
    found = _entangled(root, folders)
    for path in (file for folder in folders for file in sorted((root / folder).rglob("*.py"))):
        text, file = path.read_text(encoding="utf-8"), str(path.relative_to(root))
        if (lines := len(text.splitlines())) > MAX_LINES_OF_A_FILE:
            found.append(f"{file}:1: the file has {lines} lines, at most {MAX_LINES_OF_A_FILE}")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[ast.get_docstring(node) is not None :] or node.body
                length = (node.end_lineno or 0) - body[0].lineno + node.body[0].lineno - node.lineno + 1
                if length > MAX_LINES_OF_A_FUNCTION:
                    words = f"{node.name} has {length} lines, at most {MAX_LINES_OF_A_FUNCTION}"
                    found.append(f"{file}:{node.lineno}: {words}")
    return sorted(found)


def _entangled(root: Path, folders: Sequence[str]) -> list[str]:
    command = ["ruff", "check", "--isolated", "--ignore-noqa", "--no-cache", "--select", "C901"]
    limit = ["--config", f"lint.mccabe.max-complexity={MAX_COMPLEX}", "--output-format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", *command, *limit, *folders], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode > 1:
        raise RuntimeError(f"ruff ended with {done.returncode}: {done.stderr}")
    found = []
    for one in json.loads(done.stdout):
        if named := re.search(r"`(\w+)` .*\((\d+) > \d+\)", one["message"]):
            file = Path(one["filename"]).relative_to(root)
            words = f"{named[1]} has complexity {named[2]}, at most {MAX_COMPLEX}"
            found.append(f"{file}:{one['location']['row']}: {words}")
    return found


if __name__ == "__main__":
    reported = offences(folders=sys.argv[1:]) if sys.argv[1:] else offences()
    print(*reported, f"{len(reported)} to report", sep="\n")
    sys.exit(bool(reported))
