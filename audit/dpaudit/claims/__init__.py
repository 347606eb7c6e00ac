"""Defines privacy claims as trade-off functions.  Each kind of claim is a class with the methods `beta` and `delta`."""

from dpaudit.claims.base import TradeoffFunction
from dpaudit.claims.compose import compose
from dpaudit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.claims.standard import ApproxDP, GaussianDP, LaplaceDP, PureDP, Reported
from dpaudit.claims.tabulated import PrivacyLoss, TabulatedTradeoff
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
    "Reported",
    "TabulatedTradeoff",
    "TradeoffFunction",
    "ZeroConcentratedDP",
    "compose",
    "parse_claim",
    "rounded",
]
