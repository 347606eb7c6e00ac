"""The event that a script counts, the region of a witness in plain Python, and the test of the two counts.

The test is one inequality that the claim implies, with an exact p-value.  It is valid for any event that is fixed
before the runs.

A claim implies P1 <= exp(epsilon) P0 + delta for the probabilities P0 and P1 of every event on the two datasets.  For
(epsilon, delta)-DP these are the numbers of the claim.  Any other claim implies the inequality for each epsilon with
delta = `claim.delta(epsilon)`, its privacy profile.  The inequality also holds with the two datasets exchanged.

Theorem (p-value of a script):
    The event and the number n of runs on each dataset are fixed before the first run.  Runs are independent.  Let x and
    y be the numbers of runs in the event.  Let u(s) be the Clopper-Pearson upper bound of P0 with significance s, that
    is, the number u with P[Bin(n, u) <= x] = s, or 1 if x = n.  Let g(u) = min(1, exp(epsilon) u + delta), and let
    p be the least s of a fixed finite set with P[Bin(n, g(u(s / 2))) >= y] <= s / 2, or 1 if there is none.  If the
    claim is true, then P[p <= t] <= t for every t.

Proof:
    For t >= 1 there is nothing to show.  As s grows, u(s / 2) falls, so P[Bin(n, g(u(s / 2))) >= y] falls, and s / 2
    rises.  So the condition holds for every s of the set above p.  Hence p <= t < 1 implies the condition for the
    largest s <= t of the set.  The event u(s / 2) < P0 has probability at most s / 2 (Clopper & Pearson 1934).  If
    u(s / 2) >= P0, then P1 <= g(P0) <= g(u(s / 2)), because g is nondecreasing.  In this case, the condition implies
    P[Bin(n, P1) >= y] <= s / 2.  This has probability at most s / 2, since the left side is the p-value of the count y
    for a known probability P1.  The sum is s <= t (union bound).

The test allows each count half of the level, and assumes the worst case of both counts at once.  So it needs up to
twice as many runs as the exact test of dpaudit (`inference.fixed.exact_binomial`), but a reader can check its four
lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.claims import ApproxDP, PureDP, TradeoffFunction
from dpaudit.reproduce.literals import Unwritable, brief_text, literal
from dpaudit.result.values import Condition, Counts, Interval, Witness
from dpaudit.values import OUTPUT, Label, within, words

# Scripts define two functions: `entries` returns the entries of a vector, or the values of a dict, as an array, and
# `numbers` returns the numbers of an array or a flat list; it raises for a dict.
_FORMS = {
    "output": "output",
    "message of {}": "str({0})",
    "first character of {}": "{0}[0]",
    "last character of {}": "{0}[-1]",
    "length of {}": "len({0})",
    "number of keys of {}": "len({0})",
    "rows of {}": "len({0})",
    "sum of {}": "np.sum(entries({0}))",
    "norm of {}": "np.linalg.norm(entries({0}))",
    "least of {}": "np.min(entries({0}))",
    "largest of {}": "np.max(entries({0}))",
    "number of zeros in {}": "np.sum(entries({0}) == 0)",
    "real part of {}": "{0}.real",
    "imaginary part of {}": "{0}.imag",
    "sum of all numbers": "np.sum(numbers(output))",
    "norm of all numbers": "np.linalg.norm(numbers(output))",
    "largest number": "np.max(numbers(output))",
    "least number": "np.min(numbers(output))",
    "place of the largest number": "np.argmax(numbers(output))",
    "place of the least number": "np.argmin(numbers(output))",
    "number of zeros": "np.sum(np.ravel(output) + 0.0 == 0)",
    "number of different numbers": "len(np.unique(numbers(output)))",
    "number of steps up": "np.sum(np.diff(numbers(output)) > 0)",
    "sum of products of neighbours": "np.sum(numbers(output)[1:] * numbers(output)[:-1])",
    "{} is a whole number": "float({0}).is_integer()",
    "{} is odd": "{0} % 2 == 1",
    "{} is zero": "{0} == 0",
    "{} equals {}": "{0} == {1}",
    "{} is above {}": "{0} > {1}",
    "{} times {}": "{0} * {1}",
    "distance of {} and {}": "abs({0} - {1})",
}
_TYPES = {
    "None": "{0} is None",
    "number": "isinstance({0}, (float, np.floating)) and np.isfinite({0})",
    "nan": "isinstance({0}, (float, np.floating)) and np.isnan({0})",
    "inf": "{0} == float('inf')",
    "-inf": "{0} == -float('inf')",
    "boolean": "isinstance({0}, (bool, np.bool_))",
    "integer": "isinstance({0}, (int, np.integer)) and not isinstance({0}, bool)",
    "complex number": "isinstance({0}, (complex, np.complexfloating))",
    "text": "isinstance({0}, str)",
}
_CONSTANTS = ("None", "True", "False", "0.0")
_REASONS = {
    "bits": "it depends on the low-order bits of the numbers",
    "timed": "it depends on the running time",
    "natural": "it is a threshold on the score of the attacks, which only dpaudit computes",
}
_ADVICE = (
    "audit again with an attack whose region can be written, such as `attacks: median_clipped` in the config or "
    'attacks="median_clipped" in Python'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event in plain Python."""

    condition: str
    negated: bool
    partial: bool  # whether the condition may raise for some outputs, because a part is missing or has another type
    flattens: bool  # whether it reads an entry of the output by its index, so that the script must flatten arrays
    raised: bool  # whether it is about exceptions


