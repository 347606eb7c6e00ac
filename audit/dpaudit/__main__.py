"""Starts the command `dpaudit`, also as `python -m dpaudit`."""

from __future__ import annotations

import sys
import traceback


def main() -> None:
    """Run the command `dpaudit` and exit with its code, or with 4 after an exception that no other code handles.

    Python's own exit code after such an exception is 1, which means a violation.
    """
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
