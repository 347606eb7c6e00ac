"""Reads the scores that `audit_scores` receives, detects copies and losses, and learns scores of other outputs."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.engine.result_parts import attack_rows
from dpaudit.inference.scores.exchangeability import repeats_p_value
from dpaudit.learning import FIRST_FIT, Learner
from dpaudit.learning.attack import Attack, resolve_attacks
from dpaudit.numerics import Array
from dpaudit.outputs import OutputError, Outputs
from dpaudit.result.values import AttackRow
from dpaudit.rounding import upper
from dpaudit.running.streams import stream
from dpaudit.running.wire import Unsendable, frame
from dpaudit.settings import shown
from dpaudit.text import Reason, WarningCode

FEWEST = 2  # minimum number of scores in each array
NEARLY_ALL = 0.9  # if a larger share of the values are numbers, the other values are probably mistakes
_COPIED = 1e-6  # maximum probability with which independent scores are called copied
_LOWER = -4.75  # standard errors, below which a share is by chance with probability 1e-6
_HARDLY, _CLEAR = 3.0, 6.0  # standard errors: scores hardly differ; a claim allows a clear difference
_MIDDLES = (np.arange(200) + 0.5) / 200  # type I errors at which the claim's curve is averaged
_CURVE_ERROR = 0.003  # of the area below a curve of a few hundred points
SCORE_ADVICE = (
    "a score must be a number; give such runs a score by a rule that uses neither their dataset nor their coin"
)


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """The scores or outputs that were passed to `audit_scores`."""

    outputs: tuple[list[Any], list[Any]]  # empty if all scores are numbers
    numbers: tuple[Array, Array] | None  # None unless all scores are numbers

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of scores on each side."""
        sides = self.outputs if self.numbers is None else self.numbers
        return len(sides[0]), len(sides[1])


def read_scores(scores0: Any, scores1: Any) -> Given:
    """Return two arrays if all scores are numbers, else two lists of outputs."""
    names = "scores0", "scores1"
    sides = _listed(scores0, "scores0"), _listed(scores1, "scores1")
    for name, side in zip(names, sides, strict=True):
        if len(side) < FEWEST:
            raise ValueError(f"{name} must hold at least {FEWEST} scores, got {len(side)}")
    found = [_as_numbers(side, name) for name, side in zip(names, sides, strict=True)]
    first, second = found
    if first is not None and second is not None:
        for name, values in zip(names, (first, second), strict=True):
            if np.any(np.isnan(values)):
                raise ValueError(_missing(name, int(np.argmax(np.isnan(values))), "nan"))
        if first[0] == second[0] and np.all(first == first[0]) and np.all(second == first[0]):
            raise ValueError(f"all {len(first) + len(second):,} scores are {first[0]:g}, so they carry no information")
        return Given(([], []), (first, second))
    for i, (one, other) in enumerate(zip(found, sides[::-1], strict=True)):
        if one is not None and not any(map(_is_number, other)):
            example = shown(_plain(other[0]))
            raise ValueError(
                f"scores{i} are numbers, but scores{1 - i} are not, such as {example}; give numbers on both sides, "
                "or outputs of one kind on both sides, from which a score is then learned"
            )
    outputs = list(sides[0]), list(sides[1])
    _check_mixed(outputs)
    return Given(outputs, None)


def _check_mixed(outputs: tuple[list[Any], list[Any]]) -> None:
    """Raise ValueError if values other than numbers are probably missing or damaged scores, and not outputs."""
    wrong = [
        (side, place)
        for side, values in enumerate(outputs)
        for place, one in enumerate(values)
        if not _is_number(one) or one != one
    ]
    total = len(outputs[0]) + len(outputs[1])
    if len(wrong) == total:
        return
    for side, place in wrong:
        if outputs[side][place] is None:
            raise ValueError(
                f"{_missing(f'scores{side}', place, 'None')}; if None is an output from which a score shall be "
                'learned, give text in its place, such as "none"'
            )
    if total - len(wrong) > NEARLY_ALL * total:
        side, place = wrong[0]
        raise ValueError(
            f"scores{side}[{place}] is {shown(_plain(outputs[side][place]))}, but {total - len(wrong):,} of {total:,} "
            f"values are numbers; {SCORE_ADVICE}; if a score shall be learned from these values, give all of them as "
            "text"
        )


