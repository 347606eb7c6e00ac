"""Compares what a result states with what its replay runs.

A replay tests the claim of the result, on the pair of its witness.  The mechanism, the pairs and the attacks come from
a config or a test.  Anybody may have edited the file of the result, so its statements may differ from that config or
test.  Then fresh runs confirm nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.provenance import mechanism_name
from dpaudit.engine.replay_outcome import Replay
from dpaudit.engine.training_record import training_words
from dpaudit.inference.sequential.planned import Planned
from dpaudit.learning.attack import Attack
from dpaudit.pairs.brief import MAX_DATASET, brief
from dpaudit.pairs.difference import hidden_difference
from dpaudit.pairs.pair import Pair, distinct
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import key
from dpaudit.result.values import PairRow, Witness
from dpaudit.sampling.runs import resolved
from dpaudit.settings.audit import DEFAULTS
from dpaudit.text.printable import one_line, shortened
from dpaudit.values import Dataset

_MAX_SHOWN = 200  # maximum number of characters of a statement in a message
_MIN_TEXT = 40  # minimum length of the text of a dataset that an earlier version of dpaudit may have cut
_CLOSE = 1e-9  # relative difference of numbers in claims that accountants compute on different machines
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
_MAX_ADDRESS = len("at 0x") + 16  # characters of an address of 64 bits
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:e[+-]?\d+)?")
_WORDS = {"claim_stated_by": "author of the claim"}
_PLAIN = (bool, int, float, str, bytes, type(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What the config or the test of an audit states about this audit."""

    kind: str
    claim: TradeoffFunction
    name: str
    method: str = DEFAULTS.method
    violations: tuple[TradeoffFunction, ...] | None = None
    recorded: Mapping[str, str] = field(default_factory=dict)


def compared(found: Replay, origin: Origin, mechanism: object, pairs: Sequence[Pair]) -> Replay:
    """Return a replay with the differences between its result and the config or the test that it ran."""
    result = found.result
    about_pairs = [line for row in result.pairs for line in _of_row(row, pairs)]
    if result.witness is not None:
        about_pairs += pair_differences(result, pair_of(result.witness, pairs))
    differences = tuple(dict.fromkeys([*_statements(result, origin, mechanism), *about_pairs]))
    changes = tuple(line for line in found.changes if line not in differences)
    return replace(found, differences=differences, origin=origin.kind, changes=changes)


def _statements(result: AuditResult, origin: Origin, mechanism: object) -> Iterator[str]:
    """Yield a line for each statement of a result, other than its pairs, that differs from the origin."""
    if not same_claim(result.claim, origin.claim):
        yield _differs("claim", result.claim.label, origin.claim.label)
    yield from _planned_differences(result.evidence.planned, origin.violations)
    about = result.provenance
    recorded = {"mechanism": mechanism_name(mechanism), **origin.recorded}
    stated = {name: about.other.get(key(name), getattr(about, name)) for name in recorded}
    training = None if result.training is None else result.training.training
    for what, one, other in (
        ("name", result.name, origin.name),
        ("method", result.method, origin.method),
        ("training", training, training_words(resolved(mechanism))),
        *((_WORDS.get(name, name), stated[name], recorded[name]) for name in recorded),
    ):
        if one is not None and one != other:
            yield _differs(what, one, other)


def _planned_differences(planned: Planned | None, violations: tuple[TradeoffFunction, ...] | None) -> Iterator[str]:
    """Yield a line if a result states planned violations other than those of its config or test."""
    if planned is None or violations is None:
        return
    if len(planned.violations) == len(violations) and all(map(same_claim, planned.violations, violations)):
        return
    stated, here = (", ".join(one.label for one in claims) for claims in (planned.violations, violations))
    yield _differs("violation to detect", stated, here)


def _differs(what: str, stated: object, here: object) -> str:
    shown = (one_line(shortened(str(one), _MAX_SHOWN)) or "nothing" for one in (stated, here))
    return "the {} is {} in the result, but {} in the replay".format(what, *shown)


def same_claim(one: TradeoffFunction, other: TradeoffFunction) -> bool:
    """Whether two claims have the same text, except for rounding errors of their numbers."""
    a, b = str(one), str(other)
    if a == b:
        return True
    if _NUMBER.sub("0", a) != _NUMBER.sub("0", b):
        return False
    numbers = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    return all(math.isclose(float(x), float(y), rel_tol=_CLOSE) for x, y in numbers)


