"""Computes a hashable key for a value of any type.  Equal values have equal keys."""

from __future__ import annotations

import array
import hashlib
import io
import pickle
from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.values import Foreign

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_LARGE = 4096  # maximum size of the content in a key, in bytes; a digest replaces larger contents to save memory


def key(value: Foreign) -> Hashable:
    """Return a hashable key of a value.

    Equal values have equal keys, and values with different contents have different keys.

    Equal numbers of different types, such as True, 1 and 1.0, have different keys, and so have 0.0 and -0.0, because
    the difference may leak information.  All NaNs of the Python type float have the same key.  Two arrays have equal
    keys if their types, shapes and bytes are equal.  The key of a dict depends on the order of its items.

    The key depends on the complete content of large arrays and data frames, in contrast to `repr`.  If a value cannot
    be pickled, its key is computed from its `repr`.
    """
    match value:
        case float():
            return float(value) if value and value == value else str(value)  # 0.0 == -0.0, and NaN differs from itself
        case np.ndarray() | np.generic() if not (value.dtype.hasobject or isinstance(value, np.ma.MaskedArray)):
            return _short(f"{value.dtype.str} {value.dtype.names} {value.shape} ".encode() + value.tobytes())
        case int():
            return type(value).__name__, value
        case str():
            return "str", value
        case bytes() | None:
            return value
    return _content(value)


def joined(texts: list[str]) -> tuple[bytes, bytes]:
    """Return the lengths of the encoded texts, and all texts in one piece.  Different lists give different pairs."""
    known = {text: text.encode("utf-8", "surrogatepass") for text in set(texts)}  # columns often repeat few texts
    encoded = [known[text] for text in texts]
    return array.array("q", map(len, encoded)).tobytes(), b"".join(encoded)


def _content(value: Foreign) -> bytes:
    """Return the pickled bytes of a value, or the SHA-256 digest of these bytes if they are long."""
    file = io.BytesIO()
    try:
        ContentPickler(file).dump(value)
    except Exception:  # pickling calls methods of the value, which may raise any exception
        return repr(value).encode("utf-8", "surrogatepass")
    return _short(file.getvalue())


def _short(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() if len(content) > _LARGE else content


class ContentPickler(pickle.Pickler):
    """A pickler whose result does not depend on object identities or on the memory layout of arrays and data frames."""

    def __init__(self, file: SupportsWrite[bytes]) -> None:
        super().__init__(file, protocol=5)
        self.fast = True  # writes an object completely each time, even if the object occurs repeatedly

    def sort_key(self, item: object) -> bytes:
        """Return bytes by which the items of a set are sorted."""
        return _content(item)

    def persistent_id(self, value: Foreign) -> tuple[object, ...] | None:
        """Return the object that is pickled in place of a value, or None if the value itself is pickled."""
        kind = type(value)
        if kind in PLAIN:
            return None
        if kind is np.ndarray:
            return (
                "array",
                repr(value.dtype),
                value.shape,
                _entries(value) if value.dtype.hasobject else value.tobytes(),
            )
        if isinstance(value, np.generic):
            return "number", value.dtype.str, value.tobytes()
        if kind in (set, frozenset):
            return kind.__name__, sorted(map(self.sort_key, value))
        library = kind.__module__.split(".")[0]
        if library == "pandas":
            return _of_pandas(value)
        if library == "torch" and hasattr(value, "detach"):  # a pickled view contains the whole tensor
            return "tensor", str(value.dtype), value.detach().cpu().numpy()
        return None


def _entries(value: Foreign) -> object:
    entries = value.ravel().tolist()
    return joined(entries) if set(map(type, entries)) == {str} else entries


PLAIN = frozenset((float, int, bool, str, bytes, type(None), tuple, list, dict))


def _of_pandas(value: Foreign) -> tuple[object, ...] | None:
    """Return the content of a pandas object without its caches, or None if the value is not a pandas object."""
    kind = type(value).__name__
    if kind == "DataFrame":
        columns = [value.iloc[:, place] for place in range(value.shape[1])]
        return kind, value.columns, value.index, value.attrs, [(_dtype(one), one.to_numpy()) for one in columns]
    if kind == "Series":
        return kind, value.name, value.index, value.attrs, _dtype(value), value.to_numpy()
    if kind.endswith("Index"):
        return kind, list(value.names), _dtype(value), value.to_numpy()
    return None


def _dtype(column: Foreign) -> object:
    kind = column.dtype
    return (str(kind), kind.categories, kind.ordered) if hasattr(kind, "categories") else str(kind)
