"""How often an event may occur in a number of audits if its stated probability holds."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import binom

BEYOND = 0.00135  # probability that a normal variable is more than three standard deviations above its mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The stated probability of an event."""

    rate: float
    least: bool = False  # whether the event has at least this probability, or else at most

    def allowed(self, audits: int) -> int:
        """Return the least, or the largest, allowed number of audits with the event.

        If the event has the stated probability, the number is beyond this bound with probability at most `BEYOND`.
        For many audits, the bound is the mean plus or minus about three standard errors.
        """
        if self.least:
            return audits - int(binom.isf(BEYOND, audits, 1 - self.rate))
        return int(binom.isf(BEYOND, audits, self.rate))

    def broken(self, audits: int, count: int) -> bool:
        return count < self.allowed(audits) if self.least else count > self.allowed(audits)

    def words(self, audits: int) -> str:
        return f"{'at least' if self.least else 'at most'} {self.allowed(audits):,}"
