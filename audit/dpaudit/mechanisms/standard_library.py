"""Recognises Python's standard library, because its functions could run parameters and datasets as code.

`worker` loads this file in other Python interpreters.  So this file needs only the standard library of Python 3.8.
"""

from __future__ import annotations

import inspect
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpaudit.values import Foreign

_MARKS = ("os.py", "site.py", "timeit.py")  # only the folder of a standard library holds all these files
_INSTALLED = ("site-packages", "dist-packages")  # folders of packages inside the folder of a standard library

STANDARD_FILE = "is a file of Python's standard library, so it could run params and datasets as code"
"""The words that follow the name of a refused file in a message."""


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


def refusal(found: Foreign) -> str:
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
