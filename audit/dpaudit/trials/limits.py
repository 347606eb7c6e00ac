"""A limit to how long one run may take, in the process that makes it."""

from dpaudit.mechanisms.limits import Limit, RunTimeout, limited

__all__ = ["Limit", "RunTimeout", "limited"]
