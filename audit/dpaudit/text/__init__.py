"""Formats numbers and text: rounds bounds to their safe side, escapes control characters, suggests spellings.

May import: nothing of ours.
Public names: `rounding`, `printable`, `spelling`, `version`.
"""
