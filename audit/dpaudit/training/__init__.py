"""Audits of differentially private training, from a training script to a certified epsilon.

There are three designs.  They differ in what the auditor can see, and in what a certified bound costs.

**Many runs.**  Each model is a run.  Half of the models are trained on d0, and half on d1, which has one more record.
Any function `(dataset, rng) -> score` will do; the reference trainer trains many models in one call:

    from dpaudit import Pair, training
    from dpaudit.training import canaries, reference, views

    model = reference.Model((64, 10))                                       # logistic regression
    start = reference.fitted(model, others)                                 # worst-case weights, from other data
    target = canaries.blank(model, start)                                   # a record with the least likely label
    trainer = reference.Trainer(model=model, noise_multiplier=5.0, steps=100, start=start)
    train = reference.Training(trainer, views.loss(target))
    result = training.many_runs(train, Pair(records, records.joined(target)), trainer.claim, models=200)

`dpaudit.audit(train, claim, pair)` audits the same mechanism sequentially, with a store, workers and reports.

**One run with many canaries.**  Secret coins decide which canaries are included.  The training function sees the
coins; a score must not depend on the coins except through the model:

    dirac = canaries.dirac(1000)                                            # one spare weight for each canary
    trainer = reference.Trainer(model=reference.Model((64, 10), spare=1000), noise_multiplier=2.0, steps=1000,
                                sampling=reference.Poisson(0.1))
    train = reference.OneRun(trainer, records, dirac, views.spare_weights())  # (included, rng) -> scores
    result = training.one_run(train, 1000, trainer.claim, independence="canaries")

**Step by step.**  A coin for each step decides whether the canary joins the batch of this step.  The coin decides, not
the sampling, so the claim about each step is that of a full batch, `step.claim`; that of a sampled step is refuted:

    step = reference.StepByStep(trainer, records, canaries.dirac(1))        # coin -> noisy gradient along the canary
    result = training.step_by_step(step, step.claim, steps=5000)

In a training loop of your own, `dpaudit.OnlineAudit` does the same: ask for a `coin()` before each step, add the
canary's gradient if it is 1, and pass the noisy gradient's inner product with the canary to `update`.

**Claims.**  `training.claim(noise_multiplier=1.0, sampling_rate=0.01, steps=1000)` is a claim that DP-SGD with these
parameters keeps.  It is about a record that is added or removed, and exact up to rounding.  For a record that is
replaced, use `relation="replace_one"`; with Poisson sampling, that claim is an upper bound only.  Batches from a
shuffled dataset have no such claim, so `sampling="shuffled"` is refused, unless `claimed_as="poisson"`.

May import: `claims`, `engine`, `inference`, `learning`, `mechanisms`, `numerics`, `pairs`, `result`, `sampling`,
`settings`, `text`, `values`.
Public names: those below.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from dpaudit.values import Foreign

if TYPE_CHECKING:
    from dpaudit.training import canaries, reference, views
    from dpaudit.training.claims import claim
    from dpaudit.training.designs.many_runs import many_runs
    from dpaudit.training.designs.one_run import one_run
    from dpaudit.training.designs.step_by_step import step_by_step

_HOMES = {
    "claim": "claims",
    "many_runs": "designs.many_runs",
    "one_run": "designs.one_run",
    "step_by_step": "designs.step_by_step",
}
_MODULES = ("canaries", "reference", "views")

__all__ = ["canaries", "claim", "many_runs", "one_run", "reference", "step_by_step", "views"]


def __getattr__(name: str) -> Foreign:
    """Import a public name when it is first used, so that the builtin mechanisms do not load the engine."""
    if name in _MODULES:
        return importlib.import_module(f"dpaudit.training.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'dpaudit.training' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"dpaudit.training.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
