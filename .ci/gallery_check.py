"""Ends with an error if an audit of the gallery has no result, or has a verdict that its config does not expect.

Usage: python .ci/gallery_check.py AUDITS.json RESULTS, with the output of `dpaudit run --format json -o RESULTS`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def problems(audits: Path, results: Path) -> list[str]:
    """Return a sentence for each audit without a result or with an unexpected verdict, and for a wrong number."""
    made = json.loads(audits.read_text(encoding="utf-8"))
    found = [f"{audit['name']}: no result: {audit['reason']}" for audit in made if audit["verdict"] is None]
    found += [
        f"{audit['name']}: {audit['verdict']}, but {audit['expected']} is expected: {audit['reason']}"
        for audit in made
        if audit["verdict"] is not None and audit["as_expected"] is False
    ]
    if (files := len(list(results.glob("*.json")))) != len(made):
        found.append(f"the folder {results} has {files} results, but the configs have {len(made)} audits")
    return found or ([] if made else ["no audit was made"])


if __name__ == "__main__":
    sys.exit("\n".join(problems(*map(Path, sys.argv[1:]))) or None)
