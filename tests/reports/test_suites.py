"""A report of several audits is short: an overview, a third of a page for each audit, and everything else once."""

import dataclasses
import re
from dataclasses import replace
from functools import cache
from io import BytesIO

import numpy as np
import pypdf
import pytest
from rich.cells import cell_len

import dpaudit_reports
from dpaudit import audit_scores
from dpaudit.claims import GaussianDP, PureDP, TradeoffFunction, ZeroConcentratedDP
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.result.command_outcomes import CellState, Sweep, SweptCell
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit.text import SIGNS
from dpaudit_reports import sweep_report, to_pdf
from dpaudit_reports.blocks import Document, Table, Tone
from dpaudit_reports.claimed import Ranges, ranges
from dpaudit_reports.command_outcomes import rows_of, share_of
from dpaudit_reports.document import document
from dpaudit_reports.figures.bars import cells_svg, mark_svg, strip_svg
from dpaudit_reports.formats import Screen
from dpaudit_reports.sections.several_audits import overview
from dpaudit_reports.terminal import document_text

from . import audits, sample
from .audits import text_of, words_in

CONFIG = "name: a\nclaim: gaussian(mu=1)\nmechanism: quickstart.opendp_sum:gaussian\n" + "- one line of a config\n" * 15


@cache
def kinds() -> tuple[AuditResult, ...]:
    about = Provenance.read({**sample.ENVIRONMENT, "audit": CONFIG})
    made = (sample.violation(), sample.no_violation(), sample.inconclusive())
    return tuple(dataclasses.replace(result, provenance=about) for result in made)


def many(number: int) -> list[AuditResult]:
    """Return results of all verdicts.  Equal results are the same object, since each computes its bounds once."""
    return [kinds()[i % 3] for i in range(number)]


@pytest.mark.parametrize(("number", "most"), [(12, 10), pytest.param(50, 35, marks=pytest.mark.slow)])
def test_a_suite_has_few_pages(number: int, most: int) -> None:
    assert len(pypdf.PdfReader(BytesIO(dpaudit_reports.to_pdf(many(number)))).pages) <= most


def test_pages_may_be_of_us_letter_size() -> None:
    for paper, size in (("letter", (612, 792)),):
        pages = pypdf.PdfReader(BytesIO(dpaudit_reports.to_pdf(many(2), paper=paper))).pages
        assert all((round(page.mediabox.width), round(page.mediabox.height)) == size for page in pages)
    with pytest.raises(ValueError, match="paper must be one of a4, letter, got 'a3'"):
        dpaudit_reports.to_pdf(many(1), paper="a3")


@cache
def twelve() -> Document:
    return audits.undrawn(document(many(12)))


def test_shared_facts_are_stated_once() -> None:
    page = dpaudit_reports.to_html(twelve())
    assert page.count("opendp 0.14.2") == 1
    assert "one line of a config" not in page, "two pages for each audit have it, and the result files"
    assert page.count("Not covered") == 12
    assert "404 of 700 runs" in page


def test_the_full_form_has_every_section_of_every_audit() -> None:
    full = document(many(2), full=True)
    alone = [document([result]).parts[0].blocks for result in many(2)]
    assert [list(map(type, part.blocks)) for part in full.parts] == [list(map(type, blocks)) for blocks in alone]
    assert not full.dense


def test_fifty_audits_fit_into_one_comment() -> None:
    text = dpaudit_reports.to_markdown(many(50))
    assert text.count("<details>") == 50
    assert "do not fit" not in text
    assert "proven 0.871 times the claim; blind up to 1.12 times the claim" in text


def test_the_ranges_are_multiples_of_the_claim() -> None:
    assert ranges(sample.no_violation()) == Ranges(0.8719, 1.12)
    assert ranges(sample.violation()) == Ranges(1.0432, float("inf"))
    assert ranges(sample.inconclusive()) == Ranges(0.0, float("inf"))
    assert ranges(audits.dependent()) == Ranges(0.0, float("inf"))


def test_a_claim_of_another_family_than_its_detectable_violation_has_a_blind_range() -> None:
    """The expected value is epsilon at delta = 10^-6 of both curves, from the claims themselves."""
    claim = ZeroConcentratedDP(0.5)
    result = dataclasses.replace(sample.no_violation(), claim=claim)
    found = ranges(result)
    assert found.blind_until == pytest.approx(max(1.0, GaussianDP(1.12).epsilon(1e-6) / claim.epsilon(1e-6)))


