"""Re-exports `dpaudit.text.printable` for writers."""

from dpaudit.text.printable import one_line, printable

__all__ = ["one_line", "printable"]