def _listed(given: Any, name: str) -> Any:
    """Return an array (n, ...) or a list of n outputs."""
    if isinstance(given, str | bytes | dict) or not (hasattr(given, "__len__") or hasattr(given, "__iter__")):
        raise TypeError(f"{name} must be an array or a list of scores, got {shown(given)}")
    if isinstance(given, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(given).reshape(len(given), -1).any(axis=1) if given.ndim else np.zeros(0)
        if masked.any():
            raise ValueError(_missing(name, int(np.argmax(masked)), "masked"))
        given = given.data
    if isinstance(given, np.ndarray) or hasattr(given, "__array__"):
        array = np.asarray(given)
        if array.ndim == 0:
            raise TypeError(f"{name} must be an array or a list of scores, got {shown(given)}")
        return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    return list(given)


def _as_numbers(side: Any, name: str) -> Array | None:
    """Return the scores as real numbers, (n,); None if a score is not a real number."""
    if isinstance(side, np.ndarray) and side.dtype != object:
        real = side.ndim == 1 and side.dtype.kind in "biuf"
        return exact_floats(side, name) if real else None
    for place, score in enumerate(side):
        if score is np.ma.masked or type(score).__name__ in ("NAType", "NaTType"):  # `_check_mixed` decides about None
            raise ValueError(_missing(name, place, str(score)))
    return exact_floats(side, name) if all(map(_is_number, side)) else None


def exact_floats(scores: Any, name: str) -> Array:
    """Return scores as floats."""
    try:
        values = np.array(scores, dtype=np.float64)
    except OverflowError:
        values = np.array([math.inf if abs(score) > 2**1000 else float(score) for score in scores])
    for place in np.flatnonzero(np.abs(values) >= 2**53):
        score = scores[place]
        if isinstance(score, numbers.Integral) and (math.isinf(values[place]) or int(values[place]) != int(score)):
            raise ValueError(
                f"{name}[{place}] is {shown(_plain(score))}, an integer beyond 2**53 that no float equals; only the "
                "order of scores matters, so give their ranks, or divide them"
            )
    return values


def _missing(name: str, place: int, what: str) -> str:
    return f"{name}[{place}] is {what}; {SCORE_ADVICE}"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real | np.bool_)


def copied(given: Given) -> tuple[str, ...]:
    """Return why the scores must contain copies, which are not independent; empty if there is no reason."""
    if given.numbers is not None:
        sides = [np.unique(side, return_counts=True)[1] for side in given.numbers]
    else:
        try:
            sides = [np.array(list(Counter(map(frame, side)).values())) for side in given.outputs]
        except Unsendable:
            return ()  # these outputs cannot be compared
    p_value = repeats_p_value(*sides)
    if p_value > _COPIED:
        return ()
    all_, different = sum(int(side.sum()) for side in sides), sum(map(len, sides))
    chance = upper(max(p_value, 1e-99))
    return (
        f"scores seem to be copied: only {different:,} of {all_:,} differ, and independent scores with one common law "
        f"repeat in this way with probability at most {chance}, whatever this law is; a file may have been "
        "concatenated with itself, or a run recorded several times; give one score for each run or canary",
    )


