"""What is audited: the protocol, mechanisms from files, from other environments and programs, and builtin ones."""

from dpaudit.mechanisms.command import CommandMechanism
from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.mechanisms.protocol import Batched, Mechanism, MechanismError, batched

__all__ = ["Batched", "CommandMechanism", "IsolatedMechanism", "Mechanism", "MechanismError", "batched"]
