"""Per-example gradients of many models in factored form, so that norms and sums need no explicit gradients.

The gradient of an example with respect to the weights of a layer is the outer product of a signal and the inputs.  Its
squared norm is the product of the squared norms of both factors (Goodfellow 2015, arXiv:1510.01799).  A weighted sum of
gradients over examples is a matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpaudit.numerics.arrays import Array, Integers
from dpaudit.training.reference.model import product

_TINY = 1e-300  # minimum of a norm as a divisor, so that the gradient 0 is not divided by 0
_HUGE = 1e200  # maximum norm of a gradient; the clipping of a larger gradient would lose precision or overflow
MOST = 1e8
"""Maximum of two norms: that of an example's features, and that of a layer's inputs times the layer's largest weight.

Above this norm, rounding errors of the products with weights would affect a clipped gradient.  These errors may depend
on the other examples.
"""

_PRECISE = (1e-140, 1e140)  # squared norms whose products neither underflow nor overflow


@dataclass(frozen=True, slots=True, eq=False)
class PerExample:
    """The gradients of the examples in one batch of each of m models.

    In arrays over all examples, the examples of `signals` come before the Dirac records.  A gradient that is not
    finite, or that has a norm above 10^200, is replaced by 0 before clipping, so that the norm of a clipped gradient is
    at most `clip`.  The same holds for an example with large features (`MOST`), because its rounding errors would
    depend on other examples.
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
        low, high = _PRECISE
        squares, precise = np.zeros(self.signals[0].shape[::2]), True
        small = np.ones(squares.shape, dtype=np.bool_)
        with np.errstate(over="ignore", invalid="ignore"):
            for depth, (signal, inputs) in enumerate(zip(self.signals, self.inputs, strict=True)):
                factors = np.einsum("mon,mon->mn", signal, signal), np.einsum("...in,...in->...n", inputs, inputs)
                precise = precise and all(bool(np.all((low < factor) & (factor < high))) for factor in factors)
                squares += factors[0] * factors[1]
                weight = self.largest[depth][:, None]
                small &= np.sqrt(factors[1]) * (weight if depth else np.maximum(weight, 1.0)) <= MOST
            norms = np.where(small, np.sqrt(squares) if precise else self._scaled_norms(), np.inf)
        sizes = np.broadcast_to(np.abs(self.sizes), (len(squares), len(self.sizes)))
        norms = np.concatenate([norms, sizes], axis=1)
        return np.where(norms <= _HUGE, norms, np.inf)

    def _scaled_norms(self) -> Array:
        """Return the norm of each example's gradient without squares that overflow or underflow, (m, n)."""
        layers = []
        for signal, inputs in zip(self.signals, self.inputs, strict=True):
            layers.append(_norm(signal) * _norm(inputs))
        return _norm(np.stack(layers, axis=-2))

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
