"""A progress bar on stderr while audits run, and a table on stdout when they are done."""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from dpaudit.claims import rounded
from dpaudit.cli.terminal import drawn, say, show
from dpaudit.engine.audit import Progress
from dpaudit.result.model import AuditResult, epsilon_words, mu_words, p_value_words
from dpaudit.result.values import Verdict
from dpaudit.text.rounding import at_least, at_most

_MARKS = {Verdict.VIOLATION: "✗", Verdict.NO_VIOLATION: "○", Verdict.INCONCLUSIVE: "?"}
_STYLES = {Verdict.VIOLATION: "bold red", Verdict.NO_VIOLATION: "", Verdict.INCONCLUSIVE: "yellow"}
_MAX_NAME_COLUMNS = 24  # leaves room for the progress bar on a terminal with 80 columns
_MIN_WIDE_COLUMNS = 125  # width of a table with all columns


class _ToStderr(logging.Handler):
    """Writes log messages to stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


def log_to_stderr(name: str) -> None:
    """Show the messages of a logger, e.g. that an environment is being built."""
    logger = logging.getLogger(name)
    logger.handlers = [_ToStderr()]
    logger.setLevel(logging.INFO)
    logger.propagate = False


@contextmanager
def progress_bar(
    name: str, *, shown: bool, log_threshold: float | None = None
) -> Iterator[Callable[[Progress], None] | None]:
    """Show a progress bar for one audit, with its trials and evidence.

    Args:
        name: Name of the audit.
        shown: Whether to draw the bar; nothing is drawn unless stderr is a terminal.
        log_threshold: Logarithm of the evidence at which the audit stops; None if unknown.

    Yields:
        A function that updates the bar; None if nothing is drawn.
    """
    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        TextColumn("{task.completed:,} of {task.fields[allowed]} runs · evidence {task.fields[evidence]}"),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        first = "1" if log_threshold is None else f"1 of {_amount(log_threshold)}"
        task = bars.add_task(escape(_folded(name)), total=None, allowed="?", evidence=first)
        broken = False

        def update(now: Progress) -> None:
            nonlocal broken
            if broken:
                return
            evidence = f"{_amount(now.log_e)} of {_amount(now.log_threshold)}"
            allowed = f"{now.allowed:,}"
            try:
                bars.update(task, total=now.allowed, completed=now.trials, allowed=allowed, evidence=evidence)
            except (OSError, ValueError, UnicodeError):
                broken = True  # the terminal has closed; the audit continues

        yield update


def _folded(name: str) -> str:
    return name if len(name) <= _MAX_NAME_COLUMNS else f"{name[: _MAX_NAME_COLUMNS - 1]}…"


def ended_line(number: int, audits: int, result: AuditResult) -> str:
    """Return the line that is shown when an audit ends."""
    width = len(str(audits))
    verdict = f"{_MARKS[result.verdict]} {result.verdict.value}"
    return (
        f"{number:{width}d} of {audits}  {result.name}  {verdict}  "
        f"{result.trials_used:,} runs  {result.elapsed_s:.1f} s"
    )


def _amount(log_e: float) -> str:
    if math.isnan(log_e):
        return "?"  # not known before the end of the audit
    return f"{math.exp(log_e):.3g}" if abs(log_e) < 20 else f"10^{log_e / math.log(10):.0f}"


def result_table(results: Sequence[AuditResult], expected: Sequence[str | None], *, wide: bool) -> Table:
    """Return a table with one row per audit; unless `wide`, the last two columns are placed under the name."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("audit and claim", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("runs per\ndataset", justify="right", no_wrap=True)
    table.add_column("p-value\nat most", justify="right", no_wrap=True)
    if wide:
        table.add_column("certified", no_wrap=True)
        table.add_column("detectable\n(90 %)", overflow="fold")
    if any(expected):
        table.add_column("as\nexpected", no_wrap=True)
    for result, wanted in zip(results, expected, strict=True):
        certified, seen = _certified(result), _detectable(result)
        under = [rounded(result.claim.label)]
        if not wide:
            under += [f"certified {words}" for words in certified]
            under += [f"detectable (90 %): {seen}"] if seen else []
        cells: list[str | Text] = [
            Text("\n  ".join([result.name, *under])),
            Text(f"{_MARKS[result.verdict]} {result.verdict.value}", style=_STYLES[result.verdict]),
            f"{result.trials_used:,}",
            p_value_words(result, at_most).removeprefix("≤\u00a0"),
        ]
        if wide:
            cells.append("\n".join(certified))
            cells.append(Text(seen))
        if any(expected):
            cells.append(
                "" if wanted is None else "yes" if as_expected(result, wanted) else Text("NO", style="bold red")
            )
        table.add_row(*cells)
    return table


def _certified(result: AuditResult) -> list[str]:
    if not result.certified:
        return ["nothing"]
    return [f"mu {mu_words(result, at_least)}", f"epsilon {epsilon_words(result, 0.0, at_least)} at delta 0"]


def _detectable(result: AuditResult) -> str:
    """Return the detectable violation; "" after a violation, and if no bound is certified."""
    return "" if result.violated or not result.certified else rounded(result.detectable.claim or "nothing")


def as_expected(result: AuditResult, wanted: str) -> bool:
    """Return whether the verdict is the one that the config expects."""
    return result.verdict is (Verdict.VIOLATION if wanted == "violation" else Verdict.NO_VIOLATION)


def print_results(results: Sequence[AuditResult], expected: Sequence[str | None], together: str = "") -> None:
    """Print the table to stdout, with all columns in a file, a pipe or a wide terminal.  Stream errors are ignored."""
    terminal = Console()
    wide = not terminal.is_terminal or terminal.width >= _MIN_WIDE_COLUMNS
    width = terminal.width if terminal.is_terminal else _MIN_WIDE_COLUMNS
    text = io.StringIO()
    console = Console(
        file=text,
        width=width,
        force_terminal=terminal.is_terminal,
        color_system="auto" if terminal.is_terminal else None,
        no_color=terminal.no_color,
    )
    console.print(result_table(results, expected, wide=wide))
    drawn(text.getvalue())
    if together:
        show(together)
