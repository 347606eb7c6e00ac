"""The example project's tests of its privacy claims."""

import unittest

import pytest
from noise import PrivateCount, PrivateMean

from dpaudit import GaussianDP, Pair, PureDP
from dpaudit.testing import assert_private

ONE_VALUE = Pair([1.0] * 20, [1.0] * 19 + [0.0], "replace_one")
ONE_RECORD = Pair(["a", "b"], ["a", "b", "c"], "add_remove")


def test_mean(dpaudit):
    dpaudit.assert_private(PrivateMean(mu=1.0), claim=GaussianDP(1.0), pairs=ONE_VALUE, attacks="threshold")


@pytest.mark.parametrize("pair", [ONE_RECORD, Pair([], ["a"], "add_remove")], ids=["third", "first"])
def test_count(dpaudit, pair):
    dpaudit.assert_private(PrivateCount(epsilon=1.0), claim=PureDP(1.0), pairs=pair, attacks="threshold", detect=2.0)


@pytest.mark.dpaudit
class TestCount(unittest.TestCase):
    """The marker includes these tests in the budget, because unittest methods cannot have fixtures as arguments."""

    def test_as_text(self) -> None:
        assert_private(PrivateCount(1.0), "pure(epsilon=1)", ONE_RECORD, attacks="threshold", detect=2.0)


def test_without_an_audit() -> None:
    assert PrivateMean(mu=1.0).mu == 1.0
