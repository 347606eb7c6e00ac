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
from dpaudit.text import printable, shortened
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
from dpaudit_reports.claimed import DELTAS, epsilon_bound, headline, label, mu_bound, tells
from dpaudit_reports.figures.evidence import training_svg
from dpaudit_reports.figures.tradeoff import observed, point_name, tradeoff_hints, tradeoff_svg
from dpaudit_reports.rates import SHOWN_LENGTH, RegionStatus, ends, interval_text, intervals, region_status, with_minus
from dpaudit_reports.verdicts import unseen, why_void

_DELTA = 1e-5  # usual delta of bounds about training, as in papers
_FEW = 30  # runs on each dataset; a curve of fewer would look like a finding


def new_page(result: AuditResult) -> tuple[Block, ...]:
    return (NewPage(),)


def errors_and_bounds(result: AuditResult) -> tuple[Block, ...]:
    """Return the trade-off plot, which marks the witness, and the attacks, beside the certified bounds."""
    words = "" if result.measurement else " If the claim is true, no attack's true errors lie in the grey area."
    if void := why_void(result):
        words += f" Grey line: the observed errors, which bound nothing: {void}."
    elif result.curve.alpha.size:
        words += f" Blue: the observed errors{'' if result.measurement else ', which chance can carry into it'}."
    if point_name(result):
        which = "the witness" if result.violated else "a region that shows no violation"
        words += f" Diamond: {which}, with its 95\u00a0% intervals."
    plot: Block = Figure((tradeoff_panel(result),), (*with_mathematics(words_of(result.evidence).errors), words))
    if result.evidence.kind.of_pairs and result.evidence.trials < _FEW:
        plot = Paragraph(f"No curve is drawn from fewer than {_FEW} runs.", quiet=True)
    left = (Heading("Errors of the attack"), plot, *attacks(result))
    return (Columns(left, (*bounds(result), *region(result), *limits(result))),)


def tradeoff_panel(result: AuditResult, title: str = "") -> Panel:
    """Return the trade-off plot of a result."""
    return Panel(partial(tradeoff_svg, result), _errors_in_words(result), title, partial(tradeoff_hints, result))


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
    if not result.bounded:
        return ()
    shown = [mu_bound(result), *(epsilon_bound(result, delta) for delta in DELTAS)]
    if (own := headline(result)) is not None:
        shown = [own, *(bound for bound in shown if (bound.symbol, bound.delta) != (own.symbol, own.delta))]
    if all(bound.certified == 0 for bound in shown):
        return heading, Paragraph("No bound above 0 is proven.")
    rows: list[tuple[Text, ...]] = []
    for bound in shown:
        certified: Text = bound.certified_text()
        certified = (Strong(f"▲ {certified}"),) if bound.exceeds else certified
        values = certified, "no limit" if math.isinf(bound.claimed) else f"≤\u00a0{bound.claimed_text()}"
        if not rows or rows[-1][1:] != values:  # the same at several deltas
            rows.append((bound.name(), *values))
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


def scores(result: AuditResult) -> tuple[Block, ...]:
    """Return what given scores prove under each assumption."""
    if given_scores(result.evidence) is None or not result.bounds:
        return ()
    columns = (Column("Assumption", grow=1), Column("Proven", align="right"), Column("Could prove", align="right"))
    rows = tuple(
        (row.assumption + " (the verdict)" * row.verdict, f"ε\u00a0{at_least(row.epsilon)}", upper(row.most, 3))
        for row in result.bounds
    )
    words = f"At δ = {number(result.bounds[0].delta)}. Could prove: the largest bound of this number of scores."
    if needed := "" if result.violated else result.detectable.needed:
        words += f" {needed[:1].upper()}{needed[1:]}."
    return Heading("What the scores prove"), Table(columns, rows), Paragraph(words, quiet=True)


# --- the region, attacks, and pairs

_HEADINGS = {
    RegionStatus.WITNESS: "Where the datasets differ",
    RegionStatus.TESTED: "The tested region (no violation)",
    RegionStatus.CLOSEST: "Closest to a violation",
}
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
    "guesses": "",
}


