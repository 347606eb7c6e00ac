"""Learns to distinguish outputs of the two datasets of one pair.

A learner scores fresh outputs, judges its attacks by these scores, stores the outputs, and refits at certain numbers of
trials.  It also freezes scores and applies them to later outputs, to find a region for the witness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.learning.attack import Attack, sees
from dpaudit.learning.blocks import TRIAL_PERIOD, Block, PastOutputs, Settings, as_outputs, encoding_of, view_of
from dpaudit.learning.few_values import FewValues
from dpaudit.learning.fitting import Fitting
from dpaudit.learning.foreign import as_it_was, fit, guarded, is_foreign, pieces, same
from dpaudit.learning.score import Rechecks, Score, Stacked
from dpaudit.learning.weights import BinCounts, Experts, ModelWeights
from dpaudit.numerics import Array
from dpaudit.outputs import Encoding, Outputs, PlainEncoding, Targets
from dpaudit.values import Output, RawOutputs

_SURE = 0.98  # weight of attacks with a tested model in the mixture from which on frequencies do not replace it
_PIECE = 8_192  # number of outputs that are scored at once; their features fit into the processor's cache
_PROBES = 32  # number of outputs of each dataset that are scored again to verify that a frozen score has not changed
_COLUMNS = 8  # number of columns with numbers, and number of other columns, that tests of independence use at most

Columns = tuple[Array, Array]  # the k columns of n outputs of d0, (n, k), and the k columns of m outputs of d1, (m, k)


def _no_counts() -> BinCounts:
    return np.zeros((2, BINS), dtype=np.int64)


@dataclass(kw_only=True, eq=False)
class Moment:
    """A score that was frozen during an audit, and its histogram on later outputs, which did not influence it."""

    score: Score
    chosen_expert: int | None  # attack whose scores alone were bet on when the score was frozen; None for the mixture
    number: int  # 1 for the score that was frozen first, 2 for the next score, and so on
    before: BinCounts  # (2, BINS), counts of the scores that were bet on since the previous score was frozen
    after: BinCounts = field(default_factory=_no_counts)  # (2, BINS), counts of the values on later outputs
    trials: int  # number of trials of the learner up to which outputs were counted in `after`
    closed: bool = False  # whether counting has stopped because the memory dropped outputs before they were counted
    probes: Block | None = None  # outputs that verify a third-party score when they are scored again
    probed: tuple[Array, ...] = ()  # scores of the outputs in `probes`, computed when the score was frozen

    @property
    def frozen(self) -> bool:
        """Whether the score has not changed.  A refit of a third-party attack may modify its earlier scorer."""
        return self.probes is None or all(map(same, _asked_now(self.score, self.probes), self.probed))


def _asked_now(score: Score, sides: Block) -> tuple[Array, ...]:
    with guarded(score.attacks):
        return tuple(score.anew(side) for side in sides)


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
    _moments: list[Moment] = field(default_factory=list, init=False)  # the two scores frozen last, oldest first
    _since: BinCounts = field(default_factory=_no_counts, init=False)  # counts of scores bet on since the last of them
    _identified: tuple[int, BinCounts | None] = field(default=(0, None), init=False)  # number of trials, a cache

    def __post_init__(self) -> None:
        settings = self.settings
        self.untouched = [as_it_was(attack) for attack in self.attacks]
        self._ahead: dict[int, float] = {i: getattr(one, "head_start", 0.0) for i, one in enumerate(self.attacks)}
        self._identifying = {i for i, one in enumerate(self.attacks) if getattr(one, "identifies", False)}
        self._mixing = ModelWeights(self._ahead, self.experts, settings.choice_growth)
        self._fitting = Fitting(self.attacks, self.seed, self.pair, settings, self._mixing, self.targets)
        self._memory = PastOutputs(settings, any(sees(attack) == "natural" for attack in self.attacks), self._catch_up)
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
        on_trial = any(self._mixing.on_trial(index, self.trials) for index in self._fitting.scorers)
        return TRIAL_PERIOD if on_trial else None

    @property
    def fitted_at(self) -> int:
        """The number of trials at the last fit of the score."""
        return self._fitting.last_fit

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
        """The warnings about attacks that failed, or that should have been used and were not."""
        return [*self._fitting.warnings, *self._fitting.unused()]

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
        tested = {i for i, nats in self._ahead.items() if nats and i not in self._identifying}
        of_a_law = sum(score.mixture.get(i, 0.0) for i in tested) > _SURE
        few = None if self.few_values is None or of_a_law else self.few_values.score()
        return replace(score, stacked=self._stacked, few_values=few)

    def weights(self) -> dict[int, float]:
        """Return the weight of each attack in use; the weights sum to 1."""
        return self.current().weights()

    def mean_loss(self, attack: int) -> float:
        """Return the mean log-loss of an attack on unseen outputs, in nats; NaN if there are no unseen outputs."""
        return self._mixing.mean_loss(attack)

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

        A score depends only on its output and on earlier blocks; an attack that fails on an output scores it 0 and is
        dropped.
        """
        sides, score = (as_outputs(outputs0), as_outputs(outputs1)), self.current()
        (parts0, parts1), (scores0, scores1), failures = self._rechecks.of_each(sides, score)
        most = self.settings.max_judged_outputs
        judged0, judged1 = ({i: scores[:most] for i, scores in part.items()} for part in (parts0, parts1))
        self._mixing.judge(judged0, judged1)
        for i, failure in failures.items():
            self._fitting.drop(i, failure)
        self._since += [bin_counts(scores0), bin_counts(scores1)]
        return scores0, scores1

    def learn(self, outputs0: Outputs | Array, outputs1: Outputs | Array) -> None:
        """Store as many outputs of d0 as of d1; refit after enough new ones, and freeze a score at each doubling."""
        assert self._stacked is None, "a stacked score learns no more"
        block = as_outputs(outputs0), as_outputs(outputs1)
        if self.few_values is not None:
            self.few_values.count(block)
        self._memory.remember(block, self.encoding)
        self._fitting.notice(block)
        if self.trials < self.next_fit:
            return
        self._fitting.refit(self._memory)
        frozen_at = self._moments[-1].score.trials if self._moments else self.settings.first_moment // 2
        if self.trials >= 2 * frozen_at and self._since.any(axis=1).all():
            self._freeze()

    def _freeze(self) -> None:
        score = replace(self.current(), known={}).without_light_attacks(self.settings.min_frozen_weight)
        moment = Moment(
            score=score,
            chosen_expert=self._mixing.chosen_expert,
            number=self._moments[-1].number + 1 if self._moments else 1,
            before=self._since,
            trials=score.trials,
        )
        if any(is_foreign(score.attacks[i]) for i in score.scorers):
            moment.probes = self.latest(_PROBES)
            moment.probed = _asked_now(score, moment.probes)
        self._moments = [*self._moments[-1:], moment]
        self._since = _no_counts()

    def identified(self) -> BinCounts | None:
        """Return the bin counts of the score after the last fit on its own outputs, if few values identify a dataset.

        Such a score depends on its outputs so little that these counts show how bets on it will grow.
        """
        at = self._fitting.last_fit
        if self._identified[0] < at:
            used = sum(self._fitting.score().mixture.get(i, 0.0) for i in self._identifying) > 0.5
            seen = self.latest(self.settings.max_judged_outputs)
            self._identified = at, np.array([bin_counts(self.score(side)) for side in seen]) if used else None
        return self._identified[1]

    def hindsight(self) -> list[Moment]:
        """Return the frozen scores, oldest first, with their counts on later outputs.

        If bets use the scores of one attack alone, those from before this decision are omitted.
        """
        self._catch_up()
        chosen = self._mixing.chosen_expert
        counted = [moment for moment in self._moments if moment.score.ready and moment.after.any(axis=1).all()]
        return [moment for moment in counted if moment.frozen and (chosen is None or moment.chosen_expert == chosen)]

    def _catch_up(self) -> None:
        """Count the values of the frozen scores on all outputs that came later and are still stored."""
        for moment in self._moments:
            due = self.trials - moment.trials
            if not due or moment.closed:
                continue
            sides = self.latest(due)
            if len(sides[0]) < due:
                moment.closed = True
                continue
            with guarded(moment.score.attacks):
                moment.after += [
                    bin_counts(np.concatenate([moment.score.unguarded(piece) for piece in pieces(side, _PIECE)]))
                    for side in sides
                ]
            moment.trials = self.trials

    @property
    def max_second_stage_trials(self) -> int:
        """The maximum number of outputs of each dataset in the second stage; 0 if no attack has a second stage."""
        encoding, settings = self.encoding, self.settings
        with guarded(self.attacks):
            if not self.ready or not isinstance(encoding, PlainEncoding) or not self._fitting.students(self._memory):
                return 0
        by_numbers = settings.max_second_stage_numbers // encoding.columns
        return min(settings.max_second_stage_rows, by_numbers, self._memory.max_rows_by_size)

    def fit_second_stage(self, blocks: list[Block]) -> tuple[Array, Array] | None:
        """Fit the score a last time, to new and stored outputs, and empty the list of blocks.

        Return the held-out scores of d0 and d1; None, and an unchanged score, if too few outputs are plain numbers.
        """
        with guarded(self.attacks):
            found = self._fitting.second_stage(self._memory, blocks)
        if found is None:
            return None
        self._stacked, scores = found
        self._fitting.known.clear()
        return scores


