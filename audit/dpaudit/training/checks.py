"""Finds signs that an audit of training proves nothing: diverged models, dependent runs, too few scores, no effect."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.independence import not_whole, pool_words, shown
from dpaudit.engine.result_parts import training_words
from dpaudit.engine.score_design import Independence, fewest_scores
from dpaudit.inference.independence.correlation import few_stretches
from dpaudit.inference.independence.signs import KEPT, SUSPICIOUS, coupling, dependence
from dpaudit.numerics import AnyArray, Array
from dpaudit.pairs.pair import Pair, number_of_records
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Design, TrainingRecord, histograms, numbers
from dpaudit.text import Reason, WarningCode, has_code
from dpaudit.values import key

_SHARE = SUSPICIOUS / 5  # level of each of the five tests of `dependent`


def described(
    result: AuditResult,
    warnings: Iterable[str],
    design: Design,
    train: object,
    canary: str,
    out: Sequence[object] | AnyArray,
    into: Sequence[object] | AnyArray,
) -> AuditResult:
    """Add warnings, before that which is the reason of the verdict, and the record of the audited training."""
    values, others = numbers(out), numbers(into)
    edges, first, second = ((), (), ()) if values is None or others is None else histograms(values, others)
    words = training_words(train)
    record = TrainingRecord(design=design, training=words, canary=canary, edges=edges, out=first, into=second)
    return dataclasses.replace(result, warnings=(*warnings, *result.warnings), training=record)


def doubts_of(train: object, *arguments: object) -> tuple[str, ...]:
    """Return the warnings of a training function about the audit, from its optional method `doubts`."""
    ask: Any = getattr(train, "doubts", None)
    return tuple(ask(*arguments)) if callable(ask) else ()


def too_few(result: AuditResult, given: int, what: str, independence: Independence) -> tuple[str, ...]:
    """If no scores could have refuted the claim, return a warning that states the number of scores that could."""
    if not any(has_code(warning, WarningCode.TOO_FEW) for warning in result.warnings):
        return ()
    fewest = fewest_scores(result.claim, independence=independence, confidence=result.confidence)
    if fewest is not None and fewest <= given:  # the numbers of both sides differ too much
        return ()
    needed = f"at least {fewest:,} {what} are needed" if fewest else f"no feasible number of {what} is enough"
    return (
        f"{given:,} {what} could not refute {result.claim.label}, whatever their scores: "
        f"at {result.confidence} confidence {needed}",
    )


def relation_doubts(pair: Pair, claim: TradeoffFunction | None) -> tuple[str, ...]:
    """Return a warning if the pair replaces a record, and the claim may be about an added or removed record."""
    sizes = number_of_records(pair.d0), number_of_records(pair.d1)
    replaces = pair.relation == "replace_one" or (
        pair.relation == "unspecified" and sizes[0] is not None and sizes[0] == sizes[1]
    )
    if claim is None or not replaces or "relation=replace_one" in str(claim):
        return ()
    return (
        "d1 has as many records as d0, so a record was replaced.  A claim about an added or removed record, such as "
        f"Trainer.claim, does not cover this pair, and {claim.label} does not state its relation.  For a replaced "
        'record, use training.claim(..., relation="replace_one")',
    )


def dependent(outputs0: AnyArray, outputs1: AnyArray) -> tuple[str, ...]:
    """Return the signs that runs depend on each other, in which case no guarantee holds.

    Theorem:
        If the runs on each dataset are exchangeable, given those on the other dataset, P[the result is not empty] is at
        most `SUSPICIOUS`, the level of `audit`.  This bound holds for every law of the outputs, discrete or not.  One
        case is outside the bound: outputs that are constant on both datasets and not integers are always reported.
        Such outputs may come from training without noise, or from one seed that all models share.

    Proof:
        A union bound over five tests, each with a fifth of the level: `dependence` on d0 and on d1, `coupling` of runs
        with the same number, `coupling` of each run on d0 with the preceding run on d1, and `_stretches`.  The number
        of models is fixed, so each test is made only once.
    """
    sides = (outputs0, outputs1)
    if all(np.all(side == side[:1]) for side in sides) and any(not_whole(side[0]) for side in sides):
        constants = [f"all {len(side):,} outputs on d{at} are {shown(side[0])}" for at, side in enumerate(sides)]
        text = f"{' and '.join(constants)}, so runs share a seed, or the training has no noise"
        return (Reason(text, WarningCode.DEPENDENT),)
    keys = [[key(output) for output in side[:KEPT]] for side in sides]
    columns0, columns1 = (_columns(side[:KEPT]) for side in sides)
    found = [f"{words}, on d0" for words in dependence(keys[0], columns0, _SHARE)]
    found += [f"{words}, on d1" for words in dependence(keys[1], columns1, _SHARE)]
    found += coupling(columns0, columns1, _SHARE) + coupling(columns0[1:], columns1[:-1], _SHARE)
    found += _stretches(keys[0], keys[1], _SHARE)
    return tuple(Reason(words, WarningCode.DEPENDENT) for words in dict.fromkeys(found))


def pooled(outputs0: AnyArray, outputs1: AnyArray, pair: Pair) -> tuple[str, ...]:
    """Return the sign, a strong suspicion without a level, that runs take their seeds from a common pool.

    Independent continuous scores never repeat; others, such as an accuracy, lie on a grid or occur on both datasets.
    """
    found = pool_words([list(side[:KEPT]) for side in (outputs0, outputs1)], (pair.d0, pair.d1))
    words = (
        f"{found}; these values lie on no grid and never occur on the other dataset, so runs share seeds, or the "
        "training has no noise"
    )
    return (Reason(words, WarningCode.DEPENDENT),) if found else ()


def _stretches(keys0: Sequence[Hashable], keys1: Sequence[Hashable], significance: float) -> list[str]:
    """Test whether equal outputs follow each other too often among the first 600 runs on both datasets together.

    Theorem:
        If p and q are p-values that are independent, P[p q <= x] <= x (1 - log x).
    """
    product, equal = 1.0, 0
    for keys in (keys0[:600], keys1[:600]):
        follows = sum(one == other for one, other in pairwise(keys))
        if follows:
            product *= few_stretches(len(keys) - follows, list(Counter(keys).values()))
            equal += follows
    if product <= 0 or product * (1 - math.log(product)) < significance:
        return [f"{equal} models have the same output as the preceding model"]
    return []


def _columns(outputs: AnyArray) -> Array:
    """Return the first 16 numbers of each output, (n, k), or the ranks of the texts of outputs that are no numbers."""
    if outputs.dtype.kind in "biuf":
        return outputs.reshape(len(outputs), -1)[:, :16].astype(np.float64)
    ranks = np.unique([repr(key(output)) for output in outputs], return_inverse=True)[1]
    return ranks.reshape(-1, 1).astype(np.float64)


def shared_seeds(outputs0: AnyArray, outputs1: AnyArray) -> tuple[str, ...]:
    """Return a warning if two models on one dataset have the same output, other than nan."""
    for side, outputs in enumerate((outputs0, outputs1)):
        first: dict[Hashable, int] = {}
        again = []
        for run, output in enumerate(outputs):
            if outputs.dtype.kind == "f" and np.isnan(output).any():
                continue
            earlier = first.setdefault(key(output), run)
            if earlier != run:
                again.append((earlier, run))
        if again:
            return (
                f"runs {again[0][0]} and {again[0][1]} on d{side} have the same output, and {len(again):,} such runs "
                "were found: if outputs are continuous, these runs share a seed.  Runs must be independent, so draw "
                "all randomness from the rng that each run receives",
            )
    return ()


def without_nan(scores: Array, side: int) -> tuple[Array, tuple[str, ...]]:
    """Return the scores, the lowest for diverged models, since it depends on no coin, and a warning if any."""
    diverged = np.isnan(scores)
    if not diverged.any():
        return scores, ()
    return np.where(diverged, -np.inf, scores), (
        f"{int(diverged.sum()):,} of {len(scores):,} models on d{side} diverged (their score is nan) and got "
        "the lowest score; a smaller learning rate avoids this",
    )


def enough_equal(claim: TradeoffFunction | None, most: int) -> int:
    """Return how many models with equal seeds must have equal outputs on d0 and d1, so that chance does not explain it.

    Theorem:
        Let t be the total variation distance of a pair of laws with the trade-off function `claim`.  If the laws of the
        outputs on d0 and d1 have this distance, k pairs of models with equal seeds all have equal outputs with
        probability at most (1 - t)^k, however a seed determines an output.

    Proof:
        Two random variables with these laws differ with probability at least t, in every joint distribution.

    The result is the smallest k with (1 - t)^k <= 10^-6; 0 if k exceeds `most`, or there is no claim.
    """
    distance = 0.0 if claim is None else float(claim.delta(0.0))
    if distance <= 0:
        return 0
    needed = 1 if distance >= 1 else math.ceil(math.log(1e-6) / math.log1p(-distance))
    return needed if needed <= most else 0


def equal_outputs(outputs0: AnyArray, outputs1: AnyArray) -> bool:
    return np.array_equal(outputs0, outputs1, equal_nan=outputs0.dtype.kind == "f")


def same_outputs(outputs0: AnyArray, outputs1: AnyArray) -> tuple[str, ...]:
    """Return a warning if models on both datasets, trained with equal seeds, have equal outputs."""
    if not equal_outputs(outputs0, outputs1):
        return ()
    return (
        f"with the same seed, {len(outputs0)} models have the same output on d0 as on d1: the training may ignore "
        "its dataset, or the canary has no gradient or is in no batch.  If the canary is rarely in a batch, train for "
        "more steps",
    )


def ignored(models: int, claim: TradeoffFunction) -> str:
    """Return the reason why an audit is inconclusive if `models` models with equal seeds have equal outputs."""
    return (
        f"with the same seed, all {models} compared models have the same output on d0 as on d1.  If the scores were at "
        f"the limit of {claim.label}, the probability of this would be below one in a million.  So the training seems "
        "to ignore its dataset, or its score does not show the canary, and the claim was not tested"
    )
