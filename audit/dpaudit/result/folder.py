"""The folder in which results are saved by default."""

from __future__ import annotations

RESULTS = "dpaudit-results"
"""Folder of `dpaudit run`, in the folder in which the command runs."""