def pair_of(witness: Witness, pairs: Sequence[Pair]) -> Pair:
    """Return the pair of a witness."""
    for pair in distinct(pairs):
        if witness.pair in _labels(pair):
            return pair
    raise ValueError(
        f"the witness belongs to the pair {witness.pair}, which is not among the given pairs: "
        f"{', '.join(map(str, pairs))}"
    )


def _labels(pair: Pair) -> tuple[str, str]:
    return str(pair), pair.shortened  # earlier versions recorded the short label


def pair_differences(result: AuditResult, pair: Pair) -> list[str]:
    """Describe how the pair of a result's witness differs from the pair of the replay; [] if they agree."""
    found = [list(_of_pair(row, pair)) for row in result.pairs if row.label in _labels(pair)]
    if not found:
        return [f"the result has no row for the pair {one_line(str(pair))} of its witness"]
    return min(found, key=len)  # several pairs of an audit may have the same label


def attack_changes(result: AuditResult, attacks: Sequence[Attack]) -> list[str]:
    """Describe how the attacks of a result differ from those of the replay; [] if they agree."""
    stated, used = sorted(row.name for row in result.attacks), sorted(attack.name for attack in attacks)
    return [] if stated == used else [_differs("attacks", ", ".join(stated), ", ".join(used))]


def _of_row(row: PairRow, pairs: Sequence[Pair]) -> list[str]:
    """Describe how the pair in a row of a result differs from the pairs with the same label; [] if one agrees."""
    same = [pair for pair in pairs if row.label in _labels(pair)]
    if not same:
        return [f"the pair {one_line(shortened(row.label, _MAX_SHOWN))} is in the result, but not in the replay"]
    return min((list(_of_pair(row, pair)) for pair in same), key=len)


def _of_pair(row: PairRow, pair: Pair) -> Iterator[str]:
    where = f" of the pair {shortened(row.label, _MAX_SHOWN)}"
    if row.relation != pair.relation:
        yield _differs(f"relation{where}", row.relation, pair.relation)
    for name, stated, dataset in (("d0", row.d0, pair.d0), ("d1", row.d1, pair.d1)):
        if not _shows(stated, now := brief(dataset, MAX_DATASET), dataset):
            cut = "; both texts are cut, so only their beginnings were compared"
            about = cut if stated.endswith("…") and now.endswith("…") else ""
            yield _differs(f"dataset {name}{where}", stated, now) + about
    if row.difference and row.difference != (words := hidden_difference(pair.d0, pair.d1, MAX_DATASET)):
        yield _differs(f"difference{where}", row.difference, words)


def _shows(stated: str, now: str, dataset: Dataset) -> bool:
    """Whether a text in a result is the short text of a dataset, which is `now` in this process."""
    if stated == now:
        return True
    if stated.endswith("…") and len(stated) >= _MIN_TEXT and stated == brief(dataset, len(stated)):
        return True
    if _is_plain(dataset) or len(stated) > MAX_DATASET:
        return False
    # The text of an object may hold its address, and that of a set depends on the process.
    one, other = (_ADDRESS.sub("at", text) for text in (stated, now))
    if stated.endswith("…") and now.endswith("…"):  # the length of the addresses determines where a text is cut
        shown = min(len(one), len(other)) - _MAX_ADDRESS
        return shown > 0 and one[:shown] == other[:shown]
    return _sorted_sets(one) == _sorted_sets(other)


def _sorted_sets(text: str) -> str:
    """Return the text of an object with the elements of each set in sorted order.  A dictionary keeps its order."""
    levels: list[tuple[str, list[str]]] = [("", [""])]  # opening bracket, and the elements after it
    for letter in text:
        opening, elements = levels[-1]
        if letter in "([{":
            levels.append((letter, [""]))
        elif letter in ")]}" and opening:
            levels.pop()
            if opening == "{" and not any(":" in element for element in elements):
                elements = sorted(element.strip() for element in elements)
            levels[-1][1][-1] += opening + ",".join(elements) + letter
        elif letter == ",":
            elements.append("")
        else:
            elements[-1] += letter
    return "".join(opening + ",".join(elements) for opening, elements in levels)


def _is_plain(dataset: Dataset) -> bool:
    """Whether a dataset consists of plain values as in a config, whose text is always the same."""
    left = [dataset]
    while left:
        one = left.pop()
        if type(one) is dict:
            left += [*one.keys(), *one.values()]
        elif type(one) in (list, tuple):
            left += one
        elif type(one) not in _PLAIN:
            return False
    return True
