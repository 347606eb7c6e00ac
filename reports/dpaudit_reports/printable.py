"""Re-exports `dpaudit.text.printable` for writers."""

from dpaudit.text.printable import printable

__all__ = ["printable"]
