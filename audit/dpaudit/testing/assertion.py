"""An audit that raises an exception if the claim is refuted or the audit is inconclusive."""

from __future__ import annotations

import dataclasses
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.arguments import claim_of
from dpaudit.engine.audit import audit_for, fresh_seed
from dpaudit.learning.attack import Attack
from dpaudit.pairs.pair import Pair
from dpaudit.result.model import AuditResult
from dpaudit.result.summary import certified_words, weakness
from dpaudit.result.values import Verdict
from dpaudit.running import MechanismError
from dpaudit.settings import DEFAULTS, AuditSettings
from dpaudit.testing import session
from dpaudit.testing.effort import Effort, described, sought_of, violations_of
from dpaudit.testing.messages import SLOW, inconclusive, known_violation, no_answer, violation
from dpaudit.testing.session import Allowance, Chain, Record, Settings
from dpaudit.text import Reason, WarningCode, has_code


class PrivacyViolation(AssertionError):
    """Raised if the claim is refuted.  `result` is the audit's result; None if an earlier run refuted the claim."""

    __module__ = "dpaudit"
    result: AuditResult | None = None


class AuditInconclusive(AssertionError):
    """Raised if the mechanism failed, its runs are dependent, or the runs were too few for a verdict.

    `result` is the audit's result; None if the audit ended without a result.
    """

    __module__ = "dpaudit"
    result: AuditResult | None = None


