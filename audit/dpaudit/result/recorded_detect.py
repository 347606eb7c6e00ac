"""Finds the key `detect` in the config that a result records, without constructing any value of this config.

The text may be hostile: a pattern would also match lines inside a quoted text, and would miss a key that is written in
another way.  So the key is found among the events of the parser, and a text that dpaudit does not write is left unread.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import yaml

_MAX_LETTERS = 2**22  # maximum length of the text of a config, as on reading it
_MAX_EVENTS = 210_000  # maximum number of events; a config has at most 100,000 keys and entries
_MAX_DEPTH = 100  # maximum depth; the scanner takes quadratic time for deeper texts
_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")  # tags of a scalar that is text, or has no tag
_NOTHING = ("", "~", "null", "Null", "NULL")  # plain scalars that YAML reads as a missing value
_ELSEWHERE = ("audits", "<<")  # keys that place `detect` in another mapping


class _Unreadable(Exception):
    """Raised if a config has a form that dpaudit does not write."""


@lru_cache(maxsize=4)
def detect_of(config: str) -> str | None:
    """Return the value of the top-level key `detect` of a config."""
    if len(config) > _MAX_LETTERS:
        return None
    try:
        found = [value for key, value in _entries(config) if key == "detect"]
    except (_Unreadable, yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError):
        return None
    except (RecursionError, MemoryError):
        return None
    return None if len(found) > 1 else next(iter(found), "")


def _entries(config: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of the top-level mapping with their values; "" for a value that `detect` cannot have."""
    depth, key, documents = 0, None, 0
    events = yaml.parse(config, Loader=yaml.SafeLoader)
    for event in islice(events, _MAX_EVENTS):
        documents += isinstance(event, yaml.DocumentStartEvent)
        ends = isinstance(event, yaml.CollectionEndEvent)
        depth -= ends
        if depth == 0 and isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.MappingStartEvent):
            raise _Unreadable
        if depth == 1 and isinstance(event, yaml.NodeEvent) and key is None:
            key = _key(event)
        elif depth == 1 and key is not None and (ends or isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent))):
            yield key, _value(event) if key == "detect" else ""
            key = None
        depth += isinstance(event, yaml.CollectionStartEvent)
        if depth > _MAX_DEPTH:
            raise _Unreadable
    if documents != 1 or next(events, None) is not None:
        raise _Unreadable


def _key(event: yaml.Event) -> str:
    if not isinstance(event, yaml.ScalarEvent) or event.tag not in _TEXT_TAGS or event.value in _ELSEWHERE:
        raise _Unreadable
    return str(event.value)


def _value(event: yaml.Event) -> str:
    if not isinstance(event, yaml.ScalarEvent) or event.tag not in _TEXT_TAGS:
        raise _Unreadable
    return "" if event.implicit[0] and event.value in _NOTHING else str(event.value)
