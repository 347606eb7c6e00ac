"""The page needs no other file, runs no script, and shows text unchanged."""

import dataclasses
import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

import dpaudit_reports
from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block, Code, Column, Items, Paragraph, Strong, Table
from dpaudit_reports.figures import COLORS, PANEL
from dpaudit_reports.figures.tradeoff import HEIGHT, tradeoff_hints, tradeoff_svg
from dpaudit_reports.html import Anchors
from dpaudit_reports.markdown import MAX_CHARACTERS, blocks_markdown

from . import audits, sample

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """The tags of a page in order, its text, and the tags that are still open."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


NASTY = [
    sample.HOSTILE,
    sample.LONG,
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title></svg><!--",
    "&lt;b&gt; &amp; '",
    "高斯机制 ελληνικά עברית",
]


@cache
def plain_tags() -> list[str]:
    return [tag for tag, _ in Page(dpaudit_reports.to_html([sample.hostile("name")])).tags]


@pytest.mark.parametrize("word", NASTY)
def test_names_print_as_they_are_and_never_as_markup(word: str) -> None:
    nasty = Page(dpaudit_reports.to_html([sample.hostile(word)]))
    assert [tag for tag, _ in nasty.tags] == plain_tags()
    assert nasty.text.count(word) >= 14


def test_what_turns_the_direction_of_text_is_written_out() -> None:
    assert "a\\x00\\u202eb" in Page(dpaudit_reports.to_html([sample.hostile("a\x00\u202eb")])).text


@pytest.mark.parametrize("make", [sample.violation, sample.no_violation, sample.inconclusive, sample.empty])
def test_the_page_needs_nothing_and_runs_nothing(make: Callable[[], AuditResult]) -> None:
    html = dpaudit_reports.to_html([make()])
    page = Page(html)
    assert not {"script", "link", "iframe", "object", "img", "form"} & {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset")], tag
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org)", html)
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in page.tags
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_names_of_drawings_meet_nowhere_and_lead_somewhere() -> None:
    page = Page(dpaudit_reports.to_html([sample.violation(), sample.no_violation(), sample.inconclusive()]))
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    # Panels with equal bytes may share an id; otherwise an id has one meaning.
    html = dpaudit_reports.to_html([sample.violation()])
    own = re.findall(r' id="([^"]+)"', html)
    assert len(own) == len(set(own))
    for _, attributes in page.tags:
        for value in attributes.values():
            for target in re.findall(r"(?:^|url\()#([^)]+)", value or ""):
                if not re.fullmatch("[0-9a-f]{3,8}", target):
                    assert target in names


def test_every_colour_of_a_drawing_follows_the_screen() -> None:
    html = dpaudit_reports.to_html([sample.violation()])
    drawings = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert len(drawings) == 3  # the picture of page 1 in two widths, and the trade-off plot
    assert not any(re.search(r"(fill|stroke): #", drawing) for drawing in drawings)
    used = set(re.findall(r"var\(--([a-z-]+)\)", html))
    style = html[: html.index("</style>")]
    assert {"claim", "attack", "label"} <= used
    for name in used:
        assert f"--{name}:" in style
    assert all(f"--{name}: {color};" in style for name, pair in COLORS.items() for color in pair)


def test_every_drawing_is_described() -> None:
    page = Page(dpaudit_reports.to_html([sample.violation()]))
    drawings = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert all(a["role"] == "img" and len(a["aria-label"] or "") > 25 for a in drawings)


def test_many_audits_have_a_summary_that_leads_to_each() -> None:
    named = [dataclasses.replace(make(), name="Summe ü") for make in (sample.violation, sample.no_violation)]
    html = dpaudit_reports.to_html(named)
    for name in ("summe-u", "summe-u-2"):
        assert f'<a href="#{name}">' in html[html.index("<table") : html.index("</table>")]
        assert f'<div class="part" id="{name}">' in html
    assert html.count('<a href="#top">') == 3, "each part and the end of the page lead back"


def test_only_parts_about_violations_are_unfolded() -> None:
    results = [sample.violation(), sample.no_violation(), sample.inconclusive()]
    page = Page(dpaudit_reports.to_html(results, full=True))
    folded = [attributes for tag, attributes in page.tags if tag == "details"]
    assert ["open" in one for one in folded] == [True, False, False]  # the worst first
    ids = [str(attributes["id"]) for tag, attributes in page.tags if tag in ("h2", "h3") and "id" in attributes]
    assert "opendp-gaussian-sum/where-the-datasets-differ" in ids
    assert len(ids) == len(set(ids))


def test_foreign_names_make_plain_ids() -> None:
    anchors = Anchors()
    made = [anchors.new(title, "") for title in ("", "<b>", "ε ≥ 1", "B!", "高斯", "a" * 500)]
    assert made == ["section", "b", "1", "b-2", "section-2", "a" * 60]


def test_values_along_the_curve_appear_under_the_pointer() -> None:
    """The values are those of the curve, and their places are where the curve is drawn."""
    result = sample.violation()
    hints = tradeoff_hints(result)
    assert 20 < len(hints) <= 40
    assert all(0 < hint.x < 1 and 0 < hint.y < 1 for hint in hints)
    found = re.fullmatch(r"attack: α ([\d.]+), β ([\d.]+); the claim allows β ≥ ([\d.]+)", hints[9].text)
    assert found
    alpha, beta, claimed = map(float, found.groups())
    at_alpha = np.interp(alpha, result.curve.alpha[::-1], result.curve.beta[::-1])
    assert beta == pytest.approx(at_alpha, abs=5e-3)  # the text has three digits
    assert claimed == pytest.approx(float(result.claim.beta(alpha)), abs=3e-3)
    drawn = re.search(r'<path d="([^"]+)"[^>]*stroke: #0072b2', tradeoff_svg(result))
    assert drawn
    line = np.array(re.findall(r"[ML] ([\d.]+) ([\d.]+)", drawn[1]), dtype=float)
    for hint in hints:
        place = np.array([hint.x * 72 * PANEL, hint.y * 72 * HEIGHT])
        assert _distance(line, place) < 0.2, "in points"
    assert tradeoff_hints(audits.dependent()) == ()
    assert dpaudit_reports.to_html([result]).count("<title>attack: ") > 20


def _distance(line: np.ndarray, place: np.ndarray) -> float:
    start, side = line[:-1], np.diff(line, axis=0)
    share = np.clip(((place - start) * side).sum(axis=1) / np.maximum((side**2).sum(axis=1), 1e-12), 0, 1)
    return float(np.hypot(*(start + share[:, None] * side - place).T).min())


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    dpaudit_reports.write_html([sample.violation()], tmp_path / "a.html")
    sample.violation().to_html(tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_notebook_shows_a_fragment_whose_style_stays_inside() -> None:
    html = sample.violation()._repr_html_()
    page = Page(html)
    assert page.tags[0] == ("div", {"class": "dpaudit", "style": "padding: 1em"})
    assert not {"html", "body", "main", "script"} & {tag for tag, _ in page.tags}
    style = re.sub(r"/\*.*?\*/", "", html[html.index("<style>") + 7 : html.index("</style>")], flags=re.DOTALL)
    for selector in re.findall(r"([^{}]+)\{", style):
        for each in selector.split(","):
            assert each.strip().startswith((".dpaudit", "@media")), each
    assert html.count("<svg") == 2  # the picture of page 1 in two widths


# --- the comment is short, its tables keep their shape, and no name in it acts as markup


READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

NASTY_LINES = [
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


@pytest.mark.parametrize("word", NASTY_LINES)
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


@pytest.mark.parametrize("word", NASTY_LINES)
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


@pytest.mark.parametrize("word", NASTY_LINES[::3])
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