def assert_private(
    mechanism: Any,
    claim: TradeoffFunction | str,
    pairs: Pair | Sequence[Pair],
    *,
    trials: int | None = None,
    detect: TradeoffFunction | str | float | None = None,
    attacks: str | Attack | Sequence[str | Attack] = DEFAULTS.attacks,
    jobs: int = DEFAULTS.jobs,
    name: str = "",
    false_alarm: float | None = None,
    seed: int | None = None,
    report: str | Path | None = None,
) -> AuditResult:
    """Audit a claim, and raise PrivacyViolation if the audit refutes it; return the result of an audit that did not.

    A result without a violation does not prove the claim.  `false_alarm`, `seed` and `report` are for use outside
    pytest.  In tests, the session sets these values (`--dpaudit-false-alarm`, `--dpaudit-seed`, `--dpaudit-report`).
    """
    __tracebackhide__ = True
    allowance = _allowance({"false_alarm": false_alarm, "seed": seed, "report": report})
    claim, sought = claim_of("claim", claim), sought_of(detect)
    if (outcome := allowance.again(str(claim))) is None:
        chain = allowance.next_chain(str(claim))
        test = allowance.node.rsplit("/", 1)[-1]
        name = name or (test if allowance.calls == 1 else f"{test} ({allowance.calls})")
        violations = violations_of(claim, sought)
        if session.instead is not None:
            session.instead(allowance, mechanism, pairs, attacks, claim=claim, name=name, violations=violations)
        if chain.refuted:
            raise PrivacyViolation(known_violation(claim, chain))
        size = 1 if isinstance(pairs, Pair) else max(len(pairs), 1)
        effort = Effort(claim, sought, allowance.significance(chain), size)
        settings = AuditSettings(
            attacks=attacks,
            trials=min(allowance.settings.trials if trials is None else trials, effort.planned),
            confidence=_confidence(effort.significance),
            seed=allowance.seed(allowance.calls) if allowance.node else allowance.settings.seed,
            jobs=jobs,
            detect=sought if detect is not None and isinstance(sought, TradeoffFunction) else None,
            name=name,
            progress=_beginning(allowance, chain),
        )
        try:
            late_bets = not allowance.settings.run
            result = audit_for(mechanism, claim, pairs, settings, violations=violations, late_bets=late_bets)
        except MechanismError as error:
            raise AuditInconclusive(no_answer(claim, [str(error)], [f"  seed {settings.seed}"])) from None
        if result.stopped_by == "interruption":
            raise KeyboardInterrupt
        missed = not effort.shows(result.trials_used)
        few = any(has_code(last, WarningCode.TOO_FEW) for last in result.warnings[-1:])
        if missed and (detect is not None or few):
            result = _too_few(result, effort)
        about = {
            "planned": effort.planned,
            "detect": described(effort.detect),
            "other": effort.others() if result.elapsed_s > SLOW else {},
        }
        outcome = _outcome(allowance, chain, result, claim, effort.significance, about)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def assert_audit(
    claim: TradeoffFunction | str,
    make: Callable[..., AuditResult],
    *,
    name: str = "",
    false_alarm: float | None = None,
    seed: int | None = None,
    report: str | Path | None = None,
) -> AuditResult:
    """Make an audit of scores, of a stream, of sessions or of one run; return its result if it found no violation.

    Args:
        claim: The claim to test.
        make: A function that makes the audit with the keyword arguments `claim`, `confidence` and `seed`, such as
            `lambda **how: audit_scores(left_out, included, independence="runs", **how)`.  It must pass all of them on.
        name: Name of the audit; that of the test if empty.  Other arguments are those of `assert_private`.

    Raises:
        PrivacyViolation: If the claim is refuted.
        AuditInconclusive: If the audit has no verdict.
        ValueError: If the result has another claim, or less confidence than the share of the session's budget needs.
    """
    __tracebackhide__ = True
    allowance = _allowance({"false_alarm": false_alarm, "seed": seed, "report": report})
    claim = claim_of("claim", claim, sessions=True)
    if (outcome := allowance.again(str(claim))) is None:
        chain = allowance.next_chain(str(claim))
        if chain.refuted:
            raise PrivacyViolation(known_violation(claim, chain))
        significance = allowance.significance(chain)
        confidence = _confidence(significance)
        own_seed = allowance.seed(allowance.calls) if allowance.node else allowance.settings.seed
        result = make(claim=claim, confidence=confidence, seed=own_seed)
        if str(result.claim) != str(claim) or result.confidence < confidence:
            raise ValueError(
                f"make must pass on claim={claim} and confidence={confidence!r}, but the result has "
                f"claim={result.claim} and confidence={result.confidence!r}"
            )
        named = name or allowance.node.rsplit("/", 1)[-1] or result.name
        result = dataclasses.replace(result, name=named)
        about = {"planned": result.trials_used, "detect": "the claim", "other": {}}
        outcome = _outcome(allowance, chain, result, claim, significance, about)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _allowance(given: Mapping[str, Any]) -> Allowance:
    """Return the allowance of the running test; outside tests, an allowance for one call with the given settings."""
    own = {key: value for key, value in given.items() if value is not None}
    if session.current is not None:
        if own:
            raise ValueError(f"{', '.join(own)}: set by the session in a test; use the options --dpaudit-*")
        return session.current
    if "PYTEST_CURRENT_TEST" in os.environ and "_dpaudit_pytest" in sys.modules:
        raise RuntimeError(
            "the session's false-alarm budget does not count this test: "
            "mark it, or its class, with @pytest.mark.dpaudit"
        )
    settings = Settings(**{"seed": fresh_seed(), **own})
    whole = settings.false_alarm * math.pi**2 / 6  # the only call has the share 6 / pi^2, so it gets the whole budget
    return Allowance(node="", share=whole, settings=settings)


def _confidence(significance: float) -> float:
    """Return 1 - significance, rounded up, so that the wealth at which an audit stops is never too low."""
    confidence = 1 - significance
    return math.nextafter(confidence, 1) if 1 - confidence > significance else confidence


def _beginning(allowance: Allowance, chain: Chain) -> Callable[[object], None]:
    """Return a function that records an audit as begun, after the audit's first runs and before its first bet."""
    lost = chain.after(log_e=-math.inf, refuted="", mu_lower=0.0, trials=0)
    node, number = allowance.node, allowance.entry.number
    record = {"node": node, "number": number, "outputs": [], "chain": dataclasses.asdict(lost), "begun": True}
    pending: list[Record] = [record]

    def reported(_: object) -> None:
        if pending:
            allowance.keep(pending.pop())

    return reported


