"""Exact tests and bounds from two arrays of scores that another program computed, without a pilot.

- `confident`: independent canaries of one run.
- `both_sides`: the power of guesses about both sides, for independent canaries.
- `runs`: independent runs.
- `tight`, `several`: canaries that may depend on each other arbitrarily.
- `dependence`: coins, and what tests of independence cannot show.
- `exchangeability`: permutation tests of whether canaries are independent.
- `repeats`: a test of whether scores were copied.
- `families`, `text_families`: one-parameter families of claims.

All tests need a number of guesses, or a cut, that was chosen before the scores are seen.
"""
