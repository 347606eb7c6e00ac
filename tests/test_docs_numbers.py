"""Numbers in the documentation that no code block on the page prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaudit import plan

CHOOSING = Path(__file__).parent.parent / "docs" / "choosing.md"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "truths"),
    [
        ("gaussian(mu=1)", ("gaussian(mu=2)", "gaussian(mu=1.5)", "gaussian(mu=1.2)", "gaussian(mu=1.1)")),
        ("approximate(epsilon=4.38, delta=1e-5)", ("gaussian(mu=1.2)",)),
    ],
)
def test_mean_numbers_of_runs_are_those_that_plan_estimates(claim: str, truths: tuple[str, ...]) -> None:
    """`plan` simulates with a fixed seed, and the page shows its numbers with three digits."""
    text = CHOOSING.read_text(encoding="utf-8")
    for truth in truths:
        mean = plan(claim, truth).mean_trials
        assert mean is not None
        assert f" {float(f'{mean:.3g}'):,.0f} |" in text, (claim, truth, mean)
