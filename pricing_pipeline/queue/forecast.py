"""When a provider's quota and its units of a day will be used up, why, and by how much TTLs are stretched.

`pricing.quota_forecasts`, `pricing.day_forecasts` and `pricing.stretch_ttls` decide; this module reads and words their
results. Current use and rate limits are in limits.py.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter, computed_field

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.queue.limits import bytes_words

if TYPE_CHECKING:
    from sqlalchemy import Connection

_HOURS = 720


@dataclass(frozen=True, slots=True)
class DayForecast:
    """When the units of this calendar day, of all keys of a provider, will be used up: `ends_at` (UTC), or not before
    the next day begins (`until`, UTC).

    `basis` is `paced` until trading is over: they come evenly with it, however much is wanted. Otherwise it is
    `measured`: they go on as in the last hour (`hour_units`).
    """

    units: int
    used: int
    hour_units: int
    basis: Literal["paced", "measured"]
    outlook: Literal["ends", "lasts"]
    ends_at: datetime | None
    until: datetime

    @computed_field  # type: ignore[prop-decorator]
    @property
    def words(self) -> str:
        """When they end, in one sentence with its basis."""
        used = f"{self.used:,} of today's {self.units:,} units are used"
        if self.used >= self.units:
            return f"{used}; the next come at {_minute(self.until)}"
        if self.ends_at is not None:
            return (
                f"{used}, {self.hour_units:,} of them in the last hour: at this pace they end at "
                f"{_minute(self.ends_at)}"
            )
        if self.basis == "paced":
            return f"{used}; the others are spread over the trading hours"
        last = f"at this pace they last until the next come at {_minute(self.until)}"
        return f"{used}, {self.hour_units:,} in the last hour: {last}"


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a provider's quota of bytes would be used up if no TTL were stretched.

    The three times (UTC, to the hour) are those at which its steps are reached: backfills stop at 75 %, schedules at
    90 %, viewers at 95 %; None = not within the 30 days in which everything that is used now comes back, so never at
    this rate. `outlook` is `ends` (`ends_at` is set), `lasts` (it does not end) or `unknown` (too little is measured).

    `basis` says what `bytes_an_hour` is: `wanted`, what is wanted at TTLs in the trading hours of the next week needs,
    within the rate limits and at measured sizes; or `measured`, what came in the last day and week (the lower rate of
    both), if that is more. It is None while nothing is known. `watched_bytes` and `background_bytes` are the need of
    what is watched, and of what is held only or scheduled, in bytes an hour. `pairs` are watched or held.

    `sustained_bytes` is the most an hour at which nothing stops in the next 30 days.

    The factors say how many TTLs old a price gets now before it is fetched; 1 = nothing is stretched.

    `day` is None for a provider without a limit of a calendar day.
    """

    provider: str
    quota_bytes: int
    used_bytes: int
    day_bytes: int
    week_bytes: int
    pairs: int
    watched_bytes: float
    background_bytes: float
    basis: Literal["wanted", "measured"] | None
    bytes_an_hour: float | None
    outlook: Literal["ends", "lasts", "unknown"]
    sustained_bytes: float
    backfills_stop_at: datetime | None
    schedules_stop_at: datetime | None
    ends_at: datetime | None
    watched_factor: float
    background_factor: float
    day: DayForecast | None = None

    @property
    def is_stretched(self) -> bool:
        """Whether anything of this provider is refreshed less often than its TTL says."""
        return max(self.watched_factor, self.background_factor) > 1

    @computed_field  # type: ignore[prop-decorator]
    @property
    def words(self) -> str:
        """When the quota ends, in one sentence without its basis."""
        if self.outlook == "unknown":
            return "too little is measured to say how long it lasts"
        if self.used_bytes >= self.quota_bytes // 100 * 95:
            return "used up: 5 % are left as a reserve"
        if self.ends_at is None:
            steps = [
                f"{work} stop at {moment:%Y-%m-%d %H:00} UTC"
                for work, moment in (
                    ("backfills", self.backfills_stop_at),
                    ("schedules", self.schedules_stop_at),
                )
                if moment is not None
            ]
            return ", ".join(["it lasts", *steps])
        return f"{'would end' if self.is_stretched else 'ends'} at {self.ends_at:%Y-%m-%d %H:00} UTC"

    @property
    def content(self) -> dict[str, Any]:
        """All of it for programs, with its words."""
        content: dict[str, Any] = _CONTENT.dump_python(self)
        return content

    @computed_field  # type: ignore[prop-decorator]
    @property
    def basis_words(self) -> str:
        """What the forecast is based on, with its numbers."""
        came = f"{bytes_words(self.day_bytes)} came in the last day, {bytes_words(self.week_bytes)} in the last week"
        if self.basis is None or self.bytes_an_hour is None:
            return came
        month = bytes_words(round(self.bytes_an_hour * _HOURS))
        if self.basis == "measured":
            return f"{came}: that is {month} in 30 days, more than what is wanted needs"
        return (
            f"{self.pairs:,} watched or held pairs and schedules need {month} in 30 days at their TTLs, "
            f"trading hours and measured sizes; {came}"
        )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def stretch_words(self) -> str | None:
        """By how much TTLs are stretched, in a sentence; None if they are not."""
        if not self.is_stretched:
            return None
        rest = f"schedules and what is held only {self.background_factor:.1f} times less often"
        if self.watched_factor == 1:
            return f"{rest} than usual, so that the quota of {self.provider} lasts"
        return (
            f"watched prices are refreshed {self.watched_factor:.1f} times less often, {rest}, "
            f"so that the quota of {self.provider} lasts"
        )


_CONTENT = TypeAdapter(Forecast)


def forecasts(connection: Connection, providers: Collection[str] | None = None) -> list[Forecast]:
    """The forecast of each active provider, or of those that are named, in the order of their names."""
    named = None if providers is None else sorted(providers)
    rows = call_sql(connection, "day_forecasts", named).mappings()
    days = {row["provider"]: DayForecast(**{name: row[name] for name in row if name != "provider"}) for row in rows}
    return [
        Forecast(**row, day=days.get(row["provider"]))
        for row in connection.execute(query("limits.forecasts"), {"providers": named}).mappings()
    ]


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