def symmetric_columns(
    learner: Learner, outputs0: Sequence[Output], outputs1: Sequence[Output], rng: np.random.Generator, *, refit: bool
) -> tuple[Columns, Columns]:
    """Compute columns of features and a column of scores that do not depend on the order of the outputs.

    Tests of exchangeability need them, because the scores of an audit were learned from earlier outputs.  The attack
    with the largest weight is fitted to these outputs, and then computes the scores of the same outputs.  An attack may
    remember the order of earlier outputs, so a copy of the attack from before the audit is used.

    Theorem:
        If the outputs of a dataset are exchangeable, then the rows of its columns are exchangeable, given the attack.

    Proof:
        The encoding and the attack receive the outputs in a uniformly random order.  Given the outputs as a multiset,
        this random order is independent of the order of the runs.  So the fitted function is also independent of the
        order of the runs.  This function maps each output to its row.

    The column of scores has shape (n, 0) if `refit` is false or if the attack fails.
    """
    orders = [rng.permutation(len(outputs)) for outputs in (outputs0, outputs1)]
    sides = [
        Outputs.read([outputs[i] for i in order]) for outputs, order in zip((outputs0, outputs1), orders, strict=True)
    ]
    encoding = encoding_of((sides[0], sides[1]), learner.settings.max_vocabulary, learner.targets)
    columns: list[Array] = [np.asarray(view_of(side, encoding, "features")) for side in sides]
    nothing = [np.zeros((len(order), 0)) for order in orders]
    if any(len(matrix) < len(order) for matrix, order in zip(columns, orders, strict=True)):
        columns = nothing  # the encoding cannot represent some outputs
    if total := columns[0].shape[1]:
        numeric = encoding.numeric
        chosen = [*_spaced(0, numeric), *_spaced(numeric, total)]
        selected = [matrix[:, chosen] for matrix in columns]
        if numeric > 1:  # the sum of several numbers is a column, too
            with np.errstate(all="ignore"):
                sums = [matrix[:, :numeric].sum(axis=1) for matrix in columns]
            selected = [np.column_stack(both) for both in zip(selected, sums, strict=True)]
        columns = selected
    scores = (_refitted_scores(learner, sides, encoding, rng) if refit else None) or nothing
    (a, b), (c, d) = (
        [matrix[np.argsort(order)] for matrix, order in zip(found, orders, strict=True)] for found in (columns, scores)
    )
    return (a, b), (c, d)


def _spaced(start: int, stop: int) -> list[int]:
    """Return at most `_COLUMNS` evenly spaced integers in the range [start, stop)."""
    return sorted({int(i) for i in np.linspace(start, stop - 1, max(0, min(_COLUMNS, stop - start)))})


def _refitted_scores(
    learner: Learner, sides: list[Outputs], encoding: Encoding, rng: np.random.Generator
) -> list[Array] | None:
    """Fit the strongest attack to the outputs, and return their scores as a column of each side; None if it fails."""
    weights = learner.weights()
    strongest = learner.untouched[max(weights, key=lambda i: weights[i])] if weights else None
    attack = as_it_was(strongest)  # the copy protects `untouched` against changes by the fit
    if attack is None:
        return None
    with guarded(learner.attacks):
        try:
            views = [view_of(side, encoding, sees(attack)) for side in sides]
            scorer = fit(attack, views[0], views[1], rng)
            found = [np.array(scorer(view), dtype=np.float64) for view in views]
        except (Exception, SystemExit):  # an exception in an attack must not end the audit
            return None
    if any(scores.shape != (len(side),) for scores, side in zip(found, sides, strict=True)):
        return None
    return [np.round(scores, 9)[:, None] for scores in found]
