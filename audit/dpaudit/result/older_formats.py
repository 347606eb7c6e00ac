"""Converts result files of older formats to the current format of result files.

Renaming a key of result files requires a new format number and a conversion in this module.  Names of attacks are not
converted, because `resolve_attacks` accepts former names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpaudit.result.values import FORMAT
from dpaudit.text.formats import is_later, number
from dpaudit.values import Json, JsonObject

Values = JsonObject


def converted(values: Mapping[str, Json]) -> Values:
    """Convert the content of a result file to the keys of the current format."""
    found = values.get("format")
    if is_later(found, FORMAT):
        raise ValueError(
            f"its format is {found}, which a later version of dpaudit wrote; this version reads {FORMAT} and older "
            "formats; update dpaudit"
        )
    first = number(found, FORMAT)
    if first is None:
        raise ValueError(f"format must be {FORMAT}, got {str(found)[:100]!r}")
    now = dict(values)
    for convert in _CONVERSIONS[first - 1 :]:
        now = convert(now)
    return now | {"format": FORMAT}


def _from_1(values: Values) -> Values:
    """Convert format 1 to format 2.  The bounds of files without the key `certified` are valid."""
    now = _renamed({"bounds_valid": True, **values}, certified="bounds_valid")
    for key, names in (
        ("detectable", {"smallest_rate": "rule_of_three_rate"}),
        ("evidence", {"single": "coin_selected"}),
        ("environment", {"trials of the study": "trials of the second stage"}),
    ):
        if isinstance(now.get(key), Mapping):
            now[key] = _renamed(now[key], **names)
    return now


def _renamed(values: Mapping[str, Json], **names: str) -> Values:
    """Rename keys.  `names` maps old keys to new keys, and old keys that do not occur are ignored."""
    found = {key: value for key, value in values.items() if key not in names}
    return found | {new: values[old] for old, new in names.items() if old in values}


_CONVERSIONS: tuple[Callable[[Values], Values], ...] = (_from_1,)
"""Conversions in order: the first converts format 1 to format 2."""
