"""Messages about common mistakes of users: in results, in repeated runs, and in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from dpaudit import (
    ApproxDP,
    AuditResult,
    GaussianDP,
    MechanismError,
    Pair,
    audit,
    plan,
)
from dpaudit.text import WarningCode, has_code

from .test_config_mistakes import CONFIG, python

Command = Callable[..., Result]


def test_a_quiet_run_still_says_why_an_audit_is_inconclusive(tmp_path: Path, command: Command) -> None:
    config = CONFIG.replace("d1: [1]", "d1: [0]")
    assert config != CONFIG
    (tmp_path / "c.yaml").write_text(config)
    done = command("run", "-q", "c.yaml", "--no-pdf")
    assert done.exit_code == 3
    assert "d0 and d1 are equal" in done.stderr


def test_a_quiet_run_shows_the_warnings_that_concern_its_verdict(tmp_path: Path, command: Command) -> None:
    """No violation was found; the seed is fixed, so the test does not fail by chance."""
    (tmp_path / "mine.py").write_text("def appends(d, rng):\n    d.append(1)\n    return rng.normal()\n")
    config = CONFIG.replace(*python("appends"))
    (tmp_path / "c.yaml").write_text(config.replace("trials: 60", "trials: 600"))
    done = command("run", "-q", "c.yaml", "--no-pdf")
    assert done.exit_code == 0
    (warning,) = done.stderr.splitlines()
    assert "no attack predicted the dataset of new outputs clearly better than a guess" in warning
    result = AuditResult.from_json(tmp_path / "dpaudit-results" / "noise.json")
    (harmless,) = (words for words in result.warnings if has_code(words, WarningCode.HARMLESS))
    assert "changes its dataset in place" in harmless


def test_a_result_that_replaces_another_is_named(tmp_path: Path, command: Command) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    assert "replaced" not in command("run", "c.yaml", "--no-pdf").stderr
    assert "noise.json replaced the result of an earlier run" in command("run", "c.yaml", "--no-pdf").stderr


def noisy(dataset: Any, rng: np.random.Generator) -> float:
    return float(dataset[0] + rng.normal())


PAIR = Pair([0], [1])
PYTHON_MISTAKES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "claim is a number": (
        lambda: audit(noisy, 1.0, PAIR, seed=0),  # type: ignore[arg-type]
        TypeError,
        'claim must be a claim such as PureDP(1) or "pure(epsilon=1)", got 1.0',
    ),
    "claim is a pair of numbers": (
        lambda: audit(noisy, (1, 1e-5), PAIR, seed=0),  # type: ignore[arg-type]
        TypeError,
        "claim must be a claim such as ApproxDP(epsilon=1, delta=1e-05), got (1, 1e-05)",
    ),
    "claim is misspelt": (lambda: audit(noisy, "gausian(mu=1)", PAIR, seed=0), ValueError, "did you mean gaussian?"),
    "pair is a tuple of datasets": (
        lambda: audit(noisy, "pure(epsilon=1)", ([0], [1]), seed=0),  # type: ignore[arg-type]
        TypeError,
        "pairs[0] is [0]: write Pair([0], [1])",
    ),
    "claim of a plan is a number": (
        lambda: plan(1.0, GaussianDP(1)),  # type: ignore[arg-type]
        TypeError,
        'claim must be a claim such as PureDP(1) or "pure(epsilon=1)", got 1.0',
    ),
    "store is a number": (
        lambda: audit(noisy, "pure(epsilon=1)", PAIR, store=3, seed=0),  # type: ignore[arg-type]
        TypeError,
        'store must be the path of a file, such as "release.trials", got 3',
    ),
    "detect is a factor": (
        lambda: audit(noisy, "pure(epsilon=1)", PAIR, detect=1.2, seed=0),  # type: ignore[arg-type]
        TypeError,
        "factors such as 1.2 are for assert_private, got 1.2",
    ),
    "confidence in percent": (
        lambda: audit(noisy, "pure(epsilon=1)", PAIR, confidence=95, seed=0),
        ValueError,
        "confidence must lie strictly between 0 and 1, got 95; did you mean 0.95?",
    ),
    "trials are no whole number": (
        lambda: audit(noisy, "pure(epsilon=1)", PAIR, trials=1.5, seed=0),  # type: ignore[arg-type]
        ValueError,
        "trials must be a whole number",
    ),
    "delta forgotten": (
        lambda: ApproxDP(1.0),  # type: ignore[call-arg]
        TypeError,
        "write ApproxDP(epsilon=..., delta=...)",
    ),
    "one argument": (
        lambda: audit(lambda d: 1, "pure(epsilon=1)", PAIR, seed=0),
        MechanismError,
        "takes (d), but a mechanism is called with (dataset, rng)",
    ),
    "@batched forgotten": (
        lambda: audit(lambda d, n, rng: [1] * n, "pure(epsilon=1)", PAIR, seed=0),
        MechanismError,
        "@batched in Python",
    ),
    "class instead of an object": (
        lambda: audit(AuditResult, "pure(epsilon=1)", PAIR, seed=0),
        MechanismError,
        "is a class",
    ),
}


@pytest.mark.parametrize("mistake", PYTHON_MISTAKES)
def test_a_mistake_in_python_is_explained(mistake: str) -> None:
    made, kind, message = PYTHON_MISTAKES[mistake]
    with pytest.raises(kind) as raised:
        made()
    assert message in str(raised.value)
    assert len(str(raised.value)) < 400
