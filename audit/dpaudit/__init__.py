"""dpaudit: empirical audits of differential-privacy claims, with exact finite-sample guarantees.

Names are loaded when they are used, so that `import dpaudit` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit._version import __version__
    from dpaudit.claims import (
        ApproxDP,
        GaussianDP,
        LaplaceDP,
        PrivacyLoss,
        PureDP,
        RenyiDP,
        TabulatedTradeoff,
        TradeoffFunction,
        ZeroConcentratedDP,
        compose,
        parse_claim,
    )
    from dpaudit.engine import Progress, Replay, Terms, audit
    from dpaudit.engine.replay import replay
    from dpaudit.mechanisms import CommandMechanism, Mechanism, MechanismError, batched
    from dpaudit.neighbours import Pair
    from dpaudit.one_run import audit_one_run
    from dpaudit.outputs import Raised, Timed, register_encoder
    from dpaudit.planning import Plan, plan
    from dpaudit.registry import Attack
    from dpaudit.result import AuditResult, Verdict
    from dpaudit.search import SearchPairs
    from dpaudit.testing import AuditInconclusive, PrivacyViolation

_HOMES = {
    "ApproxDP": "claims",
    "Attack": "registry",
    "AuditInconclusive": "testing",
    "CommandMechanism": "mechanisms",
    "AuditResult": "result",
    "GaussianDP": "claims",
    "LaplaceDP": "claims",
    "Mechanism": "mechanisms",
    "MechanismError": "mechanisms",
    "Pair": "neighbours",
    "PrivacyLoss": "claims",
    "PrivacyViolation": "testing",
    "PureDP": "claims",
    "RenyiDP": "claims",
    "Raised": "outputs",
    "Replay": "engine",
    "SearchPairs": "search",
    "TabulatedTradeoff": "claims",
    "Timed": "outputs",
    "TradeoffFunction": "claims",
    "Verdict": "result",
    "ZeroConcentratedDP": "claims",
    "__version__": "_version",
    "Plan": "planning",
    "Progress": "engine",
    "Terms": "engine",
    "audit": "engine",
    "audit_one_run": "one_run",
    "batched": "mechanisms",
    "compose": "claims",
    "parse_claim": "claims",
    "plan": "planning",
    "register_encoder": "outputs",
    "replay": "engine",
}

__all__ = [
    "ApproxDP",
    "Attack",
    "AuditInconclusive",
    "AuditResult",
    "CommandMechanism",
    "GaussianDP",
    "LaplaceDP",
    "Mechanism",
    "MechanismError",
    "Pair",
    "Plan",
    "PrivacyLoss",
    "PrivacyViolation",
    "Progress",
    "PureDP",
    "Raised",
    "RenyiDP",
    "Replay",
    "SearchPairs",
    "TabulatedTradeoff",
    "Terms",
    "Timed",
    "TradeoffFunction",
    "Verdict",
    "ZeroConcentratedDP",
    "__version__",
    "audit",
    "audit_one_run",
    "batched",
    "compose",
    "parse_claim",
    "plan",
    "register_encoder",
    "replay",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"dpaudit.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
