"""Encodes blocks of outputs as bytes, for stores and for the fingerprint of all outputs of an audit."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.outputs import Raised, Timed
from dpaudit.running.wire import HEADER, frame, register
from dpaudit.values import Output, RawOutputs

register(Raised, lambda value: [value.type, value.message], lambda kind, text: Raised(str(kind), str(text)))
register(Timed, lambda value: [value.output, value.seconds], lambda output, time: Timed(output, float(time)))


def encoded(sides: Sequence[RawOutputs]) -> bytes:
    """Return the bytes of the outputs of d0 and of d1, which `unframe` reads."""
    return frame([side if isinstance(side, np.ndarray) else list(side) for side in sides])[HEADER.size :]


class OutputsFingerprint:
    """A BLAKE2b hash of all blocks, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=32)
        self._complete = True

    def add(self, pair: int, start: int, sides: Sequence[RawOutputs]) -> None:
        """Add one block."""
        if not self._complete:
            return
        for number in (pair, start):
            self._hash.update(number.to_bytes(8, "little"))
        try:
            body = encoded(sides)
        except Exception:  # an output that imitates a data frame or an array may have no encoding
            self._complete = False
        else:
            self._hash.update(body)

    def __str__(self) -> str:
        return f"blake2b:{self._hash.hexdigest()}" if self._complete else ""


_LOG_ORDERS = math.log(1e9)  # minimum log number of orders; a repetition by chance then has probability <= 1e-9
_ORDERED = 20  # outputs per dataset whose order is compared; distinct numbers have 20! > 10**18 orders
_MAX_OUTPUTS = 20_000  # maximum number of outputs per dataset in the fingerprint; reached if the outputs hardly vary


@dataclass(slots=True)
class _Side:
    """The first outputs of one dataset, in order, up to the first unmistakable sequence.

    A sequence of outputs is called unmistakable if its values have at least 10**9 distinct orders.  By the theorem,
    independent outputs then equal the sequence with probability at most 10**-9.

    Theorem:
        Let X be an exchangeable sequence of n outputs, and s a given sequence in which value v occurs m_v times.  Then
        P[X = s] <= 1/M with M = n! / prod_v m_v!.

        *Proof.*  Given how often each value occurs in X, all M orders of the values are equally likely.
    """

    count: int = 0
    log_orders: float = 0.0  # log M
    _seen: Counter[bytes] = field(default_factory=Counter)
    _hash: hashlib.blake2b = field(default_factory=lambda: hashlib.blake2b(digest_size=8))

    def add(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            if self.unmistakable or self.count >= _MAX_OUTPUTS:
                return
            value = hashlib.blake2b(_value(output), digest_size=16).digest()
            self.count += 1
            self._seen[value] += 1
            self.log_orders += math.log(self.count) - math.log(self._seen[value])
            self._hash.update(value)

    @property
    def unmistakable(self) -> bool:
        return self.log_orders >= _LOG_ORDERS

    def __str__(self) -> str:
        return str(self._hash.hexdigest())


@dataclass(slots=True)
class _Order:
    """The order of the first numbers of one dataset: how large each number is among the first 20.

    Shifts, positive factors and tiny fresh noise rarely change this order, so it reveals repeated randomness that the
    exact values hide.  Columns of several numbers are ordered separately.

    Theorem:
        Let X be an exchangeable sequence of n numbers, and r a given sequence of ranks, in which rank v occurs m_v
        times and equal numbers have equal ranks.  Then P[the ranks of X are r] <= 1/M with M = n! / prod_v m_v!.

        *Proof.*  Given how often each value occurs in X, all M orders of the values are equally likely, and at most one
        of them has the ranks r.

    The bound also holds for several columns: all columns have given ranks with at most the probability that one of
    them does.
    """

    rows: list[tuple[float, ...]] = field(default_factory=list)
    numeric: bool = True  # whether all outputs so far were numbers, equally many in each

    def add(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            if not self.numeric or len(self.rows) >= _ORDERED:
                return
            row = _numbers(output)
            self.numeric = bool(row) and len(row) == len(self.rows[0] if self.rows else row)
            self.rows.append(row)

    @property
    def unmistakable(self) -> bool:
        if not self.numeric or len(self.rows) < _ORDERED:
            return False
        return max(map(_log_orders, zip(*self.rows, strict=True))) >= _LOG_ORDERS

    def __str__(self) -> str:
        ranks = [np.unique(column, return_inverse=True)[1].tolist() for column in zip(*self.rows, strict=True)]
        return hashlib.blake2b(repr(ranks).encode(), digest_size=8).hexdigest()


def _log_orders(column: Sequence[float]) -> float:
    """Return the logarithm of the number of distinct orders of some numbers."""
    repeats = np.unique(column, return_counts=True)[1]
    return math.lgamma(len(column) + 1) - sum(math.lgamma(count + 1) for count in repeats)


def _numbers(output: Output) -> tuple[float, ...]:
    """Return the first numbers of an output; none if the output is neither a number nor an array of numbers."""
    if type(output) in (int, float):
        return (float(output),) if type(output) is float or abs(output) < 2**53 else ()
    if _is_array(output) and output.dtype.kind in "fiu":
        return tuple(np.ravel(output)[:8].astype(np.float64).tolist())
    return ()


def _is_array(output: Output) -> bool:
    """Whether an output consists of numbers of numpy, none of which a mask hides."""
    return isinstance(output, np.ndarray | np.generic) and not isinstance(output, np.ma.MaskedArray)


def _value(output: Output) -> bytes:
    """Return equal bytes for equal outputs in any process.  A collision of unequal outputs errs on the safe side."""
    if _is_array(output) and not output.dtype.hasobject:
        return bytes(output.tobytes())
    if type(output) is dict:  # arrays in a dict are columns of a table; their texts take long
        output = {name: _in_short(entry) for name, entry in output.items()}
    try:
        return repr(output).encode("utf-8", "surrogatepass")
    except Exception:  # the class of the output may define a __repr__ that raises any exception
        return type(output).__qualname__.encode()


def _in_short(entry: Output) -> Output:
    if type(entry) is np.ndarray and not entry.dtype.hasobject:
        return entry.dtype.str, entry.shape, hashlib.blake2b(entry.tobytes(), digest_size=16).hexdigest()
    return entry


class Beginning:
    """Fingerprints of the first outputs of the first pair, which do not depend on the length of the audit."""

    def __init__(self) -> None:
        self._sides = _Side(), _Side()
        self._orders = _Order(), _Order()

    def add(self, pair: int, sides: Sequence[Collection[Output]]) -> None:
        """Add one block of outputs."""
        if pair == 0:
            for side, order, outputs in zip(self._sides, self._orders, sides, strict=True):
                side.add(outputs)
                order.add(outputs)

    def fingerprints(self) -> list[str]:
        """Return fingerprints of the unmistakable outputs and orders of each dataset, or one of both together."""
        found = [f"{index}:{side}" for index, side in enumerate(self._sides) if side.unmistakable]
        orders = [f"order {index}:{order}" for index, order in enumerate(self._orders) if order.unmistakable]
        return [*(found or [":".join(map(str, self._sides))]), *orders]
