"""Numbers of guesses, runs and scores that are refused, and the messages about them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit import PureDP, audit_scores
from dpaudit.result import several_runs_evidence
from dpaudit.result.evidence import RunScoresEvidence, SeveralDrawnRunsEvidence, SeveralRunsEvidence


@pytest.mark.parametrize("independence", ["runs", "canaries", None])
@pytest.mark.parametrize("inclusion", ["coins", "fixed_number"])
@pytest.mark.parametrize("given", [0, -1, 1000, 2.5, "3", math.nan, True])
def test_an_impossible_number_of_guesses_is_refused(independence: Any, inclusion: Any, given: Any) -> None:
    """Zero guesses once gave a verdict: "0 of 0 guesses right"."""
    if independence == "runs" and inclusion == "fixed_number":
        return
    scores, of = np.arange(100.0), "runs" if independence == "runs" else "canaries"
    words = rf"guesses must be a whole number from 1 to the number of {of} \(100\), got '?{given}"
    with pytest.raises((TypeError, ValueError), match=words):
        audit_scores(scores[:40], scores[40:], independence=independence, included_at_random=inclusion, guesses=given)


@pytest.mark.parametrize("given", [0, 61, 2.5])
def test_an_impossible_number_of_guesses_in_each_run_is_refused(given: Any) -> None:
    scores, run = np.arange(100.0), np.arange(100) < 60
    words = rf"guesses must be a whole number from 1 to the number of canaries of the largest run \(60\), got {given}"
    with pytest.raises(ValueError, match=words):
        audit_scores(scores[::2], scores[1::2], independence=None, run=(run[::2], run[1::2]), guesses=given)


@pytest.mark.parametrize("inclusion", ["coins", "fixed_number"])
def test_runs_whose_bounds_would_take_minutes_are_refused_before_a_result_is_written(inclusion: Any) -> None:
    """dpaudit must be able to read what it writes; `from_json` has the same limits."""
    run = np.repeat(np.arange(several_runs_evidence.MAX_RUNS + 1), 4)
    scores, included = np.arange(len(run)), np.arange(len(run)) % 2 == 1
    with pytest.raises(ValueError, match="5,001 runs of 1 kinds with 20,004 guesses are too many"):
        audit_scores(
            scores[~included],
            scores[included],
            independence=None,
            included_at_random=inclusion,
            run=(run[~included], run[included]),
        )


@pytest.mark.parametrize("kind", [SeveralRunsEvidence, SeveralDrawnRunsEvidence])
@pytest.mark.parametrize(
    "runs",
    [
        [[10**11, 5 * 10**10, 10**11]] * 2,
        [[10**5, 48_000, 10**5]] * 2,
        [[1000 + i, 500, 500] for i in range(300)],
        [[60, 28, 30]] * 20_000,
        [[10**300, 0, 1]],
        [[2**36, 5, 9_980]],
        [[10**4, 5, 6_000]],
    ],
)
def test_a_small_file_of_many_guesses_is_refused(kind: Any, runs: Any) -> None:
    """Reading each of these files once took minutes, or all memory."""
    values = {"runs": runs, "guesses": sum(r for _, _, r in runs), "right": 0}
    with pytest.raises(ValueError, match=r"are too many|at most 68,719,476,736"):
        kind.from_json(values, PureDP(1.0))


@pytest.mark.parametrize(("kind", "guesses"), [(SeveralRunsEvidence, 4_900), (SeveralDrawnRunsEvidence, 2_400)])
def test_a_file_with_thousands_of_guesses_is_read(kind: Any, guesses: int) -> None:
    """The limit was 2,000 and 1,050 guesses, as reading once computed the bound on mu."""
    values = {"runs": [[5_000, 2_400, guesses]], "guesses": guesses, "right": guesses // 2}
    assert kind.from_json(values, PureDP(1.0)).guesses == guesses


def test_other_evidence_has_counts_that_bounds_can_be_computed_from() -> None:
    values = {"n0": 10**15, "n1": 10**15, "guesses": 10**14, "right": 6 * 10**13}
    with pytest.raises(ValueError, match="counts of 68,719,476,736 at most"):
        RunScoresEvidence.from_json(values, PureDP(1.0))


def test_a_confidence_is_taken_for_a_percentage_only_if_it_can_be_one() -> None:
    for confidence, hint in ((2, ""), (49, ""), (50, "; did you mean 0.5\\?"), (95, "; did you mean 0.95\\?")):
        with pytest.raises(ValueError, match=rf"between 0 and 1, got {confidence}{hint}$"):
            audit_scores([1.0, 2.0], [3.0, 4.0], independence="runs", confidence=confidence)
