"""A session of diffprivlib: tools with epsilon 1 that share a BudgetAccountant with a budget of 2."""

from functools import partial

from diffprivlib import BudgetAccountant, tools

from dpaudit.libraries import sessions

QUERIES = {
    "count": partial(tools.count_nonzero, epsilon=1.0),
    "sum": partial(tools.sum, epsilon=1.0, bounds=(0, 1)),
}


def accountant(dataset, rng):
    return sessions.Diffprivlib(dataset, BudgetAccountant(epsilon=2.0, delta=0.0), QUERIES, rng)
