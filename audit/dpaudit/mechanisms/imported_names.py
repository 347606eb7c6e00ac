"""Finds out from the source of a file from which module the file imports a name.

A config or a result may name `file.py:system`, where the file only imports `system`.  Then the code that runs is not
the code of that file.  The source is parsed and never run.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

_MAX_BYTES = 2**22  # maximum size of a file that is parsed; parsing takes a second or less


def imported_from(path: Path, name: str) -> str:
    """Return the module from which a file imports a name."""
    for node in _bindings(_body(path), name.split(".")[0]):
        if isinstance(node, ast.ImportFrom):
            return "." * node.level + (node.module or "")
        if isinstance(node, ast.alias):
            return node.name
    return ""


def _body(path: Path) -> Sequence[ast.stmt]:
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return []
        return ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _bindings(body: Sequence[ast.stmt], name: str) -> list[ast.AST]:
    """Return the definitions, imports and assigned values that bind a name.  Bodies of functions are not searched."""
    found: list[ast.AST] = []
    left: list[ast.AST] = list(body)
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found += [node] * (node.name == name)
            continue
        if isinstance(node, ast.Lambda | ast.comprehension):
            continue
        if isinstance(node, ast.Assign) and _names(node.targets) == [name]:
            found.append(node.value)
        elif isinstance(node, ast.ImportFrom):
            found += [node] * any((alias.asname or alias.name) in (name, "*") for alias in node.names)
        elif isinstance(node, ast.Import):
            found += [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) == name]
        elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            found.append(node)  # any other assignment
        else:
            left += ast.iter_child_nodes(node)
    return found


def _names(targets: Sequence[ast.expr]) -> list[str]:
    return [target.id for target in targets if isinstance(target, ast.Name)] if len(targets) == 1 else []
