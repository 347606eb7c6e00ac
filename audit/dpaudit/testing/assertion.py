"""An audit that raises an exception if the claim is refuted or the audit is inconclusive."""

from __future__ import annotations

import dataclasses
import math
import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.arguments import claim_of
from dpaudit.engine.audit import audit_for, fresh_seed
from dpaudit.learning.attack import Attack
from dpaudit.mechanisms import MechanismError
from dpaudit.pairs.pair import Pair
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.settings.audit import DEFAULTS, AuditSettings
from dpaudit.testing import session
from dpaudit.testing.effort import DETECT, Detect, described, planned_runs, shows, sought_of, violations_of
from dpaudit.testing.failures import Kept, keep, known_violation, no_answer, violation
from dpaudit.testing.randomness import own_global_state
from dpaudit.testing.repeats import repetition, uses_global_state
from dpaudit.testing.session import Allowance, Settings
from dpaudit.testing.wealth import Chain
from dpaudit.text.reasons import About, Reason, is_about
from dpaudit.values import Foreign

_WORTH_ADVICE = 0.5  # seconds; for audits that take longer, the summary shows the cost of other values of `detect`


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
    mechanism: Foreign,
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
    """Audit a claim, and raise PrivacyViolation if the audit refutes it.

    A result without a violation does not prove the claim.  `false_alarm`, `seed` and `report` are for use outside
    pytest.  In tests, the session sets these values (`--dpaudit-false-alarm`, `--dpaudit-seed`, `--dpaudit-report`).

    Returns:
        The result of an audit that found no violation.
    """
    __tracebackhide__ = True
    own = {"false_alarm": false_alarm, "seed": seed, "report": report}
    allowance = session.current
    if allowance is not None:
        if given := [key for key, value in own.items() if value is not None]:
            raise ValueError(f"{', '.join(given)}: set by the session in a test; use the options --dpaudit-*")
    elif "PYTEST_CURRENT_TEST" in os.environ and "_dpaudit_pytest" in sys.modules:
        raise RuntimeError(
            "the session's false-alarm budget does not count this test: "
            "mark it, or its class, with @pytest.mark.dpaudit"
        )
    else:
        allowance = _alone(false_alarm, seed, report)
    return carry_out(
        allowance, mechanism, claim, pairs, trials=trials, detect=detect, attacks=attacks, jobs=jobs, name=name
    )


def _alone(false_alarm: float | None, seed: int | None, report: str | Path | None) -> Allowance:
    defaults = Settings(seed=fresh_seed() if seed is None else seed)
    settings = dataclasses.replace(
        defaults,
        false_alarm=defaults.false_alarm if false_alarm is None else false_alarm,
        report=defaults.report if report is None else Path(report),
    )
    whole = settings.false_alarm * math.pi**2 / 6  # the only call has the share 6 / pi^2, so it gets the whole budget
    return Allowance(node="", share=whole, settings=settings)


