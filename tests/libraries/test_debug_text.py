"""Debug texts of OpenDP's releases, and texts that are none."""

from __future__ import annotations

import pytest

from dpaudit.libraries.cells import Node, parsed


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
