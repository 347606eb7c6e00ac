"""Audits of given scores: of independent runs, or of the canaries of one run or several runs."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.engine.arguments import claim_of
from dpaudit.engine.read_scores import Given, copied, learned_scores, order_doubts, read_scores
from dpaudit.engine.result_parts import Facts, detectable, observed_curve, provenance_of, ruling
from dpaudit.engine.score_design import (
    Coins,
    Design,
    Inclusion,
    Independence,
    Labels,
    check_design,
    check_independence,
    coins_of,
    number_of_runs,
    run_labels,
    scores_needed,
    signs_of_dependence,
    sorted_evidence,
)
from dpaudit.inference.power import least_in_family
from dpaudit.learning.attack import Attack
from dpaudit.numerics import AnyArray, Array
from dpaudit.result.evidence import concluded
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
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
TESTED = "fixed"  # the only method: one test, because all scores are given at once
_BY_CHANCE = 1e-6  # runs that included the same canaries are called dependent if this coincidence is less probable


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

    The guarantee covers one test: audit a set of scores once, when it is complete, because every call may refute a true
    claim.  To test after every output, use `OnlineAudit`.

    Numbers are used as scores directly.  If outputs are not numbers (text, vectors), a score is learned from a randomly
    chosen third of the outputs, and only the others are evidence.  A few values among numbers that are not numbers are
    refused, and so is None among numbers.

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
            the result records.  The guarantee is an average over seeds, so never choose among them.
        attacks: Attacks that learn a score if outputs are not numbers.
        included_at_random: How the included canaries were chosen.  "coins": an independent fair coin decided for each
            canary.  "fixed_number": a fixed number of canaries was drawn at random, without replacement.  A number that
            fair coins rarely give counts as fixed, too.  It matters only if nothing else is assumed.
        run: The run of each canary, if canaries come from several independent runs: two lists of names or numbers, for
            `scores0` and `scores1`.  Each run must have new coins.

    Returns:
        The result.  At the stated confidence, its bounds on epsilon hold jointly for all deltas, and so do its bound on
        mu and the verdict about a claim that is not (epsilon, delta)-DP.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If scores are missing, all equal, too few, integers that no float equals, or numbers on one side
            only.
    """
    began = time.perf_counter()
    check_independence(independence)
    inclusion = check_design(independence, included_at_random)
    _check_method(method)
    return audit_given(
        read_scores(scores0, scores1),
        claim,
        Design(independence=independence, inclusion=inclusion, run=run),
        confidence=confidence,
        seed=seed,
        attacks=attacks,
        name=name,
        began=began,
        chosen_seed=seed is not None,
    )


