"""Audits of given scores of independent runs, or of the canaries of one or several runs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.engine.arguments import claim_of
from dpaudit.engine.learned_scores import learned_scores
from dpaudit.engine.provenance import provenance_of
from dpaudit.engine.read_scores import Given, copied, lower_on_d1, read_scores
from dpaudit.engine.rows import detectable, observed_curve
from dpaudit.engine.score_guesses import (
    Guesses,
    Inclusion,
    Independence,
    check_design,
    check_drawn,
    count_guesses,
    count_in_runs,
    count_pooled,
    order_matters,
    run_labels,
    signs_of_dependence,
)
from dpaudit.engine.verdict import Facts, ruling
from dpaudit.inference.power import least_in_family
from dpaudit.inference.scores.dependence import half_included
from dpaudit.learning.attack import Attack
from dpaudit.mechanisms.own_process import own_error_state
from dpaudit.numerics.arrays import Array
from dpaudit.result.base_evidence import ScoresGuesses
from dpaudit.result.model import AuditResult
from dpaudit.result.values import AttackRow, Counts, Curve, Detectable, History, Witness
from dpaudit.result.words import OF_RUNS
from dpaudit.sampling.streams import fresh_seed, stream
from dpaudit.settings.audit import DEFAULTS, POWER
from dpaudit.settings.limits import check_confidence, shown
from dpaudit.text.reasons import About, Reason
from dpaudit.text.rounding import upper

CHOICES = {
    "runs": "every score comes from a separate run, and runs are independent; exact for any claim",
    "canaries": (
        "all scores come from one run, or from several that `run` names, and each canary was included at random; given "
        "which canaries were included, scores of different canaries are assumed to be independent, which one run "
        "cannot prove"
    ),
    None: (
        "all scores come from one run, or from several that `run` names; only the random inclusion of canaries is "
        "assumed; the safest choice, with the least power"
    ),
}
"""Meaning of each choice of `independence`."""

MEASUREMENT = "no claim was given, so there was nothing to refute: this is a measurement"

GIVEN = AttackRow(name="scores", weight=1.0, log_loss=math.nan, note="given by the user")

CHOSEN_SEED = (
    "ties between scores were broken with the given seed; the false-alarm guarantee is an average over random seeds, "
    "so omit the seed or draw it at random"
)
"""Warning if ties matter and the user chose the seed."""

TESTED = "fixed"
"""The only method: one test, because all scores are given at once."""

_UNFAIR = 1e-6  # probability with which fair coins are called unfair
LEFT_OUT: Any = "left out"


def audit_scores(
    scores0: Any,
    scores1: Any,
    claim: TradeoffFunction | str | None = None,
    *,
    independence: Independence = LEFT_OUT,
    confidence: float = DEFAULTS.confidence,
    method: str = "fixed",
    seed: int | None = DEFAULTS.seed,
    attacks: str | Attack | Sequence[str | Attack] = DEFAULTS.attacks,
    guesses: Guesses = None,
    included_at_random: Inclusion = "coins",
    run: Any = None,
    name: str = "scores",
) -> AuditResult:
    """Try to refute `claim` with scores of runs or of canaries, and bound the privacy loss from below.

    The guarantee covers one test: audit a set of scores once, when it is complete.  Do not repeat the call while scores
    are added and stop at a refutation, because every call may refute a true claim.  To test after every output, use
    `OnlineAudit`.

    Numbers are used as scores directly, and all of them are evidence.  If outputs are not numbers (text, vectors), a
    score is learned from a randomly chosen third of the outputs, and only the other outputs are evidence.  A few values
    among numbers that are not numbers are refused, and so is None among numbers.

    Args:
        scores0: Scores of runs on d0, or of canaries that were left out: (n0,), higher means more like d1 or more like
            an included canary; +-inf is allowed.  Alternatively, n0 outputs of any kind.  Each run or canary occurs
            once.
        scores1: The same as `scores0`, for runs on d1 or for canaries that were included.
        claim: A claim, or its text.  If None, the result is a measurement: its bounds hold, and its verdict is
            INCONCLUSIVE, because no claim is tested.
        independence: The assumption about the scores, which must be stated.  "runs": every score comes from a separate
            run, and runs are independent.  "canaries": all scores come from one run, or from several (see `run`).
            Given which canaries were included, scores of different canaries are assumed to be independent.  Each score
            is assumed to depend only on whether its own canary was included.  Every verdict states this assumption.
            If a permutation test rejects it at 0.1 %, the result is INCONCLUSIVE; for this test, give the canaries in
            their order in the run, or in random order.  None: all scores come from one run, or from several.  Only the
            random inclusion is assumed.
        confidence: A true claim is called violated with probability at most 1 - confidence.
        method: Must be "fixed": all scores are given at once, so they are tested once.
        seed: Seed that breaks ties between scores and chooses the outputs to learn from; None draws a fresh seed, which
            the result records.  The guarantee is an average over seeds.  Pass a recorded seed to repeat an audit, but
            never choose among seeds.
        attacks: Attacks that learn a score if outputs are not numbers.
        guesses: Number of guesses, in each run if there are several; or several numbers for one run, as in
            `audit_one_run`.  Choose them before you see the scores.  The default depends only on the numbers of scores
            and, for "canaries", on the claim.  Guesses are about the highest scores for "runs", and for "canaries" of
            which a fixed number was drawn.  In all other cases, they are about the most extreme scores.
        included_at_random: How the included canaries were chosen.  "coins": an independent fair coin decided for each
            canary.  "fixed_number": a fixed number of canaries was drawn at random, without replacement.
        run: The run of each canary, if canaries come from several independent runs: two lists of names or numbers, for
            `scores0` and `scores1`.  Requires numeric scores, new coins for each run, and None or "canaries" as
            `independence`.  With "canaries", canaries of the same run are also assumed to be independent.
        name: Name of the audit in reports.

    Returns:
        The result.  Each bound by itself holds at the stated confidence, but all bounds together may not.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If `independence` is left out, or scores cannot be used: missing, all equal, too few, integers that
            no float equals, or numbers on one side and no number on the other side.
    """
    began = time.perf_counter()
    check_independence(independence)
    inclusion = check_design(independence, included_at_random)
    _check_method(method)
    given = read_scores(scores0, scores1)
    design = Design(independence=independence, inclusion=inclusion, guesses=guesses, run=run)
    return audit_given(
        given,
        claim,
        design,
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
    inclusion: Inclusion
    guesses: Guesses
    run: Any
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
    labels = run_labels(design.run, given.sizes, design.independence, design.inclusion)
    if design.inclusion == "fixed_number":
        check_drawn(labels, given.sizes)
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
    ties = stream(seed, "ties")
    if labels is None:
        half = not design.own_coins and half_included(*given.sizes)
        evidence, counts = count_guesses(
            values0, values1, design.independence, design.guesses, ties, half, design.inclusion, claimed
        )
    else:
        pooled = design.independence == "canaries"
        count = count_pooled if pooled else partial(count_in_runs, inclusion=design.inclusion)
        evidence, counts = count((values0, values1), labels, design.guesses, ties)
    notes = (CHOSEN_SEED,) if chosen_seed and order_matters(values0, values1, evidence) else ()
    alpha, beta = observed_curve(values0, values1)
    counted = _Counted(evidence, counts, given.sizes, alpha, beta, rows, dependent, copied(given), notes, ignored)
    return _result(counted, claimed, confidence, provenance_of(seed=seed, mechanism=name), name, began)


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """Everything that `_result` needs from the scores."""

    evidence: ScoresGuesses
    counts: Counts  # counts of the guesses
    sizes: tuple[int, int]  # numbers of all scores or outputs of each side, including those learned from
    alpha: Array  # observed errors
    beta: Array
    rows: tuple[AttackRow, ...]
    dependent: tuple[str, ...]  # why the runs or the learned scores support no guarantee
    copied: tuple[str, ...]  # why the scores, or the outputs, must contain copies
    notes: tuple[str, ...]
    ignored: tuple[str, ...]  # why the runs seem to ignore their datasets


def check_independence(independence: Any) -> None:
    """Raise ValueError unless a choice of `independence` was made."""
    if independence is None or (isinstance(independence, str) and independence in ("runs", "canaries")):
        return
    given = "but it was left out" if independence is LEFT_OUT else f"got {shown(independence)}"
    each = "; ".join(f"{choice!r}: {words}" for choice, words in CHOICES.items())
    raise ValueError(f'independence must be "runs", "canaries" or None, {given}.  {each}')


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
    p_value = evidence.p_value(evidence.tested(claim))
    fewest = evidence.least_right(claim, confidence=confidence)
    found_least = _detectable(evidence, claim, fewest, confidence)
    mu_lower = evidence.mu_lower(confidence=confidence)
    few = f"{evidence.canaries} scores are too few to see any violation of {claim.label}"
    inverted: tuple[str, ...] = ()
    if mu_lower <= 0 and counted.rows == (GIVEN,):
        inverted = lower_on_d1(counted.alpha, counted.beta, counted.sizes, runs=evidence.words is OF_RUNS)
    found = ruling(
        Facts(
            fixed=True,
            trials=n,
            allowed=n,
            refuted=p_value <= 1 - confidence,
            dependent=counted.dependent,
            doubts=(*_unfair(evidence, counted), *counted.copied),
            notes=(*counted.notes, *((evidence.number_note,) if evidence.number_note else ())),
            ignored=() if mu_lower > 0 else (*counted.ignored, *inverted),
            unclaimed="; ".join((MEASUREMENT, *inverted)) if claim == NO_CLAIM else "",
            too_few="" if found_least.claim else Reason(few, About.TOO_FEW),
        )
    )
    valid = found.bounds_valid
    p_value = p_value if valid else 1.0
    return AuditResult(
        name=name,
        verdict=found.verdict,
        claim=claim,
        confidence=confidence,
        method=evidence.method,
        p_value=p_value,
        e_value=0.5 / math.sqrt(p_value) if p_value > 0 else math.inf,  # Vovk & Wang 2021, as for the fixed test
        trials_used=n,
        trials_allowed=n,
        stopped_by=found.stopped_by,
        mu_lower=mu_lower if valid else 0.0,
        bounds_valid=valid,
        curve=Curve(alpha=counted.alpha, beta=counted.beta, beta_upper=1 - counted.alpha),
        witness=None if claim == NO_CLAIM else _witness(evidence, counted.counts, fewest),
        detectable=found_least,
        history=History(trials=np.zeros(0, dtype=np.int64), log_e=np.zeros(0)),
        evidence=evidence,
        pairs=(),
        attacks=counted.rows,
        warnings=found.reasons,
        provenance=provenance,
        elapsed_s=time.perf_counter() - began,
    )


def _unfair(evidence: ScoresGuesses, counted: _Counted) -> tuple[str, ...]:
    into, m = counted.sizes[1], sum(counted.sizes)
    if (p_value := evidence.coins_p_value(counted.sizes)) > _UNFAIR:
        return ()
    return (
        f"the coins were not fair: {into:,} of {m:,} canaries were included, and fair coins are this uneven with "
        f"probability at most {upper(p_value)}; the bounds need fair coins; if a fixed number of canaries was drawn at "
        'random, set included_at_random="fixed_number"',
    )


def _detectable(evidence: ScoresGuesses, claim: TradeoffFunction, fewest: int | None, confidence: float) -> Detectable:
    """Return the smallest violation that this number of guesses by the likelihood ratio would have detected."""
    least = None
    if fewest is not None:
        least = least_in_family(claim, lambda truth: evidence.attained(truth, fewest) >= POWER)
    largest = evidence.largest_epsilon(confidence=confidence)
    return detectable(least, "", evidence.attained_if, shown=evidence.tries, largest_epsilon=largest)


def _witness(evidence: ScoresGuesses, counts: Counts, fewest: int | None) -> Witness:
    """Return the numbers of right and of needed guesses.  Guesses have no common threshold and so no error rates."""
    return Witness(
        pair=evidence.about,
        attack="scores",
        region=evidence.outcome,
        alpha=math.nan,
        beta=math.nan,
        claimed_beta=math.nan,
        counts=counts,
        counted="guesses" if evidence.words.guesses == "guesses" else "weighted guesses",
        guesses=evidence.guesses,
        right=evidence.right,
        needed=evidence.guesses + 1 if fewest is None else fewest,
    )
