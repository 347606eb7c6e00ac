"""Files of scores from strangers: a damaged or hostile file is refused with a short message, and runs no code."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.cli import parquet_chunks, score_files
from dpaudit.cli.score_files import MAX_LINE_CHARACTERS, BadScores, read_scores_file


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
    refused(tmp_path / f"s{suffix}", f"line 1 has more than {MAX_LINE_CHARACTERS:,} characters")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[" * 100_000, "line 1 is nested too deeply"),
        ('{"score": 1', "line 1 is not valid JSON"),
        (json.dumps({"score": 10**400, "included": 1}), "score must be a number"),
        (json.dumps({"score": "a" * 5000, "included": 1}), "score must be a number"),
        (json.dumps({"score": 1, "included": "a" * 5000}), "included must be 0 or 1"),
    ],
)
def test_impossible_objects_are_refused(line: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(line)
    refused(tmp_path / "s.jsonl", words)


def test_many_long_columns_are_listed_in_part(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(",".join(f"{i}{'x' * 500}" for i in range(1000)))
    refused(tmp_path / "s.csv", "and 990 more")


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


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 and no more",
        array([1.0, 2.0]),
        packed(scores0=b"\x93NUMPY\x01\x00\x10\x00{'descr': (((((\n", scores1=array([1.0])),
        packed(scores0=array([1.0]).replace(b"(1,)", b"(9" + b"9" * 15 + b",)")[:128], scores1=array([1.0])),
        packed(scores0=array([1.0]), scores1=array([1.0])).replace(b"\x08\x00", b"\x63\x00"),
        packed(scores0=array([1.0]), scores1=array([1.0]))[:-30],
    ],
)
def test_a_damaged_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "s.npz").write_bytes(content)
    refused(tmp_path / "s.npz", "the file is damaged|not an NPZ file|array")


def test_a_table_is_limited_and_a_damaged_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "s.parquet"
    parquet.write_table(arrow.table({"score": np.zeros(20_000), "included": np.arange(20_000) % 2}), file)
    assert [len(side) for side in read_scores_file(file)[:2]] == [10_000, 10_000]
    monkeypatch.setattr(score_files, "MAX_SCORES", 10_000)
    refused(file, "the file has more than 10,000 rows")
    file.write_bytes(file.read_bytes()[:-20])
    refused(file, "arquet")


READ = """
import resource, sys
from pathlib import Path
import pyarrow.parquet
from dpaudit.cli.score_files import BadScores, read_scores_file
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_scores_file(Path(sys.argv[1]))
except BadScores as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize(
    ("named", "rows", "name", "options", "words"),
    [
        ("run", 100_000, "a" * 2_000_000, {}, "the name of a run has 2,000,000 characters; the maximum is 1,000"),
        ("run", 3_000, "a" * 500_000, {}, "the name of a run has 500,000 characters; the maximum is 1,000"),
        ("score", 3_000, "a" * 500_000, {}, "score must be a list of numbers, got string"),
        ("included", 3_000, "a" * 500_000, {}, "included must be a list of numbers, got string"),
        (
            "run",
            400,
            "a" * 500_000,
            {"use_dictionary": False, "column_encoding": {"run": "DELTA_BYTE_ARRAY"}},
            "run is encoded as DELTA_BYTE_ARRAY",
        ),
    ],
    ids=["a very long name", "a long name", "score", "included", "delta"],  # pytest passes the id to child processes
)
def test_a_small_table_does_not_fill_the_memory(
    named: str, rows: int, name: str, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    """A name that many rows share is stored once.  Once memory held a copy of the name for each row."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file, numbers = tmp_path / "s.parquet", arrow.array([0, 1] * (rows // 2))
    shared = arrow.DictionaryArray.from_arrays(arrow.array([0] * rows, arrow.int32()), arrow.array([name]))
    if options:
        shared = shared.cast(arrow.large_string())
    columns = {"score": numbers, "included": numbers, named: shared}
    parquet.write_table(arrow.table(columns), file, compression="zstd", store_schema=False, **options)
    assert file.stat().st_size < 10_000
    done = subprocess.run([sys.executable, "-c", READ, str(file)], capture_output=True, text=True, check=True)
    refusal, megabytes = done.stdout.splitlines()
    assert words in refusal
    assert int(megabytes) < 100


# Four scores with the columns run, score and included.  One byte of the metadata of a chunk is changed.
_DAMAGED_CHUNK = (
    "eNp9kU1Kw0AUx99MahiCixD6QgeyyKaDxbZYoeIiYNxnUbxBTAMpaBLzoTfwCB7ItcfoAcQT+CZJRfBjmJn/fLzf/z1mNtc3Kxzh"
    "GMcRCTgADABiPd0ioIPOHAXaaKLp0RmnIRgzLAoOMYzoTjN9e78aFmEvYlA7JCfK8IsTN/ZAVj76h/SHxgb9vwgZrWFi1kmW3sdo"
    "UvCUT4yqzacQ6Ui0aH9UJ0WVUhpai12e3LXbdAuukJ4MFHh4LNdg2rLjkM7dzM3UpRKzuS4JuS7BJgkIMaUCQcaaswau9+/IF0Zd"
    "vTFV/oBn39HRgH6V09GN26hXrp7537D7wV2hBAmc+GVcPbRps0jKchFXVfHkP6ZVvSty//xiebZcyYDeoO9wSu+5ob/+BAr+PjU="
)


def test_damaged_metadata_of_a_chunk_do_not_end_the_process(tmp_path: Path) -> None:
    """pyarrow ends the process that reads these metadata with SIGABRT; old releases refuse them by themselves."""
    pytest.importorskip("pyarrow")
    (tmp_path / "s.parquet").write_bytes(zlib.decompress(base64.b64decode(_DAMAGED_CHUNK)))
    refused(tmp_path / "s.parquet", "the metadata of its columns cannot be read|applied to primitive type")


def _footer(columns: int, groups: int, depth: int = 0) -> bytes:
    """Return a Parquet file without data, with the given numbers of columns and of empty groups of rows.

    The metadata are a structure of Thrift's compact protocol, whose lists and numbers are written by hand here.
    """

    def number(value: int) -> bytes:
        return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])

    def listed(items: list[bytes]) -> bytes:
        return bytes([0xFC]) + number(len(items)) + b"".join(items)

    def group(name: bytes, children: int) -> bytes:
        return bytes([0x35, 0, 0x18]) + number(len(name)) + name + bytes([0x15]) + number(2 * children) + b"\0"

    leaves = [b"\x15\x0a\x25\x00\x18" + number(len(name)) + name + b"\0" for name in _names(columns)]
    schema = [group(b"r", 1 if depth else columns), *[group(b"g", 1)] * depth, *leaves]
    chunks = listed([b"\x26\x08\0"] * columns)
    rows = [b"\x19" + chunks + b"\x16\0\x16\0\0"] * groups
    content = b"\x15\x02\x19" + listed(schema) + b"\x16\0\x19" + listed(rows) + b"\0"
    return b"PAR1" + content + len(content).to_bytes(4, "little") + b"PAR1"


def _names(columns: int) -> list[bytes]:
    return [b"c%d" % i for i in range(columns)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (_footer(6_000, 0), "the file has 6,000 columns and 0 groups of rows; the maximum is 5,000 each"),
        (_footer(1, 6_000), "the file has 1 columns and 6,000 groups of rows; the maximum is 5,000 each"),
        (_footer(1, 600_000), "the metadata of the file have .* bytes; the maximum is 4,194,304"),
        (_footer(1, 0, 300_000), "the metadata of its columns cannot be read"),
        (_footer(1, 0), "score"),
    ],
    ids=["columns", "groups", "long", "deep", "few"],
)
def test_large_metadata_of_a_table_are_refused_before_this_process_reads_them(
    content: bytes, words: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "s.parquet").write_bytes(content)
    refused(tmp_path / "s.parquet", words)


def test_a_table_that_expands_beyond_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata may state any size, so another process tries to read the columns with little memory."""
    monkeypatch.setattr(parquet_chunks, "_ROOM", 2**26)
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = arrow.array([chr(97 + i) * 6_000_000 for i in range(20)])
    table = arrow.table({"score": np.zeros(20), "included": np.arange(20) % 2, "run": names})
    file = tmp_path / "s.parquet"
    parquet.write_table(table, file, compression="zstd", use_dictionary=False, store_schema=False)
    refused(file, "its columns are damaged, or need more than a gigabyte")


def test_the_process_that_reads_metadata_leaves_the_file_at_its_start(tmp_path: Path) -> None:
    """Both processes share one position in the file."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = 30_000  # more bytes than the buffer of a file
    table = {"score": np.arange(rows, dtype=float), "included": np.arange(rows) % 2, "run": ["a"] * rows}
    parquet.write_table(arrow.table(table), tmp_path / "s.parquet")
    with (tmp_path / "s.parquet").open("rb") as file:
        file.read(10)
        assert len(parquet_chunks.sizes(file, ["score", "included", "run"])) == 1
        assert file.read() == (tmp_path / "s.parquet").read_bytes()
