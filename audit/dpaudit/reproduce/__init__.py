"""Writes a standalone script that reproduces a violation without dpaudit.

Nothing that a result names is run or imported.  All text of a result reaches the script as the literal of a plain
value, as a checked Python name, or in a comment without control characters.
"""