def region(result: AuditResult) -> tuple[Block, ...]:
    """Return the rejection region in words, its counts with exact intervals, and their meaning."""
    status, witness = region_status(result), result.witness
    if status not in _HEADINGS or witness is None or words_of(result.evidence).again:
        return ()
    both, rows = intervals(witness), list[tuple[Text, ...]]()
    alpha, inside = (None, None) if both is None else (both[0], (1 - both[1][1], 1 - both[1][0]))
    counts = witness.counts
    hits1 = counts.n1 - counts.false_negatives
    for name, n, hits, interval in (("d0", counts.n0, counts.false_positives, alpha), ("d1", counts.n1, hits1, inside)):
        rows.append((name, f"{count(hits)} of {count(n)}", percent(hits / n), interval_text(interval)))
    titles = ("In the region", "Rate", "95\u00a0% interval")
    columns = (Column("", grow=1), *(Column(title, align="right") for title in titles))
    named: list[Span] = [Strong(with_minus(witness.region))]
    if witness.query:  # the query of synthetic tables that tells the datasets apart best
        about = "outcome of the runs: " if witness.outcomes else "most telling query of the released tables: "
        named += [f"; {about}", Strong(witness.query)]
    words = f"{_ORIGINS[witness.counted]} Pair: {witness.pair}. Attack: {witness.attack}."
    if not math.isnan(limit := allowed_rate(result)):
        at = f"if the rate of d0 is at most {percent_at_most(witness.alpha_upper)}, the end of its interval"
        words = f"The claim allows at most {percent_at_most(limit)} of d1, {at}. {words}"
    table = Table(columns, tuple(rows))
    return Heading(_HEADINGS[status]), Paragraph((*named, ".")), table, Paragraph(words.strip(), quiet=True)


_PAIRS = 3  # number of pairs that are listed
_LENGTH = 60  # of the text of a dataset in the list, in characters


def attacks(result: AuditResult) -> tuple[Block, ...]:
    """Return the attacks with at least 1 % of the weight, sorted by weight."""
    if not result.evidence.kind.of_pairs:
        return ()
    used = sorted((row for row in result.attacks if row.weight >= 0.01), key=lambda row: -row.weight)
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
    words = "Weight in the combined score. Log loss: on new outputs, in nats; guessing has 0.693."
    if others := len(result.attacks) - len(used):
        words += (
            f" {count(others)} other attacks have a weight below 1\u00a0% or were not used; the result file lists them."
        )
    return Heading("Attacks"), Table(columns, tuple(rows)), *left_out, Paragraph(words, quiet=True)


def pairs(result: AuditResult) -> tuple[Block, ...]:
    """Return a row for each pair, those with the most evidence first; nothing if page 1 shows all pairs."""
    short = all(len(text) <= SHOWN_LENGTH for row in result.pairs for text in (row.d0, row.d1))
    if not result.evidence.kind.of_pairs or not result.pairs or (len(result.pairs) == 1 and short):
        return ()
    valid = result.bounds_valid and result.evidence.kind.anytime
    ordered = sorted(result.pairs, key=lambda row: -row.log_e) if valid else list(result.pairs)
    numbers = (Column(title, align="right") for title in ("Runs", "e-value")[: 1 + valid])
    columns = Column("Pair", grow=1), Column("Datasets", grow=3), *numbers
    several, rows = len(result.pairs) > 1, []
    most = _LENGTH if several else 10_000  # a file has the text of a dataset, which is cut before
    for row in ordered[:_PAIRS]:
        first0, second = (Code(ends(text, most)) for text in (row.d0, row.d1))
        # The difference is stated if the texts of the datasets do not show it.
        shown: Text = (first0, " and ", second)
        if row.difference:
            shown = (first0, " and the same with a difference: ", quotation(row.difference))[-1 if several else 0 :]
        e_value = number(math.exp(row.log_e) if row.log_e < 700 else math.inf)
        rows.append((row.label or "–", shown, count(row.trials), e_value)[: len(columns)])
    words = ["e-value: the evidence of this pair alone; 1 is no evidence."] if valid else []
    if (more := len(ordered) - _PAIRS) > 0:
        words.append(f"{count(more)} more pairs are in the result file.")
    return Heading("Pairs"), Table(columns, tuple(rows)), *((Paragraph(" ".join(words), quiet=True),) if words else ())


# --- limits and provenance


def limits(result: AuditResult) -> tuple[Block, ...]:
    """Return what the audit could not see."""
    return Heading("What could not be seen"), Paragraph(unseen(result))


_MAX_LINES = 24  # maximum number of lines of a config; the result file has all lines
# Fields that are shown elsewhere or are of no use to readers.
_ELSEWHERE = (
    *("audit", "identity", "outputs", "first_outputs", "attack_seconds", "claim_stated_by", "folder"),
    *("command_number", "command_audits", "command_confidence"),
)

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
        Paragraph(f"{SEED} Method and references: docs/guarantees.md of dpaudit.", quiet=True),
        *((listing(config),) if config else ()),
    )


