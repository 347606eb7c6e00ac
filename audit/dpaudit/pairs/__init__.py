"""What is compared: pairs of neighbouring datasets, and the search for pairs on which mechanisms have leaked.

May import: nothing of ours.
Public names: `pair.Pair`, `search.SearchPairs`.
"""
