"""Reads the sizes of a column's chunks in a Parquet file in a separate process, which prints them.

pyarrow ends the process if the metadata of a chunk are damaged, so the process of the command does not read them.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from typing import BinaryIO

_WHOLE = {"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED"}  # other encodings understate sizes
_SECONDS = 60.0  # time limit of the separate process


class Unreadable(Exception):
    """Raised if the metadata cannot be read."""


def sizes(file: BinaryIO, column: str) -> list[int]:
    """Return the uncompressed size of each chunk of a column, in bytes.

    Args:
        file: The open file, which must have a file descriptor.
        column: Name of the column.

    Raises:
        Unreadable: If the metadata are damaged, or reading them takes more than a minute.
        ValueError: If a chunk has an encoding that understates its size.
    """
    command = [sys.executable, "-P", "-m", "dpaudit.cli.parquet_chunks", column]
    try:
        done = subprocess.run(command, stdin=file, capture_output=True, timeout=_SECONDS, check=True)
        found: list[tuple[int, list[str]]] = [(int(size), list(kinds)) for size, kinds in json.loads(done.stdout)]
    except (subprocess.SubprocessError, ValueError):
        raise Unreadable("the metadata of its columns cannot be read") from None
    finally:
        file.seek(0, os.SEEK_END)  # empties the buffer, because the other process has moved the shared position
        file.seek(0)
    if odd := {kind for _, kinds in found for kind in kinds} - _WHOLE:
        raise ValueError(f"{column} is encoded as {min(odd)}; write the column with dictionary or plain encoding")
    return [size for size, _ in found]


def _main() -> None:
    (column,) = sys.argv[1:]
    metadata = importlib.import_module("pyarrow.parquet").ParquetFile(sys.stdin.buffer).metadata
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    parts = (group.column(i) for group in groups for i in range(group.num_columns))
    found = [(part.total_uncompressed_size, part.encodings) for part in parts if part.path_in_schema == column]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    _main()
