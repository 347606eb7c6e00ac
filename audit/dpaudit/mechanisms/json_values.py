"""Encodes values that JSON cannot express, for the requests and answers of command mechanisms.

    NaN, inf, any float exactly     {"$float": "nan"}, {"$float": "-inf"}, {"$float": "0x1.8p+1"}
    bytes                           {"$bytes": "<base64>"}

Requests use the form `$float` only for NaN and inf, because readers restore other floats exactly from decimal text.
Answers may also use the bare words NaN, Infinity and -Infinity.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping

import numpy as np

from dpaudit.values import Foreign, Json

_FLOAT, _BYTES = "$float", "$bytes"


def to_json(value: object) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(_plain(value), allow_nan=False, separators=(", ", ": "))


def from_json(text: str | bytes) -> Json:
    """Return the value that a JSON text describes."""
    return json.loads(text, object_hook=_special)


def _plain(value: Foreign) -> Foreign:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_FLOAT: repr(float(value))}
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise TypeError(f"keys must be text, got {wrong[0]!r}")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "columns") and hasattr(value, "to_dict"):  # data frames of pandas and polars
        return {str(name): _plain(value[name].to_list()) for name in value.columns}
    raise TypeError(f"a {type(value).__qualname__} has no JSON form")


def _special(found: dict[str, object]) -> object:
    if len(found) != 1:
        return found
    ((key, text),) = found.items()
    if key not in (_FLOAT, _BYTES) or not isinstance(text, str):
        return found
    try:
        return float.fromhex(text) if key == _FLOAT else base64.b64decode(text, validate=True)
    except (ValueError, OverflowError, binascii.Error) as error:
        raise ValueError(f"{key} {text[:60]!r}: {error}") from None