def _check_method(given: str) -> None:
    if given != TESTED:
        raise ValueError(
            f'method must be "{TESTED}", got {shown(given)}: all scores are given at once, so they are tested once; '
            "for outputs that arrive one by one, use OnlineAudit"
        )


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
    """Audit scores that have been read, with the arguments of `audit_scores`.

    `dependent` holds reasons why no guarantee holds, and `ignored` why the runs seem to ignore their datasets, which
    does not count if a bound on mu is above 0.
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
    scores = values0, values1
    evidence, note = _evidence(scores, given.sizes, labels, design, claimed, 1 - confidence, seed)
    ties = chosen_seed and len(np.intersect1d(*scores)) > 0
    notes = (CHOSEN_SEED if ties else "", note if design.independence is None else "")
    facts = Facts(
        fixed=True,
        trials=evidence.trials,
        allowed=evidence.trials,
        refuted=evidence.p_value(claimed.symmetrized()) <= 1 - confidence,
        dependent=dependent,
        doubts=copied(given),
        notes=tuple(filter(None, notes)),
        ignored=ignored,
    )
    curve = observed_curve(*scores)
    provenance = provenance_of(seed=seed, mechanism=name)
    return _result(evidence, claimed, confidence, facts, given.sizes, curve, rows, provenance, name, began)


def _evidence(
    scores: tuple[Array, Array],
    sizes: tuple[int, int],
    labels: tuple[Labels, Labels] | None,
    design: Design,
    claim: TradeoffFunction,
    significance: float,
    seed: int,
) -> tuple[ScoresEvidence, str]:
    """Return the right guesses about the scores, and a note if the number of included canaries may have been fixed."""
    counted = len(scores[0]), len(scores[1])
    coins, runs = Coins(0.5, 1.0, ""), sum(counted)
    if design.independence != "runs":
        runs = 1 if labels is None else number_of_runs(labels)
        part = counted if counted != sizes else None
        coins = coins_of(labels, sizes, design.inclusion, counted=part, tossed=design.own_coins)
    if coins.divided and design.independence == "canaries":
        raise ValueError(
            "independent canaries of several runs must be included by coins, and not a fixed number, such as half, in "
            "each run; use independence=None, or audit each run by itself"
        )
    line, rng = design.independence or "inclusion", stream(seed, "ties")
    evidence = sorted_evidence(*scores, line, coins, runs=runs, claim=claim, significance=significance, rng=rng)
    return evidence, coins.note


def _result(
    evidence: ScoresEvidence,
    claim: TradeoffFunction,
    confidence: float,
    facts: Facts,
    sizes: tuple[int, int],  # numbers of all scores or outputs of each side, including those learned from
    observed: tuple[Array, Array],
    rows: tuple[AttackRow, ...],
    provenance: Provenance,
    name: str,
    began: float,
) -> AuditResult:
    least = _detectable(evidence, claim)
    mu_lower = evidence.lower(None, confidence=confidence)
    inverted, hardly = "", ""
    proven = facts.refuted or mu_lower > 0 or evidence.lower(evidence.delta, confidence=confidence)
    if not proven and rows == (GIVEN,):
        inverted, hardly = order_doubts(*observed, sizes, claim, runs=evidence.line == "runs")
    few = f"{evidence.scores:,} scores are too few to see any violation of {claim.label}"
    found = ruling(
        dataclasses.replace(
            facts,
            doubts=(*facts.doubts, *filter(None, [inverted])),
            notes=(*facts.notes, *([hardly] if hardly and not facts.dependent and not facts.ignored else [])),
            ignored=() if mu_lower > 0 else facts.ignored,
            unclaimed=MEASUREMENT if claim == NO_CLAIM else "",
            too_few="" if least.claim else Reason(few, WarningCode.TOO_FEW),
        )
    )
    alpha, beta = observed
    return AuditResult(
        **concluded(evidence, claim, confidence=confidence, valid=found.bounds_valid, failed=False),
        name=name,
        verdict=found.verdict,
        trials_used=facts.trials,
        trials_allowed=facts.allowed,
        stopped_by=found.stopped_by,
        curve=Curve(alpha=alpha, beta=beta, beta_upper=1 - alpha),
        witness=None if claim == NO_CLAIM else _witness(evidence),
        detectable=least,
        history=History(trials=np.zeros(0, dtype=np.int64), log_e=np.zeros(0)),
        pairs=(),
        attacks=rows,
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
    attained_if = "scores are likelihood ratios, independent of each other"
    largest = evidence.most_epsilon(evidence.line)
    found = detectable(least, "", attained_if, shown=evidence.tries, largest_epsilon=largest)
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


def audit_one_run(
    scores: npt.ArrayLike,
    included: npt.ArrayLike,
    claim: TradeoffFunction | str | None = None,
    *,
    confidence: float = DEFAULTS.confidence,
    included_at_random: Inclusion = "coins",
    run: Any = None,
    seed: int | None = DEFAULTS.seed,
    name: str = "one run",
) -> AuditResult:
    """Try to refute a claim from one output of a mechanism whose data included each of m canaries at random.

    The function equals `audit_scores` with `independence=None`: scores may depend on each other in any way.  Arguments
    that are not explained here are those of `audit_scores`.

    Args:
        scores: (m,), how strongly the output suggests that each canary was included; +-inf is allowed.
        included: (m,), booleans: whether each canary was included.  The scores may depend on it only through the
            output.
        claim: The claim about adding or removing one canary, or text for `parse_claim`; None to measure only.  See
            `inference.one_run` for the theorems.
        run: (m,), the name or number of each canary's run, if the canaries come from several independent runs.  Each
            run must have fresh coins.
        seed: Seed of the order of equal scores.

    Returns:
        The result, without a certified trade-off curve, because a single run bounds no curve.

    Raises:
        ValueError: If a score is NaN, no canary was included or all were, the arrays differ in length, or the
            confidence is not allowed.
    """
    began = time.perf_counter()
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(included)
    if values.ndim != 1:
        raise ValueError(f"scores must be one number for each canary, got an array of shape {values.shape}")
    if np.any(np.isnan(values)):
        raise ValueError(f"scores must be numbers, got nan for canary {int(np.argmax(np.isnan(values)))}")
    if truth.shape != values.shape:
        raise ValueError(f"included must be a boolean for each of {len(values)} canaries, got shape {truth.shape}")
    if not np.all((truth == 0) | (truth == 1)):
        raise ValueError("included must consist of booleans (or 0 and 1)")
    if not len(values):
        raise ValueError("scores must hold the score of at least one canary, got none")
    into = truth.astype(bool)
    dependent: tuple[str, ...] = ()
    if run is not None:
        labels = np.asarray(run)
        if labels.shape != values.shape:
            raise ValueError(f"run must name the run of each of {len(values)} canaries, got shape {labels.shape}")
        dependent = _same_coins(labels, into, drawn=included_at_random == "fixed_number")
        run = (labels[~into], labels[into])
    return audit_given(
        Given(([], []), (values[~into], values[into])),
        claim,
        Design(independence=None, inclusion=check_design(None, included_at_random), run=run),
        confidence=confidence,
        seed=seed,
        name=name,
        began=began,
        chosen_seed=seed is not None,
        dependent=dependent,
    )


def _same_coins(run: AnyArray, included: AnyArray, *, drawn: bool) -> tuple[str, ...]:
    """Name two runs that included exactly the same canaries, if this coincidence is improbable (`_BY_CHANCE`)."""
    names = np.unique(run)
    seen: dict[bytes, Any] = {}
    for label in names:
        coins = included[run == label]
        m, choices = len(coins), 2 ** len(coins)
        if drawn:
            choices = math.comb(m, int(coins.sum()))
        if np.count_nonzero(coins[1:] != coins[:-1]) < 2 or len(names) ** 2 > _BY_CHANCE * choices:
            continue
        if (same := seen.setdefault(coins.tobytes(), label)) is not label:
            return (
                f"the runs {same} and {label} included exactly the same canaries: runs are independent only if each "
                "run has fresh coins",
            )
    return ()
