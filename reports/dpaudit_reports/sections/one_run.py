"""Shows guesses about runs or canaries, and the number of right guesses that refutes the claim."""

from __future__ import annotations

from dpaudit.result.model import AuditResult, p_value_words
from dpaudit_reports.blocks import Block, Heading, KeyValues, Paragraph, Text
from dpaudit_reports.guesses import least_right
from dpaudit_reports.numbers import at_most, count, number


def one_run(result: AuditResult) -> tuple[Block, ...]:
    """Return the number of guesses, and how many were right, are right by chance, and would refute the claim.

    Audits of pairs have no such section.
    """
    guessed = result.evidence.guessed
    if guessed is None:
        return ()
    words = result.evidence.words
    least = least_right(result)
    rows: tuple[tuple[str, Text], ...] = (
        (words.unit, f"{count(guessed.canaries)}, {words.each}"),
        (words.guesses, f"{count(guessed.guesses)}, a number that was fixed beforehand"),
        (f"right {words.guesses}", count(guessed.right)),
        ("right by chance", f"about {number(guessed.by_chance, 6)}"),
        ("would refute", f"{'no number of' if least is None else f'{count(least)} or more'} right {words.guesses}"),
        *((("p-value", p_value_words(result, at_most)),) if result.p_value < 1 else ()),
    )
    return (
        Heading(f"Guesses about the {words.unit}"),
        KeyValues(rows),
        Paragraph(words.guessing, quiet=True),
    )
