"""Page 1: the verdict in a sentence, three numbers, one picture, what it means, what to do, and four facts."""

import dataclasses
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit import GaussianDP
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit.result.summary import weakness
from dpaudit.result.values import AttackRow
from dpaudit.text import Reason, WarningCode
from dpaudit_reports.blocks import Code, Span, Strong
from dpaudit_reports.claimed import least_found, least_found_in_words
from dpaudit_reports.figures.tradeoff import point_name, tradeoff_svg
from dpaudit_reports.formats import Audited
from dpaudit_reports.rates import RegionStatus, difference, region_status, sides
from dpaudit_reports.sections.advice import commands_of
from dpaudit_reports.sections.answer import panel
from dpaudit_reports.terminal import brief
from dpaudit_reports.verdicts import why_inconclusive

from . import sample
from .audits import as_fixed, dependent, markdown, text_of, with_witness, words_in
from .test_kinds_of_audit import learned, many, of_scores, steps, stream
from .test_pdf import pages
from .test_sections import one_run


def words(spans: tuple[Span, ...]) -> str:
    return "".join(span if isinstance(span, str) else span.text for span in spans).replace("\u00a0", " ")


def top(result: AuditResult) -> str:
    return text_of(result).replace("\u00a0", " ").partition("Errors of the attack")[0]


def with_pair(result: AuditResult, d0: str, d1: str) -> AuditResult:
    row = dataclasses.replace(result.pairs[0], d0=d0, d1=d1, label=result.witness.pair)
    return dataclasses.replace(result, pairs=(row,))


ADDED = ("[0.2, 0.5]", "[0.2, 0.5, 1.0]")
LATER = {"counted": "later", "alpha_lower": 0.041, "alpha_upper": 0.083, "beta_lower": 0.61, "beta_upper": 0.72}


def counted(x: int, n0: int, y: int, n1: int) -> dict[str, Any]:
    """Return the fields of a region with x of n0 outputs of d0 and y of n1 of d1, under the claim G_1."""
    whole = sample.violation().witness.counts
    counts = dataclasses.replace(whole, false_positives=x, n0=n0, false_negatives=n1 - y, n1=n1)
    claimed = float(GaussianDP(1.0).beta(x / n0))
    return {"counts": counts, "alpha": x / n0, "beta": 1 - y / n1, "claimed_beta": claimed}


def frozen(**fields: Any) -> AuditResult:
    shown = {**counted(3, 200, 60, 200), **LATER, "allowed_upper": 0.1234, "counted": "frozen", **fields}
    return as_fixed(with_pair(with_witness(sample.violation(), **shown), *ADDED))


