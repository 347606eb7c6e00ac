"""Writes builtin mechanisms that add noise as functions of numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpaudit.config.builtins import builtin_mechanism
from dpaudit.reproduce.literals import literal
from dpaudit.reproduce.unwritable import Unwritable
from dpaudit.values import Parameters

_SUM = "np.sum(dataset)"
_COLUMN = "np.array(dataset, float)"  # None becomes NaN
_CLIPPED = f"np.clip(np.nan_to_num({_COLUMN}), {{low}}, 1.0).sum()"
_FORMS = {
    "gaussian": f"{_SUM} + rng.normal(0.0, {{sigma}})",
    "laplace": f"{_SUM} + rng.laplace(0.0, {{scale}})",
    "geometric": f"{_SUM} + float(rng.geometric(-np.expm1(-1 / {{scale}})) - rng.geometric(-np.expm1(-1 / {{scale}})))",
    "laplace_parallel": "np.ravel(dataset)[0] + rng.laplace(0.0, {times} / {epsilon}, {times})",
    "noisy_sum": f"{_CLIPPED.format(low='0.0')} + rng.laplace(0.0, 1 / {{epsilon}})",
    "nan_survives": f"np.clip({_COLUMN}, 0.0, 1.0).sum() + rng.laplace(0.0, 1 / {{epsilon}})",
    "sensitivity_off": f"{_CLIPPED.format(low='-1.0')} + rng.laplace(0.0, 1 / {{epsilon}})",
    "fixed_seed": f"{_COLUMN}.sum() + np.random.default_rng({{seed}}).laplace(0.0, 1 / {{epsilon}})",
    "spinner": "int(np.ravel(dataset)[0]) ^ int(rng.random() >= {truth})",
}


def _lines(name: str) -> Callable[[Parameters], list[str]]:
    def written(params: Parameters) -> list[str]:
        try:
            made = builtin_mechanism(name, dict(params))
        except ValueError as error:
            raise Unwritable(f"the config in the result is not valid: {error}") from None
        fields = {field: literal(getattr(made, field)) for field in made.__dataclass_fields__}
        return ["def release(dataset):", f"    return {_FORMS[name].format(**fields)}"]

    return written


BUILTIN_LINES: Mapping[str, Callable[[Parameters], list[str]]] = {name: _lines(name) for name in _FORMS}
"""For each builtin mechanism that a script can write out: a function from its parameters to lines of Python."""
