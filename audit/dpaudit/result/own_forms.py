"""Recognizes texts of a result file that have a form which dpaudit writes.  Reports quote all others.

Anybody may have written a result file.  Without quotation marks, a foreign sentence would read as a statement of
dpaudit.
"""

from __future__ import annotations

import re
import shlex

_NUMBER = r"[-+]?(?:\d[\d.]{0,40}(?:e[-+]?\d{1,4})?|inf|nan)"
_INTERVAL = rf"(?:above {_NUMBER}|below {_NUMBER}|at most {_NUMBER}|between {_NUMBER} and {_NUMBER})"
_LABEL = r"[^\s,{}“”]{1,40}"  # without spaces, so that labels form no sentence
_INTERVALS = rf"{_INTERVAL}(?: or {_INTERVAL}){{0,3}}(?: or nan| or missing)?"
_OUTPUT = re.compile(rf"output (?:{_INTERVALS}|in \{{{_LABEL}(?:,\s?{_LABEL}){{0,40}}\}})")
_SCORE = re.compile(
    r"(?:low-order bits of the numbers: |running time: )?estimated log-likelihood ratio above "
    rf"(?:a threshold|{_NUMBER}|−{_NUMBER})(?:; nearly the same as: (?P<feature>.{{1,200}}))?"
)
_PART = re.compile(rf"output(?:\[[^\s\[\]“”]{{1,40}}\])*|{_NUMBER}|=")
# words in the names and conditions of features, see `outputs.derived`, `outputs.parts` and `engine.region_words`
_VOCABULARY = (
    "is a whole number odd zero decimals denominator of equals above below distance and times sum norm all numbers "
    "largest least place the zeros different steps up products neighbours at most not: or missing present among parts "
    "length real imaginary part rows columns shape type keys equal"
)
_WORDS = frozenset(re.findall(r"\S+", _VOCABULARY))
_PACKAGE, _VERSION = re.compile(r"[A-Za-z0-9._-]{1,100}"), re.compile(r"[A-Za-z0-9.!+_-]{1,60}")
_OLD_HASHES = re.compile(r"(?:SHA-256|sha256) of the mechanism(?:'s (?:files?|packages?|modules?|program))?")
_HASH = re.compile(r"(?:sha256:)?[0-9a-f]{8,128}")
_NAME = re.compile(r"\S{1,200}")
_RELATIONS = ("add_remove", "replace_one", "unspecified")
_COMMANDS = ("dpaudit", "pytest")


def quotation(words: str) -> str:
    """Return foreign words in quotation marks."""
    plain = words.replace("“", '"').replace("”", '"')
    return f"“{plain}”"


def is_output_region(words: str) -> bool:
    """Whether dpaudit describes a region of outputs in this way, such as "output above 0.5" or "output in {a, b}"."""
    return _OUTPUT.fullmatch(words) is not None


def is_score_region(words: str) -> bool:
    """Whether dpaudit describes a region of an attack's score in this way."""
    found = _SCORE.fullmatch(words)
    return found is not None and (found["feature"] is None or is_feature(found["feature"]))


def is_feature(words: str) -> bool:
    """Whether words are a condition on a number of the output without a foreign name, such as "output[1] is odd"."""
    return all(word in _WORDS or _PART.fullmatch(word) for word in words.split(" "))


def region_words(words: str) -> str:
    """Return a region as it is if dpaudit describes regions in this way; otherwise as a quotation."""
    return words if is_output_region(words) or is_score_region(words) or is_feature(words) else quotation(words)


def package_words(name: str, version: str) -> str:
    """Return a package with its version, as a quotation unless both have the form of a name and of a version."""
    words = f"{name} {version}"
    return words if _PACKAGE.fullmatch(name) and _VERSION.fullmatch(version) else quotation(words)


def is_name(words: str) -> bool:
    """Whether words are a name without spaces."""
    return _NAME.fullmatch(words) is not None


def is_hash(words: str) -> bool:
    """Whether words are a hash in hexadecimal."""
    return _HASH.fullmatch(words) is not None


def is_old_hash(key: str, name: str, value: object) -> bool:
    """Whether an entry that this version does not know is a hash of the mechanism in a file of an earlier version."""
    known = _OLD_HASHES.fullmatch(key) is not None and (not name or is_name(name))
    return known and isinstance(value, str) and is_hash(value)


def relation_words(relation: str) -> str:
    """Return a neighbouring relation with spaces, as a quotation if dpaudit does not know it."""
    return relation.replace("_", " ") if relation in _RELATIONS else quotation(relation)


def own_command(command: str) -> list[str] | None:
    """Return the words of a command that starts dpaudit or pytest; None if the command does anything else."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not command.isprintable():
        return None
    module = words[1:2] == ["-m"] and re.fullmatch(r"python[\d.]*", words[0])
    program = words[2:3] if module else words[:1]
    return words if program and program[0] in _COMMANDS else None
