"""Reads the metadata and the columns of a Parquet file first in a separate process with little memory.

pyarrow ends the process if the metadata of a chunk are damaged.  A small file may also state a wrong size of its pages,
which then expand to gigabytes, or state millions of columns.  So the process of the command reads a file only after
another process could read it.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_WHOLE = {"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED"}  # other encodings understate sizes
_SECONDS = 60.0  # time limit of the separate process
_ROOM = 2**30  # bytes that the separate process may use to read the columns
_ROOM_FOR_METADATA = 2**28
_MAX_FOOTER = 2**22  # maximum size of the metadata of a file, in bytes
_MAX_COLUMNS = 5_000  # maximum number of columns, and of groups of rows
_ENDS = (b"PAR1", b"PARE")  # the last bytes of a Parquet file
_ROWS = 65_536  # number of rows that it reads at once
_NO_METADATA = "the metadata of its columns cannot be read"


class Unreadable(Exception):
    """Raised if the columns cannot be read."""


def check_metadata(file: BinaryIO) -> None:
    """Check that the metadata of a file are small, and that another process with little memory can read them.

    A file without the mark of a Parquet file is not checked, because pyarrow refuses it at once.

    Args:
        file: The open file, which must have a file descriptor.

    Raises:
        Unreadable: If the metadata are damaged, or reading them takes more than a minute or 256 MiB.
        ValueError: If the metadata, or the numbers of columns or groups of rows, are too large.
    """
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - 8))
    end = file.read(8)
    file.seek(0)
    if end[4:] not in _ENDS:
        return
    if (size := int.from_bytes(end[:4], "little")) > _MAX_FOOTER:
        raise ValueError(f"the metadata of the file have {size:,} bytes; the maximum is {_MAX_FOOTER:,}")
    if _elsewhere(file, ()).returncode:
        raise Unreadable(_NO_METADATA)


def sizes(file: BinaryIO, columns: Sequence[str]) -> list[int]:
    """Read columns, and return the uncompressed size of each chunk of the last column, in bytes.

    Args:
        file: The open file, which must have a file descriptor.
        columns: Names of the columns.

    Raises:
        Unreadable: If the file is damaged, or reading it takes more than a minute or a gigabyte.
        ValueError: If a chunk of the last column has an encoding that understates its size.
    """
    done = _elsewhere(file, columns)
    found = done.chunks
    if odd := {kind for _, kinds in found for kind in kinds} - _WHOLE:
        raise ValueError(f"{columns[-1]} is encoded as {min(odd)}; write the column with dictionary or plain encoding")
    if done.returncode:
        raise Unreadable("its columns are damaged, or need more than a gigabyte")
    return [size for size, _ in found]


@dataclass(frozen=True, slots=True)
class _Done:
    chunks: list[tuple[int, list[str]]]  # size and encodings of each chunk of the last column
    returncode: int


def _elsewhere(file: BinaryIO, columns: Sequence[str]) -> _Done:
    """Read the metadata, and columns if there are any, in another process.

    Raises:
        Unreadable: If the other process cannot read the metadata.
        ValueError: If the file has too many columns or groups of rows.
    """
    room = _ROOM if columns else min(_ROOM, _ROOM_FOR_METADATA)
    command = [sys.executable, "-P", "-m", "dpaudit.cli.parquet_chunks", str(room), *columns]
    # the other allocators of pyarrow reserve more than the limit when they start, and so do many threads
    variables = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "ARROW_IO_THREADS", "MALLOC_ARENA_MAX"), "1")}
    variables["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    try:
        done = subprocess.run(command, stdin=file, env=variables, capture_output=True, timeout=_SECONDS, check=False)
        width, groups, chunks = json.loads(done.stdout)
        found = [(int(size), list(kinds)) for size, kinds in chunks]
    except (subprocess.SubprocessError, ValueError):
        raise Unreadable(_NO_METADATA) from None
    finally:
        file.seek(0, os.SEEK_END)  # empties the buffer, because the other process has moved the shared position
        file.seek(0)
    if max(width, groups) > _MAX_COLUMNS:
        words = f"the file has {width:,} columns and {groups:,} groups of rows; the maximum is {_MAX_COLUMNS:,} each"
        raise ValueError(f"{words}; write only the needed columns, and larger groups")
    return _Done(found, done.returncode)


def _main() -> None:
    room, *columns = sys.argv[1:]
    parquet = importlib.import_module("pyarrow.parquet")
    _limit_memory(int(room))  # before the metadata are read, whose size a stranger chooses
    table = parquet.ParquetFile(sys.stdin.buffer, read_dictionary=columns[-1:])
    metadata = table.metadata
    if not columns or max(metadata.num_columns, metadata.num_row_groups) > _MAX_COLUMNS:
        numbers = [metadata.num_columns, metadata.num_row_groups, []]
        if max(numbers[:2]) <= _MAX_COLUMNS:
            _ = table.schema_arrow.names  # the process of the command reads them, too
        print(json.dumps(numbers), flush=True)
        return
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    parts = (group.column(i) for group in groups for i in range(group.num_columns))
    found = [(part.total_uncompressed_size, part.encodings) for part in parts if part.path_in_schema == columns[-1]]
    print(json.dumps([metadata.num_columns, metadata.num_row_groups, found]), flush=True)
    for _ in table.iter_batches(batch_size=_ROWS, columns=columns, use_threads=False):
        pass


def _limit_memory(room: int) -> None:
    """Limit the further address space of this process to `room` bytes, where the system can do so."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))


if __name__ == "__main__":
    _main()
