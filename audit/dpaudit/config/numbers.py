"""YAML that reads 1e5 and 1e-3 as numbers, as YAML 1.2 does; YAML 1.1 takes them for text."""

from __future__ import annotations

import re

import yaml

_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$")


class Loader(yaml.SafeLoader):
    """Reads plain YAML values, 1e5 as a number."""


class Dumper(yaml.SafeDumper):
    """Writes what `Loader` reads back: the text "1e5" in quotes."""


for _kind in (Loader, Dumper):
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
