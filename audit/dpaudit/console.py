"""What the command line shows: a progress bar on stderr while audits run, a table on stdout when they are done."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from dpaudit.engine import Progress
from dpaudit.result import AuditResult, Verdict

_MARKS = {Verdict.VIOLATION: "✗", Verdict.NO_VIOLATION: "○", Verdict.INCONCLUSIVE: "?"}
_STYLES = {Verdict.VIOLATION: "bold red", Verdict.NO_VIOLATION: "", Verdict.INCONCLUSIVE: "yellow"}
_WIDE = 140  # where the output goes to a file, nothing needs to be squeezed


@contextmanager
def progress_bar(name: str, *, shown: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A bar for one audit, with the trials done and the evidence so far; None to draw nothing."""
    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("runs per dataset · evidence {task.fields[evidence]}"),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task(Text(name).plain, total=None, evidence="1 of 20")

        def update(now: Progress) -> None:
            evidence = f"{_amount(now.log_e)} of {_amount(now.log_threshold)}"
            bars.update(task, total=now.allowed, completed=now.trials, evidence=evidence)

        yield update


def _amount(log_e: float) -> str:
    return f"{math.exp(log_e):.3g}" if abs(log_e) < 20 else f"10^{log_e / math.log(10):.0f}"


def result_table(results: Sequence[AuditResult], expected: Sequence[str | None]) -> Table:
    """One row for each audit."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("audit", overflow="fold")
    table.add_column("claim", overflow="fold")
    table.add_column("verdict")
    table.add_column("runs per\ndataset", justify="right")
    table.add_column("p-value\nat most", justify="right")
    table.add_column("certified", overflow="fold")
    table.add_column("least violation it\nwould have seen", overflow="fold")
    if any(expected):
        table.add_column("expected")
    for result, wanted in zip(results, expected, strict=True):
        verdict = Text(f"{_MARKS[result.verdict]} {result.verdict.value}", style=_STYLES[result.verdict])
        cells: list[str | Text] = [
            Text(result.name),
            Text(_short(result.claim.label)),
            verdict,
            f"{result.trials_used:,}",
            f"{result.p_value:.2g}",
            f"mu ≥ {result.mu_lower:.3f}\nepsilon ≥ {result.epsilon_lower(0.0):.3f}",
            "—" if result.violated else Text(result.detectable.claim or "none"),
        ]
        if any(expected):
            cells.append(
                "" if wanted is None else "yes" if as_expected(result, wanted) else Text("NO", style="bold red")
            )
        table.add_row(*cells)
    return table


def _short(claim: str) -> str:
    """Numbers to four digits: a library's own accounting may give seventeen."""
    return re.sub(r"\d+\.\d{4,}(e-?\d+)?", lambda number: f"{float(number[0]):.4g}", claim)


def as_expected(result: AuditResult, wanted: str) -> bool:
    """Whether the verdict is the one that the config's `expect` names."""
    return result.verdict is (Verdict.VIOLATION if wanted == "violation" else Verdict.NO_VIOLATION)


def print_table(table: Table) -> None:
    """To stdout; wide enough to be whole where that is a file or a pipe."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDE)
    console.print(table)
