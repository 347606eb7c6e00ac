"""Real clusters of Dask and Ray on this machine give the same result as one core."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, Pair, Verdict, audit
from dpaudit.engine.audit import Progress
from dpaudit.running.backends import BackendError, backend
from dpaudit.running.mechanisms import PythonMechanism

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

MECHANISM = PythonMechanism(f"{__file__}:unhurried")


def unhurried(dataset: list[float], rng: np.random.Generator) -> float:
    time.sleep(0.002)
    return dataset[0] + float(rng.normal())


def found(jobs: int, progress: Callable[[Progress], None] | None = None) -> object:
    result = audit(
        MECHANISM, "gaussian(mu=1)", Pair([0], [1]), trials=400, jobs=jobs, progress=progress, seed=0, confidence=0.95
    )
    return comparable(result)


def comparable(result: AuditResult) -> object:
    values = result.to_dict()
    return [values[key] for key in ("verdict", "evidence", "history", "witness", "trials_used", "mu_lower")]


@pytest.fixture(scope="module")
def expected() -> object:
    return found(jobs=1)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A Dask scheduler on a port that the system chooses, and two workers, each a process."""
    file = tmp_path / "scheduler.json"  # the scheduler writes its address into this file
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = (
        [sys.executable, "-m", "distributed.cli.dask_scheduler"],
        [sys.executable, "-m", "distributed.cli.dask_worker"],
    )
    place = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
    scheduler = subprocess.Popen([*dask[0], *place, "--no-dashboard"], **quiet)  # type: ignore[call-overload]
    processes = [scheduler]
    try:
        address = written_address(file)
        processes += [
            subprocess.Popen([*dask[1], address, "--nthreads", "1", "--no-nanny", "--no-dashboard"], **quiet)  # type: ignore[call-overload]
            for _ in range(2)
        ]
        yield address, processes[1:]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def written_address(file: Path) -> str:
    """Wait until the scheduler has written its file, and return its address."""
    for _ in range(1200):
        try:
            return str(json.loads(file.read_text())["address"])
        except (OSError, ValueError):  # not written, or only in part
            time.sleep(0.1)
    raise TimeoutError(f"the scheduler has not written {file} in two minutes")


def wait_for(address: str, workers: int) -> None:
    from distributed import Client

    connect: Any = Client
    with connect(address, timeout="60s", set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=60)


@pytest.mark.slow  # it hung now and then on a busy machine, inside joblib's wait for Dask
def test_a_dask_cluster_gives_the_same_result_also_when_a_worker_dies(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], expected: object
) -> None:
    address, workers = cluster
    wait_for(address, 2)

    def kill_one(now: Progress) -> None:
        if now.trials >= 150:
            workers[0].send_signal(signal.SIGKILL)

    with backend("dask", address):
        assert found(jobs=-1, progress=kill_one) == expected
    assert workers[0].wait() == -signal.SIGKILL


def exits(dataset: list[float], rng: np.random.Generator) -> float:
    if rng.random() < 0.05:
        sys.exit(0)
    return unhurried(dataset, rng)


@pytest.mark.slow
def test_an_exit_in_a_dask_worker_ends_the_audit_inconclusive(
    cluster: tuple[str, list[subprocess.Popen[bytes]]],
) -> None:
    """The seed is fixed."""
    wait_for(cluster[0], 2)
    with backend("dask", cluster[0]):
        mechanism = PythonMechanism(f"{__file__}:exits")
        result = audit(mechanism, "gaussian(mu=1)", Pair([0], [1]), trials=400, jobs=-1, seed=0)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("SystemExit" in words for words in result.warnings)


@pytest.mark.slow
def test_ray_gives_the_same_result(expected: object) -> None:
    pytest.importorskip("ray")
    with backend("ray"):
        assert found(jobs=2) == expected


def test_what_cannot_be_had_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait for a scheduler is shorter here."""
    distributed: Any = pytest.importorskip("distributed")
    connect = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda *place, **options: connect(*place, **options | {"timeout": 0.1}))
    with pytest.raises(ValueError, match="backend must be one of loky, dask, ray, got 'mpi'"), backend("mpi"):
        pass
    with pytest.raises(ValueError, match="needs the address of its scheduler"), backend("dask"):
        pass
    with pytest.raises(ValueError, match="allowed only with the backends dask and ray"), backend("loky", "a"):
        pass
    with (
        pytest.raises(BackendError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1:"),
        backend("dask", "tcp://127.0.0.1:1"),
    ):
        pass