def carry_out(
    allowance: Allowance,
    mechanism: Foreign,
    claim: TradeoffFunction | str,
    pairs: Pair | Sequence[Pair],
    *,
    trials: int | None = None,
    detect: TradeoffFunction | str | float | None = None,
    attacks: str | Attack | Sequence[str | Attack] = DEFAULTS.attacks,
    jobs: int = DEFAULTS.jobs,
    name: str = "",
) -> AuditResult:
    """Carry out `assert_private` with a test's share of the budget, and add a record of the audit to `allowance`."""
    __tracebackhide__ = True
    settings = allowance.settings
    claim = claim_of("claim", claim)
    sought = sought_of(detect)
    if (outcome := allowance.again(str(claim))) is not None:
        return _returned(outcome)
    chain = allowance.next_chain(str(claim))
    if session.instead is not None:
        own_name = name or _name(mechanism, allowance)
        session.instead(allowance, mechanism, claim, pairs, attacks, own_name, violations_of(claim, sought))
    if chain.refuted:
        raise PrivacyViolation(known_violation(claim, chain))
    significance = allowance.significance(chain)
    confidence = _confidence(significance)
    size = 1 if isinstance(pairs, Pair) else len(pairs)
    planned = planned_runs(claim, sought, significance=significance, pairs=max(size, 1))
    seed = allowance.seed(allowance.calls) if allowance.node else settings.seed
    try:
        with own_global_state(seed):
            asked = AuditSettings(
                attacks=attacks,
                trials=min(settings.trials if trials is None else trials, planned),
                confidence=confidence,
                seed=seed,
                jobs=jobs,
                detect=sought if detect is not None and isinstance(sought, TradeoffFunction) else None,
                name=name or _name(mechanism, allowance),
                progress=_beginning(allowance, chain),
            )
            violations, alone = violations_of(claim, sought), not settings.run
            result = audit_for(mechanism, claim, pairs, asked, violations=violations, late_bets=alone)
    except MechanismError as error:
        raise AuditInconclusive(no_answer(claim, [str(error)], seed)) from None
    if result.stopped_by == "interruption":
        raise KeyboardInterrupt
    missed = not shows(claim, sought, result.trials_used, significance=significance, pairs=max(size, 1))
    if missed and (detect is not None or is_about(result.warnings[-1] if result.warnings else "", About.TOO_FEW)):
        result = _too_few(result, sought, planned)
    result = _with_address(result, allowance)
    if repeats := repetition(result, allowance.known, jobs):
        result = _without_news(result, repeats)
    after = _continued(chain, result, news=not repeats)
    record = _record(allowance, result, claim, chain, after, sought, significance, size, planned)
    allowance.add(record | {"repeats": bool(repeats)})
    raised = _error(result, after if settings.run else None, allowance, significance, seed)
    allowance.made[allowance.calls, str(claim)] = allowance.records[-1], raised or result
    return _returned(raised or result)


def _returned(outcome: AuditResult | Exception) -> AuditResult:
    __tracebackhide__ = True
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _error(
    result: AuditResult, chain: Chain | None, allowance: Allowance, significance: float, seed: int
) -> Exception | None:
    """Return the exception for a result; None if no violation was found.  Without a baseline, `chain` is None."""
    match result.verdict:
        case Verdict.VIOLATION:
            kept = _kept(result, allowance)
            return _raised(PrivacyViolation, violation(result, chain, significance, kept), result)
        case Verdict.INCONCLUSIVE:
            kept = _kept(result, allowance)
            return _raised(AuditInconclusive, no_answer(result.claim, _reasons(result), seed, kept), result)
    return None


def _too_few(result: AuditResult, sought: Detect, planned: int) -> AuditResult:
    """Return the result of an audit with too few runs for `sought` as inconclusive, unless the claim was refuted."""
    if result.verdict is Verdict.NO_VIOLATION:
        words = f"{result.trials_used:,} runs per dataset are too few to see a mechanism that is {described(sought)}"
        few = Reason(words, About.TOO_FEW)
        result = dataclasses.replace(result, verdict=Verdict.INCONCLUSIVE, warnings=(*result.warnings, few))
    if result.verdict is Verdict.INCONCLUSIVE:
        advice = Reason.of(
            f"trials={planned} would detect this mechanism with probability 99.9 % if the attack is optimal"
        )
        result = dataclasses.replace(result, warnings=(*result.warnings, advice))
    return result


def _confidence(significance: float) -> float:
    """Return 1 - significance, rounded up, so that the wealth at which an audit stops is never too low."""
    confidence = 1 - significance
    if 1 - confidence > significance:
        confidence = math.nextafter(confidence, 1)
    if not 0 < confidence < 1:
        raise ValueError(f"the false-alarm budget is split too finely: this audit's share is {significance:.2g}")
    return confidence


def _name(mechanism: object, allowance: Allowance) -> str:
    if not allowance.node:
        return ""
    test = allowance.node.rsplit("/", 1)[-1]
    return test if allowance.calls == 1 else f"{test} ({allowance.calls})"


def _with_address(result: AuditResult, allowance: Allowance) -> AuditResult:
    """Return the result with the test, the call and the session's seed in its provenance."""
    if not allowance.node:
        return result
    provenance = dataclasses.replace(
        result.provenance, test=allowance.node, call=allowance.calls, suite_seed=allowance.settings.seed
    )
    return dataclasses.replace(result, provenance=provenance)


