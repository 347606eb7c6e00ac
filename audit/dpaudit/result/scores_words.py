"""Contains the sentences of reports about audits of given scores."""

from __future__ import annotations

from dataclasses import replace

from dpaudit.result.words import DONG, Words

CANARIES_ASSUMED = (
    "given the coins, the scores of different canaries are independent of each other, and each depends on its own coin "
    "only"
)
"""The assumption of `independence="canaries"`.

One run cannot show a state that all of its canaries share; see `scores.dependence` and `scores.exchangeability`.
"""

_COINS = "For each canary, a separate fair coin decided whether it was included in the data. "
_ERRORS = (
    "An attack that decides by its score whether a canary was included makes two kinds of errors. $α$ is the rate at "
    "which it calls excluded canaries included, and $β$ the rate at which it calls included canaries excluded."
)
_STEINKE = "Steinke, T., Nasr, M. & Jagielski, M. (2023). Privacy auditing with one (1) training run. NeurIPS 36."
RUNS_ASSUMED = "runs are independent of each other"
"""The assumption about several runs.  Their scores alone cannot test this assumption."""

OF_RUNS = Words(
    principle=(
        "Each score comes from a separate run. All scores are ranked together, and the runs on d1 among the highest "
        "scores are counted. How many scores count as high was fixed before the scores were seen. The p-value is the "
        "maximum probability of at least this many runs on d1, over all mechanisms with trade-off function $f$ or "
        "above. If runs are independent, the p-value is exact for every claim."
    ),
    references=(
        DONG,
        "Hollander, M., Proschan, F. & Sethuraman, J. (1977). Functions decreasing in transposition and their "
        "applications in ranking problems. Ann. Stat. 5(4), 722–733.",
    ),
    errors=(
        "An attack that decides by its score which dataset a run was on makes two kinds of errors. $α$ is the rate at "
        "which it guesses d1 for runs on d0, and $β$ the rate at which it guesses d0 for runs on d1."
    ),
    no_band=(
        "Blue: the errors observed over all runs. The audit certifies no bound on the curve, so chance can carry the "
        "observed errors into the grey area."
    ),
    proof="the number of high scores that are of d1",
    untried="Other datasets and other scores: only the given datasets and scores were tried.",
    others="other datasets or scores",
    again="To repeat it, make new runs with fresh randomness, score them, and audit the scores.",
    assumption=RUNS_ASSUMED,
    more="audit more runs, such as more trained models, or scores that tell the datasets apart better",
    unit="scores",
    each="each from a separate run",
    guessing=(
        "The highest scores are guessed to be of d1. How many scores count as high was fixed beforehand and does not "
        "depend on the scores."
    ),
)
OF_CANARIES = Words(
    principle=(
        _COINS + "For the canaries with the most extreme scores, it was guessed whether they were included; the number "
        "of guesses was fixed beforehand. Given the coins, the scores of different canaries are assumed to be "
        "independent. Then the number of wrong guesses is stochastically at least the number for the most "
        "distinguishable pair with trade-off function $f$. The p-value is the probability of at most this many wrong "
        "guesses for this pair (Xiang et al. 2025, for Gaussian scores)."
    ),
    references=(
        DONG,
        "Xiang, Z. et al. (2025). Tight privacy audit in one run. arXiv:2509.08704.",
    ),
    errors=_ERRORS,
    no_band=(
        "Blue: the errors observed over all canaries. The audit certifies no bound on the curve, so chance can carry "
        "the observed errors into the grey area."
    ),
    proof="the number of right guesses, if canaries are independent",
    untried="Other canaries and other scores: only the given canaries and scores were tried.",
    others="other canaries or scores",
    again="To repeat it, make a new run with new coins, and audit it.",
    assumption=CANARIES_ASSUMED,
)
OF_CANARY_LEVELS = replace(
    OF_CANARIES,
    principle=(
        _COINS + "For every canary it was guessed whether it was included. Guesses about the canaries with the most "
        "extreme scores count five times, guesses about the next canaries three times, and the others once. The "
        "numbers of canaries in these levels were fixed beforehand. Given the coins, the scores of different canaries "
        "are assumed to be independent. Then the total weight of wrong guesses is stochastically at least that for "
        "the most distinguishable pair with trade-off function $f$. The p-value is the probability of at most this "
        "weight for this pair (following Xiang et al. 2025)."
    ),
    proof="the weighted number of right guesses, if canaries are independent",
    guesses="weighted guesses",
    guessing=(
        "Guesses are made for all canaries. A guess counts 5, 3 or 1 times, depending on how extreme the canary's "
        "score is among all scores. The share of right guesses cannot be compared with the two errors, which the "
        "claim's curve limits."
    ),
)
OF_ANY_CANARIES = Words(
    principle=(
        _COINS + "For the canaries with the most extreme scores, it was guessed whether they were included; the number "
        "of guesses was fixed beforehand. The p-value bounds the probability of at least this many right guesses under "
        "the claim, however canaries depend on each other (Steinke, Nasr & Jagielski 2023; Mahloujifar, Melis & "
        "Chaudhuri 2024; sharpened by a linear program)."
    ),
    references=(
        _STEINKE,
        "Mahloujifar, S., Melis, L. & Chaudhuri, K. (2024). Auditing f-differential privacy in one run. "
        "arXiv:2410.22235.",
    ),
    errors=_ERRORS,
    no_band=(
        "Blue: the errors observed over all canaries. One run certifies no bound on the curve, so chance can carry the "
        "observed errors into the grey area."
    ),
    proof="the number of right guesses",
    untried="Other canaries and other scores: only the given canaries and scores were tried.",
    others="other canaries or scores",
    again="To repeat it, make a new run with new coins, and audit it.",
)
OF_WEIGHTED_CANARIES = replace(
    OF_ANY_CANARIES,
    principle=(
        _COINS + "For the canaries with the most extreme scores, it was guessed whether they were included. Several "
        "numbers of guesses were fixed beforehand, and the right guesses of all numbers are added up. The p-value "
        "bounds the probability of at least this total under the claim, however canaries depend on each other, by a "
        "linear program (following Steinke, Nasr & Jagielski 2023; Mahloujifar, Melis & Chaudhuri 2024)."
    ),
    proof="the total number of right guesses",
)

