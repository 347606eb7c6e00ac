"""The name that writers use for `dpaudit.printable`."""

from dpaudit.printable import printable

__all__ = ["printable"]