def _without_news(result: AuditResult, reason: str) -> AuditResult:
    """Add the reason why a result contains no new evidence; a violation becomes inconclusive."""
    result = dataclasses.replace(result, warnings=(*result.warnings, reason))
    if not result.violated:
        return result
    return dataclasses.replace(
        result, verdict=Verdict.INCONCLUSIVE, p_value=1.0, e_value=1.0, mu_lower=0.0, bounds_valid=False
    )


def _continued(chain: Chain, result: AuditResult, *, news: bool) -> Chain:
    """Return the chain continued by this audit.

    Gains do not count if the audit is inconclusive or adds no new evidence (see `wealth`).  Losses always count;
    otherwise runs could be excluded because of their outcome.
    """
    log_e = float(result.history.log_e[-1]) if len(result.history.log_e) else 0.0
    counts = news and result.verdict is not Verdict.INCONCLUSIVE
    return chain.after(
        log_e=log_e if counts else min(log_e, 0.0),
        refuted=datetime.now(UTC).date().isoformat() if result.violated else "",
        mu_lower=result.mu_lower if counts else 0.0,
        trials=result.trials_used,
    )


def _reasons(result: AuditResult) -> list[str]:
    """Return the reasons for the missing verdict.  Signs of dependent runs come first, with advice."""
    signs = [warning for warning in result.warnings if is_about(warning, About.DEPENDENT)]
    if not signs:
        return list(result.warnings)
    advice = (
        "what to do: independent runs appear dependent only once in 10^9 audits, so look for state that one run passes "
        "to the next (a cache, a generator that is reset, or a counter), or try another --dpaudit-seed"
    )
    return [*signs, advice, *(warning for warning in result.warnings if warning not in signs)]


def _beginning(allowance: Allowance, chain: Chain) -> Callable[[object], None]:
    """Return a function that records an audit as begun, after the audit's first runs and before its first bet."""
    lost = dataclasses.asdict(chain.lost())
    record = {"node": allowance.node, "number": allowance.number, "outputs": [], "chain": lost}
    kept: list[bool] = []

    def reported(_: object) -> None:
        if not kept:
            kept.append(True)
            allowance.begin(record)

    return reported


def _record(
    allowance: Allowance,
    result: AuditResult,
    claim: TradeoffFunction,
    chain: Chain,
    after: Chain,
    sought: Detect,
    significance: float,
    pairs: int,
    planned: int,
) -> session.Record:
    return {
        "node": allowance.node,
        "number": allowance.number,
        "call": allowance.calls,
        "name": result.name,
        "claim": str(claim),
        "verdict": result.verdict.value,
        "p_value": result.p_value,
        "trials": result.trials_used,
        "planned": planned,
        "detect": described(sought),
        "mu_lower": result.mu_lower,
        "mu_lower_before": chain.mu_lower,
        "seen": result.detectable.claim,
        "elapsed_s": result.elapsed_s,
        "other": _other_runs(claim, sought, significance, pairs) if result.elapsed_s > _WORTH_ADVICE else {},
        "outputs": list(result.provenance.first_outputs or ()),
        "warnings": [str(words) for words in result.warnings],
        "global_state": uses_global_state(result),
        "chain": dataclasses.asdict(after),
    }


def _other_runs(claim: TradeoffFunction, sought: Detect, significance: float, pairs: int) -> dict[str, int]:
    """Return the planned runs for two other factors `detect`, with twice and with half the excess over 1."""
    factor = sought if isinstance(sought, float) else DETECT
    factors = [1 + 2 * (factor - 1), 1 + (factor - 1) / 2]
    return {f"{f:g}": planned_runs(claim, f, significance=significance, pairs=pairs) for f in factors}


def _kept(result: AuditResult, allowance: Allowance) -> Kept | None:
    folder = allowance.settings.report
    return None if folder is None else keep(result, folder)


def _raised(kind: type[PrivacyViolation | AuditInconclusive], message: str, result: AuditResult) -> Exception:
    error = kind(message)
    error.result = result
    return error
