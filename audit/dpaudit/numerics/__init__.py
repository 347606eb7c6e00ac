"""Numerical tools that know nothing of privacy: array types and a fast logistic regression.

May import: nothing of ours.
Public names: `arrays`, `logistic.ridge`.
"""