@pytest.mark.parametrize("claim", [NO_CLAIM, PureDP(0.0)])
def test_what_has_no_place_on_the_scale_is_said_in_words(claim: TradeoffFunction) -> None:
    result = dataclasses.replace(sample.inconclusive(), claim=claim)
    assert ranges(result) is None
    table = next(block for block in document([result, sample.violation()]).front if isinstance(block, Table))
    assert [type(row[1]) for row in table.rows] == [tuple, str]


def test_long_names_configs_and_warnings_do_not_fill_pages() -> None:
    about = Provenance.read({"audit": "\n".join(f"k{i}: [{i}]" for i in range(5000))})
    loud = dataclasses.replace(sample.long(), warnings=("w" * 5000,) * 50, provenance=about)
    report = document([loud, sample.hostile()])
    assert len(next(block for block in report.back if isinstance(block, Table)).rows) == 2
    assert len(dpaudit_reports.to_markdown([loud, loud])) < 20_000
    shown = dpaudit_reports.to_html(audits.undrawn(report))
    assert "47 more warnings are in the result file" in shown
    assert "k4999" not in shown


def test_a_measurement_states_its_bound_without_a_claimed_value() -> None:
    rng = np.random.default_rng(1)
    result = audit_scores(rng.normal(size=50), rng.normal(2, 1, 50), independence="runs", seed=1)
    table = next(b for b in overview([(("a",), result), (("b",), sample.violation())]) if isinstance(b, Table))
    assert [row[3] for row in table.rows] == ["–", "1"]
    assert "∞" not in str(table.rows[0])


def test_what_a_weak_audit_would_have_found_is_not_stated() -> None:
    """Its best case is no measure, since no attack beat guessing."""
    result = sample.no_violation()
    blind = dataclasses.replace(
        result, mu_lower=0.0, attacks=tuple(dataclasses.replace(row, log_loss=0.7) for row in result.attacks)
    )
    table = next(b for b in overview([(("a",), result), (("b",), blind)]) if isinstance(b, Table))
    assert [row[4] for row in table.rows] == ["1.12", "–"]


def test_the_headline_counts_the_refutations_that_stand_after_the_correction() -> None:
    """With 3 audits at 95 %, one e-value of 21 is below 3 / 0.05, and an e-value of 10,000 is above it."""
    clear, weak = (replace(sample.violation(), name=name, e_value=e) for name, e in (("clear", 1e4), ("weak", 21.0)))
    shown = text_of(clear, weak, sample.no_violation())
    assert "1 of 3 claims refuted." in shown
    assert "leaves 1 of 2 refutations" in shown
    (table,) = (block for block in document([clear, weak, sample.no_violation()]).front if isinstance(block, Table))
    assert ["not after the correction" in str(row) for row in table.rows] == [False, True, False]
    assert "1 of 3" not in text_of(replace(weak, name="other"), weak, sample.no_violation())


def test_a_loss_beyond_the_scale_is_written_in_digits() -> None:
    assert "4.36" in words_in(strip_svg(Ranges(4.369, float("inf")), "bad", 3.0))
    assert "20" in words_in(cells_svg([(0.5, "clear"), (20.0, "bad")], 3.0))
    assert words_in(strip_svg(Ranges(2.9, float("inf")), "bad", 3.0)) == ""


# --- the table and the map of a sweep: order, lines of at most 80 columns, signs without colours, and hostile text


STATES = {
    "v": CellState.VIOLATION,
    "g": CellState.NO_VIOLATION,
    "i": CellState.INCONCLUSIVE,
    "n": CellState.NOT_AUDITED,
}


def cell(name: str, state: str, ratio: float = 0.5, version: str = "1.0", **values: str) -> SweptCell:
    title = "-".join([name, *values.values()])
    return SweptCell(
        name=f"{title}-{version}",
        title=title,
        constructor=name,
        values=values,
        version=version,
        state=STATES[state],
        reason="because" if state in "in" else "",
        p_value=None if state == "n" else 0.001,
        certified="" if state == "n" else "ε ≥ 0.5 / 1",
        ratio=None if state == "n" else ratio,
    )


def sweep(*cells: SweptCell) -> Sweep:
    return Sweep(
        library="pydp",
        package="python-dp",
        catalogue="own.yaml",
        versions=tuple(dict.fromkeys(one.version for one in cells)),
        confidence=0.999,
        false_alarm=0.01,
        shared=True,
        number="ab",
        seconds=60.0,
        spent=12.0,
        answer_seconds=5.0,
        interrupted=False,
        cells=cells,
    )


