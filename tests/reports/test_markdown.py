"""The comment is short, its tables keep their shape, and no name in it acts as markup."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

import dpaudit_reports
from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block, Code, Column, Items, Paragraph, Strong, Table
from dpaudit_reports.markdown import MAX_CHARACTERS, blocks_markdown

from . import sample

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

NASTY = [
    sample.HOSTILE,
    "a | b || c \\| d",
    "`code` ``two`` `",
    "**bold** _em_ ~~gone~~ [link](https://example.org) ![i](x) <b>tag</b> <!-- no --> &amp;",
    "</details></script>",
    "1. one",
    "- two",
    "# three",
    "> four",
    "+ five",
    "=== six",
    "a\n\n# heading\n| x | y |\n| - | - |",
    "@someone #123 https://example.org www.example.org GH-12 :tada: $x$",
    "  | lead",
    "\\",
    "]]",
    "***",
    "---",
]


def inline(tokens: list[Token]) -> list[Token]:
    return [child for token in tokens for child in (token.children or [])]


def shown(tokens: list[Token]) -> str:
    return "".join(t.content for t in inline(tokens) if t.type in ("text", "code_inline", "text_special"))


@pytest.mark.parametrize("word", NASTY)
@pytest.mark.parametrize("kind", [str, Strong, Code])
def test_a_cell_holds_whatever_is_in_it(word: str, kind: Callable[[str], str | Strong | Code]) -> None:
    made = kind(word)
    cell = made if isinstance(made, str) else (made,)
    tokens = READER.parse(blocks_markdown([Table((Column("a"), Column("b")), ((cell, "end"), ("x", cell)))]))
    assert [token.type for token in tokens].count("td_open") == 4
    assert [token.type for token in tokens].count("table_open") == 1
    cells = [token for token in tokens if token.type == "inline"][2:]
    # the amount of white space does not matter
    assert "".join(shown([cells[0]]).split()) == "".join(word.split())
    assert shown([cells[1]]) == "end"


@pytest.mark.parametrize("word", NASTY)
@pytest.mark.parametrize("block", [Paragraph, lambda text: Items((text,))])
def test_a_line_is_only_a_line(word: str, block: Callable[[str], Block]) -> None:
    tokens = READER.parse(blocks_markdown([block(word), Paragraph("end")]))
    kinds = {token.type for token in tokens if token.nesting >= 0}
    assert kinds <= {"paragraph_open", "inline", "bullet_list_open", "list_item_open"}
    assert "".join(shown([next(t for t in tokens if t.type == "inline")]).split()) == "".join(word.split())
    marks = {token.type for token in inline(tokens)}
    assert marks <= {"text", "text_special", "html_inline", "softbreak"}
    ours = {"<!-- -->", "<span>", "</span>"}
    assert {t.content for t in inline(tokens) if t.type == "html_inline"} <= ours


@pytest.mark.parametrize("name", ["@someone", "#123", "https://example.org", "www.example.org", "GH-12", ":tada:"])
def test_nobody_is_mentioned_and_nothing_linked(name: str) -> None:
    text = blocks_markdown([Paragraph(f"see {name} there")])
    assert name not in text
    assert "<!-- -->" in text
    assert name in shown(READER.parse(text))


@pytest.mark.parametrize("word", NASTY[::3])
def test_a_hostile_result_has_the_shape_of_any_other(word: str) -> None:
    def shape(result: AuditResult) -> list[str]:
        return [token.type for token in READER.parse(dpaudit_reports.to_markdown([result])) if token.type != "inline"]

    assert shape(sample.hostile(word)) == shape(sample.hostile("name"))


@pytest.mark.parametrize("make", [sample.violation, sample.no_violation, sample.inconclusive, sample.empty])
def test_it_is_short_and_begins_with_the_verdict(make: Callable[[], AuditResult]) -> None:
    text = dpaudit_reports.to_markdown([make()])
    assert len(text) < 6_000
    assert "<svg" not in text
    words = shown(READER.parse(text))
    mark = {
        "violation": "▲ The claim μ = 1 is false.",
        "no violation found": "○ No violation found.",
        "inconclusive": "◇ This audit decides nothing.",
    }
    assert words.startswith(f"{make().name}{mark[make().verdict.value]}")
    for word in ("is private", "passed", "is safe", "success", "compliant"):
        assert word not in words.lower()


def test_many_audits_fit_into_one_comment_with_a_summary_of_all() -> None:
    results = [dataclasses.replace(sample.violation(), name=f"audit-{i}") for i in range(60)]
    text = dpaudit_reports.to_markdown(results, full=True)
    assert len(text) <= MAX_CHARACTERS
    assert text.count("<details>") == text.count("</details>") > 10
    left_out = 60 - text.count("<details>")
    assert f"{left_out} more audits do not fit into a comment" in text
    assert all(f" audit-{i} |" in text for i in range(40))


def test_a_long_table_ends_and_says_so() -> None:
    text = blocks_markdown([Table((Column("a"),), tuple((str(i),) for i in range(200)))])
    assert text.count("\n| ") == 51
    assert "150 more rows" in text