KINDS: dict[str, Callable[[], AuditResult]] = {
    "violation": sample.violation,
    "confirmed": lambda: sample.confirmed(100, 600),
    "consistent": lambda: sample.confirmed(3, 13, 20, "consistent"),
    "fixed": frozen,
    "no violation": sample.no_violation,
    "inconclusive": sample.inconclusive,
    "dependent": dependent,
    "stream": lambda: stream(0.5, 2001),
    "runs": lambda: of_scores(4.0, "runs"),
    "canaries": lambda: one_run(4.0),
    "training": many,
    "learned": lambda: learned("sequential"),
    "steps": steps,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_report_of_one_audit_has_two_pages_and_at_most_300_words_on_the_first(kind: str, tmp_path: Path) -> None:
    found = pages([KINDS[kind]()], tmp_path).pages
    assert len(found) == 2
    assert len(found[0].extract_text().split()) <= 300


def test_a_violation_is_told_in_counts_beside_what_the_claim_allows() -> None:
    found = top(frozen())
    assert "▲ The claim μ = 1 is false." in found
    assert "The output is above 0.52 in 60 of 200 runs with the record 1.0 and in 3 of 200 without it." in found
    assert "The claim allows 25." in found  # 24.68, rounded up
    assert "Limit: the claim at 8.3 % without the record." in found
    assert "can tell whether the record was in the data" in found
    shown = panel(frozen())
    assert "the claim allows at most 12.4" in words_in(shown[0].svg())


def test_counts_of_an_audit_that_stopped_by_them_are_not_compared_with_what_the_claim_allows() -> None:
    """In 119 of 119 audits, the interval of such a rate included what "the claim allows", which the box called less."""
    shown = {**counted(3, 200, 60, 200), **LATER, "allowed_upper": 0.29}  # the interval of 60 of 200 begins at 28 %
    result = dataclasses.replace(with_witness(sample.violation(), **shown), stopped_by="evidence")
    found = top(with_pair(result, *ADDED))
    assert "60 of 200 runs with the record 1.0 and in 3 of 200 without it." in found
    assert "These counts illustrate the proof, which rests on all 900 runs per dataset." in found
    assert "The claim allows" not in found
    assert "the loss may be much larger" in found


def test_counts_of_moving_scores_have_no_intervals_and_no_picture_of_rates() -> None:
    moving = {**counted(300, 5000, 1675, 5000), "counted": "moving", "alpha_upper": float("nan")}
    result = with_witness(sample.violation(), **moving)
    assert "The attack's region changed while the attack learned." in top(result)
    assert "have no intervals" in text_of(result)
    assert "allows" not in top(result).split("What this means")[0].split("is false")[1].split("largest")[0]
    assert point_name(result) == ""
    shown = panel(result)
    assert shown[0].title == "How large the privacy loss is"


def test_a_confirmed_violation_has_the_size_and_the_counts_of_the_fresh_runs_and_no_caveat() -> None:
    result = sample.confirmed(100, 600)
    found = top(result)
    assert f"μ ≥ {int(1000 * result.mu_lower) / 1000} proven by fresh runs (claimed: μ ≤ 1)" in found
    assert "Confirmed by 1,000 fresh runs, p ≤" in found
    for never in ("illustrate", "much larger", "before you report it", "not known"):
        assert never not in found, never
    assert "1 in 20" in found  # 95 % confidence


def test_a_size_that_is_not_measured_comes_with_the_number_of_runs_that_would_do() -> None:
    result = sample.confirmed(3, 13, 20, "consistent")
    assert result.runs_for_size is not None
    found = top(result)
    assert "how much more is not known" in found
    assert f"confirm: {result.runs_for_size:.0f}" in found
    unknown = top(sample.confirmed(300, 310, outcome="not confirmed"))
    assert "confirm:" not in unknown


def test_no_violation_shows_what_is_proven_claimed_and_would_have_been_found() -> None:
    found = top(sample.no_violation())
    assert "○ No violation found." in found
    assert "finds a violation as large as μ = 1.12 with 90 % probability, in the best case" in found
    assert "This is no proof of the claim" in found
    shown = panel(sample.no_violation())
    for drawing in (shown[0].svg(), shown[0].wide()):
        assert "claimed: at most 1" in words_in(drawing)
        assert "0.8719" in words_in(drawing)


GUESSING = AttackRow(name="logistic", weight=1.0, log_loss=0.6932)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"attacks": (GUESSING,), "mu_lower": 0.0}, "no attack told the two datasets apart better than guessing"),
        ({"mu_lower": 0.2}, "only mu >= 0.2 of 1 is proven"),
        ({}, ""),
    ],
)
def test_an_audit_that_could_not_see_much_says_so_everywhere(fields: Any, why: str) -> None:
    result = dataclasses.replace(sample.no_violation(), **fields)
    assert weakness(result).startswith(why)
    assert bool(weakness(result)) is bool(why)
    weak = "could not see much"
    for said in (top(result), str(result), brief(Audited(name="a", result=result)), markdown(result)):
        assert (weak in said) is bool(why)
        assert ("as large as" in said or "would have" in said) is not bool(why)


@pytest.mark.parametrize(
    ("detectable", "expected"), [("gaussian(mu=1.27341)", "μ = 1.274"), ("pure(epsilon=2)", "pure(epsilon=2)")]
)
def test_what_would_have_been_found_is_in_the_parameter_of_the_claim_if_it_is_of_its_kind(
    detectable: str, expected: str
) -> None:
    seen = dataclasses.replace(sample.no_violation().detectable, claim=detectable)
    result = dataclasses.replace(sample.no_violation(), detectable=seen)
    assert words(least_found_in_words(result)) == expected
    assert (least_found(result) is not None) == expected.startswith("μ")


