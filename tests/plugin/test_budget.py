"""The shares of a budget sum to it, and evidence accumulated from run to run respects it."""

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.testing.session import Allowance, Baseline, Chain, Entry, Record, Settings, lock

BUDGET = 0.01


def test_the_audits_of_a_test_share_its_budget() -> None:
    allowance = Allowance(node="t", share=BUDGET, settings=Settings(false_alarm=BUDGET))
    shares = [allowance.significance(allowance.next_chain("pure(epsilon=1)")) for _ in range(2000)]
    assert shares == sorted(shares, reverse=True)
    assert BUDGET * 0.999 < sum(shares) < BUDGET


@pytest.mark.parametrize("founders", [1, 2, 30])
def test_part_of_the_budget_is_left_for_later_tests(founders: int) -> None:
    baseline = Baseline(false_alarm=BUDGET)
    shares = [baseline.share(number, founders) for number in range(1, 100_000)]
    assert shares == sorted(shares, reverse=True)
    assert BUDGET * 0.999 < sum(shares) < BUDGET * (1 + 1e-9)


def test_new_tests_get_free_numbers() -> None:
    baseline = Baseline(false_alarm=BUDGET, tests={"b": Entry(number=2)})
    assert [entry.number for entry in baseline.entries(["a", "b", "c"]).values()] == [1, 2, 3]


def test_seeds_differ_and_are_stable() -> None:
    def seed(node: str, call: int, run: int, base: int) -> int:
        return Allowance(node=node, share=1.0, settings=Settings(false_alarm=0.1, seed=base, run=run)).seed(call)

    seeds = [seed(*address) for address in itertools.product("ab", (1, 2), (0, 1), (0, 1))]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [seed(*address) for address in itertools.product("ab", (1, 2), (0, 1), (0, 1))]


def record(chain: Chain) -> Record:
    return {"node": "t", "number": 1, "chain": dataclasses.asdict(chain), "outputs": [f"0:{chain.call}"]}


def test_another_claim_and_a_restart_begin_a_chain_with_another_share() -> None:
    """Numbers of a test's chains, which decide their shares, are never used twice."""
    settings = Settings(false_alarm=BUDGET, run=1)

    def one_run(
        baseline: Baseline, claims: str, restart: bool = False, refuted: str = ""
    ) -> tuple[Baseline, list[int]]:
        entry = baseline.tests.get("t", Entry(number=1))
        allowance = Allowance(node="t", share=1.0, settings=settings, entry=entry, restart=restart)
        for claim in claims:
            chain = allowance.next_chain(claim)
            if chain.refuted:
                continue
            done = chain.after(log_e=0.0, refuted=refuted if claim == "b" else "", mu_lower=0.0, trials=1)
            allowance.records.append(record(done))
        return baseline.after(allowance.records, founders=1), [r["chain"]["number"] for r in allowance.records]

    baseline, numbers = one_run(Baseline(false_alarm=BUDGET), "ab")
    assert numbers == [1, 2]
    baseline, numbers = one_run(baseline, "abc", refuted="today")
    assert numbers == [1, 2, 3]
    baseline, numbers = one_run(baseline, "abc")
    assert numbers == [1, 3]
    baseline, numbers = one_run(baseline, "dbc", restart=True)
    assert numbers == [4, 5, 3]
    baseline, numbers = one_run(baseline, "abc")
    assert numbers == [6, 5, 3]
    assert {c.number: c.runs for c in baseline.tests["t"].chains} == {1: 3, 2: 2, 3: 4, 4: 1, 5: 2, 6: 1}


def plain_wealth(gains: list[float]) -> float:
    n = len(gains)
    invested = sum(math.exp(sum(gains[k - 1 :])) / (k * (k + 1)) for k in range(1, n + 1))
    return invested + 1 / (n + 1)


def test_the_wealth_is_the_mean_of_bets_begun_in_every_run() -> None:
    rng = np.random.default_rng(5)
    gains: list[float] = []
    chain = Chain(call=1, number=1, claim="")
    for gain in rng.normal(-0.5, 2, 40):
        needed = -math.log(chain.significance(BUDGET))
        assert plain_wealth([*gains, needed]) == pytest.approx(1 / BUDGET)  # a run may stop exactly at this wealth
        gains.append(float(gain))
        chain = chain.after(log_e=gains[-1], refuted="", mu_lower=0.0, trials=1)
        assert math.exp(chain.log_invested) + 1 / (chain.runs + 1) == pytest.approx(plain_wealth(gains))


