"""Write a page for each public name that reference.md lists: a hook of MkDocs, named in mkdocs.yml.

A line `- dpaudit.audit` of reference.md becomes a link to the page with the object's docstring.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

LISTED = re.compile(r"^- `(dpaudit[\w.]*)`$", re.MULTILINE)
REFERENCE = Path(__file__).parent / "reference.md"


def names() -> list[str]:
    """Return the public names that reference.md lists."""
    return LISTED.findall(REFERENCE.read_text(encoding="utf-8"))


def address(name: str) -> str:
    """Return the module and name where an object is defined, such as dpaudit.engine.audit.audit."""
    found = public(name)
    return name if inspect.ismodule(found) else f"{found.__module__}.{found.__qualname__}"


def public(name: str) -> Any:
    """Return the object with a dotted public name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(importlib.import_module(module), last)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of all names."""
    from mkdocs.structure.files import File

    for name in names():
        short = name.removeprefix("dpaudit.")
        shown = f"::: {address(name)}\n    options: {{show_root_heading: false}}\n"
        content = f"# {short}\n\n[Reference](../reference.md)\n\n{shown}"
        files.append(File.generated(config, f"reference/{short}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Link each listed name to its page, with the first line of its docstring."""

    def linked(match: re.Match[str]) -> str:
        short = match[1].removeprefix("dpaudit.")
        first = (inspect.getdoc(public(match[1])) or "").split("\n")[0]
        return f"- [`{short}`](reference/{short}.md): {first}"

    return LISTED.sub(linked, markdown) if page.file.src_uri == "reference.md" else markdown
