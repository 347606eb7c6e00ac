"""Worker processes on this machine (loky), in a Dask cluster or with Ray.  joblib sends them tasks.

loky starts Python with PYTHONSAFEPATH, since a stranger's working folder may hold a module such as `random`.
"""

from __future__ import annotations

import copy
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from dpaudit.settings import BACKENDS, check_choice

_IDLE_SECONDS = 300  # an idle worker ends after this number of seconds; joblib has the same value
_SAFE_PATH = "PYTHONSAFEPATH"  # with this variable, Python does not search the working folder for modules
_TRACKERS = ("joblib.externals.loky.backend.resource_tracker", "multiprocessing.resource_tracker")


class BackendError(Exception):
    """Raised if a backend is not installed or does not answer.  The message names the backend and the remedy."""


@contextmanager
def backend(name: str, scheduler: str | None = None) -> Iterator[None]:
    """Make audits inside the `with` block use the workers of a backend, unless their `jobs` is 1."""
    check_choice(name, BACKENDS, "backend", lead="one of ")
    if name == "loky":
        if scheduler is not None:
            raise ValueError("scheduler is allowed only with the backends dask and ray")
        yield
    elif name == "dask":
        with _dask(scheduler):
            yield
    else:
        with _ray(scheduler):
            yield


@contextmanager
def _dask(scheduler: str | None) -> Iterator[None]:
    from joblib import parallel_config

    distributed = _module("distributed", "dask")
    if scheduler is None:
        raise ValueError('the backend dask needs the address of its scheduler, e.g. "tcp://127.0.0.1:8786"')
    try:
        client = distributed.Client(scheduler, timeout="5s", set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise BackendError(f"no Dask scheduler answers at {scheduler}: {str(error).splitlines()[0]}") from None
    with client, parallel_config(backend="dask", client=client):
        yield


@contextmanager
def _ray(scheduler: str | None) -> Iterator[None]:
    from joblib import parallel_config

    ray = _module("ray", "ray")
    try:
        ray.init(address=scheduler, log_to_driver=False, include_dashboard=None if scheduler else False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise BackendError(f"could not connect to Ray ({scheduler or 'this machine'}): {error}") from None
    importlib.import_module("ray.util.joblib").register_ray()
    pools: dict[int, Any] = {}  # kept, because Ray would otherwise restart the workers for each block of trials
    token = _kept.set(pools)
    try:
        with parallel_config(backend="ray"):
            yield
    finally:
        _kept.reset(token)
        try:
            for pool in pools.values():
                pool.__exit__(None, None, None)
        finally:
            ray.shutdown()


Task = TypeVar("Task")
Answer = TypeVar("Answer")

_kept: ContextVar[dict[int, Any] | None] = ContextVar("_kept", default=None)  # pools by `jobs`; None keeps no pool
_worker: Any = None  # the executor for `jobs=1`
_owner = 0  # id of the process that started `_worker`; a fork of that process has another id


def called_elsewhere(function: Callable[[Task], Answer], values: Sequence[Task], jobs: int) -> list[Answer]:
    """Call a function on each value in the workers of the current backend, and return the results in order."""
    from joblib import delayed

    if jobs == 1:  # the worker stays alive for later calls
        global _worker, _owner
        if _worker is None or _owner != os.getpid():
            _worker, _owner = one_worker(), os.getpid()
        try:
            return list(_worker.map(function, values))
        except BaseException:  # includes Ctrl-C and the death of the worker; the next call starts a new worker
            _worker.shutdown(wait=True, kill_workers=True)
            _worker = None
            raise
    calls, pools = [delayed(function)(value) for value in values], _kept.get()
    if pools is None:
        return list(_parallel(jobs)(calls))
    try:
        pool = pools[jobs] = pools.get(jobs) or _parallel(jobs).__enter__()
        return list(pool(calls))
    except BaseException:
        with suppress(Exception):  # the next call gets new workers
            pools.pop(jobs).__exit__(None, None, None)
        raise


def one_worker() -> Any:
    """Return an executor of loky with one worker process on this machine."""
    loky = importlib.import_module("joblib.externals.loky")
    return loky.ProcessPoolExecutor(1, timeout=_IDLE_SECONDS, env={_SAFE_PATH: "1"}, **_with_trackers())


def on_this_machine() -> bool:
    """Whether the workers of the current backend are processes of this machine."""
    from joblib.parallel import get_active_backend

    return type(get_active_backend()[0]).__name__ == "LokyBackend"


def _parallel(jobs: int) -> Any:
    """Return the joblib object that makes the calls."""
    from joblib import Parallel
    from joblib.parallel import get_active_backend

    if not on_this_machine():
        return Parallel(n_jobs=jobs)
    safe = copy.copy(get_active_backend()[0])
    variables = safe._prepare_worker_env
    safe._prepare_worker_env = lambda n_jobs: {**variables(n_jobs), _SAFE_PATH: "1"}
    return Parallel(n_jobs=jobs, backend=safe, **_with_trackers())


def _with_trackers() -> dict[str, Any]:
    """Start the processes that loky needs before its first worker, and return the arguments of the workers."""
    users = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        for module in _TRACKERS:
            importlib.import_module(module).ensure_running()
    finally:
        _restore_safe_path(users)
    return {"initializer": _restore_safe_path, "initargs": (users,)}


def _restore_safe_path(value: str | None) -> None:
    """Restore the user's value of PYTHONSAFEPATH, because Python programs may need modules beside them."""
    if value is None:
        os.environ.pop(_SAFE_PATH, None)
    else:
        os.environ[_SAFE_PATH] = value


def dask_workers() -> frozenset[str]:
    """Return the workers of the current Dask cluster, which silently retries the runs of a dead one; or nothing."""
    from joblib.parallel import get_active_backend

    client = getattr(get_active_backend()[0], "client", None)
    return frozenset(client.nthreads()) if client is not None else frozenset()


def _module(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise BackendError(f"the backend {extra} is not installed; pip install 'dpaudit[{extra}]'") from None
