"""Pairs of neighbouring datasets, and the search for pairs that reveal violations.

May import: nothing of ours.
Public names: `pair.Pair`, `search.SearchPairs`.
"""
