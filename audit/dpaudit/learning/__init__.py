"""Combines the scores of attacks into one estimate of the log-likelihood ratio, learned from past trials only."""

from dpaudit.learning.blocks import FIRST_FIT, STREAM, Settings
from dpaudit.learning.few_values import FewValues, scores_frequencies
from dpaudit.learning.learner import Learner, Moment, symmetric_columns
from dpaudit.learning.score import Score
from dpaudit.learning.weights import Experts

__all__ = [
    "FIRST_FIT",
    "STREAM",
    "Experts",
    "FewValues",
    "Learner",
    "Moment",
    "Score",
    "Settings",
    "scores_frequencies",
    "symmetric_columns",
]
