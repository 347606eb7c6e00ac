"""Axes that show themselves as a picture where a notebook displays them."""

from __future__ import annotations

import io

from matplotlib.axes import Axes


class ShownAxes(Axes):
    """Axes of a figure that belongs to no pyplot: notebooks call `_repr_png_` of what a cell returns."""

    def _repr_png_(self) -> bytes:
        target = io.BytesIO()
        figure = self.get_figure(root=True)
        if figure is not None:
            figure.savefig(target, format="png", dpi=144)
        return target.getvalue()
