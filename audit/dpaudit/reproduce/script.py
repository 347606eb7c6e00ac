"""Assembles a standalone script that counts an event on both datasets and tests the claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpaudit.config.files import read_text
from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.libraries.configured import GENERATORS
from dpaudit.reproduce.calls import Call, call_of_config, call_of_python
from dpaudit.reproduce.event import TEST, Event, Inequality, event_of, strongest
from dpaudit.reproduce.literals import Unwritable, comment, literal
from dpaudit.result.model import AuditResult
from dpaudit.result.summary import p_value_words
from dpaudit.result.values import Witness
from dpaudit.result.words import words_of
from dpaudit.rounding import lower, percent, percent_at_least
from dpaudit.values import restored

MAX_LINES = 40  # maximum number of lines of a script

_LEVEL = 0.001  # the largest p-value that refutes the claim, as in a replay
_FEW = "may be too few to refute the claim, because the counts of the audit hardly contradict the tested inequality"
_DOCSTRING = '"""Counts an event on two datasets, and tests a claim of differential privacy.  Needs numpy and scipy."""'
_BACKGROUND = (
    "A claim of differential privacy limits how much more likely an event may be on one of two neighbouring datasets "
    "than on the other."
)
_EXCEPTIONS = "(AttributeError, LookupError, TypeError, ValueError)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A standalone script."""

    text: str
    module: str
    missing: tuple[str, ...]
    few: str
    runs: int
    seconds: float


def script_of(result: AuditResult) -> Script:
    """Write a script that reproduces the violation of a result without dpaudit."""
    witness = _witness_of(result)
    event = event_of(witness)
    try:  # an audit in Python or of a test has no config
        config = result.provenance.audit
        planned = None if config is None else read_text(config, Path("config.yaml"))
    except ConfigError as error:
        raise Unwritable(f"the config in the result is not valid: {error}") from None
    call = call_of_python(result.provenance) if planned is None else call_of_config(planned)
    datasets, unknown = _datasets(result, witness)
    tested = strongest(result.claim, witness.counts)
    seconds = result.elapsed_s / (2 * max(1, result.trials_used))  # the audit also trained its attacks in this time
    runs = tested.runs(seconds)
    few = "" if tested.needed else f"{runs:,} runs {_FEW}"
    outcomes = event.raised or call.outcomes or (planned is not None and planned.config.failures == "outcome")
    first, second = tested.sides
    stated = "states" if result.claim.name in ("pure", "approximate") else "implies"
    lines = [
        _DOCSTRING,
        *_header(result, call),
        "from copy import deepcopy",
        "import numpy as np",
        "from scipy.stats import beta, binom",
        f"RUNS = {runs}  # runs on each dataset, fixed before the first run; the test assumes independent runs",
        *([f"# {few[0].upper()}{few[1:]}."] if few else []),
        *(f"{name} = {text}" for name, text in datasets.items()),
        f"# The claim {stated}: P(event on {second}) <= exp(EPSILON) P(event on {first}) + DELTA.",
        f"EPSILON, DELTA = {tested.epsilon!r}, {tested.delta!r}",
        *_generator_lines(result, planned),
        *call.lines,
        *_event_lines(event, flipped=tested.flipped, outcomes=outcomes, complete=not unknown),
        *_counting_lines(tested, outcomes=outcomes, exact=not witness.described.nearly and witness.counted != "moving"),
        *TEST.splitlines(),
        *_conclusion(result, tested, may_raise=event.partial or outcomes),
    ]
    if len(lines) > MAX_LINES:
        raise Unwritable(f"the script would have {len(lines)} lines, but a script has at most {MAX_LINES}")
    text = "\n".join(lines) + "\n"
    try:
        compile(text, "script", "exec")  # every line is built from checked parts; this line checks the whole
    except SyntaxError:
        raise Unwritable("a name or a value of the result makes the script invalid") from None
    missing = (*([call.missing] if call.missing else []), *unknown)
    return Script(text=text, module=call.file, missing=missing, few=few, runs=runs, seconds=2 * runs * seconds)


def _witness_of(result: AuditResult) -> Witness:
    if not result.violated:
        raise Unwritable(f"the result reports no violation ({result.verdict.value}), so there is nothing to reproduce")
    if result.provenance.of_sessions:
        raise Unwritable("a script opens no sessions; audit again with another seed")
    witness = result.witness
    if witness is None or witness.guesses or words_of(result.evidence).again:
        why = words_of(result.evidence).again or "the result has no rejection region"
        raise Unwritable(f"no region can be counted on fresh runs: {why}")
    if not (witness.counts.n0 and witness.counts.n1):
        raise Unwritable("the witness counts no outputs of one dataset; audit again")
    return witness