DRAWN_ASSUMED = (
    "given which canaries were included, the scores of different canaries are independent of each other, and each "
    "depends on the inclusion of its own canary only"
)
"""The assumption of `independence="canaries"` if a fixed number of canaries was included."""

_DRAWN = "A fixed number of canaries was included in the data, and all sets of this size were equally likely. "
_ONE_OF_ALL = "from a set in which a fixed number was included at random"
OF_DRAWN_CANARIES = replace(
    OF_CANARIES,
    principle=(
        _DRAWN + "All scores are ranked together, and the included canaries among the highest scores are counted. How "
        "many scores count as high was fixed before the scores were seen. Given which canaries were included, the "
        "scores of different canaries are assumed to be independent. Then the p-value is the maximum probability of at "
        "least this many included canaries, over all mechanisms with trade-off function $f$ or above."
    ),
    references=OF_RUNS.references,
    assumption=DRAWN_ASSUMED,
    each=_ONE_OF_ALL,
    guessing=(
        "The highest scores are guessed to be of included canaries. How many scores count as high was fixed "
        "beforehand and does not depend on the scores."
    ),
)
OF_ANY_DRAWN_CANARIES = replace(
    OF_ANY_CANARIES,
    principle=(
        _DRAWN + "For the canaries with the most extreme scores on one side, it was guessed whether they were "
        "included; the number of guesses was fixed beforehand. The p-value bounds the probability of at least this "
        "many right guesses under the claim, however canaries depend on each other. The p-value is the bound for "
        "independent coins with the same share of included canaries, divided by the probability that these coins "
        "include exactly this number."
    ),
    each=_ONE_OF_ALL,
)
_RUNS_OF_CANARIES = (
    "Runs are independent of each other; the canaries of one run may depend on each other in any way. In each run, "
    "the number of right guesses is stochastically at most a variable whose tail is the bound for one run. The p-value "
    "is the tail of the sum of independent variables of this kind, one for each run (Steinke, Nasr & Jagielski 2023; "
    "Mahloujifar, Melis & Chaudhuri 2024)."
)
_AGAIN_IN_RUNS = "To repeat it, make new runs with new coins, and audit them."
_IN_RUNS = "{runs} with {canaries} canaries"
OF_CANARIES_IN_RUNS = replace(
    OF_CANARIES,
    principle=OF_CANARIES.principle.replace(
        "the scores of different canaries are assumed", "the scores of different canaries, also of one run, are assumed"
    ),
    again=_AGAIN_IN_RUNS,
    spent=_IN_RUNS,
)
OF_SEVERAL_RUNS = replace(
    OF_ANY_CANARIES, principle=_COINS + _RUNS_OF_CANARIES, again=_AGAIN_IN_RUNS, assumption=RUNS_ASSUMED, spent=_IN_RUNS
)
OF_SEVERAL_DRAWN_RUNS = replace(
    OF_ANY_DRAWN_CANARIES,
    principle=_DRAWN.replace("A fixed", "In each run, a fixed") + _RUNS_OF_CANARIES,
    again=_AGAIN_IN_RUNS,
    assumption=RUNS_ASSUMED,
    spent=_IN_RUNS,
)
