"""A trainer with DP-GD and DP-SGD in numpy, vectorised over models, for audits and tests without a framework.

Its modules import only `claims`, `numerics` and `values` of the lower packages, as builtin mechanisms use them.
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