def test_the_query_that_gives_a_record_away_is_stated_before_the_counts() -> None:
    query = "rows with city = Ulm: 0 without the record, 1 to 4 with it"
    found = top(frozen(query=query))
    assert f"In the released tables: {query}." in found
    assert found.index(query) < found.index("60 of 200")
    assert "In the released tables" not in top(frozen())


@pytest.mark.parametrize(
    ("d0", "d1", "on0", "on1", "change"),
    [
        (*ADDED, "without it", "with the record 1.0", "one record added"),
        (*ADDED[::-1], "with it", "without the record 1.0", "one record removed"),
        ("[0, 0, 1]", "[0, 1, 1]", "with 0 in its place", "with the record 1", "one record replaced"),
        ("[1, 2]", "[2, 1]", "on the first", "on the second dataset", ""),
        ("[1, …]", "[1, …, 2]", "on the first", "on the second dataset", ""),
        ("array([1.])", "array([2.])", "on the first", "on the second dataset", ""),
        ("[]", repr(["x" * 30]), "without it", "with the record", "one record added"),
        (repr(["y" * 30]), repr(["x" * 30]), "on the first", "on the second dataset", "one record replaced"),
    ],
)
def test_a_record_is_named_only_if_the_datasets_are_known_and_differ_in_it(
    d0: str, d1: str, on0: str, on1: str, change: str
) -> None:
    found = sides(with_pair(sample.violation(), d0, d1), "one record changed")
    assert (found.on0, found.on1, found.change) == (on0, on1, change)


def test_the_difference_is_strong_and_nothing_of_a_short_dataset_is_left_out() -> None:
    assert difference(*ADDED) == ((Code("[0.2, 0.5]"),), (Code("[0.2, 0.5, "), Strong("1.0"), Code("]")))
    long0, long1 = str([7] * 400 + [1] + [7] * 400), str([7] * 400 + [2] + [7] * 400)
    first, second = difference(long0, long1)
    assert [span.text for span in first + second if isinstance(span, Strong)] == ["1", "2"]
    assert len(words(first)) < 200
    assert difference("same", "same") == ((Code("same"),), (Code("same"),))


def test_datasets_that_the_first_page_shortens_are_listed_in_full() -> None:
    long0, long1 = str([7] * 100 + [1]), str([7] * 100 + [2])
    result = with_pair(sample.violation(), long0, long1)
    assert long0 not in top(result)
    assert long0 in text_of(result)
    assert long1 in text_of(result)


# --- commands


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({"audit": "name: x"}, "dpaudit replay opendp-gaussian-sum.json"),
        ({"test": "tests/test_x.py::test_y"}, "dpaudit replay FILE.json   # the file that the test's message names"),
        ({}, "dpaudit.replay(result, mechanism, pairs)   # in Python"),
    ],
)
def test_the_replay_line_is_one_that_works(environment: dict[str, str], line: str) -> None:
    assert commands_of(dataclasses.replace(sample.violation(), provenance=Provenance.read(environment)))[0] == line


def test_a_name_in_a_command_is_quoted_for_the_shell() -> None:
    about = Provenance.read({"audit": "name: x"})
    commands = commands_of(dataclasses.replace(sample.violation(), name="a b; rm -rf ~", provenance=about))
    assert commands[0] == "dpaudit replay 'a b; rm -rf ~.json'"


CONFIG = """\
name: half the noise
claim: pure(epsilon=1)
mechanism: {builtin: laplace, params: {scale: 0.3}}
pairs: [{d0: [0], d1: [1]}]
trials: 2000
seed: 1
attacks: threshold
confirm: never
"""


