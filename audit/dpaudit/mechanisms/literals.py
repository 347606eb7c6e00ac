"""Decides whether a number that a function holds is written in the source or may have been sampled.

A function that is sent to another process carries the numbers that the function reads.  These numbers are globals of
`__main__` or of a notebook, and variables of an outer function.  Noise that was sampled once would be the same in both
processes.  So a non-integer number counts as a parameter only under two conditions:

- The name of the number is assigned only constant expressions, such as `SCALE = 1 / 3`, or is an argument of an outer
  function.
- No statement of the source changes the object of that name in place, such as `NOISE.append(...)` or `TABLE[:] = ...`.

In an expression, a name such as `sqrt` means the function of Python, `math` or `numpy`, unless the source binds it to
another object.  If an object is changed under a second name, or by a function that gets it as an argument, the change
is not detected.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import sys
import types
from collections.abc import Iterable, Iterator

from dpaudit.mechanisms.code_names import global_names
from dpaudit.mechanisms.modules import is_library
from dpaudit.mechanisms.protocol import Batched
from dpaudit.mechanisms.stateless import CHANGES, not_whole

_PURE = frozenset(
    ("abs", "arange", "array", "asarray", "ceil", "complex", "dict", "divide", "exp", "eye", "float", "floor", "full",
     "int", "len", "linspace", "log", "log10", "log1p", "log2", "logspace", "max", "mean", "min", "ones", "pow",
     "range", "round", "sqrt", "sum", "tuple", "zeros")
)  # fmt: skip
_MODULES = frozenset(("math", "np", "numpy"))
_CONSTANTS = frozenset(("pi", "e", "tau", "inf", "nan"))
_MAX_DEPTH = 10  # maximum length of a chain of names, such as A = B, B = C


def drawn_perhaps(mechanism: object) -> list[str]:
    """Return the names of numbers that a function holds and that may have been sampled.

    These numbers are not integers, and no source shows that they are parameters.

    Args:
        mechanism: A mechanism as in `audit`.  Only functions are examined.
    """
    function = mechanism.function if isinstance(mechanism, Batched) else mechanism
    found: list[str] = []
    seen: set[int] = set()
    left = [function]
    while left:
        one = left.pop()
        if not isinstance(one, types.FunctionType) or id(one) in seen or is_library(one.__module__ or ""):
            continue
        seen.add(id(one))
        source = _Source.of_function(one)
        for name, value, given in _held(one, source):
            if isinstance(value, types.FunctionType):
                left.append(value)
            elif not_whole(value) and not given:
                found.append(name)
    return list(dict.fromkeys(found))


def _held(function: types.FunctionType, source: _Source) -> Iterator[tuple[str, object, bool]]:
    """Yield the name and value of each variable of a function, and whether the source shows the value."""
    code = function.__code__
    for name in sorted(global_names(code) & function.__globals__.keys()):
        yield name, function.__globals__[name], source.is_literal(name)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents, source.is_given_outside(name, code.co_firstlineno)
        except ValueError:
            continue
    defaults = dict(
        zip(reversed(code.co_varnames[: code.co_argcount]), reversed(function.__defaults__ or ()), strict=False)
    )
    for name, value in {**defaults, **(function.__kwdefaults__ or {})}.items():
        yield name, value, source.is_literal_default(name, code.co_name, code.co_firstlineno)
    for name, value in vars(function).items():
        if name != "claim":
            yield name, value, False


class _Source:
    """The source text of a module, or of all cells of a notebook."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._trees: list[ast.Module] = []
        self._literal: dict[tuple[str, int], bool] = {}  # by name and depth
        for text in texts:
            try:
                self._trees.append(ast.parse(text))
            except (SyntaxError, ValueError, RecursionError, MemoryError):  # e.g. a cell with a notebook command
                continue

    @classmethod
    def of_function(cls, function: types.FunctionType) -> _Source:
        cells = function.__globals__.get("In")  # In holds the source of all cells that this notebook has run
        if isinstance(cells, list) and all(isinstance(cell, str) for cell in cells):
            return cls(cells)
        lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
        return cls(["".join(lines)] if lines else [])

    @classmethod
    def of_module(cls, name: str) -> _Source:
        try:
            return cls([inspect.getsource(sys.modules[name])])
        except (KeyError, OSError, TypeError):
            return cls([])

    def is_literal(self, name: str, depth: int = _MAX_DEPTH) -> bool:
        """Whether a global is assigned only constant expressions and never changed in place."""
        if (name, depth) not in self._literal:
            self._literal[name, depth] = name not in self._changed and self._is_assigned_literals(name, depth)
        return self._literal[name, depth]

    def _is_assigned_literals(self, name: str, depth: int) -> bool:
        values: list[ast.expr | None] = []
        for tree in self._trees:
            values += _assigned(name, tree, outer=not _declares_global(name, tree))
            for imported in (node for node in tree.body if isinstance(node, ast.ImportFrom) and not node.level):
                for alias in imported.names:
                    if (alias.asname or alias.name) == name and imported.module and depth:
                        if not _Source.of_module(imported.module).is_literal(alias.name, depth - 1):
                            return False
                        values.append(ast.Constant(0))
        return bool(values) and all(self._constant(value, depth) for value in values)

    def is_given_outside(self, name: str, line: int) -> bool:
        """Whether a variable of the enclosing function is an argument or is assigned only constant expressions."""
        if name in self._changed:
            return False
        around = [
            function for function in self._functions() if _first_line(function) < line <= (function.end_lineno or 0)
        ]
        for function in sorted(around, key=_first_line, reverse=True):
            values = _assigned(name, function, outer=False)
            if values:
                return all(self._constant(value, _MAX_DEPTH) for value in values)
            arguments = function.args
            if name in [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]:
                return True
        return False

    def is_literal_default(self, name: str, function_name: str, line: int) -> bool:
        """Whether the default of an argument is a constant expression."""
        for function in self._functions():
            if function.name != function_name or _first_line(function) != line:
                continue
            arguments = function.args
            positional = [*arguments.posonlyargs, *arguments.args]
            pairs = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)]
            defaults = {one.arg: value for one, value in pairs}
            defaults |= {
                one.arg: value for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value
            }
            if name in defaults:
                return self._constant(defaults[name], _MAX_DEPTH)
        return False

    @functools.cached_property
    def _changed(self) -> set[str]:
        return set().union(*map(_changed_in_place, self._trees))

    @functools.cached_property
    def _rebound(self) -> set[str]:
        return set().union(*map(_bound_elsewhere, self._trees))

    def _functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for tree in self._trees:
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield node

    def _constant(self, node: ast.expr | None, depth: int) -> bool:
        match node:
            case ast.Constant():
                return True
            case ast.UnaryOp(operand=operand):
                return self._constant(operand, depth)
            case ast.BinOp(left=left, right=right):
                return self._constant(left, depth) and self._constant(right, depth)
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
                return all(self._constant(item, depth) for item in items)
            case ast.Dict(keys=keys, values=values):
                return all(self._constant(item, depth) for item in [*keys, *values])
            case ast.Name(id=name):
                return depth > 0 and self.is_literal(name, depth - 1)
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                return module in _MODULES and name in _CONSTANTS
            case ast.Call(func=function, args=given, keywords=named):
                return self._is_pure(function) and all(
                    self._constant(one, depth) for one in (*given, *(n.value for n in named))
                )
        return False

    def _is_pure(self, function: ast.expr) -> bool:
        match function:
            case ast.Name(id=name):
                return name in _PURE and name not in self._rebound
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                return module in _MODULES and name in _PURE and module not in self._rebound
        return False


