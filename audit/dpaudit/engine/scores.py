"""Audits of given scores of independent runs, or of the canaries of one or several runs."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.engine.arguments import claim_of
from dpaudit.engine.learned_scores import learned_scores
from dpaudit.engine.plan_scores import scores_needed
from dpaudit.engine.provenance import provenance_of
from dpaudit.engine.read_scores import Given, copied, order_doubts, read_scores
from dpaudit.engine.rows import detectable, observed_curve
from dpaudit.engine.score_design import (
    Coins,
    Inclusion,
    Independence,
    check_design,
    check_independence,
    coins_of,
    number_of_runs,
    order_matters,
    run_labels,
    signs_of_dependence,
    sorted_evidence,
)
from dpaudit.engine.verdict import Facts, ruling
from dpaudit.inference.power import least_in_family
from dpaudit.learning.attack import Attack
from dpaudit.numerics import Array
from dpaudit.result.evidence import concluded
from dpaudit.result.model import AuditResult
from dpaudit.result.scores_evidence import ScoresEvidence
from dpaudit.result.values import MEASUREMENT, AttackRow, Counts, Curve, Detectable, History, Witness
from dpaudit.running.foreign import own_error_state
from dpaudit.running.streams import fresh_seed, stream
from dpaudit.settings import DEFAULTS, POWER, check_confidence, shown
from dpaudit.text import Reason, WarningCode

GIVEN = AttackRow(name="scores", weight=1.0, log_loss=math.nan, note="given by the user")

CHOSEN_SEED = (
    "ties between scores were broken with the given seed; the false-alarm guarantee is an average over random seeds, "
    "so omit the seed or draw it at random"
)
"""Warning if ties matter and the user chose the seed."""

ATTAINED_IF = "scores are likelihood ratios, independent of each other"
"""The condition, in words, of the stated power."""

TESTED = "fixed"
"""The only method: one test, because all scores are given at once."""


def audit_scores(
    scores0: Any,
    scores1: Any,
    claim: TradeoffFunction | str | None = None,
    *,
    independence: Independence = None,
    confidence: float = DEFAULTS.confidence,
    method: Literal["fixed"] = "fixed",
    seed: int | None = DEFAULTS.seed,
    attacks: str | Attack | Sequence[str | Attack] = DEFAULTS.attacks,
    included_at_random: Inclusion = "coins",
    run: Any = None,
    name: str = "scores",
) -> AuditResult:
    """Bound the privacy loss from below with two lists of scores, and try to refute a claim.

    Without further arguments, the verdict assumes only that each canary was included at random.  `result.bounds` shows
    what is proven under each assumption.  Members and non-members from different sources prove nothing.

    The guarantee covers one test: audit a set of scores once, when it is complete.  Do not repeat the call while scores
    are added and stop at a refutation, because every call may refute a true claim.  To test after every output, use
    `OnlineAudit`.

    Numbers are used as scores directly, and all of them are evidence.  If outputs are not numbers (text, vectors), a
    score is learned from a randomly chosen third of the outputs, and only the other outputs are evidence.  A few values
    among numbers that are not numbers are refused, and so is None among numbers.

    Args:
        scores0: Scores of canaries that were left out, or of runs on d0: (n0,), higher means more like an included
            canary, or more like d1; +-inf is allowed.  Alternatively, n0 outputs of any kind.  Each canary or run
            occurs once.
        scores1: The same as `scores0`, for canaries that were included, or for runs on d1.
        claim: A claim, or its text.  If None, the result is a measurement: its bounds hold, and its verdict is
            INCONCLUSIVE, because no claim is tested.
        independence: The assumption of the verdict.  None: only the random inclusion of canaries, of one run or of
            several.  "canaries": given which canaries were included, scores of different canaries are independent, and
            each depends only on whether its own canary was included.  If a permutation test rejects this at 0.1 %, the
            result is INCONCLUSIVE; for this test, give the canaries in their order in the run, or in random order.
            "runs": every score comes from a separate run, and runs are independent.
        confidence: A true claim is called violated with probability at most 1 - confidence.
        method: Must be "fixed": all scores are given at once, so they are tested once.
        seed: Seed that breaks ties between scores and chooses the outputs to learn from; None draws a fresh seed, which
            the result records.  The guarantee is an average over seeds.  Pass a recorded seed to repeat an audit, but
            never choose among seeds.
        attacks: Attacks that learn a score if outputs are not numbers.
        included_at_random: How the included canaries were chosen.  "coins": an independent fair coin decided for each
            canary.  "fixed_number": a fixed number of canaries was drawn at random, without replacement.  A number that
            fair coins rarely give counts as fixed, too.  It matters only if nothing else is assumed.
        run: The run of each canary, if canaries come from several independent runs: two lists of names or numbers, for
            `scores0` and `scores1`.  Each run must have new coins.
        name: Name of the audit in reports.

    Returns:
        The result.  At the stated confidence, its bounds on epsilon hold jointly for all deltas, and so do its bound on
        mu and the verdict about a claim that is not (epsilon, delta)-DP.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If scores cannot be used: missing, all equal, too few, integers that no float equals, or numbers on
            one side and no number on the other side.
    """
    began = time.perf_counter()
    check_independence(independence)
    inclusion = check_design(independence, included_at_random)
    _check_method(method)
    given = read_scores(scores0, scores1)
    return audit_given(
        given,
        claim,
        Design(independence=independence, inclusion=inclusion, run=run),
        confidence=confidence,
        seed=seed,
        attacks=attacks,
        name=name,
        began=began,
        chosen_seed=seed is not None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The design of the experiment, as stated by the user; see `audit_scores`."""

    independence: Independence
    inclusion: Inclusion = "coins"
    run: Any = None
    own_coins: bool = False  # whether this program tossed the coins, so that no number was fixed beforehand


