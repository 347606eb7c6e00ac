"""What reports say of audits of scores that others have made."""

from __future__ import annotations

from dataclasses import replace

from dpaudit.result.words import DONG, Words

CANARIES_ASSUMED = (
    "given the coins, the scores of different canaries are independent of each other, and each depends on its own coin "
    "only"
)
"""The assumption of `independence="canaries"`.  One run cannot show whether it holds: see `scores.dependence`."""

_COINS = "Each canary was included in the data by a fair coin of its own. "
_ERRORS = (
    "An attack that tells by its score whether a canary was included errs in two ways: $α$ is how often it takes a "
    "canary that was left out for an included one, $β$ how often an included one for one left out."
)
_STEINKE = "Steinke, T., Nasr, M. & Jagielski, M. (2023). Privacy auditing with one (1) training run. NeurIPS 36."
RUNS_ASSUMED = "runs are independent of each other"
"""The assumption about several runs.  Their scores alone cannot show whether it holds."""

OF_RUNS = Words(
    principle=(
        "Every score is of a run of its own. All scores were put in one order, and it was counted how many of the "
        "highest ones are of d1; how many count as high was fixed before the scores were seen. The p-value is the "
        "largest chance of so many that any mechanism with trade-off function $f$ or above has. If runs are "
        "independent of each other, it is exact for every claim."
    ),
    references=(
        DONG,
        "Hollander, M., Proschan, F. & Sethuraman, J. (1977). Functions decreasing in transposition and their "
        "applications in ranking problems. Ann. Stat. 5(4), 722–733.",
    ),
    errors=(
        "An attack that tells by its score which dataset a run was on errs in two ways: $α$ is how often it says d1 of "
        "a run on d0, $β$ how often it says d0 of a run on d1."
    ),
    no_band="Blue: the errors observed over all runs, which chance can carry into the grey.",
    proof="the number of high scores that are of d1",
    untried="Other datasets and other scores: only those given were tried.",
    others="other datasets or scores",
    again="To repeat it, make new runs with fresh randomness, score them, and audit the scores.",
    assumption=RUNS_ASSUMED,
    more="audit more runs, such as more trained models, or scores that tell the datasets apart better",
    unit="scores",
    each="each of a run of its own",
    guessing=(
        "The highest scores are guessed to be of d1. How many of them count was fixed beforehand; no threshold was "
        "chosen by the scores."
    ),
)
OF_CANARIES = Words(
    principle=(
        _COINS + "For the canaries with the most extreme scores, their number fixed beforehand, it was guessed "
        "whether they were included. Given the coins, the scores of different canaries are taken to be independent of "
        "each other. Then the number of wrong guesses is stochastically at least that of the least confused pair with "
        "trade-off function $f$; the p-value is that pair's chance of so few (Xiang et al. 2025, for Gaussian scores)."
    ),
    references=(
        DONG,
        "Xiang, Z. et al. (2025). Tight privacy audit in one run. arXiv:2509.08704.",
    ),
    errors=_ERRORS,
    no_band="Blue: the errors observed over all canaries, which chance can carry into the grey.",
    proof="the number of right guesses, if canaries are independent",
    untried="Other canaries and other scores: only those given were tried.",
    others="other canaries or scores",
    again="To repeat it, make a new run with new coins, and audit it.",
    assumption=CANARIES_ASSUMED,
)
OF_ANY_CANARIES = Words(
    principle=(
        _COINS + "For the canaries with the most extreme scores, their number fixed beforehand, it was guessed "
        "whether they were included. The p-value bounds the chance of so many right guesses under the claim, however "
        "canaries depend on each other (Steinke, Nasr & Jagielski 2023; Mahloujifar, Melis & Chaudhuri 2024; sharpened "
        "by a linear program)."
    ),
    references=(
        _STEINKE,
        "Mahloujifar, S., Melis, L. & Chaudhuri, K. (2024). Auditing f-differential privacy in one run. "
        "arXiv:2410.22235.",
    ),
    errors=_ERRORS,
    no_band="Blue: the errors observed over all canaries. One run bounds no curve; chance can carry it into the grey.",
    proof="the number of right guesses",
    untried="Other canaries and other scores: only those given were tried.",
    others="other canaries or scores",
    again="To repeat it, make a new run with new coins, and audit it.",
)

DRAWN_ASSUMED = (
    "given which canaries were included, the scores of different canaries are independent of each other, and each "
    "depends on the inclusion of its own canary only"
)
"""The assumption of `independence="canaries"` if a fixed number of canaries was included."""

_DRAWN = "A fixed number of canaries was included in the data, and all sets of this size were equally likely. "
_ONE_OF_ALL = "one of a set of which a fixed number was included at random"
OF_DRAWN_CANARIES = replace(
    OF_CANARIES,
    principle=(
        _DRAWN + "All scores were put in one order, and it was counted how many of the highest ones are of included "
        "canaries; how many count as high was fixed before the scores were seen. Given which canaries were included, "
        "their scores are taken to be independent of each other. Then the p-value is the largest chance of so many "
        "that any mechanism with trade-off function $f$ or above has."
    ),
    references=OF_RUNS.references,
    assumption=DRAWN_ASSUMED,
    each=_ONE_OF_ALL,
    guessing=(
        "The highest scores are guessed to be of included canaries. How many of them count was fixed beforehand; no "
        "threshold was chosen by the scores."
    ),
)
OF_ANY_DRAWN_CANARIES = replace(
    OF_ANY_CANARIES,
    principle=(
        _DRAWN + "For the canaries with the most extreme scores on one side, their number fixed beforehand, it was "
        "guessed whether they were included. The p-value bounds the chance of so many right guesses under the claim, "
        "however canaries depend on each other: the bound for independent coins with the same share of included "
        "canaries, divided by the probability with which such coins include exactly this number."
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
