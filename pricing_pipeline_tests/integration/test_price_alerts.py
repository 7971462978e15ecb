"""Price alerts: recipients hear of prices, once, exactly, and never at the cost of storing them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.operations import price_alerts, price_watch
from pricing_pipeline.operations.price_alerts import Wanted
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, observation, rows_read
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.storing import next_call

pytestmark = pytest.mark.usefixtures("still")

DAY = 86400
STORE = (
    "SELECT pricing.merge_prices('equity_quote', 'twelvedata', 1, true, ARRAY[:symbol],"
    " ARRAY[pricing.clock() + make_interval(secs => CAST(:ahead AS float8))],"
    " ARRAY[CAST(:amount AS bigint)], ARRAY[NULL::bigint], ARRAY[NULL::bigint], ARRAY[NULL::bigint],"
    " ARRAY[2::smallint], ARRAY['USD'], ARRAY[NULL::numeric], ARRAY['x'], ARRAY['raw'])"
)


def asked(
    core: Core,
    condition: str,
    value: str | None = None,
    symbol: str | None = "AAPL",
    to: str = "mailbox",
    hysteresis: str = "0",
    hysteresis_in: str = "amount",
) -> int:
    """Add an alert; the value is its threshold, or its span in seconds."""
    spans = {"stale": "lasts", "each": "pace"}
    more: dict[str, object] = {spans.get(condition, "threshold"): Decimal(value) if value else 60}
    more |= {"hysteresis": Decimal(hysteresis), "hysteresis_in": hysteresis_in}
    with core.engine.begin() as connection:
        wanted = Wanted(to, QUOTE, symbol, condition, **more)  # type: ignore[arg-type]
        return price_alerts.add(connection, wanted, "ann").price_alert_id


def priced(core: Core, clock: Clock, *amounts: str, symbol: str = "AAPL") -> None:
    """Store prices, a second after each other."""
    for amount in amounts:
        clock.advance(1)
        call = next_call(core, QUOTE, symbol)
        core.store(call, observation(symbol, amount, core.clock()))


@contextmanager
def storing(core: Core, amount: int, symbol: str = "AAPL") -> Iterator[Connection]:
    """A transaction that has stored a price and is not committed yet."""
    with core.engine.begin() as connection:
        connection.execute(text(STORE), {"symbol": symbol, "amount": amount, "ahead": 0})
        yield connection


def titles(core: Core) -> list[str]:
    return [
        row.title for row in core.rows("SELECT payload ->> 'title' AS title FROM pricing.async_operations ORDER BY id")
    ]


def told(core: Core) -> list[str]:
    """What is new since it was asked last."""
    price_watch.watch(core.engine)
    found = titles(core)
    core.rows("DELETE FROM pricing.async_operations")
    return found


def test_b27_a_crossing_is_told_once(core: Core, clock: Clock) -> None:
    asked(core, "above", "200")
    asked(core, "below", "150.5")
    priced(core, clock, "199.99", "200.00")
    assert told(core) == [], "200 is not above 200"
    priced(core, clock, "200.01", "230", "199", "150.50", "150.49", "151", "201")
    assert told(core) == [
        "AAPL is above 200: 200.01 USD",
        "AAPL is above 200: 201.00 USD",
        "AAPL is below 150.5: 150.49 USD",
    ]
    assert told(core) == []


def test_b27_a_price_that_goes_to_and_fro_is_told_by_its_hysteresis(core: Core, clock: Clock) -> None:
    asked(core, "above", "200", hysteresis="1", hysteresis_in="percent")
    asked(core, "below", "150", hysteresis="0.50")
    priced(core, clock, "200.01", "199", "200.02", "198.01", "201", "198", "202")
    assert told(core) == ["AAPL is above 200: 200.01 USD", "AAPL is above 200: 202.00 USD"]
    priced(core, clock, "149.99", "150.49", "149", "150.50", "149.98")
    assert told(core) == ["AAPL is below 150: 149.99 USD", "AAPL is below 150: 149.98 USD"]


def test_b27_the_first_message_says_how_to_be_told_less_often(core: Core, clock: Clock) -> None:
    asked(core, "above", "200")
    asked(core, "above", "190", hysteresis="0.10", hysteresis_in="percent")

    def bodies() -> list[str]:
        price_watch.watch(core.engine)
        rows = core.rows("SELECT payload ->> 'body' AS body FROM pricing.async_operations ORDER BY id")
        core.rows("DELETE FROM pricing.async_operations")
        return [row.body for row in rows]

    priced(core, clock, "201", "199", "202")
    first, second, with_hysteresis = bodies()
    assert "add the alert with --hysteresis 1% instead" in first
    assert "hysteresis" not in second
    assert "and again after it came back down to 189.81." in with_hysteresis
    assert "--hysteresis" not in with_hysteresis
    priced(core, clock, "199", "203")
    assert ["hysteresis" in body for body in bodies()] == [False]


def test_b27_a_hysteresis_that_makes_no_sense_is_refused(core: Core) -> None:
    for condition, value, hysteresis, unit in (
        ("above", "200", "200", "amount"),
        ("above", "200", "100", "percent"),
        ("below", "200", "100", "percent"),
        ("above", "200", "-1", "amount"),
        ("moved", "5", "1", "percent"),
        ("above", "200", "1", "points"),
    ):
        with pytest.raises(DBAPIError):
            asked(core, condition, value, hysteresis=hysteresis, hysteresis_in=unit)


def test_b27_what_is_beyond_already_is_told_once_whenever_somebody_looks(core: Core, clock: Clock) -> None:
    priced(core, clock, "210")
    asked(core, "above", "200")
    asked(core, "moved", "1")
    clock.advance(3 * 3600)
    assert told(core) == ["AAPL is above 200: 210.00 USD"]
    assert told(core) == []
    priced(core, clock, "211", "212.10")
    assert told(core) == ["AAPL has risen by 1.00 %: 212.10 USD"]


def test_b27_a_move_counts_from_the_price_that_was_told_last_and_exactly(core: Core, clock: Clock) -> None:
    asked(core, "moved", "10")
    priced(core, clock, "0.30", "0.33", "0.36", "0.30", "0.3267", "0.29")
    assert told(core) == [
        "AAPL has risen by 10.00 %: 0.33 USD",
        "AAPL has fallen by 12.12 %: 0.29 USD",
    ], "0.33 is 10 % above 0.30, which no binary float says; 0.30 and 0.36 are less than 10 % from 0.33"


def test_b27_a_known_split_is_no_move_and_a_crossing_by_it_says_so(core: Core, clock: Clock) -> None:
    asked(core, "moved", "10")
    asked(core, "below", "150")
    priced(core, clock, "200", "205")
    core.rows(
        "INSERT INTO pricing.corporate_actions (asset_class, symbol, ex_on, kind, new_shares, old_shares, provider,"
        " call_id, recorded_at) VALUES ('equity', 'AAPL', (pricing.clock() AT TIME ZONE 'UTC')::date + 1, 'split',"
        " 2, 1, 'twelvedata', 1, pricing.clock())"
    )
    assert told(core) == []
    clock.advance(DAY)
    priced(core, clock, "101")
    price_watch.watch(core.engine)
    (body,) = [row.body for row in core.rows("SELECT payload ->> 'body' AS body FROM pricing.async_operations")]
    assert "A split of 2 for 1 on" in body
    assert "below 150" in body
    core.rows("DELETE FROM pricing.async_operations")
    priced(core, clock, "111")
    assert told(core) == ["AAPL has risen by 11.00 %: 111.00 USD"], "from 100, which was 200 before the split"


def test_b27_a_value_that_is_not_new_is_no_event(core: Core, clock: Clock) -> None:
    asked(core, "each", "1")
    priced(core, clock, "200")
    assert len(told(core)) == 1
    call = next_call(core, QUOTE, "AAPL")
    core.store(call, observation("AAPL", "200.00", core.clock()))
    assert core.one("SELECT count(*) FROM pricing.price_events") == 0, "the same value of the same time"
    core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", "201", core.clock()))
    assert core.one("SELECT count(*) FROM pricing.price_events") == 1, "it was corrected"
    core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", "9", core.clock() - timedelta(hours=1)))
    assert core.one("SELECT count(*) FROM pricing.price_events") == 1, "older than what is shown"
    priced(core, clock, "201", symbol="IBM")
    assert core.one("SELECT count(*) FROM pricing.price_events") == 1, "nobody asked for IBM"


def test_b27_new_prices_are_told_together_at_their_pace_and_a_program_gets_exact_fields(
    core: Core, clock: Clock
) -> None:
    add_webhook(core)
    alert = asked(core, "each", "60", symbol=None, to="hook")
    priced(core, clock, "200.10")
    assert told(core) == ["AAPL: 200.10 USD"]
    priced(core, clock, "201.10", "202.10")
    priced(core, clock, "50.5", symbol="IBM")
    assert told(core) == [], "within its pace"
    clock.advance(60)
    price_watch.watch(core.engine)
    (payload,) = [row.payload for row in core.rows("SELECT payload FROM pricing.async_operations")]
    assert payload["title"] == "2 new prices of equity_quote"
    data = payload["data"]
    assert (data["price_alert"], data["condition"]) == (alert, "each")
    assert {(price["symbol"], price["price"]) for price in data["prices"]} == {
        ("AAPL", "202.10"),
        ("IBM", "50.50"),
    }
    assert data["prices"][0].keys() == {
        "data_type",
        "symbol",
        "price",
        "currency",
        "observed_at",
        "provider",
        "call_id",
    }


def test_b27_many_prices_are_several_messages_that_fit(core: Core, clock: Clock) -> None:
    add_webhook(core)
    asked(core, "each", "60", symbol=None, to="hook")
    names = [f"{'S' * 35}{number:05d}" for number in range(150)]
    call = next_call(core, QUOTE, "AAPL")
    core.store(call, *(observation(name, "123456789012.123456", core.clock()) for name in names))
    assert price_watch.watch(core.engine) == 2
    rows = core.rows("SELECT payload -> 'data' -> 'prices' AS prices FROM pricing.async_operations ORDER BY id")
    assert [len(row.prices) for row in rows] == [100, 50]
    assert sorted(price["symbol"] for row in rows for price in row.prices) == names


def test_b27_a_stale_pair_is_told_once_and_again_after_it_was_fresh(core: Core, clock: Clock) -> None:
    priced(core, clock, "200")
    asked(core, "stale", "1800")
    ttl = 60 * core.one("SELECT default_ttl_minutes FROM pricing.data_type_registry WHERE data_type = 'equity_quote'")
    clock.advance(ttl + 1799)
    assert price_watch.watch_stale(core.engine) == 0
    clock.advance(1)
    assert price_watch.watch_stale(core.engine) == 1
    assert titles(core) == ["AAPL has been stale for 30 min"]
    clock.advance(DAY)
    assert price_watch.watch_stale(core.engine) == 0
    priced(core, clock, "200")
    assert price_watch.watch_stale(core.engine) == 0
    clock.advance(ttl + 1800)
    assert price_watch.watch_stale(core.engine) == 1


def test_b27_a_closed_market_is_not_stale(core: Core, clock: Clock) -> None:
    core.rows(
        "UPDATE pricing.data_type_registry SET staleness_function = 'is_market_stale' WHERE data_type = 'equity_quote'"
    )
    core.rows("INSERT INTO pricing.calendars (calendar) VALUES ('XXXX')")
    core.rows(
        "INSERT INTO pricing.calendar_sessions (calendar, session, opens_at, closes_at) VALUES"
        " ('XXXX', (pricing.clock() AT TIME ZONE 'UTC')::date + 2, pricing.clock() + interval '2 days',"
        " pricing.clock() + interval '2 days 6 hours')"
    )
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, calendar) VALUES ('equity', 'AAPL', 'XXXX')"
        " ON CONFLICT (asset_class, symbol) DO UPDATE SET calendar = 'XXXX'"
    )
    priced(core, clock, "200")
    asked(core, "stale", "1800")
    clock.advance(DAY)
    assert price_watch.watch_stale(core.engine) == 0
    clock.advance(DAY + 1800)
    assert price_watch.watch_stale(core.engine) == 1, "half an hour after it has opened"


def test_b27_a_pair_without_any_price_is_told_after_its_time(core: Core, clock: Clock) -> None:
    asked(core, "stale", "1800")
    clock.advance(1799)
    assert price_watch.watch_stale(core.engine) == 0
    clock.advance(1)
    assert price_watch.watch_stale(core.engine) == 1
    (row,) = core.rows("SELECT payload ->> 'body' AS body FROM pricing.async_operations")
    assert "equity_quote AAPL has no price." in row.body


def test_b27_whoever_cannot_be_told_stops_nobody(core: Core, clock: Clock) -> None:
    add_webhook(core)
    core.rows(
        "INSERT INTO pricing.recipients (recipient, channel, created_at, is_active)"
        " VALUES ('away', 'log', pricing.clock(), false), ('gone', 'log', pricing.clock(), true)"
    )
    core.rows("UPDATE pricing.operation_types SET is_active = false WHERE operation_type = 'webhook'")
    for name in ("hook", "away", "gone", "mailbox"):
        asked(core, "above", "200", to=name)
    priced(core, clock, "201")
    core.rows("DELETE FROM pricing.recipients WHERE recipient = 'gone'")
    title = "AAPL is above 200: 201.00 USD"
    assert told(core) == [title, title], "a message by a channel that is inactive waits until it is active"
    assert core.rows("SELECT FROM pricing.price_alerts WHERE recipient = 'gone'") == []
    core.rows("UPDATE pricing.recipients SET is_active = true")
    assert told(core) == [], "what happened while somebody was away is not told later"


def test_b27_a_rolled_back_price_is_told_to_nobody_and_a_late_one_is_not_lost(core: Core, clock: Clock) -> None:
    asked(core, "each", "1", symbol=None)
    with pytest.raises(ZeroDivisionError), storing(core, 20000):
        raise ZeroDivisionError
    assert told(core) == []
    clock.advance(2)
    with storing(core, 20100):
        priced(core, clock, "50", symbol="IBM")
        assert told(core) == ["IBM: 50.00 USD"], "a storing transaction that is open delays nobody else"
        clock.advance(2)
    assert told(core) == ["AAPL: 201.00 USD"]


def test_b27_a_price_that_was_being_stored_when_its_alert_was_made_is_told_however_long_that_takes(
    core: Core, clock: Clock
) -> None:
    with storing(core, 20100):
        asked(core, "above", "200")
        for _ in range(3):
            assert told(core) == []
            clock.advance(3600)
    assert told(core) == ["AAPL is above 200: 201.00 USD"]
    assert told(core) == []
    wait_until(lambda: not told(core) and core.one("SELECT bool_and(is_caught_up) FROM pricing.price_alerts"))


def test_b27_an_alert_that_somebody_has_locked_delays_nobody_and_loses_nothing(core: Core, clock: Clock) -> None:
    locked = asked(core, "above", "200")
    asked(core, "above", "201")
    with core.owner.begin() as other:
        other.execute(text("DELETE FROM pricing.price_alerts WHERE price_alert_id = :id"), {"id": locked})
        priced(core, clock, "202", "100", "203")
        assert told(core) == ["AAPL is above 201: 202.00 USD", "AAPL is above 201: 203.00 USD"]
        other.rollback()
    assert told(core) == ["AAPL is above 200: 202.00 USD", "AAPL is above 200: 203.00 USD"]


def test_b27_a_step_that_fails_changes_nothing(core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(core, "above", "200")
    priced(core, clock, "201")
    with monkeypatch.context() as patch:
        patch.setattr("pricing_pipeline.operations.price_watch.json.dumps", lambda *_, **__: "no JSON")
        with pytest.raises(DBAPIError):
            price_watch.watch(core.engine)
    assert titles(core) == []
    assert told(core) == ["AAPL is above 200: 201.00 USD"]


def test_b27_alerts_of_other_pairs_cost_nothing_when_a_price_is_stored(core: Core, clock: Clock) -> None:
    core.rows(
        "INSERT INTO pricing.price_alerts (recipient, data_type, symbol, condition, threshold, created_at, created_by)"
        " SELECT 'mailbox', 'equity_quote', 'S' || n, 'above', n, pricing.clock(), 'ann'"
        " FROM generate_series(1, 1000) n"
    )
    core.rows("ANALYZE pricing.price_alerts")
    asked(core, "above", "1")
    with core.engine.begin() as connection:
        for amount in range(8):  # by then plans are generic
            connection.execute(text(STORE), {"symbol": "AAPL", "amount": amount, "ahead": amount})
        before = rows_read(connection)
        connection.execute(text(STORE), {"symbol": "AAPL", "amount": 300, "ahead": 9})
        assert rows_read(connection) - before < 40


def test_b27_new_prices_that_nobody_takes_are_pruned_and_the_pace_follows_the_clock(core: Core, clock: Clock) -> None:
    alert = asked(core, "each", "60")
    priced(core, clock, "200")
    clock.advance(8 * DAY)
    priced(core, clock, "201")
    core.call("SELECT pricing.prune()")
    assert core.one("SELECT count(*) FROM pricing.price_events") == 1
    assert told(core) == ["AAPL: 201.00 USD"]
    clock.advance(-7200)
    core.rows("SELECT pricing.move_times(pricing.clock(), interval '2 hours')")
    clock.advance(60)
    core.rows("UPDATE pricing.latest_prices SET observed_at = observed_at - interval '1 day'")
    priced(core, clock, "202")
    assert told(core) == ["AAPL: 202.00 USD"]
    priced(core, clock, "203")
    core.rows("DELETE FROM pricing.price_alerts WHERE price_alert_id = :id", id=alert)
    core.call("SELECT pricing.prune()")
    assert core.one("SELECT count(*) FROM pricing.price_events") == 0


def add_webhook(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.recipients (recipient, channel, created_at, master_key_id, key_nonce, wrapped_key,"
        " secret_nonce, ciphertext) VALUES ('hook', 'webhook', pricing.clock(), 'one', '', '', '', '')"
    )


def test_b27_a_backlog_is_looked_at_in_parts_and_in_its_order(core: Core, clock: Clock) -> None:
    """As after days in which no notifier ran: all of it at once would not fit into memory."""
    asked(core, "above", "200")
    asked(core, "each", "1")
    priced(core, clock, "150")
    told(core)
    core.rows(
        "INSERT INTO pricing.price_events"
        " (price_alert_id, symbol, amount, scale, observed_at, provider, call_id, stored_at)"
        " SELECT a.price_alert_id, 'AAPL',"
        " CASE WHEN n BETWEEN 300 AND 399 OR n >= 500 THEN 250 ELSE n % 150 + 1 END, 0,"
        " pricing.clock() + make_interval(secs => n), 'twelvedata', 1, pricing.clock()"
        " FROM pricing.price_alerts a, generate_series(1, 510) n ORDER BY n"
    )
    core.rows(
        "UPDATE pricing.latest_prices SET amount = 250, scale = 0, observed_at = pricing.clock() + interval '510 s'"
    )
    clock.advance(600)
    with core.engine.begin() as connection:
        rows = connection.execute(text("SELECT * FROM pricing.take_price_events(100)")).all()
        assert len(rows) == 201, "200 of the one, the newest of the other"
        connection.rollback()
    assert sorted(told(core)) == ["AAPL is above 200: 250"] * 2 + ["AAPL: 250"]
    assert core.rows("SELECT FROM pricing.price_events") == []


def test_b27_a_flood_is_no_standstill(core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_watch, "_ALERTS_AT_ONCE", 4)
    core.rows(
        "INSERT INTO pricing.price_alerts (recipient, data_type, symbol, condition, threshold, created_at, created_by)"
        " SELECT 'mailbox', 'equity_quote', 'AAPL', 'above', n, pricing.clock(), 'ann' FROM generate_series(1, 10) n"
    )
    priced(core, clock, "999")
    signs: list[int] = []
    assert price_watch.watch(core.engine, lambda: signs.append(len(titles(core)))) == 10
    # Alerts look once more while a transaction of another test is open on the server.
    assert sorted(set(signs)) == [0, 4, 8, 10]
