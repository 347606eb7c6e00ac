"""Signs that runs depend on each other: then no guarantee of an audit holds.

Independent runs are exchangeable: their outputs could have come in any other order as well, whatever the mechanism
does.  Each test here is exact, or conservative, given which outputs came and not in which order.  Outputs are compared
with thresholds, so that what is left of a run is one bit, and numbers of ones have hypergeometric laws.

The level is that of all tests of an audit together: `SUSPICIOUS`.  An audit may end when it likes, which would spoil
tests of the outputs up to that moment.  So the tests look at the first outputs up to one of a few numbers of runs that
are fixed beforehand (`CHECKPOINTS`), and each of these has its own share of the level.
"""

from dpaudit.inference.independence.memory import FIRST_SHARE, MIN_RUNS, SUSPICIOUS, Memory
from dpaudit.inference.independence.recurrence import key
from dpaudit.inference.independence.signs import coupling, dependence, drift

__all__ = ["FIRST_SHARE", "MIN_RUNS", "SUSPICIOUS", "Memory", "coupling", "dependence", "drift", "key"]
