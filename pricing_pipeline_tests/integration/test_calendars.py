"""Calendars in the database: which one an instrument has, its sessions, and when a newer value should exist."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import pairwise

import pytest

from pricing_pipeline.demand import freshness
from pricing_pipeline.registry import calendars
from pricing_pipeline.registry.sessions import Sessions
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core, midnight, observation, utc
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.trading_days import store_weekdays

pytestmark = pytest.mark.usefixtures("still")

FUND = "118632"


def next_value(core: Core, data_type: str, symbol: str, confirmed: str, minutes: int) -> datetime:
    at: datetime = core.call(
        "SELECT pricing.next_value_at(r, :symbol, :at, make_interval(mins => :minutes)) "
        "FROM pricing.data_type_registry r WHERE r.data_type = :type",
        type=data_type,
        symbol=symbol,
        at=utc(confirmed),
        minutes=minutes,
    )
    return at


def test_f7_an_instrument_gets_the_calendar_of_its_exchange(core: Core) -> None:
    expected = {
        ("equity", "TSLA", None): "XNYS",
        ("equity", "BRK.B", None): "XNYS",
        ("equity", "VOD.L", None): "XLON",
        ("equity", "VOD:LSE", None): "XLON",
        ("equity", "RELIANCE.NS", "INR"): "XBOM",
        ("equity", "ABC.XYZ", None): None,
        ("equity", "ABC:XYZ", None): None,
        ("etf", "SPY", "USD"): "XNYS",
        ("etf", "ISF.L", "GBP"): "XLON",
        ("etf", "ABC.XYZ", None): None,
        ("fx", "EUR/CHF", None): "FX",
        ("crypto", "BTC/USD", None): "24/7",
        ("fund", "100001", "INR"): "XBOM",
        ("fund", "VTSAX", "USD"): "XNYS",
        ("fund", "100002", None): None,
        ("bond", "XS1", None): None,
    }
    found = {}
    for asset_class, symbol, currency in expected:
        (row,) = core.rows(
            "INSERT INTO pricing.instruments (asset_class, symbol, currency) VALUES (:asset_class, :symbol, :currency)"
            " RETURNING calendar",
            asset_class=asset_class,
            symbol=symbol,
            currency=currency,
        )
        found[asset_class, symbol, currency] = row.calendar
    assert found == expected


def test_f7_a_rule_of_its_own_comes_before_those_that_an_etf_shares(core: Core) -> None:
    core.rows("INSERT INTO pricing.calendar_rules (asset_class, calendar) VALUES ('etf', 'XETR')")
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('etf', 'ISF.L')")
    assert core.one("SELECT calendar FROM pricing.instruments WHERE symbol = 'ISF.L'") == "XETR"


def test_f7_a_calendar_follows_when_the_currency_is_learned_and_what_a_person_set_stays(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, calendar)"
        " VALUES ('fund', 'A', NULL), ('fund', 'B', 'XLON')"
    )
    core.rows("UPDATE pricing.instruments SET currency = 'INR' WHERE symbol IN ('A', 'B')")
    found = core.rows("SELECT symbol, calendar FROM pricing.instruments WHERE symbol IN ('A', 'B') ORDER BY 1")
    assert [tuple(row) for row in found] == [("A", "XBOM"), ("B", "XLON")]


def test_f7_what_the_library_knows_no_further_or_not_at_all_is_asked_about_once_a_week(
    core: Core, clock: Clock
) -> None:
    """It ends where the exchange has announced its holidays."""
    clock.set(utc("2026-11-28 12:00"))
    core.rows("INSERT INTO pricing.calendars (calendar) VALUES ('XAAA')")
    core.rows(
        "UPDATE pricing.instruments SET calendar ="
        " CASE WHEN symbol = 'AAPL' THEN 'XAAA' WHEN asset_class = 'fund' THEN 'XIDX' END"
    )
    extended = calendars.extend(core.engine)
    assert (extended.written, list(extended.failed)) == (["XIDX"], ["XAAA"])
    assert calendars.extend(core.engine).written == []
    assert "knows no exchange XAAA" in core.one("SELECT message FROM pricing.warnings WHERE subject = 'XAAA'")
    ends = core.rows("SELECT sessions_from, sessions_to FROM pricing.calendars WHERE calendar = 'XIDX'")
    assert [tuple(row) for row in ends] == [(date(2000, 1, 1), date(2026, 12, 31))]
    of_2026 = "SELECT count(*) FROM pricing.calendar_sessions WHERE calendar = 'XIDX' AND session >= '2026-01-01'"
    assert core.one(of_2026) == 239, "as the exchange has announced"
    clock.advance(8 * 86400)
    extended = calendars.extend(core.engine)
    assert (extended.written, list(extended.failed)) == (["XIDX"], ["XAAA"])


def test_f7_db_upgrade_writes_all_days_anew_and_does_not_fail_for_a_calendar_that_cannot_be_built(
    core: Core, clock: Clock, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade may bring a library that knows more: unlike the sensor, it does not wait for a week."""
    clock.set(utc("2026-03-10 12:00"))
    core.rows(
        "UPDATE pricing.instruments SET calendar = CASE asset_class WHEN 'fx' THEN 'FX' WHEN 'fund' THEN 'XLON' END"
    )
    store_weekdays(core, "XLON", "2026-03-02", "2026-12-31")
    sessions = "SELECT count(*) FROM pricing.calendar_sessions WHERE calendar = "
    assert calendars.extend(core.engine).written == ["FX"]
    known = core.one(sessions + "'FX'"), core.one(sessions + "'XLON'")
    core.rows("DELETE FROM pricing.calendar_sessions WHERE calendar = 'FX' AND session > '2026-03-10'")
    assert calendars.extend(core.engine).written == []

    def broken(calendar: str, start: date, end: date) -> Sessions:
        """As Athens is under pandas 3.1."""
        raise NotImplementedError("implemented by subclasses")

    monkeypatch.setattr(calendars, "exchange_sessions", broken)
    upgraded = cli("db", "upgrade")
    assert upgraded.exit_code == 0
    assert "is up to date (revision " in upgraded.stdout
    told = "the trading days of XLON could not be worked out (NotImplementedError: implemented by subclasses)"
    assert f"XLON: {told}" in upgraded.stderr
    assert told in cli("status").stdout
    listed = cli("calendar", "list", "--json").json["calendars"]
    assert [one["calendar"] for one in listed if one["failure"]] == ["XLON"]
    assert (core.one(sessions + "'FX'"), core.one(sessions + "'XLON'")) == known
    monkeypatch.setattr(calendars, "exchange_sessions", lambda name, start, end: Sessions(name, start, end, [], [], []))
    clock.advance(8 * 86400)
    assert calendars.extend(core.engine).written == ["XLON"], "it is tried again in a week"
    assert core.one("SELECT count(*) FROM pricing.calendars WHERE failure IS NOT NULL") == 0