def test_a_claim_that_stays_true_is_refuted_within_the_budget() -> None:
    """There are 1,000 histories of 40 runs, each a fair game with log-normal wealth.  Fails by chance < 1 in 10**6."""
    rng, budget, refuted = np.random.default_rng(11), 0.05, 0
    for _ in range(1000):
        chain = Chain(call=1, number=1, claim="")
        for gain in rng.normal(-0.5, 1.0, 40):  # E[exp] = 1
            if gain >= -math.log(chain.significance(budget)):
                refuted += 1
                break
            chain = chain.after(log_e=float(gain), refuted="", mu_lower=0.0, trials=1)
    assert refuted <= 86  # 0.999999 quantile of Binomial(1000, 0.05)


def test_earlier_losses_do_not_hide_a_later_violation() -> None:
    chain = Chain(call=1, number=1, claim="")
    for _ in range(365):
        chain = chain.after(log_e=-5.0, refuted="", mu_lower=0.0, trials=1)
    assert -math.log(chain.significance(1e-4)) < math.log(1e4) + math.log(366 * 367) + 0.01


def test_a_run_that_may_repeat_an_earlier_one_never_adds_wealth() -> None:
    chain = Chain(call=1, number=1, claim="c")
    for log_e in (0.7, -2.0, 3.0, 0.0):
        after = chain.after(log_e=min(log_e, 0.0), refuted="", mu_lower=0.0, trials=1)
        wealth = [math.exp(one.log_invested) + 1 / (one.runs + 1) for one in (chain, after)]
        assert wealth[1] <= wealth[0] + 1e-12
        chain = after.after(log_e=0.3, refuted="", mu_lower=0.0, trials=1)


pytest_plugins = ["pytester"]
Run = Callable[..., Any]

SUITE = """
SIGMA = {sigma}

def test_it(dpaudit):
    dpaudit.assert_private(noise(SIGMA), claim=CLAIM, pairs=BIT, attacks="threshold")
"""
FILE = ("--dpaudit-baseline", "b.json")


def chains(folder: Path) -> list[dict[str, Any]]:
    (entry,) = json.loads((folder / "b.json").read_text())["tests"].values()
    found: list[dict[str, Any]] = entry["chains"]
    return found


def test_small_violations_add_up_and_stay_until_they_are_corrected(run: Run, pytester: pytest.Pytester) -> None:
    """Each session makes fewer runs than a single session would need."""
    wrong, right = SUITE.format(sigma=0.6), SUITE.format(sigma=1.0)
    options = (*FILE, "--dpaudit-trials", "60", "--dpaudit-report", "found")
    nights = [run(wrong, *options) for _ in range(2)]
    while nights[-1].code == 0 and len(nights) < 15:
        nights.append(run(None, *options))
    assert 3 <= len(nights) < 15
    assert "VIOLATION of gaussian(mu=1)" in nights[-1].out
    assert f"together with {len(nights) - 1} earlier runs of the suite, under one budget" in nights[-1].out
    assert chains(pytester.path)[0]["runs"] == len(nights)
    assert "fails any session up to this one, number 2, with probability at most 1 in 1,000" in nights[1].out

    again = run(right, *options)
    assert again.counts == {"failed": 1}
    assert "and recorded in the baseline" in again.out
    assert run(None, *options, "--dpaudit-restart").counts == {"passed": 1}
    assert run(None, *options).counts == {"passed": 1}
    assert [(chain["number"], chain["runs"]) for chain in chains(pytester.path)] == [(1, len(nights)), (2, 2)]


def test_seeds_change_from_run_to_run_and_drift_is_reported(run: Run, pytester: pytest.Pytester) -> None:
    options = (*FILE, "--dpaudit-trials", "300")
    code = SUITE.format(sigma=1.6) + "\n    print(noise(1).sample([0], 1, __import__('numpy').random.default_rng(1)))"
    run(code, *options)
    first = float(chains(pytester.path)[0]["log_invested"])
    assert "drift: " not in run(None, *options).out
    second = float(chains(pytester.path)[0]["log_invested"])
    assert first != second
    done = run(SUITE.format(sigma=1.05), *options)
    assert done.counts == {"passed": 1}
    assert "drift: test_project.py::test_it: certified mu >= 0." in done.out


def test_of_two_sessions_at_once_one_is_refused_before_any_test(run: Run, pytester: pytest.Pytester) -> None:
    other = lock(pytester.path / "b.json")
    done = run(SUITE.format(sigma=1.0), *FILE)
    other.release()
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "--dpaudit-baseline: another session is using " in done.err
    assert run(None, *FILE, "--dpaudit-trials", "100").code == 0
