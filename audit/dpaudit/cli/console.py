"""What the command line shows: a progress bar on stderr while audits run, a table on stdout when they are done."""

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
_LONGEST_NAME = 24  # letters beside a progress bar, which has 80 columns
_WIDE = 125  # columns from which nothing needs to be left out


class _Said(logging.Handler):
    """Shows what a logger says."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


def log_to_stderr(name: str) -> None:
    """Show what the logger of that name says, such as that an environment is being built."""
    logger = logging.getLogger(name)
    logger.handlers = [_Said()]
    logger.setLevel(logging.INFO)
    logger.propagate = False


@contextmanager
def progress_bar(
    name: str, *, shown: bool, log_threshold: float | None = None
) -> Iterator[Callable[[Progress], None] | None]:
    """A bar for one audit, with the trials done and the evidence so far; None to draw nothing.

    `log_threshold`: log of the evidence at which the audit stops, shown before the first block if it is known.
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
                broken = True  # the terminal has gone; the audit goes on

        yield update


def _folded(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def ended_line(number: int, audits: int, result: AuditResult) -> str:
    """What is said of an audit as soon as it has ended."""
    width = len(str(audits))
    verdict = f"{_MARKS[result.verdict]} {result.verdict.value}"
    return (
        f"{number:{width}d} of {audits}  {result.name}  {verdict}  "
        f"{result.trials_used:,} runs  {result.elapsed_s:.1f} s"
    )


def _amount(log_e: float) -> str:
    if math.isnan(log_e):
        return "?"  # counted at the end
    return f"{math.exp(log_e):.3g}" if abs(log_e) < 20 else f"10^{log_e / math.log(10):.0f}"


def result_table(results: Sequence[AuditResult], expected: Sequence[str | None], *, wide: bool) -> Table:
    """One row for each audit; unless `wide`, what was certified and would have been seen stands under the name."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("audit and claim", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("runs per\ndataset", justify="right", no_wrap=True)
    table.add_column("p-value\nat most", justify="right", no_wrap=True)
    if wide:
        table.add_column("certified", no_wrap=True)
        table.add_column("would have seen", overflow="fold")
    if any(expected):
        table.add_column("as\nexpected", no_wrap=True)
    for result, wanted in zip(results, expected, strict=True):
        certified, seen = _certified(result), _would_have_seen(result)
        under = [rounded(result.claim.label)]
        if not wide:
            under += [f"certified {words}" for words in certified]
            under += [f"would have seen {seen}"] if seen else []
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


def _would_have_seen(result: AuditResult) -> str:
    """Empty where the audit says nothing about it: of a violation, and where no bound holds."""
    return "" if result.violated or not result.certified else rounded(result.detectable.claim or "nothing")


def as_expected(result: AuditResult, wanted: str) -> bool:
    """Whether the verdict is the one that the config's `expect` names."""
    return result.verdict is (Verdict.VIOLATION if wanted == "violation" else Verdict.NO_VIOLATION)


def print_results(results: Sequence[AuditResult], expected: Sequence[str | None], together: str = "") -> None:
    """To stdout; all of it where that is a file, a pipe or a wide terminal.  Never raises for what stdout is."""
    terminal = Console()
    wide = not terminal.is_terminal or terminal.width >= _WIDE
    width = terminal.width if terminal.is_terminal else _WIDE
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
