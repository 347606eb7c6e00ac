"""The design of given scores: how canaries were included, and which run each score comes from."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.engine.score_guesses import Inclusion, Independence, Labels
from dpaudit.settings.limits import shown

DESIGNS = {
    "coins": "an independent fair coin decided for each canary",
    "fixed_number": "a fixed number of canaries was drawn at random, without replacement",
}
"""Meaning of each choice of `included_at_random`."""


def check_design(independence: Independence, inclusion: Any) -> Inclusion:
    """Return how canaries were included."""
    if not isinstance(inclusion, str) or inclusion not in DESIGNS:
        choices = "; ".join(f"{choice!r}: {words}" for choice, words in DESIGNS.items())
        raise ValueError(f"included_at_random must be one of these, got {shown(inclusion)}.  {choices}")
    if independence == "runs" and inclusion != "coins":
        raise ValueError(
            'included_at_random is about canaries; with independence="runs" any number of runs on each dataset is '
            "allowed, so leave it out"
        )
    return "fixed_number" if inclusion == "fixed_number" else "coins"


def run_labels(
    given: Any, sizes: tuple[int, int], independence: Independence, inclusion: Inclusion
) -> tuple[Labels, Labels] | None:
    """Return the run of every score as a number from 0; None if there is one run."""
    if given is None:
        return None
    if independence == "runs":
        raise ValueError(
            'run states which canaries share a run; with independence="runs", every score comes from a run of its own, '
            "so leave run out, or choose another independence"
        )
    if independence == "canaries" and inclusion == "fixed_number":
        raise ValueError(
            'independent canaries of several runs must be included by coins; for included_at_random="fixed_number" in '
            "several runs, set independence=None"
        )
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError(f"run must be two lists: the runs of scores0, and the runs of scores1; got {shown(given)}")
    sides = [np.asarray(side) for side in given]
    for i, (side, n) in enumerate(zip(sides, sizes, strict=True)):
        if side.shape != (n,):
            raise ValueError(f"run[{i}] must name the run of each of {n} scores, got shape {side.shape}")
        if side.dtype.kind not in "biufU" or (side.dtype.kind == "f" and np.isnan(side).any()):
            raise ValueError(f"run[{i}] must consist of numbers or text without missing values, got {side.dtype}")
    if (sides[0].dtype.kind == "U") != (sides[1].dtype.kind == "U") and all(sizes):
        raise ValueError("run must name runs by numbers on both sides, or by text on both sides")
    names, places = np.unique(np.concatenate(sides), return_inverse=True)
    return None if len(names) == 1 else (places[: sizes[0]], places[sizes[0] :])


def check_drawn(labels: tuple[Labels, Labels] | None, sizes: tuple[int, int]) -> None:
    """Raise ValueError if none or all canaries of a run were included."""
    runs = int(max(side.max(initial=0) for side in labels)) + 1 if labels else 1
    counts = [np.bincount(side, minlength=runs) for side in labels] if labels else [np.array([n]) for n in sizes]
    for i, (out, into) in enumerate(zip(*counts, strict=True)):
        if not (out and into):
            where = f" of run {i + 1} (in sorted order)" if labels else ""
            raise ValueError(
                f"{into} of {out + into} canaries{where} were included; a fixed number must include some canaries "
                "and leave some out, since otherwise there is nothing to guess"
            )