def listing(config: str) -> Listing:
    """Return a config in short form, each key with its values on one line; the result file has it as it was written."""
    text = config
    try:
        if isinstance(read := yaml.safe_load(config), dict):
            kept = ({key: value} for key, value in read.items() if key not in ("name", "source"))
            dump = partial(yaml.safe_dump, default_flow_style=True, sort_keys=False, allow_unicode=True, width=96)
            text = "\n".join(str(dump(one)).strip()[1:-1] for one in kept)
    except (yaml.YAMLError, RecursionError):  # the text of a file that anybody may have written
        pass
    lines = text.strip().splitlines()
    most = _MAX_LINES if len(lines) > _MAX_LINES + 1 else len(lines)  # a note on one more line is no shorter
    more = [f"# {count(len(lines) - most)} more lines are in the result file"] if len(lines) > most else []
    return Listing("\n".join([*map(shortened, lines[:most]), *more]))


def origin(result: AuditResult) -> tuple[tuple[str, Text], ...]:
    """Return the names and values of the recorded facts, without the config."""
    rows: list[tuple[str, Text]] = []
    if tells(result):
        rows.append(("p-value", p_value_words(result, at_most)))
    for name, value in result.provenance.besides(*_ELSEWHERE).items():
        if value in (None, "", {}, []):
            continue
        match value:
            case Mapping() if len(value) > 12:  # files or packages, which would fill pages
                text = f"{count(len(value))}, listed in the result file"
            case Mapping():
                text = ", ".join(f"{part} {_scalar(inner)}" for part, inner in value.items())
            case list():
                text = ", ".join(map(_scalar, value)) or "–"
            case _:
                text = str(value)
        rows.append((str(name), text))
    rows += [("stopped by", result.stopped_by), ("elapsed", seconds(result.elapsed_s))]
    if outputs := result.provenance.outputs:
        rows.append(("outputs", (Code(outputs),)))
    return (*rows, ("counts", (Code(f"sha256:{fingerprint(result.evidence)}"),)))


def _scalar(value: object) -> str:
    nested = isinstance(value, dict | list | tuple)
    return json.dumps(value, ensure_ascii=False, default=str) if nested else str(value)


def all_warnings(result: AuditResult) -> tuple[Block, ...]:
    """Return all warnings, if page 1 has shortened them or left some out."""
    if len(result.warnings) <= 3 and all(len(warning) <= 120 for warning in result.warnings):
        return ()
    shown, left_out = first(result.warnings, "warnings")
    return Heading("Warnings"), Items(tuple(shown), quiet=True), *left_out


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
_INDEPENDENT = "trainings are independent of each other; the two datasets are neighbours in the sense of the claim"
_ASSUMPTIONS = {
    "many runs": f"{_INDEPENDENT}; the number of models was chosen before the first score was seen",
    "one run": (
        "the coins are fair and secret, so scores depend on them only through the trained model; the claim is about a "
        "record that is added or removed; the number of guesses was chosen before the scores were seen"
    ),
    "step by step": (
        "the coins are fair and secret, so the score of a step depends on its coin only through the release of this "
        "step; the claim is about one step with a full batch, given all earlier steps"
    ),
}
_SCORES = "A higher score reveals the canary. The first and the last bar include more extreme scores."


def training(result: AuditResult) -> tuple[Block, ...]:
    """Return the design of an audit of training, its scores and its assumptions; other audits have no such section."""
    record = result.training
    if record is None:
        return ()
    by_coins = record.design in _SIDES
    rows: list[tuple[str, Text]] = [("design", _DESIGNS[record.design])]
    if record.training:
        rows.append(("training", printable(record.training)))
    rows.append(("canaries" if by_coins else "datasets", printable(record.canary)))
    assumed = _ASSUMPTIONS.get(record.design, _INDEPENDENT)
    if record.design == "one run" and not words_of(result.evidence).assumption:
        assumed += "; canaries may depend on each other in any way"
    rows.append(("assumed", assumed))
    if not record.edges:
        return Heading("Training"), KeyValues(tuple(rows))
    without, included = _SIDES.get(record.design, ("models on d0", "models on d1"))
    sizes = f"{count(sum(record.out))} {without}, {count(sum(record.into))} {included}"
    rows.append(("scores", sizes))
    names = ("without canary", "with canary") if by_coins else ("d0", "d1")
    alt = f"Two histograms of scores: {sizes}."
    figure = Figure((Panel(partial(training_svg, record, *names), alt=alt, title="Scores"),), _SCORES)
    return Heading("Training"), Columns((figure,), (KeyValues(tuple(rows)),))
