"""Computes the identity of an audit: all parts that determine the outputs, with one short text for each part.

The text of a value is a shortened `repr` and the SHA-256 of the content, so that a comparison covers the whole content.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpaudit.mechanisms import CommandMechanism, IsolatedMechanism
from dpaudit.mechanisms.command_files import files_of_command
from dpaudit.mechanisms.fingerprint import Unknowable, fingerprint
from dpaudit.mechanisms.modules import file_fingerprint
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.mechanisms.sources import source_of
from dpaudit.pairs.brief import brief
from dpaudit.pairs.pair import Pair
from dpaudit.sampling.identity_differences import KEYED
from dpaudit.sampling.runs import ExecutionSettings
from dpaudit.text.masking import masked_values
from dpaudit.text.version import __version__

_SHOWN = 40  # maximum number of characters of a value before its fingerprint
_SCRYPT_COST = 2**14  # costs 16 MB and about 50 milliseconds for each secret


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A part that may hold a password, such as the value of an environment variable.  A store holds only a keyed hash.
    """

    value: str

    def keyed(self, salt: bytes) -> str:
        """Return a keyed hash that is slow to compute, so that nobody can guess short values in bulk."""
        found = hashlib.scrypt(self.value.encode("utf-8", "surrogatepass"), salt=salt, n=_SCRYPT_COST, r=8, p=1)
        return f"{KEYED}{found[:32].hex()}"


Identity = Mapping[str, str | Secret]
"""The parts of an identity by name, as texts or secrets."""


def keyed(parts: Identity, salt: bytes) -> dict[str, str]:
    """Return an identity in the form of a store, with keyed hashes of secrets."""
    return {name: part.keyed(salt) if isinstance(part, Secret) else part for name, part in parts.items()}


def identity(
    mechanism: object,
    pairs: Sequence[Pair],
    seed: int,
    execution: ExecutionSettings,
    detect: str | None = None,
) -> dict[str, str | Secret]:
    """Return the parts that determine the outputs, and the planned violation.

    Audits with equal parts may share outputs.  The planned violation determines the bets, so it must be chosen before
    the outputs.
    """
    return {
        **_of_mechanism(mechanism),
        **_of_pairs(pairs),
        "seed": str(seed),
        "observe_time": str(execution.observe_time),
        "failures": str(execution.failures),
        "timeout": str(execution.timeout),
        **({} if execution.memory is None else {"memory": str(execution.memory)}),
        **({} if detect is None else {"detect": _shown(detect, "detect")}),
        "dpaudit": __version__,
        "Python": _release(platform.python_version()),
        "numpy": _release(np.__version__),
    }


def _release(version: str) -> str:
    """Return a version without its last number: bug-fix releases keep the outputs of a seed."""
    return ".".join(version.split(".")[:2])


def _of_pairs(pairs: Sequence[Pair]) -> dict[str, str]:
    found = {"number of pairs": str(len(pairs))}
    for number, pair in enumerate(pairs, 1):
        found[f"relation of pair {number}"] = pair.relation
        for side, dataset in (("d0", pair.d0), ("d1", pair.d1)):
            try:
                found[f"{side} of pair {number}"] = _shown(dataset, f"{side} of pair {number}")
            except Unknowable as error:
                raise Unknowable(
                    f"{error}.  Give the dataset as plain values, arrays or data frames, or audit without a store"
                ) from None
    return found


def _of_mechanism(mechanism: object) -> dict[str, str | Secret]:
    match mechanism:
        case CommandMechanism():
            return _of_command(mechanism)
        case IsolatedMechanism():
            about = {
                "requires": ", ".join(mechanism.requires),
                "python_version": str(mechanism.python_version),
                "packages": _shown(dict(source_of(mechanism).packages), "packages"),
            }
            if hashes := dict(source_of(mechanism).hashes):  # packages of the same version may have other content
                about["hashes of the packages"] = _shown(hashes, "hashes")
            return {"kind": "isolated", **_of_address(mechanism), **about, **_modules(mechanism)}
        case PythonMechanism():
            return {"kind": "python", **_of_address(mechanism), **_surroundings(mechanism)}
    try:
        code = fingerprint(mechanism, "the mechanism")
    except Unknowable as error:
        raise Unknowable(
            f"{error}.  A store is continued only if the mechanism is certainly the same.  Put the mechanism into a "
            "file and name it in a config as FILE.py:OBJECT, or run the audit without a store"
        ) from None
    name = getattr(mechanism, "__qualname__", None) or brief(mechanism, _SHOWN)
    kind = "function" if hasattr(mechanism, "__qualname__") else type(mechanism).__qualname__
    return {"kind": kind, "mechanism": _stable(name), "code": f"sha256 {code}", **_surroundings(mechanism)}


def _of_address(mechanism: PythonMechanism | IsolatedMechanism) -> dict[str, str | Secret]:
    found: dict[str, str | Secret] = {"mechanism": mechanism.address, "batched": str(mechanism.batched)}
    params = None if mechanism.params is None else dict(mechanism.params)
    public = masked_values(params)
    found["params"] = _shown(public, "params")
    if public != params:
        found["secrets in params"] = Secret(fingerprint(params, "params"))
    found["file of the mechanism"] = f"sha256 {source_of(mechanism).sha256 or 'unknown'}"
    return found


def _surroundings(mechanism: object) -> dict[str, str]:
    modules = _modules(mechanism) if isinstance(mechanism, PythonMechanism) else {}
    return {"packages": _shown(dict(source_of(mechanism).packages), "packages"), **modules}


def _modules(mechanism: PythonMechanism | IsolatedMechanism) -> dict[str, str]:
    """Return fingerprints of the user's modules that the mechanism imports, by name.

    The names are paths relative to the folder of the mechanism's file, because file names may not be unique.
    """
    source = source_of(mechanism)
    folder = source.file.parent if source.file is not None else Path()
    files = {os.path.relpath(name, folder): sha256 for name, sha256 in source.modules.items()}
    return {f"module beside it, {name}": f"sha256 {sha256 or 'unknown'}" for name, sha256 in files.items()}


def _of_command(mechanism: CommandMechanism) -> dict[str, str | Secret]:
    whole = shlex.join(mechanism.command)
    return {
        "kind": "command",
        "mechanism": mechanism.address,
        **({} if mechanism.address == whole else {"secrets in the command": Secret(whole)}),
        **{f"variable {name}": Secret(value) for name, value in mechanism.env},
        **{f"file {name}": f"sha256 {file_fingerprint(path)}" for name, path in files_of_command(mechanism).items()},
    }


def _shown(value: object, what: str) -> str:
    return f"{_stable(brief(value, _SHOWN))} sha256 {fingerprint(value, what)}"


def _stable(text: str) -> str:
    """Cut the text before the first memory address, because memory addresses differ between processes."""
    return text if " at 0x" not in text else text.split(" at 0x")[0]
