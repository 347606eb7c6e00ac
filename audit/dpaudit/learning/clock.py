"""How long each attack has taken."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Clock:
    """Seconds of each attack, fitting and scoring."""

    seconds: dict[int, float] = field(default_factory=dict)

    @contextmanager
    def running(self, attack: int) -> Iterator[None]:
        """Add the time that this context takes to the attack's seconds."""
        began = time.perf_counter()
        yield
        self.seconds[attack] = self.seconds.get(attack, 0.0) + time.perf_counter() - began
