"""dpaudit: empirical audits of differential-privacy claims, with exact finite-sample guarantees.

Names are loaded when they are used, so that `import dpaudit` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.claims import ApproxDP, GaussianDP, PureDP, TradeoffFunction, parse_claim
    from dpaudit.engine import audit
    from dpaudit.mechanisms import Mechanism, MechanismError, batched
    from dpaudit.neighbours import Pair
    from dpaudit.registry import Attack
    from dpaudit.result import AuditResult, Verdict

_HOMES = {
    "ApproxDP": "claims",
    "Attack": "registry",
    "AuditResult": "result",
    "GaussianDP": "claims",
    "Mechanism": "mechanisms",
    "MechanismError": "mechanisms",
    "Pair": "neighbours",
    "PureDP": "claims",
    "TradeoffFunction": "claims",
    "Verdict": "result",
    "audit": "engine",
    "batched": "mechanisms",
    "parse_claim": "claims",
}

__all__ = [
    "ApproxDP",
    "Attack",
    "AuditResult",
    "GaussianDP",
    "Mechanism",
    "MechanismError",
    "Pair",
    "PureDP",
    "TradeoffFunction",
    "Verdict",
    "audit",
    "batched",
    "parse_claim",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"dpaudit.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
