"""Columns on a common scale, with a place for inf and NaN."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpaudit.claims import Array

_REACH = 8.0  # spreads beyond which outputs are treated alike: one wild output must not decide a fit


@dataclass(frozen=True, slots=True)
class Scale:
    """Robust standardisation learned from training outputs; NaN becomes the centre, and a column of its own."""

    centre: Array  # (d,), medians
    spread: Array  # (d,), > 0, half the distance between the 16 % and the 84 % quantile
    missing: npt.NDArray[np.intp]  # columns in which NaN occurred

    @classmethod
    def of(cls, outputs: Array) -> Scale:
        """`outputs`: (n, d), n >= 1."""
        finite = np.where(np.isfinite(outputs), outputs, np.nan)
        usable = ~np.all(np.isnan(finite), axis=0)
        centre, spread = np.zeros(outputs.shape[1]), np.ones(outputs.shape[1])
        low, middle, high = np.nanquantile(finite[:, usable], [0.16, 0.5, 0.84], axis=0)
        with np.errstate(over="ignore"):
            half = high / 2 - low / 2
            wide = np.nanmax(finite[:, usable], axis=0) / 2 - np.nanmin(finite[:, usable], axis=0) / 2
        centre[usable] = middle
        spread[usable] = np.where(half > 0, half, np.where(wide > 0, wide, 1.0))
        return cls(centre, spread, np.flatnonzero(np.any(np.isnan(outputs), axis=0)))

    def __call__(self, outputs: Array) -> Array:
        """(n, d) -> (n, d + len(missing)), all finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (outputs - self.centre) / self.spread
        np.maximum(scaled, -_REACH, out=scaled)
        np.minimum(scaled, _REACH, out=scaled)
        scaled[np.isnan(scaled)] = 0.0
        if not len(self.missing):
            return scaled
        return np.hstack([scaled, np.isnan(outputs[:, self.missing]).astype(np.float64)])
