"""Promises as curves.  One claim, one class with `beta` and `delta`; numpy and scipy only."""

from dpaudit.claims.approximate import ApproxDP
from dpaudit.claims.base import Array, TradeoffFunction
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.parse import CLAIMS, parse_claim
from dpaudit.claims.pure import PureDP

__all__ = ["CLAIMS", "ApproxDP", "Array", "GaussianDP", "PureDP", "TradeoffFunction", "parse_claim"]
