"""The page needs no other file, runs no script, and shows text unchanged."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import dpaudit_reports
from dpaudit.result.model import AuditResult
from dpaudit_reports.figures import COLORS, PANEL
from dpaudit_reports.figures.tradeoff import HEIGHT, tradeoff_hints, tradeoff_svg
from dpaudit_reports.html import Anchors

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
    assert policy is not None
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
    assert ["open" in one for one in folded] == [True, True, False, False]  # the contents, and then the worst first
    ids = [str(attributes["id"]) for tag, attributes in page.tags if tag in ("h2", "h3") and "id" in attributes]
    assert "opendp-gaussian-sum/where-the-datasets-differ" in ids
    assert len(ids) == len(set(ids))


def test_only_a_page_of_several_audits_has_contents() -> None:
    assert "Contents" not in dpaudit_reports.to_html([sample.violation()])
    html = dpaudit_reports.to_html([sample.violation(), sample.no_violation()])
    contents = html[html.index('<nav aria-label="Contents">') : html.index("</nav>")]
    links = re.findall('<a href="#([^"]+)">', contents)
    assert links
    assert all(f' id="{link}"' in html for link in links)


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
