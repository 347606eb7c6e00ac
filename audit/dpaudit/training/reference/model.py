"""Fully connected models with softmax output (logistic regression, and networks with tanh layers), and their gradients.

An array (m, P) holds the P weights of each of m models: the weights of each layer row by row, then the spare weights.
Activations have the axes (model, unit, example), or (unit, example) if all models see the same examples.

The gradient of an example with respect to the weights of a layer is the outer product of a signal and the inputs.  Its
squared norm is the product of their squared norms (Goodfellow 2015, arXiv:1510.01799), and a weighted sum of gradients
is a matrix product, so no explicit gradients are needed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import Array, Integers
from dpaudit.training.claims import is_whole
from dpaudit.values import Dataset

_TINY = 1e-300  # minimum of a norm as a divisor, so that the gradient 0 is not divided by 0
_HUGE = 1e200  # maximum norm of a gradient; the clipping of a larger gradient would lose precision or overflow
# Maximum norm of an example's features, and of a layer's inputs times its largest weight.  Beyond, rounding errors,
# which may depend on the other examples, would affect a clipped gradient.
LARGEST_NORM = 1e8


@dataclass(frozen=True, slots=True)
class Model:
    """A model with softmax output and cross-entropy loss.

    Args:
        sizes: The number of features, the number of units in each hidden layer, and the number of classes.  (64, 10) is
            multinomial logistic regression, and (64, 32, 10) has a hidden layer of 32 units.
        bias: Whether each layer has a bias.
        spare: Number of further weights that the model does not use.  Only Dirac records have a gradient there.

    Raises:
        ValueError: If a size is out of range.
    """

    sizes: tuple[int, ...]
    bias: bool = True
    spare: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, tuple) or not all(map(is_whole, self.sizes)):
            raise ValueError(f"sizes must be a tuple of whole numbers such as (64, 10), got {self.sizes!r}")
        if len(self.sizes) < 2 or self.sizes[-1] < 2:
            raise ValueError(f"sizes must be (features, ..., classes) with at least two classes, got {self.sizes}")
        if not is_whole(self.spare, least=0):
            raise ValueError(f"spare must be a whole number >= 0, got {self.spare!r}")

    def checked(self, start: npt.ArrayLike) -> Array:
        """Return the weights of one model, (P,); raise ValueError if their number does not match the model."""
        weights = numbers("start", start)
        if weights.shape != (self.parameters,):
            raise ValueError(f"start must have {self.parameters} weights, got shape {weights.shape}")
        return weights

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Shape of the weights of each layer: outputs, and inputs with the bias."""
        return tuple((out, into + self.bias) for into, out in zip(self.sizes[:-1], self.sizes[1:], strict=True))

    @property
    def parameters(self) -> int:
        """Number of weights of one model."""
        return sum(out * into for out, into in self.shapes) + self.spare

    def layers(self, weights: Array) -> list[Array]:
        """Return the weights of each layer as (m, outputs, inputs), without the spare weights."""
        found, at = [], 0
        for out, into in self.shapes:
            found.append(weights[:, at : at + out * into].reshape(len(weights), out, into))
            at += out * into
        return found

    def initial(self) -> Array:
        """Return public initial weights, (P,): zeros, or Glorot's uniform law from a fixed seed for networks."""
        weights = np.zeros(self.parameters)
        if len(self.sizes) == 2:
            return weights
        rng = np.random.default_rng(0)
        for layer in self.layers(weights[None]):
            out, into = layer.shape[1:]
            layer[0] = rng.uniform(-1, 1, (out, into)) * math.sqrt(6 / (out + into))
        return weights

    def forward(self, weights: Array, features: Array) -> tuple[list[Array], Array]:
        """Return each layer's inputs, ([m,] inputs, n), and logits, (m, classes, n), of features ([m,] n, d)."""
        inputs = []
        signal = np.swapaxes(features, -1, -2)
        for depth, layer in enumerate(self.layers(weights)):
            if depth:
                signal = np.tanh(signal)
            if self.bias:
                signal = np.concatenate([signal, np.ones((*signal.shape[:-2], 1, signal.shape[-1]))], axis=-2)
            inputs.append(signal)
            signal = product(layer, signal)
        return inputs, signal

    def backward(self, weights: Array, inputs: list[Array], logits: Array, labels: Integers) -> list[Array]:
        """Return the derivatives of each example's loss by each layer's outputs, (m, outputs, n), from `forward`."""
        signal = np.exp(logits - logits.max(axis=1, keepdims=True))
        signal /= signal.sum(axis=1, keepdims=True)
        models, examples = np.arange(signal.shape[0])[:, None], np.arange(signal.shape[2])
        signal[models, labels, examples] -= 1
        signals = [signal]
        layers = self.layers(weights)
        for depth in range(len(layers) - 1, 0, -1):
            hidden = inputs[depth][..., : self.sizes[depth], :]
            back = np.matmul(layers[depth][:, :, : self.sizes[depth]].swapaxes(1, 2), signals[0])
            signals.insert(0, back * (1 - hidden**2))
        return signals

    def losses(self, weights: Array, features: Array, labels: npt.NDArray[np.int64]) -> Array:
        """Compute the cross-entropy loss of each example, (m, n), in nats."""
        logits = self.forward(weights, features)[1]
        most = logits.max(axis=1, keepdims=True)
        total = np.log(np.exp(logits - most).sum(axis=1)) + most[:, 0]
        return np.asarray(total - logits[:, labels, np.arange(len(labels))])


def numbers(name: str, given: npt.ArrayLike) -> Array:
    """Return an argument as an array of numbers."""
    try:
        return np.asarray(given, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} must be numbers that a float can hold, at most 1.8e308 in size") from None
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {given!r:.60}") from None


