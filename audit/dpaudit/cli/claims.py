"""`dpaudit convert` and `dpaudit plan`: what claims mean, and how many runs a violation needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.ending import refuse
from dpaudit.cli.terminal import show, waiting

if TYPE_CHECKING:
    from dpaudit.claims import TradeoffFunction


def convert(
    claims: Annotated[
        list[str], typer.Argument(metavar="CLAIM...", help='E.g. "gaussian(mu=1)"; `dpaudit list claims`.')
    ],
    delta: Annotated[float | None, typer.Option(help="Print only the least epsilon at this delta.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Print only the least delta at this epsilon.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw curve and profile: .svg, .pdf, .png.")] = None,
) -> None:
    """Say what a claim means in other terms: epsilon, delta, mu, the trade-off curve."""
    from dpaudit.claims import parse_claim
    from dpaudit.text.rounding import upper

    if delta is not None and epsilon is not None:
        refuse("--delta and --epsilon exclude each other")
    try:
        parsed = [parse_claim(text) for text in claims]
        if delta is not None:
            lines = [upper(claim.epsilon(delta), 10) for claim in parsed]
        elif epsilon is not None:
            lines = [upper(float(claim.delta(epsilon)), 10) for claim in parsed]
        else:
            lines = [line for claim in parsed for line in _conversions(claim)]
        if plot is not None:
            from dpaudit_reports import plot_claims

            plot_claims(parsed).savefig(plot)
    except (ValueError, ImportError, OSError) as error:
        refuse(str(error))
    for line in lines:
        show(line)


def _conversions(claim: TradeoffFunction) -> list[str]:
    from dpaudit.text.rounding import lower, upper

    errors = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
    return [
        str(claim),
        f"  mu             {upper(claim.mu(), 10):>12s}",
        *(
            f"  epsilon        {upper(claim.epsilon(d), 10):>12s}  at delta = {d:g}"
            for d in (0.0, 1e-9, 1e-6, 1e-5, 1e-3)
        ),
        *(
            f"  delta          {upper(float(claim.delta(e)), 10):>12s}  at epsilon = {e:g}"
            for e in (0.0, 0.5, 1.0, 2.0, 5.0)
        ),
        *(f"  type II error  {lower(float(claim.beta(a)), 10):>12s}  at type I error {a:g}" for a in errors),
    ]


def plan(
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help='What is promised, e.g. "gaussian(mu=1)".')],
    truth: Annotated[str, typer.Argument(metavar="TRUTH", help='What is suspected to hold, e.g. "gaussian(mu=1.2)".')],
    power: Annotated[float, typer.Option(help="Probability with which the violation is to be found.")] = 0.9,
    confidence: Annotated[float, typer.Option(help="Of the audit.")] = 0.99,
) -> None:
    """Say how many trials it takes to refute CLAIM if only TRUTH holds."""
    with waiting("loading", shown=True):
        from dpaudit.claims import parse_claim
        from dpaudit.engine.plan import plan as plan_trials

    try:
        claims = parse_claim(claim), parse_claim(truth)
        with waiting("simulating audits", shown=True):
            found = plan_trials(*claims, power=power, confidence=confidence)
        show(str(found))
    except (ValueError, ImportError) as error:
        refuse(str(error))
