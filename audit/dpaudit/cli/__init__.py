"""The command line: it parses options, calls the packages below, prints, and exits with a documented code.

May import: every package.
Public names: `app.main`.
"""
