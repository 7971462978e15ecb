"""What can be set about one sandbox, checked when it is made. The environment is not read here."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pricing_pipeline.errors import SettingsError

DEFAULT_KEY = "sandbox-key"
"""The key that the sandbox accepts unless told otherwise. It protects nothing."""
MOST_KEYS = 100
"""How many keys have a plan; further ones are refused like wrong ones."""


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """One sandbox: where it listens, which plan it enforces, how it behaves.

    The free plan of Twelve Data is `credits_per_minute=8, credits_per_day=800`. None means no cap.
    Raises SettingsError for a value that cannot work.
    """

    host: str = "127.0.0.1"
    port: int = 8100
    """0 takes any free port."""
    twelvedata_key: str = field(default=DEFAULT_KEY, repr=False)
    """Accepted is also this text with a hyphen and a name: each such key has the plan once more."""
    credits_per_minute: int | None = 2000
    credits_per_day: int | None = None
    """Counted from midnight UTC, as the provider does."""
    credit_window: Literal["calendar", "sliding"] = "calendar"
    """The provider counts per minute of its clock; `sliding` counts the last 60 seconds and is stricter."""
    mfapi_calls_per_second: int | None = None
    yahoo_calls_per_minute: int | None = None
    yahoo_hole_every: int | None = None
    """About every so manieth bar of Yahoo's is a hole: nulls where its values would be."""
    yahoo_unknown: Literal["error", "shell"] = "error"
    """What Yahoo answers for a symbol that it does not know: 404, or 200 with an empty shell."""
    yahoo_consent: bool = False
    """Yahoo redirects every call to a page that asks for consent, as it does in Europe now and then."""
    fmp_key: str = field(default=DEFAULT_KEY, repr=False)
    """As for Twelve Data, the text alone or with a hyphen and a name."""
    fmp_plan: Literal["full", "free"] = "full"
    """`free`: the five recorded symbols, no batches, five years of statements; all else is refused with 402."""
    fmp_calls_per_minute: int | None = 300
    fmp_calls_per_day: int | None = None
    """250 is the free plan."""
    partner_key: str = field(default=DEFAULT_KEY, repr=False)
    """Of OCTO and Headout; as for Twelve Data, the text alone or with a hyphen and a name."""
    partner_calls_per_minute: int | None = 30
    """Of each of the two, by key."""
    uex_key: str = field(default=DEFAULT_KEY, repr=False)
    """As for Twelve Data, the text alone or with a hyphen and a name."""
    uex_calls_per_minute: int | None = 10
    uex_calls_per_day: int | None = 14_400
    uex_patch_days: int = 90
    """Days between two versions of the game."""
    latency_ms: int = 0
    """Added to every provider call."""
    error_style: Literal["status", "body"] = "status"
    """`status`: Twelve Data's errors carry their true HTTP status, as today. `body`: HTTP 200 with the code
    in the body and the wording of that time, as in recordings before 2023."""
    market_hours: Literal["always", "exchange"] = "always"
    """`always`: every market is open round the clock, weekends included. `exchange`: real sessions."""
    quote_stamps: Literal["now", "candle"] = "now"
    """`now`: both stamps of a quote are the second it was made. `candle`: as the provider does today,
    `timestamp` is the opening of the day's bar and `last_quote_at` the start of the last minute."""
    seed: int = 2013
    recordings: Path | None = None
    """Answers under this folder are replayed where a request matches one: see recordings.py."""
    log_path: Path | None = None
    """Every finished call is appended here as one JSON line."""
    log_memory: int = 200_000
    """How many calls are kept for `/_sandbox/calls`."""

    def __post_init__(self) -> None:
        for name, least in (
            ("credits_per_minute", 1),
            ("credits_per_day", 1),
            ("mfapi_calls_per_second", 1),
            ("yahoo_calls_per_minute", 1),
            ("yahoo_hole_every", 2),
            ("fmp_calls_per_minute", 1),
            ("fmp_calls_per_day", 1),
            ("partner_calls_per_minute", 1),
            ("uex_calls_per_minute", 1),
            ("uex_calls_per_day", 1),
            ("uex_patch_days", 1),
            ("latency_ms", 0),
            ("log_memory", 1),
        ):
            value = getattr(self, name)
            if value is not None and value < least:
                raise SettingsError(
                    f"sandbox setting {name}={value} cannot work; give a number of at least {least}."
                )
        if self.recordings is not None and not self.recordings.is_dir():
            raise SettingsError(
                f"sandbox setting recordings={self.recordings} is no folder; give one with a folder for each provider."
            )
        if not 0 <= self.port <= 65535:
            raise SettingsError(f"sandbox setting port={self.port} is no TCP port; give one from 0 to 65535.")
        for name in ("twelvedata_key", "fmp_key", "partner_key", "uex_key"):
            if not getattr(self, name):
                raise SettingsError(f"sandbox setting {name} is empty; give the key that clients will send.")
        if not _is_loopback(self.host):
            raise SettingsError(
                f"the sandbox does not listen on {self.host}: it stays on this machine. Use 127.0.0.1."
            )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
