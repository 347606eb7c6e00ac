"""dpaudit: empirical audits of differential-privacy claims, with exact finite-sample guarantees.

A public name is imported at its first use, so that `import dpaudit` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from dpaudit.engine.audit import ExecutionSettings, Progress, Replay, audit
    from dpaudit.engine.interactive import audit_interactive
    from dpaudit.engine.online import OnlineAudit
    from dpaudit.engine.plan import Plan, plan
    from dpaudit.engine.replay import replay
    from dpaudit.engine.score_design import plan_scores
    from dpaudit.engine.scores import audit_one_run, audit_scores
    from dpaudit.learning.attack import Attack
    from dpaudit.libraries.subject import Subject, audit_subject
    from dpaudit.outputs import Raised, Timed, register_encoder
    from dpaudit.pairs.pair import Pair
    from dpaudit.pairs.search import SearchPairs
    from dpaudit.result.model import AuditResult
    from dpaudit.result.values import Verdict
    from dpaudit.running import CommandMechanism, Mechanism, MechanismError, batched
    from dpaudit.running.sessions import Refused
    from dpaudit.testing import AuditInconclusive, PrivacyViolation
    from dpaudit.text import __version__
    from dpaudit.values import Any

_HOMES = {
    "ApproxDP": "claims",
    "Attack": "learning.attack",
    "AuditInconclusive": "testing",
    "CommandMechanism": "running",
    "AuditResult": "result.model",
    "GaussianDP": "claims",
    "LaplaceDP": "claims",
    "OnlineAudit": "engine.online",
    "Mechanism": "running",
    "MechanismError": "running",
    "Pair": "pairs.pair",
    "PrivacyLoss": "claims",
    "PrivacyViolation": "testing",
    "PureDP": "claims",
    "RenyiDP": "claims",
    "Raised": "outputs",
    "Refused": "running.sessions",
    "Replay": "engine.replay",
    "SearchPairs": "pairs.search",
    "Subject": "libraries.subject",
    "TabulatedTradeoff": "claims",
    "Timed": "outputs",
    "TradeoffFunction": "claims",
    "Verdict": "result.values",
    "ZeroConcentratedDP": "claims",
    "__version__": "text",
    "Plan": "engine.plan",
    "Progress": "engine.collector",
    "ExecutionSettings": "running.runs",
    "audit": "engine.audit",
    "audit_interactive": "engine.interactive",
    "audit_one_run": "engine.scores",
    "audit_scores": "engine.scores",
    "audit_subject": "libraries.subject",
    "batched": "running",
    "compose": "claims",
    "parse_claim": "claims",
    "plan": "engine.plan",
    "plan_scores": "engine.score_design",
    "register_encoder": "outputs",
    "replay": "engine.replay",
}

__all__ = [
    "ApproxDP",
    "Attack",
    "AuditInconclusive",
    "AuditResult",
    "CommandMechanism",
    "ExecutionSettings",
    "GaussianDP",
    "LaplaceDP",
    "Mechanism",
    "MechanismError",
    "OnlineAudit",
    "Pair",
    "Plan",
    "PrivacyLoss",
    "PrivacyViolation",
    "Progress",
    "PureDP",
    "Raised",
    "Refused",
    "RenyiDP",
    "Replay",
    "SearchPairs",
    "Subject",
    "TabulatedTradeoff",
    "Timed",
    "TradeoffFunction",
    "Verdict",
    "ZeroConcentratedDP",
    "__version__",
    "audit",
    "audit_interactive",
    "audit_one_run",
    "audit_scores",
    "audit_subject",
    "batched",
    "compose",
    "parse_claim",
    "plan",
    "plan_scores",
    "register_encoder",
    "replay",
]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"dpaudit.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
