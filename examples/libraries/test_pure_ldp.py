"""The epsilon of pure-LDP's clients.  python -m pytest test_pure_ldp.py --dpaudit-false-alarm 1e-4"""

import pytest
from pure_ldp.frequency_oracles.direct_encoding import DEClient
from pure_ldp.frequency_oracles.unary_encoding import UEClient

from dpaudit import Pair, PureDP

CLIENTS = {
    "direct": DEClient(epsilon=1.0, d=4),
    "symmetric": UEClient(epsilon=1.0, d=4, use_oue=False),
    "optimised": UEClient(epsilon=1.0, d=4, use_oue=True),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_the_epsilon_of_a_client_is_true(dpaudit, name):
    def answer(value, rng):
        return CLIENTS[name].privatise(value)

    dpaudit.assert_private(answer, PureDP(1.0), Pair(1, 2, "replace_one"), detect=1.4)