def product(layer: Array, inputs: Array) -> Array:
    """Return layer @ inputs for each model, (m, outputs, n); one matrix product if the inputs are shared."""
    if inputs.ndim == 2:
        m, out, into = layer.shape
        return (layer.reshape(m * out, into) @ inputs).reshape(m, out, -1)
    return np.asarray(np.matmul(layer, inputs))


@dataclass(frozen=True, slots=True, eq=False)
class PerExample:
    """The gradients of the examples in one batch of each of m models; Dirac records come after those of `signals`.

    Gradients that are not finite, or beyond the limits of `Records` (`LARGEST_NORM`), are replaced by 0.
    """

    signals: list[Array]  # for each layer (m, outputs, n)
    inputs: list[Array]  # for each layer (inputs, n) or (m, inputs, n)
    diracs: Integers  # (k,)
    sizes: Array  # (k,)
    largest: list[Array]  # for each layer, the largest absolute weight of each model, (m,)
    taken: Array  # (m, n + k): 1 if the example is in the batch of the model, otherwise 0
    spare: int  # number of spare weights

    def norms(self) -> Array:
        """Return the norm of each gradient over all weights, (m, n + k); inf if the gradient is replaced by 0."""
        low, high = 1e-140, 1e140  # squared norms whose products neither underflow nor overflow
        squares, precise = np.zeros(self.signals[0].shape[::2]), True
        small = np.ones(squares.shape, dtype=np.bool_)
        with np.errstate(over="ignore", invalid="ignore"):
            for depth, (signal, inputs) in enumerate(zip(self.signals, self.inputs, strict=True)):
                factors = np.einsum("mon,mon->mn", signal, signal), np.einsum("...in,...in->...n", inputs, inputs)
                precise = precise and all(bool(np.all((low < factor) & (factor < high))) for factor in factors)
                squares += factors[0] * factors[1]
                weight = self.largest[depth][:, None]
                small &= np.sqrt(factors[1]) * (weight if depth else np.maximum(weight, 1.0)) <= LARGEST_NORM
            if precise:
                norms = np.sqrt(squares)
            else:  # squares overflow or underflow
                factored = zip(self.signals, self.inputs, strict=True)
                norms = _norm(np.stack([_norm(signal) * _norm(inputs) for signal, inputs in factored], axis=-2))
            norms = np.where(small, norms, np.inf)
        sizes = np.broadcast_to(np.abs(self.sizes), (len(squares), len(self.sizes)))
        norms = np.concatenate([norms, sizes], axis=1)
        return np.where(norms <= _HUGE, norms, np.inf)

    def scales(self, clip: float) -> Array:
        """Return the factors that clip gradients to norm `clip`, 0 for examples outside of the batch, (m, n + k)."""
        return self.taken * np.minimum(1.0, clip / np.maximum(self.norms(), _TINY))

    def weighted_sum(self, scales: Array) -> Array:
        """Return the sum of gradients times `scales`, (m, P), for scales (m, n + k).  A gradient times 0 adds 0."""
        m, n = self.signals[0].shape[0], self.signals[0].shape[2]
        factors = scales[:, None, :n]
        parts = []
        for signal, inputs in zip(self.signals, self.inputs, strict=True):
            total = product(signal * factors, np.swapaxes(inputs, -1, -2))
            if not np.all(np.isfinite(total)):
                kept = [np.where(factors == 0, 0.0, values) for values in (signal * factors, inputs)]
                total = product(kept[0], np.swapaxes(kept[1], -1, -2))
            parts.append(total.reshape(m, -1))
        spare = np.zeros((m, self.spare))
        if len(self.diracs):
            np.add.at(spare.T, self.diracs, (scales[:, n:] * self.sizes).T)
        return np.concatenate([*parts, spare], axis=1)

    def explicit(self) -> Array:
        """Return explicit gradients, (m, n + k, P), 0 for examples outside of the batch.  The result may be large."""
        m, n = self.signals[0].shape[0], self.signals[0].shape[2]
        k = len(self.diracs)
        parts = []
        for signal, inputs in zip(self.signals, self.inputs, strict=True):
            outer = np.einsum("mon,in->mnoi" if inputs.ndim == 2 else "mon,min->mnoi", signal, inputs)
            size = outer.shape[2] * outer.shape[3]
            parts.append(np.concatenate([outer.reshape(m, n, size), np.zeros((m, k, size))], axis=1))
        spare = np.zeros((m, n + k, self.spare))
        spare[:, n + np.arange(k), self.diracs] = self.sizes
        return np.asarray(np.concatenate([*parts, spare], axis=2) * self.taken[:, :, None])


def _norm(vectors: Array) -> Array:
    """Return the norms of vectors along the last axis but one.  Scaling avoids overflow and underflow of squares."""
    largest = np.max(np.abs(vectors), axis=-2, initial=0.0, keepdims=True)
    scaled = vectors / np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    return np.asarray(np.sqrt(np.sum(scaled**2, axis=-2)) * largest[..., 0, :])


FAR = 1e6
"""Gradient norm of a Dirac record: far above any clipping norm, so that the clipped gradient has the clipping norm."""

_PARTS = ("features", "labels", "diracs", "sizes")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Records:
    """A dataset: labelled examples, followed by Dirac records.

    A Dirac record has the gradient `size` at one spare weight of the model and 0 elsewhere, whatever the weights are:
    the worst case in the analysis of DP-SGD.

    A record adds nothing to a batch if its gradient has a norm above 10^200, or if its features, or the inputs of a
    layer times the largest weight of this layer, have a norm above 10^8.

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
