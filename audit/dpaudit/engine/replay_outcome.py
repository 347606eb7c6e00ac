"""The outcome of a replay, and its comparison with the config or the test whose mechanism and pairs it ran."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpaudit.claims import TradeoffFunction
from dpaudit.result.evidence import disagreement, planned_of
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Counts
from dpaudit.rounding import lower, percent, percent_at_most, upper
from dpaudit.text import facts_html, one_line

CONFIRMED = 0.001
"""The largest fresh p-value that confirms a violation, and the level of two replays together; see `engine.replay`."""

_CLOSE = 1e-9  # relative difference of numbers in claims that accountants compute on different machines
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:e[+-]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Replay:
    """The outcome of a replay, together with the result that was replayed.  `str(replay)` is a summary."""

    result: AuditResult
    counts: Counts  # counts of the region on fresh runs
    learned_from: int  # fresh runs per dataset that attacks learned from, before the counted runs
    p_value: float  # p-value of the claim, corrected for two replays and all interim analyses; 1 if not `valid`
    seed: int
    contradictions: tuple[str, ...]  # statements of the result that its own counts contradict
    warnings: tuple[str, ...]
    looks: int = 1  # number of times the fresh counts were tested
    valid: bool = True  # False if fresh runs failed or depended on each other, and so prove nothing
    # how the claim of the result differs from that of the config or the test that the replay ran
    differences: tuple[str, ...] = ()
    origin: str = ""  # "config" or "test" if the result was compared with one, otherwise ""
    changes: tuple[str, ...] = ()  # how the replayed code, datasets or attacks differ from those of the audit
    runs_needed: float = math.nan  # estimated fresh runs per dataset for a decision; inf without sign of a violation

    @property
    def level(self) -> float:
        """The largest p-value at which fresh runs refute the claim: 0.001, or the audit's significance if smaller."""
        return level_of(self.result)

    @property
    def refuted(self) -> bool:
        """Whether the fresh runs alone refute the claim, at `level`."""
        return self.p_value <= self.level

    @property
    def conclusive(self) -> bool:
        """Whether fresh runs and result are valid, agree with its config or test, and repeat any violation."""
        decided = self.refuted or not self.result.violated
        return self.valid and decided and not self.contradictions and not self.differences

    @property
    def reproduced(self) -> bool:
        """Whether it is conclusive, with the code of the audit and the verdict of the result (or see `runs_needed`)."""
        return self.conclusive and not self.changes and self.refuted == self.result.violated

    def __repr__(self) -> str:
        return (
            f"<Replay of {self.result.name!r}: {self._conclusion()[0].lower()}, "
            f"p <= {upper(self.p_value, under=self.level)}, {self.counts.n0:,} runs per dataset, seed {self.seed}>"
        )

    def __str__(self) -> str:
        return "\n".join(lines_of(self))

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook displays: the conclusion, and then the other lines of `str`."""
        *lines, conclusion = map(str.strip, lines_of(self))
        return facts_html(conclusion, (), lines)

    def _conclusion(self) -> tuple[str, str]:
        """Return the conclusion in short, and the rest of its sentences."""
        if self.contradictions:
            return "The evidence does not reproduce", ": the result contradicts its own counts."
        if self.differences:
            return "No conclusion", f": the replay ran the {self.origin}, whose claim differs from that of the result."
        if not self.valid:
            return "No conclusion", ": the fresh runs failed or depended on each other; see the warnings."
        other_code = "but the replay may have run other code than the audit; see the warnings."
        if self.changes and self.refuted:
            return "Fresh runs refute the claim", f", {other_code}"
        if not self.result.violated:
            if self.refuted:
                return "Fresh runs refute the claim", ", although the result did not refute it."
            return "Fresh runs do not refute the claim", ", either."
        if self.changes:
            return "Not confirmed", f": fresh runs do not refute the claim, {other_code}"
        if self.refuted:
            return "Confirmed", f": fresh runs refute the claim again (required: p <= {lower(self.level, 2)})."
        if math.isinf(self.runs_needed):
            return (
                "Not confirmed",
                ": fresh runs show no sign of the violation.  The verdict may have been a false alarm, or the attack "
                "found a different region this time.  A new audit with another seed can decide.",
            )
        needed = round(self.runs_needed)
        return (
            "Not confirmed yet",
            f": p <= {lower(self.level, 2)} is required.  About {needed:,} fresh runs per dataset would decide: "
            f"dpaudit replay FILE --trials {needed}, or --extend to double the runs until they decide.  The p-values "
            "of these two replays allow for each other; a third one would not count.",
        )


def lines_of(replay: Replay) -> list[str]:
    """Return the lines of `str`: the first states the verdict of the result, the last the conclusion."""
    witness = replay.result.witness
    assert witness is not None
    rows = []
    for name, counts in (("in the result", witness.counts), ("fresh", replay.counts)):
        x, n0, y, n1 = counts.hits
        shares = percent(x / max(1, n0)), percent(y / max(1, n1))
        rows.append(f"  {name:<14s} d0 {x:,} of {n0:,} ({shares[0]}), d1 {y:,} of {n1:,} ({shares[1]})")
    alpha, _ = replay.counts.rates
    allowed = 1 - float(replay.result.claim.symmetrized().beta(alpha))
    looked = f" and {replay.looks} interim analyses" if replay.looks > 1 else ""
    lines = [
        f"{replay.result.name}: {replay.result.verdict.value}, {replay.result.claim.label}",
        f"  pair {witness.pair}, attack {witness.attack}",
        f"  region: {witness.region}",
        *rows,
        f"  at a rate of {percent(alpha)} under d0, the claim allows at most {percent_at_most(allowed)} under d1",
        f"  fresh p-value: p <= {upper(replay.p_value, under=replay.level)}, corrected for two replays{looked} "
        f"({replay.counts.n0:,} runs per dataset after {replay.learned_from:,} to learn from, seed {replay.seed})",
        *(f"  the result contradicts itself: {words}" for words in replay.contradictions),
        *(f"  the result differs from its {replay.origin}: {words}" for words in replay.differences),
        *(f"  warning: {words}" for words in (*replay.changes, *replay.warnings)),
        "".join(replay._conclusion()),
    ]
    return [one_line(line.replace("\u00a0", " ")) for line in lines]


def contradictions(result: AuditResult) -> tuple[str, ...]:
    """Return that the verdict of a result does not follow from its p-value; () if it does, as in every file."""
    words = disagreement(result.verdict, result.p_value, confidence=result.confidence, valid=result.bounds_valid)
    return (words,) if words else ()


def level_of(result: AuditResult) -> float:
    """Return the largest p-value at which fresh runs refute the claim of a result."""
    return min(CONFIRMED, 1 - result.confidence)


def compared(
    found: Replay, origin: str, claim: TradeoffFunction, violations: Sequence[TradeoffFunction] | None
) -> Replay:
    """Return a replay with the differences between its result and the "config" or "test" that it ran."""
    planned, differences = planned_of(found.result.evidence), []
    if not same_claim(found.result.claim, claim):
        differences.append(differs("claim", found.result.claim.label, claim.label))
    if planned is not None and violations is not None:
        as_many = len(planned.violations) == len(violations)
        if not as_many or not all(map(same_claim, planned.violations, violations)):
            stated, here = (", ".join(one.label for one in claims) for claims in (planned.violations, violations))
            differences.append(differs("violation to detect", stated or "nothing", here or "nothing"))
    return replace(found, differences=tuple(differences), origin=origin)


def differs(what: str, stated: str, here: str) -> str:
    """Return a sentence about a difference between a result and its replay."""
    return f"the {what} is {stated} in the result, but {here} in the replay"


def same_claim(one: TradeoffFunction, other: TradeoffFunction) -> bool:
    """Whether two claims have the same text, except for rounding errors of their numbers."""
    a, b = str(one), str(other)
    if _NUMBER.sub("0", a) != _NUMBER.sub("0", b):
        return False
    numbers = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    return all(math.isclose(float(x), float(y), rel_tol=_CLOSE) for x, y in numbers)
