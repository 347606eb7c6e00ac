"""Private training with one mistake in each mechanism.  The correct controls are `DpGd` and `DpSgd`.

Each class overrides the one part of the reference trainer that is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.catalogue.promises import Inputs
from dpaudit.catalogue.training import DpGd, DpSgd, diracs
from dpaudit.claims import TradeoffFunction
from dpaudit.numerics.arrays import Array, Flags
from dpaudit.pairs.pair import Pair
from dpaudit.training.claims import claim
from dpaudit.training.reference.gradients import PerExample
from dpaudit.training.reference.model import Model
from dpaudit.training.reference.records import Records
from dpaudit.training.reference.sampling import Sampling, Shuffled
from dpaudit.training.reference.state import State, streams
from dpaudit.training.views import View, weights

_WIDE = Model((8, 2), spare=2)
_NARROW = Model((1, 2), bias=False, spare=1)
_TWO_PARTS = Shuffled(2)
_TINY = 1e-300  # least norm or deviation that is divided by


def _of(generator: object) -> Inputs:
    return {"relation": "add_remove", "generator": generator, "most": 1}


def _clipped(gradients: Array, clip: float) -> Array:
    """Clip vectors along the last axis."""
    norms = np.linalg.norm(gradients, axis=-1, keepdims=True)
    return np.asarray(gradients * np.minimum(1.0, clip / np.maximum(norms, _TINY)))


@dataclass(frozen=True, kw_only=True, eq=False)
class UnscaledNoise(DpGd):
    """Wrong if clip > 1: DP-GD whose noise is not multiplied by the clipping norm; mu is clip / noise_multiplier.

    Gradients are clipped to norm `clip`, and the noise has standard deviation `noise_multiplier`.  Tramèr et al. 2022
    (arXiv:2202.12219) audited an implementation with miscalibrated noise.  Control: `DpGd`.
    """

    clip: float = 2.0

    private: ClassVar[bool] = False

    def noise(self, state: State) -> Array:
        return np.asarray(super().noise(state) / self.clip)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClippedMean(DpGd):
    """Wrong: DP-GD that clips the mean of all gradients instead of each gradient; at best
    (2 n / noise_multiplier)-GDP.

    One large gradient turns the clipped mean of n records to any direction, by up to 2 `clip`.  The noise is that of
    a mean of clipped gradients, n times smaller.  Control: `DpGd`.
    """

    private: ClassVar[bool] = False

    def summed(self, gradients: PerExample) -> Array:
        n = np.maximum(gradients.taken.sum(axis=1, keepdims=True), 1.0)
        return np.asarray(n * _clipped(gradients.weighted_sum(gradients.taken) / n, self.clip))


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueBatchSize(DpGd):
    """Wrong: DP-GD that divides the noisy sum by the true number of records, which the scale of the noise reveals.

    Division by the expected batch size is post-processing; division by the true one is not.  The effect is largest for
    small batches and many weights.  Cebere, https://github.com/meta-pytorch/opacus/issues/571.  Control: `DpGd`.
    """

    model: Model = _WIDE

    inputs: ClassVar[Inputs] = _of(lambda rng: diracs([1.0], -1.0, "one record, and two"))
    private: ClassVar[bool] = False

    def release(self, gradients: PerExample, state: State) -> Array:
        counts = np.maximum(gradients.taken.sum(axis=1, keepdims=True), 1.0)
        return np.asarray(super().release(gradients, state) / counts)


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentumBeforeNoise(DpGd):
    """Wrong: DP-GD that adds its noise to the momentum, whose sensitivity is up to clip / (1 - momentum).

    Momentum of noisy sums is post-processing; here a record is part of every later release at full size, with fresh
    noise of the standard deviation of one sum.  An output is the sum of all releases.  Control: `DpGd`.
    """

    noise_multiplier: float = 10.0
    steps: int = 10
    momentum: float = 0.9

    private: ClassVar[bool] = False

    @property
    def view(self) -> View:
        return weights()

    def release(self, gradients: PerExample, state: State) -> Array:
        before = 0.0 if state.carried is None else self.momentum * state.carried
        state.carried = before + self.summed(gradients)
        return state.carried + self.noise(state)


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedNoise(DpGd):
    """Wrong: DP-GD that gives every layer the same noise, so that differences of weights have none; no finite mu.

    A generator that is created anew for each layer, with one seed, does this.  Control: `DpGd`.
    """

    private: ClassVar[bool] = False

    def noise(self, state: State) -> Array:
        noise, spare = super().noise(state), self.model.spare
        noise[:, noise.shape[1] - spare :] = noise[:, :spare]
        return noise


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchNorm(DpGd):
    """Wrong: DP-GD of a model that normalises features by the batch, so that a record changes all gradients.

    Each gradient is clipped, but a record with large features moves the mean and the deviation of the batch.  Then all
    n gradients change, by up to 2 clip each.  Opacus refuses models with batch norm.  Control: `DpGd`.
    """

    inputs: ClassVar[Inputs] = _of(lambda rng: _outlier())
    private: ClassVar[bool] = False

    def gradients(self, weights: Array, records: Records, taken: Flags) -> PerExample:
        x = records.features
        normal = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-3)
        normalised = Records(normal, records.labels, records.diracs, records.sizes)
        return super().gradients(weights, normalised, taken)


@dataclass(frozen=True, kw_only=True, eq=False)
class AccumulatedBeforeClipping(DpGd):
    """Wrong: DP-GD with two micro-batches that clips once, after gradients were added up; mu is 2 / noise_multiplier.

    Buffers of per-example gradients are accumulated over micro-batches, place by place, and clipped at the end.  A
    record can turn the clipped gradient of its place, a change of 2 clip.  Control: `DpGd`.
    """

    inputs: ClassVar[Inputs] = _of(lambda rng: diracs([1.0, -1.0, 1.0], 2.0, "one place turned"))
    private: ClassVar[bool] = False

    def summed(self, gradients: PerExample) -> Array:
        each = gradients.explicit()
        half = (each.shape[1] + 1) // 2
        places = each[:, :half].copy()
        places[:, : each.shape[1] - half] += each[:, half:]
        return np.asarray(_clipped(places, self.clip).sum(axis=1))


@dataclass(frozen=True, kw_only=True, eq=False)
class ReusedSeed(DpSgd):
    """Wrong: DP-SGD that seeds its noise anew for each step, so that all steps have the same noise; no finite mu.

    The difference of two releases has no noise.  It shows whether a record was in one batch and not in the other.
    Control: `DpSgd`.
    """

    inputs: ClassVar[Inputs] = _of(lambda rng: diracs([], 1.0, "empty, and one Dirac record"))
    private: ClassVar[bool] = False

    def noise(self, state: State) -> Array:
        again = State(state.keys, streams(state.keys + np.uint64(1)))
        return super().noise(again)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShuffledAsPoisson(DpSgd):
    """Wrong: DP-SGD with shuffled batches that claims the amplification of Poisson batches.

    Each record is in exactly one batch of an epoch, so that the batches without the target tell where it is.  The
    target's gradient is +clip and all others are -clip.  Chua et al. 2024 (arXiv:2403.17673); Annamalai et al. 2026
    (arXiv:2411.10614).  Control: `DpSgd`.
    """

    model: Model = _NARROW
    noise_multiplier: float = 0.5
    sampling: Sampling = _TWO_PARTS

    inputs: ClassVar[Inputs] = _of(lambda rng: diracs([-1.0] * 3, 1.0, "target"))
    private: ClassVar[bool] = False

    @property
    def claim(self) -> TradeoffFunction:
        return claim(
            noise_multiplier=self.noise_multiplier,
            steps=self.steps,
            sampling_rate=self.sampling.rate,
            sampling="shuffled",
            claimed_as="poisson",
        )


def _outlier() -> Pair:
    """Return examples on both sides of 0, without and with one whose first feature is large."""
    features = [[1.0, 0.0], [-1.0, 0.0]] * 4
    shared = {"features": features, "labels": [0, 1] * 4}
    return Pair(
        shared, {"features": [*features, [1000.0, 0.0]], "labels": [*[0, 1] * 4, 0]}, "add_remove", "one large feature"
    )
