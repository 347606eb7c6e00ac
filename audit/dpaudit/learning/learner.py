"""Learns to distinguish outputs of the two datasets of one pair.

A learner scores fresh outputs, judges its attacks by these scores, stores the outputs, and refits the attacks at
certain numbers of trials.  Each of these steps is implemented in a separate module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dpaudit.learning.attack import Attack
from dpaudit.learning.blocks import Block, as_outputs
from dpaudit.learning.few_values import FewValues
from dpaudit.learning.fitting import Fitting
from dpaudit.learning.foreign import as_it_was, guarded
from dpaudit.learning.hindsight import Hindsight, Moment
from dpaudit.learning.members import head_start, sees
from dpaudit.learning.memory import PastOutputs
from dpaudit.learning.mixing import Mixing
from dpaudit.learning.rechecks import Rechecks
from dpaudit.learning.score import Score
from dpaudit.learning.second_stage import fit_second_stage, room_for_second_stage
from dpaudit.learning.selection import Experts
from dpaudit.learning.settings import MAX_TRIED, Settings
from dpaudit.learning.stacking import Stacked
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Encoding, Outputs, Targets
from dpaudit.values import RawOutputs

_SURE = 0.98  # weight of attacks with a tested model in the mixture from which on frequencies do not replace it


@dataclass(eq=False)
class Learner:
    """The attacks of one pair, which are refitted as the number of outputs grows.

    Args:
        attacks: The attacks; at least one is required.
        seed: Seed of the audit.
        pair: Index of the pair.
        experts: Object that decides whether bets use the scores of one attack alone.  If None, all bets use the
            mixture.
        settings: Settings that determine when attacks are fitted, and to how many outputs.
        targets: The rows in which the datasets of the pair differ, if the datasets are tables.
    """

    attacks: Sequence[Attack]
    seed: int
    pair: int
    experts: Experts | None = None
    settings: Settings = field(default_factory=Settings)
    targets: Targets = (None, None)
    # scores of outputs with few values, which replace those of the attacks; None if attacks score all outputs
    few_values: FewValues | None = field(default=None, init=False)
    # copies of the attacks from before any fit; None for an attack that cannot be copied
    untouched: list[Attack | None] = field(init=False)
    _stacked: Stacked | None = field(default=None, init=False)  # the stacked score after the second stage

    def __post_init__(self) -> None:
        settings = self.settings
        self.untouched = [as_it_was(attack) for attack in self.attacks]
        ahead = {i: head_start(attack) for i, attack in enumerate(self.attacks)}
        self._mixing = Mixing(self.experts, settings.choice_growth, ahead)
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
        """The maximum number of trials in the next block; None if there is no limit.

        Slow attacks that will be suspended soon should score few outputs.
        """
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
        few = None if self.few_values is None or self._of_a_law(score) else self.few_values.score()
        return replace(score, stacked=self._stacked, few_values=few)

    def _of_a_law(self, score: Score) -> bool:
        """Return whether most weight of a mixture is that of attacks that have tested their model by the outputs."""
        return sum(weight for i, weight in score.mixture.items() if head_start(self.attacks[i])) > _SURE

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
        """Prepare outputs of both datasets for scoring and learning.

        Args:
            outputs0: Outputs of runs on d0.
            outputs1: Outputs of runs on d1.

        Raises:
            OutputError: If an output cannot be read.
        """
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
        """Score fresh outputs by the final score, which is not refitted.

        Some outputs are scored a second time.  If the two scores of an output differ, `void` states this.

        Args:
            outputs0: Fresh outputs of runs on d0.
            outputs1: Fresh outputs of runs on d1.

        Returns:
            The scores of the outputs of d0 and of d1.
        """
        return self._rechecks.counted((as_outputs(outputs0), as_outputs(outputs1)), self.current())

    def score_fresh(self, outputs0: Outputs | Array, outputs1: Outputs | Array) -> tuple[Array, Array]:
        """Score fresh outputs, and update the weights of the attacks by the log-loss of these scores.

        The score of an output depends only on this output and on the outputs of earlier blocks.  If an attack fails on
        an output, it gives this output the score 0, and the attack is dropped after the block.  So a failure on one
        output does not change the scores of other outputs.

        Some outputs are scored a second time.  If the two scores of an output differ, `void` states this.

        Args:
            outputs0: Fresh outputs of runs on d0.
            outputs1: Fresh outputs of runs on d1.

        Returns:
            The scores of the outputs of d0 and of d1.
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
        """Store outputs, and refit the attacks if enough outputs have been stored since the last fit.

        Args:
            outputs0: Outputs of runs on d0.
            outputs1: The same number of outputs of runs on d1.
        """
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

        The times at which scores are frozen depend on numbers of trials only.  Each frozen score was learned from at
        least twice as many outputs as the score that was frozen before it.  So one of the two stored scores always has
        enough later outputs.  If bets use the scores of one attack alone, the scores that were frozen before this
        decision are omitted.
        """
        self._catch_up()
        return self._hindsight.moments(self._mixing.chosen_expert)

    @property
    def max_second_stage_trials(self) -> int:
        """The maximum number of outputs of each dataset in the second stage; 0 if no attack has a second stage."""
        with guarded(self.attacks):
            return room_for_second_stage(self._fitting, self._memory)

    def fit_second_stage(self, blocks: list[Block]) -> tuple[Array, Array] | None:
        """Fit the score a last time, to new outputs and to the stored outputs.  The score is then final.

        Args:
            blocks: New blocks of outputs.  The method empties this list to free memory.

        Returns:
            The scores of the held-out outputs of d0 and of d1.  None if too few outputs are plain numbers.  In this
            case, the score does not change.
        """
        with guarded(self.attacks):
            found = fit_second_stage(self._fitting, self._memory, blocks)
        if found is None:
            return None
        self._stacked, scores = found
        self._fitting.known.clear()
        return scores

    def _catch_up(self) -> None:
        self._hindsight.catch_up(self.trials, self._memory.latest)
