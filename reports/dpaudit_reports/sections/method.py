"""How the verdict was reached and why it is valid."""

from __future__ import annotations

from dpaudit.result import AuditResult
from dpaudit_reports.blocks import Block, Heading, Items, Math, Paragraph, Text

_REFERENCES = (
    "Dong, J., Roth, A. & Su, W. J. (2022). Gaussian differential privacy. J. R. Stat. Soc. B 84(1), 3–37.",
    "Ville, J. (1939). Étude critique de la notion de collectif. Gauthier-Villars, Paris.",
    "Grünwald, P., de Heide, R. & Koolen, W. (2024). Safe testing. J. R. Stat. Soc. B 86(5), 1091–1128.",
)

_SEQUENTIAL: Text = (
    "A claim is a trade-off function ",
    Math("f"),
    ": no attack with type I error ",
    Math("α"),
    " has a type II error below ",
    Math("f(α)"),
    " (Dong, Roth & Su 2022). A trial runs the mechanism once on each dataset. A score, learned from "
    "earlier trials only, estimates how much likelier an output is under d1 than under d0; bets on its "
    "thresholds are priced by the claim's privacy profile, so that under a true claim no trial is expected "
    "to win. The wealth ",
    Math("E"),
    " is then a nonnegative supermartingale, and it ever reaches ",
    Math("1/s"),
    " with probability at most ",
    Math("s"),
    " (Ville 1939): the audit may look after every trial and stop at any time. The bets are those whose "
    "wealth grows fastest against a range of violations (Grünwald, de Heide & Koolen 2024). They do not "
    "depend on the claim that is priced, so verdict and bounds hold together. Nothing is assumed about the "
    "noise; trials must be independent of each other.",
)


def method(result: AuditResult) -> tuple[Block, ...]:
    """The method in a paragraph, with references."""
    text: Text = _SEQUENTIAL if result.method == "sequential" else f"Method of the test: {result.method}."
    return Heading("Method"), Paragraph(text), Items(_REFERENCES, quiet=True)
