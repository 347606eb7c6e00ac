"""Write pages as notebooks, which open in Jupyter: python docs/notebooks.py

A notebook holds the page's text and its Python blocks, without what the blocks print.  `tests/test_docs.py` compares
the notebooks with the pages, whose code it runs.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS = Path(__file__).parent
PAGES = ("choosing", "scores", "synthetic-data", "training")
SITE = "https://github.com/dpaudit/dpaudit/blob/main/docs"


def notebook(page: str) -> str:
    """Return the notebook of a page as JSON (nbformat 4.5)."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    text = re.sub(r"(```python\n.*?```\n)\n```text\n.*?```\n", r"\1", text, flags=re.DOTALL)
    cells = []
    for number, part in enumerate(re.split(r"```python\n(.*?)```\n", text, flags=re.DOTALL)):
        code = number % 2 == 1 and not part.startswith("# requires:")
        if number % 2 == 1 and not code:
            part = f"```python\n{part}```"
        part = part if code else re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"]({SITE}/\1)", part)
        if not part.strip():
            continue
        cell: dict[str, object] = {
            "cell_type": "code" if code else "markdown",
            "id": f"{page}-{number}",
            "metadata": {},
        }
        cell |= {"execution_count": None, "outputs": []} if code else {}
        cells.append({**cell, "source": part.strip().splitlines(keepends=True)})
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


if __name__ == "__main__":
    (DOCS / "notebooks").mkdir(exist_ok=True)
    for name in PAGES:
        (DOCS / "notebooks" / f"{name}.ipynb").write_text(notebook(name), encoding="utf-8")
