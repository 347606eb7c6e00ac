"""Draws the figures of the documentation: python docs/figures.py"""

from __future__ import annotations

from pathlib import Path

from dpaudit import Pair, audit
from dpaudit.catalogue import Gaussian


def main() -> None:
    """The README's picture: a sum whose author took the sensitivity for 1 where it is 1.5."""
    result = audit(Gaussian(1.0), "gaussian(mu=1)", Pair([0.0], [1.5], "replace_one"), confidence=0.999999, seed=1)
    figure = result.plot().figure
    figure.set_size_inches(5.2, 4.2)
    figure.savefig(Path(__file__).parent / "violation.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
