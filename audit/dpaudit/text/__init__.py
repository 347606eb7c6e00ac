"""Numbers and text for people: safe rounding, escaping, spelling hints, signs of verdicts, and ASCII replacements.

May import: nothing of ours.
Public names: `foreign_files`, `masking`, `numbers`, `printable`, `reasons`, `refused`, `rounding`, `signs`, `spelling`,
`version`.
"""
