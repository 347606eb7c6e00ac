"""Outputs of mechanisms, and the features that attacks receive.

`Outputs` holds a block of outputs as the mechanism returned them.  An encoding, learned from past outputs, turns them
into a feature matrix.

May import: `numerics`, `values`.
Public names: those below.
"""

from dpaudit.outputs.block import VIEWS, Outputs, View
from dpaudit.outputs.derived import derived, derived_names
from dpaudit.outputs.encoders import register_encoder
from dpaudit.outputs.encoding import Encoding, PartsEncoding, PlainEncoding
from dpaudit.outputs.outcomes import OutputError, Raised, Timed
from dpaudit.outputs.recurring import Places, Recurring
from dpaudit.outputs.scaling import Scale

__all__ = [
    "VIEWS",
    "Encoding",
    "OutputError",
    "Outputs",
    "PartsEncoding",
    "Places",
    "PlainEncoding",
    "Raised",
    "Recurring",
    "Scale",
    "Timed",
    "View",
    "derived",
    "derived_names",
    "register_encoder",
]
