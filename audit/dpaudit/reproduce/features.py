"""Writes named parts of outputs, such as "length of output['a']", as Python expressions.

`dpaudit.outputs` gives the parts their names.  A name may come from an edited file, so each name is parsed, and the
expression is built from the parsed numbers and texts only.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from dpaudit.reproduce.literals import Unwritable, literal

# Scripts define two functions: `entries` returns the entries of a vector, or the values of a dict, as an array, and
# `numbers` returns the numbers of an array or a flat list; it raises for a dict.
_QUOTED = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_STEP = re.compile(rf"\[(-?\d{{1,9}}|True|False|None|{_QUOTED})\]")
_LABEL = re.compile(rf"-?\d{{1,300}}|-?\d{{1,30}}\.\d{{1,30}}(?:e[+-]?\d{{1,3}})?|True|False|None|{_QUOTED}")
_BYTES = re.compile(r"bytes ((?:[0-9a-f]{2})*)")
_WORD = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)

_OF_ALL = {  # names that `outputs.derived` gives to columns of vectors; numbers that are not finite count as 0
    "sum of all numbers": "np.sum(numbers(output))",
    "norm of all numbers": "np.linalg.norm(numbers(output))",
    "largest number": "np.max(numbers(output))",
    "least number": "np.min(numbers(output))",
    "place of the largest number": "np.argmax(numbers(output))",
    "place of the least number": "np.argmin(numbers(output))",
    "number of zeros": "np.sum(np.ravel(output) + 0.0 == 0)",
    "number of different numbers": "len(np.unique(numbers(output)))",
    "number of steps up": "np.sum(np.diff(numbers(output)) > 0)",
    "sum of products of neighbours": "np.sum(numbers(output)[1:] * numbers(output)[:-1])",
}
_OF_PART = {
    "length of ": "len({0})",
    "number of keys of ": "len({0})",
    "rows of ": "len({0})",
    "sum of ": "np.sum(entries({0}))",
    "norm of ": "np.linalg.norm(entries({0}))",
    "least of ": "np.min(entries({0}))",
    "largest of ": "np.max(entries({0}))",
    "number of zeros in ": "np.sum(entries({0}) == 0)",
    "real part of ": "{0}.real",
    "imaginary part of ": "{0}.imag",
}
_STATES = {
    " is a whole number": "float({0}).is_integer()",
    " is odd": "{0} % 2 == 1",
    " is zero": "{0} == 0",
}
_OF_TWO = {
    " equals ": "{0} == {1}",
    " is above ": "{0} > {1}",
    " times ": "{0} * {1}",
}
_TYPES = {
    "None": "{0} is None",
    "number": "isinstance({0}, (float, np.floating)) and np.isfinite({0})",
    "nan": "isinstance({0}, (float, np.floating)) and np.isnan({0})",
    "inf": "{0} == float('inf')",
    "-inf": "{0} == -float('inf')",
    "boolean": "isinstance({0}, (bool, np.bool_))",
    "integer": "isinstance({0}, (int, np.integer)) and not isinstance({0}, bool)",
    "complex number": "isinstance({0}, (complex, np.complexfloating))",
    "text": "isinstance({0}, str)",
}


def expression(name: str) -> str:
    """Return an expression of `output` and numpy (`np`) for a named part."""
    for found in _candidates(name):
        return found
    raise Unwritable(f"it needs {literal(name[:100])}, which has no short expression in Python")


def _candidates(name: str) -> Iterator[str]:
    if name in _OF_ALL:
        yield _OF_ALL[name]
    yield from _simple(name)
    for words, form in _OF_TWO.items():
        for first, second in _splits(name, words):
            yield form.format(first, second)
    yield from _statements(name)
    if name.startswith("distance of "):
        for first, second in _splits(name.removeprefix("distance of "), " and "):
            yield f"abs({first} - {second})"


def _splits(name: str, words: str) -> Iterator[tuple[str, str]]:
    """Yield the expressions of both names in "NAME words NAME"."""
    for match in re.finditer(re.escape(words), name):
        for first in _simple(name[: match.start()]):
            for second in _simple(name[match.end() :]):
                yield first, second


def _simple(name: str) -> Iterator[str]:
    """Yield the expression of a name that `outputs.parts` gives to a number."""
    if path := _path(name):
        yield path
    for words, form in _OF_PART.items():
        if name.startswith(words) and (path := _path(name.removeprefix(words))):
            yield form.format(path)
    counted = re.fullmatch(r"number of (.+) in (.+)", name, flags=re.S)
    if counted and (path := _path(counted[2])) and (label := _label(counted[1])):
        yield f"list({path}).count({label})"


def _statements(name: str) -> Iterator[str]:
    for words, form in _STATES.items():
        if name.endswith(words):
            yield from (form.format(part) for part in _simple(name.removesuffix(words)))
    held = re.fullmatch(r"(.+?) in (output.*)", name, flags=re.S)
    if held and (path := _path(held[2])) and (label := _label(held[1])):
        yield f"{label} in {path}"
    stated = re.fullmatch(r"(.+?) is (.+)", name, flags=re.S)
    if not stated:
        return
    if stated[1].startswith("type of ") and (path := _path(stated[1].removeprefix("type of "))):
        yield from _of_type(path, stated[2])
    elif stated[1].startswith("shape of ") and (path := _path(stated[1].removeprefix("shape of "))):
        yield f"'x'.join(map(str, np.shape({path}))) == {literal(stated[2])}"
    elif path := _path(stated[1]):
        yield from (f"{side} == {value}" for side, value in labelled(path, stated[2]))


def _of_type(path: str, kind: str) -> Iterator[str]:
    if kind in _TYPES:
        yield _TYPES[kind].format(path)
    elif kind.startswith("raised ") and _WORD.fullmatch(raised := kind.removeprefix("raised ")):
        yield f"isinstance({path}, Exception) and type({path}).__name__ == {literal(raised)}"
    elif kind.startswith("array of ") and _WORD.fullmatch(dtype := kind.removeprefix("array of ")):
        yield f"isinstance({path}, np.ndarray) and {path}.dtype.name == {literal(dtype)}"
    elif _WORD.fullmatch(kind) and kind != "missing":
        yield f"type({path}).__name__ == {literal(kind)}"


def labelled(path: str, label: str) -> Iterator[tuple[str, str]]:
    """Yield an expression, and the value that it has if and only if the output has the label."""
    if re.fullmatch(_QUOTED, label) or _BYTES.fullmatch(label):
        if value := _label(label):
            yield path, value
    elif not label.startswith("#"):  # a hash of a long text
        yield f'getattr({path}, "name", str({path}))', literal(label)


def _path(name: str) -> str:
    """Return the expression of a part such as output['a'][-1]; "" if the name is no such part."""
    if name.startswith("message of ") and (path := _path(name.removeprefix("message of "))):
        return f"str({path})"
    if not name.startswith("output"):
        return ""
    place, found = len("output"), "output"
    while step := _STEP.match(name, place):
        if not (key := _literal_of(step[1])):
            return ""
        found, place = f"{found}[{key}]", step.end()
    return found if place == len(name) else ""


def _label(label: str) -> str:
    """Return the literal of a labelled value; "" if the label does not determine the value."""
    if data := _BYTES.fullmatch(label):
        return literal(bytes.fromhex(data[1]))
    return _literal_of(label) if _LABEL.fullmatch(label) else ""


def _literal_of(text: str) -> str:
    """Return the literal of a number or a quoted text; "" if Python does not read the text, such as 007 or '\\xZZ'."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an unknown escape such as '\\q' is only a warning in some versions of Python
        try:
            return literal(ast.literal_eval(text))
        except (SyntaxError, ValueError):
            return ""
