"""The methods of a result that draw plots and write reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from dpaudit.result.atomic_write import write_whole


class Shown:
    """Files, plots and reports of a result."""

    def __bool__(self) -> bool:
        """Raise TypeError, because a test such as `assert audit(...)` would otherwise always pass."""
        raise TypeError(
            f"a result has no truth value (this one: {cast(Any, self).verdict.value}); use result.violated, or "
            "compare result.verdict with a Verdict"
        )

    def to_json(self, path: str | Path) -> None:
        """Write the result as a JSON file.  Floats are written with all digits, and inf and nan as strings.

        Raises:
            OSError: If the file cannot be written.
        """
        from dpaudit.result.files import as_text

        write_whole(path, as_text(cast(Any, self).to_dict()))

    def to_pdf(self, path: str | Path, *, paper: str = "a4") -> None:
        """Write the report of this audit as a PDF file; `paper` is "a4" or "letter"."""
        from dpaudit_reports import write_pdf

        write_pdf([cast(Any, self)], path, paper=paper)

    def as_pdf(self) -> bytes:
        """Return the report of this audit as the content of a PDF file."""
        from dpaudit_reports import to_pdf

        return to_pdf([cast(Any, self)])

    def to_html(self, path: str | Path) -> None:
        """Write the report of this audit as a single, self-contained HTML file."""
        from dpaudit_reports import write_html

        write_html([cast(Any, self)], path)

    def to_markdown(self) -> str:
        """Return a short report in Markdown, suitable as a comment on a pull request."""
        from dpaudit_reports import to_markdown

        return to_markdown([cast(Any, self)])

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook displays for the result."""
        from dpaudit_reports import to_fragment

        return to_fragment([cast(Any, self)])

    def plot(
        self,
        kind: Any = "tradeoff",
        ax: Any = None,
        *,
        label: str | None = None,
        color: str | None = None,
        claim: bool = True,
        legend: bool = True,
    ) -> Any:
        """Draw a plot of the result.

        With `label` or `color`, or on axes that already hold such a plot, the result adds one line, so that several
        results can share the axes.

        Returns:
            The axes of the plot.  A notebook displays the axes of a new figure as a picture.
        """
        from dpaudit_reports import plot_result

        if not isinstance(kind, str):  # `plot(ax)`
            kind, ax = "tradeoff", kind
        return plot_result(cast(Any, self), kind, ax, label=label, color=color, claim=claim, legend=legend)
