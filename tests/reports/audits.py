"""Results of real audits, and the text of their reports."""

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from html import unescape
from typing import Any
from xml.etree import ElementTree

import numpy as np

import dpaudit_reports
from dpaudit import Pair, audit
from dpaudit.inference.grid import BINS
from dpaudit.result.evidence import FixedEvidence
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.text import Reason, WarningCode
from dpaudit_reports.blocks import Block, Document, Figure
from dpaudit_reports.document import document
from dpaudit_reports.sections import SECTIONS

from . import sample

PAIR = Pair([0.0], [1.0])


def laplace(scale: float) -> Callable[[list[float], np.random.Generator], float]:
    return lambda dataset, rng: float(sum(dataset) + rng.laplace(scale=scale))


def undrawn(report: Document) -> Document:

    def bare(blocks: Sequence[Block]) -> tuple[Block, ...]:
        return tuple(_undrawn(block) if isinstance(block, Figure) else block for block in blocks)

    parts = tuple(dataclasses.replace(part, blocks=bare(part.blocks)) for part in report.parts)
    return dataclasses.replace(report, front=bare(report.front), parts=parts)


def _undrawn(figure: Figure) -> Figure:
    panels = (dataclasses.replace(panel, svg=lambda: "<svg></svg>") for panel in figure.panels)
    return dataclasses.replace(figure, panels=tuple(panels))


def text_of(*results: AuditResult) -> str:
    """Return the text of the HTML page, which equals that of the PDF, without words in figures."""
    page = dpaudit_reports.to_html(undrawn(document(results, SECTIONS)))
    page = re.sub(r"<style>.*?</style>|<svg.*?</svg>|<title>.*?</title>|<nav.*?</nav>", "", page, flags=re.DOTALL)
    inline = re.sub(r"</?(?:code|strong|var|a)\b[^>]*>", "", page)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", inline)).split())


def markdown(*results: AuditResult) -> str:
    return " ".join(dpaudit_reports.to_markdown(list(results)).replace("\u00a0", " ").split())


def words_in(svg: str) -> str:
    return " ".join(
        "".join(text.itertext()) for text in ElementTree.fromstring(svg).iter() if text.tag.endswith("}text")
    )


@functools.cache
def pure_violation() -> AuditResult:
    claim = "pure(epsilon=1.0000000000000022)"
    return audit(laplace(0.6), claim, PAIR, trials=5000, seed=1, name="pure", confirm="never", attacks="logistic")


@functools.cache
def fixed(scale: float) -> AuditResult:
    how: Any = {"method": "fixed", "confirm": "never", "attacks": "logistic"}
    return audit(laplace(scale), "pure(epsilon=1)", PAIR, trials=1000, seed=1, name="fixed", **how)


def with_witness(result: AuditResult, **fields: Any) -> AuditResult:
    assert result.witness is not None
    return dataclasses.replace(result, witness=dataclasses.replace(result.witness, **fields))


def as_fixed(result: AuditResult) -> AuditResult:
    """Return the result of a sequential audit of one pair, with its counts as those of a fixed number of runs."""
    (counts,) = result.evidence.histograms
    evidence = FixedEvidence(pair=0, threshold=BINS // 2, pilot=counts, counts=counts)
    return dataclasses.replace(result, method=evidence.kind.method, evidence=evidence)


def dependent() -> AuditResult:
    signs = "68 of 237 outputs equal the output 25 runs earlier, on d0"
    return dataclasses.replace(
        sample.violation(),
        verdict=Verdict.INCONCLUSIVE,
        bounds_valid=False,
        p_value=1.0,
        e_value=1.0,
        mu_lower=0.0,
        warnings=("attack x was dropped", Reason(signs, WarningCode.DEPENDENT)),
    )
