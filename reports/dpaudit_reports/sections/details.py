"""Page 2: the trade-off plot and the bounds, the scores or the training, attacks, pairs, limits, and provenance."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial

import yaml

from dpaudit.result.evidence import fingerprint, given_scores
from dpaudit.result.model import AuditResult
from dpaudit.result.summary import allowed_rate, p_value_words
from dpaudit.result.values import Witness
from dpaudit.result.words import quotation, words_of
from dpaudit.rounding import (
    at_least,
    at_most,
    count,
    lower,
    number,
    percent,
    percent_at_least,
    percent_at_most,
    seconds,
    upper,
)
from dpaudit.text import shortened
from dpaudit_reports.blocks import (
    Block,
    Code,
    Column,
    Columns,
    Figure,
    Heading,
    Items,
    KeyValues,
    Listing,
    NewPage,
    Panel,
    Paragraph,
    Span,
    Strong,
    Table,
    Text,
    first,
    with_mathematics,
)
from dpaudit_reports.claimed import DELTAS, Bound, epsilon_bound, headline, label, mu_bound, tells
from dpaudit_reports.figures.residual import tradeoff_hints
from dpaudit_reports.figures.tradeoff import observed, point_name, tradeoff_svg
from dpaudit_reports.rates import (
    MAX_SHOWN,
    RegionStatus,
    interval_text,
    intervals,
    region_status,
)
from dpaudit_reports.verdicts import unseen, why_void

_DELTA = 1e-5  # usual delta of bounds about training, as in papers


def new_page(result: AuditResult) -> tuple[Block, ...]:
    return (NewPage(),)


_FEW = 30  # runs on each dataset; a curve of fewer would look like a finding


def errors_and_bounds(result: AuditResult) -> tuple[Block, ...]:
    """Return the trade-off plot beside the certified bounds."""
    plot: Block = Figure((tradeoff_panel(result),), tuple(_errors(result)))
    if result.evidence.kind.of_pairs and result.evidence.trials < _FEW:
        plot = Paragraph(f"No curve is drawn from fewer than {_FEW} runs.", quiet=True)
    return (Columns((Heading("Errors of the attack"), plot), (*bounds(result), *region(result))),)


def tradeoff_panel(result: AuditResult) -> Panel:
    """Return the plot of the claim and of the attack's errors, which marks the witness."""
    return Panel(partial(tradeoff_svg, result), alt=_errors_in_words(result), hints=partial(tradeoff_hints, result))


def _errors(result: AuditResult) -> tuple[Span, ...]:
    words = " If the claim is true, no attack's true errors lie in the grey area."
    if void := why_void(result):
        words += f" Grey line: the observed errors, which bound nothing: {void}."
    elif result.curve.alpha.size:
        words += " Blue: the observed errors, which chance can carry into it."
    name = point_name(result)
    if name:
        which = "the witness" if result.violated else "a region that shows no violation"
        words += f" Diamond: {which}, with its 95\u00a0% intervals."
    return (*with_mathematics(words_of(result.evidence).errors), words)


def _errors_in_words(result: AuditResult) -> str:
    words = f"Type II error against type I error. The claim {label(result.claim)} forbids the region below its curve."
    if void := why_void(result):
        return f"{words} The observed errors bound nothing: {void}."
    points = observed(result)
    if len(points):
        alpha, beta = points[(points[:, 0] + points[:, 1]).argmin(), :2]
        words += f" The attack's errors reach type I error {number(alpha, 3)} with type II error {number(beta, 3)}."
    name, witness = point_name(result), result.witness
    if not name or witness is None:
        return words
    marked = f"The {name} has type I error {number(witness.alpha)} and type II error {number(witness.beta)}."
    if math.isnan(limit := allowed_rate(result)):
        return f"{words} {marked}"
    return f"{words} {marked} The claim promises a type II error of at least {lower(1 - limit, 3)} there."


