"""Comparisons, formats by name, the terminal, and the time that a report takes."""

import dataclasses
import time
from collections.abc import Callable
from importlib import metadata
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pypdf
import pytest
from rich.console import Console
from typer.testing import CliRunner

import dpaudit_reports
from dpaudit import ApproxDP, GaussianDP, Pair, audit
from dpaudit.catalogue import Gaussian
from dpaudit.cli.app import app
from dpaudit.inference.sequential.strategy import strategy
from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block, Figure, Heading, Items, Panel, Paragraph, Reference, Span, Table
from dpaudit_reports.document import document
from dpaudit_reports.figures import tradeoff
from dpaudit_reports.sections import SECTIONS, Section
from dpaudit_reports.terminal import terminal

from . import sample


def versions() -> dict[str, dict[str, AuditResult]]:
    return {
        "gaussian-sum": {"lib==1.0": sample.violation(), "lib==1.1": sample.no_violation()},
        "laplace": {"lib==1.1": sample.no_violation()},
    }


def _words(part: Span) -> str:
    return part if isinstance(part, str) else part.text


def test_a_comparison_puts_versions_side_by_side() -> None:
    compared = dpaudit_reports.comparison(versions())
    verdicts = next(block for block in compared.front if isinstance(block, Table))
    words = [
        ["".join(map(_words, (cell,) if isinstance(cell, str) else cell)) for cell in row] for row in verdicts.rows
    ]
    assert [row[:2] for row in words] == [
        ["gaussian-sum", "▲ lib==1.0"],
        ["gaussian-sum", "○ lib==1.1"],
        ["laplace", "– lib==1.0"],
        ["laplace", "○ lib==1.1"],
    ]
    assert [words[0][3].replace("\u00a0", " "), *words[0][4:]] == ["μ ≥ 1.043", "1", "–", "900"]
    assert "could not be run" in words[2]
    assert compared.parts == ()


def test_a_comparison_shows_the_curves_of_the_audits_whose_verdict_changes() -> None:
    front = dpaudit_reports.comparison(versions()).front
    figure = next(block for block in front if isinstance(block, Figure))
    items = next(block for block in front if isinstance(block, Items))
    assert [panel.title for panel in figure.panels] == ["lib==1.0 ▲ Violation", "lib==1.1 ○ No violation found"]
    assert "in 404 of 700 runs" in "".join(map(_words, items.items[0]))
    same = dpaudit_reports.comparison({"laplace": versions()["laplace"]}).front
    assert not any(isinstance(block, Figure) for block in same)


def test_the_worst_audits_come_first_and_otherwise_the_order_is_kept() -> None:
    made = [sample.no_violation(), sample.inconclusive(), sample.violation(), sample.no_violation(), sample.violation()]
    report = document([dataclasses.replace(result, name=str(i)) for i, result in enumerate(made)])
    assert [part.title for part in report.parts] == ["2", "4", "1", "0", "3"]
    table = next(block for block in report.front if isinstance(block, Table))
    assert [(part.text, part.part) for row in table.rows for part in row[0] if isinstance(part, Reference)] == [
        ("2", 0),
        ("4", 1),
        ("1", 2),
        ("0", 3),
        ("3", 4),
    ]


def test_a_mended_version_looks_mended() -> None:
    """The curve of the violation lies far above the claim, and that of the mended version at most 2 points above."""
    results = versions()["gaussian-sum"].values()
    bad, good = (float(tradeoff.curve_of(result)[:, 1].max()) for result in results)
    assert bad > 5
    assert good < 2
    for result, highest in zip(results, (bad, good), strict=True):
        low, high = tradeoff.scale_of(result)
        assert highest < high
        assert -3 * high <= low <= -high / 4


def test_reasons_are_stated_once_with_all_of_their_audits() -> None:
    missing = {(name, "lib==0.9"): "could not be run: no module\nTraceback" for name in versions()}
    items = next(block for block in dpaudit_reports.comparison(versions(), missing).front if isinstance(block, Items))
    assert items.items == ("gaussian-sum – lib==0.9, laplace – lib==0.9 could not be run: no module",)


