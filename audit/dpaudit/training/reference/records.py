"""Datasets of the reference trainer (labelled examples and Dirac records), and the batches of its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import Array, Flags, Integers
from dpaudit.training.claims import is_positive, is_whole
from dpaudit.training.reference.model import numbers
from dpaudit.values import Dataset

FAR = 1e6
"""Gradient norm of a Dirac record: far above any clipping norm, so that the clipped gradient has the clipping norm."""

_PARTS = ("features", "labels", "diracs", "sizes")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Records:
    """A dataset: labelled examples, followed by Dirac records.

    A Dirac record has the gradient `size` at one spare weight of the model and 0 elsewhere, whatever the weights are.
    Such a record is the worst case in the analysis of DP-SGD.

    A record adds nothing to a batch if its gradient has a norm above 10^200, or if its features have a norm above 10^8.
    The same holds if the inputs of a layer, times the largest weight of this layer, have a norm above 10^8.

    Args:
        features: Features of the examples, (n, d).
        labels: Labels of the examples, (n,), whole numbers from 0.
        diracs: For each Dirac record, the index of its spare weight, (k,).
        sizes: For each Dirac record, its gradient before clipping, (k,); 10^6 if omitted.

    Raises:
        ValueError: If shapes do not fit, a feature is not finite, or a label or index is not a whole number >= 0.
    """

    features: Array
    labels: Integers
    diracs: Integers
    sizes: Array

    def __init__(
        self,
        features: npt.ArrayLike = (),
        labels: npt.ArrayLike = (),
        diracs: npt.ArrayLike = (),
        sizes: npt.ArrayLike | None = None,
    ) -> None:
        x = numbers("features", features)
        x = x.reshape(0, 0) if x.size == 0 and x.ndim != 2 else x
        marks = _indices("diracs", diracs)
        object.__setattr__(self, "features", x)
        object.__setattr__(self, "labels", _indices("labels", labels))
        object.__setattr__(self, "diracs", marks)
        object.__setattr__(self, "sizes", np.full(len(marks), FAR) if sizes is None else numbers("sizes", sizes))
        if x.ndim != 2 or len(x) != len(self.labels):
            raise ValueError(f"features must be (n, d) with n labels, got {x.shape} and {len(self.labels)} labels")
        if len(self.sizes) != len(marks):
            raise ValueError(f"diracs and sizes must be of equal length, got {len(marks)} and {len(self.sizes)}")
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(self.sizes))):
            raise ValueError("features and sizes must be finite; a value that is nan or inf makes every model diverge")

    def __len__(self) -> int:
        return len(self.labels) + len(self.diracs)

    def __repr__(self) -> str:
        """Describe only the size of the dataset, because datasets appear in reports."""
        diracs = f", {len(self.diracs)} diracs" if len(self.diracs) else ""
        return f"Records({len(self.labels)} x {self.features.shape[1]}{diracs})"

    def joined(self, other: Records) -> Records:
        """Return these records followed by `other`; all Dirac records come last."""
        features = [part.features for part in (self, other) if len(part.labels)]
        return Records(
            np.concatenate(features) if features else self.features,
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.diracs, other.diracs]),
            np.concatenate([self.sizes, other.sizes]),
        )

    def chosen(self, places: npt.ArrayLike) -> Records:
        """Return the records at the given indices, or where an array of booleans is true."""
        flags = np.zeros(len(self), dtype=np.bool_)
        flags[np.asarray(places)] = True
        n = len(self.labels)
        return Records(self.features[flags[:n]], self.labels[flags[:n]], self.diracs[flags[n:]], self.sizes[flags[n:]])


def unshared(first: Records, second: Records) -> tuple[int, int]:
    """Count the records that only the first dataset has, and the records that only the second dataset has."""
    one, other = Counter(_contents(first)), Counter(_contents(second))
    return (one - other).total(), (other - one).total()


def _contents(data: Records) -> Iterator[tuple[bytes | float, int]]:
    for features, label in zip(data.features + 0.0, data.labels.tolist(), strict=True):  # -0.0 becomes 0.0
        yield features.tobytes(), label
    yield from zip(data.sizes.tolist(), data.diracs.tolist(), strict=True)


def records_of(dataset: Dataset) -> Records:
    """Return a dataset as `Records`; a config holds a mapping with their arguments."""
    if isinstance(dataset, Records):
        return dataset
    if isinstance(dataset, Mapping):
        if unknown := [key for key in dataset if key not in _PARTS]:
            raise ValueError(f"a key of a dataset of records must be one of {', '.join(_PARTS)}; got {unknown[0]!r}")
        return Records(**dataset)
    raise TypeError(f"the dataset must be Records, or a mapping with the keys {', '.join(_PARTS)}; got {dataset!r:.80}")


def _indices(name: str, given: npt.ArrayLike) -> Integers:
    values = np.asarray(given)
    if values.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {values.shape}")
    if values.size and values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be whole numbers >= 0, got {values.tolist()[0]!r:.60}")
    whole = values.astype(np.int64)
    if np.any(whole != values) or np.any(whole < 0):
        raise ValueError(f"{name} must be whole numbers >= 0, got {values[(whole != values) | (whole < 0)][0]}")
    return whole


@dataclass(frozen=True, slots=True)
class Full:
    """Every record is in every batch: DP-GD."""

    name: ClassVar[Literal["full"]] = "full"
    rate: ClassVar[None] = None
    """The sampling rate for the claim: None, because every record is in every batch."""

    def batches(self, n: int, rngs: Sequence[np.random.Generator]) -> Iterator[Flags]:
        """Yield for each step which of the n records are in the batch of each model, (m, n)."""
        everything = np.ones((len(rngs), n), dtype=np.bool_)
        while True:
            yield everything


@dataclass(frozen=True, slots=True)
class Poisson:
    """Each record is in a batch with probability `probability`, independently.

    Args:
        probability: In (0, 1].
    """

    probability: float
    name: ClassVar[Literal["poisson"]] = "poisson"

    def __post_init__(self) -> None:
        if not is_positive(self.probability) or self.probability > 1:
            raise ValueError(f"the sampling probability must lie in (0, 1], got {self.probability!r}")

    def batches(self, n: int, rngs: Sequence[np.random.Generator]) -> Iterator[Flags]:
        while True:
            yield np.array([rng.random(n) < self.probability for rng in rngs]).reshape(len(rngs), n)

    @property
    def rate(self) -> float | None:
        """The sampling rate."""
        return self.probability


@dataclass(frozen=True, slots=True)
class Shuffled:
    """Each epoch splits a random permutation of the records into `parts` batches of nearly equal size.

    Args:
        parts: Number of batches in an epoch, >= 1.
    """

    parts: int
    name: ClassVar[Literal["shuffled"]] = "shuffled"

    def __post_init__(self) -> None:
        if not is_whole(self.parts):
            raise ValueError(
                f"parts, the number of batches in an epoch, must be a whole number >= 1, got {self.parts!r}"
            )

    def batches(self, n: int, rngs: Sequence[np.random.Generator]) -> Iterator[Flags]:
        part = np.repeat(np.arange(self.parts), [len(a) for a in np.array_split(np.arange(n), self.parts)])
        while True:
            assigned = np.array([rng.permutation(part) for rng in rngs]).reshape(len(rngs), n)
            for batch in range(self.parts):
                yield assigned == batch

    @property
    def rate(self) -> float | None:
        """The share of the records in a batch."""
        return 1 / self.parts


Sampling = Full | Poisson | Shuffled

FULL = Full()
