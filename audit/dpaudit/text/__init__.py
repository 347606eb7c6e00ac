"""Formats numbers and text: rounding to the safe side, escapes, spelling, signs of verdicts, ASCII.

May import: nothing of ours.
Public names: `rounding`, `printable`, `spelling`, `signs`, `encodable`, `version`.
"""
