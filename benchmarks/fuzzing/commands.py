"""Fuzz the arguments of the command line, and the terminal output of files that contain hostile text."""

from __future__ import annotations

import io
import json
import re
import sys
import unicodedata
from pathlib import Path

import yaml

from dpaudit import AuditResult, OnlineAudit, Pair, audit
from dpaudit.catalogue import Gaussian
from dpaudit.cli.app import main

from .mutations import (
    CONTROL,
    FORGED,
    HOSTILE,
    SCRAPS,
    VALUES,
    Random,
    Target,
    Wrong,
    encoded,
    of_text,
    with_hostile_text,
)

_STYLE = re.compile(r"\x1b\[(?!8m)[0-9;]*m|\r\x1b\[2K|\r[a-z ]+ \.\.\.\x1b\[K")
_DIRECTIONS = set("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# documented exit codes; other commands have the exit codes 0 and 2
_DOCUMENTED = {"run": {0, 1, 2, 3}, "replay": {0, 1, 2, 3}, "scores": {0, 1, 2, 3}}
_NUMBERS = ["0", "-1", "1", "7", "0.5", "1e-300", "1e300", "nan", "inf", "9" * 30, "1e5", "0.999999999999"]
_CONFIG = """\
name: noise
claim: gaussian(mu=1)
source: a paper
mechanism: {builtin: gaussian, params: {sigma: 1.0}}
pairs: [{d0: [0], d1: [1], label: a pair, relation: replace_one}]
trials: 60
seed: 0
"""
_FOREIGN = """\
name: foreign
claim: gaussian(mu=1)
mechanism: {command: [sh, -c, "touch RAN; cat"]}
pairs: [{d0: [0], d1: [1]}]
"""
_COMMANDS = """\
run c.yaml --dry-run --no-code --trials 50 --confidence 0.9 --seed 1 -x
run c.yaml --format json --jobs 1 --each -k noise --no-pdf --dry-run
replay r.json --no-code --dry-run --trials 10 --seed 2 --folder .
report r.json
report r.json c.yaml s.csv
scores s.csv --independence runs --claim gaussian(mu=1) --delta 1e-5 --seed 1
scores s.csv --independence canaries --assuming gaussian --confidence 0.9
convert gaussian(mu=1) pure(epsilon=1) --delta 1e-5
convert zcdp(rho=0.5) --epsilon 1
plan pure(epsilon=1) pure(epsilon=2) --power 0.8 --confidence 0.9
list attacks
list configs
sweep pydp --only Count --time 1m
schema
--version"""


class _Screen(io.StringIO):
    """A text stream that may claim to be a terminal."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def run(arguments: list[str], *, terminal: bool) -> tuple[int, str]:
    """Run `dpaudit` in this process.

    Args:
        arguments: The command-line arguments after `dpaudit`.
        terminal: If True, stdout and stderr claim to be terminals.

    Returns:
        The exit code, and the text that was written to stdout and stderr.

    Raises:
        Wrong: If the exit code is not documented, or if the text contains raw control characters.
    """
    before = sys.argv, sys.stdout, sys.stderr
    out, err = _Screen(terminal), _Screen(terminal)
    sys.argv, sys.stdout, sys.stderr = ["dpaudit", *arguments], out, err
    try:
        main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv, sys.stdout, sys.stderr = before
    text = out.getvalue() + err.getvalue()
    if code not in _DOCUMENTED.get(arguments[0] if arguments else "", {0, 2}):
        raise Wrong(f"exit code {code}: {text[-300:]!r}")
    assert isinstance(code, int)
    if "Traceback" in text or "internal error" in text:
        raise Wrong(f"{text[-300:]!r}")
    raw = raw_controls(text)
    if raw:
        at = _STYLE.sub("", text).index(raw[0])
        raise Wrong(f"raw {raw!r} on the terminal: ...{text[max(0, at - 80) : at + 80]!r}")
    if not terminal and (forged := [line for line in text.splitlines() if line.startswith(FORGED)]):
        raise Wrong(f"a line that text of a file begins: {forged[0][:80]!r}")
    return code, text


def raw_controls(text: str) -> list[str]:
    """Return the control characters of a text, except for line breaks and codes that only change the colour of text."""
    plain = _STYLE.sub("", text)
    return sorted({c for c in plain if (unicodedata.category(c) == "Cc" and c != "\n") or c in _DIRECTIONS})


class CommandLine(Target):
    """Commands with changed, omitted, repeated or exchanged arguments.

    No argument names a file outside the temporary folder.
    """

    name, share, seconds = "command line", 0.05, 15.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "c.yaml").write_text(_CONFIG)
        (folder / "s.csv").write_text("score,included\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(40)))
        result = audit(Gaussian(1.0), "gaussian(mu=1)", Pair([0], [1]), trials=60, seed=0, confidence=0.95)
        result.to_json(folder / "r.json")
        self.samples = [line.split() for line in _COMMANDS.splitlines()]

    def attempt(self, rng: Random) -> str:
        words = list(self.samples[rng.integers(len(self.samples))])
        for _ in range(int(rng.integers(1, 3))):
            place = int(rng.integers(len(words)))
            kind = rng.integers(8)
            if kind >= 6 and re.fullmatch(r"[0-9.e-]+", words[place]):
                words[place] = _NUMBERS[rng.integers(len(_NUMBERS))]
            elif kind == 0 and place > 0:
                words[place] = str(VALUES[rng.integers(len(VALUES))])
            elif kind == 1 and place > 0:
                words[place] = SCRAPS[rng.integers(len(SCRAPS))] + words[place]
            elif kind == 2 and place > 0 and words[place]:
                words[place] = of_text(words[place], rng)
            elif kind == 3 and len(words) > 1:
                del words[place]
            elif kind == 4:
                words.insert(place + 1, words[place])
            else:
                other = self.samples[rng.integers(len(self.samples))]
                words.insert(place + 1, other[rng.integers(len(other))])
        # no operating system passes NUL characters to a program
        words = [word.replace("\0", "") for word in words if _harmless(word)]
        if words and words[0] in ("run", "replay", "compare", "sweep"):
            words.insert(1, "--dry-run")
        self.tried = words
        code, _ = run(words, terminal=bool(rng.random() < 0.3))
        return f"exit {code}"


def _harmless(word: str) -> bool:
    """Return whether an argument neither writes a file outside the temporary folder nor connects to a cluster."""
    return not word.startswith(
        ("/", "--log", "--backend", "--scheduler", "--with", "-o", "--out", "--pl", "init")
    ) and (".." not in word)


class Terminal(Target):
    """Result files, configs and score files with hostile text in their contents or names, for each command that prints
    them.
    """

    name, share, seconds = "terminal", 0.05, 15.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        pairs = [Pair([0], [1], label="a pair"), Pair([0], [0])]
        found = audit(Gaussian(0.3), "gaussian(mu=1)", pairs, trials=200, seed=0, confidence=0.95, name="a name")
        held = audit(Gaussian(1.0), "gaussian(mu=1)", pairs, trials=60, seed=0, confidence=0.95, method="fixed")
        stream = OnlineAudit("gaussian(mu=1)", seed=0, attacks="median_clipped")
        for _ in range(60):
            stream.update(float(stream.coin()))
        self.results = [one.to_dict() for one in (found, held, stream.result())]
        for values in self.results:
            environment = values["environment"]
            environment |= {"audit": _CONFIG, "config": "c.yaml", "folder": str(folder), "source": "a paper"}
            environment |= {"note": "text", "command": "dpaudit run c.yaml"}
            values["warnings"] = [*values["warnings"], {"code": "other", "text": "a warning"}]
            AuditResult.from_dict(values)

    def attempt(self, rng: Random) -> str:
        tried = (self._result, self._config, self._scores)[rng.integers(3)](rng)
        terminal = bool(rng.random() < 0.3)
        code = run(tried, terminal=terminal)[0]
        return f"{tried[0]} {'refused' if code == 2 else 'shown'}"

    def _result(self, rng: Random) -> list[str]:
        values = self.results[rng.integers(len(self.results))]
        self.tried = changed = with_hostile_text(values, rng)
        if rng.random() < 0.3:
            changed["environment"]["audit"] = yaml.dump(with_hostile_text(yaml.safe_load(_FOREIGN), rng))
        file = self._named("r", ".json", rng)
        file.write_text(json.dumps(changed))
        options = [["report"], ["replay", "--dry-run"], ["replay", "--dry-run", "--no-code"]][rng.integers(3)]
        return [options[0], file.name, *options[1:]]

    def _config(self, rng: Random) -> list[str]:
        values = yaml.safe_load([_CONFIG, _FOREIGN][rng.integers(2)])
        changed = with_hostile_text(values, rng)
        if rng.random() < 0.3:
            changed[HOSTILE] = changed.pop(list(changed)[rng.integers(len(changed))])
        self.tried = changed
        file = self._named("c", ".yaml", rng)
        file.write_bytes(encoded(yaml.dump(changed, allow_unicode=bool(rng.random() < 0.5))))
        words = [["run", "--dry-run"], ["run", "--dry-run", "--no-code"], ["list", "configs"]][rng.integers(3)]
        return words if words[0] == "list" else [*words, file.name]

    def _scores(self, rng: Random) -> list[str]:
        header = [f'"{HOSTILE}"', "score", "included"]
        row = [["1", "0"], [f'"{HOSTILE}"', "0"], ["1", f'"{HOSTILE}"']][rng.integers(3)]
        names = header if rng.random() < 0.7 else [f'"sc{CONTROL}ore"', "score", f'"included{HOSTILE}"']
        rows = [",".join(names), *(f"a,{i % 7},{i % 2}" for i in range(20)), ",".join(["a", *row])]
        file = self._named("s", ".csv", rng)
        self.tried = content = "\n".join(rows)
        file.write_bytes(encoded(content))
        claim = [] if rng.random() < 0.5 else ["--claim", "gaussian(mu=1)"]
        return ["scores", file.name, "--independence", "runs", "--seed", "0", *claim]

    def _named(self, stem: str, suffix: str, rng: Random) -> Path:
        """Return the path of a new file, with hostile text in its name with probability 1/2."""
        for left in self.folder.glob(f"[rcs]*{suffix}"):
            left.unlink()
        text = HOSTILE.replace("\0", "").replace("/", "") if rng.random() < 0.5 else ""
        return self.folder / f"{stem}{text}{suffix}"
