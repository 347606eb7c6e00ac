"""The page on configs lists the keys of the schema, and its example is read."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from dpaudit.config import read_configs

DOCS = Path(__file__).parent.parent / "docs"


def test_the_page_lists_the_keys_of_the_schema() -> None:
    """If this fails, run `python docs/keys.py`."""
    keys = runpy.run_path(str(DOCS / "keys.py"))
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert keys["page_with"](keys["sections"](), page) == page
    for key in ("failures", "out_of_domain", "python_version", "from_library", "expect"):
        assert f"| `{key}` | " in page


def test_the_example_is_read(tmp_path: Path) -> None:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "c.yaml").write_text(example)
    assert read_configs([tmp_path / "c.yaml"])[0].config.name == "my-audit"
