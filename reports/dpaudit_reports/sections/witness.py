"""Shows the rejection region that proves the violation or came closest to a violation."""

from __future__ import annotations

import math

from dpaudit.result.model import AuditResult, allowed_rate, p_value_words
from dpaudit.result.values import OUTCOME, Witness
from dpaudit.text.rounding import at_most, count, percent_at_most
from dpaudit_reports.blocks import Block, Column, Heading, Paragraph, Strong, Table, Text
from dpaudit_reports.rates import (
    BY_TEST,
    RegionStatus,
    accounted,
    by_test,
    frozen,
    interval_text,
    intervals,
    least_inside,
    rate_text,
    region,
    region_status,
)
from dpaudit_reports.verdicts import fresh, why_void

_HEADINGS = {
    RegionStatus.NONE: "Closest to a violation",
    RegionStatus.VOID: "Region (not valid)",
    RegionStatus.WITNESS: "Witness",
    RegionStatus.TESTED: "Tested region (not significant)",
    RegionStatus.CLOSEST: "Closest to a violation (chosen by these counts; not significant)",
}


def witness(result: AuditResult) -> tuple[Block, ...]:
    """Return the region in words, its counts with exact intervals, and its meaning."""
    if not result.evidence.of_pairs or result.evidence.words.again or region_status(result) is RegionStatus.FAR:
        return ()
    kind, found = region_status(result), result.witness
    heading = Heading(_heading(kind, found))
    if found is None:
        return heading, Paragraph("No rejection region was counted on enough outputs to be named.", quiet=True)
    match kind:
        case RegionStatus.VOID:
            return (
                heading,
                Paragraph((Strong(region(found)), f". Its counts prove nothing: {why_void(result)}.")),
                _table(result, found),
            )
    return (
        heading,
        Paragraph(_in_words(result, found)),
        *query_of(found),
        _table(result, found),
        Paragraph(f"{_origin(result, found)} Pair: {found.pair}. Attack: {found.attack}.", quiet=True),
    )


def query_of(found: Witness) -> tuple[Block, ...]:
    """State the query of synthetic tables that tells the datasets apart best."""
    if not found.query:
        return ()
    if found.query.startswith(OUTCOME):
        return (Paragraph(("Outcome of the runs: ", Strong(found.query.removeprefix(OUTCOME)), ".")),)
    told = "The most telling query of the released tables: ", Strong(found.query), " (answers on single tables)."
    return (Paragraph(told),)


def _heading(kind: RegionStatus, found: Witness | None) -> str:
    if kind is RegionStatus.CLOSEST and found is not None and accounted(found):
        return "Closest to a violation (not significant)"
    return _HEADINGS[kind]


def _in_words(result: AuditResult, found: Witness) -> Text:
    counts = found.counts
    rates = (
        f": {rate_text(counts.false_positives, counts.n0)} of the outputs of d0 and "
        f"{rate_text(counts.n1 - counts.false_negatives, counts.n1)} of those of d1. "
    )
    return (Strong(region(found)), f"{rates}{_compared(result, found)}")


def _compared(result: AuditResult, found: Witness) -> str:
    limit = allowed_rate(result)
    ends = intervals(found)
    end = "" if ends is None else percent_at_most(ends[0][1])
    at = f", if the rate of d0 is at most {end} (the end of its interval)" if end else ""
    most = "" if math.isnan(limit) else f"The claim allows at most {percent_at_most(limit)} of d1{at}."
    if not result.violated:
        return f"{most} This region is not significant.".lstrip()
    if least_inside(found) > limit:
        return most
    if frozen(result):
        return BY_TEST if by_test(result) else f"{most} These counts alone do not refute the claim."
    reaches = f"{most} The interval of d1 reaches below this limit, so these" if most else "These"
    return f"{reaches} counts illustrate the proof, which rests on all runs (see “Evidence against the claim”)."


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
        rows[0] += [rate_text(counts.false_positives, counts.n0), interval_text(alpha)]
        rows[1] += [rate_text(hits1, counts.n1), interval_text(inside)]
    if not math.isnan(limit := allowed_rate(result)):
        columns.append(Column("Claim allows", align="right"))
        rows[0].append("–")
        rows[1].append(f"at most {percent_at_most(limit)}")
    return Table(tuple(columns), tuple(tuple(row) for row in rows))


def _origin(result: AuditResult, found: Witness) -> str:
    intervals_are = "The intervals are exact (Clopper-Pearson) for each rate alone"
    if new := fresh(result):
        alone = f"by them alone, the p-value of the claim is {at_most(new.p_value)}"
        return f"Region and attack were frozen before these fresh runs; {alone}. {intervals_are}."
    if frozen(result):
        rests = f"the verdict rests on these counts, p-value {p_value_words(result, at_most)}"
        return f"Region and attack were frozen before these outputs were sampled: {rests}. {intervals_are}."
    if accounted(found):
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