@own_error_state()
def audit_given(
    given: Given,
    claim: TradeoffFunction | str | None,
    design: Design,
    *,
    confidence: float,
    seed: int | None,
    attacks: str | Attack | Sequence[str | Attack] = DEFAULTS.attacks,
    name: str,
    began: float,
    chosen_seed: bool = False,
    dependent: tuple[str, ...] = (),
    ignored: tuple[str, ...] = (),
) -> AuditResult:
    """Audit scores that have been read.  Arguments that are not explained here are those of `audit_scores`.

    `dependent` holds reasons why no guarantee holds.
    `ignored` holds reasons why the runs seem to ignore their datasets; it is not used if a bound on mu is above 0.
    """
    check_confidence(confidence)
    claimed = NO_CLAIM if claim is None else claim_of("claim", claim)
    seed = fresh_seed() if seed is None else seed
    labels = run_labels(design.run, given.sizes, design.independence)
    for what, n in zip(("left out", "included"), given.sizes, strict=True):
        if not n:
            raise ValueError(f"no canary was {what}, so there is nothing to guess; got {given.sizes}")
    rows: tuple[AttackRow, ...] = (GIVEN,)
    if given.numbers is not None:
        values0, values1 = given.numbers
    elif labels is not None:
        raise ValueError("scores of several runs must be numbers; no score is learned from outputs of several runs")
    else:
        learned = learned_scores(*given.outputs, attacks, seed, coins=design.independence != "runs")
        values0, values1, rows = learned.scores0, learned.scores1, learned.rows
        dependent = (*learned.dependent, *dependent)
    if design.independence == "canaries":
        dependent = (*dependent, *signs_of_dependence(values0, values1, labels, seed))
    sizes = len(values0), len(values1)
    coins = Coins(0.5, 1.0, "")
    if design.independence != "runs":
        part = sizes if sizes != given.sizes else None
        coins = coins_of(labels, given.sizes, design.inclusion, counted=part, tossed=design.own_coins)
    if coins.divided and design.independence == "canaries":
        raise ValueError(
            "independent canaries of several runs must be included by coins, and not a fixed number, such as half, in "
            "each run; use independence=None, or audit each run by itself"
        )
    evidence = sorted_evidence(
        values0,
        values1,
        design.independence or "inclusion",
        coins,
        runs=sum(sizes) if design.independence == "runs" else 1 if labels is None else number_of_runs(labels),
        claim=claimed,
        significance=1 - confidence,
        rng=stream(seed, "ties"),
    )
    notes = (CHOSEN_SEED,) if chosen_seed and order_matters(values0, values1) else ()
    if design.independence is None and coins.note:
        notes = (*notes, coins.note)
    alpha, beta = observed_curve(values0, values1)
    counted = _Counted(evidence, given.sizes, alpha, beta, rows, dependent, copied(given), notes, ignored)
    return _result(counted, claimed, confidence, provenance_of(seed=seed, mechanism=name), name, began)


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """Everything that `_result` needs from the scores."""

    evidence: ScoresEvidence
    sizes: tuple[int, int]  # numbers of all scores or outputs of each side, including those learned from
    alpha: Array  # observed errors
    beta: Array
    rows: tuple[AttackRow, ...]
    dependent: tuple[str, ...]  # why the runs or the learned scores support no guarantee
    copied: tuple[str, ...]  # why the scores, or the outputs, must contain copies
    notes: tuple[str, ...]
    ignored: tuple[str, ...]  # why the runs seem to ignore their datasets


