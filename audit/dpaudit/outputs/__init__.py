"""Outputs of any mechanism as feature matrices."""

from dpaudit.outputs.features import OutputError, features
from dpaudit.outputs.scaling import Scale

__all__ = ["OutputError", "Scale", "features"]
