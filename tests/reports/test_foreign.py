"""Sections of other packages come from entry points, and their failures do not affect the rest of the report."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import dpaudit_reports
from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block, Figure, Heading, Panel, Paragraph, Reference
from dpaudit_reports.document import document
from dpaudit_reports.sections import SECTIONS, Section

from . import sample

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that registers sections as if they were installed."""

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


BAD = [
    raises,
    returns_text,
    wrong_text,
    fails_when_drawn,
    draws_no_picture,
]


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
