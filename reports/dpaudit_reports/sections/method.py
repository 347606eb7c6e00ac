"""How the verdict was reached and why it is valid."""

from __future__ import annotations

from dpaudit.result.model import AuditResult
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


_FIXED: Text = (
    "A claim is a trade-off function ",
    Math("f"),
    ": no attack with type I error ",
    Math("α"),
    " has a type II error below ",
    Math("f(α)"),
    " (Dong, Roth & Su 2022). The first runs chose a pair of datasets, a score and a rejection region, which "
    "were then frozen. On the other runs the two kinds of mistakes are independent binomial counts. The p-value is the "
    "largest probability, over a confidence interval of the type I error, of counts that speak at least as much "
    "against the claim as those observed, computed exactly (Berger & Boos 1994). Nothing is assumed about the noise; "
    "runs must be independent of each other, and their number was fixed beforehand.",
)

_ONE_RUN: Text = (
    "Each canary was included in the data by a fair coin of its own. From the one output it was guessed for some "
    "canaries, their number fixed beforehand, whether they were included. The p-value bounds the chance of so many "
    "right guesses under the claim (Steinke, Nasr & Jagielski 2023; Mahloujifar, Melis & Chaudhuri 2024).",
)

_BY_METHOD: dict[str, tuple[Text, tuple[str, ...]]] = {
    "sequential": (_SEQUENTIAL, _REFERENCES),
    "fixed": (
        _FIXED,
        (
            _REFERENCES[0],
            "Berger, R. & Boos, D. (1994). P values maximized over a confidence set for the nuisance parameter. "
            "J. Am. Stat. Assoc. 89, 1012–1016.",
        ),
    ),
    "one_run": (
        _ONE_RUN,
        (
            "Steinke, T., Nasr, M. & Jagielski, M. (2023). Privacy auditing with one (1) training run. NeurIPS 36.",
            "Mahloujifar, S., Melis, L. & Chaudhuri, K. (2024). Auditing f-differential privacy in one run. "
            "arXiv:2410.22235.",
        ),
    ),
}


def method(result: AuditResult) -> tuple[Block, ...]:
    """The method in a paragraph, with references."""
    text, references = _BY_METHOD.get(result.method, (f"Method of the test: {result.method}.", ()))
    return Heading("Method"), Paragraph(text), Items(references, quiet=True)
