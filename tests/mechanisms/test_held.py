"""Searching a mechanism for numbers runs none of its code, changes nothing, and ends soon."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from dpaudit import Pair, Verdict, audit
from dpaudit.mechanisms import held
from dpaudit.mechanisms.held import held_numbers


def _never(*_: Any) -> Any:
    pytest.fail("code of the mechanism was run")


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        return _never() if name in ("__mro__", "__module__", "__dict__") else type.__getattribute__(cls, name)


class Attributes(metaclass=Meta):
    __getattr__ = _never
    __class__ = property(_never)
    __eq__, __hash__, __bool__, __len__ = _never, _never, _never, _never
    shown = property(_never)

    def __init__(self) -> None:
        object.__setattr__(self, "kept", 0.25)

    def __getattribute__(self, name: str) -> Any:
        return _never()


class Slots:
    __slots__ = ("empty", "kept")
    __getattr__ = _never

    def __init__(self) -> None:
        self.kept = 0.25


class Items(list[float]):
    __iter__, __len__, __getitem__ = _never, _never, _never


class Values(dict[str, float]):
    __iter__, values, keys = _never, _never, _never


class Table(Mapping[str, float]):
    """A table like that of a database, whose rows are fetched on access."""

    def __init__(self) -> None:
        self.kept = 0.25

    __getitem__, __iter__, __len__ = _never, _never, _never


class Whole(int):
    __hash__, __eq__, __int__ = _never, _never, _never


class Real(float):
    __hash__, __eq__, __float__ = _never, _never, _never


class Array(np.ndarray[Any, Any]):
    ravel, __array_ufunc__, __getitem__ = _never, _never, _never  # type: ignore[assignment]
    dtype = property(_never)


class OfNoModule:
    __module__ = 5  # type: ignore[assignment]
    kept = 0.25


class Lazy(types.ModuleType):
    __getattribute__ = _never


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (Attributes(), 0.25), (Slots(), 0.25), (Items([0.25]), 0.25), (Values(a=0.25), 0.25), (Table(), 0.25),
        (Whole(3), 3), (Real(0.25), 0.25), (np.array([0.25]).view(Array), 0.25), (OfNoModule(), 0.25),
        (types.MappingProxyType(Values(a=0.25)), 0.25), (Lazy("lazy"), None),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_no_code_of_the_mechanism_is_run(value: Any, kept: float | None) -> None:
    def release(dataset: Any, rng: Any) -> Any:
        return value

    found = held_numbers(release)
    assert kept in found if kept is not None else not found


def test_a_cycle_ends() -> None:
    cycle: list[Any] = [0.25]
    cycle.append({"a": cycle})
    assert held_numbers(cycle) == {0.25: 1}


def test_enormous_state_is_searched_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 containers of 2,000 numbers hold 40 million numbers."""
    monkeypatch.setattr(held, "_MAX_NUMBERS", 10_000)
    assert held_numbers([[np.arange(2_000.0) for _ in range(100)]]).total() <= 12_000
    assert held_numbers([[0.5] * 2_000 for _ in range(100)]).total() <= 10_000
    chain: list[Any] = []
    for _ in range(500):
        chain = [*range(1_000), chain]
    assert held_numbers(chain).total() <= 10_000


def test_a_violation_is_reported_although_the_mechanism_holds_an_unreadable_value() -> None:
    class Rows(Mapping[int, float]):
        def __getitem__(self, row: int) -> float:
            raise OSError("the connection was lost")

        def __iter__(self) -> Iterator[int]:
            return iter([1])

        def __len__(self) -> int:
            return 1

    class Noisy:
        rows, runs = Rows(), 0

        def __call__(self, dataset: list[int], rng: np.random.Generator) -> float:
            self.runs += 1
            return dataset[0] + 0.2 * float(rng.laplace())

    result = audit(Noisy(), "pure(epsilon=1)", Pair([0], [1]), trials=1000, seed=0, confidence=0.8)
    assert result.verdict is Verdict.VIOLATION
