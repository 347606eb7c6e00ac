"""Finds the object that an address names, and tells why it is not a mechanism.

An object of Python's standard library is refused, because its functions could run parameters and datasets as code.  The
program in isolated environments loads this file by its path (see `worker`).  So this file needs only the standard
library of Python 3.8 or later.
"""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dpaudit.values import Any

_MARKS = ("os.py", "site.py", "timeit.py")  # only the folder of a standard library holds all these files
_INSTALLED = ("site-packages", "dist-packages")  # folders of packages inside the folder of a standard library

STANDARD_FILE = "is a file of Python's standard library, so it could run params and datasets as code"
"""The words that follow the name of a refused file in a message."""


def checked_file(name: str, folder: str) -> str:
    """Return the path of a file with a mechanism; raise LookupError if it is missing or not allowed."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        above, last = os.path.split(path)
        files = [file for file in os.listdir(above) if file.endswith(".py")] if os.path.isdir(above) else []
        raise LookupError(f"the file {name} does not exist in {folder}{_question(last, files)}")
    if is_standard_file(path):
        raise LookupError(f"{name} {STANDARD_FILE}")
    return path


def object_named(address: str, module: Any) -> Any:
    """Return the object of a module that an address names; raise LookupError if it is missing or not allowed."""
    module_name, _, object_name = address.rpartition(":")
    found = module
    for part in object_name.split("."):
        if not hasattr(found, part):
            hint = _question(part, getattr(found, "__dict__", ()))
            raise LookupError(f"{module_name} has no object {object_name!r}{hint}")
        found = getattr(found, part)
    for name, one in ((module_name, module), (address, found)):
        problem = refusal(one)
        if problem:
            raise LookupError(f"{name} {problem}")
    return found


def _question(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word[:100].lower(), list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def misfit(found: Any, batched: bool = False) -> str:
    """Return why an object is not a mechanism, as words that follow its name in a message, or ""."""
    if isinstance(found, type):
        return "is a class, but a mechanism is an instance: add `params: {}` in a config, or call the class in Python"
    many = getattr(found, "sample", found if batched else None)
    if many is None and not callable(found):
        kind = type(found).__name__
        return f"must be a callable (dataset, rng) -> output or have sample(dataset, n, rng), got {kind}"
    try:
        signature = inspect.signature(found if many is None else many)
    except (TypeError, ValueError):
        return ""
    short, long = ("dataset", "rng"), ("dataset", "n", "rng")
    wanted, other = (short, long) if many is None else (long, short)
    if _binds(signature, wanted):
        return ""
    problem = "takes {}, but a {}mechanism is called with ({})".format(
        signature, "" if many is None else "batched ", ", ".join(wanted)
    )
    if not _binds(signature, other):
        return problem
    if many is None:
        return problem + "; if it returns n outputs, set `batched: true` in the config, or use @batched in Python"
    return problem + "; if it returns one output, remove `batched`"


def _binds(signature: Any, values: tuple[str, ...]) -> bool:
    try:
        signature.bind(*values)
    except TypeError:
        return False
    return True


def is_standard(module_name: str) -> bool:
    """Whether a module, or the package that holds it, belongs to Python's standard library."""
    return module_name.split(".")[0] in getattr(sys, "stdlib_module_names", ())  # Python 3.10 and later


def is_standard_file(path: str) -> bool:
    """Whether a file belongs to the standard library of this Python installation or of another installation."""
    try:
        above, name = os.path.split(os.path.realpath(path))
    except (OSError, ValueError):  # no file can have this name
        return False
    while name and name not in _INSTALLED:
        if all(os.path.isfile(os.path.join(above, mark)) for mark in _MARKS):
            return True
        above, name = os.path.split(above)
    return False


def refusal(found: Any) -> str:
    """Return why a module, function or class of the standard library is refused, as words that follow its name.

    For example, `timeit.timeit` would run parameters and datasets as code, and so would `os.system` in a file that
    imports `os`.  For an object outside the standard library, the result is "".
    """
    if not (inspect.ismodule(found) or inspect.isroutine(found) or isinstance(found, type)):
        return ""
    module = getattr(found, "__name__" if inspect.ismodule(found) else "__module__", None)
    if not isinstance(module, str):
        return ""
    file = getattr(sys.modules.get(module), "__file__", None)
    if not is_standard(module) and not (isinstance(file, str) and is_standard_file(file)):
        return ""
    return f"belongs to Python's standard library ({module}), so it could run params and datasets as code"
