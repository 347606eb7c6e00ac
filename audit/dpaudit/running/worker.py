"""Runs a mechanism in another Python interpreter.

An isolated environment starts this file as a program, which loads `outcomes` and `wire` from its own folder.  They need
only the standard library of Python 3.8 or later, and use numpy only if it is installed.

Requests are dicts with the key `do`: first `load` (address, folder, params, batched, memory), and then any number of
`sample` (dataset, n, seed), `run` (datasets, index, seed, outcomes) and `about`.  Answers are dicts:

    sample    outputs, changed
    run       output, seconds, changed, raised
    about     claim (text or None), batched

`changed`: the dataset was changed in place.  `raised`: type and message of the exception that is the outcome, or None.
A failure gives `error` and `traceback`.
"""

from __future__ import annotations

import difflib
import gc
import importlib.util
import inspect
import os
import sys
from time import perf_counter
from typing import Any

try:
    import numpy
except ImportError:  # not every environment has numpy
    numpy = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import BinaryIO

    from dpaudit.values import Dataset, Output, Parameters, RawOutputs


def from_file(key: str, path: str) -> object:
    """Load a module from a file, such as a module of dpaudit in an environment that has no package `dpaudit`."""
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
    return module


if TYPE_CHECKING or __name__ != "__main__":
    from dpaudit.running import outcomes, wire
else:
    _folder = os.path.dirname(os.path.abspath(__file__))
    outcomes, wire = (
        from_file("_dpaudit_" + name, os.path.join(_folder, name + ".py")) for name in ("outcomes", "wire")
    )


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
    named = module
    for part in object_name.split("."):
        if not hasattr(named, part):
            hint = _question(part, getattr(named, "__dict__", ()))
            raise LookupError(f"{module_name} has no object {object_name!r}{hint}")
        named = getattr(named, part)
    for name, value in ((module_name, module), (address, named)):
        if problem := refusal(value):
            raise LookupError(f"{name} {problem}")
    return named


def _question(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word[:100].lower(), list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def misfit(mechanism: Any, batched: bool = False) -> str:
    """Return why an object is not a mechanism, as words that follow its name in a message, or ""."""
    if isinstance(mechanism, type):
        return "is a class, but a mechanism is an instance: add `params: {}` in a config, or call the class in Python"
    many = getattr(mechanism, "sample", mechanism if batched else None)
    if many is None and not callable(mechanism):
        kind = type(mechanism).__name__
        return f"must be a callable (dataset, rng) -> output or have sample(dataset, n, rng), got {kind}"
    try:
        signature = inspect.signature(mechanism if many is None else many)
    except (TypeError, ValueError):
        return ""

    def binds(*values: str) -> bool:
        try:
            signature.bind(*values)
        except TypeError:
            return False
        return True

    short, long = binds("dataset", "rng"), binds("dataset", "n", "rng")
    if many is None and not short:
        hint = "; if it returns n outputs, set `batched: true` in the config, or use @batched in Python" if long else ""
        return f"takes {signature}, but a mechanism is called with (dataset, rng){hint}"
    if many is not None and not long:
        hint = "; if it returns one output, remove `batched`" if short else ""
        return f"takes {signature}, but a batched mechanism is called with (dataset, n, rng){hint}"
    return ""


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


def refusal(named: Any) -> str:
    """Return why an object of the standard library is refused, such as `timeit.timeit`, which runs text, or ""."""
    if not (inspect.ismodule(named) or inspect.isroutine(named) or isinstance(named, type)):
        return ""
    module = getattr(named, "__name__" if inspect.ismodule(named) else "__module__", None)
    if not isinstance(module, str):
        return ""
    file = getattr(sys.modules.get(module), "__file__", None)
    if not is_standard(module) and not (isinstance(file, str) and is_standard_file(file)):
        return ""
    return f"belongs to Python's standard library ({module}), so it could run params and datasets as code"


class _Loaded:
    """The user's mechanism in this process."""

    def __init__(self, address: str, folder: str, params: Parameters | None, batched: bool, memory: int | None) -> None:
        self._limited = memory is not None
        mechanism = object_named(address, _module(address.rpartition(":")[0], folder))
        if params is not None:
            mechanism = mechanism(**params)
        if problem := misfit(mechanism, batched):
            raise TypeError(f"{address} {problem}")
        self.mechanism = mechanism
        self.many: Callable[..., Any] | None = getattr(mechanism, "sample", mechanism if batched else None)
        self.changed: bool | None = None  # whether the runs of this request changed the dataset; None before the check

    def sample(self, dataset: Dataset, n: int, seed: int) -> RawOutputs:
        rng = _seeded(seed)
        if self.many is None:
            outputs = []
            for _ in range(n):
                copy = outcomes.detached(dataset)
                outputs.append(_kept(self.mechanism(copy, rng)))
                self._look(dataset, copy)
            return outputs
        copy = outcomes.detached(dataset)
        outputs = _counted(self.many(copy, n, rng), n)
        self._look(dataset, copy)
        if isinstance(outputs, (list, tuple)):
            outcomes.refuse_shared(outputs)
        if isinstance(outputs, (list, tuple)) or (numpy is not None and isinstance(outputs, numpy.ndarray)):
            return outputs
        return outputs if hasattr(outputs, "__array__") and not hasattr(outputs, "columns") else list(outputs)

    def run(self, datasets: list[Dataset], index: int, seed: int, may_raise: bool) -> dict[str, object]:
        """Make one run on one of the datasets, which are all copied, and return the answer."""
        rng, copies, collects = _seeded(seed), [outcomes.detached(dataset) for dataset in datasets], gc.isenabled()
        answer = {"output": None, "raised": None}  # type: dict[str, object]
        gc.collect(1)
        gc.disable()  # start and duration of collections depend on the size of the dataset
        began = perf_counter()
        try:
            copy = copies[index]
            output = self.mechanism(copy, rng) if self.many is None else self.many(copy, 1, rng)
            answer["seconds"] = perf_counter() - began
        except BaseException as error:
            answer["seconds"] = perf_counter() - began
            if not may_raise or not outcomes.of_code(error) or outcomes.of_machine(error, self._limited):
                raise
            answer["raised"] = type(error).__name__, outcomes.message_of(error)
        else:
            answer["output"] = _kept(output if self.many is None else next(iter(_counted(output, 1))))
        finally:
            if collects:
                gc.enable()
        self._look(datasets[index], copies[index])
        return answer

    def _look(self, dataset: Dataset, copy: Dataset) -> None:
        if self.changed is None:
            self.changed = wire.differ(dataset, copy)


def _kept(output: Output) -> Output:
    """Return a copy of an output, as the mechanism may change it later."""
    try:
        return outcomes.detached(output)
    except outcomes.NotCopyable:
        wire.frame(output)  # names the part, such as an open file, that cannot be sent
        raise


def _counted(outputs: Any, n: int) -> Any:
    if len(outputs) != n:
        raise ValueError(f"returned {len(outputs)} outputs instead of {n}")
    return outputs


def _module(name: str, folder: str) -> object:
    path = os.path.join(folder, name)
    beside = os.path.dirname(path) if name.endswith(".py") else folder
    if beside not in sys.path:
        sys.path.append(beside)  # at the end, so that a user's random.py does not replace Python's module
    if not name.endswith(".py"):
        return importlib.import_module(name)
    return from_file("_dpaudit_mechanism", checked_file(name, folder))


def _seeded(seed: int) -> object:
    """Return the rng for one call, and seed the global generators of libraries with different keys."""
    import hashlib
    import random

    def key(name: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:16], "little")

    random.seed(key("random"))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(key("torch") % 2**63)
    if numpy is None:
        return random.Random(key("rng"))
    numpy.random.seed([key("numpy") >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96)])
    return numpy.random.Generator(numpy.random.Philox(_spawnable(key("rng"))))  # type: ignore[arg-type]


