"""What a replay found, and the words it says it in."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.result.consistency import row
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Counts
from dpaudit.text.printable import one_line
from dpaudit.text.rounding import lower, percent, percent_at_most, upper

CONFIRMED = 0.001
"""The largest fresh p-value that confirms a violation."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Replay:
    """What a replay found beside what the result says."""

    result: AuditResult
    counts: Counts  # of the region, on fresh runs
    learned_from: int  # fresh runs per dataset before those
    p_value: float  # of the claim, exact for all looks together; 1 if `valid` is False
    seed: int
    contradictions: tuple[str, ...]  # what the result says against its own counts
    warnings: tuple[str, ...]
    looks: int = 1  # how often the fresh counts were tested
    valid: bool = True  # False if fresh runs depended on each other or failed: they say nothing then
    unchecked: str = ""  # what could not be computed again, since another version wrote the result; "" if nothing
    runs_needed: float = math.nan  # about so many fresh runs per dataset would decide; inf if there is no sign of it

    @property
    def level(self) -> float:
        """The largest p-value at which fresh runs refute the claim: 0.001, or the audit's significance if smaller."""
        return level_of(self.result)

    @property
    def refuted(self) -> bool:
        """Whether the fresh runs alone refute the claim, at `level`."""
        return self.p_value <= self.level

    @property
    def reproduced(self) -> bool:
        """Whether nothing here speaks against the result.

        True if the result agrees with its own counts, the fresh runs are valid, and they refute the claim if the result
        does.  False does not show that the result is wrong: a violation may be "not confirmed yet", see `runs_needed`.
        """
        return self.valid and not self.contradictions and (self.refuted or not self.result.violated)

    def __repr__(self) -> str:
        return (
            f"<Replay of {self.result.name!r}: {self._conclusion().partition(':')[0].lower()}, "
            f"p <= {upper(self.p_value, under=self.level)}, {self.counts.n0:,} runs per dataset, seed {self.seed}>"
        )

    def __str__(self) -> str:
        witness = self.result.witness
        if witness is None:
            raise AssertionError("a replay is of a witness")
        rows = [("in the result", witness.counts), ("fresh", self.counts)]
        alpha = self.counts.false_positives / max(1, self.counts.n0)
        allowed = 1 - float(self.result.claim.symmetrized().beta(alpha))
        looked = f", corrected for {self.looks} looks" if self.looks > 1 else ""
        lines = [
            f"{self.result.name}: {self.result.verdict.value}, {self.result.claim.label}",
            f"  pair {witness.pair}, attack {witness.attack}",
            f"  region: {witness.region}",
            *(f"  {name:<14s} {row(counts)}" for name, counts in rows),
            f"  the claim allows at most {percent_at_most(allowed)} under d1 where {percent(alpha)} are under d0",
            f"  fresh exact p-value: p <= {upper(self.p_value, under=self.level)}{looked} ({self.counts.n0:,} runs per "
            f"dataset after {self.learned_from:,} to learn from, seed {self.seed})",
            *(f"  the result contradicts itself: {words}" for words in self.contradictions),
            *([f"  {self.unchecked}"] if self.unchecked else []),
            *(f"  warning: {words}" for words in self.warnings),
            self._conclusion(),
        ]
        return "\n".join(one_line(line.replace("\u00a0", " ")) for line in lines)

    def _conclusion(self) -> str:
        if self.contradictions:
            return "The evidence does not reproduce: the result is not what its own counts give."
        if not self.valid:
            return "Nothing can be said: the fresh runs failed or depended on each other, see the warnings."
        if not self.result.violated:
            return (
                "Fresh runs refute the claim; the result did not."
                if self.refuted
                else "Fresh runs do not refute the claim, either."
            )
        if self.refuted:
            return f"Confirmed: fresh runs refute the claim again; it takes p <= {lower(self.level, 2)}."
        if math.isinf(self.runs_needed):
            return (
                "Not confirmed: fresh runs give no sign of the violation.  The verdict may have been a false alarm, or "
                "the attack found another region this time; a new audit with another seed tells more."
            )
        needed = round(self.runs_needed)
        return (
            f"Not confirmed yet: it takes p <= {lower(self.level, 2)}.  About {needed:,} fresh runs per dataset would "
            f"decide: dpaudit replay FILE --trials {needed}, or --extend to go on from look to look."
        )


def level_of(result: AuditResult) -> float:
    """The largest p-value at which fresh runs refute the claim of a result."""
    return min(CONFIRMED, 1 - result.confidence)
