"""Sessions of installed libraries keep what they report, and faults planted in them are found."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import Pair, Refused, audit_interactive
from dpaudit.libraries import sessions
from dpaudit.running.sessions import Opens

FOLDER = Path(__file__).parents[2] / "configs" / "sessions"
PAIRS = {"tumult_accountant": Pair(5, 6), "diffprivlib_accountant": Pair([1, 0], [1, 1])}
LIBRARIES = {
    "opendp_compositions": "opendp",
    "tumult_accountant": "tmlt.core",
    "smartnoise_reader": "snsql",
    "diffprivlib_accountant": "diffprivlib",
}
REAL = [("opendp_compositions", name) for name in ("odometer", "privacy_filter")]
REAL += [("tumult_accountant", "accountant"), ("smartnoise_reader", "reader"), ("diffprivlib_accountant", "accountant")]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    """Return a module of configs/sessions; skip the test if its library is not installed."""
    name = request.param
    try:
        import_module(LIBRARIES[name])
    except ImportError:
        pytest.skip(f"{LIBRARIES[name]} is not installed")
    monkeypatch.syspath_prepend(str(FOLDER))
    return import_module(name)


def opened(module: Any, name: str, number: int = 0) -> Any:
    pair = PAIRS.get(module.__name__, Pair([1, 1], [1, 1, 1]))
    return getattr(module, name)((pair.d0, pair.d1)[number], np.random.default_rng(1))


@pytest.mark.parametrize(("loaded", "name"), REAL, indirect=["loaded"])
def test_sessions_answer_report_and_refuse(loaded: Any, name: str) -> None:
    session = opened(loaded, name)
    assert session.spent == 0
    query = session.queries[0]
    assert session.ask(query) is not None
    assert session.spent == pytest.approx(1.0)
    session.ask(session.queries[-1])
    assert session.spent == pytest.approx(2.0)
    if name != "odometer":
        for _ in range(2):
            with pytest.raises(Refused):
                session.ask(query)
            assert session.spent == pytest.approx(2.0)


@pytest.mark.parametrize("loaded", ["opendp_compositions"], indirect=True)
def test_adaptive_composition_reports_nothing_and_refuses(loaded: Any) -> None:
    session = opened(loaded, "adaptive")
    assert [session.ask("count") is None, session.ask("sum") is None, session.spent] == [False, False, None]
    with pytest.raises(Refused, match="out of queries"):
        session.ask("count")


@pytest.mark.parametrize("loaded", ["opendp_compositions"], indirect=True)
def test_rho_is_not_reported_as_epsilon(loaded: Any) -> None:
    dp = loaded.dp
    measure = dp.zero_concentrated_divergence()
    odometer = dp.c.make_fully_adaptive_composition(*loaded.SPACE, output_measure=measure)
    count = loaded.SPACE >> dp.t.then_count() >> dp.m.then_gaussian(scale=1.0)
    session = sessions.OpenDP(odometer([1, 1]), {"count": count})
    session.ask("count")
    assert session.spent is None


@pytest.mark.slow
@pytest.mark.parametrize(("loaded", "name"), REAL, indirect=["loaded"])
def test_real_sessions_are_not_refuted(loaded: Any, name: str) -> None:  # fails by chance < 1 in 10**6
    assert not audited(loaded, getattr(loaded, name), confidence=1 - 1e-7).violated


@pytest.mark.slow
@pytest.mark.parametrize("loaded", LIBRARIES, indirect=True)
def test_a_planted_fault_is_found(loaded: Any) -> None:
    """Repeated queries are free.  All libraries but diffprivlib draw fresh noise, so a rerun may need other numbers."""
    assert audited(loaded, planted(loaded)).violated


def audited(module: Any, open_session: Opens, **settings: Any) -> Any:
    pair = PAIRS.get(module.__name__, Pair([1, 1], [1, 1, 1]))
    return audit_interactive(open_session, "reported", pair, sessions=200, seed=1, confirm="never", **settings)


def planted(module: Any) -> Opens:
    """Return a session of a subclass that charges for the first query only."""

    def opendp(dataset: Any, rng: np.random.Generator) -> Any:
        class Generous(sessions.OpenDP):
            def ask(self, query: str) -> Any:
                return self.measurements[query](dataset) if self.spent else super().ask(query)

        return Generous(module.FILTER(dataset), module.QUERIES)

    def tumult(dataset: Any, rng: np.random.Generator) -> Any:
        class Generous(module.PrivacyAccountant):  # type: ignore[misc]
            def measure(self, measurement: Any, d_out: Any = None) -> Any:
                free = self.privacy_budget < 2
                return measurement(np.int64(dataset)) if free else super().measure(measurement, d_out)

        accountant = module.PrivacyAccountant.launch(module.COMPOSITION, np.int64(dataset))
        accountant.__class__ = Generous  # `launch` makes no subclass
        return sessions.Tumult(accountant, {"number": module.AddGeometricNoise(alpha=1)})

    def smartnoise(dataset: Any, rng: np.random.Generator) -> Any:
        class Generous(import_module("snsql.sql.odometer").OdometerHeterogeneous):  # type: ignore[misc]
            calls = 0

            def spend(self, privacy: Any = None) -> None:
                self.calls += 1
                if not 1 < self.calls < 5:  # the library is slow, so sessions are short
                    super().spend(privacy)

        session = module.reader(dataset, rng)
        session.reader.odometer = Generous(session.reader.privacy)
        return session

    def diffprivlib(dataset: Any, rng: np.random.Generator) -> Any:
        class Generous(module.BudgetAccountant):  # type: ignore[misc]
            def spend(self, epsilon: float, delta: float) -> Any:
                return self if self.spent_budget else super().spend(epsilon, delta)

        return sessions.Diffprivlib(dataset, Generous(epsilon=2.0, delta=0.0), module.QUERIES, rng)

    return {
        "opendp_compositions": opendp,
        "tumult_accountant": tumult,
        "smartnoise_reader": smartnoise,
        "diffprivlib_accountant": diffprivlib,
    }[module.__name__]