def event_of(witness: Witness) -> Event:
    """Return the event that a witness describes."""
    found = witness.described.condition
    try:
        if found is None:
            raise Unwritable(_REASONS[witness.described.view])
        forms = list(within(found.feature))
        return Event(
            condition=_condition(found),
            negated=found.negated,
            partial=found.listed is None,
            flattens=any(one[:2] == ("{}[{}]", OUTPUT) and isinstance(one[2], int) for one in forms),
            raised=any(one[0] == "raised {}" for one in forms),
        )
    except Unwritable as error:
        region = brief_text(witness.region)
        raise Unwritable(f"the region {region} cannot be written in Python: {error}; {_ADVICE}") from None


def _condition(found: Condition) -> str:
    value = expression(found.feature)
    if found.listed is not None:
        sides: dict[str, list[str]] = {}
        for side, text in (_labelled(value, label) for label in found.listed):
            sides.setdefault(side, []).append(text)
        # a set cannot look up an array without dimensions
        return " or ".join(f"{side} in [{', '.join(texts)}]" for side, texts in sides.items())
    if not found.intervals and not found.missing:
        return value
    value = f"({value})" if " " in value else value
    conditions = [_interval(value, one) for one in found.intervals]
    if found.missing and not found.negated:  # the complement holds for missing values anyway
        conditions.append(f"{value} != {value}")
    return " or ".join(conditions)


def _interval(value: str, interval: Interval) -> str:
    low, high = literal(interval.low), literal(interval.high)
    if interval == Interval():
        return f"{value} == {value}"  # NaN counts as missing
    if interval.low == -math.inf:
        return f"{value} < {high}"
    return f"{value} > {low}" if interval.high == math.inf else f"{low} < {value} < {high}"


def expression(feature: Label) -> str:
    """Return an expression of `output` and numpy (`np`) for a feature."""
    match feature:
        case ("{}[{}]", of, step):
            return f"{expression(of)}[{_literal(step)}]"
        case ("number of {} in {}", label, of):
            return f"list({expression(of)}).count({_literal(label)})"
        case ("{} in {}", label, of):
            return f"{_literal(label)} in {expression(of)}"
        case ("{} is {}", ("type of {}", of), kind):
            return _of_type(expression(of), kind)
        case ("{} is {}", ("shape of {}", of), (str() as shape,)):
            return f"'x'.join(map(str, np.shape({expression(of)}))) == {literal(shape)}"
        case ("{} is {}", of, label):
            return " == ".join(_labelled(expression(of), label))
        case (form, *arguments) if form in _FORMS:
            return _FORMS[form].format(*map(expression, arguments))
    raise Unwritable(f"it needs {literal(words(feature)[:100])}, which has no short expression in Python")


def _of_type(value: str, kind: Label) -> str:
    match kind:
        case (name,) if name in _TYPES:
            return _TYPES[name].format(value)
        case ("raised {}", (str() as name,)):
            return f"isinstance({value}, Exception) and type({value}).__name__ == {literal(name)}"
        case ("array of {}", (str() as name,)):
            return f"isinstance({value}, np.ndarray) and {value}.dtype.name == {literal(name)}"
        case (str() as name,) if name.isidentifier() and name != "missing":
            return f"type({value}).__name__ == {literal(name)}"
    raise Unwritable(f"it needs the type {literal(words(kind)[:100])}")


def _labelled(value: str, label: Label | float) -> tuple[str, str]:
    """Return an expression, and the literal that it equals if and only if the output has the label."""
    match label:
        case (str() as text,):  # the name of an enum, or the text of a number such as a Decimal
            if text.startswith("#"):
                raise Unwritable("a long text is stated by its hash only")
            return f'getattr({value}, "name", str({value}))', literal(text)
    return value, _literal(label)


def _literal(label: Label | float) -> str:
    match label:
        case str() | int() | float():
            return literal(label)
        case ("{}", float() as number):
            return literal(number)
        case ("bytes {}", (str() as digits,)):
            try:
                return literal(bytes.fromhex(digits))
            except ValueError:
                pass
        case (str() as name,) if name in _CONSTANTS:
            return name
    raise Unwritable(f"it needs {literal(words(label)[:100])}, which has no literal in Python")


_WANTED = 1e-6  # the p-value at the expected counts; chance then seldom raises it above the required level
_SLOPES = 400  # maximum number of epsilons that are tried for a claim other than (epsilon, delta)-DP
_SAFE, _TINY = 1e-9, 1e-14  # relative and absolute margins added to delta, above the errors of doubles

