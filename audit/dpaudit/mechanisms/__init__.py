"""Runs anybody's code: functions, files, private environments and programs.  Also finds out what code that is.

May import: `claims`, `values`.
Public names: those below.
"""

from dpaudit.mechanisms.command import CommandMechanism
from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.mechanisms.protocol import Batched, Mechanism, MechanismError, batched

__all__ = ["Batched", "CommandMechanism", "IsolatedMechanism", "Mechanism", "MechanismError", "batched"]