def bounds(result: AuditResult) -> tuple[Block, ...]:
    """Return certified lower bounds and the values that the claim allows, with the claim's own parameter first."""
    heading = Heading("Certified bounds")
    if void := why_void(result):
        return heading, Paragraph((Strong(f"Nothing is certified: {void}."),))
    rows = [_row(bound) for bound in _all_bounds(result)]
    rows = [row for i, row in enumerate(rows) if i == 0 or row[1:] != rows[i - 1][1:]]  # the same at several deltas
    if result.training is not None:
        assumed = result.epsilon_lower(_DELTA, assuming="gaussian")
        rows.append((f"ε at δ = {number(_DELTA)}, if the curve is Gaussian", at_least(float(assumed)), "–"))
    columns = (Column("Parameter", grow=1), Column("Certified", align="right"), Column("Claimed", align="right"))
    together = "hold together" if result.evidence.kind.anytime else "hold separately"
    sure = f"{together} with {percent_at_least(result.confidence)} confidence"
    notes = f"Lower bounds, which {sure}; 0 means that nothing is certified."
    if assumption := words_of(result.evidence).assumption:
        notes += f" They assume, untested, that {assumption}."
    return heading, Table(columns, tuple(rows)), Paragraph(notes, quiet=True)


def _all_bounds(result: AuditResult) -> tuple[Bound, ...]:
    everywhere = (mu_bound(result), *(epsilon_bound(result, delta) for delta in DELTAS))
    if (own := headline(result)) is None:
        return everywhere
    return (own, *(b for b in everywhere if (b.symbol, b.delta) != (own.symbol, own.delta)))


def _row(bound: Bound) -> tuple[Text, ...]:
    allowed = "no limit" if math.isinf(bound.claimed) else f"≤\u00a0{bound.claimed_text()}"
    certified = bound.certified_text()
    return bound.name(), (Strong(f"▲ {certified}"),) if bound.exceeds else certified, allowed


def scores(result: AuditResult) -> tuple[Block, ...]:
    """Return what given scores prove under each assumption."""
    if given_scores(result.evidence) is None or not result.bounds:
        return ()
    columns = (Column("Assumption", grow=1), Column("Proven", align="right"), Column("Could prove", align="right"))
    rows = tuple(
        (
            f"{row.assumption}{' (the verdict)' if row.verdict else ''}",
            f"ε\u00a0{at_least(row.epsilon)}",
            upper(row.most, 3),
        )
        for row in result.bounds
    )
    needed = "" if result.violated else result.detectable.needed
    needed = f" {needed[:1].upper()}{needed[1:]}." if needed else ""
    words = (
        f"At δ = {number(result.bounds[0].delta)}. Could prove: the largest bound of this number of scores. "
        f"Members and non-members from different sources prove nothing.{needed}"
    )
    return Heading("What the scores prove"), Table(columns, rows), Paragraph(words, quiet=True)


# --- the region, attacks, and pairs

_HEADINGS = {
    RegionStatus.WITNESS: "Where the datasets differ",
    RegionStatus.TESTED: "The tested region (no violation)",
    RegionStatus.CLOSEST: "Closest to a violation",
}


def region(result: AuditResult) -> tuple[Block, ...]:
    """Return the rejection region in words, its counts with exact intervals, and their meaning."""
    status, witness = region_status(result), result.witness
    if status not in _HEADINGS or witness is None or words_of(result.evidence).again:
        return ()
    counts, both = witness.counts, intervals(witness)
    hits1 = counts.n1 - counts.false_negatives
    alpha, inside = (None, None) if both is None else (both[0], (1 - both[1][1], 1 - both[1][0]))
    rows: tuple[tuple[Text, ...], ...] = (
        (
            "d0",
            count(counts.n0),
            count(counts.false_positives),
            percent(counts.false_positives / counts.n0),
            interval_text(alpha),
        ),
        ("d1", count(counts.n1), count(hits1), percent(hits1 / counts.n1), interval_text(inside)),
    )
    titles = ("Outputs", "In the region", "Rate", "95\u00a0% interval")
    columns = (Column("", grow=1), *(Column(title, align="right") for title in titles))
    named = Paragraph((Strong(witness.region), *query_of(witness), "."))
    return Heading(_HEADINGS[status]), named, Table(columns, rows), Paragraph(_origin(result, witness), quiet=True)