def _datasets(result: AuditResult, witness: Witness) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the literals of both datasets, and in words which of them are missing."""
    texts = next(((row.d0, row.d1) for row in result.pairs if row.label == witness.pair), ("", ""))
    found, unknown = {}, []
    for name, text, dataset in zip(("D0", "D1"), texts, witness.datasets, strict=True):
        try:
            (value,) = map(restored, dataset)
            found[name] = literal(value)
        except (Unwritable, ValueError, TypeError, OverflowError):
            found[name] = f"...  # FILL IN: {comment(text, 120)}"
            unknown.append(f"write the dataset {name}")
    return found, tuple(unknown)


def _header(result: AuditResult, call: Call) -> Iterator[str]:
    versions = result.provenance.mechanism_packages or {}
    used = ", ".join(f"{name} {version}" for name, version in versions.items())
    about = f"; audited with {comment(used, 200)}" if used and not any("packages" in one for one in call.notes) else ""
    yield f"# Audit {comment(result.name, 100)} of the claim {comment(result.claim.label)}{about}."
    if call.notes:
        yield f"# {'; '.join(note.rstrip('.') for note in call.notes)}."


def _generator_lines(result: AuditResult, planned: PlannedAudit | None) -> list[str]:
    """Return lines that create a generator of the kind that the mechanism got in the audit."""
    if planned is not None and planned.config.mechanism.library == GENERATORS:
        return []  # a generator of synthetic tables gets no generator of random numbers
    isolated = planned is not None and planned.config.mechanism.isolated
    if isolated and "numpy" not in (result.provenance.mechanism_packages or {}):
        return ["from random import Random", "rng = Random()  # the environment of the audit had no numpy"]
    return ["rng = np.random.default_rng()"]


def _event_lines(event: Event, *, flipped: bool, outcomes: bool, complete: bool) -> Iterator[str]:
    if "entries(" in event.condition:
        yield "def entries(output):"
        yield "    return np.ravel(list(output.values()) if isinstance(output, dict) else output)"
    if "numbers(" in event.condition:
        yield "def numbers(output):"
        yield "    return np.nan_to_num(np.ravel(output) + 0.0, nan=0, posinf=0, neginf=0)"
    if outcomes:
        yield "def outcome(dataset):"
        yield "    try: return release(dataset)"
        yield "    except Exception as error: return error  # the audit counts an exception as an outcome"
    yield "def event(output):"
    if event.flattens:
        yield "    output = output.ravel() if isinstance(output, np.ndarray) else output"
    opposite = event.negated != flipped
    if event.partial or outcomes:
        yield from ("    try:", f"        found = event.read = bool({event.condition})", f"    except {_EXCEPTIONS}:")
        yield "        found = False  # a part of the output is missing"
    else:
        yield f"    found = bool({event.condition})"
    yield f"    return {'not found' if opposite else 'found'}"
    if not complete:
        yield 'assert D0 is not ... and D1 is not ..., "fill in the datasets"'


def _counting_lines(tested: Inequality, *, outcomes: bool, exact: bool) -> Iterator[str]:
    first, second = tested.sides
    counts = [(first, tested.x, tested.n_first), (second, tested.y, tested.n_second)]
    words = " and ".join(f"{k:,} of {n:,} runs on {name} ({percent(k / max(1, n))})" for name, k, n in counts)
    words = words.replace("\u00a0", " ")
    region = f"{'the complement of ' * tested.flipped}its region, which this event approximates"
    yield f"# The audit counted {words} in {'the event' if exact else region}."
    function = "outcome" if outcomes else "release"
    yield f"x, y = (sum(event({function}(deepcopy(data))) for _ in range(RUNS)) for data in ({first}, {second}))"
    yield f"# Exact test: P on {first} is at most `most`, its Clopper-Pearson bound with significance levels / 2."
    yield f"# So P on {second} is at most `allowed`; p is the least level such that y refutes this with level / 2."


def _conclusion(result: AuditResult, tested: Inequality, *, may_raise: bool) -> Iterator[str]:
    first, second = tested.sides
    counts = f"{first}: {{x:,}} of {{RUNS:,}} runs in the event, {second}: {{y:,}}"
    yield f'print(f"{counts}; p <= {{min(1, 1.05 * p):.1e}}")  # rounded up'
    yield 'kept = "These runs do not refute the claim, which does not show that the claim is true."'
    if may_raise:  # then `event` has no attribute `read`
        unread = "The condition of the event raised an exception on every run."
        yield f'kept = kept if hasattr(event, "read") else "{unread}"'
    yield f'print("These runs refute the claim." if p <= {lower(min(_LEVEL, 1 - result.confidence))} else kept)'


def as_markdown(result: AuditResult, script: Script) -> str:
    """Return Markdown with the finding and the script; no foreign text can end the block of code around it."""
    confidence = percent_at_least(result.confidence).replace("\u00a0", " ")
    todo = "  Fill in the places marked FILL IN first." if script.missing else ""
    return f"""\
### A claim of differential privacy is refuted for one pair of datasets

{_BACKGROUND}
An audit with dpaudit refuted the claim that the script names, with confidence {confidence}.
The p-value of the audit is at most {p_value_words(result)}.
The verdict concerns this claim, this pair of datasets and the audited version only.

The script needs Python, numpy, scipy and the audited mechanism, but not dpaudit.{todo}
It makes {script.runs:,} runs on each dataset, counts one event, and prints an exact p-value.
The p-value assumes that runs are independent, so a mechanism that keeps noise between runs makes it invalid.

```python
{script.text}```

A p-value above the required level does not show that the claim is true.
"""
