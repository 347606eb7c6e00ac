"""DP-GD and DP-SGD: clip each gradient, sum the clipped gradients, add noise, and take a step.

Abadi et al. 2016, "Deep learning with differential privacy", Algorithm 1.  Each method is a part of the algorithm that
an implementation may get wrong.  The mistakes in `dpaudit.catalogue` override one method at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics import AnyArray, Array, Flags, Integers
from dpaudit.training.claims import claim, is_positive, is_whole
from dpaudit.training.reference.model import Model, PerExample, Records


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


@dataclass(slots=True, eq=False)
class State:
    """The state that an algorithm may read and keep between steps, apart from the weights."""

    keys: AnyArray  # 128-bit key of each model's stream, (m, 2)
    rngs: list[np.random.Generator]  # one for each model
    carried: Array | None = None  # values that an algorithm keeps from step to step, such as momentum


def keys_of(rng: np.random.Generator, models: int) -> AnyArray:
    return rng.integers(0, 2**64, size=(models, 2), dtype=np.uint64)


def streams(keys: AnyArray) -> list[np.random.Generator]:
    """Return a Philox generator for each model, each with its own key."""
    return [np.random.Generator(np.random.Philox(key=key)) for key in keys]


@dataclass(frozen=True, kw_only=True, eq=False)
class Trainer:
    """A private training algorithm.

    A step releases the sum of clipped gradients plus noise, and moves the weights by `-learning_rate` times the
    release.  Divide the learning rate by the expected batch size to get the usual mean of gradients.

    Args:
        model: The model.
        noise_multiplier: Standard deviation of the noise in units of `clip`, > 0.
        steps: Number of steps, >= 1.
        clip: Norm to which each gradient is clipped, > 0.
        learning_rate: Size of a step, > 0.
        sampling: How batches are sampled.
        start: Initial weights, (P,); the model's public initial weights if None.

    Raises:
        ValueError: If a parameter is out of range.
    """

    model: Model
    noise_multiplier: float
    steps: int
    clip: float = 1.0
    learning_rate: float = 1e-3
    sampling: Sampling = FULL
    start: Array | None = None

    def __post_init__(self) -> None:
        for name in ("noise_multiplier", "clip", "learning_rate"):
            if not is_positive(given := getattr(self, name)):
                raise ValueError(f"{name} must be a number > 0 and finite, got {given!r}")
        if not is_whole(self.steps):
            raise ValueError(f"steps must be a whole number >= 1, got {self.steps!r}")
        if not isinstance(self.sampling, Sampling):
            raise ValueError(f"sampling must be Full(), Poisson(p) or Shuffled(parts), got {self.sampling!r}")
        if self.start is not None:
            self.model.checked(self.start)

    @property
    def claim(self) -> TradeoffFunction:
        """A claim that this training satisfies in real numbers if a record is added or removed.

        The low-order bits of the released floats depend on the sum to which the noise was added, so an attack on these
        bits (`float_bits`) can refute it.  ValueError for shuffled batches, for which there is none; see
        `training.claim`.
        """
        return claim(
            noise_multiplier=self.noise_multiplier,
            steps=self.steps,
            sampling_rate=self.sampling.rate,
            sampling=self.sampling.name,
        )

    @property
    def training_words(self) -> str:
        """The algorithm and its parameters in words, for reports."""
        return f"{self.step_words}, {self.steps:,} {'step' if self.steps == 1 else 'steps'}"

    @property
    def step_words(self) -> str:
        """One step of the algorithm in words, for reports."""
        rate = self.sampling.rate
        batches = "full batches" if rate is None else f"{self.sampling.name} batches with sampling rate {rate:g}"
        return (
            f"{type(self).__name__} with noise multiplier {self.noise_multiplier:g}, clipping norm {self.clip:g}, "
            f"learning rate {self.learning_rate:g}, {batches}, {self.model.parameters:,} weights"
        )

    def gradients(self, weights: Array, records: Records, taken: Flags) -> PerExample:
        """Compute the gradient of each example in the batch `taken`, (m, n), of each model, for weights (m, P)."""
        n = len(records.labels)
        features, labels = records.features.reshape(n, self.model.sizes[0]), records.labels
        chosen = taken[:, :n]
        if chosen.size and chosen.mean() < 0.3:  # otherwise, to compute the gradients of all examples is faster
            # `packed` has the indices of each model's examples, padded with index 0
            counts = chosen.sum(axis=1)
            models, places = np.nonzero(chosen)
            rank = np.arange(len(models)) - np.repeat(np.cumsum(counts) - counts, counts)
            packed = np.zeros((len(chosen), int(counts.max(initial=0))), dtype=np.int64)
            packed[models, rank] = places
            chosen = np.arange(packed.shape[1]) < counts[:, None]
            features, labels = features[packed], labels[packed]
        inputs, logits = self.model.forward(weights, features)
        return PerExample(
            signals=self.model.backward(weights, inputs, logits, labels),
            inputs=inputs,
            largest=[np.abs(layer).max(axis=(1, 2)) for layer in self.model.layers(weights)],
            diracs=records.diracs,
            sizes=records.sizes,
            taken=np.concatenate([chosen, taken[:, n:]], axis=1).astype(np.float64),
            spare=self.model.spare,
        )

    def summed(self, gradients: PerExample) -> Array:
        """Return the sum of clipped gradients of each model, (m, P)."""
        return gradients.weighted_sum(gradients.scales(self.clip))

    def noise(self, state: State) -> Array:
        """Draw the noise of one step from the stream of each model, (m, P)."""
        scale = self.noise_multiplier * self.clip
        return scale * np.array([rng.standard_normal(self.model.parameters) for rng in state.rngs])

    def release(self, gradients: PerExample, state: State) -> Array:
        """Return the release of a step for each model, (m, P), the only part of the step that later steps may use."""
        return self.summed(gradients) + self.noise(state)

    def clipped(self, record: Records, weights: Array) -> Array:
        """Return the clipped gradient of a record in each of m models, (m, P), for weights (m, P)."""
        with np.errstate(over="ignore", invalid="ignore"):  # very large records or weights overflow
            gradients = self.gradients(weights, record, np.ones((len(weights), len(record)), dtype=np.bool_))
            return self.summed(gradients)


NOBODY = Records()


class Run:
    """The state of m models while they are trained on the same records.

    Each model draws its batches and its noise from its own Philox stream.  Hence a model does not depend on the other
    models.

    Args:
        trainer: The algorithm.
        records: The dataset.
        keys: The 128-bit key of each model's stream, (m, 2), from `state.keys_of`.

    Raises:
        ValueError: If the records do not fit the model.
    """

    def __init__(self, trainer: Trainer, records: Records, keys: AnyArray) -> None:
        model, features = trainer.model, records.features.shape[1]
        label, place = (int(part.max(initial=-1)) for part in (records.labels, records.diracs))
        if len(records.labels) and features != model.sizes[0]:
            raise ValueError(f"the model takes {model.sizes[0]} features, but the records have {features}")
        if label >= model.sizes[-1]:
            raise ValueError(f"the model has {model.sizes[-1]} classes, but a record has the label {label}")
        if place >= model.spare:
            raise ValueError(
                f"a Dirac record needs spare weight {place}, but the model has {model.spare} spare weights; "
                f"use Model(..., spare={place + 1})"
            )
        self.trainer, self.records, self.state = trainer, records, State(keys, streams(keys))
        start = model.initial() if trainer.start is None else np.asarray(trainer.start, dtype=np.float64)
        self.start = np.tile(start, (len(keys), 1))  # (m, P)
        self.weights = self.start.copy()
        self.before = self.start  # weights before the latest step
        self.released = np.zeros_like(self.start)  # release of the latest step
        # For each model and record, the number of batches that held the record.
        self.taken: Integers = np.zeros((len(keys), len(records)), dtype=np.int64)
        self._batches = trainer.sampling.batches(len(records), self.state.rngs)

    def step(self, guests: Records = NOBODY) -> None:
        """Make one step; the guests are further records in the batch of this step, for every model."""
        taken = next(self._batches)
        self.taken += taken
        records = self.records
        if len(guests):
            n, m = len(records.labels), len(taken)
            here = np.ones((m, len(guests)), dtype=np.bool_)
            split = len(guests.labels)
            taken = np.concatenate([taken[:, :n], here[:, :split], taken[:, n:], here[:, split:]], axis=1)
            records = records.joined(guests)
        trainer = self.trainer
        with np.errstate(over="ignore", invalid="ignore"):  # models may diverge, which the designs report
            self.released = trainer.release(trainer.gradients(self.weights, records, taken), self.state)
            self.before, self.weights = self.weights, self.weights - trainer.learning_rate * self.released


def fitted(model: Model, records: Records, *, penalty: float = 1.0) -> Array:
    """Fit a model without privacy, by L-BFGS on the total loss plus a squared penalty.

    Args:
        model: The model.
        records: Examples that the audited training does not use.
        penalty: Factor of the penalty, > 0.  The penalty is half this factor times the squared norm of the weights.

    Returns:
        The weights, (P,).
    """
    from scipy.optimize import minimize

    if not penalty > 0:
        raise ValueError(f"penalty must be > 0, got {penalty}")
    trainer = Trainer(model=model, noise_multiplier=1.0, steps=1)
    everything = np.ones((1, len(records)), dtype=np.bool_)

    def objective(weights: Array) -> tuple[float, Array]:
        at = weights[None]
        loss = model.losses(at, records.features, records.labels).sum() + penalty / 2 * weights @ weights
        gradient = trainer.gradients(at, records, everything)
        return float(loss), gradient.weighted_sum(gradient.taken)[0] + penalty * weights

    found = minimize(objective, model.initial(), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return np.asarray(found.x, dtype=np.float64)
