"""Runs the command line in another process, and writes configs for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from click.testing import Result

Command = Callable[..., Result]
CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism: {builtin: gaussian, params: {sigma: 1.0}}
pairs: [{d0: [0], d1: [1]}]
trials: 60
seed: 0
confidence: 0.99
attacks: threshold
"""
MANY = """\
audits:
- {name: one, claim: &c gaussian(mu=1), mechanism: &m {builtin: gaussian, params: {sigma: 1.0}}, pairs: &p [{d0: [0], d1: [1]}], trials: 60, attacks: threshold, seed: 0}
- {name: two, claim: *c, mechanism: *m, pairs: *p, trials: 60, attacks: threshold, seed: 0}
- {name: three, claim: *c, mechanism: *m, pairs: *p, trials: 60, attacks: threshold, seed: 0}
"""  # noqa: E501


def broken(*values: Any, **named: Any) -> Any:
    raise ZeroDivisionError("a mistake of dpaudit")
