"""Runs code in a process with other hashes of text, so that sets have another order."""

import os
import subprocess
import sys


def output_with_other_hashes(code: str) -> str:
    """Return the output of code in a new process whose hash seed differs from that of this process."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout
