"""Each default and each limit of the settings of an audit is defined once.  Only the test of seeds runs audits."""

import dataclasses
import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest

from dpaudit import ExecutionSettings, Pair, audit, audit_one_run, plan, replay
from dpaudit.catalogue import Gaussian
from dpaudit.cli.options import RunOptions
from dpaudit.config.models import AuditConfig
from dpaudit.settings import BACKENDS, DEFAULTS, FAILURES, METHODS, POWER, AuditSettings, default_jobs
from dpaudit.testing import assert_private
from dpaudit.testing.session import Settings


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}


def test_the_settings_are_the_keywords_of_audit() -> None:
    assert defaults(audit) == DEFAULTS.keywords
    assert audit.__kwdefaults__ == DEFAULTS.keywords  # all are keyword-only


def test_the_public_defaults() -> None:
    """These are the defaults that the documentation states."""
    assert DEFAULTS.keywords == {
        "attacks": "auto",
        "trials": 100_000,
        "confidence": 0.99,
        "method": "sequential",
        "seed": None,
        "jobs": 1,
        "store": None,
        "resume": "same",
        "detect": None,
        "measure": False,
        "confirm": None,
        "observe_time": False,
        "failures": "stop",
        "timeout": None,
        "memory": None,
        "progress": None,
        "name": "",
    }
    assert POWER == 0.9


@pytest.mark.parametrize("function", [audit_one_run, plan, replay, assert_private, ExecutionSettings, Settings])
def test_whoever_shares_a_setting_shares_its_default(function: Callable[..., Any]) -> None:
    own = {"seed", "trials", "progress", "detect", "name"}  # in these places, None or another default is correct
    shared = {key: value for key, value in defaults(function).items() if key in DEFAULTS.keywords.keys() - own}
    assert shared == {key: DEFAULTS.keywords[key] for key in shared}


def test_a_command_line_without_options_changes_no_setting_of_a_config() -> None:
    assert RunOptions().over(DEFAULTS) == DEFAULTS


def test_configs_have_the_same_defaults() -> None:
    fields = AuditConfig.model_fields
    # The timeout of a config also applies to commands.
    shared = fields.keys() & DEFAULTS.keywords.keys() - {"name", "timeout"}
    options = "attacks trials confidence method seed detect failures measure confirm memory"
    assert shared == set(options.split())
    assert {key: fields[key].default for key in shared} == {key: DEFAULTS.keywords[key] for key in shared}
    assert typing.get_args(fields["method"].annotation) == METHODS
    assert typing.get_args(fields["failures"].annotation) == FAILURES


def test_audits_without_a_seed_record_different_seeds() -> None:
    """There are 10**9 seeds, so two are equal with probability 10**-9.  No verdict is tested."""
    found = [audit(Gaussian(1.0), "gaussian(mu=1)", Pair([0], [1]), trials=2).provenance.seed for _ in range(2)]
    assert None not in found
    assert found[0] != found[1]


def test_the_suite_audits_as_many_runs() -> None:
    assert (Settings().trials, Settings().false_alarm, Settings().seed) == (DEFAULTS.trials, 1e-3, 0)


def test_one_process_here_and_all_of_a_cluster() -> None:
    assert [default_jobs(name) for name in BACKENDS] == [1, -1, -1]
    assert RunOptions().backend == "loky"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trials": 0}, "trials must be at least 1, got 0"),
        ({"trials": 1.5}, "trials must be a whole number"),
        ({"confidence": 95.0}, "confidence must lie strictly between 0 and 1, got 95.0; did you mean 0.95\\?"),
        ({"method": "best"}, "method must be sequential or fixed, got 'best'"),
        ({"method": "fixed", "observe_time": True}, "observe_time needs method sequential, got fixed"),
        ({"failures": "hide"}, "failures must be stop, outcome, retry, got 'hide'"),
        ({"timeout": 0}, "timeout must be above 0 seconds, got 0"),
        ({"jobs": 0}, "jobs must be -1 or at least 1, got 0"),
        ({"memory": "2 gigs"}, "memory must be text such as"),
        ({"memory": "1 GB", "observe_time": True}, "memory cannot be combined with observe_time"),
        ({"resume": "always"}, "resume must be same or anyway, got 'always'"),
        ({"resume": "anyway"}, "resume='anyway' needs store"),
        ({"confirm": 0}, 'confirm must be a number of runs, at least 1, or "never", got 0'),
    ],
)
def test_an_impossible_setting_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AuditSettings(**wrong)
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(DEFAULTS, **wrong)


def test_whole_floats_are_numbers_of_trials() -> None:
    assert AuditSettings(trials=1e5).trials == 100_000  # type: ignore[arg-type]
    assert type(AuditSettings(trials=1e5).trials) is int  # type: ignore[arg-type]
