"""One run with many canaries: what was guessed, and how many right guesses refute the claim."""

from __future__ import annotations

from dpaudit.result.model import AuditResult, p_value_words
from dpaudit_reports.blocks import Block, Heading, KeyValues, Paragraph, Text
from dpaudit_reports.numbers import at_most, count, number


def one_run(result: AuditResult) -> tuple[Block, ...]:
    """Guesses made and right, by chance, and needed; nothing where outputs are counted."""
    guessed = result.evidence.guessed
    if guessed is None:
        return ()
    least = guessed.least_right(result.claim, confidence=result.confidence)
    rows: tuple[tuple[str, Text], ...] = (
        ("canaries", f"{count(guessed.canaries)}, each included by a coin of its own"),
        ("guesses", f"{count(guessed.guesses)}, their number fixed beforehand"),
        ("right guesses", count(guessed.right)),
        ("right by chance", f"about {number(guessed.guesses / 2, 6)}"),
        (
            "would refute",
            "no number of right guesses" if least is None else f"{count(least)} or more right guesses",
        ),
        *((("p-value", p_value_words(result, at_most)),) if result.p_value < 1 else ()),
    )
    return (
        Heading("Guesses about the canaries"),
        KeyValues(rows),
        Paragraph(
            "Guesses are made for the canaries with the most extreme scores and for no others. How many of them are "
            "right cannot be compared with the two errors over all canaries, which the claim's curve limits.",
            quiet=True,
        ),
    )
