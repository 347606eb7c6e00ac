"""Hashes the files of local requirements, such as `x @ file:///home/me/x-1.0-py3-none-any.whl`.

The name of a local file does not determine the content.  So the SHA-256 of the content is part of the identity of an
environment and of a store.  A stranger's result may name any file.  So this module refuses pipes, devices, empty files
and files of /proc, and limits the total size of all files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.mechanisms.requirements import parsed_requirement, project_name
from dpaudit.text.foreign_files import open_foreign

_MAX_BYTES = 2**33  # maximum total size of the files; 8 GiB is larger than any package
_PART = 2**20


def local_hashes(requires: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each required local file, by project name."""
    found: dict[str, str] = {}
    hashes: dict[tuple[int, int], tuple[str, int]] = {}
    for requirement in requires:
        parts = urlsplit(parsed_requirement(requirement).url or "")
        if parts.scheme == "file":
            name = project_name(requirement)
            if name in found:
                raise MechanismError(f"{requirement} names a second file of {name}; require one file per project")
            found[name] = f"sha256:{_sha256(_path(parts.path, requirement), requirement, hashes)}"
    return found


def _path(quoted: str, requirement: str) -> Path:
    """Return the file of a URL, and refuse a URL that an installer may resolve to another file."""
    path = unquote(quoted)
    if "\\" in path or not {".", ".."}.isdisjoint(path.split("/")):
        raise MechanismError(
            f"{requirement} has a backslash or the part . or .. in the URL, so an installer may read another file; "
            "write the plain path of the file"
        )
    return Path(path)


def _sha256(file: Path, requirement: str, hashes: dict[tuple[int, int], tuple[str, int]]) -> str:
    """Return the SHA-256 of a file."""
    left = _MAX_BYTES - sum(size for _, size in hashes.values())
    try:
        if file.is_dir():
            raise MechanismError(
                f"{requirement} names a folder, whose content may change between runs; build a wheel with "
                f"`python -m pip wheel --no-deps {file}`, and require that wheel"
            )
        with open_foreign(file) as stream:
            about = os.fstat(stream.fileno())
            inode = about.st_dev, about.st_ino
            if inode in hashes:
                return hashes[inode][0]
            if about.st_size == 0:
                raise MechanismError(f"{requirement} names an empty file or a system file such as a file in /proc")
            found, size = hashlib.sha256(), about.st_size
            while size <= left and (part := stream.read(_PART)):
                found.update(part)
                size = max(size, stream.tell())  # the file may grow while it is read
    except OSError as error:
        raise MechanismError(f"{requirement} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # the name contains a null byte
        raise MechanismError(f"{requirement} cannot be read: {error}") from None
    if size > left:
        raise MechanismError(f"{requirement}: the required local files are larger than {_MAX_BYTES:,} bytes together")
    hashes[inode] = found.hexdigest(), size
    return hashes[inode][0]
