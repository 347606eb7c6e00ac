"""Converts outputs of one plain kind, such as numbers or vectors of equal length, into one array."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from dpaudit.numerics.arrays import AnyArray
from dpaudit.outputs.outcomes import encoder_of
from dpaudit.values import Foreign, Output, RawOutputs

Plain = AnyArray
"""An array of shape (n,) or (n, d) that contains integers, floats or booleans."""

_MAX_COLUMNS = 1024  # maximum length of an output vector that is read completely; longer vectors are summarised
_WORDS = {float: "float", int: "integer", bool: "boolean"}
_ENTRIES = {float, int, bool, np.float64, np.int64, list, tuple}  # types of the entries of vectors
_DTYPES = {"float64": "float", "int64": "integer", "bool": "boolean"}  # numpy's types that are also Python's
_LARGEST = 2**63  # of an integer in an array (exclusive)


def plain_kind(output: Output) -> str:
    """Return the kind of an output, such as "float" or "list of 3 integer"; "" if it is neither number nor vector.

    Outputs of different kinds are told apart, because the type of an output may depend on the dataset: the mechanism
    may return 1 on one dataset and 1.0 on the other.
    """
    kind = type(output)
    if kind in _WORDS:
        return "" if kind is int and not -_LARGEST <= output < _LARGEST else _WORDS[kind]
    if encoder_of(output) is not None:
        return ""
    if isinstance(output, np.generic) or kind is np.ndarray:  # not a subclass, such as a masked array
        known = output.dtype.kind in "biuf" and output.dtype.itemsize <= 8 and output.dtype.isnative
        if not known or not 0 < output.size <= _MAX_COLUMNS:
            return ""
        word = _DTYPES.get(output.dtype.name, output.dtype.name)
        return f"array of {'x'.join(map(str, output.shape))} {word}" if kind is np.ndarray else word
    if kind not in (list, tuple) or not 0 < len(output) <= _MAX_COLUMNS:
        return ""
    entries = set(map(type, output))
    if len(entries) > 1 or not entries <= _ENTRIES:
        return ""
    words = {plain_kind(output[0])} if entries == {float} else set(map(plain_kind, output))
    nested = entries <= {list, tuple}
    if len(words) > 1 or "" in words or (nested and not 0 < len(output) * len(output[0]) <= _MAX_COLUMNS):
        return ""
    if nested and isinstance(output[0][0], list | tuple):
        return ""  # deeper than a matrix
    return f"{kind.__name__} of {len(output)} {words.pop()}"


def plain_array(outputs: RawOutputs) -> tuple[str, Plain]:
    """Convert outputs into one array if all of them have the same plain kind.

    Returns:
        The kind, and an array of shape (n,) or (n, d); ("", an empty array) if the outputs have no kind in common.
        Rows of an array count as lists of floats, as `shared_calls.as_alone` gives them.
    """
    nothing = "", np.zeros(0)
    if isinstance(outputs, np.ndarray):
        if outputs.ndim == 1:
            return "float", outputs
        rows = outputs.reshape(len(outputs), -1) if len(outputs) else outputs.reshape(0, 1)
        plain = outputs.ndim <= 3 and 0 < rows.shape[1] <= _MAX_COLUMNS
        return ("".join(f"list of {length} " for length in outputs.shape[1:]) + "float", rows) if plain else nothing
    if not len(outputs) or len(set(map(type, outputs))) > 1:
        return nothing
    kinds = set(map(plain_kind, outputs)) if type(outputs[0]) is not float else {plain_kind(outputs[0])}
    if len(kinds) > 1 or "" in kinds:
        return nothing
    return kinds.pop(), array_of(outputs)


def array_of(outputs: Sequence[Foreign]) -> Plain:
    """Return outputs of one plain kind as an array of shape (n,) or (n, d)."""
    array = np.array(outputs)
    if array.dtype.kind == "f" and np.isnan(array).any():
        array[np.isnan(array)] = np.nan  # all NaNs are one
    return array if array.ndim == 1 else array.reshape(len(array), -1)


def size_of(output: Output) -> float:
    """Return the approximate size of an output, in bytes."""
    if hasattr(output, "nbytes"):
        return float(output.nbytes)
    inside = list(output.values()) if isinstance(output, dict) else output
    deeper = 0.0
    if isinstance(inside, tuple | list) and inside:
        some = inside[:: max(1, len(inside) // 20)]
        deeper = len(inside) * sum(map(size_of, some)) / len(some)
    return sys.getsizeof(output) + deeper
