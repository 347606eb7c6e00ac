"""Runs and identifies the user's code: functions, files, private environments and programs."""

try:
    import fcntl  # noqa: F401
except ImportError:
    raise ImportError(
        "dpaudit audits mechanisms on Linux, macOS and other POSIX systems only.  On Windows, use the Windows "
        "Subsystem for Linux (WSL)",
        name="fcntl",
    ) from None

from dpaudit.running.command import CommandMechanism
from dpaudit.running.foreign import MechanismError
from dpaudit.running.mechanisms import Batched, IsolatedMechanism, Mechanism, batched
from dpaudit.running.service import Service

__all__ = ["Batched", "CommandMechanism", "IsolatedMechanism", "Mechanism", "MechanismError", "Service", "batched"]