def test_a_comparison_can_be_written_in_every_format(tmp_path: Path) -> None:
    compared = dpaudit_reports.comparison(versions())
    for ending in (".pdf", ".html", ".md"):
        dpaudit_reports.write_report(compared, tmp_path / f"comparison{ending}")
    found = " ".join(page.extract_text() for page in pypdf.PdfReader(tmp_path / "comparison.pdf").pages)
    assert "gaussian-sum: violation in lib==1.0, then no violation found in lib==1.1." in " ".join(found.split())
    assert "could not be run" in (tmp_path / "comparison.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("audits", [{}, {"a": {}}])
def test_there_is_no_comparison_of_nothing(audits: dict[str, dict[str, AuditResult]]) -> None:
    with pytest.raises(ValueError, match="at least one result"):
        dpaudit_reports.comparison(audits)


@pytest.mark.parametrize("name", ["report", "report.docx", "report.pdf.zip"])
def test_a_format_that_there_is_not_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.pdf, \.html, \.htm or \.md"):
        dpaudit_reports.write_report([sample.violation()], tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", [sample.HOSTILE, "[bold]x[/bold] [/red]", "a\x1b[31mb"])
def test_the_terminal_shows_names_as_they_are(word: str) -> None:
    target = StringIO()
    Console(file=target, width=400, force_terminal=False).print(*terminal(document([sample.hostile(word)])), sep="\n")
    shown = word.replace("\x1b", "\\x1b")
    assert target.getvalue().count(shown) >= 10
    assert "\x1b[31m" not in target.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("make", [sample.violation, sample.empty, sample.long])
def test_the_terminal_is_never_too_narrow(make: Callable[[], AuditResult], width: int) -> None:
    target = StringIO()
    Console(file=target, width=width).print(*terminal(document([make()])), sep="\n")
    assert max(map(len, target.getvalue().splitlines())) <= width


def test_a_pdf_is_tagged_in_a_language_and_says_that_it_keeps_pdf_ua(tmp_path: Path) -> None:
    dpaudit_reports.write_pdf([sample.violation(), sample.hostile()], tmp_path / "report.pdf")
    reader = pypdf.PdfReader(BytesIO((tmp_path / "report.pdf").read_bytes()))
    root: Any = reader.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"]
    assert root["/Lang"] == "en"
    assert b"pdfuaid" in root["/Metadata"].get_data()
    assert all(f"{i} / {len(reader.pages)}" in page.extract_text() for i, page in enumerate(reader.pages, 1))


@pytest.mark.slow
@pytest.mark.chance
def test_a_report_is_made_quickly(tmp_path: Path) -> None:
    """The promise is 3 s for one audit and 20 s for fifty, each with a different claim, on an idle machine.

    With the check of every result against its own counts, as the command makes it.  Measured in processor time, for a
    machine with other work, and twice that.
    """
    for i in range(50):
        mu = 0.4 + 0.05 * i
        claim = GaussianDP(mu) if i % 2 else ApproxDP(epsilon=mu, delta=1e-5)
        found = audit(Gaussian(1 / mu), claim, Pair([0], [1]), trials=1000, seed=i, name=f"audit {i}", confidence=0.95)
        found.to_json(tmp_path / f"{i}.json")
    strategy.cache_clear()
    files = [str(tmp_path / f"{i}.json") for i in range(50)]
    for names, most in ((files[:1], 6), (files, 40)):
        began = time.process_time()
        done = CliRunner().invoke(app, ["report", *names, "-o", str(tmp_path / "report.pdf")])
        assert done.exit_code == 0, done.output
        assert time.process_time() - began < most


NAMELESS = ["", " ", "\u200b"]


def named(name: str) -> AuditResult:
    return dataclasses.replace(sample.violation(), name=name)


def test_audits_without_a_name_have_a_comparison(tmp_path: Path) -> None:
    compared = dpaudit_reports.comparison({name: {name: named(name)} for name in NAMELESS})
    dpaudit_reports.write_pdf(compared, tmp_path / "report.pdf")


# --- sections of other packages come from entry points, and their failures do not affect the rest of the report


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:

    def entry_points(*, group: str) -> list[metadata.EntryPoint]:
        return [metadata.EntryPoint(name, f"{__name__}:{name}", group) for name in sections]

    sections: dict[str, object] = {}
    monkeypatch.setattr("dpaudit_reports.document.entry_points", entry_points)
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda point: sections[point.name])
    return lambda **found: sections.update(found)


def ours(result: AuditResult) -> tuple[Block, ...]:
    return Heading("Who asked for this"), Paragraph(f"The council of {result.name}.")


def test_a_users_section_stands_after_ours(install: Install) -> None:
    install(ours=ours)
    blocks = document([sample.violation()]).parts[0].blocks
    assert blocks[-2:] == (Heading("Who asked for this"), Paragraph("The council of opendp-gaussian-sum."))
    assert len(blocks) == 2 + sum(len(section(sample.violation())) for section in SECTIONS)


def raises(result: AuditResult) -> Any:
    raise RuntimeError("no council")


def returns_text(result: AuditResult) -> Any:
    return "text"


def wrong_text(result: AuditResult) -> Any:
    return (Heading("x"), Paragraph(5))  # type: ignore[arg-type]


def fails_when_drawn(result: AuditResult) -> Any:
    return Heading("x"), Figure((Panel(lambda: 1 / 0, "x"),), "x")  # type: ignore[arg-type, return-value]


def draws_no_picture(result: AuditResult) -> Any:
    return Heading("x"), Figure((Panel(lambda: "<svg", "x"),), "x")


BAD = [raises, returns_text, wrong_text, fails_when_drawn, draws_no_picture]


@pytest.mark.parametrize("section", BAD, ids=lambda section: section.__name__)
def test_a_section_that_fails_is_named_in_its_place_and_loses_nothing(
    section: Section, install: Install, tmp_path: Path
) -> None:
    name = section.__name__
    install(**{"a": ours, name: section, "z": ours})
    *_, heading, words, last, _ = document([sample.violation()]).parts[0].blocks
    assert (heading, last) == (Heading(name), Heading("Who asked for this"))
    assert isinstance(words, Paragraph)
    assert str(words.text).startswith(f"The section {name} ({__name__}:{name}) failed: ")
    dpaudit_reports.write_pdf([sample.violation()], tmp_path / "report.pdf")
    assert f"The section {name}" in dpaudit_reports.to_html([sample.violation()])


def test_a_section_that_cannot_be_loaded_is_named_too(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install(ours=ours)
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda point: __import__("no_such_module"))
    *_, heading, words = document([sample.violation()]).parts[0].blocks
    assert heading == Heading("ours")
    assert isinstance(words, Paragraph)
    assert "ModuleNotFoundError" in str(words.text)


def test_a_reference_to_a_part_that_there_is_not_is_text(install: Install, tmp_path: Path) -> None:
    install(mine=lambda result: (Heading("Mine"), Paragraph((Reference("elsewhere", 7),))))
    dpaudit_reports.write_pdf([sample.violation()], tmp_path / "one.pdf")
    dpaudit_reports.write_pdf([sample.violation()] * 2, tmp_path / "two.pdf")


def test_a_section_without_a_heading_gets_its_name(install: Install) -> None:
    install(mine=lambda result: (Paragraph("words"),))
    assert document([sample.violation()]).parts[0].blocks[-2:] == (Heading("mine"), Paragraph("words"))


def test_an_installed_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "council-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: council\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dpaudit.sections]\ncouncil = council:section\n")
    (tmp_path / "council.py").write_text(
        "from dpaudit_reports.blocks import Heading, Paragraph\n"
        "def section(result):\n    return Heading('Council'), Paragraph('asked for ' + result.name)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert "asked for opendp" in dpaudit_reports.to_html([sample.violation()])
