"""Selection of the largest of many answers, and the sparse vector technique, which compares answers with a threshold.

Each of the answers x may change by 1.  Noisy maxima: Dwork & Roth 2014, section 3.3, numbered as in Ding, Wang, Wang,
Zhang & Kifer 2018, "Detecting violations of differential privacy", section 5.1; the wrong ones release the noisy
answer.

Sparse vector: Lyu, Su & Li 2017, "Understanding the sparse vector technique for differential privacy", Algorithms 1 to
6; two more from Bichsel, Steffen, Bogunovic & Vechev 2021, "DP-Sniper".  The threshold gets noise r, and the algorithm
stops after c (`most`) answers above it.  Outputs are 1 for above, 0 for below, and -1 after the stop.  Each witness
compares the answers (1, .., 1) with (2, .., 2, 0, .., 0), half of which are 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpaudit.catalogue.promises import Inputs, Pure, vector, with_laplace
from dpaudit.claims import PureDP, TradeoffFunction
from dpaudit.numerics import Array, Flags
from dpaudit.values import Dataset

_QUERIES: Inputs = {"relation": "all_values", "size": 5}
_THRESHOLDED: Inputs = {"relation": "all_values", "size": 10}


def _best(noisy: Array) -> Array:
    return np.asarray(np.argmax(noisy, axis=1), dtype=np.float64)


class Exponential(Pure, inputs=_QUERIES, private=True):
    """Index i with probability proportional to e^(epsilon x_i / 2): epsilon-DP.  McSherry & Talwar 2007, Thm 6."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = vector(dataset)
        weights = np.exp(self.epsilon * (x - x.max()) / 2)
        return rng.choice(len(x), n, p=weights / weights.sum()).astype(np.float64)


class NoisyMax1(Pure, inputs=_QUERIES, private=True):
    """Index of the largest x_i + Lap(2 / epsilon): epsilon-DP.

    For 5 queries and epsilon = .1, the best witness, (1, 1, .., 1) and (0, 2, .., 2) by {index 0}, has the loss .0946.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return _best(with_laplace(dataset, n, rng, 2 / self.epsilon))


class NoisyMax2(Pure, inputs=_QUERIES, private=True):
    """Index of the largest x_i + Exp(2 / epsilon): epsilon-DP; the best witness is that of `NoisyMax1`."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = vector(dataset)
        return _best(x + rng.exponential(2 / self.epsilon, (n, len(x))))


class NoisyMax3(Pure, inputs=_QUERIES, private=False):
    """Wrong: the value of max(x_i + Lap(2 / epsilon)), not its index; (d epsilon / 2)-DP for d queries.

    delta(.1) = 5.6e-3 for 5 queries and epsilon = .1.  The witness compares (1, .., 1) with (2, .., 2) by the event
    that the maximum is low.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return np.asarray(np.max(with_laplace(dataset, n, rng, 2 / self.epsilon), axis=1))


class NoisyMax4(Pure, inputs=_QUERIES, private=False):
    """Wrong: the value of max(x_i + Exp(2 / epsilon)), not its index; no finite epsilon.  Otherwise as `NoisyMax3`."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = vector(dataset)
        return np.asarray(np.max(x + rng.exponential(2 / self.epsilon, (n, len(x))), axis=1))


def _until(above: Flags, most: int) -> tuple[Flags, Flags]:
    """Return which queries are asked, and which of these are above; the algorithm stops after `most` queries above."""
    asked: Flags = np.less(np.cumsum(above, axis=1) - above, most)
    return asked, above & asked


def _labels(asked: Flags, above: Flags) -> Array:
    return np.where(asked, above.astype(np.float64), -1.0)


@dataclass(frozen=True)
class _Threshold(Pure, inputs=_THRESHOLDED):
    """A mechanism that compares answers with a threshold."""

    threshold: float = 1.0

    def _noisy(
        self, dataset: Dataset, n: int, rng: np.random.Generator, *, limit: float, answers: float
    ) -> tuple[Array, Array]:
        """Return answers, (n, queries), and thresholds, (n, 1), with Laplace noise of scales `answers` and `limit`."""
        x = vector(dataset)
        limits = self.threshold + rng.laplace(0.0, limit, (n, 1))
        return x + rng.laplace(0.0, answers, (n, len(x))), limits


@dataclass(frozen=True)
class _Stopping(_Threshold):
    """A mechanism that stops after `most` answers above the threshold."""

    most: int = 1  # c


