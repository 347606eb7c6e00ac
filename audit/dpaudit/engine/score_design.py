"""The design of an audit of scores: inclusion of canaries, runs, right guesses, and the number of scores it needs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.claims import ApproxDP, PureDP, TradeoffFunction
from dpaudit.claims.comparison import pair_curves, violates
from dpaudit.engine.arguments import claim_of
from dpaudit.inference.one_run import coins_p_value, half_by_chance, half_included, number_factor
from dpaudit.inference.power import larger_violation
from dpaudit.inference.scores.exchangeability import LEVEL, along_the_list, between_runs
from dpaudit.inference.scores.rank_bounds import MOST_POWER
from dpaudit.numerics import Array, bisect_integers
from dpaudit.result.scores_evidence import Line, ScoresEvidence
from dpaudit.result.words import words_of
from dpaudit.rounding import lower, upper
from dpaudit.running.streams import stream
from dpaudit.settings import DEFAULTS, POWER, check_confidence, shown

Independence = Literal["runs", "canaries"] | None
Inclusion = Literal["coins", "fixed_number"]
Labels = npt.NDArray[np.intp]

_WHAT_TO_DO = "the bounds of independent canaries are then not valid; use independence=None, which assumes nothing"

DESIGNS = {
    "coins": "an independent fair coin decided for each canary",
    "fixed_number": "a fixed number of canaries was drawn at random, without replacement",
}
"""Meaning of each choice of `included_at_random`."""


CHOICES = {
    None: (
        "only the random inclusion of canaries is assumed; scores may depend on each other in any way, as those of one "
        "trained model do"
    ),
    "canaries": (
        "canaries were included by coins, or by one random set; given the inclusions, their scores are assumed to be "
        "independent of each other, which one run cannot prove"
    ),
    "runs": "every score comes from a separate run, and runs are independent",
}
"""Meaning of each choice of `independence`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The design of the experiment, as stated by the user; see `audit_scores`."""

    independence: Independence
    inclusion: Inclusion = "coins"
    run: Any = None
    own_coins: bool = False  # whether this program tossed the coins, so that no number was fixed beforehand


def check_independence(independence: Any) -> None:
    """Raise ValueError unless a choice of `independence` is known."""
    if independence is not None and not (isinstance(independence, str) and independence in CHOICES):
        each = "; ".join(f"{choice!r}: {words}" for choice, words in CHOICES.items())
        raise ValueError(f'independence must be None, "canaries" or "runs", got {shown(independence)}.  {each}')


def check_design(independence: Independence, inclusion: Any) -> Inclusion:
    """Return how canaries were included."""
    if not isinstance(inclusion, str) or inclusion not in DESIGNS:
        choices = "; ".join(f"{choice!r}: {words}" for choice, words in DESIGNS.items())
        raise ValueError(f"included_at_random must be one of these, got {shown(inclusion)}.  {choices}")
    if independence == "runs" and inclusion != "coins":
        raise ValueError(
            'included_at_random is about canaries; with independence="runs" any number of runs on each dataset is '
            "allowed, so leave it out"
        )
    return "fixed_number" if inclusion == "fixed_number" else "coins"


def run_labels(given: Any, sizes: tuple[int, int], independence: Independence) -> tuple[Labels, Labels] | None:
    """Return the run of every score as a number from 0; None if there is one run."""
    if given is None:
        return None
    if independence == "runs":
        raise ValueError(
            'run states which canaries share a run; with independence="runs", every score comes from a run of its own, '
            "so leave run out, or choose another independence"
        )
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError(f"run must be two lists: the runs of scores0, and the runs of scores1; got {shown(given)}")
    sides = [np.asarray(side) for side in given]
    for i, (side, n) in enumerate(zip(sides, sizes, strict=True)):
        if side.shape != (n,):
            raise ValueError(f"run[{i}] must name the run of each of {n} scores, got shape {side.shape}")
        if side.dtype.kind not in "biufU" or (side.dtype.kind == "f" and np.isnan(side).any()):
            raise ValueError(f"run[{i}] must consist of numbers or text without missing values, got {side.dtype}")
    if (sides[0].dtype.kind == "U") != (sides[1].dtype.kind == "U") and all(sizes):
        raise ValueError("run must name runs by numbers on both sides, or by text on both sides")
    names, places = np.unique(np.concatenate(sides), return_inverse=True)
    return None if len(names) == 1 else (places[: sizes[0]], places[sizes[0] :])


def number_of_runs(labels: tuple[Labels, Labels]) -> int:
    return int(max(side.max(initial=0) for side in labels)) + 1


class Coins(NamedTuple):
    """How the number of included canaries came about; see `inference.scores.rank_laws.Inclusion`."""

    share: float
    factor: float
    note: str  # what the report says if the number may have been fixed beforehand; "" if coins decided
    divided: bool = False  # whether each of several runs included a number that may have been fixed


_UNFAIR = 1e-6  # probability with which fair coins are called unfair
_SUSPICIOUS = 0.05  # several runs that all include half are suspicious if fair coins do so with less probability
KINDS: tuple[Line, Line] = ("canaries", "inclusion")  # of lines that differ in their laws
DELTA = 1e-5  # delta of the bounds of epsilon if the claim names none


def coins_of(
    labels: tuple[Labels, Labels] | None,
    sizes: tuple[int, int],
    inclusion: Inclusion,
    *,
    counted: tuple[int, int] | None = None,
    tossed: bool = False,
) -> Coins:
    """Return the coins that decided, or those whose law, given their number, is that of the included canaries.

    Theorem:
        Unless coins were `tossed` by this program, the number counts as fixed if it is stated to be, or if half of the
        canaries (rounded) were included, or if fair coins are this uneven with probability at most 1e-6.  Let h be the
        probability of these events under fair coins.  Multiplied by 1 + h, the p-values are valid in all cases.

    Proof:
        Given the number, the p-values of a fixed number are valid.  So a true claim is refuted at s with probability at
        most s / (1 + h) by the p-values of coins, and with probability at most h s / (1 + h) by those of a number.

    If only a random part of the canaries is `counted`, the part includes a random set of its number.
    """
    if tossed:
        return Coins(0.5, 1.0, "")
    runs = 1 if labels is None else number_of_runs(labels)
    counts = [np.bincount(side, minlength=runs) for side in labels] if labels else [np.array([n]) for n in sizes]
    each = [(int(out), int(into)) for out, into in zip(*counts, strict=True)]
    by_chance = math.prod(half_by_chance(out + into) for out, into in each)
    halves = all(half_included(*one) for one in each) and (runs == 1 or by_chance < _SUSPICIOUS)
    least = min(coins_p_value(*sizes), runs * min(coins_p_value(*one) for one in each))
    if inclusion == "coins" and not halves and least > _UNFAIR:
        return Coins(0.5, 1 + by_chance + 2 * _UNFAIR, "")
    share = 0.5 if halves else sizes[1] / sum(sizes)
    factor = math.prod(number_factor(out + into, into, share) for out, into in ([counted] if counted else each))
    note = ""
    if inclusion == "coins":
        factor *= 1 + by_chance + 2 * _UNFAIR
        many = " of every run" if runs > 1 else ""
        what = f"half of the canaries{many}" if halves else f"{sizes[1]:,} of {sum(sizes):,} canaries{many}"
        note = (
            f"{what} were included, so this number may have been fixed beforehand: without an assumption about the "
            f"scores, p-values are divided by the probability with which coins include it, {lower(1 / factor, 3)}.  "
            "This is valid for coins and for a random set of this size, but not if pairs or groups of canaries were "
            "each split in half"
        )
    return Coins(share, factor, note, divided=runs > 1)


def sorted_evidence(
    scores0: Array,
    scores1: Array,
    line: Line,
    coins: Coins,
    *,
    runs: int,
    claim: TradeoffFunction,
    significance: float,
    rng: np.random.Generator,
) -> ScoresEvidence:
    """Sort the scores, with equal ones in a random order, and count the right guesses."""
    n0, n1 = len(scores0), len(scores1)
    order = rng.permutation(n0 + n1)
    order = order[np.argsort(-np.concatenate([scores0, scores1])[order], kind="stable")]
    found = evidence_of(n0, n1, line, coins, runs=runs, claim=claim, significance=significance)
    ranked, halved = (found.law_of(kind).blocks.right(order >= n0) for kind in KINDS)
    return dataclasses.replace(found, ranked=tuple(ranked.tolist()), halved=tuple(halved.tolist()))


def evidence_of(
    n0: int, n1: int, line: Line, coins: Coins, *, runs: int, claim: TradeoffFunction, significance: float
) -> ScoresEvidence:
    """Return evidence without right guesses."""
    delta = float(claim.parameters.get("delta", 0.0)) if isinstance(claim, PureDP | ApproxDP) else DELTA
    return ScoresEvidence(
        line=line,
        n0=n0,
        n1=n1,
        runs=runs,
        share=coins.share,
        factor=coins.factor,
        divided=coins.divided,
        delta=delta,
        significance=significance,
        ranked=(),
        halved=(),
    )


def signs_of_dependence(
    scores0: Array, scores1: Array, labels: tuple[Labels, Labels] | None, seed: int
) -> tuple[str, ...]:
    """Return reasons why canaries cannot be taken as independent; empty if the tests find no sign.

    Theorem:
        If the pairs (score, coin) of all canaries are exchangeable between runs, and the scores of each side along
        their list, a reason is returned with probability at most `exchangeability.LEVEL` = 0.1 %.

    Proof:
        Each of the two tests warns if its p-value is at most half of this level, by the theorem of
        `inference.scores.exchangeability`.

    No reason does not confirm independence: a state that all canaries of one run share cannot be seen in this run.
    """
    found = []
    rng = stream(seed, "dependence")
    if labels is not None:
        p_value = between_runs(scores0, scores1, *labels, rng=rng)
        if p_value <= LEVEL / 2:
            found.append(
                f"canaries depend on each other: scores differ between runs, with probability at most {upper(p_value)} "
                f"if independent canaries of one kind were divided at random between the runs; {_WHAT_TO_DO}"
            )
    if not found and (p_value := along_the_list(scores0, scores1, rng=rng)) <= LEVEL / 2:
        found.append(
            "canaries depend on each other, or are listed by kind: scores differ along the list of canaries, with "
            f"probability at most {upper(p_value)} if independent canaries are in random order; {_WHAT_TO_DO}"
        )
    return tuple(found)


LARGER = 1.2  # factor of the claim's parameter for which `scores_needed` says how many scores find the violation
MAX_SCORES = 262_144  # maximum number of scores that a plan tries


def plan_scores(
    claim: TradeoffFunction | str,
    truth: TradeoffFunction | str,
    *,
    independence: Independence = None,
    included_at_random: Inclusion = "coins",
    confidence: float = DEFAULTS.confidence,
    power: float = POWER,
) -> int | None:
    """Compute how many scores `audit_scores` needs to refute a claim, if the mechanism is only as private as `truth`.

    The scores are those of a pair that exists: with subsampling, one dataset has an additional record
    (`claims.comparison`).  If its two directions differ, the stated power holds in both.  Scores are assumed to be
    likelihood ratios, and scores of canaries to be independent; weaker scores need more.  The power takes into account
    that fair coins may include half of the canaries by chance, which the audit cannot tell from a fixed number.

    Args:
        claim: The claim, or its text.
        truth: The curve of the mechanism, or its text.  A bound that the mechanism does not attain, such as zcdp(rho=1)
            for Gaussian noise, gives too small numbers.
        independence: As in `audit_scores`; so is `confidence`.
        included_at_random: As in `audit_scores`; a fixed number is taken to be half of the canaries.
        power: Probability, in (0, 0.97], with which the number of scores is enough.  It is simulated.

    Returns:
        The number of runs on both datasets together, half of them on each; or the number of canaries.  None if
        `MAX_SCORES` scores are too few, or if there is nothing to refute.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If a number is out of its range, or no pair of datasets is known that attains `truth`.
    """
    check_independence(independence)
    inclusion = check_design(independence, included_at_random)
    check_confidence(confidence)
    if not 0 < power <= MOST_POWER:
        raise ValueError(f"power must lie in (0, {MOST_POWER}], got {power}")
    claimed, true = claim_of("claim", claim), claim_of("truth", truth)
    pair_curves(true)  # raises the error before the search

    if not violates(true, claimed):
        return None

    def enough(n: int) -> bool:
        usual, half = _evidence(n, claimed, independence, inclusion, confidence)
        found = usual.chance_to_refute(claimed, true)
        if half is None or found < power:
            return found >= power
        by_chance = half_by_chance(n)
        return (1 - by_chance) * found + by_chance * half.chance_to_refute(claimed, true) >= power

    return _fewest(enough)


def fewest_scores(
    claim: TradeoffFunction | str, *, independence: Independence = None, confidence: float = DEFAULTS.confidence
) -> int | None:
    """Compute the smallest number of scores with which `audit_scores` refutes a claim if every guess is right."""
    check_independence(independence)
    check_confidence(confidence)
    claimed = claim_of("claim", claim)
    return _fewest(lambda n: _evidence(n, claimed, independence, "coins", confidence)[0].can_refute(claimed))


def scores_needed(evidence: ScoresEvidence, claim: TradeoffFunction) -> str:
    """Say how many scores like these would find a violation whose parameter is 20 % above the claim's."""
    truth = larger_violation(claim, LARGER)
    if truth is None or not violates(truth, claim):
        return ""
    m, factor = evidence.scores, 1.0

    def enough(factor: float) -> bool:
        n0, n1 = (max(2, round(factor * n)) for n in (evidence.n0, evidence.n1))
        return dataclasses.replace(evidence, n0=n0, n1=n1).chance_to_refute(claim, truth) >= POWER

    while not enough(factor):
        factor *= 4
        if factor * m > MAX_SCORES:
            return ""
    if factor == 1.0:
        return ""
    number = (factor / 2 if enough(factor / 2) else factor) * m / math.sqrt(2)
    return f"about {float(f'{number:.1g}'):,.0f} {words_of(evidence).unit} would find {truth}"


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """Return the least sufficient number of scores, at least 4; None if `MAX_SCORES` scores are too few."""
    n = 4
    while not enough(n):
        n *= 2
        if n > MAX_SCORES:
            return None
    return n if n == 4 else bisect_integers(enough, inside=n, outside=n // 2).inside


def _evidence(
    n: int, claim: TradeoffFunction, independence: Independence, inclusion: Inclusion, confidence: float
) -> tuple[ScoresEvidence, ScoresEvidence | None]:
    """Return evidence without right guesses about n scores, and that if coins include exactly half by chance."""
    sizes, line, runs = (n // 2, n - n // 2), independence or "inclusion", n if independence == "runs" else 1
    halves = Coins(0.5, 1.0, "") if independence == "runs" else coins_of(None, sizes, inclusion)
    coins = Coins(0.5, 1 + half_by_chance(n), "") if independence is None and inclusion == "coins" else halves
    usual, half = (
        evidence_of(*sizes, line, each, runs=runs, claim=claim, significance=1 - confidence) for each in (coins, halves)
    )
    return usual, half if coins is not halves else None
