"""Chooses which release of a package to audit next, to find the releases at which the verdict changes.

The history of a package is a list of states from the oldest to the newest release.  A release is decided if an audit
found a violation, or if all of its audits ended with the verdict "no violation found".  The search makes three kinds of
steps, in this order:

1. It audits the releases that the configs name, because somebody saw the fault there, and then the two ends.  If an end
   is not decided, its neighbour takes its place.
2. Between two decided releases with different states and no decided release between them, it audits the middle one.
   Releases that were tried and not decided are passed over.
3. If every change is located, it audits the middle of the longest stretch that no audit has looked into.  So further
   audits lie evenly spaced, and may show that the history is not monotone.  Then step 2 locates the new changes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise

from dpaudit.result.command_outcomes import State, changes, decided


def most_audits(releases: int, named: int = 0) -> int:
    """Return the default of the maximum number of releases that one command audits.

    Theorem:
        Let all n >= 2 releases be decidable, and let L = ceil(log2 n).  If the state changes once, L + 2 + p audits
        locate the change, where p is the number of named releases.  If the state changes twice, and a named release
        differs from both ends, 2 L + 2 + p audits locate both changes.

        *Proof.*  Step 1 takes at most 2 + p audits.  An audit in a stretch of k releases leaves at most floor(k / 2)
        releases on each side.  So a change in the stretch is located after at most ceil(log2(k + 1)) <= L audits.

    The default is 2 L + 2 + p, so that L audits remain for step 3 if the state changes once.
    """
    return min(releases, 2 * math.ceil(math.log2(releases)) + 2 + named)


def next_release(states: Sequence[State | None], named: Collection[int] = ()) -> int | None:
    """Return the index of the release to audit next."""
    for number in sorted(named):
        if states[number] is None:
            return number
    for end in (range(len(states)), range(len(states) - 1, -1, -1)):
        first = next((n for n in end if states[n] is None or states[n] in (State.BAD, State.GOOD)), None)
        if first is not None and states[first] is None:
            return first
    for change in changes(states):
        if inner := _untried(states, change.before, change.after):
            return inner[len(inner) // 2]
    known = decided(states)
    longest = max((_untried(states, *ends) for ends in pairwise(known)), key=len, default=[])
    return longest[len(longest) // 2] if longest else None


def _untried(states: Sequence[State | None], before: int, after: int) -> list[int]:
    return [n for n in range(before + 1, after) if states[n] is None]
