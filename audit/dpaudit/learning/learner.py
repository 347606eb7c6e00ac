"""Learns to distinguish outputs of the two datasets of one pair.

A learner scores fresh outputs, judges its attacks by these scores, stores the outputs, and refits the attacks at
certain numbers of trials.  Each of these steps is implemented in a separate module.

At the end of the pilot of a fixed audit, attacks with a method `fit_second_stage` are fitted a last time, to far more
outputs.  Outputs that are held out of these fits determine the weights (`score.stacked`).  The score is then final.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from dpaudit.learning.attack import Attack, Scorer, sees
from dpaudit.learning.blocks import Block, PastOutputs, as_outputs, joined, plain, view_of
from dpaudit.learning.few_values import FewValues
from dpaudit.learning.fitting import Fitting
from dpaudit.learning.foreign import as_it_was, copied, guarded, in_pieces, is_foreign, pointwise, protected
from dpaudit.learning.hindsight import Hindsight, Moment
from dpaudit.learning.score import Rechecks, Score, Stacked, stacked
from dpaudit.learning.settings import MAX_TRIED, Settings
from dpaudit.learning.weights import Experts, Mixing
from dpaudit.numerics import Array
from dpaudit.outputs import Encoding, Outputs, PlainEncoding, Targets, View
from dpaudit.running.streams import stream
from dpaudit.values import RawOutputs

_SURE = 0.98  # weight of attacks with a tested model in the mixture from which on frequencies do not replace it


@dataclass(eq=False)
class Learner:
    """The attacks of one pair, which are refitted as the number of outputs grows."""

    attacks: Sequence[Attack]  # at least one
    seed: int
    pair: int  # index of the pair
    experts: Experts | None = None  # decides whether bets use the scores of one attack alone; None for the mixture
    settings: Settings = field(default_factory=Settings)
    targets: Targets = (None, None)  # the rows in which the datasets differ, if they are tables
    few_values: FewValues | None = field(default=None, init=False)  # replaces scores of the attacks for few values
    untouched: list[Attack | None] = field(init=False)  # copies from before any fit; None if there is no copy
    _stacked: Stacked | None = field(default=None, init=False)  # the stacked score after the second stage

    def __post_init__(self) -> None:
        settings = self.settings
        self.untouched = [as_it_was(attack) for attack in self.attacks]
        self._ahead: dict[int, float] = {i: getattr(one, "head_start", 0.0) for i, one in enumerate(self.attacks)}
        self._mixing = Mixing(self.experts, settings.choice_growth, self._ahead)
        self._fitting = Fitting(self.attacks, self.seed, self.pair, settings, self._mixing, self.targets)
        self._memory = PastOutputs(settings, any(sees(attack) == "natural" for attack in self.attacks), self._catch_up)
        self._hindsight = Hindsight(settings.first_moment)
        self._rechecks = Rechecks(self.seed, self.pair)

    @property
    def trials(self) -> int:
        """The number of outputs of each dataset that were passed to `learn`."""
        return self._fitting.trials

    @property
    def next_fit(self) -> int:
        """The number of trials at which attacks are refitted next."""
        return self._fitting.next_fit

    @property
    def max_block_trials(self) -> int | None:
        """The maximum number of trials in a block, because attacks on trial may be slow; None if there is none."""
        weights, attacks = self._mixing.model_weights, self._fitting.scorers
        return MAX_TRIED if any(weights.on_trial(index, self.trials) for index in attacks) else None

    @property
    def trials_since_fit(self) -> int:
        """The number of trials that were learned from after the last fit of the score."""
        return self.trials - self._fitting.last_fit

    @property
    def encoding(self) -> Encoding | None:
        """The encoding that converts outputs to features; None before the first fit."""
        return self._fitting.encoding

    @property
    def warnings(self) -> list[str]:
        """The warnings about attacks that failed."""
        return self._fitting.warnings

    @property
    def void(self) -> str:
        """The reason why the counted scores are invalid; the empty string if they appear to be valid."""
        return self._rechecks.void

    @property
    def seconds(self) -> dict[int, float]:
        """The number of seconds that each attack has spent on fits and on scoring, by attack index."""
        return self._fitting.clock.seconds

    @property
    def hopeless(self) -> bool:
        """Whether every attack was dropped after a failure, so that further outputs cannot be scored."""
        return len(self._fitting.dropped) == len(self.attacks)

    @property
    def ready(self) -> bool:
        """Whether any attack has been fitted, so that outputs can be scored."""
        return bool(self._fitting.scorers)

    def current(self) -> Score:
        """Return the current score, which later fits do not change."""
        score = self._fitting.score()
        of_a_law = sum(weight for i, weight in score.mixture.items() if self._ahead[i]) > _SURE
        few = None if self.few_values is None or of_a_law else self.few_values.score()
        return replace(score, stacked=self._stacked, few_values=few)

    def weights(self) -> dict[int, float]:
        """Return the weight of each attack in use; the weights sum to 1."""
        return self.current().weights()

    def mean_loss(self, attack: int) -> float:
        """Return the mean log-loss of an attack on unseen outputs, in nats; NaN if there are no unseen outputs."""
        return self._mixing.model_weights.mean_loss(attack)

    def absence(self, attack: int) -> str:
        """Return a description of the reason why an attack is not in use."""
        return self._fitting.absence(attack)

    def read(self, outputs0: RawOutputs, outputs1: RawOutputs) -> Block:
        """Prepare outputs of both datasets for scoring and learning; raise OutputError for an unreadable output."""
        return Outputs.read(outputs0), Outputs.read(outputs1)

    def outputs(self) -> Block:
        """Return all stored outputs of both datasets that can be scored, in the order of their runs."""
        return self._memory.outputs()

    def latest(self, most: int) -> Block:
        """Return the latest outputs of each dataset: `most` outputs, or fewer if fewer are stored."""
        return self._memory.latest(most)

    def score(self, outputs: Outputs | Array) -> Array:
        """Compute the current score of n outputs, which estimates their log-likelihood ratios in nats."""
        return self.current()(outputs)

    def score_counted(self, outputs0: Outputs | Array, outputs1: Outputs | Array) -> tuple[Array, Array]:
        """Score fresh outputs of d0 and of d1 by the final score, which is not refitted."""
        return self._rechecks.counted((as_outputs(outputs0), as_outputs(outputs1)), self.current())

    def score_fresh(self, outputs0: Outputs | Array, outputs1: Outputs | Array) -> tuple[Array, Array]:
        """Score fresh outputs of d0 and of d1, and update the weights of the attacks by the log-loss of these scores.

        The score of an output depends only on this output and on the outputs of earlier blocks.  An attack that fails
        on an output gives it the score 0, and is dropped after the block, so the scores of other outputs do not change.
        """
        sides, score = (as_outputs(outputs0), as_outputs(outputs1)), self.current()
        (parts0, parts1), (scores0, scores1), failures = self._rechecks.of_each(sides, score)
        most = self.settings.max_judged_outputs
        judged0, judged1 = ({i: scores[:most] for i, scores in part.items()} for part in (parts0, parts1))
        self._mixing.judge(judged0, judged1, alone=len(self.attacks) == 1)
        for i, failure in failures.items():
            self._fitting.drop(i, failure)
        self._hindsight.count(scores0, scores1)
        return scores0, scores1

    def learn(self, outputs0: Outputs | Array, outputs1: Outputs | Array) -> None:
        """Store as many outputs of d0 as of d1, and refit the attacks if enough were stored since the last fit."""
        assert self._stacked is None, "a stacked score learns no more"
        block = as_outputs(outputs0), as_outputs(outputs1)
        if self.few_values is not None:
            self.few_values.count(block)
        self._memory.remember(block, self.encoding)
        self._fitting.notice(block)
        if self.trials < self.next_fit:
            return
        self._fitting.refit(self._memory)
        if self._hindsight.due(self.trials):
            score = replace(self.current(), known={}).without_light_attacks(self.settings.min_frozen_weight)
            self._hindsight.freeze(score, self._mixing.chosen_expert, self._memory.latest)

    def hindsight(self) -> list[Moment]:
        """Return the scores that were frozen earlier, oldest first, with the counts of their values on later outputs.

        The times at which scores are frozen depend on numbers of trials only.  If bets use the scores of one attack
        alone, the scores that were frozen before this decision are omitted.
        """
        self._catch_up()
        return self._hindsight.moments(self._mixing.chosen_expert)

    @property
    def max_second_stage_trials(self) -> int:
        """The maximum number of outputs of each dataset in the second stage; 0 if no attack has a second stage."""
        encoding, settings = self.encoding, self.settings
        with guarded(self.attacks):
            if not self.ready or not isinstance(encoding, PlainEncoding) or not _students(self._fitting, self._memory):
                return 0
        by_numbers = settings.max_second_stage_numbers // encoding.columns
        return min(settings.max_second_stage_rows, by_numbers, self._memory.max_rows_by_size)

    def fit_second_stage(self, blocks: list[Block]) -> tuple[Array, Array] | None:
        """Fit the score a last time, to new and stored outputs, and empty the list of blocks; the score is then final.

        Return the scores of the held-out outputs of d0 and of d1, or None, without a change of the score, if too few
        outputs are plain numbers.
        """
        with guarded(self.attacks):
            found = _last_fit(self._fitting, self._memory, blocks)
        if found is None:
            return None
        self._stacked, scores = found
        self._fitting.known.clear()
        return scores

    def _catch_up(self) -> None:
        self._hindsight.catch_up(self.trials, self._memory.latest)


def _last_fit(fitting: Fitting, memory: PastOutputs, blocks: list[Block]) -> tuple[Stacked, tuple[Array, Array]] | None:
    """Fit attacks to two thirds of all outputs, and the weights to the others, which are new; return their scores."""
    if (parts := _split(fitting, memory, blocks)) is None:
        return None
    (fitted, unseen), students = parts, _students(fitting, memory)
    for index, weight in fitting.mixing.weights(fitting.scorers).items():
        if weight < fitting.settings.min_weight:  # it would slow down the scoring of all later outputs
            del fitting.scorers[index]
            fitting.negligible.add(index)
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
    memory.blocks, memory.whole = [(unseen[0].latest(most), unseen[1].latest(most))], []
    return final, (final(columns0), final(columns1))


def _split(fitting: Fitting, memory: PastOutputs, blocks: list[Block]) -> tuple[Block, Block] | None:
    """Divide the outputs into those for the fits and held-out new ones; return None if too few can be held out."""
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


def _students(fitting: Fitting, memory: PastOutputs) -> list[int]:
    """Return the indices of the attacks whose second stage is applicable to the stored outputs."""
    assert fitting.encoding is not None
    able = [i for i, one in enumerate(fitting.attacks) if hasattr(one, "fit_second_stage") and i not in fitting.dropped]
    if not (some := plain(memory.blocks)[-1:]):
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
    attack, encoding = cast(Any, fitting.attacks[index]), fitting.encoding
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
