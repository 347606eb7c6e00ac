"""The rejection region of a witness: a condition on one feature of the output, or a threshold on the score alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from dpaudit.values import OUTPUT, Label, checked, words

View = Literal["natural", "bits", "timed"]
VIEW_WORDS: dict[View, str] = {"natural": "", "bits": "low-order bits of the numbers: ", "timed": "running time: "}
_EXACT = 2**53  # a float64 represents all integers up to this absolute value exactly


def _number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() and abs(value) <= _EXACT else str(value)


def _value(value: Label | float) -> str:
    """Write a listed value; integers keep all digits."""
    if isinstance(value, float):
        return _number(value) if value.is_integer() else f"{value:.6g}"
    return words(value)


@dataclass(frozen=True, slots=True)
class Interval:
    """An open interval of numbers.  Its ends are exact, and midpoints between outputs as far as possible."""

    low: int | float = -math.inf
    high: int | float = math.inf

    def __str__(self) -> str:
        if math.isinf(self.low) and self.low < 0:
            return f"below {_number(self.high)}"
        above = f"above {_number(self.low)}"
        return above if self.high == math.inf else f"between {_number(self.low)} and {_number(self.high)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition on one feature of the output.

    The feature is in one of the intervals or is one of the listed values.  If there are neither, the feature is a
    statement, and holds.
    """

    feature: Any = OUTPUT  # a `Feature`; a result file holds it as nested lists
    intervals: tuple[Interval, ...] = ()  # an interval without ends holds every number
    listed: tuple[Any, ...] | None = None  # numbers, and arguments of features such as texts
    missing: bool = False  # whether the condition holds if the feature is missing or nan
    negated: bool = False  # whether the region is the complement, which holds if the feature is missing

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", checked(self.feature))
        if self.listed is not None:
            plain = (bool, int, float, str)
            listed = tuple(one if type(one) in plain else checked(one) for one in self.listed)
            object.__setattr__(self, "listed", listed)

    def __str__(self) -> str:
        name, values = words(self.feature), self.values
        return f"{name} {values}" if values else f"{'not: ' * self.negated}{name}"

    @property
    def of_output(self) -> bool:
        """Whether the condition says which values the output itself has."""
        return self.feature == OUTPUT and self.values != ""

    @property
    def values(self) -> str:
        """The values of the feature in words, such as "above 3"; "" for a statement."""
        if self.listed is not None:
            return f"in {{{', '.join(map(_value, self.listed))}}}"
        if self.intervals == (Interval(),):
            return "is missing" if self.negated else "is present"
        if self.negated and self.intervals:
            return f"at most {_number(self.intervals[0].low)}{' or missing' * self.missing}"
        return " or ".join([*map(str, self.intervals), *["nan"] * self.missing])


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A rejection region.

    Without a condition, only the score of the attacks defines it.
    """

    condition: Condition | None = None
    nearly: bool = False  # whether the condition holds for most outputs of the region, and for few others
    view: View = "natural"  # which view of the outputs the strongest attack scores

    def words(self, threshold: float) -> str:
        """Describe the region, whose scores are above the threshold."""
        if self.condition is not None and not self.nearly:
            return str(self.condition)
        score = f"{VIEW_WORDS[self.view]}estimated log-likelihood ratio above {threshold:.3g}"
        return score if self.condition is None else f"{score}; nearly the same as: {self.condition}"