def _spawnable(key: int) -> object:
    """Return a seed sequence that gives Philox this key and lets a mechanism call `rng.spawn`."""
    import numpy.random.bit_generator as bit_generator

    class Key(bit_generator.ISpawnableSeedSequence):
        children = bit_generator.SeedSequence(key)

        def generate_state(self, n_words, dtype=numpy.uint32):  # type: ignore[no-untyped-def]
            return numpy.array([key % 2**64, key >> 64], dtype=numpy.uint64)

        def spawn(self, n_children):  # type: ignore[no-untyped-def]
            return self.children.spawn(n_children)

    return Key()


def limit_memory(memory: int) -> tuple[int, int]:
    """Limit the memory that this process may add, in bytes, and return the limits before.  Works on Linux only."""
    import resource

    with open("/proc/self/statm", "rb") as file:
        size = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    before = resource.getrlimit(resource.RLIMIT_AS)
    allowed = [size + memory] + [limit for limit in before if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(allowed), before[1]))
    return before


def _answer(request: Any, loaded: _Loaded | None) -> tuple[bytes, _Loaded | None]:
    import traceback

    try:
        if request["do"] == "load":
            if request["memory"] is not None:
                limit_memory(request["memory"])
            del request["do"]
            return wire.frame({}), _Loaded(**request)
        assert loaded is not None
        if request["do"] == "about":
            claim = getattr(loaded.mechanism, "claim", None)
            text = None if claim is None else str(claim)
            return wire.frame({"claim": text, "batched": loaded.many is not None}), loaded
        loaded.changed = None
        if request["do"] == "run":
            answer = loaded.run(request["datasets"], request["index"], request["seed"], request["outcomes"])
        else:
            answer = {"outputs": loaded.sample(request["dataset"], request["n"], request["seed"])}
        return wire.frame({"changed": bool(loaded.changed), **answer}), loaded
    except BaseException as error:  # includes SystemExit: the mechanism must not end this process silently
        at = error.__traceback__
        # Skip the frames of dpaudit, so that the reported traceback starts at the user's code.
        ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        while at is not None and at.tb_frame.f_code.co_filename.startswith(ours + os.sep):
            at = at.tb_next
        reported = "" if at is None else "".join(traceback.format_exception(type(error), error, at))
        words = f"{type(error).__name__}: {outcomes.message_of(error)}"
        return wire.frame({"error": words, "traceback": reported}), loaded


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the stream of requests ends."""
    loaded: _Loaded | None = None
    while True:
        body = wire.received(requests)
        if body is None:
            return
        try:
            request = wire.unframe(body)
        except ValueError as error:
            answer = wire.frame({"error": f"the dataset or the parameters could not be read: {error}", "traceback": ""})
        else:
            answer, loaded = _answer(request, loaded)
        answers.write(answer)
        answers.flush()


if __name__ == "__main__":
    serve(*wire.own_streams())
