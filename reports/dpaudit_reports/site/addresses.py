"""Names the page of each audit by the content of its result, so that the name stays when audits are added."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from dpaudit.result.model import AuditResult
from dpaudit.text.foreign_files import read_foreign
from dpaudit.text.printable import one_line

_MAX_NAME = 48  # letters of the audit's name in an address; longer addresses are hard to read
_DIGITS = 16  # digits of the digest in an address: 64 bits, so that two results collide only if somebody tries
_MORE_DIGITS = 8  # digits that are added until an address is unique

ADDRESS = r"[a-z0-9]+(?:-[a-z0-9]+)*-[0-9a-f]{16,64}"
"""Pattern of the addresses that `addresses` returns."""


def digest_of(result: AuditResult) -> str:
    """Return the SHA-256 hash of the result as `to_json` writes it, in hexadecimal."""
    try:
        return _digest(result.to_dict())
    except RecursionError:
        raise ValueError(f"the result {one_line(result.name)} is nested too deeply to be written") from None


def digest_of_file(file: Path) -> str:
    """Return the SHA-256 hash of the content of a result file, in hexadecimal.

    The order of keys and the white space do not change the hash.  The hash does not depend on the version of dpaudit
    that reads the file.
    """
    try:
        return _digest(json.loads(read_foreign(file)))
    except RecursionError:
        raise ValueError(f"{file} is nested too deeply") from None


def _digest(values: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def addresses(names: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """Return the address of each audit: its name, and the first digits of its digest.

    If two audits would have the same address, one of them gets more digits.  An address that another audit had before
    is not given away.
    """
    taken = dict(kept)
    found: dict[str, str] = {}
    for digest in sorted(names):
        slug = _slug(names[digest])
        for digits in range(_DIGITS, len(digest) + 1, _MORE_DIGITS):
            address = f"{slug}-{digest[:digits]}"
            if taken.get(address, digest) == digest:
                break
        taken[address], found[digest] = digest, address
    return found


def _slug(name: str) -> str:
    """Return the small letters and digits of a name, with hyphens in place of everything else."""
    plain = unicodedata.normalize("NFKD", name[: 8 * _MAX_NAME]).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub("[^a-z0-9]+", "-", plain).strip("-")[:_MAX_NAME].strip("-") or "audit"