def test_f7_a_session_that_is_called_off_goes_away(core: Core) -> None:
    store_weekdays(core, "XNYS", "2026-03-02", "2026-03-13")
    core.call(
        "SELECT pricing.store_sessions('XNYS', '2026-03-09', '2026-03-10', ARRAY['2026-03-10'::date],"
        " ARRAY['2026-03-10 14:30Z'::timestamptz], ARRAY['2026-03-10 18:00Z'::timestamptz])"
    )
    found = core.rows(
        "SELECT session, closes_at FROM pricing.calendar_sessions WHERE session > '2026-03-06' ORDER BY 1 LIMIT 2"
    )
    assert [tuple(row) for row in found] == [
        (date(2026, 3, 10), utc("2026-03-10 18:00")),
        (date(2026, 3, 11), utc("2026-03-11 21:00")),
    ]
    assert core.one("SELECT sessions_to FROM pricing.calendars WHERE calendar = 'XNYS'") == date(2026, 3, 13)


# When a newer value should exist


def test_f7_a_quote_is_not_asked_for_while_its_market_is_closed(core: Core) -> None:
    store_weekdays(core, "XNYS", "2026-03-02", "2026-12-31")
    for confirmed, minutes, expected in (
        ("2026-03-10 15:00", 1, "2026-03-10 15:01"),
        ("2026-03-10 20:59", 1, "2026-03-10 21:00"),
        ("2026-03-10 21:14", 1, "2026-03-10 21:15"),  # the close may come a quarter of an hour late
        ("2026-03-10 21:15", 1, "2026-03-11 14:30"),
        ("2026-03-10 20:00", 120, "2026-03-10 22:00"),  # the closing price is not known yet
        ("2026-03-11 03:00", 1, "2026-03-11 14:30"),
        ("2026-03-13 22:00", 1, "2026-03-16 14:30"),  # a weekend
        ("2026-03-13 22:00", 4320, "2026-03-16 22:00"),
        ("2027-06-01 12:00", 5, "2027-06-01 12:05"),  # nobody knows that far
    ):
        assert next_value(core, QUOTE, "AAPL", confirmed, minutes) == utc(expected), confirmed


