"""Reads the outputs of mechanisms, and computes the feature matrices that attacks receive.

`Outputs` is a block of outputs as the mechanism returned them, and an encoding, fitted to past outputs, gives features.
"""

from dpaudit.outputs.block import VIEWS, Outputs, View
from dpaudit.outputs.derived import Scale, derived, derived_names
from dpaudit.outputs.encoding import Encoding, PartsEncoding, PlainEncoding
from dpaudit.outputs.entries import OutputError, Raised, Timed, register_encoder
from dpaudit.outputs.plain import as_alone, refuse_mixed_types, types_of
from dpaudit.outputs.queries import Queries, Targets

__all__ = [
    "VIEWS",
    "Encoding",
    "OutputError",
    "Outputs",
    "PartsEncoding",
    "PlainEncoding",
    "Queries",
    "Raised",
    "Scale",
    "Targets",
    "Timed",
    "View",
    "as_alone",
    "derived",
    "derived_names",
    "refuse_mixed_types",
    "register_encoder",
    "types_of",
]