def _check_method(given: str) -> None:
    if given != TESTED:
        raise ValueError(
            f'method must be "{TESTED}", got {shown(given)}: all scores are given at once, so they are tested once; '
            "for outputs that arrive one by one, use OnlineAudit"
        )


def _result(
    counted: _Counted, claim: TradeoffFunction, confidence: float, provenance: Any, name: str, began: float
) -> AuditResult:
    evidence, n = counted.evidence, counted.evidence.trials
    p_value = evidence.p_value(claim.symmetrized())
    found_least = _detectable(evidence, claim)
    mu_lower = evidence.lower(None, confidence=confidence)
    few = f"{evidence.scores:,} scores are too few to see any violation of {claim.label}"
    inverted, hardly = "", ""
    proven = p_value <= 1 - confidence or mu_lower > 0 or evidence.lower(evidence.delta, confidence=confidence)
    if not proven and counted.rows == (GIVEN,):
        observed = counted.alpha, counted.beta
        inverted, hardly = order_doubts(*observed, counted.sizes, claim, runs=evidence.line == "runs")
    if counted.dependent or counted.ignored:
        hardly = ""
    found = ruling(
        Facts(
            fixed=True,
            trials=n,
            allowed=n,
            refuted=p_value <= 1 - confidence,
            dependent=counted.dependent,
            doubts=(*counted.copied, *filter(None, [inverted])),
            notes=(*counted.notes, *filter(None, [hardly])),
            ignored=() if mu_lower > 0 else counted.ignored,
            unclaimed=MEASUREMENT if claim == NO_CLAIM else "",
            too_few="" if found_least.claim else Reason(few, WarningCode.TOO_FEW),
        )
    )
    return AuditResult(
        **concluded(evidence, claim, confidence=confidence, valid=found.bounds_valid, failed=False),
        name=name,
        verdict=found.verdict,
        trials_used=n,
        trials_allowed=n,
        stopped_by=found.stopped_by,
        curve=Curve(alpha=counted.alpha, beta=counted.beta, beta_upper=1 - counted.alpha),
        witness=None if claim == NO_CLAIM else _witness(evidence),
        detectable=found_least,
        history=History(trials=np.zeros(0, dtype=np.int64), log_e=np.zeros(0)),
        pairs=(),
        attacks=counted.rows,
        warnings=found.reasons,
        provenance=provenance,
        elapsed_s=time.perf_counter() - began,
    )


def _detectable(evidence: ScoresEvidence, claim: TradeoffFunction) -> Detectable:
    """Return the smallest violation that these scores would have detected if they were likelihood ratios."""
    least, needed = None, ""
    if claim != NO_CLAIM:
        least = least_in_family(claim, lambda truth: evidence.chance_to_refute(claim, truth) >= POWER)
        needed = scores_needed(evidence, claim)
    largest = evidence.most_epsilon(evidence.line)
    found = detectable(least, "", ATTAINED_IF, shown=evidence.tries, largest_epsilon=largest)
    return dataclasses.replace(found, needed=needed)


def _witness(evidence: ScoresEvidence) -> Witness:
    """Return the right guesses about the highest scores.  All scores are tested, so there is no rejection region."""
    n0, n1, right = evidence.n0, evidence.n1, evidence.right
    return Witness(
        pair=evidence.about,
        attack="scores",
        guessed=evidence.outcome,
        alpha=math.nan,
        beta=math.nan,
        claimed_beta=math.nan,
        counts=Counts(false_positives=n1 - right, n0=n0, false_negatives=n1 - right, n1=n1),
        counted="guesses",
        guesses=n1,
        right=right,
    )
