"""The same code in a process with other hashes of text, which change the order of sets."""

from __future__ import annotations

import os
import subprocess
import sys


def output_with_other_hashes(code: str) -> str:
    """What the code prints in a new process, whose hash seed is not this one's."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout
