"""Result files of older formats, converted to the format that is written now.

A key that gets another name raises the number of the format, and gets a conversion here.  Names of attacks are not
converted: they are what the audit wrote, and `resolve_attacks` understands former names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpaudit.result.values import FORMAT
from dpaudit.text.formats import is_later, number

Values = dict[str, Any]


def converted(values: Mapping[str, Any]) -> Values:
    """The content of a result file under the keys of today.

    Raises:
        ValueError: The format is a later one, or not that of a result.
    """
    found = values.get("format")
    if is_later(found, FORMAT):
        raise ValueError(
            f"its format is {found}, which a later version of dpaudit wrote; this version reads {FORMAT} and older "
            "ones, so update dpaudit"
        )
    first = number(found, FORMAT)
    if first is None:
        raise ValueError(f"format must be {FORMAT}, got {str(found)[:100]!r}")
    now = dict(values)
    for convert in _CONVERSIONS[first - 1 :]:
        now = convert(now)
    return now | {"format": FORMAT}


def _from_1(values: Values) -> Values:
    """Keys with names of our own get those of the field; files of before `certified` was written are valid."""
    now = _renamed({"bounds_valid": True, **values}, certified="bounds_valid")
    for key, names in (
        ("detectable", {"smallest_rate": "rule_of_three_rate"}),
        ("evidence", {"single": "coin_selected"}),
        ("environment", {"trials of the study": "trials of the second stage"}),
    ):
        if isinstance(now.get(key), Mapping):
            now[key] = _renamed(now[key], **names)
    return now


def _renamed(values: Mapping[str, Any], **names: str) -> Values:
    """The same values; those under an older name, which is there, under the newer one."""
    found = {key: value for key, value in values.items() if key not in names}
    return found | {new: values[old] for old, new in names.items() if old in values}


_CONVERSIONS: tuple[Callable[[Values], Values], ...] = (_from_1,)
"""From format 1 to 2, and so on."""
