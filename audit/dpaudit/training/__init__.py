"""Audits differentially private training, and certifies lower bounds on its epsilon.

There are three designs of an audit.  They differ in what the auditor observes, and in the number of trainings.

**Many runs.**  Each run of the mechanism `(dataset, rng) -> score` trains one model, half of them on d0 and half on d1,
which has one more record than d0.  The reference trainer trains many models in one call:

    from dpaudit import Pair, training
    from dpaudit.training import canaries, reference, views

    model = reference.Model((64, 10))                                       # logistic regression
    start = reference.fitted(model, others)                                 # worst-case weights, from other data
    target = canaries.blank(model, start)                                   # a record with the least likely label
    trainer = reference.Trainer(model=model, noise_multiplier=5.0, steps=100, start=start)
    train = reference.Training(trainer, views.loss(target))
    result = training.many_runs(train, Pair(records, records.joined(target)), trainer.claim, models=200)

With `store=FILE`, a repeated call does not train a model again.  The function `dpaudit.audit(train, claim, pair)`
audits the same mechanism sequentially.

**One run with many canaries.**  For each canary, a secret fair coin decides whether the training data include it.  The
score of a canary must depend on the coins only through the trained model:

    dirac = canaries.dirac(1000)                                            # one spare weight for each canary
    trainer = reference.Trainer(model=reference.Model((64, 10), spare=1000), noise_multiplier=2.0, steps=1000,
                                sampling=reference.Poisson(0.1))
    train = reference.OneRun(trainer, records, dirac, views.spare_weights())  # (included, rng) -> scores
    result = training.one_run(train, 1000, trainer.claim, independence="canaries")

**Step by step.**  In each step, a fair coin decides whether the canary is added to the batch.  The coin replaces the
sampling of the batch, so the correct claim about a step is that of a full batch, `step.claim`:

    step = reference.StepByStep(trainer, records, canaries.dirac(1))        # coin -> noisy gradient along the canary
    result = training.step_by_step(step, step.claim, steps=5000)

In your own training loop, use `dpaudit.OnlineAudit`.  Call `coin()` before each step, and add the gradient of the
canary to the sum of gradients if the coin is 1.  Pass the inner product of the noisy gradient and the canary's gradient
to `update`.

**Opacus.**  `training.opacus` attaches to a training script that uses Opacus, for all three designs.

**Claims.**  `training.claim(noise_multiplier=1.0, sampling_rate=0.01, steps=1000)` is the claim of DP-SGD for an added
or removed record.  It is exact for real numbers, but the low-order bits of floats may reveal more.  With
`relation="replace_one"` and Poisson sampling, it is only an upper bound on the privacy loss.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.training import canaries, opacus, reference, views
    from dpaudit.training.claims import claim
    from dpaudit.training.designs import many_runs, one_run, step_by_step
    from dpaudit.training.models import TrainingProgress

_HOMES = {
    "TrainingProgress": "models",
    "claim": "claims",
    **dict.fromkeys(("many_runs", "one_run", "step_by_step"), "designs"),
}
__all__ = [
    "TrainingProgress",
    "canaries",
    "claim",
    "many_runs",
    "one_run",
    "opacus",
    "reference",
    "step_by_step",
    "views",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the built-in mechanisms do not load the engine."""
    if name not in __all__:
        raise AttributeError(f"module 'dpaudit.training' has no attribute {name!r}")
    home = importlib.import_module(f"dpaudit.training.{_HOMES.get(name, name)}")
    return getattr(home, name) if name in _HOMES else home
