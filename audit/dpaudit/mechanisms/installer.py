"""Runs uv, which makes environments and installs packages, with the user's settings for uv and for pip."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dpaudit.mechanisms.protocol import MechanismError

_SHOWN = 15  # number of final lines of a failed installer that a message quotes

# Settings of pip, and the variables with which uv takes them.  Other settings of uv, such as UV_DEFAULT_INDEX, have
# priority over these variables.
# uv itself does not read UV_NO_INDEX.
_OF_PIP = {
    "index-url": "UV_INDEX_URL",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "constraint": "UV_CONSTRAINT",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
_OF_INDEXES = {"UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_STRATEGY", *list(_OF_PIP.values())[:5]}
_CREDENTIALS = re.compile(r"(?<=//)[^/\s]*@")  # a new password does not change the index

# Words of uv for a server that cannot be reached or that fails.  Only lines of uv itself count: it indents what a
# package prints while it is built by at least eight spaces.
_NETWORK = re.compile(
    r"^ {4,7}\S.*(?:error sending request|dns error|tunnel error|timed out|connection (?:refused|reset|closed)"
    r"|server error \(5\d\d|network was disabled)",
    re.M | re.I,
)


def run_uv(words: Sequence[str], what: str, given: str = "") -> str:
    """Run uv outside of all projects, with `given` as its stdin, and return its stdout."""
    env = variables()
    no_index = words[0] == "pip" and env.get("UV_NO_INDEX", "").lower() in ("1", "true", "yes", "on", "t", "y")
    command = [_program(), *words, *(["--no-index"] if no_index else [])]
    if env.get("UV_CONFIG_FILE"):
        env["UV_CONFIG_FILE"] = os.path.abspath(env["UV_CONFIG_FILE"])
    if "--require-hashes" in words:  # uv refuses constraints, which have no hashes
        env.pop("UV_CONSTRAINT", None)
    done = subprocess.run(command, input=given, capture_output=True, text=True, errors="replace", env=env, cwd="/")
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip("\n").rstrip().split("\n")[-_SHOWN:]
        said = "\n".join(f"    {' '.join(line.splitlines())}" for line in lines)
        raise MechanismError(f"{what} failed; uv printed:\n{said}")
    return done.stdout


def is_network_failure(reason: str) -> bool:
    """Whether the message of a failed installation shows that the network failed, which may be temporary."""
    return reason.startswith("installing ") and _NETWORK.search(reason) is not None


def index_settings() -> dict[str, str]:
    """Return the settings that choose the packages, without the credentials in URLs."""
    found = {name: value for name, value in variables().items() if name in _OF_INDEXES} | _uv_files()
    return {name: _CREDENTIALS.sub("", value) for name, value in found.items()}


def variables() -> dict[str, str]:
    """Return the environment variables for uv: those of this process, and settings of pip that these leave open.

    If a settings file of uv names indexes, those of pip do not count.
    """
    settings = _pip_settings()
    if any("index" in text for text in _uv_files().values()):
        settings = {name: value for name, value in settings.items() if "index" not in name}
    found = {_OF_PIP[name]: " ".join(value.split()) for name, value in settings.items() if value.strip()}
    if "UV_EXTRA_INDEX_URL" in found:
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # the choice of pip
    if "UV_FIND_LINKS" in found:
        found["UV_FIND_LINKS"] = found["UV_FIND_LINKS"].replace(" ", ",")
    return found | {**os.environ}


def pip_variables() -> dict[str, str]:
    """Return the environment variables with which pip reads the indexes that uv reads, except those of `uv.toml`."""
    found = variables()
    extra = f"{found.get('UV_INDEX', '')} {found.get('UV_EXTRA_INDEX_URL', '')}"
    settings = {
        "PIP_INDEX_URL": found.get("UV_DEFAULT_INDEX") or found.get("UV_INDEX_URL"),
        "PIP_EXTRA_INDEX_URL": re.sub(r"(?<!\S)[\w-]+=(?=\w+:)", "", extra).strip(),  # uv also takes NAME=URL
        "PIP_FIND_LINKS": found.get("UV_FIND_LINKS", "").replace(",", " "),
        "PIP_NO_INDEX": found.get("UV_NO_INDEX"),
    }
    return found | {name: value for name, value in settings.items() if value}


def _program() -> str:
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        raise MechanismError(
            "private environments are built with uv, which is not installed; run `python -m pip install 'uv>=0.13'`"
        ) from None


def _pip_settings() -> dict[str, str]:
    """Return the settings in `_OF_PIP` from pip's files and variables."""
    parser = configparser.RawConfigParser()
    found: dict[str, str] = {}
    home, mac = os.path.expanduser("~"), "Library/Application Support"
    folders = [*_settings_folders(), f"/{mac}", f"{home}/{mac}"]
    named = os.environ.get("PIP_CONFIG_FILE", "")
    files = [f"{folder}/pip/pip.conf" for folder in folders]
    files = ["/etc/pip.conf", *files, f"{home}/.pip/pip.conf", f"{sys.prefix}/pip.conf", named]
    try:
        parser.read([] if named == os.devnull else files, encoding="utf-8")
    except (configparser.Error, ValueError) as error:
        raise MechanismError(f"the settings of pip cannot be read: {error}") from None
    for section in filter(parser.has_section, ("global", "install")):
        found |= parser[section]
    found |= {name[4:].lower(): value for name, value in os.environ.items() if name.startswith("PIP_")}
    names = {name: name.replace("_", "-") for name in found}
    return {names[name]: value for name, value in found.items() if names[name] in _OF_PIP}


def _uv_files() -> dict[str, str]:
    """Return the content of the settings files of uv."""
    named = os.environ.get("UV_CONFIG_FILE")
    files = [Path(named)] if named else [Path(folder, "uv", "uv.toml") for folder in (*_settings_folders(), "/etc")]
    return {str(file): file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()}


def _settings_folders() -> list[str]:
    """Return the folders in which programs keep their settings; the later ones have priority."""
    system = (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    return [*system, os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")]
