"""Formats numbers and text: rounding to the safe side, escapes, spelling, signs of verdicts, ASCII.

May import: nothing of ours.
Public names: `encodable`, `foreign_files`, `printable`, `reasons`, `rounding`, `signs`, `spelling`, `version`.
"""
