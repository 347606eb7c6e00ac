"""Tests of the assumption that the runs of an audit are independent.

The guarantees of an audit do not hold if its runs depend on each other.  The outputs of independent runs are
exchangeable: for every mechanism, every order of the outputs is equally likely.  Each test is exact or conservative,
given the set of outputs.  Most tests compare outputs with thresholds, which gives one bit for each run.  The number of
ones among some of the runs then has a hypergeometric distribution.
"""
