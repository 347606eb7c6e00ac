"""The gallery: all configs follow its rules, and the known differences appear even without the engine."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, chi2_contingency
from typer.testing import CliRunner

from dpaudit.cli.app import app
from dpaudit.config.files import read_configs
from dpaudit.config.planned import PlannedAudit
from dpaudit.running import IsolatedMechanism

from .programs import needs_registry

GALLERY = Path(__file__).parents[2] / "configs" / "gallery"
AUDITS = {audit.config.name: audit for audit in read_configs([GALLERY])}
Event = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


@pytest.mark.parametrize("name", AUDITS)
def test_every_case_cites_pins_and_expects(name: str) -> None:
    config = AUDITS[name].config
    assert config.source
    assert config.expect
    assert config.claim == "from mechanism"
    assert "==" in (config.mechanism.requires or [""])[0]
    assert (GALLERY / str(config.mechanism.python).split(":")[0]).is_file()


def settings(name: str) -> dict[str, Any]:
    about = AUDITS[name].config.model_dump(exclude={"name", "source", "expect"})
    del about["mechanism"]["requires"], about["mechanism"]["python_version"]
    return about


@pytest.mark.parametrize(
    ("affected", "control"),
    [
        ("opendp-0.14.1-discrete-laplace-scale-3", "opendp-0.14.2-discrete-laplace-scale-3"),
        ("opendp-0.14.1-discrete-laplace-scale-10", "opendp-0.14.2-discrete-laplace-scale-10"),
        ("opendp-0.4.0-randomised-response", "opendp-0.5.0-randomised-response"),
        ("opendp-0.4.0-geometric-time", "opendp-0.16.0-geometric-time"),
        ("pure-ldp-1.1.2-unary-encoding", "pure-ldp-1.2.0-unary-encoding"),
        ("opacus-1.5.3-ghost-clipping-bias", "opacus-1.5.4-ghost-clipping-bias"),
        ("opacus-1.5.2-ghost-clipping-norm", "opacus-1.5.3-ghost-clipping-norm"),
        ("opendp-0.14.2-randomised-response-bits", "opendp-0.15.0-randomised-response-bits"),
        ("datasynthesizer-0.1.6-conditional-distributions", "datasynthesizer-0.1.7-conditional-distributions"),
        ("nvflare-2.0.16-sparse-vector", "nvflare-2.8.0-sparse-vector"),
        ("smartnoise-sql-1.0.1-approximate-bounds", "smartnoise-sql-1.0.2-approximate-bounds"),
    ],
)
def test_affected_and_control_differ_only_in_the_version(affected: str, control: str) -> None:
    assert settings(affected) == settings(control)


@pytest.mark.parametrize(
    ("affected", "control"),
    [
        ("opendp-0.16.0-redefined-column", "opendp-0.16.0-unchanged-column"),
        ("opendp-0.16.0-physical-codes", "opendp-0.16.0-comparison-codes"),
        ("opendp-0.16.0-filled-with-nan", "opendp-0.16.0-filled-with-zero"),
        ("opendp-0.16.0-count-after-cast", "opendp-0.16.0-count-after-filling"),
        ("opendp-smartnoise-0.1.1-unbounded-sum", "opendp-smartnoise-0.1.1-bounded-sum"),
        ("diffprivlib-0.6.6-regression", "diffprivlib-0.6.6-regression-symmetric"),
    ],
)
def test_affected_and_control_of_one_release_differ_only_in_the_parameters(affected: str, control: str) -> None:
    first, second = (AUDITS[name].config.model_dump(exclude={"name", "expect"}) for name in (affected, control))
    assert first["mechanism"].pop("params") != second["mechanism"].pop("params")
    assert first == second


@pytest.fixture
def _kept_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPAUDIT_CACHE")


def fine(outputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = (abs(outputs) < 0.5) & (outputs * 2.0**53 != np.round(outputs * 2.0**53))
    return found


def below(period: int, residue: int) -> Event:
    return lambda outputs: (outputs < 100) & ((100 - outputs) % period == residue)


EVENTS: dict[str, tuple[Event, int, int]] = {  # event, runs, index of the favoured dataset
    "diffprivlib-0.6.6-laplace": (fine, 1_000, 0),
    "diffprivlib-0.6.6-gaussian-analytic": (fine, 1_000, 0),
    "diffprivlib-0.6.6-snapping": (fine, 1_000, 0),
    "diffprivlib-0.4.1-laplace": (fine, 1_000, 0),
    "opendp-0.14.1-discrete-laplace-scale-3": (below(3, 2), 50_000, 0),
    "opendp-0.14.2-discrete-laplace-scale-3": (below(3, 2), 50_000, 0),
    "opendp-0.14.1-discrete-laplace-scale-10": (below(10, 8), 200_000, 0),
    "opendp-0.14.2-discrete-laplace-scale-10": (below(10, 8), 200_000, 0),
    "opacus-1.6.0-gdp-accountant": (lambda outputs: outputs > 1.5, 400_000, 1),
    "opacus-1.6.0-prv-accountant": (lambda outputs: outputs > 1.5, 400_000, 1),
    "opacus-1.5.3-ghost-clipping-bias": (lambda outputs: outputs > 24.5, 200, 1),
    "opacus-1.5.4-ghost-clipping-bias": (lambda outputs: outputs > 3.5, 200, 1),
    "opacus-1.5.2-ghost-clipping-norm": (lambda outputs: outputs > 24.5, 200, 1),
    "opacus-1.5.3-ghost-clipping-norm": (lambda outputs: outputs > 3.5, 200, 1),
    "opendp-0.14.2-randomised-response-bits": (lambda outputs: outputs >= 128, 300, 1),
    "opendp-0.15.0-randomised-response-bits": (lambda outputs: outputs >= 128, 300, 1),
    "opendp-0.16.0-redefined-column": (lambda outputs: outputs > 150, 200, 1),
    "opendp-0.16.0-unchanged-column": (lambda outputs: outputs > 5, 200, 1),
    "opendp-0.16.0-physical-codes": (lambda outputs: outputs > 5, 200, 1),
    "opendp-0.16.0-comparison-codes": (lambda outputs: outputs > 0, 200, 1),
    "opendp-0.16.0-filled-with-nan": (lambda outputs: outputs > 5, 200, 0),
    "opendp-0.16.0-filled-with-zero": (lambda outputs: outputs > 10, 200, 0),
    "opendp-0.16.0-count-after-cast": (lambda outputs: outputs >= 5, 200, 0),
    "opendp-0.16.0-count-after-filling": (lambda outputs: outputs >= 5, 200, 0),
    "diffprivlib-0.6.6-regression": (lambda outputs: abs(outputs) > 100, 300, 0),
    "diffprivlib-0.6.6-regression-symmetric": (lambda outputs: abs(outputs) > 100, 300, 0),
    "nvflare-2.0.16-sparse-vector": (lambda outputs: (outputs == [0.9, 0.3, -0.2, 0.05]).any(axis=1), 300, 0),
    "nvflare-2.8.0-sparse-vector": (lambda outputs: (outputs == [0.9, 0.3, -0.2, 0.05]).any(axis=1), 300, 0),
    "opendp-smartnoise-0.1.1-unbounded-sum": (lambda outputs: outputs > 500, 30, 1),
    "opendp-smartnoise-0.1.1-bounded-sum": (lambda outputs: outputs > 500, 30, 1),
}


def rates(audit: PlannedAudit, event: Event, runs: int, favoured: int) -> tuple[float, float]:
    """Return a lower bound of the rate on the favoured dataset and an upper bound on the other.

    Each is wrong with probability 1e-4 (Clopper & Pearson 1934).
    """
    mechanism, _ = audit.load()
    pair, rng = audit.pairs[0], np.random.default_rng(5)
    counts = [int(event(np.array(mechanism.sample(d, runs, rng), dtype=float)).sum()) for d in (pair.d0, pair.d1)]
    more, fewer = counts[favoured], counts[1 - favoured]
    least = beta.ppf(1e-4, more, runs - more + 1) if more else 0.0
    return float(least), float(beta.ppf(1 - 1e-4, fewer + 1, runs - fewer))


@needs_registry
@pytest.mark.slow
@pytest.mark.usefixtures("_kept_environments")
@pytest.mark.parametrize("name", EVENTS)
def test_one_event_distinguishes_affected_from_control(name: str) -> None:
    """A control fails by chance < 2 in 10**4.  The test installs from a package registry into the user's cache."""
    audit = AUDITS[name]
    _, claim = audit.load()
    least, most = rates(audit, *EVENTS[name])
    refuted = least > 1 - float(claim.beta(most))
    assert refuted is (audit.config.expect == "violation")


