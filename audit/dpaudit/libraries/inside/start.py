"""Calls a library from a config: the entry point in this process and in private environments without dpaudit.

A private environment loads this file by its path, so this folder needs only the standard library of Python 3.8 or
later.  Each other module is named after a library and has three functions: `called` makes an object from plain values
of a config, `facts` reads plain facts about it, and `sample` runs it.
"""

from __future__ import annotations

import importlib
import os
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from typing import Any as Generator  # a numpy Generator, or a random.Random if the environment has no numpy

    from dpaudit.values import Dataset, JsonObject, Output


FACTS = "dpaudit: the facts about the object"
"""In place of a dataset, asks for the facts.  No object gets a dataset that equals this text."""


class Called:
    """A mechanism that is made by calling a library."""

    def __init__(self, library: str, call: str, arguments: Any = None, d_in: Any = 1, **options: Any) -> None:
        if __name__ != "dpaudit.libraries.inside.start":
            # register bare parent packages if dpaudit is not importable
            top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
            for name in ("dpaudit", "dpaudit.libraries", "dpaudit.libraries.inside", "dpaudit.running"):
                if name not in sys.modules and "dpaudit.claims" not in sys.modules:
                    package = types.ModuleType(name)
                    package.__path__ = [os.path.join(top, *name.split(".")[1:])]
                    sys.modules[name] = package
            if options.get("beside"):  # a private environment finds modules beside the config, as for `python:`
                sys.path.append(options["beside"])
        self._inside = importlib.import_module("dpaudit.libraries.inside." + library)
        self._made, self._d_in = self._inside.called(call, arguments, **options), d_in
        self.libraries = (self._made.library if library == "synthesizer" else self._inside.MODULE,)

    def facts(self) -> JsonObject:
        found: JsonObject = self._inside.facts(self._made, self._d_in)
        return found

    def sample(self, dataset: Dataset, n: int, rng: Generator) -> list[Output]:
        """Return n independent outputs; for the dataset `FACTS`, return the facts n times."""
        if isinstance(dataset, str) and dataset == FACTS:
            return [self.facts() for _ in range(n)]
        outputs: list[Output] = self._inside.sample(self._made, dataset, n)
        return outputs
