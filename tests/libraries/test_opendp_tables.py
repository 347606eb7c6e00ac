"""Pairs of neighbouring tables of OpenDP, and how domains and distances are read from their texts."""

import math
from fractions import Fraction
from typing import Any

import pytest

from dpaudit.libraries import neighbours, opendp
from dpaudit.libraries.cells import Node, parsed
from dpaudit.libraries.subject import UnknownSubject

from .test_opendp import facts


def test_a_user_of_a_table_has_many_rows_in_many_groups() -> None:
    columns = {"id": ["AtomDomain(T=i32)", False], "group": ["str", True], "x": ["AtomDomain(nan=true, T=f64)", False]}
    table = facts("FrameDomain(id: i32)", 'SymmetricIdDistance { identifier: col("id") }', columns=columns, margins=[])
    pairs = opendp.pairs_of(table)
    for pair in pairs:
        new = set(pair.d1["id"]) - set(pair.d0["id"])
        assert len(new) == 1
        kept = [name not in new for name in pair.d1["id"]]
        for column in columns:
            assert [x for x, old in zip(pair.d1[column], kept, strict=True) if old] == pair.d0[column]
    rows = max(pairs, key=lambda pair: len(pair.d1["id"]) - len(pair.d0["id"])).d1
    assert len(rows["id"]) >= 19
    assert any(None in pair.d1["group"] for pair in pairs)
    assert any("zz" in pair.d1["group"] for pair in pairs)


USERS = facts(
    "FrameDomain(id: i64)",
    'SymmetricIdDistance { identifier: col("id") }',
    columns={"id": ["i64", False], "group": ["i64", False], "name": ["str", False], "x": ["f64", False]},
    margins=[],
)


def test_a_user_has_a_row_in_each_of_the_largest_number_of_groups() -> None:
    """The pair that shows https://github.com/opendp/opendp/issues/2949 comes first."""
    pair = opendp.pairs_of(USERS, 100)[0]
    new = [place for place, user in enumerate(pair.d1["id"]) if user not in pair.d0["id"]]
    assert len({pair.d1["id"][place] for place in new}) == 1
    assert len(new) == 100
    for column in ("group", "name"):
        assert len({pair.d1[column][place] for place in new}) == 100
    assert pair.label == "one row in each of 100 groups"


def test_groups_stay_within_the_domain_and_the_limits_of_its_margins() -> None:
    bounded = {**USERS["columns"], "group": ["AtomDomain(bounds=[-3, 2], T=i32)", False]}
    pair = opendp.pairs_of(USERS | {"columns": bounded}, 50)[0]
    assert set(pair.d1["group"]) == {-3, -2, -1, 0, 1, 2}
    margin = {"by": ["group"], "max_length": None, "max_groups": 5, "public": False, "fixed_lengths": False}
    pairs = opendp.pairs_of(USERS | {"margins": [margin]}, 50)
    assert max(len(set(pair.d1["group"])) for pair in pairs) <= 5


@pytest.mark.parametrize(
    ("groups", "table", "words"),
    [
        (0, USERS, r"groups must be a whole number from 1 to 1,000, got 0"),
        (5, facts("AtomDomain(T=i32)"), r"only for data frames whose metric counts users.*leave groups out"),
    ],
)
def test_a_wrong_number_of_groups_is_refused(groups: Any, table: Any, words: str) -> None:
    with pytest.raises(UnknownSubject, match=words):
        opendp.pairs_of(table, groups)


@pytest.mark.parametrize("d_in", ['[Bound(by=["g"], per_group=2, num_groups=0)]', 0])
def test_tables_need_a_distance_of_at_least_one(d_in: Any) -> None:
    """Bounds of groups may allow no additional row at all."""
    table = facts("FrameDomain(x: i32)", d_in=d_in, columns={"x": ["i32", False]}, margins=[])
    with pytest.raises(UnknownSubject, match=r"needs an integer d_in >= 1, got d_in=.*pass the pairs"):
        opendp.pairs_of(table)


def test_public_groups_are_the_same_in_both_tables() -> None:
    columns = {"group": ["str", False], "x": ["i32", False]}
    margin = {"by": ["group"], "max_length": None, "max_groups": None, "public": True, "fixed_lengths": False}
    table = facts("FrameDomain(group: str)", columns=columns, margins=[margin])
    for pair in opendp.pairs_of(table):
        assert set(pair.d0["group"]) == set(pair.d1["group"]) == {"a", "b"}


