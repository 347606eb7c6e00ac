"""Fits the attacks of one pair: schedules the fits, selects their data, and handles their failures.

At the end of the pilot of a fixed audit, attacks with a method `fit_second_stage` are fitted a last time, to far more
outputs.  Outputs that are held out of these fits determine the weights (`score.stacked`).  The score is then final.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np

from dpaudit.learning.attack import Attack, Scorer, sees
from dpaudit.learning.blocks import (
    FIRST_FIT,
    SETTLED,
    Block,
    PastOutputs,
    Settings,
    encoding_of,
    joined,
    plain,
    view_of,
)
from dpaudit.learning.foreign import copied, fit, guarded, is_foreign, one_thread, pieces, pointwise, protected
from dpaudit.learning.score import Clock, KnownScores, Score, Stacked, stacked
from dpaudit.learning.weights import ModelWeights
from dpaudit.numerics import Array, fit_logistic, linear, out_of_fold
from dpaudit.outputs import VIEWS, Encoding, PlainEncoding, Targets, View
from dpaudit.running.streams import stream


def calibrated(attack: Attack, scorer: Scorer, seen0: View, seen1: View, rng: np.random.Generator) -> Scorer:
    """Calibrate a scorer by a logistic curve (Platt 1999) that is fitted to out-of-fold scores from three folds."""

    def held_scores(fold_scorer: Scorer, view: View) -> Array:
        found = np.asarray(fold_scorer(view) if len(view) else [], dtype=np.float64)
        if found.shape != (len(view),) or np.isnan(found).any():
            raise ValueError(f"scores must be {len(view)} numbers without nan, got shape {found.shape}")
        return found

    held = np.concatenate(out_of_fold(lambda a, b: partial(held_scores, fit(attack, a, b, rng)), seen0, seen1))
    finite = held[np.isfinite(held)]
    low, high, centre, spread = 0.0, 0.0, 0.0, 1.0
    if len(finite):
        low, high, centre = float(finite.min()), float(finite.max()), float(np.median(finite))
        spread = float(np.std(finite)) or 1.0

    def design(scores: Array) -> Array:
        """Return an array (n, 3): the standardised scores, the indicators of +inf, and the indicators of -inf."""
        inside = (np.clip(scores, low, high) - centre) / spread
        return np.column_stack([inside, scores == np.inf, scores == -np.inf])

    slopes, intercept = fit_logistic(design(held), len(seen0))

    def scores(outputs: View) -> Array:
        found = np.array(scorer(outputs), dtype=np.float64)
        if found.shape != (len(outputs),):
            return found  # the caller reports scores of a wrong shape
        known = ~np.isnan(found)
        found[known] = linear(design(found[known]), slopes) + intercept
        return found

    return scores


@dataclass(eq=False)
class Fitting:
    """The attacks of one pair, together with the scorers that they have learned so far."""

    attacks: Sequence[Attack]
    seed: int
    pair: int
    settings: Settings
    mixing: ModelWeights
    targets: Targets  # the rows in which the datasets of the pair differ
    trials: int = field(default=0, init=False)
    last_fit: int = field(default=0, init=False)  # number of trials at the last fit
    next_full_fit: int = field(default=FIRST_FIT, init=False)  # number of trials at the next fit of all attacks
    encoding: Encoding | None = field(default=None, init=False)
    scorers: dict[int, Scorer] = field(default_factory=dict, init=False)  # attacks in use -> scorer
    known: KnownScores = field(default_factory=dict, init=False)
    dropped: set[int] = field(default_factory=set, init=False)  # attacks that were dropped after a failure
    negligible: set[int] = field(default_factory=set, init=False)  # attacks whose small weight excludes them
    warnings: list[str] = field(default_factory=list, init=False)
    clock: Clock = field(default_factory=Clock, init=False)
    _next_quick_fit: int | None = field(init=False)  # number of trials at the next fit of quick attacks, if any
    _encoded_at: int = field(default=0, init=False)  # number of trials at which the encoding was learned
    _unknown_outputs: bool = field(default=False, init=False)  # whether the encoding cannot represent some later output
    _fitted_at: dict[int, int] = field(default_factory=dict, init=False)  # attack -> trials at its last fit
    # indices of the attacks whose last fit had as many outputs as a fit may have
    _full: set[int] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        quick = any(getattr(attack, "quick", False) for attack in self.attacks)
        self._next_quick_fit = self.settings.first_quick_fit if quick else None
        firsts = [getattr(attack, "first_fit", FIRST_FIT) for attack in self.attacks]
        self.next_full_fit = min(firsts, default=FIRST_FIT)

    @property
    def next_fit(self) -> int:
        return self.next_full_fit if self._next_quick_fit is None else min(self.next_full_fit, self._next_quick_fit)

    def score(self) -> Score:
        """Return the current mixture of the attacks as a score, without a second stage."""
        return Score(
            attacks=self.attacks,
            encoding=self.encoding,
            scorers=dict(self.scorers),
            mixture=self.mixing.weights(self.scorers),
            trials=self.trials,
            clock=self.clock,
            known=self.known,
        )

    def notice(self, block: Block) -> None:
        """Count a new block of outputs, and suspend attacks whose loss is much larger than that of the best attack."""
        encoding = self.encoding
        if encoding is not None:
            self._unknown_outputs |= any(side.unknown_outputs(encoding) is not None for side in block)
        self.trials += len(block[0])
        if len(self.attacks) > 1:
            for index in self.mixing.choose(self.scorers, self.trials):
                del self.scorers[index]

    def refit(self, memory: PastOutputs) -> None:
        self.mixing.fade(self.last_fit / self.trials)
        self.last_fit = self.trials
        seen = memory.gather(self.encoding)
        changed = self._encode(seen)
        full = self.trials >= self.next_full_fit or (changed and self.trials >= FIRST_FIT)
        if full:
            growth = next(growth for until, growth in self.settings.refit_growth if self.trials < until)
            self.next_full_fit = max(self.trials + 3, math.ceil(self.trials * growth))
        if self._next_quick_fit is not None:
            self._next_quick_fit = max(self.trials + 1, math.ceil(self.trials * self.settings.quick_growth))
        self.known = {}  # a new cache; scores that were frozen earlier keep the old one
        recent: dict[int, Block] = {}  # number of outputs -> these latest outputs, whose views attacks share
        with guarded(self.attacks):
            for index, attack in enumerate(self.attacks):
                if (full or getattr(attack, "quick", False)) and self._due(index, attack):
                    self.scorers.pop(index, None)
                    with self.clock.running(index):
                        self._fit(index, attack, seen, memory, recent)

    def drop(self, index: int, why: str) -> None:
        self.dropped.add(index)
        self.mixing.leave(index)
        self.scorers.pop(index, None)
        self.warnings.append(f"attack {self.attacks[index].name} was dropped after {self.trials} trials: it {why}")

    def absence(self, index: int) -> str:
        """Return a description of the reason why an attack is not in use."""
        if index in self.dropped:
            return "dropped after a failure, see the warnings"
        if index in self.negligible:
            return f"left out at the end: its weight was below {self.settings.min_weight:.0%}"
        if self.mixing.away(index):
            return "suspended at the end: other attacks predicted far better"
        if self.trials < max(FIRST_FIT, getattr(self.attacks[index], "from_trials", 0)):
            return "not used: too few outputs"
        return "not used: does not suit these outputs"

    def unused(self) -> list[str]:
        """Return the warnings of attacks that suited no outputs, though they were made for this mechanism."""
        idle = [
            attack
            for index, attack in enumerate(self.attacks)
            if self.trials >= FIRST_FIT and index not in self.dropped and math.isnan(self.mixing.mean_loss(index))
        ]
        return [words for attack in idle if (words := getattr(attack, "unused", ""))]

    def suits(self, attack: Attack, view0: View, view1: View) -> bool:
        """Return whether an attack is applicable to such outputs.  Return True if the audit uses only this attack."""
        suits = getattr(attack, "suits", None)
        if len(self.attacks) == 1 or suits is None:
            return True
        if is_foreign(attack):
            view0, view1 = copied(view0), copied(view1)
        return bool(suits(view0, view1))

    def _encode(self, seen: Block) -> bool:
        """Learn the encoding again after unknown outputs, or if the number of trials has doubled."""
        if self.encoding is not None and not self._unknown_outputs and self.trials < 2 * self._encoded_at:
            return False
        with one_thread():
            encoding = encoding_of(seen, self.settings.max_vocabulary, self.targets)
        self._encoded_at, self._unknown_outputs = self.trials, False
        if isinstance(encoding, PlainEncoding) and isinstance(old := self.encoding, PlainEncoding):
            meaning = [(one.single, one.columns, one.centre is None, one.kind) for one in (encoding, old)]
            if meaning[0] == meaning[1]:  # the columns have the same meaning
                return False
        self.encoding = encoding
        self.scorers.clear()  # scorers that were fitted to the old columns cannot read the new columns
        self._fitted_at.clear()
        self._full.clear()
        return True

    def _due(self, index: int, attack: Attack) -> bool:
        """Return whether to fit an attack now."""
        several = len(self.attacks) > 1
        first: int = getattr(attack, "from_trials", 0) if several else 0
        if index in self.dropped or self.trials < first or (several and self.mixing.suspended(index, self.trials)):
            return False
        last = self._fitted_at.get(index, 0)
        if self.trials >= SETTLED and index in self._full and index not in self.scorers:
            return self.trials >= self.settings.full_fit_growth * last
        return not first or self.trials >= 2 * last

    def _fit(self, index: int, attack: Attack, seen: Block, memory: PastOutputs, recent: dict[int, Block]) -> None:
        """Fit one attack.  Drop the attack if the fit fails, or if the score of an output depends on other outputs."""
        assert self.encoding is not None
        self._fitted_at[index] = self.trials
        rng, view = stream(self.seed, "fit", self.pair, index, self.trials), sees(attack)
        try:
            if view not in VIEWS:
                raise ValueError(f"sees must be one of {', '.join(VIEWS)}, got {view!r}")
            if view == "natural" and memory.whole:
                seen, recent = memory.whole[-1], {}
            most = min(getattr(attack, "most_rows", memory.max_rows(self.encoding)), memory.max_rows(self.encoding))
            if self.mixing.away(index) and (self.trials < SETTLED or index not in self._full):
                most = min(most, self.settings.probation_rows(self.trials, self.encoding.columns))
            (self._full.add if len(seen[0]) >= most else self._full.discard)(index)
            if most not in recent:
                recent[most] = seen[0].latest(most), seen[1].latest(most)
            view0, view1 = (view_of(side, self.encoding, view) for side in recent[most])
            if not self.suits(attack, view0, view1):
                self.mixing.leave(index)
                return
            scorer = fit(attack, view0, view1, rng)
            with one_thread():  # the fit may have loaded another library that uses threads
                if not getattr(attack, "calibrated", False):
                    scorer = calibrated(attack, scorer, view0, view1, rng)
        except (Exception, SystemExit) as error:  # an exception in an attack must not end the audit
            if self.trials < FIRST_FIT:
                return  # a quick attack may fail because of too few outputs, and is fitted again
            self.drop(index, f"raised {type(error).__name__} in fit: {error}")
            return
        probes = stream(self.seed, "company", self.pair, index, self.trials)
        with one_thread():
            harmless = pointwise(scorer, view0, view1, probes, thorough=is_foreign(attack))
        if harmless:
            self.scorers[index] = scorer
            self.mixing.join(index, self.trials)
        else:
            why = "gave the same output different scores in different blocks"
            self.drop(index, f"{why}; a score may depend on a single output only")

    def students(self, memory: PastOutputs) -> list[int]:
        """Return the indices of the attacks whose second stage is applicable to the stored outputs."""
        assert self.encoding is not None
        if not (some := plain(memory.blocks)[-1:]):
            return []
        views = [view_of(side.latest(self.settings.max_vocabulary), self.encoding, "features") for side in some[0]]
        able = [i for i, one in enumerate(self.attacks) if hasattr(one, "fit_second_stage") and i not in self.dropped]
        return [i for i in able if self._surely_suits(i, *views)]

    def second_stage(self, memory: PastOutputs, blocks: list[Block]) -> tuple[Stacked, tuple[Array, Array]] | None:
        """Fit attacks to two thirds of all outputs, and weights to the new others; return their scores; None if few."""
        numbers = plain([*memory.blocks, *blocks])
        new = sum(len(block[0]) for block in numbers if block in blocks)
        held = min(new, round(self.settings.held_share * sum(len(block[0]) for block in numbers)))
        if held < self.settings.min_fit_rows:
            return None
        seen0, seen1 = joined(numbers)
        del numbers
        blocks.clear()
        fitted = seen0.first(len(seen0) - held), seen1.first(len(seen1) - held)
        unseen = seen0.latest(held), seen1.latest(held)
        students = self.students(memory)
        for index, weight in self.mixing.weights(self.scorers).items():
            if weight < self.settings.min_weight:  # it would slow down the scoring of all later outputs
                del self.scorers[index]
                self.negligible.add(index)
        mixture = self.score()
        columns = [[np.concatenate([mixture.mixed(piece) for piece in pieces(side)])] for side in unseen]
        refitted: dict[int, Scorer] = {}
        for index in students:
            with self.clock.running(index):
                scorer = self._student(index, fitted)
            if scorer is None:
                continue
            answers = [[mixture.ask(index, scorer, "features", piece) for piece in pieces(side)] for side in unseen]
            if failure := next((words for side in answers for _, words in side if words), ""):
                self._warn_of_student(index, failure)
                continue
            refitted[index] = scorer
            for column, side in zip(columns, answers, strict=True):
                column.append(np.concatenate([scores for scores, _ in side]))
        columns0, columns1 = (np.column_stack(side) for side in columns)
        final = stacked(refitted, columns0, columns1, self.mixing.experts)
        most = self.settings.max_judged_outputs
        memory.blocks, memory.whole = [(unseen[0].latest(most), unseen[1].latest(most))], []
        return final, (final(columns0), final(columns1))

    def _surely_suits(self, index: int, view0: View, view1: View) -> bool:
        with suppress(Exception):  # an exception in an attack must not end the audit
            return self.suits(self.attacks[index], view0, view1)
        return False

    def _student(self, index: int, seen: Block) -> Scorer | None:
        """Fit one attack in the second stage; return its scorer, or None if the attack fails or returns None."""
        assert self.encoding is not None
        attack, encoding = cast(Any, self.attacks[index]), self.encoding
        view0, view1 = (view_of(side, encoding, "features") for side in seen)
        if not self._surely_suits(index, view0, view1):
            return None
        try:
            rng, foreign = stream(self.seed, "study", self.pair, index), is_foreign(attack)
            if foreign:
                view0, view1 = copied(view0), copied(view1)
            scorer = attack.fit_second_stage(view0, view1, rng)
            if scorer is None:
                return None
            scorer = protected(scorer) if foreign else scorer
            probes = (view_of(side.latest(self.settings.max_vocabulary), encoding, "features") for side in seen)
            others = stream(self.seed, "company", self.pair, index)
            if pointwise(scorer, next(probes), next(probes), others, thorough=foreign):
                return cast(Scorer, scorer)
            self._warn_of_student(index, "gave the same output different scores in different blocks")
        except Exception as error:  # an exception in an attack must not end the audit
            self._warn_of_student(index, f"raised {type(error).__name__}: {error}")
        return None

    def _warn_of_student(self, index: int, why: str) -> None:
        name = self.attacks[index].name
        self.warnings.append(f"attack {name} {why} in its second stage; its earlier score is used")
