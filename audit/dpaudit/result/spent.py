"""Describes the number of runs of an audit in words."""

from __future__ import annotations

import re

from dpaudit.result.evidence import Evidence
from dpaudit.text.rounding import count

_STEPS = re.compile(r"([\d,]{1,20}) steps; a fair coin chose the dataset of each\b.*")


def spent(evidence: Evidence, runs: int, warnings: tuple[str, ...] = ()) -> str:
    """Describe a number of runs in the unit of the audit, such as "200 runs per dataset" or "393 steps"."""
    if evidence.once:
        return "one run"
    guessed = evidence.guessed
    return evidence.words.spent.format(
        runs=f"{count(runs)} run{'' if runs == 1 else 's'}",
        steps=_steps(2 * runs, warnings),
        canaries="" if guessed is None else count(guessed.canaries),
    )


def _steps(most: int, warnings: tuple[str, ...]) -> str:
    """Write the number of steps: the smallest of `most` and the numbers of steps that the warnings state."""
    stated = [int(found[1].replace(",", "") or 0) for words in warnings if (found := _STEPS.fullmatch(words))]
    return count(min([most, *stated]))
