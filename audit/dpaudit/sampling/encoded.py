"""Encodes a block of outputs as bytes, for stores and for the fingerprint of all outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.mechanisms import wire
from dpaudit.outputs import Raised, Timed
from dpaudit.values import RawOutputs

wire.register(Raised, lambda value: [value.type, value.message], lambda kind, text: Raised(str(kind), str(text)))
wire.register(Timed, lambda value: [value.output, value.seconds], lambda output, time: Timed(output, float(time)))


def encoded(sides: Sequence[RawOutputs]) -> bytes:
    """Return the bytes of the outputs of d0 and of d1, which `wire.unframe` reads."""
    return wire.frame([side if isinstance(side, np.ndarray) else list(side) for side in sides])[wire.HEADER.size :]
