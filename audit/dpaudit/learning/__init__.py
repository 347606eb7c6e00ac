"""Combines attacks to one estimate of the log-likelihood ratio, which is learned from past trials only.

May import: `inference`, `numerics`, `outputs`, `sampling`, `text`, and `dpaudit_attacks`.
Public names: those below, and `attack.Attack`.
"""

from dpaudit.learning.learner import FIRST_FIT, Learner, Moment
from dpaudit.learning.selection import Rivals
from dpaudit.learning.symmetric import symmetric_columns

__all__ = ["FIRST_FIT", "Learner", "Moment", "Rivals", "symmetric_columns"]
