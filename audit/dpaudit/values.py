"""Values of any type: their names in signatures, finding equal ones, naming their parts, writing them as JSON.

`object` marks a value whose attributes are never read, and the aliases here those that dpaudit only passes on.
"""

from __future__ import annotations

import array
import hashlib
import io
import json
import math
import pickle
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


Dataset = Any  # the input of a mechanism; the mechanism defines the type of the input
Record = Any  # one record of a dataset, or one cell of a record
Output = Any  # the output of one run of a mechanism: a number, a vector, a data frame, or any other object

RawOutputs = Sequence[Output] | npt.NDArray[Any]
"""A sequence of outputs as a mechanism returned them.  Row i of an array is output i."""

Parameters = Mapping[str, Any]  # keyword arguments, by name
Json = Any  # a value as `json.loads` returns it; the code that reads such a value checks its type
JsonObject = dict[str, Json]  # a JSON object, as `json.loads` returns it

__all__ = ["Any", "Dataset", "Json", "JsonObject", "Output", "Parameters", "RawOutputs", "Record"]


_LARGE = 4096  # maximum size of the content in a key, in bytes; a digest replaces larger contents to save memory


def key(value: Any) -> Hashable:
    """Return a hashable key of a value: equal values have equal keys, and different contents different keys.

    Equal numbers of different types, such as True, 1 and 1.0, differ, and so do 0.0 and -0.0, because this may leak
    information; all float NaNs are equal.  Arrays are equal if their types, shapes and bytes are.  The order of a dict
    counts.  A value that cannot be pickled has the key of its `repr`.
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


def _content(value: Any) -> bytes:
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

    def persistent_id(self, value: Any) -> tuple[object, ...] | None:
        """Return the object that is pickled in place of a value, or None if the value itself is pickled."""
        kind = type(value)
        if kind in PLAIN:
            return None
        if kind is np.ndarray:
            entries: object = value.ravel().tolist() if value.dtype.hasobject else value.tobytes()
            if isinstance(entries, list) and set(map(type, entries)) == {str}:
                entries = joined(entries)
            return "array", repr(value.dtype), value.shape, entries
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


PLAIN = frozenset((float, int, bool, str, bytes, type(None), tuple, list, dict))


def _of_pandas(value: Any) -> tuple[object, ...] | None:
    """Return the content of a pandas object without its caches, or None if the value is not a pandas object."""

    def dtype(column: Any) -> object:
        kind = column.dtype
        return (str(kind), kind.categories, kind.ordered) if hasattr(kind, "categories") else str(kind)

    name = type(value).__name__
    if name == "DataFrame":
        columns = [value.iloc[:, place] for place in range(value.shape[1])]
        content = [(dtype(column), column.to_numpy()) for column in columns]
        return name, value.columns, value.index, value.attrs, content
    if name == "Series":
        return name, value.name, value.index, value.attrs, dtype(value), value.to_numpy()
    if name.endswith("Index"):
        return name, list(value.names), dtype(value), value.to_numpy()
    return None


Feature = tuple[Any, ...]

Label = str | int | Feature
"""An argument of a feature: a short text or an integer, or a feature such as ("None",) or ("{}", 0.5)."""

OUTPUT: Feature = ("output",)  # the output itself


def words(feature: Label | float) -> str:
    """Return the words of a feature, or of an argument."""
    if not isinstance(feature, tuple):
        return repr(feature)
    form: str = feature[0]
    arguments = feature[1:]
    first, *others = form.split("{}") if arguments else [form]
    return first + "".join(f"{words(one)}{other}" for one, other in zip(arguments, others, strict=True))


def checked(value: object) -> Feature:
    """Return a feature that a result file holds as nested lists, or raise ValueError if it is none."""
    match value:
        case [str() as form, *arguments] if not arguments or form.count("{}") == len(arguments):
            return form, *(one if type(one) in (str, int, float) else checked(one) for one in arguments)
    raise ValueError(f"a feature must be a list of a form and its arguments, got {str(value)[:100]!r}")


def within(feature: Feature) -> Iterator[Feature]:
    """Return a feature and all features among its arguments."""
    yield feature
    for one in feature[1:]:
        if isinstance(one, tuple):
            yield from within(one)


_LONGEST = 4_000  # characters of the JSON of a value; a script holds no longer values, so a result needs none


def stored(value: Any) -> list[Json]:
    """Return a list of one JSON value; an empty list if the value is not plain, or is long."""
    try:
        found = _stored(value)
        return [found] if len(json.dumps(found)) <= _LONGEST else []
    except (ValueError, RecursionError):
        return []


def _stored(value: Any) -> Json:
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [_stored(one) for one in value]
    if kind is float:
        return {"float": str(value)}
    if kind is dict:
        return {"dict": [[_stored(key), _stored(one)] for key, one in value.items()]}
    if kind in (tuple, set, bytes):
        return {kind.__name__: [_stored(one) for one in (sorted(value, key=repr) if kind is set else value)]}
    if kind is np.ndarray and value.dtype.kind in "biuf":
        return {"array": _stored(value.tolist()), "dtype": value.dtype.name}
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return _stored(value.item())
    raise ValueError(f"a value of type {kind.__name__} is not plain")


def restored(value: Json) -> Any:
    """Return the value of which a result file holds the JSON, or raise ValueError or TypeError if it holds another."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [restored(one) for one in value]
        case {"float": str() as text}:
            return float(text)
        case {"dict": list() as items}:
            return {restored(key): restored(one) for key, one in items}
        case {"tuple": list() as items}:
            return tuple(map(restored, items))
        case {"set": list() as items}:
            return set(map(restored, items))
        case {"bytes": list() as items}:
            return bytes(items)
        case {"array": items, "dtype": str() as name} if np.dtype(name).kind in "biuf":
            return np.array(restored(items), dtype=name)
    raise ValueError("it is no value that a result file can hold")
