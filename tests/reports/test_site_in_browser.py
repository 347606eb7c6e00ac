"""The index and the pages of a site in headless Chromium: nothing overflows, and the controls work."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import dpaudit_reports
from dpaudit.result.provenance import Provenance

from . import browser, sample

# A page that holds the site's pages in frames of two widths, uses the controls, and writes what it found.
HARNESS = """<!doctype html><body><script>
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
    (folder / "site" / "harness.html").write_text(HARNESS.replace("FRAMES", json.dumps(frames)))
    return browser.found(folder / "site" / "harness.html", folder / "profile")
