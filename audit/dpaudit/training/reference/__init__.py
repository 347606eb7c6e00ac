"""A trainer with DP-GD and DP-SGD in numpy, vectorised over models, for audits and tests without a framework.

- `records`: labelled examples, Dirac records, whose gradient is known, and full, Poisson and shuffled batches.
- `model`: multinomial logistic regression, networks with hidden layers, and their per-example gradients.
- `trainer`: the training algorithm, one method for each part that an implementation may get wrong; many models in
  training at once, each with its own stream of randomness; and weights fitted without privacy.
- `experiments`: adapters of the reference trainer for the three designs of `dpaudit.training`.

Of the lower packages, its modules import only `claims`, `numerics` and `values`, so that builtin mechanisms can use
these modules.
"""

from dpaudit.training.reference.experiments import OneRun, StepByStep, Training
from dpaudit.training.reference.model import Model
from dpaudit.training.reference.records import Full, Poisson, Records, Shuffled
from dpaudit.training.reference.trainer import Run, Trainer, fitted

__all__ = [
    "Full",
    "Model",
    "OneRun",
    "Poisson",
    "Records",
    "Run",
    "Shuffled",
    "StepByStep",
    "Trainer",
    "Training",
    "fitted",
]
