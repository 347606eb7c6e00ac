"""Writes the region of a witness as a condition in plain Python.

The test of a script is valid for any condition that is fixed before the runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.reproduce.literals import Unwritable, brief_text, literal
from dpaudit.result.region import Condition, Interval
from dpaudit.result.values import Witness
from dpaudit.values import OUTPUT, Label, within, words

# Scripts define two functions: `entries` returns the entries of a vector, or the values of a dict, as an array, and
# `numbers` returns the numbers of an array or a flat list; it raises for a dict.
_FORMS = {
    "output": "output",
    "message of {}": "str({0})",
    "first character of {}": "{0}[0]",
    "last character of {}": "{0}[-1]",
    "length of {}": "len({0})",
    "number of keys of {}": "len({0})",
    "rows of {}": "len({0})",
    "sum of {}": "np.sum(entries({0}))",
    "norm of {}": "np.linalg.norm(entries({0}))",
    "least of {}": "np.min(entries({0}))",
    "largest of {}": "np.max(entries({0}))",
    "number of zeros in {}": "np.sum(entries({0}) == 0)",
    "real part of {}": "{0}.real",
    "imaginary part of {}": "{0}.imag",
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
    "{} is a whole number": "float({0}).is_integer()",
    "{} is odd": "{0} % 2 == 1",
    "{} is zero": "{0} == 0",
    "{} equals {}": "{0} == {1}",
    "{} is above {}": "{0} > {1}",
    "{} times {}": "{0} * {1}",
    "distance of {} and {}": "abs({0} - {1})",
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
_CONSTANTS = ("None", "True", "False", "0.0")
_REASONS = {
    "bits": "it depends on the low-order bits of the numbers",
    "timed": "it depends on the running time",
    "natural": "it is a threshold on the score of the attacks, which only dpaudit computes",
}
_ADVICE = (
    "audit again with an attack whose region can be written, such as `attacks: median_clipped` in the config or "
    'attacks="median_clipped" in Python'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event in plain Python."""

    condition: str
    negated: bool
    partial: bool  # whether the condition may raise for some outputs, because a part is missing or has another type
    flattens: bool  # whether it reads an entry of the output by its index, so that the script must flatten arrays
    raised: bool  # whether it is about exceptions


def event_of(witness: Witness) -> Event:
    """Return the event that a witness describes."""
    found = witness.described.condition
    try:
        if found is None:
            raise Unwritable(_REASONS[witness.described.view])
        forms = list(within(found.feature))
        return Event(
            condition=_condition(found),
            negated=found.negated,
            partial=found.listed is None,
            flattens=any(one[:2] == ("{}[{}]", OUTPUT) and isinstance(one[2], int) for one in forms),
            raised=any(one[0] == "raised {}" for one in forms),
        )
    except Unwritable as error:
        region = brief_text(witness.region)
        raise Unwritable(f"the region {region} cannot be written in Python: {error}; {_ADVICE}") from None


def _condition(found: Condition) -> str:
    value = expression(found.feature)
    if found.listed is not None:
        sides: dict[str, list[str]] = {}
        for one in found.listed:
            side, text = _labelled(value, one)
            sides.setdefault(side, []).append(text)
        # a set cannot look up an array without dimensions
        return " or ".join(f"{side} in [{', '.join(texts)}]" for side, texts in sides.items())
    if not found.intervals and not found.missing:
        return value
    value = f"({value})" if " " in value else value
    conditions = [_interval(value, one) for one in found.intervals]
    if found.missing and not found.negated:  # the complement holds for missing values anyway
        conditions.append(f"{value} != {value}")
    return " or ".join(conditions)


def _interval(value: str, interval: Interval) -> str:
    low, high = literal(interval.low), literal(interval.high)
    if interval == Interval():
        return f"{value} == {value}"  # NaN counts as missing
    if interval.low == -math.inf:
        return f"{value} < {high}"
    return f"{value} > {low}" if interval.high == math.inf else f"{low} < {value} < {high}"


def expression(feature: Label) -> str:
    """Return an expression of `output` and numpy (`np`) for a feature."""
    match feature:
        case ("{}[{}]", of, step):
            return f"{expression(of)}[{_literal(step)}]"
        case ("number of {} in {}", label, of):
            return f"list({expression(of)}).count({_literal(label)})"
        case ("{} in {}", label, of):
            return f"{_literal(label)} in {expression(of)}"
        case ("{} is {}", ("type of {}", of), kind):
            return _of_type(expression(of), kind)
        case ("{} is {}", ("shape of {}", of), (str() as shape,)):
            return f"'x'.join(map(str, np.shape({expression(of)}))) == {literal(shape)}"
        case ("{} is {}", of, label):
            return " == ".join(_labelled(expression(of), label))
        case (form, *arguments) if form in _FORMS:
            return _FORMS[form].format(*map(expression, arguments))
    raise Unwritable(f"it needs {literal(words(feature)[:100])}, which has no short expression in Python")


def _of_type(value: str, kind: Label) -> str:
    match kind:
        case (name,) if name in _TYPES:
            return _TYPES[name].format(value)
        case ("raised {}", (str() as name,)):
            return f"isinstance({value}, Exception) and type({value}).__name__ == {literal(name)}"
        case ("array of {}", (str() as name,)):
            return f"isinstance({value}, np.ndarray) and {value}.dtype.name == {literal(name)}"
        case (str() as name,) if name.isidentifier() and name != "missing":
            return f"type({value}).__name__ == {literal(name)}"
    raise Unwritable(f"it needs the type {literal(words(kind)[:100])}")


def _labelled(value: str, label: Label | float) -> tuple[str, str]:
    """Return an expression, and the literal that it equals if and only if the output has the label."""
    match label:
        case (str() as text,):  # the name of an enum, or the text of a number such as a Decimal
            if text.startswith("#"):
                raise Unwritable("a long text is stated by its hash only")
            return f'getattr({value}, "name", str({value}))', literal(text)
    return value, _literal(label)


def _literal(label: Label | float) -> str:
    match label:
        case str() | int() | float():
            return literal(label)
        case ("{}", float() as number):
            return literal(number)
        case ("bytes {}", (str() as digits,)):
            try:
                return literal(bytes.fromhex(digits))
            except ValueError:
                pass
        case (str() as name,) if name in _CONSTANTS:
            return name
    raise Unwritable(f"it needs {literal(words(label)[:100])}, which has no literal in Python")
