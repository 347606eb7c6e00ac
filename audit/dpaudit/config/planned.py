"""An audit of a config, ready to run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.config.models import FROM_MECHANISM, AuditConfig
from dpaudit.mechanisms.command import CommandMechanism
from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.mechanisms.loading import PythonMechanism
from dpaudit.mechanisms.protocol import MechanismError, in_words
from dpaudit.neighbours import Pair


class ConfigError(Exception):
    """What is wrong in a config, one line for each problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAudit:
    """One audit of a config file, ready to run."""

    file: Path
    line: int
    config: AuditConfig

    @property
    def pairs(self) -> list[Pair]:
        """Its pairs of datasets."""
        return [pair for entry in self.config.pairs for pair in entry.pairs()]

    @property
    def terms(self) -> dict[str, Any]:
        """Arguments of `audit` that say what is seen of a run and what becomes of one that goes wrong."""
        mechanism = self.config.mechanism
        own = mechanism.python is not None and not mechanism.isolated and "timeout" in self.config.model_fields_set
        return {
            "observe_time": mechanism.observe_time,
            "failures": self.config.failures,
            "timeout": self.config.timeout if own else None,
        }

    @property
    def code(self) -> str:
        """What of other people's code runs with this audit, in words; "" if none does."""
        mechanism = self.config.mechanism
        if mechanism.command is not None:
            return f"the program {shlex.join(mechanism.command)}, in {self.file.parent}"
        if mechanism.python is None:
            return ""
        if not mechanism.isolated:
            return f"{mechanism.python} (from {self.file.parent}), in this process"
        packages = ", ".join(mechanism.requires or ()) or "no packages"
        version = f", Python {mechanism.python_version}" if mechanism.python_version else ""
        return f"{mechanism.python} (from {self.file.parent}), in an environment with {packages}{version}"

    @property
    def text(self) -> str:
        """The audit as YAML, from which `read_text` makes it again."""
        settings = self.config.model_dump(by_alias=True, exclude_unset=True)
        written: str = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
        return written

    def named(self, name: str, *, expect: Literal["violation", "no violation"] | None) -> PlannedAudit:
        """The same audit under another name, with another expectation."""
        return replace(self, config=self.config.model_copy(update={"name": name, "expect": expect}))

    def load(self) -> tuple[Any, TradeoffFunction]:
        """The mechanism, loaded or started, and the claim.  MechanismError or ValueError says what could not be had.

        Builds the mechanism's environment if it asks for one that is not there.
        """
        mechanism = self.config.mechanism.mechanism(self.file.parent, self.config.timeout)
        if isinstance(mechanism, PythonMechanism):
            mechanism = replace(mechanism, timeout=self.terms["timeout"])
        if isinstance(mechanism, (CommandMechanism, IsolatedMechanism)):
            mechanism.start()
        found = mechanism.loaded if isinstance(mechanism, PythonMechanism) else mechanism
        if self.config.claim != FROM_MECHANISM:
            return mechanism, parse_claim(self.config.claim)
        try:
            claim = getattr(found, "claim", None)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too
            raise MechanismError(f"its attribute claim raised {in_words(error)}") from error
        if isinstance(claim, str):  # as a mechanism must write it that cannot import this package
            claim = parse_claim(claim)
        if not isinstance(claim, TradeoffFunction):
            raise ValueError(
                f'claim is "{FROM_MECHANISM}", but the mechanism\'s attribute claim is {claim!r}, not a claim'
            )
        return mechanism, claim
