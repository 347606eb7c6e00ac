"""One guarantee for one command: it bounds the false alarms of all its audits together."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from dpaudit import AuditResult, GaussianDP, Pair, Verdict, audit, batched
from dpaudit.cli.options import RunOptions
from dpaudit.cli.runner import InOrder
from dpaudit.config.files import read_configs
from dpaudit.inference.e_bh import shared_confidences, significance
from dpaudit.result.provenance import Provenance, key
from dpaudit.result.suite import Promise, named_together, promised_together

Command = Callable[..., Result]

COMMAND, AUDITS, PROMISED = map(key, ("command_number", "command_audits", "command_confidence"))

ONE = (
    "- {{name: {name}, claim: gaussian(mu=1), mechanism: {{builtin: gaussian, params: {{sigma: {sigma}}}}}, "
    "pairs: [{{d0: [0], d1: [1]}}], attacks: threshold, trials: {trials}, seed: 3, confidence: {confidence}}}\n"
)


def configs(file: Path, sigmas: Sequence[float], *, confidence: float = 0.95, trials: int = 60) -> Path:
    audits = (ONE.format(name=f"a{i}", sigma=s, trials=trials, confidence=confidence) for i, s in enumerate(sigmas))
    file.write_text("audits:\n" + "".join(audits))
    return file


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999, 1 - 1e-7, 1 - 1e-12])
@pytest.mark.parametrize("audits", [2, 3, 7, 12, 97, 1000])
def test_significances_of_one_command_add_up_to_no_more_than_it_promises(confidence: float, audits: int) -> None:
    shares = shared_confidences([confidence] * audits)
    assert sum(1 - Fraction(share) for share in shares) <= 1 - Fraction(repr(confidence))
    assert all(0 < share < 1 for share in shares)
    assert Promise.of([confidence] * audits).false_alarm == significance(confidence)


def test_a_promise_that_cannot_be_split_is_refused() -> None:
    with pytest.raises(ValueError, match="too close to 1"):
        shared_confidences([math.nextafter(1.0, 0.0)] * 12)
    with pytest.raises(ValueError, match="strictly between 0 and 1, got 95"):
        shared_confidences([95.0, 0.9])


def test_every_audit_of_run_is_made_at_its_share_and_records_the_command(tmp_path: Path, command: Command) -> None:
    """Fails by chance < 1 in 10**6: the seeds are fixed."""
    configs(tmp_path / "c.yaml", [1.0, 0.2, 1.0])
    done = command("run", "c.yaml", "--no-pdf", "--confirm", "never")
    assert done.exit_code == 1
    found = [AuditResult.from_json(tmp_path / "dpaudit-results" / f"a{i}.json") for i in range(3)]
    assert {result.confidence for result in found} == set(shared_confidences([0.95] * 3))
    assert [result.verdict for result in found][1] is Verdict.VIOLATION
    assert found[1].p_value <= 0.05 / 3
    assert {(result.environment[AUDITS], result.environment[PROMISED]) for result in found} == {(3, 0.95)}
    assert len({result.environment[COMMAND] for result in found}) == 1
    words = (
        "1 of 3 claims refuted.  If all 3 claims were true, this command would refute one or more of them with "
        "probability at most 5 %."
    )
    assert words in done.stdout
    assert "e-BH" not in done.stdout
    assert promised_together(found) == words
    assert named_together(found) == ""


def test_each_keeps_the_confidence_of_every_audit(tmp_path: Path, command: Command) -> None:
    """Fails by chance < 1 in 10**6: the seeds are fixed."""
    configs(tmp_path / "c.yaml", [1.0, 0.2, 1.0], confidence=0.99)
    done = command("run", "c.yaml", "--no-pdf", "--each", "--confirm", "never")
    found = [AuditResult.from_json(tmp_path / "dpaudit-results" / f"a{i}.json") for i in range(3)]
    assert {result.confidence for result in found} == {0.99}
    assert all(COMMAND not in result.environment for result in found)
    assert "1 of 3 claims refuted, each at its own confidence." in done.stdout
    assert "with probability at most 3 %." in done.stdout


def test_confidence_of_the_command_line_is_that_of_the_whole_command(tmp_path: Path, command: Command) -> None:
    """Fails by chance < 1 in 10**6: the seeds are fixed."""
    configs(tmp_path / "c.yaml", [1.0, 1.0])
    done = command("run", "c.yaml", "--no-pdf", "--confidence", "0.999")
    assert "0 of 2 claims refuted.  If all 2 claims were true" in done.stdout
    assert "at most 0.1 %." in done.stdout
    values = json.loads((tmp_path / "dpaudit-results" / "a0.json").read_text())
    assert 1 - values["confidence"] <= 0.0005
    assert values["environment"][PROMISED] == 0.999


def test_audits_that_cannot_be_run_count_among_those_that_share(tmp_path: Path) -> None:
    """The number of audits is fixed before anything runs.  The test uses no randomness."""
    planned = read_configs([configs(tmp_path / "c.yaml", [1.0, 1.0, 1.0], trials=40)])
    outcome = InOrder(planned).run(RunOptions(output=tmp_path / "out", no_pdf=True, quiet=True))
    assert [result.environment[AUDITS] for result in outcome.results] == [3, 3, 3]
    assert {result.confidence for result in outcome.results} == set(shared_confidences([0.95] * 3))


@cache
def audited() -> AuditResult:
    release = batched(lambda d, n, rng: d[0] + rng.normal(size=n))
    return audit(release, GaussianDP(1.0), Pair([0], [1]), trials=40, seed=1, confidence=0.95)


def result(name: str, **changes: Any) -> AuditResult:
    return dataclasses.replace(audited(), name=name, **changes)


def test_results_of_different_commands_are_corrected_by_e_bh() -> None:
    """The test uses no randomness: verdicts and e-values are set."""
    true = result("true", e_value=0.5)
    weak, strong = (result("bad", e_value=e, verdict=Verdict.VIOLATION) for e in (21.0, 40.0))
    stands = named_together([true, strong])
    assert stands.startswith("1 of 2 refuted, each at 95 %.")
    assert stands.endswith("  After an e-BH correction for this, all refutations stand.")
    assert (
        "no refutation stands yet.  To settle it, run all audits in one command, or each with --confidence 0.976."
        in (named_together([true, weak]))
    )
    clear, clearer = (result(name, e_value=1e4, verdict=Verdict.VIOLATION) for name in ("clear", "clearer"))
    assert "After an e-BH correction for this, only the refutation of clear stands." in named_together(
        [true, true, weak, clear]
    )
    assert "only the refutations of clear, clearer stand." in named_together([*[true] * 4, weak, clear, clearer])
    assert named_together([true, true]) == named_together([strong]) == ""


def test_an_inconclusive_audit_is_never_named_whatever_its_wealth_before_the_failure() -> None:
    """The moment before a failing run is no stopping time.  The test uses no randomness."""
    failed = result("failed", e_value=1007.0, verdict=Verdict.INCONCLUSIVE)
    bad = result("bad", e_value=21.0, verdict=Verdict.VIOLATION)
    words = named_together([failed, bad])
    assert "failed" not in words
    assert "no refutation stands yet" in words  # if e = 1007 were counted, `bad` would need only e = 20
    assert "only the refutation of bad stands" not in words


def test_a_shared_promise_is_believed_only_of_results_whose_confidences_add_up_to_it() -> None:
    """The test uses no randomness."""
    about = {COMMAND: "1", AUDITS: 2, PROMISED: 0.95}
    one, other = (
        result(name, provenance=Provenance.read(about), verdict=Verdict.VIOLATION, e_value=50.0) for name in "ab"
    )
    assert promised_together([one, other]) == ""  # each result has the confidence 95 % of a single audit
    share = shared_confidences([0.95] * 2)[0]
    one, other = (dataclasses.replace(found, confidence=share, _computed_at=None) for found in (one, other))
    assert promised_together([one, other]).startswith("2 of 2 claims refuted.")
    part = [
        dataclasses.replace(found, verdict=Verdict.NO_VIOLATION, provenance=Provenance.read({**about, AUDITS: 20}))
        for found in (one, other)
    ]
    assert promised_together(part).startswith(
        "0 of the 2 claims shown refuted; the command had 20 audits.  If all 20 claims were true, this command would"
    )
    stranger = dataclasses.replace(other, provenance=Provenance.read({**about, COMMAND: "2"}))
    assert promised_together([one, stranger]) == ""
    assert promised_together([one, one]) == ""
