"""The witness, the growth of the evidence, the scores, the attacks, and the pairs of datasets."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from dpaudit.result.evidence import given_scores
from dpaudit.result.model import AuditResult, allowed_rate, p_value_words
from dpaudit.result.values import AttackRow, Witness
from dpaudit.result.words import quotation, words_of
from dpaudit.rounding import (
    at_least,
    at_most,
    count,
    number,
    percent,
    percent_at_least,
    percent_at_most,
    percent_beyond,
    upper,
)
from dpaudit_reports.blocks import (
    Block,
    Code,
    Column,
    Figure,
    Heading,
    KeyValues,
    Math,
    Panel,
    Paragraph,
    Span,
    Strong,
    Table,
    Text,
    bare,
    first,
)
from dpaudit_reports.figures.evidence import distributions_svg, evidence_svg, witness_scores
from dpaudit_reports.rates import (
    MAX_SHOWN,
    RegionStatus,
    frozen,
    interval_text,
    intervals,
    region_status,
)
from dpaudit_reports.verdicts import fresh, why_void


def scores(result: AuditResult) -> tuple[Block, ...]:
    """Return what given scores prove under each assumption."""
    guessed, words = given_scores(result.evidence), words_of(result.evidence)
    if guessed is None:
        return ()
    rows = [
        (words.unit, f"{count(guessed.scores)}, {words.each}"),
        ("right guesses", f"{guessed.outcome}"),
    ]
    if result.p_value < 1:
        rows.append(("p-value", p_value_words(result, at_most)))
    found: list[Block] = [Heading("The scores"), KeyValues(tuple(rows))]
    if result.bounds:
        columns = (Column("Assumption", grow=1), Column("Proven", align="right"), Column("Could prove", align="right"))
        table = tuple(
            (
                f"{row.assumption}{' (the verdict)' if row.verdict else ''}",
                f"ε\u00a0{at_least(row.epsilon)}",
                upper(row.most, 3),
            )
            for row in result.bounds
        )
        needed = "" if result.violated else result.detectable.needed
        explained = (
            f"Lower bounds on ε at δ = {number(result.bounds[0].delta)}, each with "
            f"{percent_at_least(result.confidence)} confidence if its own assumption is true. Could prove: the "
            "largest bound of this number of scores. Members and non-members from different sources prove "
            f"nothing, whatever their scores.{f' {needed[:1].upper()}{needed[1:]}.' if needed else ''}"
        )
        found += [Table(columns, table), Paragraph(explained, quiet=True)]
    return tuple(found)


def evidence(result: AuditResult) -> tuple[Block, ...]:
    """Return plots of the wealth and of the witness's scores; nothing for an audit without pairs."""
    if not result.evidence.kind.of_pairs:
        return ()
    heading, void = Heading("Evidence against the claim"), why_void(result)
    scored, about = _scores(result)
    if result.evidence.kind.anytime and result.history.trials.size:
        wealth, caption = _wealth(result, void)
        return heading, Figure((wealth, *scored), (*caption, about))
    if result.evidence.kind.anytime:
        words = Paragraph("The growth of the evidence was not recorded.", quiet=True)
    else:
        words = Paragraph(f"There is no valid evidence: {void}." if void else _by_p_value(result))
    return heading, words, *((Figure(scored, about.lstrip()),) if scored else ())


def _wealth(result: AuditResult, void: str) -> tuple[Panel, tuple[Span, ...]]:
    missed = 1 - result.confidence
    threshold = number(1 / missed if missed > 0 else math.inf)
    words = f"The wealth is not valid evidence: {void}."
    caption: tuple[Span, ...] = (
        f"Not valid: {void}. The grey line is the wealth that bets against the claim would have had. It is no "
        "evidence, however large it is.",
    )
    if not void:
        words = (
            f"The plot shows the wealth of bets against the claim over {count(result.trials_used)} runs per dataset. "
            f"The final e-value is {number(result.e_value)}; a wealth of {threshold} refutes the claim."
        )
        caption = _caption(threshold, result.confidence)
    return Panel(partial(evidence_svg, result), alt=words, title="Wealth"), caption


def _scores(result: AuditResult) -> tuple[tuple[Panel, ...], str]:
    useless = region_status(result) in (RegionStatus.NONE, RegionStatus.VOID, RegionStatus.FAR)
    if useless or (scores := witness_scores(result)) is None:
        return (), ""
    cut = number(scores.cut)
    alt = f"The plot shows the scores of the outputs of d0 and of d1, and the region above {cut}."
    panel = Panel(partial(distributions_svg, scores), alt=alt, title="Scores")
    caption = (
        f" Score: the estimated log-likelihood ratio of d1 to d0, above {cut} in the shaded region. If the outputs "
        "revealed nothing, the two distributions would be equal. The last bars include more extreme outputs."
    )
    return (panel,), caption