@dataclass(frozen=True)
class Svt1(_Stopping, private=True):
    """Query i is above if x_i + Lap(4c / epsilon) >= threshold + r, where r ~ Lap(2 / epsilon): epsilon-DP.

    The largest privacy loss found is .0885 for epsilon = .1.
    """

    threshold: float = 0.5

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        answers, limit = self._noisy(dataset, n, rng, limit=2 / self.epsilon, answers=4 * self.most / self.epsilon)
        return _labels(*_until(answers >= limit, self.most))


class Svt2(_Stopping, private=True):
    """Like `Svt1`, but r ~ Lap(2c / epsilon) is redrawn after each answer above: epsilon-DP.

    Dwork & Roth 2014, Algorithm 2.  The largest privacy loss found is .0882 for epsilon = .1.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = vector(dataset)
        limits = self.threshold + rng.laplace(0.0, 2 * self.most / self.epsilon, (n, self.most))
        answers = x + rng.laplace(0.0, 4 * self.most / self.epsilon, (n, len(x)))
        labels = np.full((n, len(x)), -1.0)
        found = np.zeros(n, dtype=np.intp)
        for i, answer in enumerate(answers.T):
            asked = found < self.most
            above = answer >= limits[np.arange(n), np.minimum(found, self.most - 1)]
            labels[asked, i] = above[asked]
            found += asked & above
        return labels


class Svt3(_Stopping, private=False):
    """Wrong: for answers above, releases the compared number x_i + Lap(2c / epsilon); (d epsilon / 2)-DP for d queries.

    Roth 2011, lecture notes.  The noise of the threshold is r ~ Lap(2 / epsilon).  For 10 queries and epsilon = .1,
    delta(.1) is 2.0e-3.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        answers, limit = self._noisy(dataset, n, rng, limit=2 / self.epsilon, answers=2 * self.most / self.epsilon)
        _, above = _until(answers >= limit, self.most)
        return np.where(above, answers, np.nan)


class Svt4(_Stopping, private=False):
    """Wrong: r ~ Lap(4 / epsilon), queries have noise Lap(4 / (3 epsilon)) for every c; ((1 + 6c) epsilon / 4)-DP.

    Lee & Clifton 2014.  For c = 1 and epsilon = .1, the true epsilon is .175, and delta(.1) = 2.0e-3, by the event that
    the sixth answer is the first above the threshold.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        answers, limit = self._noisy(dataset, n, rng, limit=4 / self.epsilon, answers=4 / (3 * self.epsilon))
        return _labels(*_until(answers >= limit, self.most))


class Svt5(_Threshold, private=False):
    """Wrong: r ~ Lap(2 / epsilon), queries have no noise, and the algorithm never stops; no finite epsilon.

    Stoddard et al. 2014.  For 10 queries and epsilon = .1, delta(t) >= .0488 for all t, by the event that the first
    five answers are above and the others below.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        limit = self.threshold + rng.laplace(0.0, 2 / self.epsilon, (n, 1))
        return (vector(dataset) >= limit).astype(np.float64)


class Svt6(_Threshold, private=False):
    """Wrong: never stops, and r and the noise of queries have scale 2 / epsilon; (d epsilon / 2)-DP for d queries.

    Chen et al. 2015.  delta(.1) = 9e-3 for 10 queries and epsilon = .1.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        answers, limit = self._noisy(dataset, n, rng, limit=2 / self.epsilon, answers=2 / self.epsilon)
        return (answers >= limit).astype(np.float64)


class Svt34Parallel(Pure, inputs=_THRESHOLDED, private=False):
    """Wrong: `Svt3` and `Svt4` on the same answers, c = 2; claimed (2 epsilon)-DP.  DP-Sniper found .263 for .2."""

    @property
    def claim(self) -> TradeoffFunction:
        return PureDP(2 * self.epsilon)

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        parts = (Svt3(self.epsilon, most=2), Svt4(self.epsilon, most=2))
        return np.hstack([part.sample(dataset, n, rng) for part in parts])


@dataclass(frozen=True)
class NumericalSvt(_Stopping, private=True):
    """Like `Svt1`, but releases x_i + fresh Lap(3c / epsilon) for answers above, and 0 for others: epsilon-DP.

    The noise is r ~ Lap(3 / epsilon) on the threshold and Lap(6c / epsilon) on the compared answers.  Dwork & Roth
    2014, Algorithm 3.
    """

    most: int = 2  # c

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = vector(dataset)
        answers, limit = self._noisy(dataset, n, rng, limit=3 / self.epsilon, answers=6 * self.most / self.epsilon)
        _, above = _until(answers >= limit, self.most)
        return np.where(above, x + rng.laplace(0.0, 3 * self.most / self.epsilon, (n, len(x))), 0.0)
