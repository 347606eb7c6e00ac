"""Exact binomial tests of a number of trials that was fixed in advance."""
