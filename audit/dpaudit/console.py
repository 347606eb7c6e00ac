"""What the command line shows: a progress bar on stderr while audits run, a table on stdout when they are done."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from dpaudit.claims import rounded
from dpaudit.engine import Progress
from dpaudit.numbers import at_least, at_most
from dpaudit.result import AuditResult, Verdict, epsilon_words, mu_words, p_value_words
from dpaudit.suite import named_together

_MARKS = {Verdict.VIOLATION: "✗", Verdict.NO_VIOLATION: "○", Verdict.INCONCLUSIVE: "?"}
_STYLES = {Verdict.VIOLATION: "bold red", Verdict.NO_VIOLATION: "", Verdict.INCONCLUSIVE: "yellow"}
_WIDE = 125  # columns from which nothing needs to be left out


def log_to_stderr(name: str) -> None:
    """Show what the logger of that name says, such as that an environment is being built."""
    handler = RichHandler(console=Console(stderr=True), show_time=False, show_level=False, show_path=False)
    logger = logging.getLogger(name)
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


@contextmanager
def progress_bar(name: str, *, shown: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A bar for one audit, with the trials done and the evidence so far; None to draw nothing."""
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
        task = bars.add_task(escape(name), total=None, allowed="?", evidence="1 of 20")

        def update(now: Progress) -> None:
            evidence = f"{_amount(now.log_e)} of {_amount(now.log_threshold)}"
            allowed = f"{now.allowed:,}"
            bars.update(task, total=now.allowed, completed=now.trials, allowed=allowed, evidence=evidence)

        yield update


def _amount(log_e: float) -> str:
    if math.isnan(log_e):
        return "?"  # counted at the end
    return f"{math.exp(log_e):.3g}" if abs(log_e) < 20 else f"10^{log_e / math.log(10):.0f}"


def result_table(results: Sequence[AuditResult], expected: Sequence[str | None], *, wide: bool) -> Table:
    """One row for each audit; `wide` adds what was certified and what would have been seen."""
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
        cells: list[str | Text] = [
            Text(f"{result.name}\n  {rounded(result.claim.label)}"),
            Text(f"{_MARKS[result.verdict]} {result.verdict.value}", style=_STYLES[result.verdict]),
            f"{result.trials_used:,}",
            p_value_words(result, at_most).removeprefix("≤\u00a0"),
        ]
        if wide:
            cells.append(f"mu {mu_words(result, at_least)}\nepsilon {epsilon_words(result, 0.0, at_least)}")
            cells.append("" if result.violated else Text(rounded(result.detectable.claim or "nothing")))
        if any(expected):
            cells.append(
                "" if wanted is None else "yes" if as_expected(result, wanted) else Text("NO", style="bold red")
            )
        table.add_row(*cells)
    return table


def as_expected(result: AuditResult, wanted: str) -> bool:
    """Whether the verdict is the one that the config's `expect` names."""
    return result.verdict is (Verdict.VIOLATION if wanted == "violation" else Verdict.NO_VIOLATION)


def print_results(results: Sequence[AuditResult], expected: Sequence[str | None]) -> None:
    """To stdout; all of it where that is a file, a pipe or a wide terminal."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDE)
    console.print(result_table(results, expected, wide=console.width >= _WIDE))
    if together := named_together(results):
        console.print(Text(together))
