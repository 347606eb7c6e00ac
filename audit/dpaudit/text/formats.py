"""Names and numbers of file formats, such as "dpaudit-result/2"."""

from __future__ import annotations

import re


def number(found: object, ours: str) -> int | None:
    """Return the number of a file format."""
    kind = ours.rpartition("/")[0]
    same = re.fullmatch(rf"{re.escape(kind)}/([1-9][0-9]{{0,5}})", found) if isinstance(found, str) else None
    return int(same[1]) if same else None


def is_later(found: object, ours: str) -> bool:
    """Return whether a file has a later format of the same kind, which this version cannot read."""
    return (number(found, ours) or 0) > int(ours.rpartition("/")[2])
