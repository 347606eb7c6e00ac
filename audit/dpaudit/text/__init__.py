"""How numbers, names and foreign text are written: bounds are rounded to their safe side, control characters removed.

May import: nothing of ours.
Public names: `rounding`, `printable`, `spelling`, `version`.
"""
