"""The methods of a claim that draw it."""

from __future__ import annotations

from typing import cast

from dpaudit.values import Foreign


class Shown:
    """Plots of a claim."""

    __slots__ = ()

    def plot(
        self,
        kind: str = "tradeoff",
        ax: Foreign = None,
        *,
        label: str | None = None,
        color: str | None = None,
        legend: bool = True,
    ) -> Foreign:
        """Draw the claim on matplotlib axes; see `dpaudit_reports.plot_claim`.

        Returns:
            The axes.
        """
        from dpaudit_reports import plot_claim

        return plot_claim(cast(Foreign, self), kind, ax, label=label, color=color, legend=legend)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook displays: parameters, trade-off function and privacy profile."""
        from dpaudit_reports import claim_fragment

        return claim_fragment(cast(Foreign, self))