def text(found: Sweep, screen: Screen) -> str:
    return document_text(sweep_report(found), screen)


MIXED = sweep(
    cell("clear", "g", 0.2, scale="1"),
    cell("clear", "g", 0.9, scale="2"),
    cell("missing", "n"),
    cell("open", "i", 0.95),
    cell("bad", "g", 0.9, T="i32"),
    cell("bad", "v", 1.5, T="f64"),
)


def test_the_most_serious_constructors_come_first() -> None:
    assert [row.constructor for row in rows_of(MIXED)] == ["bad", "open", "clear", "missing"]
    assert [row.worst.values for row in rows_of(MIXED)] == [{"T": "f64"}, {}, {"scale": "2"}, {}]


def test_the_named_cell_has_the_largest_loss_of_its_constructor() -> None:
    (row,) = rows_of(sweep(cell("a", "i", 0.13, T="f64"), cell("a", "g", 0.47, T="i64"), cell("a", "n", T="f32")))
    assert row.worst.values == {"T": "i64"}
    assert row.state is CellState.INCONCLUSIVE


def test_no_mark_of_a_cell_hides_another() -> None:
    cells: tuple[tuple[float, Tone, int], ...] = (0.0, "clear", 12), (0.1, "open", 3), (7.0, "bad", 2)
    drawing = cells_svg([(loss, tone) for loss, tone, times in cells for _ in range(times)], 3.0)
    places = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"|M([\d.]+) ([\d.]+)l', drawing)
    assert len(places) == len(set(places)) == 17


def test_a_share_is_rounded_down_and_a_violation_is_above_1() -> None:
    assert share_of(cell("a", "g", 0.999)) == "0.99"
    assert share_of(cell("a", "v", 1.0)) == "> 1"
    assert share_of(cell("a", "v", 1.0004)) == "1.0004"
    assert share_of(cell("a", "n")) == "–"


def test_differences_between_versions_name_new_and_missing_cells() -> None:
    found = sweep(cell("a", "g"), cell("b", "g"), cell("a", "v", version="2.0"), cell("c", "g", version="2.0"))
    shown = text(found, Screen(width=80))
    assert "Differences between 1.0 and 2.0" in shown
    for words in ("a: no violation found, then violation", "b: no violation found, then no such cell"):
        assert words in shown
    assert "c: no such cell, then no violation found" in shown


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_is_longer_than_the_screen(encoding: str) -> None:
    long = cell("a constructor with a name of many letters", "v", 2.0, axis="x" * 40, other="y" * 40)
    shown = text(sweep(*MIXED.cells, long), Screen(width=80, encoding=encoding))
    assert max(map(cell_len, shown.splitlines())) <= 80
    shown.encode(encoding)
    for word in ("private", "passed", "safe"):
        assert word not in shown


def test_text_of_a_file_cannot_forge_lines() -> None:
    hostile = replace(cell("a", "n"), constructor="x\n▲ y", reason="\x1b[2J\nbad", values={"a\n": "\u202eb"})
    shown = text(sweep(hostile, cell("b", "g")), Screen(width=80))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert not any(line.startswith("▲") for line in shown.splitlines())
    assert to_pdf(sweep_report(sweep(hostile, cell("b", "g")))).startswith(b"%PDF")


def test_marks_of_cells_differ_without_colours() -> None:
    """The shapes of the three verdicts are different, apart from their fill."""
    shapes = {re.sub(r"(fill|stroke)=\S+", "", mark_svg(sign.tone)) for sign in SIGNS.values()}
    assert len(shapes) == 3


def test_every_cell_has_a_place_in_the_table_of_its_constructor() -> None:
    cells = [cell("a", "g", scale=str(scale), T=kind) for scale in range(3) for kind in ("i", "f")]
    wide = [cell("b", "v", 1.5, scale=str(scale)) for scale in range(20)]
    first, second = (block for block in sweep_report(sweep(*wide, *cells)).back if isinstance(block, Table))
    assert len(first.rows) == 20, "more values than columns"
    assert [column.title for column in second.columns] == ["scale", "0", "1", "2"]
    assert [row[0] for row in second.rows] == ["T i", "T f"]
    assert {text for row in second.rows for text in row[1:]} == {"○\u00a00.5"}
