"""The settings of one sandbox, checked when it is made. The environment is not read here."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pricing_pipeline.errors import SettingsError

DEFAULT_KEY = "sandbox-key"
"""The key that the sandbox accepts unless told otherwise. It protects nothing."""


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """One sandbox: where it listens, which plans it enforces, how it behaves. None means no limit.

    The free plan of Twelve Data is `credits_per_minute=8, credits_per_day=800`.
    Raises SettingsError for a value that cannot work.
    """

    host: str = "127.0.0.1"
    port: int = 8100
    """0 takes any free port."""
    key: str = field(default=DEFAULT_KEY, repr=False)
    """Accepted is also this text with a hyphen and a name: each such key has the plan once more."""
    credits_per_minute: int | None = 2000
    credits_per_day: int | None = None
    """Counted from midnight UTC, as the provider does."""
    fmp_plan: Literal["full", "free"] = "full"
    """`free`: the five recorded symbols, no batches, five years of statements; all else is refused with 402."""
    fmp_calls_per_minute: int | None = 300
    fmp_calls_per_day: int | None = None
    """250 is the free plan."""
    partner_calls_per_minute: int | None = 30
    """Of OCTO and of Headout, by key."""
    uex_calls_per_minute: int | None = 10
    uex_calls_per_day: int | None = 14_400
    market_hours: Literal["always", "exchange"] = "always"
    """`always`: every market is open round the clock, weekends included. `exchange`: real sessions."""
    seed: int = 2013
    recordings: Path | None = None
    """Answers under this folder are replayed where a request matches one: see recordings.py."""

    def __post_init__(self) -> None:
        if self.recordings is not None and not self.recordings.is_dir():
            raise SettingsError(
                f"sandbox setting recordings={self.recordings} is not a folder; give one with a folder "
                "for each provider."
            )
        if not _is_loopback(self.host):
            raise SettingsError(f"the sandbox does not listen on {self.host}: it stays on this machine. Use 127.0.0.1.")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