def test_f7_without_sessions_the_ttl_counts(core: Core) -> None:
    assert next_value(core, QUOTE, "AAPL", "2026-03-14 12:00", 5) == utc("2026-03-14 12:05")
    assert next_value(core, DAILY, "AAPL", "2026-03-14 12:00", 1440) == utc("2026-03-15 12:00")
    assert next_value(core, FX, "NO/SUCH", "2026-03-14 12:00", 5) == utc("2026-03-14 12:05")


def store(core: Core, data_type: str, symbol: str, day: str, at: str, clock: Clock) -> None:
    """A value of a day as the latest of a pair, stored at a moment."""
    clock.set(utc(at))
    core.enqueue(data_type, symbol)
    call = core.claim_one("mfapi" if data_type == NAV else "twelvedata")
    core.store(call, observation(symbol, "10.00", midnight(date.fromisoformat(day))))
    core.complete(call)


def test_f7_daily_values_are_asked_for_when_they_should_exist(core: Core) -> None:
    store_weekdays(core, "XNYS", "2026-01-02", "2026-12-31")
    for day, confirmed, expected in (
        ("2026-03-09", "2026-03-09 22:00", "2026-03-10 21:15"),
        ("2026-03-10", "2026-03-10 16:00", "2026-03-10 21:15"),  # its bar was still growing
        ("2026-03-13", "2026-03-13 21:20", "2026-03-16 21:15"),
        ("2026-03-09", "2026-03-10 21:16", "2026-03-10 21:31"),  # it is late: in a quarter of an hour
        ("2026-03-09", "2026-03-11 01:15", "2026-03-11 03:15"),  # later ever more seldom
        ("2026-02-02", "2026-03-11 12:00", "2026-03-12 12:00"),  # at least once in a TTL
    ):
        core.rows("DELETE FROM pricing.latest_prices")
        core.rows(
            "INSERT INTO pricing.latest_prices (data_type, symbol, amount, scale, observed_at, fetched_at, provider,"
            " call_id, source_text) VALUES (:type, 'AAPL', 1, 0, :day, :at, 'twelvedata', 1, '1')",
            type=DAILY,
            day=midnight(date.fromisoformat(day)),
            at=utc(confirmed),
        )
        assert next_value(core, DAILY, "AAPL", confirmed, 1440) == utc(expected), (day, confirmed)


def test_f7_a_funds_value_is_looked_for_in_the_evening_of_its_countrys_days(core: Core, clock: Clock) -> None:
    store_weekdays(core, "XBOM", "2026-03-02", "2026-12-31")
    store(core, NAV, FUND, "2026-03-12", "2026-03-13 03:10", clock)
    assert next_value(core, NAV, FUND, "2026-03-13 03:10", 1440) == utc("2026-03-14 03:00")


def lag(core: Core, symbol: str = FUND, data_type: str = NAV) -> timedelta:
    found: timedelta = core.one("SELECT pricing.publish_lag(:t, :s, 'nav')", t=data_type, s=symbol)
    return found


def test_f7_when_values_appear_is_learned_per_instrument(core: Core, clock: Clock) -> None:
    """Usual: 6 hours after the close of 21:00. This one comes between 8 and 9 hours after it."""
    store_weekdays(core, "XBOM", "2026-03-02", "2026-12-31")
    store(core, NAV, FUND, "2026-03-02", "2026-03-03 03:00", clock)
    assert lag(core) == timedelta(hours=6)
    store(core, NAV, FUND, "2026-03-02", "2026-03-04 05:00", clock)  # asked for, not there yet
    store(core, NAV, FUND, "2026-03-03", "2026-03-04 06:00", clock)
    assert abs(lag(core) - timedelta(hours=9)) < timedelta(seconds=1)
    store(core, NAV, FUND, "2026-03-04", "2026-03-05 06:01", clock)  # there at the first look: a little earlier
    assert abs(lag(core) - timedelta(hours=9) * 0.95) < timedelta(seconds=1)
    store(core, NAV, FUND, "2026-03-05", "2026-03-06 20:00", clock)  # nobody looked until long after
    assert abs(lag(core) - timedelta(hours=9) * 0.95) < timedelta(seconds=1)
    store(core, NAV, FUND, "2026-03-09", "2026-03-09 16:00", clock)  # before the close: still growing
    assert abs(lag(core) - timedelta(hours=9) * 0.95) < timedelta(seconds=1)
    assert lag(core, "119551") == timedelta(hours=6), "another fund is another matter"


