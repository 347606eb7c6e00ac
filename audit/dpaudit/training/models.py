"""Trains the models of the design "many runs", in any process, and keeps their outputs in a store."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from dpaudit.engine.progress_line import shown
from dpaudit.numerics import AnyArray
from dpaudit.pairs.pair import Pair
from dpaudit.running import MechanismError
from dpaudit.running.identity import of_code_and_data, with_settings
from dpaudit.running.mechanisms import resolved, samples
from dpaudit.running.runs import Dataset, ExecutionSettings, Outcome, Runs, made
from dpaudit.running.sampler import Sampler
from dpaudit.running.sources import source_of
from dpaudit.running.store import Store, StoreError
from dpaudit.settings import AuditSettings
from dpaudit.training.checks import equal_outputs
from dpaudit.values import RawOutputs

_PROBES = 2  # minimum number of models on each dataset, with equal seeds, whose outputs are compared but not counted

_TOGETHER = 16  # models on each dataset in one call of `train.sample`; random streams depend on this value
_EXECUTION = ExecutionSettings()
_MODELS, _PROBED = 0, 1  # numbers of the two series of models, in random streams and in the store


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProgress:
    """The progress of `many_runs`; `str` returns one line.

    Args:
        models: Number of models so far, including those from the store.
        allowed: Number of all models.
        seconds_per_model: Mean time of a model that this call trained; nan before the first model.
    """

    models: int
    allowed: int
    seconds_per_model: float

    @property
    def seconds_left(self) -> float:
        """Time until all models are trained, if each further model takes the mean time."""
        return (self.allowed - self.models) * self.seconds_per_model

    def __str__(self) -> str:
        line = f"{self.models:,} of {self.allowed:,} models"
        if math.isnan(self.seconds_per_model):
            return line
        minutes, seconds = divmod(round(self.seconds_left), 60)
        left = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
        return f"{line} · {self.seconds_per_model:.2g} s per model · {left} left"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Models:
    """The outputs of all models, and warnings about their training."""

    probes: tuple[AnyArray, AnyArray]  # outputs of the models with equal seeds, on d0 and on d1
    outputs: tuple[AnyArray, AnyArray]  # outputs of the models that count, on d0 and on d1
    warnings: tuple[str, ...]


def train_models(train: object, pair: Pair, each: int, seed: int, settings: AuditSettings, compared: int) -> Models:
    """Train `each` models on both datasets, and at least `_PROBES` further ones with equal seeds.

    Further models are trained until outputs on d0 and d1 differ, or there are `compared` on each dataset.
    """
    parts = {"design": "many runs", "models": f"{2 * each:,}"}
    with opened(train, [pair], seed, settings, parts) as store:
        sampler = Sampler(train, [pair], seed, settings.jobs, _EXECUTION, store)
        probes = _probes(train, pair, seed, store, compared)
        with shown(settings.progress, words=str) as progress:
            outputs = _blocks(sampler, each, progress)
        warnings = (sampler.side_effects[0] + sampler.side_effects[1]).words()
        warnings += [] if store is None else [*store.words(each + len(probes[0])), *repeated(store)]
    return Models(probes=_arrays(*probes), outputs=_arrays(*outputs), warnings=tuple(warnings))


@contextmanager
def opened(
    train: object, pairs: Sequence[Pair], seed: int, settings: AuditSettings, parts: Mapping[str, str]
) -> Iterator[Store | None]:
    """Open the store of a training audit; yield None if the settings name no store."""
    if settings.store is None:
        yield None
        return
    try:
        code = of_code_and_data(train, source_of(train), pairs)
        content = {**with_settings(code, seed, _EXECUTION), **parts}
        with Store(settings.store, content, seed=seed, anyway=settings.resume == "anyway") as store:
            try:
                yield store
            except (Exception, SystemExit) as error:
                if not isinstance(error, StoreError):
                    store.count_failure()
                raise
    except StoreError as error:
        raise ValueError(f"store: {error}") from None


def repeated(store: Store) -> tuple[str, ...]:
    """Return a warning if trainings failed in earlier calls with this store."""
    if not store.failures:
        return ()
    calls = "1 earlier call" if store.failures == 1 else f"{store.failures:,} earlier calls"
    return (
        f"{calls} with this store failed, and the failed trainings were repeated, perhaps with changes: the guarantee "
        "is conditional on success.  It holds only if the failures do not depend on the models, as in a power cut",
    )


def _probes(train: object, pair: Pair, seed: int, store: Store | None, compared: int) -> tuple[RawOutputs, RawOutputs]:
    """Return outputs of models with equal seeds: `_PROBES` on each dataset, and up to `compared` if all are equal."""
    outputs: tuple[list[object], list[object]] = ([], [])
    stop = _PROBES
    while (start := len(outputs[0])) < stop:
        block = None if store is None else store.get(_PROBED, start, stop)
        if block is None:
            first, second = (
                made(Runs(train, Dataset(dataset), seed, _PROBED, 0, start, stop, _EXECUTION))
                for dataset in (pair.d0, pair.d1)
            )
            _check(first)
            _check(second, "; this was a training on d1 with the random numbers of d0")
            block = first.outputs, second.outputs
            if store is not None:
                store.put(_PROBED, start, *block, (first.side_effects, second.side_effects))
        for side, more in zip(outputs, block, strict=True):
            side.extend(more)
        if equal_outputs(*_arrays(*outputs)):
            stop = max(stop, min(compared, stop + _TOGETHER))
    return outputs


def _blocks(
    sampler: Sampler, each: int, progress: Callable[[TrainingProgress], None] | None
) -> tuple[RawOutputs, RawOutputs]:
    """Return the outputs of all models that count."""
    size = _TOGETHER if samples(resolved(sampler.mechanism)) else sampler.workers
    kept = 0 if sampler.store is None else sampler.store.trials.get(_MODELS, 0)
    outputs: tuple[list[object], list[object]] = ([], [])
    began = time.perf_counter()
    while True:
        start = len(outputs[0])
        if progress is not None and (start >= kept or start >= each):
            seconds = (time.perf_counter() - began) / (2 * (start - kept)) if start > kept else math.nan
            progress(TrainingProgress(models=2 * start, allowed=2 * each, seconds_per_model=seconds))
        if start >= each:
            return outputs
        block = sampler.block(_MODELS, start, each if start < kept else min(start + size, each))
        for side, outcome in zip(outputs, block, strict=True):
            _check(outcome)
            side.extend(outcome.outputs)


def _check(outcome: Outcome, where: str = "") -> None:
    if outcome.failure:
        raise MechanismError(f"the training {outcome.failure}{where}.  If the model diverges, return nan")


def _arrays(first: RawOutputs, second: RawOutputs) -> tuple[AnyArray, AnyArray]:
    for side, outputs in enumerate((first, second)):
        if any(output is None for output in outputs):
            raise ValueError(f"train must return a score, got None on d{side}")
    return np.asarray(first), np.asarray(second)
