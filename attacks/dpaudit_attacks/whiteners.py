"""Matrices that make correlated noise independent, for use by `whitened`.  This file contains no attack."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.sparse import csr_array, diags_array

from dpaudit.numerics import Array

TINY = 1e-280  # in place of a variance of 0


class Whitener(ABC):
    """A matrix W (d, d), up to the scales of its rows."""

    scaled: ClassVar[bool] = False  # whether the whitened noise has variance 1, so that no scale is estimated

    @abstractmethod
    def forward(self, rows: Array) -> Array:
        """Return W x for each row x of (n, d)."""

    @abstractmethod
    def backward(self, vector: Array) -> Array:
        """Return the transpose of W times a vector (d,)."""

    @abstractmethod
    def norms(self, precisions: Array) -> tuple[Array, Array]:
        """Return the squared norms (d,) of W a, with weights, for a shift a of one number, and from one number on."""

    def log_determinant(self) -> float:
        return 0.0


@dataclass(frozen=True, slots=True)
class Sparse(Whitener):
    """A lower triangular matrix with few entries and ones on its diagonal."""

    matrix: Any  # csr_array

    def forward(self, rows: Array) -> Array:
        return np.asarray((self.matrix @ rows.T).T)

    def backward(self, vector: Array) -> Array:
        return np.asarray(self.matrix.T @ vector)

    def norms(self, precisions: Array) -> tuple[Array, Array]:
        """As in `Whitener`; row t times a shift from k on is the sum of its entries from k on, a step function of k."""
        entries, starts, places = self.matrix.data, self.matrix.indptr, self.matrix.indices
        rows = np.repeat(np.arange(len(precisions)), np.diff(starts))
        sums = np.cumsum(entries)
        tails = sums[starts[rows + 1] - 1] - sums + entries
        before = np.where(np.arange(len(places)) == starts[rows], 0, np.roll(places, 1) + 1)
        changes = np.zeros(len(precisions) + 1)
        np.add.at(changes, before, weighted := tails**2 * precisions[rows])
        np.subtract.at(changes, places + 1, weighted)
        squares: Array = self.matrix.power(2).T @ precisions
        return np.maximum(squares, precisions), np.maximum(np.cumsum(changes[:-1]), precisions)


@dataclass(frozen=True, slots=True)
class Filter(Whitener):
    """Convolution with coefficients (k,), of which the first is 1."""

    coefficients: Array

    def forward(self, rows: Array) -> Array:
        size = next_fast_len(rows.shape[1] + len(self.coefficients), real=True)
        spectrum = rfft(self.coefficients, size)
        return np.asarray(irfft(rfft(rows, size, axis=1) * spectrum, size, axis=1)[:, : rows.shape[1]])

    def backward(self, vector: Array) -> Array:
        return self.forward(vector[None, ::-1])[0, ::-1]

    def norms(self, precisions: Array) -> tuple[Array, Array]:
        response = np.zeros(len(precisions))
        response[: len(self.coefficients)] = self.coefficients[: len(response)]
        spikes, steps = (Filter(answer**2).backward(precisions) for answer in (response, np.cumsum(response)))
        return np.maximum(spikes, precisions), np.maximum(steps, precisions)


@dataclass(frozen=True, slots=True)
class LowRank(Whitener):
    """A multiple of the identity plus a matrix of low rank, which is scaled already."""

    directions: Array  # (d, r), orthonormal
    root: float  # the multiple
    excess: Array  # (r,), eigenvalues in the space of the directions, minus `root`
    scaled: ClassVar[bool] = True

    def forward(self, rows: Array) -> Array:
        return np.asarray(self.root * rows + ((rows @ self.directions) * self.excess) @ self.directions.T)

    def backward(self, vector: Array) -> Array:
        return np.asarray(self.forward(vector[None])[0])

    def norms(self, precisions: Array) -> tuple[Array, Array]:
        """As in `Whitener`; all precisions are 1."""
        squares = self.excess**2 + 2 * self.root * self.excess  # of W, minus root^2
        spikes = self.root**2 + self.directions**2 @ squares
        steps = self.root**2 * np.arange(len(spikes), 0, -1) + tails(self.directions) ** 2 @ squares
        return np.asarray(spikes), np.asarray(steps)

    def log_determinant(self) -> float:
        return len(self.directions) * math.log(self.root) + float(np.log1p(self.excess / self.root).sum())


@dataclass(frozen=True, slots=True)
class Dense(Whitener):
    """A matrix of any form."""

    matrix: Array

    def forward(self, rows: Array) -> Array:
        return np.asarray(rows @ self.matrix.T)

    def backward(self, vector: Array) -> Array:
        return np.asarray(vector @ self.matrix)

    def norms(self, precisions: Array) -> tuple[Array, Array]:
        return precisions @ self.matrix**2, precisions @ tails(self.matrix.T).T ** 2

    def log_determinant(self) -> float:
        return float(np.linalg.slogdet(self.matrix)[1])


def tails(columns: Array) -> Array:
    """Return the sums of (d, ...) from each place on."""
    return np.asarray(np.cumsum(columns[::-1], axis=0)[::-1])


def tree(d: int) -> Sparse:
    """Return the whitener of d prefix sums by a binary tree; the last node of sum t begins at t minus its last bit."""
    ends = np.arange(1, d + 1)
    starts = ends - (ends & -ends)
    some = starts > 0
    entries = np.append(np.ones(d), -np.ones(some.sum()))
    rows, columns = np.append(ends, ends[some]) - 1, np.append(ends, starts[some]) - 1
    return Sparse(csr_array((entries, (rows, columns)), shape=(d, d)))


def autoregression(noise: Array, order: int) -> Filter:
    """Fit noise (n, d) of which each number is the same linear function of up to `order` numbers before it, plus noise.

    Coefficient k has the prior N(0, 1 / 4 k^2).  The normal equations are the autocorrelations minus their last terms.
    """
    n, d = noise.shape
    size = next_fast_len(2 * d, real=True)
    products = irfft((np.abs(rfft(noise, size, axis=1)) ** 2).sum(axis=0), size)[: order + 1]
    ends = noise[:, ::-1][:, :order]
    lost, normal = ends.T @ ends, np.empty((order + 1, order + 1))
    normal[0] = normal[:, 0] = products
    for j in range(order):
        normal[j + 1, 1:] = normal[j, :-1] - lost[j]
    known, wanted, few = normal[1:, 1:], normal[1:, 0], min(8, order)
    jitter = 1e-9 * float(products[0]) + TINY
    first = np.linalg.solve(known[:few, :few] + jitter * np.eye(few), wanted[:few])
    innovation = max(float(products[0] - first @ wanted[:few]), jitter) / (n * d)
    prior = jitter + 4 * innovation * np.arange(1.0, order + 1) ** 2
    return Filter(np.append(1.0, -np.linalg.solve(known + np.diag(prior), wanted)))


def banded(noise: Array, order: int) -> Sparse:
    """Fit noise (n, d) of which each number is a linear function, its own one, of the `order` numbers before it."""
    n, d = noise.shape
    products = [np.append(np.zeros(k), (noise[:, k:] * noise[:, : d - k]).sum(axis=0)) for k in range(order + 1)]
    lagged, lags = np.array(products), np.arange(order)
    apart = np.abs(lags[:, None] - lags)
    later = np.arange(d)[:, None, None] - 1 - np.minimum(lags[:, None], lags)  # of two numbers before number t
    known = np.where(later >= apart, lagged[apart, np.maximum(later, 0)], 0.0)
    known[:, lags, lags] = known[:, lags, lags] * (1 + 2 / n) + 1e-12 * float(lagged[0].mean()) + TINY
    found = np.linalg.solve(known, lagged[1:].T[:, :, None])[:, :, 0]
    below = [-found[k:, k - 1] for k in range(1, order + 1)]
    return Sparse(csr_array(diags_array([np.ones(d), *below], offsets=range(0, -order - 1, -1))))


def covariance(noise: Array, share: float) -> LowRank:
    """Shrink the covariance of noise (n, d) towards the identity by a share; only n by n products are decomposed."""
    noise = noise[-600:]
    values, vectors = np.linalg.eigh(noise @ noise.T / len(noise))
    kept = values > 1e-9 * values[-1] + TINY
    values, directions = values[kept], noise.T @ vectors[:, kept] / np.sqrt(len(noise) * values[kept])
    least = share * float(np.mean(noise**2)) + TINY
    return LowRank(directions, least**-0.5, ((1 - share) * values + least) ** -0.5 - least**-0.5)


def given(factor: Any) -> Whitener:
    """Return the whitener of noise that is a matrix, or a filter with (d,) coefficients, times independent noise."""
    from scipy.linalg import cholesky, solve_triangular
    from scipy.signal import lfilter

    factor = np.asarray(factor, dtype=np.float64)
    if not (factor.ndim in (1, 2) and np.isfinite(factor).all() and factor.size and factor[(0,) * factor.ndim]):
        raise ValueError(
            "factor must be a matrix of finite numbers, or the first column of a lower triangular Toeplitz matrix, "
            f"with a first entry that is not 0; got an array of shape {factor.shape}"
        )
    if factor.ndim == 1:
        return Filter(np.asarray(lfilter([1.0], factor / factor[0], np.append(1.0, np.zeros(len(factor) - 1)))))
    if factor.shape[0] != factor.shape[1] or np.triu(factor, 1).any():
        products = factor @ factor.T
        factor = cholesky(products + 1e-12 * products.trace() / len(products) * np.eye(len(products)), lower=True)
    return Dense(solve_triangular(factor, np.eye(len(factor)), lower=True))
