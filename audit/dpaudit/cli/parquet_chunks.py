"""Reads the columns of a Parquet file first in a separate process with little memory.

pyarrow ends the process if the metadata of a chunk are damaged.  A small file may also state a wrong size of its pages,
which then expand to gigabytes.  So the process of the command reads a file only after another process could read it.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_WHOLE = {"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED"}  # other encodings understate sizes
_SECONDS = 60.0  # time limit of the separate process
_ROOM = 2**30  # bytes that the separate process may use to read the columns
_ROWS = 65_536  # number of rows that it reads at once


class Unreadable(Exception):
    """Raised if the columns cannot be read."""


def sizes(file: BinaryIO, columns: Sequence[str]) -> list[int]:
    """Read columns, and return the uncompressed size of each chunk of the last column, in bytes.

    Args:
        file: The open file, which must have a file descriptor.
        columns: Names of the columns.

    Raises:
        Unreadable: If the file is damaged, or reading it takes more than a minute or a gigabyte.
        ValueError: If a chunk of the last column has an encoding that understates its size.
    """
    command = [sys.executable, "-P", "-m", "dpaudit.cli.parquet_chunks", str(_ROOM), *columns]
    # the other allocators of pyarrow reserve more than the limit when they start
    variables = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, stdin=file, env=variables, capture_output=True, timeout=_SECONDS, check=False)
        found: list[tuple[int, list[str]]] = [(int(size), list(kinds)) for size, kinds in json.loads(done.stdout)]
    except (subprocess.SubprocessError, ValueError):
        raise Unreadable("the metadata of its columns cannot be read") from None
    finally:
        file.seek(0, os.SEEK_END)  # empties the buffer, because the other process has moved the shared position
        file.seek(0)
    if odd := {kind for _, kinds in found for kind in kinds} - _WHOLE:
        raise ValueError(f"{columns[-1]} is encoded as {min(odd)}; write the column with dictionary or plain encoding")
    if done.returncode:
        raise Unreadable("its columns are damaged, or need more than a gigabyte")
    return [size for size, _ in found]


def _main() -> None:
    room, *columns = sys.argv[1:]
    table = importlib.import_module("pyarrow.parquet").ParquetFile(sys.stdin.buffer, read_dictionary=columns[-1:])
    metadata = table.metadata
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    parts = (group.column(i) for group in groups for i in range(group.num_columns))
    found = [(part.total_uncompressed_size, part.encodings) for part in parts if part.path_in_schema == columns[-1]]
    print(json.dumps(found), flush=True)
    _limit_memory(int(room))
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
