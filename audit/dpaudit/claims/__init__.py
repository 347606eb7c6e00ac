"""Promises as curves.  One claim, one class with `beta` and `delta`; numpy and scipy only."""

from dpaudit.claims.approximate import ApproxDP
from dpaudit.claims.base import TradeoffFunction, rounded
from dpaudit.claims.composition import compose
from dpaudit.claims.concentrated import ZeroConcentratedDP
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.laplace import LaplaceDP
from dpaudit.claims.losses import PrivacyLoss
from dpaudit.claims.parse import CLAIMS, OPERATIONS, parse_claim
from dpaudit.claims.pure import PureDP
from dpaudit.claims.renyi import RenyiDP
from dpaudit.claims.tabulated import TabulatedTradeoff

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
