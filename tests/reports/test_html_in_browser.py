"""Reports in headless Chromium: nothing overflows on a phone, colours are legible, and links open folded parts."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import dpaudit_reports
from dpaudit.result.provenance import Provenance

from . import browser, sample

# A page that holds the reports in frames of two widths, and writes what it found.
HARNESS = """<!doctype html><body><script>
const found = { wide: [], colors: [], targets: [], sizes: [], unseen: 0 };
const frames = FRAMES.map(([name, width]) => {
  const frame = document.createElement("iframe");
  Object.assign(frame, { src: name, width, height: 800 });
  return [name, width, frame, new Promise((loaded) => frame.addEventListener("load", loaded))];
});
frames.forEach(([, , frame]) => document.body.append(frame));
const light = (color) => {
  const [r, g, b] = color.match(/\\d+/g).slice(0, 3).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (one, two) => (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
Promise.all(frames.map(([, , , loaded]) => loaded)).then(async () => {
  for (const [name, width, frame] of frames) {
    const page = frame.contentDocument, style = (node) => frame.contentWindow.getComputedStyle(node);
    page.querySelectorAll("details").forEach((one) => { one.open = true; });
    found.wide.push([name, width, page.documentElement.scrollWidth]);
    const main = page.querySelector("main"), paper = light(style(main).backgroundColor);
    const texts = [...page.querySelectorAll("p, a, td, th, dd, dt, h1, h2, summary, svg text")];
    const bar = (node) => node.closest("svg") && style(node).fill === style(main).backgroundColor
      && node.previousElementSibling;  // words in a bar
    const behind = (node) => (bar(node) ? light(style(bar(node)).fill) : paper);
    const worst = (node) => ratio(light(node.closest("svg") ? style(node).fill : style(node).color), behind(node));
    const calm = texts.filter((node) => !node.closest(".callout") && node.textContent !== "guessing");
    found.colors.push([name, paper, Math.min(...calm.map(worst))]);
    found.targets.push(...[...page.querySelectorAll('a[href^="#"]')]
      .filter((link) => !page.getElementById(link.getAttribute("href").slice(1)))
      .map((link) => [name, link.getAttribute("href")]));
    const cut = [...page.querySelectorAll("svg[style]")].map((svg) => svg.getBoundingClientRect())
      .filter((box) => box.width && (box.right > width + 0.5 || box.width < 120));  // one of two widths is hidden
    found.sizes.push([name, width, cut.length]);
    found.unseen += [...page.querySelectorAll("td, tbody th")].filter((cell) => !cell.checkVisibility()).length;
  }
  const suite = frames.find(([name, width]) => name === "suite.html" && width === 1280)[2];
  const page = suite.contentDocument, parts = [...page.querySelectorAll("section > details")];
  page.querySelectorAll("details").forEach((one) => { one.open = false; });
  const link = page.querySelector('table a[href="#c"]');
  link.click();
  await new Promise((done) => setTimeout(done, 200));
  found.opened = parts.filter((one) => one.open).map((one) => one.querySelector(".part").id);
  const folded = page.getElementById("a").closest("details");
  found.hidden = folded.querySelector(".part").checkVisibility();
  found.labels = [...page.querySelectorAll(".scroll")].map((one) => one.getAttribute("aria-label"));
  found.scripts = page.scripts.length;
}).catch((error) => { found.error = String(error); }).finally(() => {
  document.body.replaceChildren(JSON.stringify(found));
});
</script></body>"""

PICTURES = """<!doctype html><body style="margin: 0; display: flex; gap: 8px; background: #888">FRAMES</body>"""


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Write reports of one audit, of several audits, of all their sections, and of versions."""
    made = {"a": sample.no_violation(), "b " + "long" * 30: sample.violation(), "c": sample.inconclusive()}
    results = [dataclasses.replace(result, name=name) for name, result in made.items()]
    compared = dpaudit_reports.comparison(
        {
            "sum": {f"lib==1.{i} numpy==2.{i}": result for i, result in enumerate(results)},
            "laplace": {"lib==1.0": results[0]},
        },
        {("laplace", "lib==1.1"): "could not be run: no module named lib"},
    )
    dpaudit_reports.write_report(results[1:2], tmp_path / "one.html")
    dpaudit_reports.write_report(results, tmp_path / "suite.html")
    dpaudit_reports.write_report(results[:2], tmp_path / "full.html", full=True)
    dpaudit_reports.write_report(compared, tmp_path / "comparison.html")
    return tmp_path


@pytest.mark.skipif(browser.CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_reports_fit_a_phone_and_are_legible(pages: Path, dark: bool) -> None:
    names = ("one.html", "suite.html", "full.html", "comparison.html")
    frames = [[name, width] for name in names for width in (375, 1280)]
    (pages / "harness.html").write_text(HARNESS.replace("FRAMES", json.dumps(frames)))
    found = browser.found(pages / "harness.html", pages / "profile", dark=dark)
    _keep_pictures(pages, names, dark)
    assert "error" not in found
    for name, width, needed in found["wide"]:
        assert needed <= width, f"{name} needs {needed} of {width} pixels"
    for name, paper, contrast in found["colors"]:
        assert (paper < 0.05) is dark, f"{name} has paper of luminance {paper}"
        assert contrast >= 4.5, f"{name} has text of contrast {contrast}, and WCAG 2.2 demands 4.5"
    assert found["targets"] == []
    assert all(cut == 0 for _, _, cut in found["sizes"])
    assert found["unseen"] == 0, "cells of tables are hidden"
    assert found["opened"] == ["c"], "a link opens the part, and no other"
    assert found["hidden"] is False
    assert "table: Method" not in found["labels"]
    assert found["scripts"] == 0


def _keep_pictures(pages: Path, names: tuple[str, ...], dark: bool) -> None:
    if not browser.SCREENSHOTS:
        return
    for name in names:
        frames = "".join(f'<iframe src="{name}" width="{width}" height="3000"></iframe>' for width in (375, 1280))
        (pages / "pictures.html").write_text(PICTURES.replace("FRAMES", frames))
        picture = f"{Path(name).stem}-{'dark' if dark else 'light'}.png"
        browser.screenshot(pages / "pictures.html", pages / "profile", picture, size=(1670, 3000), dark=dark)


# --- the index and the pages of a site in headless Chromium: nothing overflows, and the controls work


# A page that holds the site's pages in frames of two widths, uses the controls, and writes what it found.
SITE_HARNESS = """<!doctype html><body><script>
const found = {};
const frames = FRAMES.map(([name, width]) => {
  const frame = document.createElement("iframe");
  Object.assign(frame, { src: name, width, height: 800 });
  return [name, width, frame, new Promise((loaded) => frame.addEventListener("load", loaded))];
});
frames.forEach(([, , frame]) => document.body.append(frame));
Promise.all(frames.map(([, , , loaded]) => loaded)).then(() => {
  found.wide = frames.map(([name, width, frame]) => [name, width, frame.contentDocument.documentElement.scrollWidth]);
  const page = frames[0][2].contentDocument, by = (id) => page.getElementById(id);
  const names = () => [...page.querySelectorAll("tbody tr:not([hidden]) a")].map((link) => link.textContent);
  const change = (id, value, event) => {
    by(id).value = value;
    by(id).dispatchEvent(new Event(event));
    return names();
  };
  const button = (title) => [...page.querySelectorAll("th button")].find((one) => one.textContent === title);
  found.first = names();
  found.words = change("words", "OPACUS gauss", "input");
  found.count = by("shown").textContent;
  found.all = change("words", "", "input").length;
  found.verdict = change("verdict", "open", "change");
  change("verdict", "", "change");
  found.newest = change("order", String(button("Date").closest("th").cellIndex), "change");
  button("Audit").click();
  found.sorted = names();
  found.state = page.querySelector("th[aria-sort]").getAttribute("aria-sort");
  button("Audit").click();
  found.reversed = names();
  frames[0][2].contentWindow.focus();
  by("words").focus();
  found.focus = frames[0][2].contentWindow.getComputedStyle(by("words")).outlineWidth;
  found.scripts = page.scripts.length;
}).catch((error) => { found.error = String(error); }).finally(() => {
  document.body.replaceChildren(JSON.stringify(found));
});
</script></body>"""


@pytest.mark.skipif(browser.CHROMIUM is None, reason="Chromium is not installed")
def test_nothing_overflows_and_the_index_sorts_and_filters(tmp_path: Path) -> None:
    """A wrong policy or a syntax error of the script fails here, because the controls would then stay hidden."""
    found = _found(tmp_path)
    assert "error" not in found
    for name, width, needed in found["wide"]:
        assert needed <= width, f"{name} needs {needed} of {width} pixels"
    assert found["first"] == ["b " + "long" * 30, "a", "c"]  # violation, inconclusive, no violation found
    assert found["words"] == ["a"]
    assert found["count"] == "1 of 3 audits"
    assert found["all"] == 3
    assert found["verdict"] == ["a"]
    assert found["newest"] == ["c", "a", "b " + "long" * 30]
    assert found["sorted"] == ["a", "b " + "long" * 30, "c"]
    assert found["state"] == "ascending"
    assert found["reversed"] == found["sorted"][::-1]
    assert found["focus"] == "3px"
    assert found["scripts"] == 1


def _found(folder: Path) -> dict[str, Any]:
    made = (("b " + "long" * 30, sample.violation()), ("c", sample.no_violation()), ("a", sample.inconclusive()))
    results = []
    for (name, result), date in zip(made, ("2024", "2026", "2025"), strict=True):
        about = {"date": f"{date}-01-01T00:00:00+00:00", "audit": "requires: [opacus]"}
        packages = {"opacus": "1.5.3"} if name == "a" else {}
        provenance = Provenance.read({**about, "packages of the mechanism": packages})
        results.append(dataclasses.replace(result, name=name, provenance=provenance))
    dpaudit_reports.write_site(results, folder / "site")
    pages = sorted(file.name for file in (folder / "site").glob("?-*.html"))
    frames = [[name, width] for name in ("index.html", *pages) for width in (375, 1280)]
    (folder / "site" / "harness.html").write_text(SITE_HARNESS.replace("FRAMES", json.dumps(frames)))
    return browser.found(folder / "site" / "harness.html", folder / "profile")
