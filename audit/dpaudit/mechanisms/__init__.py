"""What is audited: the protocol, mechanisms from files, and those that come with the framework."""

from dpaudit.mechanisms.protocol import Batched, Mechanism, MechanismError, batched

__all__ = ["Batched", "Mechanism", "MechanismError", "batched"]
