"""`dpaudit convert` converts claims, and `dpaudit plan` estimates how many trials an audit needs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.ending import refuse
from dpaudit.cli.options import check_writable, number_option, option
from dpaudit.cli.terminal import show, waiting
from dpaudit.settings import DEFAULTS, POWER, check_confidence, check_probability, percent_meant

if TYPE_CHECKING:
    from dpaudit.claims import TradeoffFunction


def convert(
    claims: Annotated[
        list[str],
        typer.Argument(metavar="CLAIM", help='A claim such as "gaussian(mu=1)"; `dpaudit list claims` shows all.'),
    ],
    delta: Annotated[float | None, number_option(help="Print only the smallest epsilon at this delta.")] = None,
    epsilon: Annotated[float | None, number_option(help="Print only the smallest delta at this epsilon.")] = None,
    plot: Annotated[
        Path | None, option("Plot trade-off curve and privacy profile; .svg, .pdf or .png.", metavar="FILE")
    ] = None,
) -> None:
    """Convert claims to epsilon, delta, mu and points of their trade-off curves."""
    from dpaudit.claims import parse_claim
    from dpaudit.rounding import upper

    if delta is not None and epsilon is not None:
        refuse("--delta and --epsilon cannot be used together; give one of them")
    if plot is not None:
        check_writable("--plot", plot)
    try:
        parsed = [parse_claim(text) for text in claims]
        tested = [claim.symmetrized() for claim in parsed]  # a claim covers both directions of a pair
        if delta is not None:
            lines = [upper(claim.epsilon(delta), 10) for claim in tested]
        elif epsilon is not None:
            lines = [upper(float(claim.delta(epsilon)), 10) for claim in tested]
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
    from dpaudit.rounding import lower, upper

    text, claim = str(claim), claim.symmetrized()
    errors = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
    return [
        text,
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
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help='The claim to test, such as "gaussian(mu=1)".')],
    truth: Annotated[
        str, typer.Argument(metavar="TRUTH", help='The weaker privacy that you suspect, such as "gaussian(mu=1.2)".')
    ],
    power: Annotated[float, number_option(help="Probability of finding the violation.")] = POWER,
    confidence: Annotated[float, number_option(help="Confidence of the audit, between 0 and 1.")] = DEFAULTS.confidence,
    seconds: Annotated[
        float | None, number_option(help="Seconds of one run, such as one fit of a generator; adds the total times.")
    ] = None,
) -> None:
    """Estimate how many trials an audit needs to refute CLAIM if the mechanism is only as private as TRUTH."""
    try:
        check_probability(power, "--power", written=f"{power:g}{percent_meant(power)}")
        check_confidence(confidence, "--confidence", written=str(confidence).removesuffix(".0"))
        if seconds is not None and not 0 < seconds < math.inf:
            raise ValueError(f"--seconds must be a number above 0, got {seconds:g}")
    except ValueError as error:
        refuse(str(error))
    with waiting("loading", shown=True):
        from dpaudit.claims import parse_claim
        from dpaudit.engine.plan import plan as plan_trials

    try:
        claims = parse_claim(claim), parse_claim(truth)
        with waiting("simulating audits", shown=True):
            found = plan_trials(*claims, power=power, confidence=confidence)
        show(str(found))
        if seconds is not None and math.isfinite(found.trials + found.mean_trials):
            from dpaudit.engine.progress_line import duration

            usual, most = (duration(2 * trials * seconds) for trials in (found.mean_trials, found.trials))
            show(
                f"Runs on both datasets, {seconds:g} s each, take {usual} on average, and at most {most} with "
                f"probability {power:g}."
            )
    except (ValueError, ImportError) as error:
        refuse(str(error))
