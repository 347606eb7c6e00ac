"""The identity of an audit, which is what determines its outputs, and fingerprints of these outputs.

It has a short text for each part.  Only an audit of the same identity continues a store, and a replay compares the
parts about code and datasets.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.outputs import Raised, Timed
from dpaudit.pairs.difference import brief
from dpaudit.pairs.pair import Pair
from dpaudit.running import CommandMechanism, IsolatedMechanism
from dpaudit.running.fingerprint import Fingerprint, fingerprint
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.runs import ExecutionSettings
from dpaudit.running.sources import Source, of_ours
from dpaudit.running.wire import HEADER, frame, register
from dpaudit.text import __version__, masked_values, one_line, shortened
from dpaudit.values import Output, RawOutputs

_KEYED = "scrypt:"  # prefix of the parts that hide a secret; messages and results never show the hash

INCOMPARABLE = ("observe_time", "design", "canaries", "seed of the coins")
"""Parts without which outputs cannot be compared: running times, or the canaries and coins of the scores of one run."""

register(Raised, lambda value: [value.type, value.message], lambda kind, text: Raised(str(kind), str(text)))
register(Timed, lambda value: [value.output, value.seconds], lambda output, time: Timed(output, float(time)))


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A part that may hold a password, such as an environment variable.  A store holds only a keyed hash."""

    value: str

    def keyed(self, salt: bytes) -> str:
        """Return a keyed hash that is slow to compute, so that nobody can guess short values in bulk."""
        key = hashlib.scrypt(self.value.encode("utf-8", "surrogatepass"), salt=salt, n=2**14, r=8, p=1)
        return f"{_KEYED}{key[:32].hex()}"  # took 16 MB and about 50 milliseconds


class Partial(str):
    """A part that leaves out objects of some types, which cannot be compared."""

    types: str


Identity = Mapping[str, str | Secret]  # the parts of an identity by name, as texts or secrets


def public(parts: Identity) -> dict[str, str]:
    """Return an identity in the form of a result, without secrets."""
    return {name: part for name, part in parts.items() if not isinstance(part, Secret)}


def of_code_and_data(mechanism: object, source: Source, pairs: Sequence[Pair]) -> dict[str, str | Secret]:
    """Return the parts about the code of a mechanism and about the datasets."""
    parts: dict[str, str | Secret] = {"mechanism": mechanism_name(mechanism)}
    if isinstance(mechanism, CommandMechanism):
        whole = shlex.join(mechanism.command)
        parts |= {} if mechanism.address == whole else {"secrets in the command": Secret(whole)}
        parts |= {f"variable {name}": Secret(value) for name, value in mechanism.env}
        parts |= {"one_shot": "True"} if mechanism.one_shot else {}
    elif isinstance(mechanism, PythonMechanism | IsolatedMechanism):
        params = None if mechanism.params is None else dict(mechanism.params)
        masked = masked_values(params)
        parts |= {"batched": str(mechanism.batched), "params": _text(fingerprint(masked), f"{brief(masked)} ")}
        parts |= {} if masked == params else {"secrets in params": Secret(fingerprint(params).sha256)}
    if isinstance(mechanism, IsolatedMechanism):
        parts |= {"requires": ", ".join(mechanism.requires), "python_version": str(mechanism.python_version)}
        parts |= {} if mechanism.interpreter is None else {"interpreter": str(mechanism.interpreter)}
    if source.content is not None:
        parts["content of the mechanism"] = _text(source.content)
    files = dict(source.modules)
    if (file := source.file) is not None:
        files = {file.name: source.sha256, **{os.path.relpath(path, file.parent): files[path] for path in files}}
    parts |= {f"file {name}": f"sha256 {sha256 or 'unknown'}" for name, sha256 in files.items()}
    parts |= {f"package {name}": version for name, version in source.packages.items()}
    parts |= {f"content of package {name}": sha256 for name, sha256 in source.hashes.items()}
    for number, pair in enumerate(pairs, 1):
        parts[f"relation of pair {number}"] = pair.relation
        parts |= {f"{side} of pair {number}": _text(fingerprint(getattr(pair, side))) for side in ("d0", "d1")}
    return parts


def mechanism_name(mechanism: object) -> str:
    """Return the name of a mechanism in results: its stated name, its address, or the name of its function or class."""
    own = of_ours(mechanism, "named") or getattr(mechanism, "address", None)
    return str(own or getattr(mechanism, "__qualname__", None) or type(mechanism).__qualname__)


