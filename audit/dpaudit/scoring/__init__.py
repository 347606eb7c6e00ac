"""From attacks to one estimate of the log-likelihood ratio, learned from past trials only."""

from dpaudit.scoring.learner import FIRST_FIT, Learner
from dpaudit.scoring.rivals import Rivals

__all__ = ["FIRST_FIT", "Learner", "Rivals"]
