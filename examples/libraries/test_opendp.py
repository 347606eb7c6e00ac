"""OpenDP's privacy maps.  python -m pytest test_opendp.py --dpaudit-false-alarm 1e-4"""

import opendp.prelude as dp
import pytest

from dpaudit import Pair
from dpaudit.libraries import opendp

dp.enable_features("contrib")
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
BITS = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
MEASUREMENTS = {
    "laplace": lambda: dp.m.make_laplace(*WHOLE, scale=2.0),
    "gaussian": lambda: dp.m.make_gaussian(*WHOLE, scale=2.0),
    "response": lambda: dp.m.make_randomized_response_bool(prob=0.75),
    "bits": lambda: dp.m.make_randomized_response_bitvec(*BITS, f=0.5),
}
PAIRS = {"bits": [Pair(b"\x01", b"\x80")]}  # of equal lengths: the first or the last of eight bits


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_the_privacy_map_is_true(dpaudit, name):
    subject = opendp.subject(MEASUREMENTS[name](), d_in=1, pairs=PAIRS.get(name))
    dpaudit.assert_private(subject.mechanism, subject.claim, subject.pairs, detect=1.4)
