"""The rule that gives the verdict, over all combinations of facts.  No audit runs here and nothing is random."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from dpaudit.engine.result_parts import Facts, Ruling, ruling
from dpaudit.result.values import Verdict

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
