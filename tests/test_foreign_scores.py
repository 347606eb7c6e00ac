"""Files of scores from strangers: a damaged or hostile file is refused with a short message, and runs no code."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.cli import score_files
from dpaudit.cli.score_files import BadScores, read_scores_file


def refused(path: Path, words: str) -> None:
    with pytest.raises(BadScores, match=words) as error:
        read_scores_file(path)
    assert str(path) in str(error.value)
    assert len(str(error.value)) < len(str(path)) + 800


def packed(**members: bytes) -> bytes:
    """Return an archive of arrays with correct checksums and a fixed date.

    Names of tests contain such archives, and the processes of pytest-xdist must agree on the names.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, body in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), body, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def array(values: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, values, allow_pickle=True)
    return content.getvalue()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".npz", ".parquet"])
def test_pipes_and_devices_are_refused_at_once(suffix: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"pipe{suffix}")
    refused(tmp_path / f"pipe{suffix}", "is not a regular file")
    (tmp_path / f"zeros{suffix}").symlink_to("/dev/zero")
    refused(tmp_path / f"zeros{suffix}", "is not a regular file")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_an_endless_line_is_not_kept_in_memory(suffix: str, tmp_path: Path) -> None:
    with (tmp_path / f"s{suffix}").open("wb") as file:
        file.truncate(2**40)  # a sparse file: it needs no space on the disk
    refused(tmp_path / f"s{suffix}", "a line has more than 1,048,576 characters")


class Runs:
    """An object that creates a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return open, ("RAN", "w")


def test_pickled_arrays_are_not_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.npz").write_bytes(packed(scores0=array(np.array([Runs()], dtype=object)), scores1=array([1.0])))
    refused(tmp_path / "s.npz", "allow_pickle=False")
    assert not (tmp_path / "RAN").exists()


def test_a_small_archive_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_files, "MAX_SCORES", 10_000)
    (tmp_path / "s.npz").write_bytes(packed(scores0=array(np.zeros(20_000)), scores1=array([1.0])))
    assert (tmp_path / "s.npz").stat().st_size < 2_000
    refused(tmp_path / "s.npz", "the arrays have .* bytes; the maximum is 80,000")


def test_a_table_is_limited_and_a_damaged_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "s.parquet"
    parquet.write_table(arrow.table({"score": np.zeros(20_000), "included": np.arange(20_000) % 2}), file)
    assert [len(side) for side in read_scores_file(file)[:2]] == [10_000, 10_000]
    monkeypatch.setattr(score_files, "MAX_SCORES", 10_000)
    refused(file, "has 20,000 values; the maximum is 10,000")
    file.write_bytes(file.read_bytes()[:-20])
    refused(file, "arquet")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 5},
        {"column_encoding": {"run": "DELTA_BYTE_ARRAY", "included": "DELTA_BINARY_PACKED"}, "use_dictionary": False},
    ],
    ids=["plain", "groups", "delta", "lengths"],
)
def test_tables_are_read_however_they_are_encoded(options: dict[str, Any], tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = 30_000
    table = {"score": np.arange(rows, dtype=float), "included": np.arange(rows) % 2, "run": ["a", "b", "b"] * 10_000}
    parquet.write_table(arrow.table(table), tmp_path / "s.parquet", **options)
    found = read_scores_file(tmp_path / "s.parquet")
    assert [list(side) for side in found[:2]] == [list(range(first, rows, 2)) for first in (0, 1)]
    assert found.run is not None
    assert [np.bincount(side).tolist() for side in found.run] == [[5_000, 10_000]] * 2
