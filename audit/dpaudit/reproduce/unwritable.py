"""Defines the error of a result that no script can reproduce."""

from __future__ import annotations


class Unwritable(Exception):
    """Raised if a script cannot be written.  The message states the reason and what to do."""
