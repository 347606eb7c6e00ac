"""Commands that answer without an audit: `list`, `words`, `convert`, `plan` and `clean`."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli.options import check_choice, check_writable, completing, number_option, option
from dpaudit.cli.terminal import INCONCLUSIVE, leave, refuse, say, show, waiting
from dpaudit.settings import DEFAULTS, POWER, check_confidence, check_probability, percent_meant
from dpaudit.text import one_line

if TYPE_CHECKING:
    from dpaudit.claims import TradeoffFunction
    from dpaudit.config.planned import PlannedAudit

KINDS = ("attacks", "claims", "mechanisms", "configs")


def list_(
    what: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            autocompletion=completing(KINDS),
            help="What to list: attacks, claims, mechanisms or configs.",
        ),
    ],
) -> None:
    """List attacks, claims, builtin mechanisms, or the configs in this folder and its subfolders."""
    check_choice("KIND", what, KINDS, otherwise="write dpaudit list claims, for example")
    from dpaudit.catalogue import BUILTIN
    from dpaudit.claims import CLAIMS, OPERATIONS
    from dpaudit.learning.attack import attack_classes

    match what:
        case "configs":
            from dpaudit.config.files import read_configs
            from dpaudit.config.planned import ConfigError

            rows = []
            for file in sorted(p for p in Path().rglob("*.y*ml") if p.suffix in (".yaml", ".yml")):
                with contextlib.suppress(ConfigError):  # the YAML file is not a config
                    rows += [(str(file), audit.config.name) for audit in read_configs([file])]
        case "attacks":
            rows = _described(attack_classes())
        case "claims":
            rows = _described({**CLAIMS, **OPERATIONS})
        case _:
            rows = _described(BUILTIN)
    width = max((len(name) for name, _ in rows), default=0)
    for name, about in rows:
        show(one_line(f"{name:{width}s}  {about}".rstrip()))


def _described(things: Mapping[str, object]) -> list[tuple[str, str]]:
    """Pair each name with the first line of its docstring, in the names that users of configs type."""
    names = {getattr(thing, "__name__", name): name for name, thing in things.items()}
    lines = {name: (thing.__doc__ or "").strip().split("\n")[0] for name, thing in things.items()}
    written = re.compile(r"\b(\w+)(?=\()|(?<=`)(\w+)(?=`)")
    return [(name, written.sub(lambda match: names.get(match[0], match[0]), line)) for name, line in lines.items()]


def list_code(planned: Iterable[PlannedAudit]) -> None:
    """Show the code that each audit runs, and what this code receives."""
    for one in planned:
        show(one_line(f"{one.config.name}: runs {one.code or 'no code outside dpaudit'}"))
        for line in one.inputs:
            show(f"  {line}")


def clean(yes: Annotated[bool, option("Remove the listed environments.", "--yes")] = False) -> None:
    """List the environments built for `requires:`; with --yes, remove those that are not in use.

    The list states size, days without use, requirements and folder.  An audit that needs a removed environment builds
    it again.

    Exit codes: 0 all environments were listed or removed, 2 wrong usage, and 3 some environments could not be removed.
    """
    from dpaudit.running import MechanismError
    from dpaudit.running.environments import cached_environments, environments_folder, remove

    try:
        environments, kept = cached_environments(), 0
        if not environments:
            say(f"there are no environments in {environments_folder()}")
        for one in environments:
            days = f"unused for {max(0, int((time.time() - one.used) / 86_400)):4d} days"
            show(one_line(f"{one.size / 1e6:8.1f} MB  {days}  {one.about}  {one.path}"))
            try:
                if yes:
                    remove(one)
            except OSError as error:
                kept += 1
                reason = "the environment is in use" if isinstance(error, BlockingIOError) else error
                say(f"{one.path} stays: {reason}")
    except (MechanismError, OSError) as error:
        refuse(str(error))
    number = len(environments)
    if environments and yes:
        say(f"removed {number - kept} of {number} environments")
    elif environments:
        total = sum(one.size for one in environments) / 1e6
        say(f"{number} environments with {total:,.1f} MB.  To remove them: dpaudit clean --yes")
    if kept:
        leave(INCONCLUSIVE)


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
    deltas, epsilons = (0.0, 1e-9, 1e-6, 1e-5, 1e-3), (0.0, 0.5, 1.0, 2.0, 5.0)
    errors = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
    rows = [
        ("mu", upper(claim.mu(), 10), ""),
        *(("epsilon", upper(claim.epsilon(delta), 10), f"  at delta = {delta:g}") for delta in deltas),
        *(("delta", upper(float(claim.delta(epsilon)), 10), f"  at epsilon = {epsilon:g}") for epsilon in epsilons),
        *(("type II error", lower(float(claim.beta(a)), 10), f"  at type I error {a:g}") for a in errors),
    ]
    return [text, *(f"  {name:<13s}  {value:>12s}{place}" for name, value, place in rows)]


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
            estimate = plan_trials(*claims, power=power, confidence=confidence)
        show(str(estimate))
        if seconds is not None and math.isfinite(estimate.trials + estimate.mean_trials):
            from dpaudit.engine.progress_line import duration

            usual, most = (duration(2 * trials * seconds) for trials in (estimate.mean_trials, estimate.trials))
            show(
                f"Runs on both datasets, {seconds:g} s each, take {usual} on average, and at most {most} with "
                f"probability {power:g}."
            )
    except (ValueError, ImportError) as error:
        refuse(str(error))


WORDS = {
    "violation": "the claim is false: the attack told the two datasets apart more reliably than the claim allows",
    "no violation": "the runs of this audit did not refute the claim; this is no proof of it",
    "inconclusive": "the audit can neither refute the claim nor say what it would have seen",
    "proven": "a lower bound on the privacy loss (ε or μ), which holds with the confidence of the audit",
    "claimed": "the upper bound that the claim states",
    "would have seen": "this loss would have been found with 90 % probability, with an optimal attack and a mechanism "
    "whose trade-off curve is that of the claim with the larger parameter",
    "could not see much": "no attack beat guessing, or less than a third of the claim is proven",
    "size": "how large the loss is; an audit that stops at its first proof proves little more than the claim",
    "confirmed": "fresh runs in new processes refute the claim by themselves",
    "runs": "number of runs of the mechanism on each of the two datasets",
    "confidence": "a true claim is refuted with probability at most 1 - confidence, whenever the audit stops",
    "p-value": "the confidence with which the claim is refuted is 1 - p",
    "pair": "two datasets that are neighbours under the claim: they differ in one record",
}


def words() -> None:
    """Explain the words of results; also: dpaudit help words."""
    for word, meaning in WORDS.items():
        show(f"{word}\n    {meaning}")
