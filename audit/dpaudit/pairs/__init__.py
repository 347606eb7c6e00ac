"""Pairs of neighbouring datasets, and the search for pairs that reveal violations.

May import: `values`.
Public names: `pair.Pair`, `search.SearchPairs`.
"""
