"""Loads mechanisms that a config names by `package.module:object` or `path/to/file.py:object`."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import pkgutil
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from dpaudit.running.limits import (
    RunTimeout,
    advice,
    current_folder,
    foreign_code,
    memory_limited,
    timeout_after,
)
from dpaudit.running.misfit import checked_file, misfit, object_named
from dpaudit.running.protocol import Batched, MechanismError, samples
from dpaudit.running.raised import raised
from dpaudit.running.worker import from_file
from dpaudit.text import masked_values, nearest
from dpaudit.values import Parameters


@dataclass(frozen=True)
class PythonMechanism:
    """A mechanism that is named by an address, and that each process loads before the first use."""

    address: str
    params: Parameters | None = None
    batched: bool = False
    folder: Path = field(default_factory=Path)
    timeout: float | None = None
    memory: int | None = None
    named: str = ""
    code: str = ""

    @cached_property
    def loaded(self) -> Any:
        """The mechanism object.  All exceptions of the user's code, even `SystemExit`, become a MechanismError."""
        before = current_folder()
        try:
            with (
                foreign_code(),
                memory_limited(self.memory),
                timeout_after(self.timeout) as timeout,
            ):
                return timeout(self._load)
        except KeyboardInterrupt:
            raise
        except MechanismError as error:
            if self.memory is not None and isinstance(error.__cause__, MemoryError):
                raise MechanismError(f"{error}; {advice(self.memory)}") from error
            raise
        except BaseException as error:
            raise MechanismError(f"loading {self.address} {_did(error)}") from error
        finally:
            if (moved := current_folder()) != before:
                self.__dict__["_moved_to"] = moved
                with suppress(OSError):
                    os.chdir(before)

    @property
    def moved_to(self) -> str:
        """The working directory that the mechanism set while it was loaded, or "" if the directory was not changed."""
        return str(self.__dict__.get("_moved_to", ""))

    def _load(self) -> Any:
        module_name, _, object_name = self.address.rpartition(":")
        if not module_name or not object_name:
            raise MechanismError(f"the address must read package.module:object or file.py:object, got {self.address!r}")
        module = _module(module_name, self.folder)
        try:
            found = object_named(self.address, module)
        except LookupError as error:
            raise MechanismError(str(error)) from None
        if self.params is not None:
            try:
                found = found(**self.params)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # includes SystemExit
                params = masked_values(dict(self.params))
                words = f"calling {self.address} with params {params} {_did(error)}"
                if self.named:
                    words = f"making {self.named} {_did(error)}"
                if isinstance(error, TypeError) and inspect.isfunction(found):
                    words += "; with params, the object must be a class, or a function that returns the mechanism"
                raise MechanismError(words) from error
        if problem := misfit(found, self.batched):
            raise MechanismError(f"{self.address} {problem}")
        return Batched(found) if self.batched and not samples(found) else found

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "loaded"}


def _module(name: str, folder: Path) -> ModuleType:
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        try:
            path = Path(checked_file(name, str(folder.resolve()))).resolve()
        except LookupError as error:
            raise MechanismError(str(error)) from None
        key = module_key(path)
        if key not in sys.modules:
            from_file(key, str(path))
        return sys.modules[key]
    except (MechanismError, KeyboardInterrupt):
        raise
    except BaseException as error:  # includes SystemExit: a script without a `__main__` guard may call sys.exit()
        raise MechanismError(f"importing {name} {_did(error)}{_module_meant(error, name, folder)}") from error


def _module_meant(error: BaseException, name: str, folder: Path) -> str:
    """Return a hint if the module of the address does not exist, or ""."""
    top = name.split(".")[0]
    if not isinstance(error, ModuleNotFoundError) or error.name != top:
        return ""
    if (folder / f"{name}.py").is_file():
        return f"; did you mean the file {name}.py?  Write {name}.py:OBJECT"
    installed = {module.name for module in pkgutil.iter_modules()} - sys.stdlib_module_names
    meant = nearest(top, sorted(installed), cutoff=0.8)
    return f"; did you mean {meant}?" if meant else ""


def _did(error: BaseException) -> str:
    return f"{error}" if isinstance(error, RunTimeout) else f"raised {raised(error)}"


def module_key(path: Path) -> str:
    """Return the module name for a file: the same in every process, and another one after an edit of the file."""
    digest = hashlib.sha256(os.fsencode(path) + b"\0" + path.read_bytes())
    return f"_dpaudit_mechanism_{path.stem}_{digest.hexdigest()[:16]}"


def resolved(mechanism: object) -> object:
    """Return the mechanism to call, and load a mechanism that is named by an address."""
    return mechanism.loaded if isinstance(mechanism, PythonMechanism) else mechanism