def test_f7_staleness_refuses_a_ttl_that_is_not_positive(core: Core) -> None:
    from sqlalchemy.exc import DBAPIError

    for ttl in (0, -1, None):
        with pytest.raises(DBAPIError, match="positive number of minutes"):
            core.call(
                "SELECT pricing.is_market_stale('equity_quote', 'AAPL', pricing.clock(), CAST(:ttl AS integer))",
                ttl=ttl,
            )
    assert core.call("SELECT pricing.is_market_stale('equity_quote', 'AAPL', NULL, 5)") is True


# The staleness check follows


def follow(core: Core, *data_types: str) -> None:
    core.rows(
        "UPDATE pricing.data_type_registry SET staleness_function = 'is_market_stale' WHERE data_type = ANY (:t)",
        t=list(data_types),
    )


def look(core: Core) -> None:
    """The staleness check."""
    core.call("SELECT pricing.enqueue_due()")


def due(core: Core, data_type: str, symbol: str) -> datetime:
    at: datetime = core.one(
        "SELECT due_at FROM pricing.demand WHERE (data_type, symbol) = (:t, :s)", t=data_type, s=symbol
    )
    return at


def answer(core: Core, data_type: str, symbol: str, observed: datetime) -> None:
    call = core.claim_one()
    core.store(call, observation(symbol, "10.00", observed))
    core.complete(call)


def test_f7_a_closed_market_causes_no_calls_until_it_opens(core: Core, clock: Clock) -> None:
    """Due at the opening, and not looked at before; a first look and a read at night ask for nothing either."""
    store_weekdays(core, "XNYS", "2026-03-02", "2026-12-31")
    follow(core, QUOTE)
    clock.set(utc("2026-03-13 21:15"))
    core.heartbeat("ann", (QUOTE, "AAPL"))
    answer(core, QUOTE, "AAPL", utc("2026-03-13 21:00"))
    assert due(core, QUOTE, "AAPL") == utc("2026-03-16 14:30")
    clock.set(utc("2026-03-15 12:00"))
    core.heartbeat("bob", (QUOTE, "AAPL"))
    reading = core.read("AAPL")
    assert reading.requested == 1, "of the daily bars, which were never fetched"
    assert [price.fresh for price in reading.prices] == [True]
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock() WHERE data_type = :t", t=QUOTE)
    look(core)
    assert [task.data_type for task in core.tasks("AAPL") if task.status == "pending"] == [DAILY]
    assert due(core, QUOTE, "AAPL") == utc("2026-03-16 14:30"), "looked at once, and moved on to the opening"
    (state,) = core.rows("SELECT state, next_at FROM pricing.why_old(:t, 'AAPL')", t=QUOTE)
    assert tuple(state) == ("market_closed", utc("2026-03-16 14:30"))
    core.rows("UPDATE pricing.latest_prices SET cache_ttl_minutes = 2 WHERE data_type = :t", t=QUOTE)
    look(core)
    core.call("SELECT pricing.reconcile_demand()")
    assert due(core, QUOTE, "AAPL") == utc("2026-03-16 14:30"), "whatever its own TTL"
    clock.set(utc("2026-03-16 14:30:01"))
    look(core)
    assert QUOTE in {task.data_type for task in core.tasks("AAPL") if task.status == "pending"}


def test_f7_a_type_that_is_added_to_follow_its_market_asks_for_nothing_while_it_is_closed(
    core: Core, clock: Clock, cli: CommandLine
) -> None:
    store_weekdays(core, "XNYS", "2026-03-02", "2026-12-31")
    clock.set(utc("2026-03-13 21:15"))
    for name, options in (("follows", ["--follow-market"]), ("does_not", [])):
        assert cli("type", "add", name, "--fetcher", "quote", "--ttl", "1", *options).exit_code == 0
        core.heartbeat("ann", (name, "AAPL"))
        answer(core, name, "AAPL", utc("2026-03-13 21:00"))
    clock.set(utc("2026-03-15 12:00"))
    core.heartbeat("ann", ("follows", "AAPL"), ("does_not", "AAPL"))
    look(core)
    assert [task.data_type for task in core.tasks("AAPL") if task.status == "pending"] == ["does_not"]
    assert due(core, "follows", "AAPL") == utc("2026-03-16 14:30")