def test_tables_obey_the_limits_of_their_margins() -> None:
    columns = {"group": ["str", False], "x": ["i32", False]}
    margin = {"by": ["group"], "max_length": 5, "max_groups": 2, "public": False, "fixed_lengths": False}
    pairs = opendp.pairs_of(facts("FrameDomain(group: str)", columns=columns, margins=[margin]))
    free = opendp.pairs_of(facts("FrameDomain(group: str)", columns=columns, margins=[]))
    assert any("zz" in pair.d1["group"] for pair in free)
    for pair in pairs:
        assert len(set(pair.d1["group"])) <= 2
        assert max(pair.d1["group"].count(name) for name in set(pair.d1["group"])) <= 5


def test_a_rounding_error_is_a_difference() -> None:
    """0.1 + 0.2 is the float just above 0.3, and 1/3 + 1 rounds up to a number at a distance above 1 or not."""
    assert neighbours.absolute(0.3, 0.1 + 0.2) == Fraction(0.1 + 0.2) - Fraction(0.3) > 0
    assert not neighbours.within("AbsoluteDistance", 0.0, math.nextafter(1.0, 2.0), 1)
    assert neighbours.within("AbsoluteDistance", 0.0, math.nextafter(1.0, 0.0), 1)
    assert not neighbours.within("AbsoluteDistance", -(2**62), 2**62 + 1, 2**63)


def test_the_l2_distance_is_compared_without_a_square_root() -> None:
    assert neighbours.within("L2Distance", [0.0, 0.0], [3.0, 4.0], 5)
    assert not neighbours.within("L2Distance", [0.0, 0.0], [3.0, math.nextafter(4.0, 5.0)], 5)


@pytest.mark.parametrize(
    ("metric", "x", "y", "expected"),
    [
        ("L1Distance", [1, 2], [2, 0], 3),
        ("LInfDistance", [1, 2], [2, 0], 2),
        ("L1Distance", [1], [1, 2], math.inf),
        ("AbsoluteDistance", math.nan, math.nan, 0),
        ("AbsoluteDistance", math.inf, 1.0, math.inf),
        ("SymmetricDistance", [1, 1, 2], [1, 2, 3], 2),
        ("SymmetricDistance", [None, math.nan], [math.nan, None], 0),
        ("ChangeOneDistance", [1, 1, 2], [1, 2, 3], 1),
        ("ChangeOneDistance", [1], [1, 2], math.inf),
        ("HammingDistance", [1, 2], [2, 1], 2),
        ("DiscreteDistance", "a", "b", 1),
        ("DiscreteDistance", "a", "a", 0),
    ],
)
def test_distances_by_hand(metric: str, x: object, y: object, expected: float) -> None:
    assert neighbours.DISTANCES[metric](x, y) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MaxDivergence", Node("MaxDivergence")),
        ("SymmetricDistance()", Node("SymmetricDistance", ())),
        ("AtomDomain(T=i32)", Node("AtomDomain", (), {"T": "i32"})),
        ("LInfDistance(monotonic, T=i32)", Node("LInfDistance", ("monotonic",), {"T": "i32"})),
        (
            "VectorDomain(AtomDomain(bounds=[-1.5, 2e3], nan=true, T=f64), size=5)",
            Node(
                "VectorDomain",
                (Node("AtomDomain", (), {"bounds": Node("", (-1.5, 2000.0)), "nan": "true", "T": "f64"}),),
                {"size": 5},
            ),
        ),
        (
            "MapDomain { key_domain: AtomDomain(T=String), value_domain: AtomDomain(T=i32) }",
            Node(
                "MapDomain",
                (),
                {
                    "key_domain": Node("AtomDomain", (), {"T": "String"}),
                    "value_domain": Node("AtomDomain", (), {"T": "i32"}),
                },
            ),
        ),
        ("Approximate(ZeroConcentratedDivergence)", Node("Approximate", ("ZeroConcentratedDivergence",))),
        ('SeriesDomain("a (b", i32)', Node("SeriesDomain", ("a (b", "i32"))),
    ],
)
def test_a_text_becomes_a_tree(text: str, expected: Node) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize("text", ["", "a b", "VectorDomain(", "f(x))", "<opendp object at 0x7f>", "=", "]"])
def test_other_texts_become_a_name(text: str) -> None:
    assert parsed(text) == Node(text)