def _outcome(
    allowance: Allowance,
    chain: Chain,
    result: AuditResult,
    claim: TradeoffFunction,
    significance: float,
    about_effort: Mapping[str, Any],
) -> AuditResult | Exception:
    """Record an audit that has ended, and return its result, or the exception for a violation or a missing verdict."""
    if allowance.node:
        seed = allowance.settings.seed
        about = dataclasses.replace(result.provenance, test=allowance.test, call=allowance.calls, suite_seed=seed)
        result = dataclasses.replace(result, provenance=about)
    outputs = result.provenance.first_outputs or ()
    repeats = not set(outputs).isdisjoint(allowance.entry.outputs)
    if repeats:
        reason = (
            "the first outputs equal the first outputs of an earlier run in the baseline, so this run adds no "
            "evidence; let the mechanism use the rng argument, not a generator with a fixed seed; if several copies "
            "of the baseline file exist, use only one of them"
        )
        nothing = {"verdict": Verdict.INCONCLUSIVE, "p_value": 1.0, "e_value": 1.0, "mu_lower": 0.0}
        changes: dict[str, Any] = {**nothing, "bounds_valid": False} if result.violated else {}
        result = dataclasses.replace(result, warnings=(*result.warnings, reason), **changes)
    after = _continued(chain, result, news=not repeats)
    record = {
        "node": allowance.node,
        "number": allowance.entry.number,
        "call": allowance.calls,
        "name": result.name,
        "claim": str(claim),
        "verdict": result.verdict.value,
        "p_value": result.p_value,
        "trials": result.trials_used,
        **about_effort,
        "mu_lower": result.mu_lower,
        "certified": certified_words(result),
        "mu_lower_before": chain.mu_lower,
        "elapsed_s": result.elapsed_s,
        "outputs": list(outputs),
        "repeats": repeats,
        "warnings": [
            *map(str, result.warnings),
            *([f"could not see much: {why}"] if (why := weakness(result)) else []),
        ],
        "chain": dataclasses.asdict(after),
    }
    allowance.records.append(record)
    allowance.keep(record)
    outcome: AuditResult | PrivacyViolation | AuditInconclusive = result
    if result.violated:
        counted = after if allowance.settings.run else None
        outcome = PrivacyViolation(violation(result, counted, significance, allowance))
        outcome.result = result
    elif result.verdict is Verdict.INCONCLUSIVE:
        outcome = AuditInconclusive(inconclusive(result, allowance))
        outcome.result = result
    allowance.made[allowance.calls, str(claim)] = record, outcome
    return outcome


def _too_few(result: AuditResult, effort: Effort) -> AuditResult:
    """Return the result of an audit with too few runs as inconclusive, unless the claim was refuted."""
    if result.violated:
        return result
    warnings = list(result.warnings)
    if result.verdict is Verdict.NO_VIOLATION:
        sought = described(effort.detect)
        words = f"{result.trials_used:,} runs per dataset are too few to see a mechanism that is {sought}"
        warnings.append(Reason(words, WarningCode.TOO_FEW))
    warnings.append(
        f"trials={effort.planned} would detect this mechanism with probability 99.9 % if the attack is optimal"
    )
    return dataclasses.replace(result, verdict=Verdict.INCONCLUSIVE, warnings=tuple(warnings))


def _continued(chain: Chain, result: AuditResult, *, news: bool) -> Chain:
    """Return the chain continued by this audit, whose gains count only with news and a verdict, and losses always."""
    log_e = float(result.history.log_e[-1]) if len(result.history.log_e) else 0.0
    if not result.evidence.kind.anytime and not result.violated:
        log_e = -math.inf  # a test by its p-value is an all-or-nothing bet
    counts = news and result.verdict is not Verdict.INCONCLUSIVE
    return chain.after(
        log_e=log_e if counts else min(log_e, 0.0),
        refuted=datetime.now(UTC).date().isoformat() if result.violated else "",
        mu_lower=result.mu_lower if counts else 0.0,
        trials=result.trials_used,
    )