def _caption(threshold: str, confidence: float) -> tuple[Span, ...]:
    return (
        "The wealth ",
        Math("E"),
        " of a gambler who bets against the claim and starts with 1. If the claim is true, the wealth ever reaches "
        f"{threshold} with probability at most {percent_beyond(confidence)}, so the audit may then stop. A small "
        "wealth does not prove the claim.",
    )


def _by_p_value(result: AuditResult) -> str:
    limit = bare(at_least(float(1 - Fraction(repr(result.confidence))), 3))
    p_value = p_value_words(result, at_most)
    return (
        "This audit tested the claim once, after a number of runs that was fixed beforehand. So its evidence did not "
        f"grow step by step. The p-value of the claim is {p_value}; a p-value of at most {limit} refutes the claim."
    )


def attacks(result: AuditResult) -> tuple[Block, ...]:
    """Return a table of the used attacks, sorted by weight, and a line with the unused attacks."""
    if not result.evidence.kind.of_pairs:
        return ()
    heading = Heading("Attacks")
    if not result.attacks:
        return heading, Paragraph("No attack was tried.", quiet=True)
    shown, left_out = first(result.attacks, "attacks")
    unused = [row for row in shown if row.note and not row.weight and math.isnan(row.log_loss)]
    used = sorted((row for row in shown if row not in unused), key=lambda row: -row.weight)
    noted = any(row.note for row in used)
    numbers = (Column(title, align="right") for title in ("Weight", "Log loss", "Seconds"))
    columns = Column("Attack", grow=2), *numbers, *((Column("Note", grow=3),) if noted else ())
    rows = []
    for row in used:
        seconds = (result.provenance.attack_seconds or {}).get(row.name)
        spent = "–" if seconds is None else f"{seconds:.2f}"
        loss = "–" if math.isnan(row.log_loss) else number(row.log_loss)
        rows.append((row.name, percent(round(row.weight, 3), 2), loss, spent, row.note or "–")[: len(columns)])
    table = Table(columns, tuple(rows))
    return (
        heading,
        *((table,) if used else ()),
        *((Paragraph(f"Other attacks: {_by_reason(unused)}."),) if unused else ()),
        *left_out,
        *((Paragraph(_MEANING, quiet=True),) if used else ()),
    )


_MEANING = (
    "All attacks learned from the same runs, so no attack costs additional runs. Weight: final weight in the combined "
    "score. Log loss: mean loss on outputs not seen before, in nats; blind guessing has ln 2 = 0.693, and less is "
    "better. Seconds: time for fitting and scoring."
)


def _by_reason(rows: list[AttackRow]) -> str:
    named: dict[str, list[str]] = {}
    for row in rows:
        named.setdefault(row.note, []).append(row.name)
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in named.items())


def pairs(result: AuditResult) -> tuple[Block, ...]:
    """Return a row for each pair, with its evidence if the evidence is valid; nothing if page 1 shows all pairs."""
    short = all(len(text) <= MAX_SHOWN for row in result.pairs for text in (row.d0, row.d1))
    if not result.evidence.kind.of_pairs or (len(result.pairs) == 1 and short):
        return ()
    heading = Heading("Pairs of neighbouring datasets")
    if not result.pairs:
        return heading, Paragraph("No pair was tried.", quiet=True)
    valid = result.bounds_valid and result.evidence.kind.anytime
    shown, left_out = first(result.pairs, "pairs")
    numbers = (Column(title, align="right") for title in ("Runs", "e-value")[: 1 + valid])
    columns = Column("Pair", grow=2), Column("Relation"), Column("d0", grow=2), Column("d1", grow=2), *numbers
    rows = []
    for row in shown:
        # The difference is stated if the texts of the datasets do not show it.
        second: Span = f"d0 with a difference: {quotation(row.difference)}" if row.difference else Code(row.d1)
        e_value = number(math.exp(row.log_e) if row.log_e < 700 else math.inf)
        cells = row.label or "–", row.relation.replace("_", " "), (Code(row.d0),), (second,), count(row.trials), e_value
        rows.append(cells[: len(columns)])
    return heading, Table(columns, tuple(rows)), *left_out, Paragraph(_meaning(result, valid=valid), quiet=True)


