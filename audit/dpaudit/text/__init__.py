"""Numbers and text for people: safe rounding, escaping, spelling hints, signs of verdicts, and ASCII replacements.

May import: nothing of ours.
Public names: `encodable`, `foreign_files`, `formats`, `masking`, `notebook`, `numbers`, `papers`, `printable`,
`reasons`, `rounding`, `signs`, `spelling`, `version`.
"""
