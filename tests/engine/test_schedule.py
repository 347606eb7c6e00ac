"""The rules that choose the next round of a sweep and the next release of a search keep guarantees and find changes."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import Pair, audit
from dpaudit.engine.result_parts import Facts, Ruling, ruling
from dpaudit.engine.schedule import (
    FAIR_SHARE,
    FIRST_TRIALS,
    GROWTH,
    Round,
    Spent,
    most_audits,
    next_release,
    next_round,
)
from dpaudit.result.command_outcomes import State, changes, decided, stretches_of
from dpaudit.result.values import Verdict

NEW = Spent(log_threshold=9.0, most=100_000)
USED = replace(NEW, trials=300, seconds=2.0, last_seconds=2.0)


def chosen(cells: list[Spent], left: float) -> Round:
    found = next_round(cells, left)
    assert found is not None
    return found


def test_every_cell_gets_a_first_round_and_an_equal_part_of_the_time_at_most() -> None:
    assert chosen([USED, NEW, NEW], 100) == Round(1, FIRST_TRIALS, 25.0)
    assert chosen([replace(NEW, most=50)], 100).trials == 50
    assert chosen([replace(NEW, closed=True), USED], 100).cell == 1


def test_time_goes_to_the_cell_whose_threshold_is_nearest() -> None:
    slow = replace(USED, log_e=6.0, last_seconds=4.0, seconds=4.0)
    soon = replace(USED, log_e=4.0)
    assert slow.remaining_seconds == pytest.approx(6.0)
    assert soon.remaining_seconds == pytest.approx(4.5)
    assert chosen([USED, slow, soon], 100) == Round(2, int(GROWTH * 300), 100)


def test_a_round_fits_into_the_remaining_time_and_below_the_maximum() -> None:
    assert chosen([USED], 5.0).trials == 600, "80 % of the time is twice the last round"
    assert next_round([USED], 3.0) is None
    assert chosen([replace(USED, most=310)], 100).trials == 310
    assert next_round([replace(USED, most=300)], 100) is None
    assert next_round([NEW], 0.0) is None
    assert next_round([replace(USED, closed=True)], 100) is None


def test_a_sweep_ends_in_time_and_starves_no_cell() -> None:
    """A model of the costs: a round takes time in proportion to its runs, and one cell always has growing evidence."""
    cells, left = [NEW] * 12, 200.0
    while (found := next_round(cells, left)) is not None:
        cell = cells[found.cell]
        seconds = (1 + found.cell / 4) * found.trials / 300
        log_e = 1 + math.log(found.trials) / 3 if found.cell == 5 else 0.0
        cells[found.cell] = replace(
            cell, trials=found.trials, seconds=cell.seconds + seconds, last_seconds=seconds, log_e=log_e
        )
        left -= seconds
    assert left >= 0
    each = [cell.seconds for cell in cells]
    assert min(each) >= FAIR_SHARE * sum(each) / len(each) / GROWTH
    assert max(each) == each[5]


def test_a_rule_that_looks_at_the_evidence_keeps_the_guarantee() -> None:
    """The wealth of a cell is a fair game, and rounds go where it grows.  Fails by chance < 1 in 10**6."""
    rng, cells, level, sweeps = np.random.default_rng(0), 8, 0.2, 150
    threshold = math.log(cells / level)
    false = 0
    for _ in range(sweeps):
        states, wealth, left = [replace(NEW, log_threshold=threshold)] * cells, np.zeros(cells), 40.0
        while (found := next_round(states, left)) is not None:
            cell = states[found.cell]
            steps = np.log(rng.choice([0.8, 1.2], size=(found.trials - cell.trials) // 30))
            path = wealth[found.cell] + np.cumsum(steps)
            wealth[found.cell] = path[-1]
            log_e = max(cell.log_e, float(path.max()))
            seconds = found.trials / 300
            states[found.cell] = replace(
                cell,
                trials=found.trials,
                log_e=log_e,
                seconds=cell.seconds + seconds,
                last_seconds=seconds,
                closed=log_e >= threshold,
            )
            left -= seconds
        false += any(cell.closed for cell in states)
    assert false <= binom.ppf(1 - 1e-6, sweeps, level)


def test_a_round_repeats_the_wealth_of_the_rounds_before(tmp_path: Path) -> None:
    """All rounds of a cell are one test.  If their wealth differed, each round would be another test."""
    pairs = [Pair([0], [1]), Pair([0], [0.5])]

    def noise(dataset: list[float], rng: np.random.Generator) -> float:
        return dataset[0] + rng.normal(scale=2.0)

    paths = []
    for trials in (37, 60):
        result = audit(
            noise, "gaussian(mu=1)", pairs, attacks="median_clipped", trials=trials, seed=1, store=tmp_path / "s"
        )
        paths.append(list(zip(result.history.trials.tolist(), result.history.log_e.tolist(), strict=True)))
    first, second = paths
    assert len(first) > 3
    assert second[: len(first)] == first


STATES = {"b": State.BAD, "g": State.GOOD, "o": State.OPEN, "s": State.SKIPPED}


def searched(history: str, most: int | None = None, named: Sequence[int] = ()) -> tuple[list[State | None], list[int]]:
    """Search a history, such as "ggbb" for two good releases before two bad ones.

    Returns:
        The states that the search knows at its end, and the releases in the order in which it tried them.
    """
    states: list[State | None] = [None] * len(history)
    tried: list[int] = []
    audited, limit = 0, most_audits(len(history), len(named)) if most is None else most
    while audited < limit and (number := next_release(states, named)) is not None:
        assert states[number] is None, "no release is tried twice"
        states[number] = STATES[history[number]]
        audited += states[number] is not State.SKIPPED
        tried.append(number)
    return states, tried


def exact(states: Sequence[State | None]) -> list[tuple[int, int]]:
    """Return the changes between two releases with no other release between them."""
    return [(one.before, one.after) for one in changes(states) if one.after == one.before + 1]


@pytest.mark.parametrize(("before", "after"), ["gb", "bg"])
def test_a_single_change_is_located_within_the_audits_of_the_theorem(before: str, after: str) -> None:
    for n in (2, 3, 4, 7, 16, 17, 33):
        for at in range(1, n):
            states, tried = searched(before * at + after * (n - at), most=math.ceil(math.log2(n)) + 2)
            assert exact(states) == [(at - 1, at)], (n, at)
            assert tried[:2] == [0, n - 1], "the ends come first"


def test_the_default_is_never_less_than_the_theorem_and_never_more_than_the_releases() -> None:
    assert [most_audits(n) for n in (1, 2, 3, 6, 8, 9, 27, 100, 1000)] == [1, 2, 3, 6, 8, 9, 12, 16, 22]
    assert all(most_audits(n) >= min(n, 2 * math.ceil(math.log2(n)) + 1) for n in range(1, 200))


def test_a_history_without_a_change_is_looked_at_in_evenly_spaced_releases() -> None:
    for history in ("g" * 33, "b" * 33):
        states, tried = searched(history)
        assert not changes(states)
        assert len(tried) == most_audits(33) == 14
        known = decided(states)
        assert max(b - a for a, b in pairwise(known)) <= 4


def test_a_bug_that_was_introduced_and_mended_is_found_between_two_good_ends() -> None:
    for n in (3, 8, 17):
        for first in range(1, n // 2 + 1):
            for last in range(n // 2, n - 1):
                states, _ = searched("g" * first + "b" * (last - first + 1) + "g" * (n - last - 1))
                assert exact(states) == [(first - 1, first), (last, last + 1)], (n, first, last)
    states, _ = searched("ggbgg")
    assert [one.state for one in stretches_of(states)] == [State.GOOD, State.BAD, State.GOOD]


def test_a_short_stretch_is_found_if_a_config_names_a_release_in_it() -> None:
    history = "g" * 13 + "bb" + "g" * 20
    states, tried = searched(history, named=[14])
    assert exact(states) == [(12, 13), (14, 15)]
    assert tried[:3] == [14, 0, 34]


def test_a_second_change_is_found_by_the_audits_that_remain_after_the_first_one() -> None:
    states, _ = searched("g" * 4 + "b" * 8 + "g" * 8 + "b" * 7, most=20)
    assert exact(states) == [(3, 4), (11, 12), (19, 20)]


@pytest.mark.parametrize("passed", ["s", "o"])
def test_neighbours_take_the_place_of_ends_and_middles_without_a_verdict(passed: str) -> None:
    history = passed * 3 + "gg" + passed + "gbb" + passed * 2
    states, _ = searched(history, most=len(history))
    assert exact(states) == [(6, 7)]
    assert decided(states) == [3, 4, 6, 7, 8]


def test_if_nothing_can_be_audited_every_release_is_tried_once() -> None:
    assert sorted(searched("sssss")[1]) == [0, 1, 2, 3, 4]
    assert len(searched("ooooooooo", most=4)[1]) == 4, "inconclusive audits count"
    assert searched("b")[1] == [0]


# --- the rule that gives the verdict, over all combinations of facts.  No audit runs here and nothing is random


QUIET = Facts(fixed=False, trials=1000, allowed=1000, refuted=False)
PRESENT: dict[str, dict[str, Any]] = {  # fact -> arguments of Facts that state it
    "fixed": {"fixed": True},
    "refuted": {"refuted": True},
    "interrupted": {"interrupted": True},
    "failure": {"failure": "the mechanism raised"},
    "void": {"void": True, "dependent": ("an attack kept outputs",)},
    "dependent": {"dependent": ("an attack kept outputs",)},
    "doubts": {"doubts": ("no noise at all",)},
    "dropped": {"dropped": ("the mechanism failed on one pair",)},
    "unseen": {"unseen": ("no conclusion about one pair",)},
    "ignored": {"ignored": ("the dataset is not used",)},
    "too_few": {"too_few": "too few to see any violation"},
    "detect_missed": {"detect_missed": "too few to see that violation"},
}
BLOCKING = set(PRESENT) - {"fixed", "refuted", "dropped"}  # each of them forbids "no violation found"


def facts(*present: str, **more: Any) -> Facts:
    changes: dict[str, Any] = {}
    for name in present:
        changes |= PRESENT[name]
    return replace(QUIET, **changes | more)


def combinations() -> list[frozenset[str]]:
    names = sorted(PRESENT)
    return [frozenset(chosen) for size in range(len(names) + 1) for chosen in itertools.combinations(names, size)]


ALL: list[tuple[frozenset[str], Facts, Ruling]] = [
    (present, facts(*present), ruling(facts(*present))) for present in combinations()
]


def test_a_violation_is_reported_if_and_only_if_valid_counts_refute_the_claim() -> None:
    for present, _, found in ALL:
        void = present & {"dependent", "void", "doubts"}
        early = "fixed" in present and present & {"interrupted", "failure"}
        assert (found.verdict is Verdict.VIOLATION) == ("refuted" in present and not void and not early), present


def test_no_violation_is_found_only_if_nothing_speaks_against_it() -> None:
    for present, _, found in ALL:
        quiet = not present & (BLOCKING | {"refuted"})
        assert (found.verdict is Verdict.NO_VIOLATION) == quiet, present


def test_a_verdict_is_certified_and_doubts_or_dependence_certify_nothing() -> None:
    for present, _, found in ALL:
        if found.verdict is not Verdict.INCONCLUSIVE:
            assert found.bounds_valid, present
        if present & {"dependent", "void", "doubts"}:
            assert not found.bounds_valid, present


def test_a_fixed_number_of_trials_that_was_not_reached_certifies_nothing() -> None:
    for present, _, found in ALL:
        if present & {"dependent", "void", "doubts"}:
            continue
        assert found.bounds_valid == (not ("fixed" in present and present & {"interrupted", "failure"})), present


def test_an_audit_that_may_stop_at_any_time_certifies_nothing_without_trials() -> None:
    assert not ruling(facts("failure", trials=0)).bounds_valid
    assert ruling(facts("failure", trials=1)).bounds_valid


def test_another_obstacle_never_leads_from_inconclusive_to_a_verdict() -> None:
    found = {present: one.verdict for present, _, one in ALL}
    for present, verdict in found.items():
        if verdict is Verdict.INCONCLUSIVE:
            for more in BLOCKING | {"dropped"}:
                assert found[present | {more}] is Verdict.INCONCLUSIVE, (present, more)


def test_dropped_pairs_alone_decide_nothing() -> None:
    found = {present: one for present, _, one in ALL}
    for present, one in found.items():
        other = found[present | {"dropped"}]
        assert (other.verdict, other.bounds_valid, other.stopped_by) == (one.verdict, one.bounds_valid, one.stopped_by)


def test_what_stopped_the_audit() -> None:
    for present, _, found in ALL:
        ended = (
            "interruption" if "interrupted" in present else
            "failure" if present & {"failure", "void"} else
            "trials"
        )  # fmt: skip
        if "fixed" in present or "refuted" not in present:
            assert found.stopped_by == ended, present
        else:
            void = present & {"dependent", "void", "doubts"}
            assert found.stopped_by == ("dependence" if void else "evidence"), present


@pytest.mark.parametrize(
    ("present", "reason"),
    [
        (PRESENT.keys() - {"interrupted"}, "an attack kept outputs"),
        (PRESENT.keys() - {"void", "dependent"}, "no noise at all"),
        (["unseen", "too_few", "detect_missed", "dropped"], "no conclusion about one pair"),
        (["ignored", "too_few", "detect_missed"], "the dataset is not used"),
        (["too_few", "detect_missed", "dropped"], "too few to see any violation"),
        (["detect_missed", "dropped"], "too few to see that violation"),
        (["interrupted", "failure", "unseen", "too_few"], "interrupted after 1000 of 1000 runs per dataset"),
        (["failure", "unseen"], "the mechanism raised; the 1000 runs per dataset before it are kept"),
    ],
)
def test_the_reason_of_an_inconclusive_audit_is_the_last_one(present: Any, reason: str) -> None:
    found = ruling(facts(*present))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reasons[-1] == reason


def test_an_inconclusive_audit_always_has_a_reason() -> None:
    for present, _, found in ALL:
        assert found.reasons or found.verdict is not Verdict.INCONCLUSIVE, present


def test_notes_and_side_effects_are_reported_whatever_the_verdict_is_and_before_its_reason() -> None:
    for present, given, without in ALL:
        found = ruling(replace(given, notes=("a note",), side_effects=("it printed",)))
        assert found.reasons[0] == "a note", present
        assert [words for words in found.reasons if words not in ("a note", "it printed")] == list(without.reasons)
        assert found.verdict is without.verdict


def test_a_dropped_pair_is_reported_unless_a_failure_ended_the_audit() -> None:
    assert ruling(facts("dropped")).reasons == ("the mechanism failed on one pair; the pair was dropped",)
    assert not any("dropped" in words for words in ruling(facts("dropped", "failure")).reasons)


def test_only_an_audit_that_is_about_to_report_a_violation_is_judged() -> None:
    for present, given, found in ALL:
        doubtless = ruling(replace(given, doubts=()))
        assert given.accused == (doubtless.verdict is Verdict.VIOLATION), present
        assert found.verdict is not Verdict.VIOLATION or given.accused, present