def test_the_printed_commands_work_in_the_folder_of_the_report(tmp_path: Path) -> None:
    """The audit ran elsewhere.  The claim is far off, so audit and replay fail to refute it with odds below 1e-9."""
    (tmp_path / "c.yaml").write_text(CONFIG)
    dpaudit = [sys.executable, "-m", "dpaudit"]
    subprocess.run(
        [*dpaudit, "run", "c.yaml", "-o", "out", "-q", "--no-pdf"], cwd=tmp_path, check=False, capture_output=True
    )
    result = AuditResult.from_json(tmp_path / "out" / "half the noise.json")
    commands = commands_of(result)
    assert [shlex.split(command)[1] for command in commands] == ["replay", "reproduce"]
    for command in commands:
        _, *arguments = shlex.split(command)
        done = subprocess.run([*dpaudit, *arguments], cwd=tmp_path / "out", capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
    assert (tmp_path / "out" / "script.py").is_file()


# --- what is not proven is not stated


def test_where_nothing_came_near_a_violation_no_rates_and_no_command_are_shown() -> None:
    result = with_witness(sample.no_violation(), **counted(0, 5000, 5, 5000), p_value=0.9)
    assert region_status(result) is RegionStatus.FAR
    found = text_of(result)
    for never in ("allows at most", "output above 0.52", "dpaudit replay"):
        assert never not in found
    assert "closest" not in words_in(tradeoff_svg(result))
    assert commands_of(result) == []


def test_what_came_closest_is_not_called_a_witness() -> None:
    near = {**counted(300, 5000, 1675, 5000), "p_value": 0.1, **LATER}
    result = with_witness(sample.no_violation(), **near)
    found = text_of(result)
    assert "Closest to a violation" in found
    assert "4.1 to 8.3" in found
    assert "28 to 39" in found  # the interval of d1's rate
    assert "closest" in words_in(tradeoff_svg(result))
    assert "witness" not in words_in(tradeoff_svg(result))


def test_rates_have_exact_intervals_and_the_allowance_is_at_their_end() -> None:
    # scipy.stats.binomtest(300, 5000).proportion_ci: 0.05358 to 0.06695
    both = {"alpha_lower": 0.05358, "alpha_upper": 0.06695, "beta_lower": 0.6517, "beta_upper": 0.6781}
    limit = 1 - float(GaussianDP(1.0).beta(0.06695))
    fields = {**counted(300, 5000, 1675, 5000), **both, "allowed_upper": limit}
    found = text_of(as_fixed(with_witness(sample.violation(), **fields))).replace("\u00a0", " ")
    assert "5.35 to 6.7 %" in found
    allowed = 100 * (1 - GaussianDP(1.0).beta(0.067))  # at the rate that the text shows
    (shown,) = re.findall(r"allows at most ([\d.]+) % of d1, if the rate of d0 is at most 6.7 %", found)
    assert allowed <= float(shown) <= allowed + 0.1


@pytest.mark.parametrize(("p_value", "near"), [(0.01, True), (0.2, True), (0.21, False), (1.0, False)])
def test_the_p_value_of_the_counts_decides_what_is_near(p_value: float, near: bool) -> None:
    result = with_witness(sample.no_violation(), p_value=p_value)
    assert (region_status(result) is RegionStatus.CLOSEST) is near


@pytest.mark.parametrize(
    ("warnings", "reason"),
    [
        ((Reason("30 runs are too few to see gaussian(mu=1.1)", WarningCode.TOO_FEW), "x"), "30 runs are too few"),
        (("attack x was dropped", "d0 and d1 are equal"), "D0 and d1 are equal.".replace("D0", "d0")),
    ],
)
def test_an_inconclusive_audit_gives_its_reason(warnings: Any, reason: str) -> None:
    result = dataclasses.replace(sample.inconclusive(), stopped_by="trials", warnings=warnings)
    assert reason in top(result)
    assert len(why_inconclusive(result)) == 1


def test_where_nothing_is_certified_nothing_is_shown_as_evidence() -> None:
    found = text_of(dependent())
    assert "Runs depend on each other: 68 of 237 outputs equal the output 25 runs earlier, on d0." in found
    assert "Nothing is certified: the runs depend on each other." in found
    for never in ("With 95 % confidence", "e-value", "p-value", "allows at most", "would have been found with"):
        assert never not in found, never
    assert "would have been found" not in words_in(panel(dependent())[0].wide())
    assert "nothing is proven by" in words_in(panel(dependent())[0].wide())
    assert "#d55e00" not in tradeoff_svg(dependent()).lower()
    assert "observed, not valid" in words_in(tradeoff_svg(dependent()))
