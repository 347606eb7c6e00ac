"""Tests of random streams that are identified by a seed and a path."""

import numpy as np
import pytest

from dpaudit.running import worker
from dpaudit.running.streams import stream, trial_streams


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
