"""What is known about telling the two datasets of one pair apart.

The combined score is the mean of the attacks' log-likelihood ratios, weighted by their standing, unless one of them
would win clearly more against the claim alone (`rivals`).
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.learning.attack import Attack, Scorer
from dpaudit.learning.calibration import calibrated
from dpaudit.learning.company import again
from dpaudit.learning.foreign import as_it_was, copied, fit, is_foreign, left_no_trace, protected
from dpaudit.learning.native_threads import one_thread
from dpaudit.learning.safe_scoring import asked, in_pieces, pointwise, same
from dpaudit.learning.selection import BinCounts, Rivals
from dpaudit.learning.stacking import Settled, settled
from dpaudit.learning.weights import Standing, log_loss
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import VIEWS, Encoding, OutputError, Outputs, PartsEncoding, Places, PlainEncoding, Recurring
from dpaudit.sampling.streams import stream

FIRST_FIT = 10  # trials the first scores are learned from
_GROWTH = ((5_000, 1.3), (50_000, 1.5), (math.inf, 2.0))  # scores are learned anew after so many times the trials
_JUDGED_AGAIN = 1.1  # times the trials, after which it is asked anew whether to bet on one attack alone
_MOST_ROWS = 50_000  # outputs of each dataset that a fit looks at: the latest; more if they are vectors
_WIDE_ROWS, _ROWS_PER_NUMBER = 200_000, 20_000
_MOST_PARTS = 500_000  # parts of outputs of each dataset that are kept in memory
_MOST_STUDIED, _MOST_NUMBERS = 1_500_000, 2**25  # outputs of each dataset in a study; numbers in them
_HELD = 1 / 3  # of them, that no score is fitted to
_NEGLIGIBLE = 0.01  # weight in the mixture
_MOST_LEARNED, _FEWEST_LEARNED = 2**30, 50  # bytes of outputs of each dataset that a fit looks at; at least so many
_MOST_BYTES = 2**28  # of large outputs of each dataset that are kept for attacks that want them as they came
_MOST_JUDGED = 4_096  # outputs of each dataset of a block from which an attack's standing is computed
_VOCABULARY = 2_000  # outputs of each dataset that an encoding is learned from
_FIRST_MOMENT = 20  # trials from which a score is frozen for the witness, and again each time that they doubled
_PROBES = 32  # outputs of each dataset that show whether a frozen score is what it was
_DIGITS = 9  # of a score; what is beyond may depend on an output's place in its block, and must not decide a bin

Block = tuple[Outputs, Outputs]


@dataclass(kw_only=True, eq=False)
class Moment:
    """A score frozen while an audit goes on, and the outputs that came afterwards.

    The score with its weights, `number` and `before` are settled before the first output in `after` is drawn.
    """

    learner: Learner  # never learns again
    number: int  # from 1
    before: BinCounts  # (2, BINS), scores of fresh outputs since the moment before this one, as they were bet on
    after: BinCounts  # (2, BINS), the frozen score's of the outputs that came later
    trials: int  # of the learner, up to which these are counted
    closed: bool = False  # outputs were forgotten before they were counted: those that come later are left out, too
    probes: Block | None = None  # of a score by a foreign attack: outputs, and how it scored them when it was frozen
    probed: tuple[Array, ...] = ()

    @property
    def frozen(self) -> bool:
        """Whether the score is what it was: a foreign attack may have changed its scorer when it was fitted again."""
        return self.probes is None or all(map(same, self.learner.scores_now(self.probes), self.probed))


@dataclass
class Learner:
    """Attacks, fitted again and again to the outputs of one pair."""

    attacks: Sequence[Attack]
    seed: int
    pair: int
    rivals: Rivals | None = None  # without one all attacks are always mixed
    trials: int = field(default=0, init=False)
    next_fit: int = field(default=FIRST_FIT, init=False)
    _last_fit: int = field(default=0, init=False)  # trials
    _next_choice: int = field(default=FIRST_FIT, init=False)
    warnings: list[str] = field(default_factory=list, init=False)
    void: str = field(default="", init=False)  # why scores that were counted prove nothing, in words
    seconds: dict[int, float] = field(default_factory=dict, init=False)  # each attack's, fitting and scoring
    encoding: Encoding | None = field(default=None, init=False)
    _encoded_at: int = field(default=0, init=False)  # trials when the encoding was learned
    _misfits: bool = field(default=False, init=False)  # whether outputs came since that it does not know
    _blocks: list[Block] = field(default_factory=list, init=False)
    _kept: int = field(default=0, init=False)  # trials in those blocks
    _bytes_each: float = field(default=1.0, init=False)  # of the latest outputs
    _whole: list[Block] = field(default_factory=list, init=False)  # the latest ones with the outputs as they came
    _scorers: dict[int, Scorer] = field(default_factory=dict, init=False)
    _fitted_at: dict[int, int] = field(default_factory=dict, init=False)
    _standing: Standing = field(default_factory=Standing, init=False)
    _recurring: Recurring | None = field(default=None, init=False)
    _by_value: dict[int | str, tuple[Array, str]] = field(default_factory=dict, init=False)  # scores of these
    _settled: Settled | None = field(default=None, init=False)  # what the score is made of since a study
    _negligible: set[int] = field(default_factory=set, init=False)  # attacks that were left out of it
    _dropped: set[int] = field(default_factory=set, init=False)
    _checks: int = field(default=0, init=False)  # blocks of counted scores that were checked, or could have been
    _outputs_scored: int = field(default=0, init=False)  # of each dataset, in those blocks
    _next_check: int = field(default=1, init=False)  # outputs scored at which the package's own attacks are checked
    _moments: list[Moment] = field(default_factory=list, init=False)  # the latest two, oldest first
    _since: BinCounts = field(init=False)  # (2, BINS), scores of fresh outputs since the latest of them
    untouched: list[Attack | None] = field(init=False)  # the attacks as they were; None if there is no copy

    def __post_init__(self) -> None:
        self.untouched = [as_it_was(attack) for attack in self.attacks]
        self._since = np.zeros((2, BINS), dtype=np.int64)

    @property
    def hopeless(self) -> bool:
        """Whether every attack was dropped for a fault, so that more outputs would teach nothing."""
        return len(self._dropped) == len(self.attacks)

    @property
    def ready(self) -> bool:
        """Whether there is a score to bet with."""
        return bool(self._scorers)

    def weights(self) -> dict[int, float]:
        """Each attack in use and its say, summing to one."""
        mixed = self._mixed()
        return mixed if self._settled is None else self._settled.weights(mixed)

    def _mixed(self) -> dict[int, float]:
        """Each attack in the mixture and its say in it, summing to one."""
        if self.rivals is not None and self.rivals.favourite in self._scorers:
            return {i: float(i == self.rivals.favourite) for i in self._scorers}
        return self._standing.weights(list(self._scorers))

    def mean_loss(self, attack: int) -> float:
        """Mean log-loss of an attack on outputs it had not seen; nan if there were none."""
        return self._standing.mean_loss(attack)

    def absence(self, attack: int) -> str:
        """Why an attack is not in use."""
        if attack in self._dropped:
            return "dropped for a fault, see the warnings"
        if attack in self._negligible:
            return f"left out at the end: its weight was below {_NEGLIGIBLE:.0%}"
        if self._standing.resting(attack, self.trials):
            return "suspended at the end: other attacks predicted far better"
        if self.trials < max(FIRST_FIT, getattr(self.attacks[attack], "from_trials", 0)):
            return "not used: too few outputs"
        return "not used: does not suit these outputs"

    def read(
        self, outputs0: Sequence[Any] | np.ndarray[Any, Any], outputs1: Sequence[Any] | np.ndarray[Any, Any]
    ) -> Any:
        """Outputs of both datasets, ready to be scored and learned from; OutputError if one cannot be read."""
        return Outputs.read(outputs0), Outputs.read(outputs1)

    def outputs(self) -> Block:
        """The latest outputs of both datasets, which can be scored, in the order they came."""
        return _joined(self._whole or self._blocks)

    @property
    def trials_since_fit(self) -> int:
        """How many of them, the last ones, no score was learned from."""
        return self.trials - self._last_fit

    def score(self, outputs: Outputs | Array) -> Array:
        """The combined estimate of the log-likelihood ratio of n outputs, (n,), as of now."""
        with self.guarded():
            return self._score(_read(outputs))

    def _score(self, outputs: Outputs) -> Array:
        places = self._places(outputs)
        if self._settled is not None:
            return self._by_places("settled", outputs, places, self._settled_scores)[0]
        return self._mixture(outputs, places)

    def _mixture(self, outputs: Outputs, places: Places | None) -> Array:
        parts = {i: self._scores(i, outputs, places)[0] for i in self._scorers}
        return _mean(parts, self._mixed(), len(outputs))

    def score_of(self, attack: int, outputs: Outputs | Array) -> Array:
        """One attack's estimate of the log-likelihood ratio of n outputs, (n,), as of now."""
        outputs = _read(outputs)
        with self.guarded():
            return self._scores(attack, outputs, self._places(outputs))[0]

    def score_counted(self, outputs0: Outputs | Array, outputs1: Outputs | Array) -> tuple[Array, Array]:
        """Scores of outputs not seen before, by a score that learns no more.

        As in `score_fresh`, it is checked that each score is a function of its own output.
        """
        sides = _read(outputs0), _read(outputs1)
        with self.guarded():
            found: dict[int, Array] = {}
            for side in self._order():
                found[side] = self._score(sides[side])
            for some, at in self._again(sides):
                frozen = self._settled is not None
                scores = self._settled_scores(some, lookup=False)[0] if frozen else self._mixture_now(some)
                if not same(np.concatenate([found[0], found[1]])[at], scores):
                    self._accuse(list(self.weights()))
        self._outputs_scored += len(sides[0])
        return found[0], found[1]

    def score_fresh(self, outputs0: Outputs | Array, outputs1: Outputs | Array) -> tuple[Array, Array]:
        """Scores of outputs not seen before, which also tell how good each attack is.

        The score of an output depends on that output and on the past alone: an attack that fails on some of these
        outputs scores them 0 and is dropped afterwards, so that a failure decides nothing about the rest of the block.

        It is checked: some outputs are asked about again, at another time and in other company.  A difference makes
        the learner `void`.  It cannot merely drop the attack, for the difference was found in outputs that count.
        """
        # One call for each dataset, never one for both: a score may differ in its last bit with its row's place, and
        # then an output near the edge of a bin would fall on the side of the dataset it came from.
        sides = _read(outputs0), _read(outputs1)
        places = [self._places(side) for side in sides]
        parts: tuple[dict[int, Array], dict[int, Array]] = {}, {}
        failures: dict[int, str] = {}
        with self.guarded():
            for side in self._order():
                for i in self._scorers:
                    parts[side][i], failure = self._scores(i, sides[side], places[side])
                    if failure:
                        failures.setdefault(i, failure)
            self._check(sides, parts)
        scores0, scores1 = (_mean(part, self._mixed(), len(side)) for part, side in zip(parts, sides, strict=True))
        self._judge(*({i: scores[:_MOST_JUDGED] for i, scores in part.items()} for part in parts))
        for i, failure in failures.items():
            self._drop(i, failure)
        self._since += [bin_counts(scores0), bin_counts(scores1)]
        return scores0, scores1

    def _order(self) -> tuple[int, int]:
        """Which dataset's outputs are asked about first: a coin decides, so that an attack cannot know."""
        first = int(stream(self.seed, "first asked", self.pair, self._outputs_scored).integers(2))
        return first, 1 - first

    def _again(self, sides: Block) -> list[tuple[Outputs, Places]]:
        """Some outputs of a block, read anew, and where they were."""
        self._checks += 1
        try:
            return list(again(sides, stream(self.seed, "check", self.pair, self._checks)))
        except OutputError as error:  # a registered encoder that reads an output once and not twice
            self.void = self.void or f"an output could not be read a second time ({error})"
            return []

    def _check(self, sides: Block, parts: tuple[dict[int, Array], dict[int, Array]]) -> None:
        """Ask again about some outputs: foreign attacks in every block, others each time that the outputs doubled."""
        own = self._outputs_scored + len(sides[0]) >= self._next_check
        self._outputs_scored += len(sides[0])
        if own:
            self._next_check = 2 * self._outputs_scored
        asked_again = [i for i in self._scorers if own or is_foreign(self.attacks[i])]
        if not asked_again:
            return
        for some, at in self._again(sides):
            for i in asked_again:
                scores = np.concatenate([parts[0][i], parts[1][i]])[at]
                if not same(scores, self._computed(i, self._scorers[i], _sees(self.attacks[i]), some)[0]):
                    self._accuse([i])

    def _accuse(self, attacks: list[int]) -> None:
        """What was counted may have been decided by more than the outputs."""
        foreign = [i for i in attacks if is_foreign(self.attacks[i])]
        names = " or ".join(self.attacks[i].name for i in foreign or attacks)
        self.void = self.void or (
            f"attack {names} gave an output another score in other company or at another time; a score may depend on "
            "its own output alone"
        )

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """For all that attacks are asked: one thread, and the global random state is what it was."""
        with one_thread(), left_no_trace(any(map(is_foreign, self.attacks))):
            yield

    def _judge(self, parts0: dict[int, Array], parts1: dict[int, Array]) -> None:
        """Count how good the attacks were, from scores of fresh outputs of both datasets by each of them."""
        weights = self._standing.weights(list(self._scorers))
        n = len(next(iter(parts0.values())))
        mixture = _mean(parts0, weights, n), _mean(parts1, weights, n)
        losses = {i: log_loss(parts0[i], parts1[i]) for i in self._scorers}
        self._standing.count(losses, log_loss(*mixture), n)
        if self.rivals is not None and len(self.attacks) > 1:
            self.rivals.count({i: (parts0[i], parts1[i]) for i in self._scorers}, mixture)

    def learn(self, outputs0: Outputs | Array, outputs1: Outputs | Array) -> None:
        """Remember outputs; fit anew when enough have come together."""
        assert self._settled is None, "a settled score learns no more"
        block = _read(outputs0), _read(outputs1)
        if self._forgets(block):
            self._catch_up()
        self._remember(block)
        self.trials += len(block[0])
        if len(self.attacks) > 1:
            self._choose()
        if self.trials < self.next_fit:
            return
        self._standing.fade(self._last_fit / self.trials)
        self._last_fit = self.trials
        growth = next(growth for until, growth in _GROWTH if self.trials < until)
        self.next_fit = max(self.trials + 3, math.ceil(self.trials * growth))
        seen = self._gather()
        self._encode(seen)
        self._recurring = Recurring.of(*seen)
        self._by_value = {}
        with self.guarded():
            for index, attack in enumerate(self.attacks):
                if self._due(index, attack):
                    self._scorers.pop(index, None)
                    with self._clock(index):
                        self._fit(index, attack, seen)
        self._freeze()

    def _freeze(self) -> None:
        """Keep what attacks know now, and their weights, each time that the trials doubled."""
        latest = self._moments[-1].learner.trials if self._moments else _FIRST_MOMENT // 2
        if self.trials < 2 * latest or not self._since.any(axis=1).all():
            return
        frozen = copy.copy(self)
        frozen._blocks, frozen._whole, frozen._moments, frozen._by_value = [], [], [], {}
        frozen._scorers, frozen._standing = dict(self._scorers), copy.deepcopy(self._standing)
        frozen.rivals = copy.copy(self.rivals)  # its favourite is all that is asked for
        number = self._moments[-1].number + 1 if self._moments else 1
        none = np.zeros((2, BINS), dtype=np.int64)
        moment = Moment(learner=frozen, number=number, before=self._since, after=none, trials=self.trials)
        if any(is_foreign(self.attacks[i]) for i in frozen._scorers):
            moment.probes = self.latest(_PROBES)
            moment.probed = frozen.scores_now(moment.probes)
        self._moments = [*self._moments[-1:], moment]
        self._since = none.copy()

    def hindsight(self) -> list[Moment]:
        """What attacks knew earlier, each time with the scores of the outputs that came later; oldest first.

        When a moment comes is decided by numbers of trials alone.  The older one has seen at most half of the outputs
        that the later one had, so there is always one with outputs enough.  If one attack is bet on alone, moments that
        came before that are left out: their scores do not show what it shows.  So are moments whose score did not stay
        what it was, since an attack learned on in a scorer that it had returned.
        """
        self._catch_up()
        found = [moment for moment in self._moments if moment.learner.ready and moment.after.any(axis=1).all()]
        found = [moment for moment in found if moment.frozen]
        alone = None if self.rivals is None else self.rivals.favourite
        if alone is None:
            return found
        return [one for one in found if one.learner.rivals is not None and one.learner.rivals.favourite == alone]

    def _catch_up(self) -> None:
        """Count, for each moment, the outputs that came since."""
        for moment in self._moments:
            due = self.trials - moment.trials
            sides = self.latest(due) if due and not moment.closed else None
            if sides is None:
                continue
            if len(sides[0]) < due:
                moment.closed = True
                continue
            moment.after += np.array([bin_counts(moment.learner.score(side)) for side in sides])
            moment.trials = self.trials

    def latest(self, most: int) -> Block:
        """The latest outputs of both datasets, at most so many of each, as far as they are remembered."""
        found: list[Block] = []
        for block in reversed(self._whole or self._blocks):
            if sum(len(later[0]) for later in found) >= most:
                break
            found.insert(0, block)
        seen0, seen1 = _joined(found)
        return seen0.latest(most), seen1.latest(most)

    def _forgets(self, block: Block) -> bool:
        """Whether older outputs are about to be forgotten for a new block."""
        if self._whole:
            return any(sum(b[side].size() for b in (*self._whole, block)) > _MOST_BYTES for side in (0, 1))
        return bool(self._blocks) and self._kept + len(block[0]) - len(self._blocks[0][0]) >= self._most_rows

    @property
    def most_studied(self) -> int:
        """How many outputs of each dataset `study` has room for; 0 if no attack would learn anything from it."""
        if not self.ready or not isinstance(self.encoding, PlainEncoding):
            return 0
        with self.guarded():
            if not self._students():
                return 0
        return min(_MOST_STUDIED, _MOST_NUMBERS // self.encoding.columns, int(_MOST_LEARNED / self._bytes_each))

    def study(self, blocks: list[Block]) -> tuple[Array, Array] | None:
        """As `_study`, which see."""
        with self.guarded():
            return self._study(blocks)

    def _study(self, blocks: list[Block]) -> tuple[Array, Array] | None:
        """Settle the score, after a last fit to the outputs that are remembered and these, which are new.

        Attacks that can are fitted to two thirds of them.  The last third, all new, weighs them and the mixture so far;
        the scores of these are returned.  None if too few are plain numbers; the score is what it was then.
        """
        plain = _plain([*self._blocks, *blocks])
        new = sum(len(block[0]) for block in plain if block in blocks)
        held = min(new, round(_HELD * sum(len(block[0]) for block in plain)))
        if held < _FEWEST_LEARNED:
            return None
        seen = _joined(plain)
        del plain
        blocks.clear()  # the memory is needed
        fitted = seen[0].first(len(seen[0]) - held), seen[1].first(len(seen[1]) - held)
        unseen = seen[0].latest(held), seen[1].latest(held)
        students = self._students()
        for index, weight in self._mixed().items():
            if weight < _NEGLIGIBLE:  # to ask it about all outputs to come would take time and change nothing
                del self._scorers[index]
                self._negligible.add(index)
        columns = [[in_pieces(self._mixture_of, side)] for side in unseen]
        studied: dict[int, Scorer] = {}
        for index in students:
            with self._clock(index):
                scorer = self._student(index, fitted)
            if scorer is None:
                continue
            found = [in_pieces(partial(self._computed, index, scorer, "features"), side) for side in unseen]
            if failure := found[0][1] or found[1][1]:
                self._unlearned(index, failure)
                continue
            studied[index] = scorer
            for side, scores in zip(columns, found, strict=True):
                side.append(scores)
        columns0, columns1 = (np.column_stack([scores for scores, _ in side]) for side in columns)
        self._settled = settled(studied, columns0, columns1, self.rivals)
        self._by_value.pop("settled", None)
        self._blocks, self._whole = [(unseen[0].latest(_MOST_JUDGED), unseen[1].latest(_MOST_JUDGED))], []
        return self._rounded(columns0), self._rounded(columns1)

    def _students(self) -> list[int]:
        """Attacks that would study outputs as those that are remembered."""
        assert self.encoding is not None
        able = [i for i, attack in enumerate(self.attacks) if hasattr(attack, "study") and i not in self._dropped]
        some = _plain(self._blocks)[-1:]
        if not some:
            return []
        views = [view_of(side.latest(_VOCABULARY), self.encoding, "features") for side in some[0]]
        return [i for i in able if self._suits(self.attacks[i], *views)]

    def _suits(self, attack: Attack, view0: Any, view1: Any) -> bool:
        suits = getattr(attack, "suits", None)
        with suppress(Exception):  # an attack's mistake must not end the audit
            if suits is None or len(self.attacks) == 1:
                return True
            return bool(suits(copied(view0), copied(view1)) if is_foreign(attack) else suits(view0, view1))
        return False

    def _student(self, index: int, seen: Block) -> Scorer | None:
        """What an attack learned in a study; None if it has nothing to add, or failed, which is told."""
        assert self.encoding is not None
        attack = self.attacks[index]
        view0, view1 = (view_of(side, self.encoding, "features") for side in seen)
        try:
            if not self._suits(attack, view0, view1):
                return None
            rng, foreign = stream(self.seed, "study", self.pair, index), is_foreign(attack)
            if foreign:
                view0, view1 = copied(view0), copied(view1)
            scorer: Scorer | None = attack.study(view0, view1, rng)  # type: ignore[attr-defined]
            if scorer is None:
                return None
            scorer = protected(scorer) if foreign else scorer
            probes = (view_of(side.latest(_VOCABULARY), self.encoding, "features") for side in seen)
            others = stream(self.seed, "company", self.pair, index)
            if pointwise(scorer, next(probes), next(probes), others, thorough=foreign):
                return scorer
            self._unlearned(index, "gave an output another score in other company")
        except Exception as error:  # an attack's mistake must not end the audit
            self._unlearned(index, f"raised {type(error).__name__}: {error}")
        return None

    def _unlearned(self, index: int, why: str) -> None:
        name = self.attacks[index].name
        self.warnings.append(f"attack {name} {why}, after its study; what it had learned before is used")

    def _settled_scores(self, outputs: Outputs, *, lookup: bool = True) -> tuple[Array, str]:
        """From scores (n, m) of the mixture and of the attacks that studied; `lookup`: known values need no asking."""
        assert self._settled is not None
        students = self._settled.studied.items()
        found = [self._computed(index, scorer, "features", outputs)[0] for index, scorer in students]
        mixture = self._mixture_of(outputs)[0] if lookup else self._mixture_now(outputs)
        return self._rounded(np.column_stack([mixture, *found])), ""

    def _rounded(self, columns: Array) -> Array:
        assert self._settled is not None
        scores: Array = np.round(self._settled(columns), _DIGITS)
        return scores

    def scores_now(self, sides: Block) -> tuple[Array, ...]:
        """The mixture's scores of outputs of both datasets, none of them looked up."""
        with self.guarded():
            return tuple(self._mixture_now(side) for side in sides)

    def _mixture_now(self, outputs: Outputs) -> Array:
        """The mixture's scores, none of them looked up."""
        parts = {
            i: self._computed(i, scorer, _sees(self.attacks[i]), outputs)[0] for i, scorer in self._scorers.items()
        }
        return _mean(parts, self._mixed(), len(outputs))

    def _mixture_of(self, outputs: Outputs) -> tuple[Array, str]:
        return self._mixture(outputs, self._places(outputs)), ""

    def _choose(self) -> None:
        """Whether to bet on one attack alone, and which attacks rest."""
        if self.rivals is not None and self.trials >= self._next_choice:
            self.rivals.judge(self._scorers)
            self._next_choice = math.ceil(self.trials * _JUDGED_AGAIN)
        ahead = self.rivals.ahead if self.rivals is not None else frozenset()
        for i in self._standing.send_to_rest(list(self._scorers), self.trials, spared=ahead):
            del self._scorers[i]
            if self.rivals is not None:
                self.rivals.forget(i)

    def _remember(self, block: Block) -> None:
        self._bytes_each = max(1.0, *(side.size() / len(side) for side in block))
        encoding = self.encoding
        if encoding is not None:
            self._misfits |= any(side.misfits(encoding) is not None for side in block)
        if any(_sees(attack) == "natural" for attack in self.attacks):
            self._whole.append(block)
            while (
                len(self._whole) > 1 and max(sum(b[side].size() for b in self._whole) for side in (0, 1)) > _MOST_BYTES
            ):
                del self._whole[0]
        self._blocks.append((block[0].without_raw(), block[1].without_raw()))
        self._kept += len(block[0])
        while self._kept - len(self._blocks[0][0]) >= self._most_rows:
            self._kept -= len(self._blocks.pop(0)[0])

    @property
    def _most_rows(self) -> int:
        width = self.encoding.columns if isinstance(self.encoding, PlainEncoding) else 1
        rows = min(_WIDE_ROWS, max(_MOST_ROWS, _ROWS_PER_NUMBER * width))
        return max(_FEWEST_LEARNED, min(rows, int(_MOST_LEARNED / self._bytes_each)))

    def _gather(self) -> Block:
        """What a fit looks at; the rest is forgotten."""
        seen0, seen1 = _joined(self._blocks)
        if len(self._whole) > 1:
            self._whole = [_joined(self._whole)]
        most = min(self._most_rows, *(max(1000, int(_MOST_PARTS / side.parts_each())) for side in (seen0, seen1)))
        if not self._whole and most < len(seen0):
            self._catch_up()
        self._blocks = [(seen0.latest(most), seen1.latest(most))]
        self._kept = len(self._blocks[0][0])
        return self._blocks[0]

    def _encode(self, seen: Block) -> None:
        """Learn the encoding anew if it is time; features that are known already stay known otherwise."""
        if self.encoding is not None and not self._misfits and self.trials < 2 * self._encoded_at:
            return
        encoding = encoding_of(seen)
        self._encoded_at, self._misfits = self.trials, False
        if not (isinstance(encoding, PlainEncoding) and _alike(encoding, self.encoding)):
            self.encoding = encoding
            self._scorers.clear()  # they know the old columns
            self._fitted_at.clear()

    def _due(self, index: int, attack: Attack) -> bool:
        if index in self._dropped or (len(self.attacks) > 1 and self._standing.resting(index, self.trials)):
            return False
        first = getattr(attack, "from_trials", 0) if len(self.attacks) > 1 else 0
        if self.trials < first:
            return False
        return not first or self.trials >= 2 * self._fitted_at.get(index, 0)

    def _fit(self, index: int, attack: Attack, seen: Block) -> None:
        assert self.encoding is not None
        self._fitted_at[index] = self.trials
        rng = stream(self.seed, "fit", self.pair, index, self.trials)
        sees = _sees(attack)
        try:
            if sees not in VIEWS:
                raise ValueError(f"sees must be one of {', '.join(VIEWS)}, got {sees!r}")
            if sees == "natural" and self._whole:
                seen = self._whole[-1]
            most = getattr(attack, "most_rows", self._most_rows)
            view0, view1 = (view_of(side.latest(most), self.encoding, sees) for side in seen)
            suits = getattr(attack, "suits", None)
            if suits is not None and len(self.attacks) > 1:
                shown = (copied(view0), copied(view1)) if is_foreign(attack) else (view0, view1)
                if not suits(*shown):
                    self._standing.leave(index)
                    return
            scorer = fit(attack, view0, view1, rng)
            with one_thread():  # also of a library that the fit has loaded
                if not getattr(attack, "calibrated", False):
                    scorer = calibrated(attack, scorer, view0, view1, rng)
        except (Exception, SystemExit) as error:  # an attack's mistake must not end the audit
            self._drop(index, f"raised {type(error).__name__} in fit: {error}")
            return
        probes = stream(self.seed, "company", self.pair, index, self.trials)
        with one_thread():
            harmless = pointwise(scorer, view0, view1, probes, thorough=is_foreign(attack))
        if not harmless:
            self._drop(
                index, "gave an output another score in other company; a score may depend on its own output alone"
            )
            return
        self._scorers[index] = scorer
        self._standing.join(index, self.trials)

    def _places(self, outputs: Outputs) -> Places | None:
        return self._recurring.places(outputs) if self._recurring is not None else None

    def _scores(self, index: int, outputs: Outputs, places: Places | None) -> tuple[Array, str]:
        """An attack's scores, and what it did wrong, if anything."""
        scorer, sees = self._scorers[index], _sees(self.attacks[index])
        return self._by_places(index, outputs, places, lambda some: self._computed(index, scorer, sees, some))

    def _by_places(
        self,
        key: int | str,
        outputs: Outputs,
        places: Places | None,
        compute: Callable[[Outputs], tuple[Array, str]],
    ) -> tuple[Array, str]:
        """What `compute` gives for n outputs, (n,); once for each value where outputs take few."""
        if self._recurring is None or places is None:
            return compute(outputs)
        if key not in self._by_value:
            self._by_value[key] = compute(self._recurring.values)
        by_value, failure = self._by_value[key]
        values, new = by_value[places], np.flatnonzero(places < 0)
        if len(new):
            values[new], its_failure = compute(outputs.take(new))
            failure = failure or its_failure
        return values, failure

    def _computed(self, index: int, scorer: Scorer, sees: str, outputs: Outputs) -> tuple[Array, str]:
        """An attack's scores, 0 for outputs that the encoding does not know, and what it did wrong, if anything."""
        assert self.encoding is not None
        misfits = outputs.misfits(self.encoding)
        with self._clock(index):
            if misfits is None:
                return asked(scorer, outputs.view(self.encoding, sees))
            values, failure = np.zeros(len(outputs)), ""
            if not misfits.all():
                known = outputs.take(np.flatnonzero(~misfits))
                values[~misfits], failure = asked(scorer, known.view(self.encoding, sees))
            return values, failure

    @contextmanager
    def _clock(self, index: int) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[index] = self.seconds.get(index, 0.0) + time.perf_counter() - began

    def _drop(self, index: int, why: str) -> None:
        self._dropped.add(index)
        self._standing.leave(index)
        self._scorers.pop(index, None)
        self.warnings.append(f"attack {self.attacks[index].name} was dropped after {self.trials} trials: it {why}")


def _mean(parts: dict[int, Array], weights: dict[int, float], n: int) -> Array:
    """The weighted mean of n scores by each attack."""
    mean: Array = np.round(sum((weight * parts[i] for i, weight in weights.items()), np.zeros(n)), _DIGITS)
    return mean


def _sees(attack: Attack) -> str:
    sees: str = getattr(attack, "sees", "natural")
    return sees


def _read(outputs: Outputs | Array) -> Outputs:
    return outputs if isinstance(outputs, Outputs) else Outputs.read(outputs)


def _joined(blocks: Sequence[Block]) -> Block:
    return Outputs.join([block[0] for block in blocks]), Outputs.join([block[1] for block in blocks])


def _plain(blocks: Sequence[Block]) -> list[Block]:
    """Those of plain numbers, all of one kind, the latest one's: joined, they are plain numbers still."""
    kinds = [{(side.array.dtype, side.array.shape[1:]) for side in block if side.array is not None} for block in blocks]
    whole = [
        all(side.array is not None for side in block) and len(kind) == 1
        for block, kind in zip(blocks, kinds, strict=True)
    ]
    latest = next((kind for kind, plain in zip(kinds[::-1], whole[::-1], strict=True) if plain), None)
    return [block for block, kind, plain in zip(blocks, kinds, whole, strict=True) if plain and kind == latest]


def view_of(outputs: Outputs, encoding: Encoding, sees: str) -> Any:
    """What an attack sees of outputs that are learned from; misfits are left out."""
    misfits = outputs.misfits(encoding)
    return (outputs if misfits is None else outputs.take(np.flatnonzero(~misfits))).view(encoding, sees)


def _alike(new: PlainEncoding, old: Encoding | None) -> bool:
    """Whether columns of the old encoding mean what those of the new one do."""
    return (
        isinstance(old, PlainEncoding)
        and (old.single, old.columns, old.centre is None, old.kind)
        == (new.single, new.columns, new.centre is None, new.kind)
    )  # fmt: skip


def encoding_of(seen: Block) -> Encoding:
    arrays = [side.array for side in seen]
    if arrays[0] is not None and arrays[1] is not None:
        batched = all(isinstance(side.raw, np.ndarray) for side in seen)
        same = batched or arrays[0].dtype == arrays[1].dtype
        same &= arrays[0].shape[1:] == arrays[1].shape[1:]
        if same:
            return PlainEncoding.of(np.concatenate([arrays[0], arrays[1]]))
    parts0, parts1 = (side.latest(_VOCABULARY).parts() for side in seen)
    return PartsEncoding.of([*parts0, *parts1], np.repeat([False, True], [len(parts0), len(parts1)]))
