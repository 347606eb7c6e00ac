"""True claims about mechanisms, attacks, clocks or fixtures that misbehave: the cases of `false_alarm_cases`.

Some cases observe the clock or draw fresh randomness, so their audits cannot be repeated exactly.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache, partial

import false_alarm_cases
from false_alarm_cases import Case

from calibration_parts import Outcome, Row
from calibration_parts.limit import Limit
from dpaudit import MechanismError, Verdict


def rows() -> list[Row]:
    return [_row(module, case) for module, cases in _cases().items() for case in cases.values()]


@cache
def _cases() -> dict[str, dict[str, Case]]:
    """Return the cases of each module, in the order of the modules' names."""
    modules = sorted(module.name for module in pkgutil.iter_modules(false_alarm_cases.__path__))
    return {
        name: {case.name: case for case in importlib.import_module(f"false_alarm_cases.{name}").CASES}
        for name in modules
    }


def _row(module: str, case: Case) -> Row:
    limits = {"refuted": Limit(rate=case.significance)}
    if case.mu is not None:
        limits["mu"] = Limit(rate=case.significance)
    if case.inconclusive_allowed is not None:
        limits["inconclusive"] = Limit(rate=case.inconclusive_allowed / case.audits)
    return Row(
        part="misbehaving",
        cells=(case.name,),
        audit=partial(audited, module, case.name),
        limits=limits,
        full=case.audits,
        sources=("calibration_parts/misbehaving.py", "false_alarm_cases/__init__.py", f"false_alarm_cases/{module}.py"),
    )


def audited(module: str, name: str, seed: int) -> Outcome:
    """Run one audit of a case and return how it ended."""
    case = _cases()[module][name]
    try:
        result = case.audit(seed)
    except MechanismError:  # the first block was refused
        return {"refuted": 0.0, "mu": 0.0, "inconclusive": 1.0}
    return {
        "refuted": float(result.violated),
        "mu": float(case.mu is not None and result.mu_lower > case.mu),
        "inconclusive": float(result.verdict is Verdict.INCONCLUSIVE),
    }
