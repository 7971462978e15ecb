"""What clients asked for and what they were told: the record that the pipeline does not write."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from pricing_pipeline_tests.fixtures.core import QUOTE

Key = tuple[str, str]
"""Data type and symbol. Producers name each symbol once, so a key stands for one task."""


@dataclass
class Ledger:
    """Shared by all threads of the load. `kind` is the fault that is injected now."""

    kind: str = "no fault"
    attempted: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    keys: dict[Key, str] = field(default_factory=dict)
    """What was acknowledged, and under which fault."""
    taken_back: set[Key] = field(default_factory=set)
    """What was queued in transactions that were rolled back: it must never appear."""
    shared: set[Key] = field(default_factory=set)
    """What several producers asked for at once: one of them may have come after the work was done."""
    messages: dict[int, str] = field(default_factory=dict)
    """Operations that were acknowledged, with the text of each message."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def attempt(self, count: int) -> str:
        """Note that so much is about to be asked for; returns the fault of this moment."""
        with self.lock:
            self.attempted[self.kind] += count
            return self.kind

    def acknowledge(self, kind: str, keys: list[Key]) -> None:
        with self.lock:
            self.acknowledged[kind] += len(keys)
            self.keys.update(dict.fromkeys(keys, kind))

    def take_back(self, keys: list[Key]) -> None:
        with self.lock:
            self.taken_back.update(keys)

    def acknowledge_message(self, kind: str, operation: int, text: str) -> None:
        with self.lock:
            self.acknowledged[kind] += 1
            self.messages[operation] = text

    def quotes(self, keys: list[Key]) -> list[str]:
        """The symbols among these keys that have one price each when their work is done."""
        return [key[1] for key in keys if key[0] == QUOTE and key not in self.shared]