def query_of(witness: Witness) -> tuple[Span, ...]:
    """Return the query of synthetic tables that tells the datasets apart best, in words."""
    if not witness.query:
        return ()
    return "; outcome of the runs: " if witness.outcomes else "; most telling query of the released tables: ", Strong(
        witness.query
    )


_ORIGINS = {
    "frozen": "Region and attack were fixed before these outputs came.",
    "later": (
        "Region and attack were fixed during the audit, and counted on later outputs. These decide when the audit "
        "stops, so the observed rates may look worse than the true ones; the intervals hold whenever the audit stops."
    ),
    "moving": (
        "The attack was still learning, so these counts mix several regions, and have no intervals. The region in "
        "words is the last one."
    ),
}


def _origin(result: AuditResult, witness: Witness) -> str:
    words = f"{_ORIGINS.get(witness.counted, '')} Pair: {witness.pair}. Attack: {witness.attack}."
    if not math.isnan(limit := allowed_rate(result)):
        at = f"if the rate of d0 is at most {percent_at_most(witness.alpha_upper)}, the end of its interval"
        words = f"The claim allows at most {percent_at_most(limit)} of d1, {at}. {words}"
    return words.strip()


def attacks(result: AuditResult) -> tuple[Block, ...]:
    """Return the attacks with at least 1 % of the weight, sorted by weight."""
    if not result.evidence.kind.of_pairs:
        return ()
    used = sorted((row for row in result.attacks if row.weight >= _LEAST_WEIGHT), key=lambda row: -row.weight)
    if not used:
        return Heading("Attacks"), Paragraph(f"None of {count(len(result.attacks))} attacks has learned.", quiet=True)
    noted = any(row.note for row in used)
    numbers = Column("Weight", align="right"), Column("Log loss", align="right")
    columns = (Column("Attack", grow=1), *numbers, *((Column("Note", grow=1),) if noted else ()))
    rows = []
    shown, left_out = first(used, "attacks")
    for row in shown:
        loss = "–" if math.isnan(row.log_loss) else number(row.log_loss)
        rows.append((row.name, percent(round(row.weight, 3), 2), loss, row.note)[: len(columns)])
    others = len(result.attacks) - len(used)
    more = (
        f" {count(others)} other attacks have a weight below 1\u00a0% or were not used; the result file lists them."
        if others
        else ""
    )
    words = f"Weight in the combined score. Log loss: on new outputs, in nats; guessing has 0.693.{more}"
    return Heading("Attacks"), Table(columns, tuple(rows)), *left_out, Paragraph(words, quiet=True)


_LEAST_WEIGHT = 0.01
_PAIRS = 3  # number of pairs that are listed


def pairs(result: AuditResult) -> tuple[Block, ...]:
    """Return a row for each pair, those with the most evidence first; nothing if page 1 shows all pairs."""
    short = all(len(text) <= MAX_SHOWN for row in result.pairs for text in (row.d0, row.d1))
    if not result.evidence.kind.of_pairs or not result.pairs or (len(result.pairs) == 1 and short):
        return ()
    valid = result.bounds_valid and result.evidence.kind.anytime
    ordered = sorted(result.pairs, key=lambda row: -row.log_e) if valid else list(result.pairs)
    numbers = (Column(title, align="right") for title in ("Runs", "e-value")[: 1 + valid])
    columns = Column("Pair", grow=2), Column("d0", grow=2), Column("d1", grow=2), *numbers
    rows = []
    for row in ordered[:_PAIRS]:
        # The difference is stated if the texts of the datasets do not show it.
        second: Span = f"d0 with a difference: {quotation(row.difference)}" if row.difference else Code(row.d1)
        e_value = number(math.exp(row.log_e) if row.log_e < 700 else math.inf)
        rows.append((row.label or "–", (Code(row.d0),), (second,), count(row.trials), e_value)[: len(columns)])
    words = "e-value: the evidence of this pair alone; 1 is no evidence. " if valid else ""
    if more := len(ordered) - _PAIRS:
        words += f"{count(more)} more pairs are in the result file." if more > 0 else ""
    return Heading("Pairs"), Table(columns, tuple(rows)), *((Paragraph(words.strip(), quiet=True),) if words else ())