@needs_registry
@pytest.mark.slow
@pytest.mark.usefixtures("_kept_environments")
@pytest.mark.parametrize("name", ["opendp-0.14.1-discrete-laplace-scale-3", "opendp-0.14.2-discrete-laplace-scale-3"])
def test_a_vector_of_releases_has_the_law_of_single_releases(name: str, tmp_path: Path) -> None:
    """Fails by chance 1 in 10**4 (chi-squared, 10 000 runs of each)."""
    audit = AUDITS[name]
    many, _ = audit.load()
    (tmp_path / "single.py").write_text(
        (GALLERY / "opendp_laplace.py").read_text()
        + "\n\nclass Single(Laplace):\n    def sample(self, dataset, n, rng):\n"
        "        return [self.release(dataset) for _ in range(n)]\n"
    )
    single = IsolatedMechanism(address="single.py:Single", requires=many.requires, params=many.params, folder=tmp_path)
    rng = np.random.default_rng(0)
    tables = [np.clip(np.array(mechanism.sample(100, 10_000, rng)) - 90, 0, 20) for mechanism in (many, single)]
    counts = [np.bincount(table, minlength=21) for table in tables]
    assert chi2_contingency(counts).pvalue > 1e-4


@pytest.mark.slow
@needs_registry
@pytest.mark.usefixtures("_kept_environments")
def test_two_releases_side_by_side(tmp_path: Path) -> None:
    """Fails by chance < 1 in 100,000: the affected version needs 25 to 130 of the 1,000 trials."""
    config = GALLERY / "opendp_randomised_response.yaml"
    versions = ["--with", "opendp==0.4.0", "--with", "opendp==0.5.0"]
    ran = CliRunner().invoke(app, ["compare", str(config), *versions, "--trials", "1000", "-q", "-o", str(tmp_path)])
    assert ran.exit_code == 1, ran.output
    verdicts = {file.stem: json.loads(file.read_text())["verdict"] for file in tmp_path.glob("*.json")}
    assert verdicts["opendp-0.4.0-randomised-response"] == "violation"
    assert set(verdicts) == {"opendp-0.4.0-randomised-response", "opendp-0.5.0-randomised-response"}
    assert (tmp_path / "comparison.pdf").read_bytes().startswith(b"%PDF")
