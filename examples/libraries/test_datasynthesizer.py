"""The noisy distributions of DataSynthesizer.  python -m pytest test_datasynthesizer.py --dpaudit-false-alarm 1e-4"""

import pandas as pd
from DataSynthesizer.lib.PrivBayes import construct_noisy_conditional_distributions

from dpaudit import Pair, PureDP

NINE = [[0, 0], [0, 0], [0, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 1], [1, 1]]


def distributions(records, rng):
    frame = pd.DataFrame(records, columns=["a", "b"])
    found = construct_noisy_conditional_distributions([("b", ["a"])], frame, epsilon=1.0)
    return found["a"] + found["b"]["[0]"] + found["b"]["[1]"]


def test_the_epsilon_of_the_distributions_is_true(dpaudit):
    pair = Pair(NINE, [*NINE, [1, 1]], "add_remove")
    dpaudit.assert_private(distributions, PureDP(1.0), pair, detect=2, trials=1000)
