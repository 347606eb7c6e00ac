"""Write the sample reports of the documentation: python docs/samples.py

Two are audits of configs/quickstart.yaml, whose libraries draw from the operating system, so each call gives others.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import typst

from dpaudit import AuditResult, audit_scores

SAMPLES = Path(__file__).parent / "samples"
CONFIG = Path(__file__).parent.parent / "configs" / "quickstart.yaml"
AUDITS = {"violation": "pydp-sum-clamped-to-the-data", "no-violation": "opendp-laplace-sum"}
FIRST_PAGE = """
#set page(width: 595pt, height: 720pt, margin: 0pt)
#place(top + left, image("report.pdf", page: 1, width: 595pt, height: 842pt))
"""


def without_folders(result: AuditResult) -> AuditResult:
    """Return the result without the folders of the machine that made it."""
    made = result.provenance
    assert made.mechanism_file is not None
    file = replace(made.mechanism_file, path=Path(made.mechanism_file.path).name)
    return replace(result, provenance=replace(made, folder=None, mechanism_file=file))


def main() -> None:
    """Write each report as PDF and HTML, and the first page of the first one as a picture."""
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".yaml", ".py"):
            shutil.copy(CONFIG.with_suffix(suffix), folder)
        command = [sys.executable, "-m", "dpaudit", "run", CONFIG.name, "--no-pdf"]
        subprocess.run(command, check=False, cwd=folder)
        results = {
            name: without_folders(AuditResult.from_json(f"{folder}/dpaudit-results/{audit}.json"))
            for name, audit in AUDITS.items()
        }
        included = np.random.default_rng(1).random(1000) < 0.5
        scores = np.random.default_rng(2).normal(2 * included)
        results["scores"] = audit_scores(
            scores[~included], scores[included], "approximate(epsilon=2, delta=1e-5)", seed=1, name="my-training"
        )
        for name, result in results.items():
            result.to_pdf(SAMPLES / f"{name}.pdf")
            result.to_html(SAMPLES / f"{name}.html")
        shutil.copy(SAMPLES / "violation.pdf", f"{folder}/report.pdf")
        Path(folder, "page.typ").write_text(FIRST_PAGE)
        typst.compile(f"{folder}/page.typ", output=str(SAMPLES / "violation.png"), format="png", ppi=110)


if __name__ == "__main__":
    main()
