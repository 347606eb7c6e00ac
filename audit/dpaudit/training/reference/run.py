"""Trains many models at once, each with its own stream of randomness."""

from __future__ import annotations

import numpy as np

from dpaudit.numerics.arrays import AnyArray, Integers
from dpaudit.training.reference.records import Records
from dpaudit.training.reference.state import State
from dpaudit.training.reference.trainer import Trainer

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
        _check(trainer, records)
        self.trainer, self.records, self.state = trainer, records, State.of(keys)
        start = trainer.model.initial() if trainer.start is None else np.asarray(trainer.start, dtype=np.float64)
        self.start = np.tile(start, (len(keys), 1))  # (m, P)
        self.weights = self.start.copy()
        self.before = self.start  # weights before the latest step
        self.released = np.zeros_like(self.start)  # release of the latest step
        # For each model and record, the number of batches that held the record.
        self.taken: Integers = np.zeros((len(keys), len(records)), dtype=np.int64)
        self._batches = trainer.sampling.batches(len(records), self.state.rngs)

    def step(self, guests: Records = NOBODY) -> None:
        """Make one step.

        Args:
            guests: Further records that are in the batch of this step, for every model.
        """
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


def _check(trainer: Trainer, records: Records) -> None:
    model = trainer.model
    if len(records.labels) and records.features.shape[1] != model.sizes[0]:
        raise ValueError(f"the model takes {model.sizes[0]} features, but the records have {records.features.shape[1]}")
    if len(records.labels) and int(records.labels.max()) >= model.sizes[-1]:
        raise ValueError(f"the model has {model.sizes[-1]} classes, but a record has the label {records.labels.max()}")
    if len(records.diracs) and int(records.diracs.max()) >= model.spare:
        raise ValueError(
            f"a Dirac record needs spare weight {records.diracs.max()}, but the model has {model.spare} spare weights; "
            f"use Model(..., spare={records.diracs.max() + 1})"
        )
