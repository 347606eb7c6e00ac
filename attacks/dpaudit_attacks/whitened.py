"""A likelihood ratio of correlated Gaussian noise, for long vectors and streams, that is precise after few outputs.

**Whitening.**  A matrix W makes the noise of an output x uncorrelated, with variances s^2, so the log-likelihood ratio
is linear: (W delta / s^2)' W x, where delta is the shift between the datasets (Fisher 1936, Annals of Eugenics 7,
179-188).  Several guesses of W are fitted to half of the latest outputs, and the one under which the other half is most
likely is used:

- independent numbers: W = 1;
- prefix sums by a binary tree (Dwork, Naor, Pitassi & Rothblum 2010; Chan, Shi & Song 2011): number t minus the number
  at which its last node begins;
- a causal time-invariant filter of white noise: an autoregression from a zero start, whose coefficients are pooled over
  all times and outputs, so that ten outputs of 1,000 numbers determine hundreds of them;
- noise of which each number depends on the p numbers before: a banded Cholesky factor (Bickel & Levina 2008, Annals of
  Statistics 36, 199-227);
- a sample covariance that is shrunken towards a multiple of the identity (Ledoit & Wolf 2004, Journal of Multivariate
  Analysis 88, 365-411), in the space of the outputs;
- a given factor.

**Shift.**  One record often changes one step of a stream, so W delta is the posterior mean under an average of these
models, weighted by their evidence: one number differs; all numbers from some place on differ by the same amount; one of
the given shifts; few, or few wavelet coefficients, or all numbers of the whitened outputs differ.  Both datasets have
the same noise, so its variance along delta is estimated again, and scales the ratio.

Guesses and given hints affect the number of runs only: a score is a linear function of one output, with coefficients
that past outputs determine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.special import logsumexp

from dpaudit.numerics import Array, linear
from dpaudit_attacks.noise_laws import shrunken
from dpaudit_attacks.whiteners import TINY, Sparse, Whitener, autoregression, banded, covariance, given, tails, tree

_LARGEST = 2**25  # numbers of each dataset in a fit; more numbers than this would take more than 1 GB of memory
_NOISE = 2**20, 2_000  # numbers, and outputs, from which the noise is learned
_COMPARED = 2**18, 256  # numbers, and outputs, by which the whiteners are compared
_AMPLITUDES = np.array([0.03, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0])  # standard deviations of the shift, for variance 1
_VARIANCES = np.geomspace(0.003, 30, 24)  # of the shifts of all numbers, in squared standard errors


Fit = Callable[[Array], Whitener]


def _guesses(d: int) -> Iterator[Fit]:
    yield lambda noise: Sparse(csr_array(eye_array(d)))
    yield lambda noise: tree(d)
    for order in sorted({min(8, d - 1), min(512, d - 1)}):
        yield partial(autoregression, order=order)
    for order in (1, 4, 16):
        if order < d and d * order**2 <= 2 * _NOISE[0]:
            yield partial(banded, order=order)
    for share in (0.5, 0.2, 0.05):
        yield partial(covariance, share=share)


def _best(guesses: list[Fit], noise: Array) -> Whitener:
    """Fit the whitener that makes one half of the latest outputs most likely after a fit to the other half."""
    latest = noise[-max(8, min(_COMPARED[1], _COMPARED[0] // noise.shape[1])) :]
    known, unseen = latest[::2], latest[1::2]

    def likelihood(guess: Fit) -> float:
        whitener = guess(known)
        squares = whitener.forward(unseen) ** 2
        own = np.mean((squares if whitener.scaled else whitener.forward(known) ** 2), axis=0) + TINY
        common = np.full(len(own), own.mean())
        each = common if whitener.scaled else (8 * common + len(known) * own) / (8 + len(known))
        found = [-0.5 * float(np.sum(squares / s + np.log(s))) for s in (common, each)]
        return max(found) + len(unseen) * whitener.log_determinant()

    return max(guesses, key=likelihood)(noise)


@dataclass(frozen=True, slots=True)
class Whitened:
    """The likelihood ratio of Gaussian noise whose covariance is guessed, with a shift that is guessed.

    Args:
        factor: A hint.  The noise of an output of d numbers is this matrix (d, k) times independent noise.  If the
            matrix is lower triangular and Toeplitz, its first column (d,) suffices.
        shift: A hint: the difference (d,) between the outputs of the two datasets, or several possible ones (m, d), up
            to multiples.

    Wrong hints cost runs, and nothing else.

    Raises:
        ValueError: If a hint is not an array of finite numbers of this form.
    """

    factor: Any = None
    shift: Any = None
    _given: Whitener | None = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "whitened"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    head_start: ClassVar[float] = 4.0
    hints: ClassVar[tuple[str, ...]] = ("factor", "shift")

    def __post_init__(self) -> None:
        shift = np.zeros(1) if self.shift is None else np.asarray(self.shift, dtype=np.float64)
        if shift.ndim not in (1, 2) or not np.isfinite(shift).all():
            raise ValueError(f"shift must be an array (d,) or (m, d) of finite numbers, got the shape {shift.shape}")
        object.__setattr__(self, "_given", None if self.factor is None else given(self.factor))

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return bool(outputs0.shape[1] >= 2)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        d = outputs0.shape[1]
        for name, sizes in (("factor", np.shape(self.factor)[:1]), ("shift", np.shape(self.shift)[-1:])):
            if sizes not in ((), (d,)):
                raise ValueError(f"{name} is a hint for outputs of {sizes[0]} numbers, and these have {d}")
        outputs0, outputs1 = (side[-max(2, _LARGEST // max(1, d)) :] for side in (outputs0, outputs1))
        m0, m1 = _means(outputs0), _means(outputs1)
        middle, rows = m0 / 2 + m1 / 2, max(8, min(_NOISE[1], _NOISE[0] // max(1, d))) // 2
        rest0, rest1 = _known(outputs0[-rows:] - m0), _known(outputs1[-rows:] - m1)
        age = np.concatenate([np.arange(len(rest))[::-1] for rest in (rest0, rest1)])
        noise = np.concatenate([rest0, rest1])[np.argsort(-age, kind="stable")]  # both datasets in turn, oldest first
        unit = float(np.abs(noise).mean()) if noise.size else 0.0
        if d < 2 or not 0 < unit < math.inf:
            return lambda outputs: np.zeros(len(outputs))
        noise, free, known = noise / unit, max(1, len(noise) - 2), self._given
        whitener = _best([*_guesses(d), *([] if known is None else [lambda noise: known])], noise)
        white = whitener.forward(noise)
        s = np.ones(d) if whitener.scaled else _scales((white**2).sum(axis=0) / free, free)
        difference = whitener.forward(((m1 - m0) / unit)[None])[0] / s
        hint = None if self.shift is None else np.asarray(self.shift, dtype=np.float64).reshape(-1, d)
        shift = posterior(difference, 1 / len(outputs0) + 1 / len(outputs1), whitener, s, hint)
        # the ratio of a correct model has this variance; the noise and the difference are independent
        expected, variance = float(shift @ shift), float(np.sum((white @ (shift / s)) ** 2)) / free
        slopes = whitener.backward(shift / s) * min(5.0, max(0.2, expected / (variance + TINY)))
        return lambda outputs: linear(_known((outputs - middle) / unit), slopes)


def _means(outputs: Array) -> Array:
    """Return the means (d,) of the finite numbers of each column, 0 where there are none."""
    known = np.isfinite(outputs)
    return np.asarray(np.where(known, outputs, 0.0).sum(axis=0) / np.maximum(1, known.sum(axis=0)))


def _known(rest: Array) -> Array:
    return np.where(np.isfinite(rest), rest, 0.0)


def _scales(variances: Array, free: int) -> Array:
    """Shrink variances (d,), each with `free` degrees of freedom, towards their mean by as much as they agree."""
    mean = float(variances.mean()) + TINY
    spread = float(np.var(variances / mean)) - 2 / free
    weight = 2 / spread if spread > 1e-9 else 1e9
    return np.asarray(np.sqrt((weight * mean + free * variances) / (weight + free)))


def posterior(difference: Array, variance: float, whitener: Whitener, s: Array, shifts: Array | None) -> Array:
    """Return the posterior mean of the shift of whitened outputs, whose noise has variance 1.

    Args:
        difference: The difference (d,) of the means of the whitened outputs.
        variance: Its variance, in each number.
        whitener: How the outputs were whitened, before they were divided by `s`.
        s: The standard deviations (d,) of the whitened outputs.
        shifts: Possible shifts (m, d) of the outputs, before they were whitened.
    """
    d = len(difference)
    back, places = whitener.backward(difference / s), np.arange(1.0, d + 1)
    # the record that changes most is often the first, and otherwise may be any
    prior = np.log(0.5 / d + 0.5 / (places * np.sum(1 / places)))
    spikes, steps = whitener.norms(1 / s**2)
    one = _one_of(back, spikes, prior, variance)
    step = _one_of(tails(back), steps, prior, variance)
    parts = [(one[0], one[1]), (step[0], np.cumsum(step[1]))]
    if shifts is not None:
        white = whitener.forward(shifts) / s
        evidence, sizes = _one_of(
            white @ difference, (white**2).sum(axis=1), np.full(len(white), -math.log(len(white))), variance
        )
        parts.append((evidence, sizes @ shifts))
    parts = [(evidence, whitener.forward(shift[None])[0] / s) for evidence, shift in parts]
    z = difference / math.sqrt(variance)
    factors, evidence = shrunken(z)
    parts.append((evidence, factors * difference))
    waves = haar(z)
    factors, evidence = shrunken(waves)
    parts.append((evidence, math.sqrt(variance) * haar_inverse(factors * waves)[:d]))
    each = -0.5 * d * np.log1p(_VARIANCES) + 0.5 * float(z @ z) * _VARIANCES / (1 + _VARIANCES)
    all_differ = np.exp(each - logsumexp(each)) @ (_VARIANCES / (1 + _VARIANCES))
    parts.append((float(logsumexp(each)) - math.log(len(each)), all_differ * difference))
    weights = np.exp([evidence for evidence, _ in parts] - logsumexp([evidence for evidence, _ in parts]))
    return np.asarray(sum(weight * shift for weight, (_, shift) in zip(weights, parts, strict=True)))


def _one_of(products: Array, norms: Array, prior: Array, variance: float) -> tuple[float, Array]:
    """Return the log evidence of a shift in one of m directions, and the posterior means (m,) of its components.

    Args:
        products: The products (m,) of the directions with a vector whose noise has this variance in each number.
        norms: The squared lengths (m,) of the directions.
        prior: The log probabilities (m,) of the directions.
        variance: The variance of the noise.
    """
    norms = np.maximum(norms, TINY)
    z = products / np.sqrt(norms * variance)
    ratios = (_AMPLITUDES**2 / variance)[:, None]
    each = prior - 0.5 * np.log1p(ratios) + 0.5 * z**2 * ratios / (1 + ratios) - math.log(len(ratios))
    evidence = float(logsumexp(each))
    sizes = (np.exp(each - evidence) * ratios / (1 + ratios)).sum(axis=0) * z * np.sqrt(variance / norms)
    return evidence, sizes


def haar(vector: Array) -> Array:
    """Return the Haar wavelet coefficients of a vector that is filled up with zeros to a power of two."""
    vector, found = np.append(vector, np.zeros((1 << (len(vector) - 1).bit_length()) - len(vector))), []
    while len(vector) > 1:
        found.append((vector[::2] - vector[1::2]) / math.sqrt(2))
        vector = (vector[::2] + vector[1::2]) / math.sqrt(2)
    return np.concatenate([vector, *found[::-1]])


def haar_inverse(waves: Array) -> Array:
    """Return the vector with these Haar wavelet coefficients."""
    vector = waves[:1]
    while len(vector) < len(waves):
        rest = waves[len(vector) : 2 * len(vector)]
        vector = np.column_stack([vector + rest, vector - rest]).ravel() / math.sqrt(2)
    return np.asarray(vector)