def _meaning(result: AuditResult, *, valid: bool) -> str:
    spent = "Runs: number of runs on each dataset."
    if void := why_void(result):
        return f"{spent} No evidence is shown for a pair: {void}."
    if not valid:
        return spent if len(result.pairs) < 2 else f"{spent} The first runs chose the pair for all other runs."
    own = "e-value: the evidence of this pair alone against the claim; 1 is no evidence."
    if len(result.pairs) < 2:
        return f"{spent} {own}"
    return f"{spent} Pairs with growing evidence received more runs. {own} The verdict rests on all pairs together."


_HEADINGS = {
    RegionStatus.NONE: "Closest to a violation",
    RegionStatus.VOID: "Region (not valid)",
    RegionStatus.WITNESS: "Witness",
    RegionStatus.TESTED: "Tested region (not significant)",
    RegionStatus.CLOSEST: "Closest to a violation ({chosen}not significant)",
}


def witness(result: AuditResult) -> tuple[Block, ...]:
    """Return the region in words, its counts with exact intervals, and its meaning."""
    kind, found = region_status(result), result.witness
    if not result.evidence.kind.of_pairs or words_of(result.evidence).again or kind is RegionStatus.FAR:
        return ()
    chosen = "" if found is None or found.counted == "later" else "chosen by these counts; "
    heading = Heading(_HEADINGS[kind].format(chosen=chosen))
    if found is None:
        return heading, Paragraph("No rejection region was counted on enough outputs to be named.", quiet=True)
    if kind is RegionStatus.VOID:
        meaning = f"Its counts prove nothing: {why_void(result)}."
    else:
        meaning = f"{_origin(result, found)} Pair: {found.pair}. Attack: {found.attack}."
        if not math.isnan(limit := allowed_rate(result)):
            at = f"if the rate of d0 is at most {percent_at_most(found.alpha_upper)} (the end of its interval)"
            meaning = f"The claim allows at most {percent_at_most(limit)} of d1, {at}. {meaning}"
    named = Paragraph((Strong(found.region), "."))
    return heading, named, *query_of(found), _table(result, found), Paragraph(meaning, quiet=True)


def query_of(found: Witness) -> tuple[Block, ...]:
    """State the query of synthetic tables that tells the datasets apart best."""
    if not found.query:
        return ()
    if found.outcomes:
        return (Paragraph(("Outcome of the runs: ", Strong(found.query), ".")),)
    told = "The most telling query of the released tables: ", Strong(found.query), " (answers on single tables)."
    return (Paragraph(told),)


def _table(result: AuditResult, found: Witness) -> Table:
    counts = found.counts
    hits1 = counts.n1 - counts.false_negatives
    columns = [Column("", grow=1), Column("Outputs", align="right"), Column("In the region", align="right")]
    rows: list[list[Text]] = [
        ["d0 (false positives)", count(counts.n0), count(counts.false_positives)],
        ["d1 (true positives)", count(counts.n1), count(hits1)],
    ]
    if result.bounds_valid:
        columns += [Column("Rate", align="right"), Column("95\u00a0% interval", align="right")]
        alpha, beta = intervals(found) or (None, None)
        inside = None if beta is None else (1 - beta[1], 1 - beta[0])
        rows[0] += [percent(counts.false_positives / counts.n0), interval_text(alpha)]
        rows[1] += [percent(hits1 / counts.n1), interval_text(inside)]
    return Table(tuple(columns), tuple(tuple(row) for row in rows))


def _origin(result: AuditResult, found: Witness) -> str:
    intervals_are = "The intervals are exact (Clopper-Pearson) for each rate alone"
    if new := fresh(result):
        alone = f"by them alone, the p-value of the claim is {at_most(new.p_value)}"
        return f"Region and attack were frozen before these fresh runs; {alone}. {intervals_are}."
    if frozen(result):
        rests = f"the verdict rests on these counts, p-value {p_value_words(result, at_most)}"
        return f"Region and attack were frozen before these outputs were sampled: {rests}. {intervals_are}."
    if found.counted == "later":
        return (
            f"Region and attack were frozen during the audit, and counted on {count(found.counts.n0)} later outputs of "
            f"each dataset. The outputs decide when the audit stops, so observed rates may look worse for "
            "the claim than the true rates. The intervals account for this: each holds separately, whenever the audit "
            "stops."
        )
    return (
        "The outputs were counted with scores that changed while the attack learned. The region in words belongs to "
        "the last score, whose rates may differ. The region was chosen by these counts. So its rates have no intervals."
    )
