"""Describes the differences between the identity in a store and the identity of an audit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_MAX_VALUE_CHARACTERS = 60  # maximum length of one value in a message
_MAX_LINES = 30  # maximum number of differences in a message
KEYED = "keyed hash "  # prefix of the parts that hide a secret; messages and results never show the hash
# Outputs with running times are not comparable with other outputs.  The scores of one run are comparable only with
# scores for the same canaries and the same coins.
_MIXED_NEVER = ("observe_time", "design", "canaries", "seed of the coins")


def differing(there: Mapping[str, object], here: Mapping[str, str]) -> list[str]:
    """Return the names of all parts that differ."""
    return [name for name in [*here, *(there.keys() - here.keys())] if there.get(name) != here.get(name)]


def mixable(names: Sequence[str]) -> bool:
    """Whether one audit can contain trials that differ in these parts."""
    return not set(names) & set(_MIXED_NEVER)


def what_to_do(names: Sequence[str]) -> str:
    """Return a sentence about continuing a store that differs in these parts."""
    if mixable(names):
        return "To continue the store nevertheless, use resume=anyway (--resume=anyway); the result then says so"
    return (
        "Even resume=anyway cannot continue the store, because outputs that differ in the following are not "
        f"comparable: {', '.join(name for name in names if name in _MIXED_NEVER)}"
    )


def in_lines(names: Sequence[str], there: Mapping[str, object], here: Mapping[str, str]) -> str:
    """Return the differences with their values.  Each difference follows a newline and an indentation."""
    lines = [f"\n  {shortened(name)}: {old} in the store, {new} now" for name, old, new in _values(names, there, here)]
    return "".join(lines) + (f"\n  and {len(names) - _MAX_LINES} more" if len(names) > _MAX_LINES else "")


def in_a_sentence(names: Sequence[str], there: Mapping[str, object], here: Mapping[str, str]) -> str:
    """Return the differences with their values, separated by commas."""
    found = [f"{shortened(name)} ({old} before, {new} now)" for name, old, new in _values(names, there, here)]
    more = f" and {len(names) - _MAX_LINES} more" if len(names) > _MAX_LINES else ""
    return ", ".join(found) + more


def shortened(text: object) -> str:
    """Shorten a value to one line, and shorten fingerprints to their first digits."""
    short = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", " ".join(str(text).split()))
    return short if len(short) <= _MAX_VALUE_CHARACTERS + 20 else f"{short[:_MAX_VALUE_CHARACTERS]}…{short[-19:]}"


def _values(names: Sequence[str], there: Mapping[str, object], here: Mapping[str, str]) -> list[tuple[str, str, str]]:
    return [
        (name, _visible(there.get(name, "nothing"), "one value"), _visible(here.get(name, "nothing"), "another"))
        for name in names[:_MAX_LINES]
    ]


def _visible(text: object, instead: str) -> str:
    return instead if str(text).startswith(KEYED) else shortened(text)
