"""Writes a standalone script that reproduces a violation without dpaudit.

Nothing that a result names is run or imported; its text reaches the script only as a literal, a checked name or a
comment.
"""