def with_settings(
    parts: Identity, seed: int, execution: ExecutionSettings, detect: str | None = None
) -> dict[str, str | Secret]:
    """Add the other parts that determine the outputs, and the planned violation, which determines the bets."""
    return {
        **parts,
        "seed": str(seed),
        **{name: str(getattr(execution, name)) for name in ("observe_time", "failures", "timeout", "memory")},
        "detect": str(detect),
        "dpaudit": __version__,
        "Python": ".".join(platform.python_version().split(".")[:2]),
        "numpy": ".".join(np.__version__.split(".")[:2]),
    }


def _text(content: Fingerprint, before: str = "") -> str:
    text = f"{before}sha256 {content.sha256}"
    if not content.not_compared:
        return text
    types = ", ".join(sorted(content.not_compared))
    partial = Partial(f"{text}, without what cannot be compared: {types}")
    partial.types = types
    return partial


def not_compared(parts: Identity) -> list[str]:
    """Return, for each part that could not be compared completely, the part and the types of objects in it."""
    return [f"{name} ({part.types})" for name, part in parts.items() if isinstance(part, Partial)]


def differing(there: Mapping[str, object], here: Mapping[str, str]) -> list[str]:
    """Return the names of all parts that differ."""
    return [name for name in [*here, *(there.keys() - here.keys())] if there.get(name) != here.get(name)]


def in_words(there: Mapping[str, object], here: Mapping[str, str], where: str = "before") -> list[str]:
    """Return each difference with both values, such as "package numpy (1.26 before, 2.0 now)"."""

    def short(text: object, secret: str = "") -> str:
        """Return a value in one line with only the first digits of hashes, or `secret` in place of a secret's hash."""
        if text is None:
            return "nothing"
        if secret and str(text).startswith(_KEYED):
            return secret
        return shortened(one_line(re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", str(text))))

    differences = [
        f"{short(name)} ({short(there.get(name), 'one value')} {where}, {short(here.get(name), 'another')} now)"
        for name in differing(there, here)
    ]
    return differences if len(differences) <= 30 else [*differences[:30], f"{len(differences) - 30} more"]


def changed_since(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the differences between the identity in a result and the identity of a mechanism with one of its pairs."""
    about, code = ("relation", "d0", "d1"), dict(recorded)
    pairs: list[dict[str, str]] = []
    while any(f"{part} of pair {len(pairs) + 1}" in code for part in about):
        number = len(pairs) + 1
        pairs.append({part: code.pop(f"{part} of pair {number}", "") for part in about})
    first = {f"{part} of pair 1": part for part in about}
    now = {first.get(name, name): text for name, text in now.items()}
    return min((in_words({**code, **pair}, now, "in the result") for pair in pairs or [{}]), key=len)


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
        try:
            self._hash.update(pair.to_bytes(8, "little") + start.to_bytes(8, "little") + encoded(sides))
        except Exception:  # an output that imitates a data frame or an array may have no encoding
            self._complete = False

    def __str__(self) -> str:
        return f"blake2b:{self._hash.hexdigest()}" if self._complete else ""


_LOG_ORDERS = math.log(1e9)  # minimum log number of orders; a repetition by chance then has probability <= 1e-9
_ORDERED = 20  # outputs per dataset whose order is compared; distinct numbers have 20! > 10**18 orders
_COMPARED = 20_000  # maximum number of outputs per dataset in the fingerprint; reached if the outputs hardly vary


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
            if self.unmistakable or self.count >= _COMPARED:
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
        """Whether a column has enough distinct orders."""
        if not self.numeric or len(self.rows) < _ORDERED:
            return False
        repeats = [np.unique(column, return_counts=True)[1] for column in zip(*self.rows, strict=True)]
        log_orders = [math.lgamma(_ORDERED + 1) - sum(math.lgamma(m + 1) for m in counts) for counts in repeats]
        return max(log_orders) >= _LOG_ORDERS

    def __str__(self) -> str:
        ranks = [np.unique(column, return_inverse=True)[1].tolist() for column in zip(*self.rows, strict=True)]
        return hashlib.blake2b(repr(ranks).encode(), digest_size=8).hexdigest()


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
        output = dict(output)
        for name, entry in output.items():
            if type(entry) is np.ndarray and not entry.dtype.hasobject:
                digest = hashlib.blake2b(entry.tobytes(), digest_size=16).hexdigest()
                output[name] = entry.dtype.str, entry.shape, digest
    try:
        return repr(output).encode("utf-8", "surrogatepass")
    except Exception:  # the class of the output may define a __repr__ that raises any exception
        return type(output).__qualname__.encode()


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
        sides = [f"{index}:{side}" for index, side in enumerate(self._sides) if side.unmistakable]
        orders = [f"order {index}:{order}" for index, order in enumerate(self._orders) if order.unmistakable]
        return [*(sides or [":".join(map(str, self._sides))]), *orders]