def test_f7_a_daily_value_is_due_when_it_should_be_published(core: Core, clock: Clock) -> None:
    store_weekdays(core, "XNYS", "2026-03-02", "2026-12-31")
    clock.set(utc("2026-03-10 12:00"))
    core.heartbeat("ann", (DAILY, "AAPL"))
    answer(core, DAILY, "AAPL", utc("2026-03-09 00:00"))
    assert due(core, DAILY, "AAPL") == utc("2026-03-10 21:15"), "the sample's daily bars follow their market"
    clock.set(utc("2026-03-10 21:15:01"))
    look(core)
    answer(core, DAILY, "AAPL", utc("2026-03-10 00:00"))
    assert abs(due(core, DAILY, "AAPL") - utc("2026-03-11 21:14:15")) < timedelta(seconds=2), "a little earlier"


def test_f7_a_schedule_asks_for_no_fund_that_can_have_nothing_newer(core: Core, clock: Clock) -> None:
    store_weekdays(core, "XBOM", "2026-03-02", "2026-12-31")
    store(core, NAV, FUND, "2026-03-13", "2026-03-14 04:00", clock)
    clock.set(utc("2026-03-15 18:00"))
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '-infinity'")
    core.call("SELECT pricing.enqueue_scheduled(:t, NULL)", t=NAV)
    asked = {task.symbol for task in core.tasks() if task.status == "pending"}
    assert len(asked) == 3
    assert FUND not in asked


def test_f7_a_pair_whose_market_is_closed_counts_as_fresh(core: Core, clock: Clock) -> None:
    store_weekdays(core, "XNYS", "2026-03-02", "2026-12-31")
    follow(core, QUOTE)
    clock.set(utc("2026-03-13 21:15"))
    core.heartbeat("ann", (QUOTE, "AAPL"))
    answer(core, QUOTE, "AAPL", utc("2026-03-13 21:00"))
    clock.advance(240)
    with core.engine.connect() as connection:
        (row,) = freshness.measure(connection, [QUOTE])
    assert (row.watched, row.fresh, row.late) == (1, 1, 0)


def test_f7_when_the_days_of_a_calendar_are_over_the_ttl_counts_and_no_gap_is_made_up(
    cli: CommandLine, core: Core, clock: Clock
) -> None:
    """The library knows XBOM to the end of 2026. In 2027 what is watched or scheduled is still refreshed."""
    store_weekdays(core, "XBOM", "2026-06-01", "2026-12-31")
    clock.set(utc("2026-12-30 19:00"))
    asked = []
    for _ in range(30):  # half a day each: a look, and an answer if one was asked for
        core.heartbeat("ann", (NAV, FUND))
        look(core)
        for call in core.claim("mfapi"):
            asked.append(core.clock())
            yesterday = core.clock().date() - timedelta(days=1)
            core.store(call, observation(FUND, "10.00", midnight(yesterday), currency="INR"))
            core.complete(call)
        clock.advance(43_200)
    assert sum(at.year == 2027 for at in asked) >= 12, "about once in its TTL of a day"
    assert max(later - earlier for earlier, later in pairwise(asked)) <= timedelta(days=2)
    (why,) = cli("price", "why", FUND, "--type", NAV, "--json").json["reasons"]
    assert why["state"] in ("fresh", "due")

    core.rows("UPDATE pricing.schedule_walks SET served_slot = '-infinity'")
    clock.advance(43_200)
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.call("SELECT pricing.enqueue_scheduled(:t, NULL)", t=NAV)
    assert FUND in {task.symbol for task in core.tasks() if task.status == "pending"}, "the schedule goes on"

    told = cli("price", "gaps", FUND, "--type", NAV, "--from", "2027-01-01", "--to", "2027-01-10")
    assert told.stdout == "", "no day is called missing that nobody knows to be one"
    assert "Trading days of XBOM are known only to 2026-12-31" in told.stderr
    windows = core.rows(
        "SELECT first_day, last_day FROM pricing.missing_windows(:t, '2027-02-01', '2027-02-10', ARRAY[:s])",
        t=NAV,
        s=FUND,
    )
    assert [tuple(row) for row in windows] == [(date(2027, 2, 1), date(2027, 2, 10))], "of it all is asked"


def test_f7_a_calendar_that_is_about_to_end_is_warned_of(core: Core, clock: Clock) -> None:
    warned = "SELECT count(*) FROM pricing.warnings WHERE source = 'extend_calendars' AND subject = 'XBOM'"
    clock.set(utc("2026-12-10 12:00"))
    store_weekdays(core, "XBOM", "2026-06-01", "2026-12-31")
    assert core.one(warned) == 0
    clock.set(utc("2026-12-20 12:00"))
    store_weekdays(core, "XBOM", "2026-06-01", "2026-12-31")
    assert core.one(warned) == 1
