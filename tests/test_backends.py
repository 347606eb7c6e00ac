"""Real clusters of Dask and Ray on this machine give the same result as one core."""

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
from dpaudit.running import worker
from dpaudit.running.backends import BackendError, backend
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.streams import stream, trial_streams

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


# --- tests of random streams that are identified by a seed and a path


def test_each_trial_has_the_generator_that_it_would_have_alone() -> None:
    """This also holds after a trial that left half a word or drew many numbers.  The reference makes new generators."""
    for rng, trial in zip(trial_streams(3, "trial", 0, 1, start=5, stop=9), range(5, 9), strict=True):
        assert rng.bit_generator.state["state"]["counter"].tolist() == [0, 0, trial, 0]
        key = rng.bit_generator.state["state"]["key"]
        alone = np.random.Generator(np.random.Philox(key=key, counter=[0, 0, trial, 0]))
        for generator in (rng, alone):
            generator.integers(0, 9, dtype=np.int32)  # half a word
        assert rng.normal(size=999).tolist() == alone.normal(size=999).tolist()
    (again,) = trial_streams(3, "trial", 0, 1, start=8, stop=9)
    alone.bit_generator.state = again.bit_generator.state
    assert again.random(9).tolist() == alone.random(9).tolist()


def test_paths_and_seeds_differ() -> None:
    found = {stream(seed, *path).random() for seed in (0, 1) for path in [("a",), ("a", 0), ("a", 1), ("b", 0)]}
    assert len(found) == 8


def test_a_stream_is_that_of_its_key() -> None:
    """Streams of earlier versions stay the same, and so do the results of a seed."""
    key = stream(3, "a").bit_generator.state["state"]["key"]
    assert stream(3, "a").random(9).tolist() == np.random.Generator(np.random.Philox(key=key)).random(9).tolist()


def test_a_mechanism_may_spawn_generators() -> None:
    """The children depend on the trial and their number, whichever trials ran before, and never repeat."""
    together = [
        [child.random() for child in [*rng.spawn(2), *rng.spawn(1)]] for rng in trial_streams(1, start=0, stop=4)
    ]
    for trial, drawn in enumerate(together):
        (rng,) = trial_streams(1, start=trial, stop=trial + 1)
        assert [child.random() for child in rng.spawn(3)] == drawn
    (own,) = trial_streams(1, start=0, stop=1)
    assert (
        len({*np.concatenate(together), *own.random(9), *(child.random() for child in stream(1, "b").spawn(3))}) == 24
    )


@pytest.mark.parametrize("key", [0, 5, 2**64 + 3, 2**128 - 1])
def test_a_mechanism_in_an_environment_may_spawn_generators(key: int) -> None:
    """The worker's file has a separate implementation, which imports nothing of dpaudit."""
    rng = np.random.Generator(np.random.Philox(worker._spawnable(key)))  # type: ignore[arg-type]
    assert rng.random(9).tolist() == np.random.Generator(np.random.Philox(key=key)).random(9).tolist()
    assert len({child.random() for child in [*rng.spawn(2), *rng.spawn(1)]}) == 3
