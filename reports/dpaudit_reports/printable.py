"""The name that writers use for `dpaudit.text.printable`."""

from dpaudit.text.printable import printable

__all__ = ["printable"]