def order_doubts(
    alpha: Array, beta: Array, sizes: tuple[int, int], claim: TradeoffFunction, *, runs: bool
) -> tuple[str, str]:
    """Return why nothing was tested if scores of d1 are lower, and a note if they are hardly higher; else "".

    The share of pairs of scores in the right order (Mann & Whitney 1947) is nearly normal.  Scores that ignore the
    dataset or the inclusion give the first reason with probability below about 1e-6.  At the limit of a symmetric
    claim, the likelihood ratio puts 1 minus the area below the curve in the right order; the note is returned if this
    is worth at least 6 standard errors, and the scores have less than 3.  A mechanism may also protect better than
    claimed.

    `alpha`, from 1 to 0, and `beta` are the observed curve, and `runs` tells scores of runs from those of canaries.
    """
    n0, n1 = sizes
    power = 1 - beta
    share = float(-np.diff(alpha) @ (power[:-1] + power[1:])) / 2
    error = math.sqrt((n0 + n1 + 1) / (12 * n0 * n1))
    if share < 0.5 - _CURVE_ERROR + _LOWER * error:
        lower = "runs on d1 score lower than runs on d0" if runs else "included canaries score lower than excluded ones"
        return (
            f"{lower} ({100 * share:.0f} % of pairs of scores are in the right order; chance gives 50 %).  Is the "
            "score a loss?  Then negate it",
            "",
        )
    limit = 1 - float(np.mean(claim.symmetrized().beta(_MIDDLES)))
    if claim == NO_CLAIM or share - 0.5 > _HARDLY * error or limit - 0.5 < _CLEAR * error:
        return "", ""
    sides = ("on d0", "on d1") if runs else ("without the canary", "with the canary")
    return "", (
        f"scores are hardly higher {sides[1]} than {sides[0]}: {100 * share:.0f} % of all pairs of scores are in "
        "this order, and chance gives 50 %.  Check that the data were used, that the scores belong to them, and that a "
        f"higher score is evidence for runs {sides[1]}"
    )


SHARE = 1 / 3  # share of the outputs from which the score is learned
_GROWTH = 1.3  # factor by which the number of outputs that were learned from grows with each block


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Scores of the held-out outputs, and the attacks that computed them."""

    scores0: Array
    scores1: Array
    rows: tuple[AttackRow, ...]
    dependent: tuple[str, ...]  # reasons why the scores are invalid; empty if none was found


def learned_scores(
    outputs0: list[Any], outputs1: list[Any], attacks: str | Attack | Sequence[str | Attack], seed: int, *, coins: bool
) -> Learned:
    """Learn a score from a random third of the outputs, and score the other two thirds, the held-out outputs.

    Given the third, the law of the held-out outputs is unchanged, so the theorems about given scores apply.
    """
    parts0, parts1 = split_outputs(len(outputs0), len(outputs1), stream(seed, "split"), coins=coins)
    few = min(len(parts0[0]), len(parts1[0]))
    if few < 2 * FIRST_FIT or min(len(parts0[1]), len(parts1[1])) < 1:
        raise ValueError(
            f"{len(outputs0)} and {len(outputs1)} outputs are too few to learn a score from a third of them: "
            f"this third must contain {2 * FIRST_FIT} of each list; give more outputs, or give scores that are numbers"
        )
    learner = Learner(resolve_attacks(attacks), seed, 0)
    sides = (outputs0, parts0), (outputs1, parts1)
    past0, past1 = ([outputs[i] for i in part[0][:few]] for outputs, part in sides)
    try:
        start = 0
        while start < few:  # block by block, as an audit does
            stop = min(few, max(start + FIRST_FIT, round(_GROWTH * start)))
            block = learner.read(past0[start:stop], past1[start:stop])
            if learner.ready:
                learner.score_fresh(*block)
            learner.learn(*block)
            start = stop
        rest = [Outputs.read([outputs[i] for i in part[1]]) for outputs, part in sides]
    except OutputError as error:
        raise ValueError(f"an output cannot be read: {error}") from None
    if not learner.ready:
        raise ValueError("no attack could learn a score from the outputs; give scores that are numbers")
    scores0, scores1 = learner.score_counted(*rest)
    void = (Reason(learner.void, WarningCode.VOID),) if learner.void else ()
    return Learned(scores0, scores1, attack_rows([learner]), void)


def split_outputs(
    n0: int, n1: int, rng: np.random.Generator, *, coins: bool
) -> tuple[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]], ...]:
    """Return the indices of the outputs to learn from and of the outputs to count, for each dataset."""
    if coins:
        learned = rng.permutation(n0 + n1)[: round(SHARE * (n0 + n1))]
        chosen = np.zeros(n0 + n1, dtype=np.bool_)
        chosen[learned] = True
        sides = chosen[:n0], chosen[n0:]
        return tuple((rng.permutation(np.flatnonzero(side)), np.flatnonzero(~side)) for side in sides)
    orders = rng.permutation(n0), rng.permutation(n1)
    return tuple((order[: round(SHARE * len(order))], order[round(SHARE * len(order)) :]) for order in orders)