TEST = """\
levels = np.geomspace(1e-100, 1, 5001)
most = np.nan_to_num(beta.isf(levels / 2, x + 1, RUNS - x), nan=1)
allowed = np.minimum(1, np.exp(EPSILON) * most + DELTA)
p = levels[binom.sf(y - 1, RUNS, allowed) <= levels / 2].min(initial=1)
"""
"""The lines of a script that compute the p-value of the theorem, as `p_value` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inequality:
    """An inequality P(second) <= exp(epsilon) P(first) + delta about one event."""

    epsilon: float
    delta: float
    flipped: bool
    x: int
    n_first: int
    y: int
    n_second: int

    @property
    def sides(self) -> tuple[str, str]:
        """The names of the first and the second dataset in scripts."""
        return ("D1", "D0") if self.flipped else ("D0", "D1")

    @property
    def rates(self) -> tuple[float, float]:
        """The observed rates of both datasets, with one more output counted inside the event and one more outside."""
        return (self.x + 1) / (self.n_first + 2), (self.y + 1) / (self.n_second + 2)

    @property
    def strength(self) -> float:
        """How clearly the rates contradict the inequality, in standard deviations of one run per dataset."""
        a, b = self.rates
        slope = math.exp(min(self.epsilon, 300.0))
        spread = math.sqrt(b * (1 - b) + slope * a * slope * (1 - a))
        return (b - slope * a - self.delta) / spread

    def runs(self, seconds: float) -> int:
        """Return the number of runs per dataset of a script, if a run takes this time.

        Twice what the observed rates, which tend to exaggerate, need for p <= 1e-6; at least 1,000, or what takes 15
        seconds, but no less than 200.
        """
        if self.strength <= 0:
            return 10_000
        least = 1_000 if seconds <= 0 else min(1_000, max(200, int(15.0 / (2 * seconds))))
        return 1_000_000 if (needed := self.needed) is None else max(least, 2 * needed)

    @property
    def needed(self) -> int | None:
        """Number of runs per dataset that the observed rates need for p <= 1e-6; None if no tried number suffices."""
        a, b = self.rates
        sizes = [int(m * 10.0**k) for k in range(2, 6) for m in (1, 2, 5)]
        found = (n for n in sizes if p_value(self, math.ceil(n * a), math.floor(n * b), n) <= _WANTED)
        return next(found, None) if self.strength > 0 else None


def p_value(tested: Inequality, x: int, y: int, n: int) -> float:
    """Return the p-value of the theorem of this module, as the script computes it."""
    from scipy.stats import beta, binom  # loads slowly

    levels = np.geomspace(1e-100, 1, 5001)
    most = np.nan_to_num(beta.isf(levels / 2, x + 1, n - x), nan=1)
    allowed = np.minimum(1, np.exp(tested.epsilon) * most + tested.delta)
    return float(levels[binom.sf(y - 1, n, allowed) <= levels / 2].min(initial=1))


def strongest(claim: TradeoffFunction, counts: Counts) -> Inequality:
    """Return the inequality that the counts of the audit contradict most clearly."""
    x, n0, y, n1 = counts.hits
    sides = [(False, x, n0, y, n1), (True, n1 - y, n1, n0 - x, n0)]
    implied = (
        Inequality(epsilon=epsilon, delta=delta, flipped=flipped, x=a, n_first=n, y=b, n_second=m)
        for epsilon, delta in _implied(claim)
        for flipped, a, n, b, m in sides
    )
    return max(implied, key=lambda inequality: inequality.strength)


def _implied(claim: TradeoffFunction) -> list[tuple[float, float]]:
    """Return pairs (epsilon, delta) such that the claim implies (epsilon, delta)-DP in both directions."""
    if isinstance(claim, PureDP | ApproxDP):
        return [(float(claim.parameters["epsilon"]), float(claim.parameters.get("delta", 0.0)))]
    curve = claim.symmetrized()
    slopes = curve.slopes()
    slopes = slopes[np.isfinite(slopes) & (slopes >= 0)]
    chosen = slopes[np.unique(np.linspace(0, len(slopes) - 1, min(_SLOPES, len(slopes))).astype(int))]
    if math.isfinite(largest := curve.max_privacy_loss()):
        chosen = np.append(chosen, largest)
    found = []
    for epsilon in [rounded_up(float(epsilon)) for epsilon in chosen]:
        delta = float(curve.delta(epsilon))
        found.append((epsilon, min(1.0, rounded_up(delta * (1 + _SAFE) + _TINY) if delta > 0 else 0.0)))
    return found


def rounded_up(number: float) -> float:
    """Return a number >= `number` with at most seven significant digits, or 0 for 0: a weaker but short claim."""
    if number <= 0 or float(f"{number:.6g}") == number:
        return max(number, 0.0)
    digits = 6 - math.floor(math.log10(number))
    found = float(f"{number + 10.0**-digits:.6e}")
    return found if found >= number else number
