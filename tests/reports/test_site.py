"""The site of a set of results: pages, badges, feed, addresses, and a folder in which other files are safe."""

import base64
import dataclasses
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

import dpaudit_reports
from dpaudit.claims import parse_claim
from dpaudit.result.atomic_write import write_placed
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit.text import SIGNS
from dpaudit_reports import site
from dpaudit_reports.sections import BRIEF
from dpaudit_reports.site import ADDRESS, MANIFEST, addresses, digest_of
from dpaudit_reports.site.index import Entry, badge, columns, index

from . import sample
from .test_html import NASTY, Page

RESULTS = (sample.no_violation, sample.violation, sample.inconclusive)
NASTY_NAMES = [*NASTY[2:5], "../../outside", "/etc/passwd", "", "a\x00\u202eb"]


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write pages of one section, because other tests cover the report of an audit."""
    monkeypatch.setattr(site, "SECTIONS", BRIEF[:1])


def named(name: str, make: Callable[[], AuditResult] = sample.violation) -> AuditResult:
    return dataclasses.replace(make(), name=name)


def entries(*results: AuditResult) -> list[Entry]:
    return [Entry(result, digest_of(result), f"a-{i:016x}") for i, result in enumerate(results)]


def written(folder: Path, *results: AuditResult) -> dict[str, str]:
    """Write a site and return its files without the manifest."""
    dpaudit_reports.write_site(results, folder)
    return {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name != MANIFEST}


def failing_at(name: str) -> Callable[[Path, str], None]:

    def write(file: Path, content: str) -> None:
        if file.name == name:
            raise OSError("the disk is full")
        write_placed(file, content)

    return write


def test_a_site_has_an_index_a_feed_and_a_page_and_a_badge_of_each_audit(tmp_path: Path) -> None:
    files = written(tmp_path / "new" / "site", *(make() for make in RESULTS))
    assert len(files) == 2 + 2 * len(RESULTS)
    page = Page(files["index.html"])
    linked = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert {"feed.json", *(name for name in files if re.fullmatch(rf"{ADDRESS}\.html", name))} == set(linked)
    rows = [attrs["data-verdict"] for tag, attrs in page.tags if tag == "tr" and "data-verdict" in attrs]
    assert rows == ["bad", "open", "clear"]  # worst first, without scripts
    for words in ("▲ Violation", "gaussian(mu=1)", "μ ≥ 1.043 (claim 1)", "900", "2026-03-01", "No audit shows that"):
        assert words in page.text.replace("\xa0", " ")
    for name, text in files.items():
        if name.endswith(".html") and name != "index.html":
            assert 'href="index.html"' in text
            assert f'href="{name[:-5]}.svg"' in text


def test_the_policy_allows_one_style_and_one_script(tmp_path: Path) -> None:
    text = written(tmp_path, sample.violation())["index.html"]
    (policy,) = re.findall('Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@pytest.mark.parametrize("name", NASTY_NAMES)
def test_a_foreign_name_is_text_in_all_files_and_no_path(name: str, tmp_path: Path) -> None:
    def tags(text: str) -> list[str]:
        return [tag for tag, _ in Page(text).tags]

    known = sample.no_violation().detectable  # a detectable violation that is not a claim is refused
    files = written(tmp_path / "a", dataclasses.replace(sample.hostile(name), name=name, detectable=known))
    plain = written(tmp_path / "b", dataclasses.replace(sample.hostile("name"), name="name", detectable=known))
    assert tags(files["index.html"]) == tags(plain["index.html"])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "b"]
    assert all(re.fullmatch(rf"index\.html|feed\.json|{ADDRESS}\.(html|svg)", file) for file in files)
    assert files["feed.json"].isascii()
    json.loads(files["feed.json"])


def test_a_foreign_library_is_text() -> None:
    about = Provenance.read({"packages of the mechanism": {"<b>": "<script>"}, "date": "</script>"})
    result = dataclasses.replace(sample.violation(), provenance=about)
    page = Page(index(entries(result), "<i>title</i>"))
    assert "<b> <script>" in page.text
    assert {"b", "i"}.isdisjoint(tag for tag, _ in page.tags)


def test_the_library_is_the_package_that_the_config_names() -> None:
    about = {"audit": "requires: [python-dp==1.1.4]", "packages of the mechanism": {"attrs": "1", "python-dp": "1.1.4"}}
    (entry,) = entries(dataclasses.replace(sample.violation(), provenance=Provenance.read(about)))
    assert entry.library == "python-dp 1.1.4"
    (entry,) = entries(dataclasses.replace(sample.violation(), provenance=Provenance.read({**about, "audit": ""})))
    assert entry.library == "attrs 1, python-dp 1.1.4"


def test_ranks_sort_each_column_and_rows_without_a_value_have_none() -> None:
    old = Provenance.read({"date": "2020-01-01T00:00:00+00:00"})
    first, second = sample.violation(), dataclasses.replace(sample.no_violation(), provenance=old)
    third = dataclasses.replace(sample.inconclusive(), provenance=Provenance(), bounds_valid=False)
    ranks = {column.title: list(column.ranks) for column in columns(entries(first, second, third))}
    assert ranks["Date"] == [0, 1, -1]
    assert ranks["Proven"] == [0, 1, -1]
    assert ranks["Runs"] == [1, 0, 2]
    assert ranks["Library"] == [-1, -1, -1]
    assert "Confidence" not in ranks
    other = sample.violation().to_dict() | {"confidence": 0.9}
    assert "Confidence" in [column.title for column in columns(entries(first, AuditResult.from_dict(other)))]


@pytest.mark.parametrize("make", RESULTS)
@pytest.mark.parametrize(
    "claim", ["gaussian(mu=1)", "tabulated(alpha=[0, 0.25, 0.5, 0.75, 1], beta=[1, 0.75, 0.5, 0.25, 0])"]
)
def test_a_badge_names_claim_and_verdict_and_promises_nothing(make: Callable[[], AuditResult], claim: str) -> None:
    result = dataclasses.replace(make(), claim=parse_claim(claim))
    svg = ElementTree.fromstring(badge(result))
    words = [text for element in svg.iter() if (text := (element.text or "").strip())]
    assert words[1].startswith(claim[:9])
    assert words[2] == SIGNS[result.verdict.value].shown()
    assert not re.search(r"private|passed|✓|green", " ".join(words), re.IGNORECASE)


def test_the_feed_has_the_form_of_json_feed_1_1(tmp_path: Path) -> None:
    old = Provenance.read({"date": "2020-01-01T00:00:00+00:00"})
    results = [dataclasses.replace(sample.no_violation(), provenance=old, name="old"), named("new")]
    dpaudit_reports.write_site(results, tmp_path, title="Audits", url="https://example.org/a/")
    feed = json.loads((tmp_path / "feed.json").read_text("utf-8"))
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert (feed["title"], feed["feed_url"]) == ("Audits", "https://example.org/a/feed.json")
    assert [item["title"] for item in feed["items"]] == ["▲ violation: new", "○ no violation found: old"]
    for item in feed["items"]:
        assert {"id", "url", "content_text", "date_published"} <= set(item)
        assert (tmp_path / item["url"].removeprefix("https://example.org/a/")).is_file()
        assert item["_dpaudit"]["claim"] == "gaussian(mu=1)"


def test_an_address_stays_when_audits_are_added_and_pages_that_are_gone_are_removed(tmp_path: Path) -> None:
    first = set(written(tmp_path, named("a")))
    assert first < set(written(tmp_path, named("b"), named("a"), sample.no_violation()))
    assert set(written(tmp_path, named("a"))) == first


def test_the_same_results_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    results = [make() for make in RESULTS]
    assert written(tmp_path / "a", *results) == written(tmp_path / "b", *results[::-1])


def test_results_that_collide_are_both_kept_and_keep_their_addresses() -> None:
    one, other = "ab" * 32, "ab" * 8 + "cd" * 24
    both = addresses({one: "x", other: "x"}, {})
    assert both == {one: f"x-{one[:16]}", other: f"x-{other[:24]}"}
    assert addresses({one: "x", other: "x"}, {f"x-{other[:16]}": other}) == {
        one: f"x-{one[:24]}",
        other: f"x-{other[:16]}",
    }
    assert addresses({one: "X!", other: "x"}, {})[one] != addresses({one: "X!", other: "x"}, {})[other]


def test_a_feed_has_no_duration_that_is_not_finite(tmp_path: Path) -> None:
    dpaudit_reports.write_site([dataclasses.replace(sample.violation(), elapsed_s=float("nan"))], tmp_path)
    assert json.loads((tmp_path / "feed.json").read_text())["items"][0]["_dpaudit"]["seconds"] is None
    with pytest.raises(ValueError, match="elapsed_s"):
        AuditResult.from_dict(sample.violation().to_dict() | {"elapsed_s": "nan"})


def test_a_site_needs_a_result(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one result"):
        dpaudit_reports.write_site([], tmp_path / "site")
    assert not list(tmp_path.iterdir())


# --- the folder of a site: only files of the site are replaced or removed, also if a call was interrupted


def test_other_files_of_the_folder_are_not_touched(tmp_path: Path) -> None:
    mine = {"index.html": "mine", "notes.txt": "mine"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=r"holds files that dpaudit did not write.*: index\.html; move them away"):
        dpaudit_reports.write_site([sample.violation()], tmp_path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == mine
    (tmp_path / "index.html").unlink()
    written(tmp_path, sample.violation())
    written(tmp_path, sample.no_violation())
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_page_that_was_edited_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    page = next(name for name in written(tmp_path, named("a")) if name.startswith("a-") and name.endswith(".html"))
    (tmp_path / page).write_text("mine")
    with pytest.raises(ValueError, match="or that were changed since"):
        dpaudit_reports.write_site([named("a")], tmp_path)
    dpaudit_reports.write_site([named("b")], tmp_path)
    assert (tmp_path / page).read_text() == "mine"


def test_an_interrupted_call_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(site, "write_placed", failing_at("feed.json"))
        with pytest.raises(OSError, match="full"):
            dpaudit_reports.write_site([named("a")], tmp_path)
    assert list(tmp_path.glob("a-*"))
    assert not (tmp_path / "index.html").exists()
    assert "index.html" in written(tmp_path, named("b"))
    assert not list(tmp_path.glob("a-*"))


def test_an_interrupted_call_makes_no_file_of_the_user_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, named("a"))
    with monkeypatch.context() as broken:
        broken.setattr(site, "write_placed", failing_at("index.html"))
        with pytest.raises(OSError, match="full"):
            dpaudit_reports.write_site([named("a"), named("b")], tmp_path)
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(ValueError, match=r"did not write.*: index\.html"):
        dpaudit_reports.write_site([named("a")], tmp_path)


def test_nothing_is_written_if_a_page_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "index", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        dpaudit_reports.write_site([named("a")], tmp_path / "site")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["index.html", "feed.json", MANIFEST])
def test_nothing_is_written_through_links(name: str, tmp_path: Path) -> None:
    folder, mine = tmp_path / "site", tmp_path / "mine"
    folder.mkdir()
    mine.write_text("precious")
    (folder / name).symlink_to(mine)
    with pytest.raises(ValueError, match=name):
        dpaudit_reports.write_site([sample.violation()], folder)
    assert mine.read_text() == "precious"
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(ValueError, match="is a symbolic link to"):
        dpaudit_reports.write_site([sample.violation()], tmp_path / "link")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("files", [{"../mine": "0" * 64}, {"mine": "0" * 64}, [1]])
def test_a_manifest_that_names_other_files_is_refused(files: object, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / MANIFEST).write_text(json.dumps({"files": files, "addresses": {}}))
    with pytest.raises(ValueError, match="is not a manifest of dpaudit; move it away, or name another folder"):
        dpaudit_reports.write_site([sample.violation()], folder)
    assert [file.name for file in folder.iterdir()] == [MANIFEST]
    assert (tmp_path / "mine").read_text() == "precious"
