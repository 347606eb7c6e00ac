"""From attacks to one estimate of the log-likelihood ratio, learned from past trials only."""

from dpaudit.scoring.learner import FIRST_FIT, Learner, Moment
from dpaudit.scoring.rivals import Rivals
from dpaudit.scoring.symmetric import symmetric_columns

__all__ = ["FIRST_FIT", "Learner", "Moment", "Rivals", "symmetric_columns"]
