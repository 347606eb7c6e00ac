"""Scores that others have made: exact tests and bounds from two arrays, without a pilot.

`confident` is for independent canaries of one run, `runs` for runs; `tight` and `several` are for canaries of which
nothing is assumed.  `dependence` asks whether canaries are independent, and `families` reads one-parameter families of
claims.  In all of them the number of guesses, or the cut, is chosen before the scores are seen.
"""
