"""Local reports with public randomness, by the mechanism's own word on which records an output supports.

A report such as (seed, noisy hash of the record under this seed) shows nothing to an attack that cannot compute the
hash: for each candidate, its law looks uniform.  The mechanism can: `supports(candidate, outputs)` says of each output
whether it speaks for a candidate, or how much, for example by its log-likelihood.  The candidates are the records in
which the datasets differ, so two answers are left of an output.  For yes and no, these are four cells.

Such protocols treat all records alike, so outputs on d0 are mirror images of outputs on d1: the log-likelihood ratio is
proportional to the difference between the two answers, and each output also counts as its mirror image.  If the answers
themselves predict clearly better, as for a record that the mechanism treats in another way, they get coefficients of
their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit.numerics import Array, fit_logistic, linear

Seen = Any  # n outputs as the mechanism returned them: an array, or a list of any objects
_LARGEST = 60.0  # nats; larger differences between two answers, also infinite ones, are clipped
_MIRRORED, _FREE = 1, 4  # coefficients of the two fits; the fit with more must gain more log-likelihood (Schwarz 1978)


@dataclass(frozen=True, slots=True)
class Supported:
    """The mechanism's answers for the records of d0 and of d1; the guarantee holds even if they are wrong."""

    supports: Callable[[Any, Seen], Any]
    candidates: tuple[Any, ...]  # the record of d0 and that of d1; a single one if only one of them has such a record
    name: ClassVar[str] = "supported"
    sees: ClassVar[str] = "natural"
    calibrated: ClassVar[bool] = True
    head_start: ClassVar[float] = 4.0
    most_rows: ClassVar[int] = 50_000
    unused: ClassVar[str] = (
        "the mechanism's supports(candidate, outputs) never told the candidates apart, so it was of no use: compare it "
        "with the code of the mechanism"
    )

    def suits(self, outputs0: Seen, outputs1: Seen) -> bool:
        answers = np.concatenate([self._answers(outputs) for outputs in (outputs0, outputs1)])
        return bool(np.ptp(answers) > 0 if len(self.candidates) == 1 else np.any(answers[:, 0] != answers[:, 1]))

    def fit(self, outputs0: Seen, outputs1: Seen, rng: np.random.Generator) -> Callable[[Seen], Array]:
        answers0, answers1 = self._answers(outputs0), self._answers(outputs1)
        n = len(answers0) + len(answers1)
        free = _Fit.of(_each(answers0), _each(answers1))
        chosen, rows = free, _each
        if len(self.candidates) > 1:
            away0, away1 = _difference(answers0), _difference(answers1)
            mirrored = _Fit.of(np.concatenate([away0, -away1]), np.concatenate([away1, -away0]))
            if free.loss > mirrored.loss / 2 - (_FREE - _MIRRORED) / 2 * math.log(n):
                chosen, rows = mirrored, _difference
        return lambda outputs: chosen(rows(self._answers(outputs)))

    def _answers(self, outputs: Seen) -> Array:
        """Return the answers for each candidate, (n, candidates)."""
        found = [np.asarray(self.supports(candidate, outputs), dtype=np.float64) for candidate in self.candidates]
        for answers in found:
            if answers.shape != (len(outputs),) or np.isnan(answers).any():
                raise ValueError(
                    f"supports(candidate, outputs) must return a bool or a number for each of {len(outputs)} outputs, "
                    f"got {'nan' if answers.shape == (len(outputs),) else f'shape {answers.shape}'}"
                )
        return np.clip(np.column_stack(found), -1e6, 1e6)


@dataclass(frozen=True, slots=True)
class _Fit:
    """A logistic regression of the dataset on rows (n, d)."""

    slopes: Array
    intercept: float
    loss: float  # the log-loss in nats, summed over its rows

    @classmethod
    def of(cls, rows0: Array, rows1: Array) -> _Fit:
        slopes, intercept = fit_logistic(np.concatenate([rows0, rows1]), len(rows0))
        wrong = linear(rows0, slopes) + intercept, -linear(rows1, slopes) - intercept
        return cls(slopes, intercept, float(sum(np.logaddexp(0.0, side).sum() for side in wrong)))

    def __call__(self, rows: Array) -> Array:
        return linear(rows, self.slopes) + self.intercept


def _difference(answers: Array) -> Array:
    """Return the differences between the answers for d1 and for d0, (n, 1)."""
    return np.clip(answers[:, 1:] - answers[:, :1], -_LARGEST, _LARGEST)


def _each(answers: Array) -> Array:
    """Return the answers and their product."""
    clipped = np.clip(answers, -_LARGEST, _LARGEST)
    return np.column_stack([clipped, clipped.prod(axis=1)])
