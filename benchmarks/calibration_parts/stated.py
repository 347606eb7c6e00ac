"""Statements of dpaudit that hold with a stated probability: the settings of `stated_settings`.

- "seen, fixed" and "seen, sequential": the violation that a report says would have been seen with 90 % probability, by
  an attack that knows the likelihood ratio, as the report assumes.  The mechanism has just that law.
- "seen, one run" and "seen, canaries": the same for `audit_one_run`, and for scores of independent canaries.
- "plan": audits with as many trials as `plan` states and `attacks="auto"`, so all scores are learned.
- "planned runs": the same for `assert_private`, which plans for a probability of 99.9 %.
- "replay": p-values of at most 0.05 in replays of audits of true claims.
- "replay confirms": replays of the same audits that confirm a violation, at p-values of at most 0.001.
- "dependence": independent runs that are called dependent, which may happen in one of 10^9 tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from stated_settings import Setting, settings

from calibration_parts import Outcome, Row
from calibration_parts.limit import Limit

FIRST_SEED = 50_000  # no constant of dpaudit was chosen on audits with this seed or larger seeds


def rows() -> list[Row]:
    return [_row(setting) for setting in _settings().values()]


@cache
def _settings() -> dict[str, Setting]:
    found = settings()
    labelled = {setting.label: setting for setting in found}
    if len(labelled) < len(found):
        raise AssertionError("two settings have the same label, so one would be stored as the other")
    return labelled


@cache
def _said(label: str) -> Any:
    """Return the statement of a setting, which all its audits share."""
    return _settings()[label].prepare()


def _row(setting: Setting) -> Row:
    # the audits of settings with the same `measure` are the same
    shared = next(other for other in _settings().values() if other.measure is setting.measure)
    of = "at least" if setting.least else "at most"
    stated = f"{of} {100 * setting.stated:.4g} %" if setting.stated > 1e-6 else f"{of} {setting.stated:g}"
    return Row(
        part="stated",
        cells=(setting.kind, setting.name, stated),
        audit=partial(measured, shared.label),
        events=partial(_events, setting.label),
        limits={"came true": Limit(rate=setting.stated, least=setting.least)},
        full=200,
        first_seed=FIRST_SEED,
        audits_of=f"stated: {shared.label}",
        sources=("calibration_parts/stated.py", "stated_settings.py"),
    )


def measured(label: str, seed: int) -> Outcome:
    """Make one audit of a setting and measure it."""
    return {"value": float(_settings()[label].measure(_said(label), seed))}


def _events(label: str, outcome: Outcome) -> Mapping[str, bool]:
    return {"came true": _settings()[label].came_true(outcome["value"])}