def _changed_in_place(tree: ast.Module) -> set[str]:
    """Return the names of objects that statements change in place."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                found.add(_base(node))
            case ast.Call(func=function, args=given, keywords=named):
                name = function.attr if isinstance(function, ast.Attribute) else _base(function)
                if name in CHANGES:
                    found.update(map(_base, [function, *given]))
                found.update(_base(one.value) for one in named if one.arg in CHANGES)
    return found


def _base(node: ast.expr) -> str:
    """Return NAME of an expression such as `NAME.a[0].b`, or "" for any other expression."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _bound_elsewhere(tree: ast.Module) -> set[str]:
    """Return the names that the source binds to objects outside Python, `math` and `numpy`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Import(names=names):
                tops = [(one.asname or one.name.split(".")[0], one) for one in names]
                found.update(name for name, one in tops if not _is_known(one.name if one.asname else name))
            case ast.ImportFrom(module=module, names=names) if not _is_known(module or ""):
                found.update(*(_PURE if one.name == "*" else [one.asname or one.name] for one in names))
    return found


def _is_known(module: str) -> bool:
    return module in _MODULES or module == "builtins"


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the first line of a function, at a decorator or at `def`, as in its code object."""
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _declares_global(name: str, tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(tree))


def _assigned(name: str, scope: ast.AST, *, outer: bool) -> list[ast.expr | None]:
    """Return the expressions that are assigned to a name.  None stands for an assignment of another form.

    Args:
        name: The name of a variable.
        scope: A module or function.
        outer: Whether to skip nested functions, because their variables are separate.
    """
    found: list[ast.expr | None] = []
    left = list(ast.iter_child_nodes(scope))
    while left:
        node = left.pop()
        if outer and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=target)], value=value)
                | ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)
                | ast.AugAssign(target=ast.Name(id=target), value=value)
                | ast.NamedExpr(target=ast.Name(id=target), value=value)
            ):
                if target == name:
                    found.append(value)
                left.append(value)
                continue
            case ast.Name(id=target, ctx=ast.Store()) if target == name:
                found.append(None)
        left.extend(ast.iter_child_nodes(node))
    return found
