"""The documentation as a site, in headless Chromium: no page overflows a phone, and every picture is there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from .reports import browser

ROOT = Path(__file__).parent.parent

# A page that shows each page of the site in frames of two widths, one page after the other, and writes what it found.
HARNESS = """<!doctype html><body><script>
const found = { wide: [], missing: [] };
const shown = async ([name, width]) => {
  const frame = document.createElement("iframe");
  Object.assign(frame, { src: name, width, height: 800 });
  const loaded = new Promise((done) => frame.addEventListener("load", done));
  document.body.append(frame);
  await loaded;
  const page = frame.contentDocument;
  found.wide.push([name, width, page.documentElement.scrollWidth]);
  found.missing.push(...[...page.images].filter((one) => !one.naturalWidth).map((one) => [name, one.src]));
  frame.remove();
};
(async () => {
  for (const one of FRAMES) await shown(one);
})().catch((error) => { found.error = String(error); }).finally(() => {
  document.body.replaceChildren(JSON.stringify(found));
});
</script></body>"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="the extra docs is not installed")
@pytest.mark.skipif(browser.CHROMIUM is None, reason="Chromium is not installed")
def test_no_page_of_the_documentation_overflows(tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=600)
    pages = sorted(str(page.relative_to(site)) for page in site.rglob("index.html"))
    assert len(pages) == len(list((ROOT / "docs").glob("*.md")))
    for page in pages:  # the scripts of the theme do not run in a frame of a local file, and the layout needs none
        text = (site / page).read_text(encoding="utf-8")
        (site / page).write_text(re.sub(r"<script\b.*?</script>", "", text, flags=re.DOTALL), encoding="utf-8")
    frames = [[page, width] for page in pages for width in (375, 1280)]
    (site / "harness.html").write_text(HARNESS.replace("FRAMES", json.dumps(frames)))
    found = browser.found(site / "harness.html", tmp_path / "profile", seconds=120)
    assert "error" not in found
    assert found["missing"] == []
    assert [(name, width, needed) for name, width, needed in found["wide"] if needed > width] == []
    assert len(found["wide"]) == len(frames)
