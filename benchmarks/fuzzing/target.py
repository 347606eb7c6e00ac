"""One kind of input: how a mutation of it is made, and what dpaudit may do with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from .mutations import Random


class Wrong(Exception):
    """Raised if dpaudit neither reads nor refuses an input as documented; the message says what happened instead."""


class Target(ABC):
    """A kind of input.

    Attributes:
        name: What the summary calls it.
        share: Its part of all mutations.
        seconds: Processor seconds that one input may take.
    """

    name: str
    share: float
    seconds: float = 2.0

    def __init__(self, folder: Path) -> None:
        """Make the real files that are mutated.

        Args:
            folder: An empty folder; also the current one.
        """
        self.folder = folder
        self.tried: object = None  # the last mutation, for a message about a failure

    @abstractmethod
    def attempt(self, rng: Random) -> str:
        """Mutate, read, and return what happened, such as "read" or "refused"; raise anything for a failure."""
