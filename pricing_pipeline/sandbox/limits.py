"""The limits of each key in a minute and in a day, in units that the dialects define."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

MINUTE, DAY = 60, 86_400


class Window:
    """Units in the current minute or day of UTC. Times are epoch seconds."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._number = self._used = 0

    def charge(self, units: int, now: float) -> int:
        """Add units, whether or not they fit, and return what is used with them."""
        if (number := int(now // self._seconds)) != self._number:
            self._number, self._used = number, 0
        self._used += units
        return self._used


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of a call, what its key has used including it, and the limit that this exceeds, if any."""

    key_name: str | None
    units: int
    in_minute: int
    in_day: int
    exceeds: Literal["minute", "day"] | None


class Plan:
    """Limits for each key: the secret, or the secret with `-NAME` behind it. Without a secret anybody may call."""

    def __init__(self, secret: str | None = None, per_minute: int | None = None, per_day: int | None = None) -> None:
        self.per_minute, self.per_day = per_minute, per_day
        self._secret = secret
        self.reset()

    def reset(self) -> None:
        """Forget what was charged."""
        self._windows: dict[str | None, tuple[Window, Window]] = {}

    def charge(self, key: str | None, units: int, now: float) -> Charge | None:
        """Charge a call, also one that is then refused. None if the key is wrong."""
        name = None if self._secret is None else key_name(key, self._secret)
        if self._secret is not None and name is None:
            return None
        minute, day = self._windows.setdefault(name, (Window(MINUTE), Window(DAY)))
        in_minute, in_day = minute.charge(units, now), day.charge(units, now)
        exceeds: Literal["minute", "day"] | None = None
        if units and self.per_day is not None and in_day > self.per_day:
            exceeds = "day"
        elif units and self.per_minute is not None and in_minute > self.per_minute:
            exceeds = "minute"
        return Charge(name, units, in_minute, in_day, exceeds)

    def left_in_minute(self, charge: Charge) -> int | None:
        """Units that still fit; None without a limit."""
        return None if self.per_minute is None else max(self.per_minute - charge.in_minute, 0)


def key_name(given: str | None, secret: str) -> str | None:
    """`default` for the secret itself, NAME for the secret with -NAME behind it, None for anything else."""
    if given == secret:
        return "default"
    further = re.fullmatch(re.escape(secret) + "-([a-z0-9][a-z0-9_-]{0,47})", given or "")
    return further[1] if further else None
