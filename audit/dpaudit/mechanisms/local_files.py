"""Requirements of local files, such as `x @ file:///home/me/x-1.0-py3-none-any.whl`.

The name of such a file says nothing about its content, so the SHA-256 of the content is part of the identity of an
environment and of a store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.mechanisms.requirements import parsed_requirement, project_name


def local_hashes(requires: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each required local file, by project name.

    Args:
        requires: Requirements, as for pip.

    Raises:
        MechanismError: If a file cannot be read, or is a folder; the message says what to do.
    """
    found = {}
    for requirement in requires:
        parts = urlsplit(parsed_requirement(requirement).url or "")
        if parts.scheme == "file":
            found[project_name(requirement)] = f"sha256:{_sha256(Path(unquote(parts.path)), requirement)}"
    return found


def _sha256(file: Path, requirement: str) -> str:
    if file.is_dir():
        raise MechanismError(
            f"{requirement} names a folder, whose content may change between runs; build a file of it with "
            f"`python -m pip wheel --no-deps {file}`, and require that file"
        )
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise MechanismError(f"{requirement} cannot be read: {error.strerror or error}") from None