# --- limits and provenance


def limits(result: AuditResult) -> tuple[Block, ...]:
    """Return what the audit could not see."""
    return Heading("What could not be seen"), Paragraph(unseen(result))


_MAX_LINES = 24  # maximum number of lines of a config; the result file has all lines
# Fields that are shown elsewhere or are of no use to readers, and fields that come first: the code, and its claim.
_ELSEWHERE = ("audit", "identity", "outputs", "first_outputs", "attack_seconds")

SEED = (
    "If the mechanism uses only the random generator that it receives, the same seed and versions give the same "
    "outputs, verdict and bounds."
)


def provenance(result: AuditResult) -> tuple[Block, ...]:
    """Return the recorded facts about the audit, the fingerprint of its evidence, and the config in short form."""
    config = result.provenance.audit
    return (
        Heading("Provenance"),
        KeyValues(origin(result)),
        Paragraph(f"{SEED} Method and references: docs/statistics.md of dpaudit.", quiet=True),
        *((listing(config),) if config else ()),
    )


def listing(config: str) -> Listing:
    """Return the first lines of a config, with lists of plain values on one line."""
    try:
        text = yaml.safe_dump(yaml.safe_load(config), default_flow_style=None, sort_keys=False, width=100)
    except (yaml.YAMLError, RecursionError):  # the text of a file that anybody may have written
        text = config
    lines = text.strip().splitlines()
    most = _MAX_LINES if len(lines) > _MAX_LINES + 1 else len(lines)  # a note on one more line is no shorter
    shown = [shortened(line) for line in lines[:most]]
    more = len(lines) - len(shown)
    return Listing("\n".join([*shown, *([f"# {count(more)} more lines are in the result file"] if more else [])]))


def origin(result: AuditResult) -> tuple[tuple[str, Text], ...]:
    """Return the names and values of the recorded facts, without the config."""
    shown = result.provenance.besides(*_ELSEWHERE)
    outputs = result.provenance.outputs
    rows: list[tuple[str, Text]] = []
    if tells(result):
        rows.append(("p-value", p_value_words(result, at_most)))
    rows += [(str(name), _value(value)) for name, value in shown.items() if value not in (None, "", {}, [])]
    rows += [("stopped by", result.stopped_by), ("elapsed", seconds(result.elapsed_s))]
    if outputs:
        rows.append(("outputs", (Code(outputs),)))
    return (*rows, ("counts", (Code(f"sha256:{fingerprint(result.evidence)}"),)))


def _value(value: object) -> Text:
    match value:
        case Mapping() if len(value) > 12:  # files or packages, which would fill pages
            return f"{count(len(value))}, listed in the result file"
        case Mapping():
            return ", ".join(f"{name} {_scalar(part)}" for name, part in value.items()) or "–"
        case list() | tuple():
            return ", ".join(_scalar(part) for part in value) or "–"
        case _:
            return str(value)


def _scalar(value: object) -> str:
    nested = isinstance(value, dict | list | tuple)
    return json.dumps(value, ensure_ascii=False, default=str) if nested else str(value)


def all_warnings(result: AuditResult) -> tuple[Block, ...]:
    """Return all warnings, if page 1 has shortened them or left some out."""
    if len(result.warnings) <= 3 and all(len(warning) <= 220 for warning in result.warnings):
        return ()
    shown, left_out = first(result.warnings, "warnings")
    return Heading("Warnings"), Items(tuple(shown), quiet=True), *left_out
