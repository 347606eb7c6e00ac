"""Tests and bounds from two arrays of scores that another program computed, without a pilot.

- `ranks`: right guesses about sorted scores, and a mixture of likelihood ratios of them.
- `rank_laws`: its worst-case laws under a claim, one for each assumption.
- `polygons`: curves as a few numbers.
- `rank_bounds`: bounds and p-values of all claims jointly.
- `rank_power`: the probability of a refutation.
- `runs`: the worst case of independent scores, and the test of one count.
- `dependence`: coins, and what tests of independence cannot show.
- `exchangeability`: permutation tests of whether canaries are independent.
- `repeats`: a test of whether scores were copied.
- `families`, `text_families`: one-parameter families of claims.
"""
