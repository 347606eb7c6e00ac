"""Reads claims, pairs and mechanisms from objects of other libraries: from import to verdict in three lines.

Each module is named after an optional library and has a function `subject`, whose result `audit_subject` audits.

    from dpaudit.libraries import audit_subject, opendp
    result = audit_subject(opendp.subject(measurement))

The subpackage `inside` calls the libraries, also in private environments without dpaudit, so it needs only the standard
library, and this package imports nothing when it is loaded.
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
