"""Mechanisms named in a config: `package.module:object` or `path/to/file.py:object`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from dpaudit.mechanisms.places import raised
from dpaudit.mechanisms.protocol import Batched, MechanismError
from dpaudit.mechanisms.worker import misfit


@dataclass(frozen=True)
class PythonMechanism:
    """A mechanism by address: loaded when used, and anew in every worker, so that it need not be picklable."""

    address: str  # module:object or file.py:object
    params: Mapping[str, Any] | None = None  # if given, the object is a factory called once with them
    batched: bool = False
    folder: Path = field(default_factory=Path)  # what a relative file path is relative to

    @cached_property
    def loaded(self) -> Any:
        """The mechanism object.  MechanismError names the address and the reason if it cannot be had."""
        module_name, _, object_name = self.address.rpartition(":")
        if not module_name or not object_name:
            raise MechanismError(f"must read package.module:object or file.py:object, got {self.address!r}")
        found: Any = _module(module_name, self.folder)
        for part in object_name.split("."):
            try:
                found = getattr(found, part)
            except AttributeError:
                raise MechanismError(f"{module_name} has no object {object_name!r}") from None
        if self.params is not None:
            try:
                found = found(**self.params)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # SystemExit too: a factory must not end the audits of others
                raise MechanismError(
                    f"calling {self.address} with params {dict(self.params)} raised {raised(error)}"
                ) from error
        if problem := misfit(found, self.batched):
            raise MechanismError(f"{self.address} {problem}")
        return Batched(found) if self.batched and not hasattr(found, "sample") else found

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "loaded"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _module(name: str, folder: Path) -> ModuleType:
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        path = (folder / name).resolve()
        if not path.is_file():
            raise MechanismError(f"there is no file {name} in {folder.resolve()}")
        key = f"_dpaudit_mechanism_{path.stem}_{abs(hash(path)):x}"
        if key not in sys.modules:
            spec = importlib.util.spec_from_file_location(key, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[key] = module
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[key]
                raise
        return sys.modules[key]
    except (MechanismError, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit too: `sys.exit()` without a guard at the end of a script
        raise MechanismError(f"importing {name} raised {raised(error)}") from error
