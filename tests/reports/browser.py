"""Runs pages in headless Chromium, and returns what a script on another page finds in them."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SCREENSHOTS = os.environ.get("DPAUDIT_SCREENSHOTS", "")
"""The folder for screenshots, which continuous integration keeps; "" for no screenshots."""

_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--hide-scrollbars")


def found(page: Path, profile: Path, *, dark: bool = False, seconds: int = 10) -> dict[str, Any]:
    """Return the JSON that a page writes into its body; {"error": ...} if it writes none.

    Args:
        page: The page, whose script replaces the content of the body.
        profile: A folder for the files of the browser.
        dark: Whether the screen prefers dark colours.
        seconds: The time after which the page is taken as it is, as the clock of the page counts it.
    """
    done = _run(page, profile, f"--virtual-time-budget={1000 * seconds}", "--dump-dom", dark=dark)
    (words,) = re.findall(r"<body>(\{.*\})</body>", done, re.DOTALL) or [json.dumps({"error": done})]
    answer: dict[str, Any] = json.loads(html.unescape(words))
    return answer


def screenshot(page: Path, profile: Path, name: str, *, size: tuple[int, int], dark: bool) -> None:
    """Write a picture of a page into the folder `SCREENSHOTS`."""
    Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
    target = Path(SCREENSHOTS).absolute() / name
    _run(page, profile, f"--window-size={size[0]},{size[1]}", f"--screenshot={target}", dark=dark)


def _run(page: Path, profile: Path, *options: str, dark: bool) -> str:
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    command = [str(CHROMIUM), *_OPTIONS, f"--user-data-dir={profile}", scheme, *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False).stdout
