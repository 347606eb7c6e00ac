"""The command line: parses, calls, prints, and ends with a documented exit code.

May import: every package.
Public names: `app.main`.
"""
