"""Writes the region of a witness as a condition in plain Python.

`dpaudit.engine.region_words` describes regions.  The condition holds for the described outputs.  These may differ
slightly from the outputs in the region, because the description rounds numbers.  The test of a script is valid for any
condition that is fixed before the runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpaudit.reproduce.features import expression, labelled
from dpaudit.reproduce.literals import MAX_LITERAL, Unwritable, brief_text, literal

_NEARLY = "; nearly the same as: "
_NUMBER = r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?|inf)"
_INTERVAL = re.compile(rf"(above|below) ({_NUMBER})|between ({_NUMBER}) and ({_NUMBER})|nan")
_CUT = re.compile(rf"(.+) (above|below|at most) ({_NUMBER})( or missing)?", re.S)
_LISTED = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,{}'\"]+)(?:, |$)")
_REASONS = {
    "low-order bits": "it depends on the low-order bits of the numbers",
    "running time": "it depends on the running time",
    "estimated log-likelihood ratio": "it is a threshold on the score of the attacks, which only dpaudit computes",
}
_ADVICE = (
    "audit again with an attack whose region can be written, such as `attacks: median_clipped` in the config or "
    'attacks="median_clipped" in Python'
)


@dataclass(frozen=True, slots=True)
class Event:
    """An event in plain Python."""

    condition: str
    negated: bool = False
    nearly: bool = False

    @property
    def partial(self) -> bool:
        """Whether the condition may raise for some outputs, because a part is missing or has another type."""
        return self.condition != "output != output" and not self.condition.startswith("output in ")

    @property
    def flattens(self) -> bool:
        """Whether the condition reads an entry of the output by its index, so that the script must flatten arrays."""
        return re.search(r"\boutput\[-?\d", self.condition) is not None


def event_of(region: str) -> Event:
    """Return the event that a description states."""
    if len(region) > MAX_LITERAL:
        raise Unwritable(f"the region has a description of {len(region):,} characters; {_ADVICE}")
    words = region.partition(_NEARLY)[2] or region
    for start, reason in _REASONS.items():
        if words.startswith(start):
            raise Unwritable(f"the region {brief_text(region)} cannot be written in Python: {reason}; {_ADVICE}")
    try:
        condition, negated = _condition(words)
    except Unwritable as error:
        raise Unwritable(f"the region {brief_text(region)} cannot be written in Python: {error}; {_ADVICE}") from None
    return Event(condition, negated, nearly=_NEARLY in region)


def _condition(words: str) -> tuple[str, bool]:
    """Return an expression, and whether the event is its complement."""
    if listed := re.fullmatch(r"output in \{(.*)\}", words, flags=re.S):
        return _listed(listed[1]), False
    if found := _intervals(words):
        return found, False
    if cut := _CUT.fullmatch(words):
        value, number = _operand(cut[1]), _number(cut[3])
        if cut[4]:  # "at most ... or missing" is the complement of "above ..."
            return f"{value} > {number}", True
        return f"{value} {'>' if cut[2] == 'above' else '<' if cut[2] == 'below' else '<='} {number}", False
    if words.endswith((" is present", " is missing")):
        value = _operand(words.rpartition(" is ")[0])
        return f"{value} == {value}", words.endswith("missing")  # NaN counts as missing
    if words.endswith((" = 1", " = 0")):
        return f"{_operand(words[:-4])} > 0", words.endswith("0")
    value = expression(words.removeprefix("not: "))
    return value, words.startswith("not: ")


def _operand(name: str) -> str:
    """Return the expression of a named part, in parentheses if a comparison could take it apart."""
    value = expression(name)
    return f"({value})" if " " in value else value


def _intervals(words: str) -> str:
    """Return the condition of "output above 1 or between -3 and -2"; "" if the words state no intervals."""
    parts = [_INTERVAL.fullmatch(part) for part in words.removeprefix("output ").split(" or ")]
    if not words.startswith("output ") or None in parts:
        return ""
    found = []
    for part in parts:
        assert part is not None
        if part[1]:
            found.append(f"output {'>' if part[1] == 'above' else '<'} {_number(part[2])}")
        else:
            found.append(f"{_number(part[3])} < output < {_number(part[4])}" if part[3] else "output != output")
    return " or ".join(found)


def _listed(inside: str) -> str:
    """Return the condition of "output in {...}".

    The description writes numbers with six digits, and text in the form of `repr`.
    """
    items = [match[1] for match in _LISTED.finditer(inside)]
    if ", ".join(items) != inside or not items:
        raise Unwritable("its list of outputs cannot be read")
    if all(re.fullmatch(_NUMBER + "|True|False", item) for item in items):
        numbers = [item if item in ("True", "False") else _number(item) for item in items]
        whole = all(item.lstrip("-").isdecimal() or item in ("True", "False") for item in items)
        value = "output" if whole else 'float(f"{output:.6g}")'  # the digits of the description
        return f"{value} in [{', '.join(numbers)}]"  # a set cannot look up an array without dimensions
    found: dict[str, list[str]] = {}
    for item in items:
        sides = list(labelled("output", item))
        if not sides:
            if item.startswith("#"):
                raise Unwritable("a long text is stated by its hash only")
            raise Unwritable("its list of outputs cannot be read")
        for side, value in sides:
            found.setdefault(side, []).append(value)
    return " or ".join(f"{side} in [{', '.join(values)}]" for side, values in found.items())


def _number(text: str) -> str:
    """Return the literal of a number in a description."""
    return literal(int(text) if text.lstrip("-").isdecimal() else float(text))
