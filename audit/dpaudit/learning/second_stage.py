"""The second stage: a last fit of attacks to far more outputs, at the end of the pilot of a fixed audit.

Attacks with a method `fit_second_stage` are fitted to two thirds of all available outputs.  The other third consists of
new outputs, which are held out of the fit.  The held-out outputs determine the weights of the refitted attacks and of
the previous mixture (`stacking`).  The score is then final.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from dpaudit.learning.attack import Scorer
from dpaudit.learning.blocks import Block, PastOutputs, joined, plain, view_of
from dpaudit.learning.fitting import Fitting
from dpaudit.learning.foreign import copied, is_foreign, protected
from dpaudit.learning.safe_scoring import in_pieces, pointwise
from dpaudit.learning.score import Stacked, stacked
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import PlainEncoding, View
from dpaudit.sampling.streams import stream


def room_for_second_stage(fitting: Fitting, memory: PastOutputs) -> int:
    """Return the maximum number of outputs of each dataset in the second stage; 0 if no attack has a second stage."""
    if not fitting.scorers or not isinstance(fitting.encoding, PlainEncoding):
        return 0
    if not _students(fitting, memory):
        return 0
    settings = fitting.settings
    by_numbers = settings.max_second_stage_numbers // fitting.encoding.columns
    return min(settings.max_second_stage_rows, by_numbers, memory.max_rows_by_size)


def fit_second_stage(
    fitting: Fitting, memory: PastOutputs, blocks: list[Block]
) -> tuple[Stacked, tuple[Array, Array]] | None:
    """Fit the attacks a last time, to the stored outputs and to new blocks.

    Return the final score and the scores of the held-out outputs of d0 and of d1.  Return None, without a change of the
    score and the blocks, if too few outputs are plain numbers.
    """
    parts = _split(fitting, memory, blocks)
    if parts is None:
        return None
    fitted, unseen = parts
    students = _students(fitting, memory)
    _leave_out_negligible(fitting)
    mixture = fitting.score()
    columns = [[in_pieces(lambda some: (mixture.mixed(some), ""), side)[0]] for side in unseen]
    refitted: dict[int, Scorer] = {}
    for index in students:
        with fitting.clock.running(index):
            scorer = _student(fitting, index, fitted)
        if scorer is None:
            continue
        found = [in_pieces(partial(mixture.ask, index, scorer, "features"), side) for side in unseen]
        if failure := found[0][1] or found[1][1]:
            _warn(fitting, index, failure)
            continue
        refitted[index] = scorer
        for side, (scores, _) in zip(columns, found, strict=True):
            side.append(scores)
    columns0, columns1 = (np.column_stack(side) for side in columns)
    final = stacked(refitted, columns0, columns1, fitting.mixing.experts)
    most = fitting.settings.max_judged_outputs
    memory.keep_only((unseen[0].latest(most), unseen[1].latest(most)))
    return final, (final(columns0), final(columns1))


def _split(fitting: Fitting, memory: PastOutputs, blocks: list[Block]) -> tuple[Block, Block] | None:
    """Divide the outputs into outputs for the fits and held-out outputs; return None if too few can be held out.

    All held-out outputs are from the new blocks.
    """
    numbers = plain([*memory.blocks, *blocks])
    new = sum(len(block[0]) for block in numbers if block in blocks)
    held = min(new, round(fitting.settings.held_share * sum(len(block[0]) for block in numbers)))
    if held < fitting.settings.min_fit_rows:
        return None
    seen0, seen1 = joined(numbers)
    del numbers
    blocks.clear()
    fitted = seen0.first(len(seen0) - held), seen1.first(len(seen1) - held)
    return fitted, (seen0.latest(held), seen1.latest(held))


def _leave_out_negligible(fitting: Fitting) -> None:
    """Drop scorers with negligible weight, because they would slow down the scoring of all later outputs."""
    for index, weight in fitting.mixing.weights(fitting.scorers).items():
        if weight < fitting.settings.min_weight:
            del fitting.scorers[index]
            fitting.negligible.add(index)


def _students(fitting: Fitting, memory: PastOutputs) -> list[int]:
    """Return the indices of the attacks whose second stage is applicable to the stored outputs."""
    assert fitting.encoding is not None
    able = [
        i
        for i, attack in enumerate(fitting.attacks)
        if hasattr(attack, "fit_second_stage") and i not in fitting.dropped
    ]
    some = plain(memory.blocks)[-1:]
    if not some:
        return []
    views = [view_of(side.latest(fitting.settings.max_vocabulary), fitting.encoding, "features") for side in some[0]]
    return [i for i in able if _suits(fitting, i, *views)]


def _suits(fitting: Fitting, index: int, view0: View, view1: View) -> bool:
    with suppress(Exception):  # an exception in an attack must not end the audit
        return fitting.suits(fitting.attacks[index], view0, view1)
    return False


def _student(fitting: Fitting, index: int, seen: Block) -> Scorer | None:
    """Fit one attack in the second stage; return its scorer, or None if the attack fails or returns None."""
    assert fitting.encoding is not None
    attack: Any = fitting.attacks[index]
    encoding = fitting.encoding
    view0, view1 = (view_of(side, encoding, "features") for side in seen)
    try:
        if not _suits(fitting, index, view0, view1):
            return None
        rng, foreign = stream(fitting.seed, "study", fitting.pair, index), is_foreign(attack)
        if foreign:
            view0, view1 = copied(view0), copied(view1)
        scorer = attack.fit_second_stage(view0, view1, rng)
        if scorer is None:
            return None
        scorer = protected(scorer) if foreign else scorer
        probes = (view_of(side.latest(fitting.settings.max_vocabulary), encoding, "features") for side in seen)
        others = stream(fitting.seed, "company", fitting.pair, index)
        if pointwise(scorer, next(probes), next(probes), others, thorough=foreign):
            return scorer
        _warn(fitting, index, "gave the same output different scores in different blocks")
    except Exception as error:  # an exception in an attack must not end the audit
        _warn(fitting, index, f"raised {type(error).__name__}: {error}")
    return None


def _warn(fitting: Fitting, index: int, why: str) -> None:
    name = fitting.attacks[index].name
    fitting.warnings.append(f"attack {name} {why} in its second stage; its earlier score is used")
