"""Requirements of local files, such as `x @ file:///home/me/x-1.0-py3-none-any.whl`.

The name of such a file says nothing about its content, so the SHA-256 of the content is part of the identity of an
environment and of a store.  A stranger's result may name any file, so pipes and devices are refused.
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

_MAX_BYTES = 2**33  # 8 GiB, more than any package has
_PART = 2**20


def local_hashes(requires: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each required local file, by project name.

    Args:
        requires: Requirements, as for pip.

    Raises:
        MechanismError: If a file cannot be read, is not a regular file or is too large, or if a project has two files;
            the message says what to do.
    """
    found: dict[str, str] = {}
    for requirement in requires:
        parts = urlsplit(parsed_requirement(requirement).url or "")
        if parts.scheme == "file":
            name = project_name(requirement)
            if name in found:
                raise MechanismError(f"{requirement} names a second file of {name}; require one file of each project")
            found[name] = f"sha256:{_sha256(Path(unquote(parts.path)), requirement)}"
    return found


def _sha256(file: Path, requirement: str) -> str:
    try:
        if file.is_dir():
            raise MechanismError(
                f"{requirement} names a folder, whose content may change between runs; build a file of it with "
                f"`python -m pip wheel --no-deps {file}`, and require that file"
            )
        with open_foreign(file) as stream:
            found, size = hashlib.sha256(), os.fstat(stream.fileno()).st_size
            while size <= _MAX_BYTES and (part := stream.read(_PART)):
                found.update(part)
                size = max(size, stream.tell())  # files in /proc state no size, and a file may grow
    except OSError as error:
        raise MechanismError(f"{requirement} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a null byte in the name
        raise MechanismError(f"{requirement} cannot be read: {error}") from None
    if size > _MAX_BYTES:
        raise MechanismError(f"{requirement} is larger than {_MAX_BYTES:,} bytes")
    return found.hexdigest()
