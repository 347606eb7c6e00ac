"""Converts outputs into one array if all outputs are numbers or vectors of equal length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.numerics.arrays import AnyArray
from dpaudit.outputs.encoders import encoder_of
from dpaudit.values import Output, RawOutputs

Plain = AnyArray
"""An array of shape (n,) or (n, d) that contains integers, floats or booleans."""

_MAX_COLUMNS = 1024  # maximum length of an output vector that is read completely; longer vectors are summarised
_SINGLE = {bool, int, float}


def plain_array(outputs: RawOutputs) -> Plain | None:
    """Convert outputs into one array if the conversion loses no information.

    All outputs in a list must have the same type, because a type that depends on the data may violate the claim.  For
    example, the mechanism may return 1 on one dataset and 1.0 on the other dataset.

    Args:
        outputs: The sequence of n outputs.

    Returns:
        An array of shape (n,) or (n, d), or None if the outputs cannot be converted without loss of information.
    """
    if isinstance(outputs, np.ma.MaskedArray):  # its plain array shows what the mask hides
        outputs = list(outputs)
    if isinstance(outputs, np.ndarray):
        array = np.asarray(outputs)
    else:
        if not len(outputs) or not _alike(outputs):
            return None
        try:
            array = np.array(outputs)
        except (ValueError, TypeError, OverflowError):
            return None
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or array.ndim == 0:
        return None
    if array.ndim > 1:
        array = array.reshape(len(array), -1) if len(array) else array.reshape(0, 1)
        if not 0 < array.shape[1] <= _MAX_COLUMNS:
            return None
    return array


def _alike(outputs: Sequence[Output]) -> bool:
    """Return whether all outputs have the same type and all numbers inside the outputs have the same type."""
    kinds = set(map(type, outputs))
    if len(kinds) != 1:
        return False
    (kind,) = kinds
    if encoder_of(outputs[0]) is not None:
        return False
    if kind in _SINGLE or (issubclass(kind, np.number | np.bool_)):
        return kind is not int or all(-(2**63) <= output < 2**63 for output in outputs)
    if kind is np.ndarray:
        return len({(output.shape, output.dtype) for output in outputs}) == 1
    if kind not in (tuple, list) or len(set(map(len, outputs))) != 1 or len(outputs[0]) > _MAX_COLUMNS:
        return False
    inner = {type(entry) for output in outputs for entry in output}
    if len(inner) != 1 or not inner <= _SINGLE | {np.float64, np.int64}:
        return False
    return int not in inner or all(-(2**63) <= entry < 2**63 for output in outputs for entry in output)
