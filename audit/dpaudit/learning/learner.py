"""What is known about telling the two datasets of one pair apart.

A learner scores fresh outputs with what it knows, judges its attacks by these scores, remembers the outputs and refits
the attacks now and then.  Each of these steps has a file of its own; the learner only calls them in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dpaudit.learning.attack import Attack
from dpaudit.learning.blocks import Block, as_outputs
from dpaudit.learning.fitting import Fitting
from dpaudit.learning.foreign import as_it_was, guarded
from dpaudit.learning.hindsight import Hindsight, Moment
from dpaudit.learning.members import sees
from dpaudit.learning.memory import PastOutputs
from dpaudit.learning.mixing import Mixing
from dpaudit.learning.rechecks import Rechecks
from dpaudit.learning.score import Score
from dpaudit.learning.second_stage import fit_second_stage, room_for_second_stage
from dpaudit.learning.selection import Experts
from dpaudit.learning.settings import Settings
from dpaudit.learning.stacking import Stacked
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Encoding, Outputs
from dpaudit.values import RawOutputs


@dataclass(eq=False)
class Learner:
    """Attacks, fitted again and again to the outputs of one pair."""

    attacks: Sequence[Attack]
    seed: int
    pair: int
    experts: Experts | None = None  # without one all attacks are always mixed
    settings: Settings = field(default_factory=Settings)
    untouched: list[Attack | None] = field(init=False)  # the attacks as they were; None if there is no copy
    _stacked: Stacked | None = field(default=None, init=False)  # what the score is made of since the second stage

    def __post_init__(self) -> None:
        settings = self.settings
        self.untouched = [as_it_was(attack) for attack in self.attacks]
        self._mixing = Mixing(self.experts, settings.choice_growth)
        self._fitting = Fitting(self.attacks, self.seed, self.pair, settings, self._mixing)
        self._memory = PastOutputs(settings, any(sees(attack) == "natural" for attack in self.attacks), self._catch_up)
        self._hindsight = Hindsight(settings.first_moment)
        self._rechecks = Rechecks(self.seed, self.pair)

    @property
    def trials(self) -> int:
        """How many outputs of each dataset were learned from."""
        return self._fitting.trials

    @property
    def next_fit(self) -> int:
        """Trials at which attacks are fitted again."""
        return self._fitting.next_fit

    @property
    def trials_since_fit(self) -> int:
        """How many of the trials, the last ones, no score was fitted to."""
        return self.trials - self._fitting.last_fit

    @property
    def encoding(self) -> Encoding | None:
        """How outputs become features; None before the first fit."""
        return self._fitting.encoding

    @property
    def warnings(self) -> list[str]:
        """Attacks that were dropped, and why."""
        return self._fitting.warnings

    @property
    def void(self) -> str:
        """Why scores that were counted prove nothing; "" if nothing was found."""
        return self._rechecks.void

    @property
    def seconds(self) -> dict[int, float]:
        """Each attack's time, fitting and scoring."""
        return self._fitting.clock.seconds

    @property
    def hopeless(self) -> bool:
        """Whether every attack was dropped for a fault, so that more outputs would teach nothing."""
        return len(self._fitting.dropped) == len(self.attacks)

    @property
    def ready(self) -> bool:
        """Whether there is a score to bet with."""
        return bool(self._fitting.scorers)

    def current(self) -> Score:
        """The score as of now.  What is learned later does not change it."""
        return replace(self._fitting.score(), stacked=self._stacked)

    def weights(self) -> dict[int, float]:
        """Each attack in use and its weight, summing to one."""
        return self.current().weights()

    def mean_loss(self, attack: int) -> float:
        """Mean log-loss of an attack on outputs it had not seen; nan if there were none."""
        return self._mixing.model_weights.mean_loss(attack)

    def absence(self, attack: int) -> str:
        """Why an attack is not in use."""
        return self._fitting.absence(attack)

    def read(self, outputs0: RawOutputs, outputs1: RawOutputs) -> Block:
        """Outputs of both datasets, ready to be scored and learned from; OutputError if one cannot be read."""
        return Outputs.read(outputs0), Outputs.read(outputs1)

    def outputs(self) -> Block:
        """The latest outputs of both datasets, which can be scored, in the order they came."""
        return self._memory.outputs()

    def latest(self, most: int) -> Block:
        """The latest outputs of both datasets, at most `most` of each, as far as they are remembered."""
        return self._memory.latest(most)

    def score(self, outputs: Outputs | Array) -> Array:
        """The combined estimate of the log-likelihood ratio of n outputs, (n,), as of now."""
        return self.current()(outputs)

    def score_counted(self, outputs0: Outputs | Array, outputs1: Outputs | Array) -> tuple[Array, Array]:
        """Scores of outputs not seen before, by a score that learns no more.

        As in `score_fresh`, it is checked that each score is a function of its own output.
        """
        return self._rechecks.counted((as_outputs(outputs0), as_outputs(outputs1)), self.current())

    def score_fresh(self, outputs0: Outputs | Array, outputs1: Outputs | Array) -> tuple[Array, Array]:
        """Scores of outputs not seen before, which also tell how good each attack is.

        The score of an output depends on that output and on the past alone: an attack that fails on some of these
        outputs scores them 0 and is dropped afterwards, so that a failure decides nothing about the rest of the block.

        It is checked: some outputs are asked about again, and a difference makes the learner `void`.
        """
        sides, score = (as_outputs(outputs0), as_outputs(outputs1)), self.current()
        parts0, parts1, failures = self._rechecks.of_each(sides, score)
        scores0, scores1 = score.mean(parts0, len(sides[0])), score.mean(parts1, len(sides[1]))
        most = self.settings.max_judged_outputs
        judged0, judged1 = ({i: scores[:most] for i, scores in part.items()} for part in (parts0, parts1))
        self._mixing.judge(judged0, judged1, alone=len(self.attacks) == 1)
        for i, failure in failures.items():
            self._fitting.drop(i, failure)
        self._hindsight.count(scores0, scores1)
        return scores0, scores1

    def learn(self, outputs0: Outputs | Array, outputs1: Outputs | Array) -> None:
        """Remember outputs; refit attacks when enough have come together."""
        assert self._stacked is None, "a stacked score learns no more"
        block = as_outputs(outputs0), as_outputs(outputs1)
        self._memory.remember(block, self.encoding)
        self._fitting.notice(block)
        if self.trials < self.next_fit:
            return
        self._fitting.refit(self._memory)
        if self._hindsight.due(self.trials):
            score = replace(self.current(), known={})
            self._hindsight.freeze(score, self._mixing.chosen_expert, self._memory.latest)

    def hindsight(self) -> list[Moment]:
        """What attacks knew earlier, each time with the scores of the outputs that came later; oldest first.

        When a moment comes is decided by numbers of trials alone.  The older one has seen at most half of the outputs
        that the later one had, so there is always one with outputs enough.  If one attack is bet on alone, moments that
        came before that are left out.
        """
        self._catch_up()
        return self._hindsight.moments(self._mixing.chosen_expert)

    @property
    def max_second_stage_trials(self) -> int:
        """How many outputs of each dataset the second stage has room for; 0 if no attack has one."""
        with guarded(self.attacks):
            return room_for_second_stage(self._fitting, self._memory)

    def fit_second_stage(self, blocks: list[Block]) -> tuple[Array, Array] | None:
        """Fix the score by a last fit to these outputs, which are new, and to those that are remembered.

        Returns:
            Scores of those outputs that no attack was fitted to.  None if too few are plain numbers: then the score is
            what it was.
        """
        with guarded(self.attacks):
            found = fit_second_stage(self._fitting, self._memory, blocks)
        if found is None:
            return None
        self._stacked, scores = found
        self._fitting.known.pop("stacked", None)
        return scores

    def _catch_up(self) -> None:
        self._hindsight.catch_up(self.trials, self._memory.latest)
