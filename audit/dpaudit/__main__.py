"""Starts the command `dpaudit`, also as `python -m dpaudit`."""

from __future__ import annotations

import sys
import traceback


def main() -> None:
    """Run `dpaudit` and exit with its code, or with 4 after an unhandled exception, as Python's 1 means a violation."""
    try:
        from dpaudit.cli.app import main as command

        command()
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException:
        try:
            traceback.print_exc()
        finally:
            sys.exit(4)


if __name__ == "__main__":
    main()
