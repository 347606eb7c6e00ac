"""Shows the design of a training audit, its scores, the certified against the claimed epsilon, and its assumptions."""

from __future__ import annotations

import math
from functools import partial

from dpaudit.result.model import AuditResult
from dpaudit.result.training import TrainingRecord
from dpaudit.result.words import words_of
from dpaudit.rounding import at_least, count, number, percent_at_least
from dpaudit.text import printable
from dpaudit_reports.blocks import Block, Figure, Heading, Items, KeyValues, Panel, Paragraph, Text
from dpaudit_reports.claimed import DELTAS, allowed_epsilon
from dpaudit_reports.figures.bars import Bar, bars_svg
from dpaudit_reports.figures.canvas import ATTACK, CLAIM, WITNESS
from dpaudit_reports.figures.evidence import training_svg

_DELTA = 1e-5  # usual delta of the compared epsilons, as in papers about training

_DESIGNS = {
    "many runs": "many runs: each model was trained on d0 or on d1, and has one score",
    "one run": "one run: a fair coin decided for each canary whether it was included, and each canary has one score",
    "sequential": "many runs: models were trained on both datasets until the evidence sufficed; scores are learned",
    "fixed": "many runs: a fixed number of models was trained on both datasets; scores are learned",
    "step by step": "step by step: a fair coin decided before each step whether the canary joined the batch",
}
_SIDES = {  # of designs in which canaries are included at random; the others train models on d0 and on d1
    "one run": ("excluded canaries", "included canaries"),
    "step by step": ("steps without canary", "steps with canary"),
}
_INDEPENDENT = (
    "The trainings are independent of each other. The order of the scores was tested, but no test finds every "
    "dependence.",
    "The two datasets are neighbours in the sense of the claim.",
    "The certified bound assumes nothing about the model, the canary or the distribution of the scores.",
)
_ASSUMPTIONS = {
    "many runs": (*_INDEPENDENT, "The number of models was chosen before the first score was seen."),
    "one run": (
        "The coins are fair and secret: the scores depend on the coins only through the trained model.",
        "The claim is about a record that is added or removed.",
        "The number of guesses was chosen before the scores were seen.",
    ),
    "step by step": (
        "The coins are fair and secret: the score of a step depends on its coin only through the release of this step.",
        "The claim is about one step with a full batch, given all earlier steps.",
        "A step may depend on all earlier steps in any way.",
    ),
}


def training(result: AuditResult) -> tuple[Block, ...]:
    """Return the section of an audit of training; other audits have no such section."""
    record = result.training
    if record is None:
        return ()
    rows: tuple[tuple[str, Text], ...] = (
        ("design", _DESIGNS[record.design]),
        *((("training", printable(record.training)),) if record.training else ()),
        ("canaries" if record.design in _SIDES else "datasets", printable(record.canary)),
        *((("scores", _sizes(record)),) if record.edges else ()),
    )
    compared, meaning = _compared(result)
    panels = (*_scores(record), *compared)
    return (
        Heading("Training"),
        KeyValues(rows),
        *((Figure(panels, caption=f"{_CAPTION if record.edges else ''}{meaning}"),) if panels else ()),
        Paragraph("The result assumes the following:"),
        Items(_assumptions(result, record)),
    )


_CAPTION = (
    "Scores: a score that is higher with the canary reveals the canary. If the training revealed nothing, the two "
    "histograms would differ only by chance. The first and the last bar include more extreme scores. "
)


def _sizes(record: TrainingRecord) -> str:
    without, included = _SIDES.get(record.design, ("models on d0", "models on d1"))
    return f"{count(sum(record.out))} {without}, {count(sum(record.into))} {included}"


def _scores(record: TrainingRecord) -> tuple[Panel, ...]:
    if not record.edges:
        return ()
    alt = f"Two histograms of scores: {_sizes(record)}."
    names = ("without canary", "with canary") if record.design in _SIDES else ("d0", "d1")
    return (Panel(partial(training_svg, record, *names), alt=alt, title="Scores"),)


def _compared(result: AuditResult) -> tuple[tuple[Panel, ...], str]:
    if not result.bounds_valid:
        return (), "Nothing is certified, as the warnings explain."
    delta = _shown_delta(result)
    certified = float(result.epsilon_lower(delta))
    claimed = math.nan if result.measurement else allowed_epsilon(result.claim, delta)
    assumed = float(result.epsilon_lower(delta, assuming="gaussian"))
    reach = 1.15 * max(value for value in (certified, assumed, claimed, 0.0) if math.isfinite(value))
    if reach == 0 or math.isinf(max(certified, assumed)):
        return (), ""
    rows = [Bar(f"certified: ε {at_least(certified)}", 0.0, certified / reach, ATTACK)]
    if assumed > certified:
        rows.append(Bar(f"certified if Gaussian: ε {at_least(assumed)}", 0.0, assumed / reach, WITNESS))
    if math.isfinite(claimed):
        rows.append(Bar(f"claimed: ε ≤\u00a0{number(claimed, 4)}", 0.0, claimed / reach, CLAIM))
    title = f"Certified and claimed ε at δ = {number(delta)}"
    which = " for some step" if result.training is not None and result.training.design == "step by step" else ""
    meaning = (
        f"Certified: with {percent_at_least(result.confidence)} confidence, ε is at least this large{which}. "
        "A better canary or score may certify more."
    )
    if assumed > certified:
        meaning += " If Gaussian: this bound assumes, untested, that the trade-off curve of the training is Gaussian."
    if result.violated and not certified > claimed:
        meaning += " The claim was refuted, but no shown bound on ε alone exceeds the claim."
    return (Panel(partial(bars_svg, rows), alt="; ".join(row.label for row in rows) + ".", title=title),), meaning


def _shown_delta(result: AuditResult) -> float:
    """Return 1e-5, or after a violation a delta at which the certified epsilon exceeds the claimed epsilon."""
    if not result.violated:
        return _DELTA
    above = (d for d in (_DELTA, *DELTAS) if result.epsilon_lower(d) > allowed_epsilon(result.claim, d))
    return next(above, _DELTA)


def _assumptions(result: AuditResult, record: TrainingRecord) -> tuple[str, ...]:
    listed = _ASSUMPTIONS.get(record.design, _INDEPENDENT)
    if record.design != "one run":
        return listed
    stated = words_of(result.evidence).assumption
    return *listed, f"Not tested: {stated}." if stated else "Canaries may depend on each other in any way."
