"""Trading days of a calendar without the library of exchanges, which takes seconds."""

from __future__ import annotations

from datetime import date, timedelta

from pricing_pipeline_tests.fixtures.core import Core, utc


def store_weekdays(
    core: Core,
    calendar: str,
    first: str,
    last: str,
    hours: tuple[str, str] = ("14:30", "21:00"),
) -> None:
    """Have it trade from Monday to Friday, at these hours in UTC."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    span = (start + timedelta(days=number) for number in range((end - start).days + 1))
    days = [day for day in span if day.weekday() < 5]
    opens, closes = ([utc(f"{day} {hour}") for day in days] for hour in hours)
    core.call(
        "SELECT pricing.store_sessions(:calendar, :first, :last, :days, :opens, :closes)",
        calendar=calendar,
        first=start,
        last=end,
        days=days,
        opens=opens,
        closes=closes,
    )
