"""Defines privacy claims as trade-off functions.  Each kind of claim is a class with the methods `beta` and `delta`.

The subpackage `operations` derives new claims from given ones.

May import: `numerics`, `text`, `values`.
Public names: those below.
"""

from dpaudit.claims.approximate import ApproxDP
from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.laplace import LaplaceDP
from dpaudit.claims.operations.compose import compose
from dpaudit.claims.profile import PrivacyLoss
from dpaudit.claims.pure import PureDP
from dpaudit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.claims.tabulated import TabulatedTradeoff
from dpaudit.claims.text import CLAIMS, OPERATIONS, parse_claim, rounded

__all__ = [
    "CLAIMS",
    "OPERATIONS",
    "ApproxDP",
    "GaussianDP",
    "LaplaceDP",
    "PrivacyLoss",
    "PureDP",
    "RenyiDP",
    "TabulatedTradeoff",
    "TradeoffFunction",
    "ZeroConcentratedDP",
    "compose",
    "parse_claim",
    "rounded",
]
