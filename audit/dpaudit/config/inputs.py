"""Lists the inputs that a config passes to code, for people who decide whether to run that code."""

from __future__ import annotations

import json
from collections.abc import Iterable

from dpaudit.config.dataset_files import is_file
from dpaudit.config.models import AuditConfig
from dpaudit.text.printable import one_line, shortened
from dpaudit.values import Foreign

_MAX_CHARACTERS = 500  # maximum length of a value in the list
_MAX_COUNTED = 10**7  # maximum number of characters that are counted; aliases can expand a small file to a huge value
_MAX_VALUES = 100  # maximum number of values in the list


def inputs_of(config: AuditConfig) -> list[str]:
    """Return the parameters and datasets of an audit as printable lines, one for each value.

    Nothing is masked, because a mask could hide code.  The line of a shortened value states the length of the value.
    """
    given: list[tuple[str, Foreign]] = []
    if config.mechanism.params is not None:
        given.append(("params", config.mechanism.params))
    if config.mechanism.arguments is not None:
        given.append(("arguments", config.mechanism.arguments))
    for index, pair in enumerate(config.pairs):
        if pair.search is not None:
            given.append((f"pairs[{index}].search", pair.search.model_dump(by_alias=True, exclude_unset=True)))
        elif not pair.from_library:
            given += [
                (f"pairs[{index}].{key}{' (file)' if is_file(value) else ''}", value)
                for key, value in (("d0", pair.d0), ("d1", pair.d1))
            ]
    lines = [f"{name}: {_brief(value)}" for name, value in given[:_MAX_VALUES]]
    left = len(given) - len(lines)
    return [*lines, *([f"{left:,} more datasets, which are not shown; read the file"] if left else [])]


def files_of(config: AuditConfig) -> list[str]:
    """Return a printable line for each file with a dataset of an audit."""
    given = [
        (f"pairs[{index}].{key} (file)", value)
        for index, pair in enumerate(config.pairs)
        for key, value in (("d0", pair.d0), ("d1", pair.d1))
        if is_file(value)
    ]
    lines = [f"{name}: {_brief(value)}" for name, value in given[:_MAX_VALUES]]
    left = len(given) - len(lines)
    return [*lines, *([f"{left:,} more files, which are not shown; read the config"] if left else [])]


def _named(value: Foreign) -> Foreign:
    """Return the value for JSON: a mapping with a key that JSON does not have, such as a date, becomes a list."""
    if isinstance(value, dict):
        items = [(key, _named(inner)) for key, inner in value.items()]
        return dict(items) if all(key is None or isinstance(key, str | int | float) for key in value) else items
    return [_named(inner) for inner in value] if isinstance(value, list) else value


def _brief(value: Foreign) -> str:
    pieces: Iterable[str] = json.JSONEncoder(ensure_ascii=False, default=repr).iterencode(_named(value))
    text, length = "", 0
    for piece in pieces:
        length += len(piece)
        if len(text) <= _MAX_CHARACTERS:
            text += piece[: _MAX_CHARACTERS + 1]
        if length > _MAX_COUNTED:
            return (
                f"{one_line(shortened(text, _MAX_CHARACTERS))} (more than {_MAX_COUNTED:,} characters; read the file)"
            )
    note = f" ({length:,} characters; read the file)" if length > _MAX_CHARACTERS else ""
    return one_line(shortened(text, _MAX_CHARACTERS)) + note
