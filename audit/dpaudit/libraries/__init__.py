"""Reads claims, pairs and mechanisms from objects of other libraries: from import to verdict in three lines.

Each module is named after a library and has a function `subject`, which returns a `Subject`.  `audit_subject` audits a
subject.  The libraries are optional, and each of them is imported at the first use.

    from dpaudit.libraries import audit_subject, opendp
    result = audit_subject(opendp.subject(measurement))

The subpackage `inside` calls the libraries.  It also runs in private environments, which do not contain dpaudit.
Therefore it needs only the standard library, and this package imports nothing when it is loaded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.libraries.subject import Subject, audit_subject

__all__ = ["Subject", "audit_subject"]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    if name in __all__:
        return getattr(importlib.import_module("dpaudit.libraries.subject"), name)
    raise AttributeError(f"module 'dpaudit.libraries' has no attribute {name!r}")
