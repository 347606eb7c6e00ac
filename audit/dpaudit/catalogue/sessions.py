"""Builtin sessions, right and wrong: ten mistakes of interactive mechanisms, each beside its mended version.

A session answers queries until its budget refuses.  `spent` is the epsilon that it reports.  Noise is two-sided
geometric (Ghosh, Roughgarden & Sundararajan 2012), so an answer about a count has the privacy loss epsilon or -epsilon,
never less: what a right session promises or reports is attained exactly, except for the sparse vector technique.
Neighbouring datasets differ by one additional record.

What sessions report is ex-post privacy (Ligett, Neel, Roth, Waggoner & Wu 2017).  Filters and odometers are of Rogers,
Roth, Ullman & Vadhan 2016, "Privacy odometers and filters: pay-as-you-go composition".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpaudit.catalogue.promises import check_positive
from dpaudit.claims import PureDP, TradeoffFunction
from dpaudit.pairs.pair import Pair
from dpaudit.running.sessions import Refused


class Counts:
    """Right: a query is an epsilon, its answer the number of records with noise; refuses beyond the budget.

    Whole session: budget-DP.  McSherry 2009, "Privacy integrated queries", sequential composition.
    """

    queries: ClassVar[Sequence[Any]] = (1.0,)

    def __init__(self, dataset: Sequence[Any], rng: np.random.Generator, budget: float = 1.0) -> None:
        check_positive("budget", budget)
        self.dataset, self.rng, self.budget, self.spent = dataset, rng, budget, 0.0

    def charge(self, epsilon: float) -> None:
        if self.spent + epsilon > self.budget:
            raise Refused("the budget is spent")
        self.spent += epsilon

    def noisy(self, count: int, epsilon: float) -> int:
        """Return the count plus X - Y for geometric X and Y, which is epsilon-DP if a record moves the count by 1."""
        return count + int(np.subtract(*self.rng.geometric(-math.expm1(-epsilon), 2)))

    def ask(self, query: Any) -> Any:
        self.charge(query)
        return self.noisy(len(self.dataset), query)


class ChargedRefusals(Counts):
    """Right: withholds noisy counts below 3, and charges for them as for others.

    The suppression of small cells in statistical tables, after the noise.
    """

    charges_refusals: ClassVar[bool] = True

    def ask(self, query: float) -> Any:
        before = self.spent
        answer = super().ask(query)
        if answer < 3:
            self.spent = self.spent if self.charges_refusals else before
            raise Refused("the count is too small")
        return answer


class UnchargedRefusals(ChargedRefusals):
    """Wrong: a refusal because of a small noisy count is free, but each costs up to epsilon; no finite epsilon."""

    charges_refusals = False


class ChargeBefore(Counts):
    """Right: a query is an epsilon, its answer the mean of records in [0, 1]; charges before it looks at the data.

    The mean is a noisy sum over a noisy count, each with epsilon / 2, and division by zero is an error that the analyst
    sees.  The sum of 0s and 1s has geometric noise, too.
    """

    queries = (2.0,)

    def __init__(self, dataset: Sequence[int], rng: np.random.Generator, budget: float = 2.0) -> None:
        super().__init__(dataset, rng, budget)

    def mean(self, epsilon: float) -> float:
        count = max(0, self.noisy(len(self.dataset), epsilon / 2))
        return self.noisy(sum(self.dataset), epsilon / 2) / count

    def ask(self, query: float) -> float:
        self.charge(query)
        return self.mean(query)


class ChargeAfter(ChargeBefore):
    """Wrong: charges after the answer, so that an error is free, but tells that the noisy count is 0; no epsilon."""

    def ask(self, query: float) -> float:
        if self.spent + query > self.budget:
            raise Refused("the budget is spent")
        answer = self.mean(query)
        self.charge(query)
        return answer


class NoRefund(Counts):
    """Right: raises OverflowError if a noisy count does not fit into its column, 0 to 3; the query stays charged."""

    def ask(self, query: float) -> Any:
        answer = super().ask(query)
        if not 0 <= answer <= 3:
            raise OverflowError("the count is below 0" if answer < 0 else "the count is above 3")
        return answer


class RefundOnException(NoRefund):
    """Wrong: an exception rolls the charge back, as a database does with a failed transaction; no finite epsilon."""

    def ask(self, query: float) -> Any:
        before = self.spent
        try:
            return super().ask(query)
        except Exception:
            self.spent = before
            raise


class WholeTicks(Counts):
    """Right: three steps of 0.7 fit into a budget of 2.1, counted in whole thousandths; 2.1-DP."""

    queries = (0.7,)

    def __init__(self, dataset: Sequence[Any], rng: np.random.Generator, budget: float = 2.1) -> None:
        super().__init__(dataset, rng, budget)

    def charge(self, epsilon: float) -> None:
        if round(1000 * self.spent) + round(1000 * epsilon) > round(1000 * self.budget):
            raise Refused("the budget is spent")
        self.spent += epsilon


class FloatSteps(WholeTicks):
    """Wrong: adds floats until the sum reaches the budget, and 0.7 + 0.7 + 0.7 < 2.1: four answers, 2.8-DP.

    The same happens with ten steps of 0.1 and a budget of 1.
    """

    def charge(self, epsilon: float) -> None:
        if self.spent >= self.budget:
            raise Refused("the budget is spent")
        self.spent += epsilon


class NothingLeft(Counts):
    """Right: answers queries of epsilon 1 until nothing of a budget of 2 is left; 2-DP."""

    def __init__(self, dataset: Sequence[Any], rng: np.random.Generator, budget: float = 2.0) -> None:
        super().__init__(dataset, rng, budget)

    def charge(self, epsilon: float) -> None:
        if self.budget - self.spent <= 0:
            raise Refused("the budget is spent")
        self.spent += epsilon


class LessForLessOrEqual(NothingLeft):
    """Wrong: `< 0` in place of `<= 0`, so there is one answer too many; 3-DP with a budget of 2."""

    def charge(self, epsilon: float) -> None:
        if self.budget - self.spent < 0:
            raise Refused("the budget is spent")
        self.spent += epsilon


class DisjointParts(Counts):
    """Right: a query is a part of ages, its answer a noisy count with epsilon 1; has spent what its dearest part has.

    Whole session: budget-DP.  McSherry 2009, parallel composition.  Records are ages.
    """

    queries = ((0, 30), (30, 50), (50, 100))

    def __init__(self, dataset: Sequence[Any], rng: np.random.Generator, budget: float = 1.0) -> None:
        super().__init__(dataset, rng, budget)
        self.parts: dict[Any, float] = dict.fromkeys(self.queries, 0.0)

    def ask(self, query: Any) -> int:
        if self.parts[query] + 1.0 > self.budget:
            raise Refused("the budget of this part is spent")
        self.parts[query] += 1.0
        self.spent = max(self.parts.values())
        return self.noisy(sum(query[0] <= age < query[1] for age in self.dataset), 1.0)


class OverlappingParts(DisjointParts):
    """Wrong: the same for parts that overlap, so a record may be in three parts; 3 times the budget."""

    queries = ((0, 50), (30, 80), (40, 100))


class CachedAnswer(Counts):
    """Right: an answer to a repeated query is the stored one and costs nothing; budget-DP."""

    def __init__(self, dataset: Sequence[Any], rng: np.random.Generator, budget: float = 1.0) -> None:
        super().__init__(dataset, rng, budget)
        self.stored: dict[float, int] = {}

    def ask(self, query: float) -> Any:
        if query not in self.stored:
            self.stored[query] = super().ask(query)
        return self.stored[query]


class CachedCharge(CachedAnswer):
    """Wrong: a repeated query costs nothing, but its answer has new noise; no finite epsilon."""

    def ask(self, query: float) -> Any:
        if query not in self.stored:
            return super().ask(query)
        return self.noisy(len(self.dataset), query)


class SeparateGenerators(Counts):
    """Right: two children count the records of their own parts, each with its own generator; budget-DP.

    A query is the number of a child, and records are numbers of parts.  Each child spends the budget in one answer.
    Parallel composition, as in `DisjointParts`.
    """

    queries = (0, 1)
    shares_generator: ClassVar[bool] = False

    def __init__(self, dataset: Sequence[Any], rng: np.random.Generator, budget: float = 1.0) -> None:
        super().__init__(dataset, rng, budget)
        seeds = rng.integers(2**63, size=2)
        self.children = {
            part: Counts(
                [record for record in dataset if record == part],
                np.random.default_rng(seeds[0 if self.shares_generator else part]),
                budget,
            )
            for part in self.queries
        }

    def ask(self, query: int) -> int:
        answer: int = self.children[query].ask(self.budget)
        self.spent = self.budget
        return answer


class SharedGenerator(SeparateGenerators):
    """Wrong: both children have generators with one seed, so their noise is the same, and the difference is exact."""

    shares_generator = True


class BasicForAdaptive(Counts):
    """Right: reports the sum of the epsilons, whichever the analyst chose; budget-DP."""

    queries = (1.5, 0.25)

    def __init__(self, dataset: Sequence[Any], rng: np.random.Generator, budget: float = 3.0) -> None:
        super().__init__(dataset, rng, budget)


class AdvancedForAdaptive(BasicForAdaptive):
    """Wrong: reports the advanced bound for k answers with the newest epsilon, as if all had it (delta = .01).

    sqrt(2 k ln(1 / delta)) epsilon + k epsilon (e^epsilon - 1): Dwork, Rothblum & Vadhan 2010, Theorem III.3, for equal
    epsilons that are fixed in advance.  After a dear and a cheap answer, the loss is 1.75, and 1.21 is reported.
    """

    def __init__(self, dataset: Sequence[Any], rng: np.random.Generator, budget: float = 3.0) -> None:
        super().__init__(dataset, rng, budget)
        self.total, self.answers = 0.0, 0

    def charge(self, epsilon: float) -> None:
        if self.total + epsilon > self.budget:
            raise Refused("the budget is spent")
        self.total, self.answers = self.total + epsilon, self.answers + 1
        bound = math.sqrt(2 * self.answers * math.log(100)) * epsilon + self.answers * epsilon * math.expm1(epsilon)
        self.spent = min(self.total, bound)


class SparseVector(Counts):
    """Right: says whether a part has at least 2 records, up to noise, and closes after the first yes; budget-DP.

    Dwork & Roth 2014, Algorithm 1.  A query is a part, and records are numbers of parts.  The budget is spent at once.
    Not attained: the worst loss of a few comparisons is smaller.
    """

    queries = (0, 1)
    closes: ClassVar[bool] = True

    def __init__(self, dataset: Sequence[Any], rng: np.random.Generator, budget: float = 2.0) -> None:
        super().__init__(dataset, rng, budget)
        self.spent, self.closed = budget, False
        self.threshold = self.noisy(2, budget / 2)

    def ask(self, query: int) -> bool:
        if self.closed:
            raise Refused("there was a yes")
        above = self.noisy(sum(record == query for record in self.dataset), self.budget / 4) >= self.threshold
        self.closed = self.closes and above
        return above


class SparseVectorNeverCloses(SparseVector):
    """Wrong: goes on after a yes; no finite epsilon.  Lyu, Su & Li 2017, Algorithm 6 (Chen et al. 2015)."""

    closes = False


class BuiltinSession(NamedTuple):
    """A session, what it promises, datasets on which the promise is attained or broken, and whether it is kept."""

    open_session: Callable[..., Any]  # (dataset, rng, budget=...) -> session
    claim: TradeoffFunction | str  # about a whole session, or "reported"
    pair: Pair
    right: bool


def _both(
    right: type[Counts], wrong: type[Counts], claim: TradeoffFunction | str, d0: Sequence[int], d1: Sequence[int]
) -> tuple[BuiltinSession, BuiltinSession]:
    pair = Pair(list(d0), list(d1), relation="add_remove")
    return BuiltinSession(wrong, claim, pair, right=False), BuiltinSession(right, claim, pair, right=True)


_ALL = {
    ("uncharged_refusals", "charged_refusals"): _both(
        ChargedRefusals, UnchargedRefusals, "reported", [1, 1], [1, 1, 1]
    ),
    ("charge_after", "charge_before"): _both(ChargeBefore, ChargeAfter, "reported", [], [1]),
    ("refund_on_exception", "no_refund"): _both(NoRefund, RefundOnException, "reported", [1] * 3, [1] * 4),
    ("float_steps", "whole_ticks"): _both(WholeTicks, FloatSteps, PureDP(2.1), [1, 1], [1, 1, 1]),
    ("less_for_less_or_equal", "nothing_left"): _both(NothingLeft, LessForLessOrEqual, PureDP(2.0), [1, 1], [1, 1, 1]),
    ("overlapping_parts", "disjoint_parts"): _both(DisjointParts, OverlappingParts, "reported", [25, 60], [25, 60, 45]),
    ("cached_charge", "cached_answer"): _both(CachedAnswer, CachedCharge, "reported", [1, 1], [1, 1, 1]),
    ("shared_generator", "separate_generators"): _both(
        SeparateGenerators, SharedGenerator, PureDP(1.0), [0, 1], [0, 1, 1]
    ),
    ("advanced_for_adaptive", "basic_for_adaptive"): _both(
        BasicForAdaptive, AdvancedForAdaptive, "reported", [1, 1], [1, 1, 1]
    ),
    ("sparse_vector_never_closes", "sparse_vector"): _both(
        SparseVector, SparseVectorNeverCloses, PureDP(2.0), [0, 0, 1, 1], [0, 0, 1, 1, 1]
    ),
}

SESSIONS: Mapping[str, BuiltinSession] = {
    name: session for names, sessions in _ALL.items() for name, session in zip(names, sessions, strict=True)
}
"""Wrong sessions, each followed by its mended version."""
