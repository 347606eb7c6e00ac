"""Per-example gradients of many models in factored form, so that norms and sums need no gradient in full.

The gradient of an example by the weights of a layer is an outer product: signal times inputs.  Its squared norm is the
product of theirs (Goodfellow 2015, arXiv:1510.01799), and a weighted sum over examples is a matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpaudit.numerics.arrays import Array, Integers
from dpaudit.training.reference.model import product

_TINY = 1e-300  # least norm, so that a gradient of zero is not divided by zero


@dataclass(frozen=True, slots=True, eq=False)
class PerExample:
    """The gradients of the examples in one batch of each of m models.

    Examples are those of `signals`, followed by Dirac records.
    """

    signals: list[Array]  # for each layer (m, outputs, n)
    inputs: list[Array]  # for each layer (inputs, n) or (m, inputs, n)
    diracs: Integers  # (k,)
    sizes: Array  # (k,)
    taken: Array  # (m, n + k): 1 if the example is in the batch of the model, otherwise 0
    spare: int  # number of spare weights

    def norms(self) -> Array:
        """Return the norm of each gradient over all weights, (m, n + k)."""
        squares = np.zeros(self.signals[0].shape[::2])
        for signal, inputs in zip(self.signals, self.inputs, strict=True):
            squares += np.einsum("mon,mon->mn", signal, signal) * np.einsum("...in,...in->...n", inputs, inputs)
        sizes = np.broadcast_to(np.abs(self.sizes), (len(squares), len(self.sizes)))
        return np.concatenate([np.sqrt(squares), sizes], axis=1)

    def scales(self, clip: float) -> Array:
        """Return the factors that clip gradients to norm `clip`, 0 for examples outside of the batch, (m, n + k)."""
        return self.taken * np.minimum(1.0, clip / np.maximum(self.norms(), _TINY))

    def weighted_sum(self, scales: Array) -> Array:
        """Return the sum of gradients times `scales`, (m, P), for scales (m, n + k)."""
        m, n = self.signals[0].shape[0], self.signals[0].shape[2]
        parts = []
        for signal, inputs in zip(self.signals, self.inputs, strict=True):
            total = product(signal * scales[:, None, :n], np.swapaxes(inputs, -1, -2))
            parts.append(total.reshape(m, -1))
        spare = np.zeros((m, self.spare))
        if len(self.diracs):
            np.add.at(spare.T, self.diracs, (scales[:, n:] * self.sizes).T)
        return np.concatenate([*parts, spare], axis=1)

    def explicit(self) -> Array:
        """Return every gradient in full, (m, n + k, P), zero for examples outside of the batch.  For few examples."""
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
