"""E9: prices in another currency, by the stored rates of their time: exactly, rounded once, and never by a guess.

Which rate is that of a quote, a bar or a latest price is told by test_conversion_model.py.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pricing_client import PricingClient, Update
from pricing_pipeline.api import stream_hub
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.answers import Adjust, CapitalGain
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import InvalidCurrency
from pricing_pipeline.prices import actions, conversion, digits, moved_values, price_reader
from pricing_pipeline.prices.conversion import RatesOfTimes, Target
from pricing_pipeline.prices.files import open_store
from pricing_pipeline.prices.frames import BETWEEN, LEAST, Columns
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core, midnight
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import Caller, RunningApi
from pricing_pipeline_tests.support.filing import export_all, keep, move_all
from pricing_pipeline_tests.support.streams import OpenStream, streaming

still = pytest.mark.usefixtures("still")

THURSDAY, FRIDAY, SATURDAY, MONDAY = (date(2026, 6, day) for day in (11, 12, 13, 15))


def fraction_of(price: str, *rates: str, units: int = 1) -> Decimal:
    """A price times rates, of which those with a slash before them are turned round; rounded half up."""
    exact = Fraction(price) * units
    for rate in rates:
        exact = exact / Fraction(rate[1:]) if rate.startswith("/") else exact * Fraction(rate)
    return rounded(exact)


def rounded(exact: Fraction) -> Decimal:
    return Decimal(units_of(exact)).scaleb(-8)


def units_of(exact: Fraction, decimals: int = 8) -> int:
    """So many of the last digit."""
    return (2 * exact.numerator * 10**decimals + exact.denominator) // (2 * exact.denominator)


# ── Arithmetic ───────────────────────────────────────────────────────────────────────────────────

amounts = st.one_of(st.integers(1, 10**6), st.integers(1, 10**18 - 1))
scales = st.integers(0, 12)
rates = st.tuples(st.one_of(st.integers(1, 10**7), st.integers(1, 10**18 - 1)), scales, st.booleans())


class Prepared(RatesOfTimes):
    """Rates that no database has."""

    def __init__(self, legs: list[tuple[int, int, bool]], days: list[int], units: int) -> None:
        super().__init__(None, Target("X", "X", units), date(2000, 1, 1), date(2000, 1, 1), None, of_days=True)  # type: ignore[arg-type]
        self._legs = legs
        times = big_endian([(day - 10_957) * 86_400_000_000 for day in days])
        for number, (amount, scale, is_inverse) in enumerate(legs):
            row = [
                *("fx_daily", "A/B", False, is_inverse, times),
                big_endian([amount] * len(days)),
                small([scale] * len(days)),
            ]
            self._tables[f"C{number}", f"C{number + 1}"] = conversion._Table([row], of_days=True)

    def _ways(self, currency: str) -> Any:
        yield [(f"C{number}", f"C{number + 1}") for number in range(len(self._legs))]


def big_endian(numbers: list[int]) -> bytes:
    return np.array(numbers, dtype=">i8").tobytes()


def small(numbers: list[Any]) -> bytes:
    return np.array(numbers, dtype=">i2").tobytes()


@given(
    st.lists(st.tuples(st.one_of(st.just(LEAST), amounts), scales), min_size=1, max_size=5),
    st.lists(rates, min_size=1, max_size=2),
    st.sampled_from([1, 100, 1000]),
)
@example([(25, 10)], [(2, 0, False)], 1)  # exactly in the middle
@example([(10**18 - 1, 0)], [(10**18 - 1, 0, False)] * 2, 1000)
@example([(5, 12)], [(1, 0, False)], 1)  # a rate of 1
@example([(12_345, 12), (123_450, 3), (99, 4), (1, 2)], [(11, 1, True)], 1)  # small ones and others
@example([(1, 7)], [(10**17 - 1, 12, False)], 1)  # a little below 0.01
@example([(100, 8)], [(10**17, 12, True), (10**17, 8, False)], 1)  # 0.01, as numbers that no float has
def test_e9_a_converted_price_is_the_exact_fraction_rounded_once(
    prices: list[tuple[int, int]], legs: list[tuple[int, int, bool]], units: int
) -> None:
    """Whether a machine's numbers are wide enough for it or not."""
    days = [20_000 + 7 * number for number in range(len(prices))]  # all of them Fridays
    closes = big_endian([amount for amount, _ in prices])
    rows = len(prices)
    sent = Columns(
        observed_at=big_endian([(day - 10_957) * 86_400_000_000 for day in days]),
        fetched_at=b"",
        open=closes,
        high=closes,
        low=closes,
        close=closes,
        scale=small([scale for _, scale in prices]),
        volume="",
        currency=BETWEEN.join([b"C0"] * rows),
        adjustment=b"",
        provider=b"",
        call_id=b"",
        quality=b"",
        is_daily=True,
    )
    told = conversion.converted(sent, Target("X", "X", units), Prepared(legs, days, units), lambda: None)
    parts = [text.partition(".") for text in digits.spelled(told.close, told.scale).split(" ")]
    found = [(int(whole + rest) if whole else LEAST, len(rest)) for whole, _, rest in parts]
    for (amount, scale), (one, decimals) in zip(prices, found, strict=True):
        exact = Fraction(amount, 10**scale) * units
        for rate, rate_scale, is_inverse in legs:
            worth = Fraction(rate, 10**rate_scale)
            exact = exact / worth if is_inverse else exact * worth
        assert one == (LEAST if amount == LEAST else units_of(exact, decimals))
        if amount != LEAST:
            assert decimals == (18 if exact * 100 < 1 else 8)


def test_e9_only_currencies_are_targets() -> None:
    assert Target.named("GBX") == Target("GBX", "GBP", 100)
    assert Target.named("GBp").units == Target.named("ZAc").units == Target.named("ILA").units == 100
    assert Target.named("KWF").units == 1000
    for code in ("EURO", "eur", "", "gbp", "\0"):
        with pytest.raises(InvalidCurrency, match="not a known currency"):
            Target.named(code)


def test_e9_a_weekend_belongs_to_its_friday() -> None:
    first = date(1969, 12, 20)
    days = np.arange(0, 9000) + (first - date(1970, 1, 1)).days
    for day, market in zip(days.tolist(), conversion._market_days(days).tolist(), strict=True):
        on, its = (date(1970, 1, 1) + timedelta(days=one) for one in (day, market))
        assert its.weekday() < 5
        assert its == (on if on.weekday() < 5 else on - timedelta(days=on.weekday() - 4))


# ── Histories ────────────────────────────────────────────────────────────────────────────────────


def put(core: Core, data_type: str, symbol: str, price: str, at: datetime | date, currency: str | None = "USD") -> None:
    """Store a value as if it had been fetched now."""
    exact = Decimal(price).as_tuple()
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, open_amount, scale, currency,"
        " provider, call_id, fetched_at) VALUES (:type, :symbol, :at, :amount, :amount, :scale, :currency,"
        " 'twelvedata', 1, pricing.clock())",
        type=data_type,
        symbol=symbol,
        at=at if isinstance(at, datetime) else midnight(at),
        amount=int("".join(map(str, exact.digits))),
        scale=-int(exact.exponent),
        currency=currency,
    )


@pytest.fixture
def rates_of(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)"
        " VALUES ('fx_daily', 'fx', 'daily_bars', 1440)"
    )
    for asset_class, symbol, currency in (
        ("fx", "EUR/USD", "USD"),
        ("fx", "GBP/USD", "USD"),
        ("fx", "USD/JPY", "JPY"),
        ("equity", "VOD:XLON", "GBP"),
    ):
        core.rows(
            "INSERT INTO pricing.instruments (asset_class, symbol, currency) VALUES (:class, :symbol, :currency)"
            " ON CONFLICT DO NOTHING",
            **{"class": asset_class, "symbol": symbol, "currency": currency},
        )
    for day, rate in ((THURSDAY, "1.0853"), (FRIDAY, "1.1007")):
        put(core, "fx_daily", "EUR/USD", rate, day)
        put(core, "fx_daily", "GBP/USD", "1.2719", day)
        put(core, "fx_daily", "USD/JPY", "151.303", day, "JPY")
    for day, close in ((THURSDAY, "146.55"), (FRIDAY, "147.125"), (SATURDAY, "148"), (MONDAY, "149.01")):
        put(core, DAILY, "AAPL", close, day)
        put(core, DAILY, "VOD:XLON", "0.7338", day, None)


def read(caller: Caller, symbol: str, currency: str, **more: str) -> list[dict[str, Any]]:
    params = {"from": "2026-06-11", "to": "2026-06-15", "currency": currency, **more}
    rows: list[dict[str, Any]] = caller.ask("GET", f"history/{DAILY}/{symbol}", params=params).json()["rows"]
    return rows


@still
@pytest.mark.usefixtures("rates_of")
def test_e9_a_bar_is_converted_by_the_rate_of_its_day_which_is_named(api: RunningApi) -> None:
    caller = api.caller(Scope.READ)
    rows = read(caller, "AAPL", "EUR")
    assert [(row["date"], row["currency"], row["rate"]) for row in rows] == [
        ("2026-06-11", "EUR", "EUR/USD 1.0853 2026-06-11 inverse"),
        ("2026-06-12", "EUR", "EUR/USD 1.1007 2026-06-12 inverse"),
        ("2026-06-13", "EUR", "EUR/USD 1.1007 2026-06-12 inverse"),
        ("2026-06-15", "EUR", "no rate USD/EUR of 2026-06-15"),
    ]
    assert [row["close"] and Decimal(row["close"]) for row in rows] == [
        fraction_of("146.55", "/1.0853"),
        fraction_of("147.125", "/1.1007"),
        fraction_of("148", "/1.1007"),
        None,
    ]
    assert [row["open"] for row in rows] == [row["close"] for row in rows]
    assert {row["high"] for row in rows} == {None}
    (direct, *_) = read(caller, "AAPL", "JPY")
    assert direct["rate"] == "USD/JPY 151.303 2026-06-11"
    assert Decimal(direct["close"]) == fraction_of("146.55", "151.303")
    (pivot, *_) = read(caller, "VOD:XLON", "EUR")
    assert pivot["rate"] == "GBP/USD 1.2719 2026-06-11 * EUR/USD 1.0853 2026-06-11 inverse"
    assert Decimal(pivot["close"]) == fraction_of("0.7338", "1.2719", "/1.0853")
    (same, *_) = read(caller, "AAPL", "USD")
    assert (same["close"], same["currency"], same["rate"]) == ("146.55", "USD", None)
    (pence, *_) = read(caller, "VOD:XLON", "GBX")
    assert (pence["close"], pence["currency"]) == ("73.38000000", "GBX")
    (lacking, *_) = read(caller, "AAPL", "ILA")
    assert (lacking["close"], lacking["rate"]) == (None, "no rate USD/ILS of 2026-06-11")
    answer = caller.refusal("GET", f"history/{DAILY}/AAPL", params={"currency": "EURO"})
    assert (answer["status"], answer["type"]) == (422, "urn:pricing-pipeline:invalid-currency")


@still
@pytest.mark.usefixtures("rates_of")
@pytest.mark.parametrize("adjust", [None, "splits"])
def test_e9_every_format_and_the_command_line_convert_alike(
    api: RunningApi, cli: CommandLine, adjust: str | None
) -> None:
    caller = api.caller(Scope.READ)
    more = {} if adjust is None else {"adjust": adjust}
    wanted = [
        (row["date"], row["close"] and Decimal(row["close"]), row["currency"], row["rate"])
        for row in read(caller, "AAPL", "EUR", **more)
    ]
    assert len(wanted) == 4
    params = {"from": "2026-06-11", "to": "2026-06-15", "currency": "EUR", **more}
    answers = {
        format_: caller.ask("GET", f"history/{DAILY}/AAPL", params={**params, "format": format_}).content
        for format_ in ("csv", "arrow", "parquet")
    }
    options = ["--type", DAILY, "--from", "2026-06-11", "--to", "2026-06-15", "--currency", "EUR"]
    options += [] if adjust is None else ["--adjust", adjust]
    printed = cli("price", "history", "AAPL", *options, "--csv").stdout
    assert printed.encode().replace(b"\n", b"\r\n") in (
        answers["csv"],
        answers["csv"].replace(b"\r\n", b"\r\r\n"),
    )
    tables: list[list[dict[str, Any]]] = [
        list(csv.DictReader(io.StringIO(answers["csv"].decode()))),
        pa.ipc.open_stream(answers["arrow"]).read_all().to_pylist(),
        parquet.read_table(pa.BufferReader(answers["parquet"])).to_pylist(),
        cli("price", "history", "AAPL", *options, "--json").json["rows"],
    ]
    for table in tables:
        found = [
            (str(row["date"]), Decimal(row["close"]) if row["close"] else None, row["currency"], row["rate"])
            for row in table
        ]
        assert found == wanted
    shown = cli("price", "history", "AAPL", *options, "--wide")
    assert "no rate USD/EUR of 2026-06-15" in shown.stdout
    assert "A backfill of daily bars of the class fx brings rates of the past" in " ".join(shown.stderr.split())


@still
@pytest.mark.usefixtures("rates_of")
def test_e9_a_read_of_the_past_converts_by_the_rates_known_then(api: RunningApi, core: Core, clock: Clock) -> None:
    caller = api.caller(Scope.READ)
    before = core.clock()
    clock.advance(3600)
    core.rows(
        "INSERT INTO pricing.price_revisions (data_type, symbol, observed_at, amount, scale, currency, provider,"
        " call_id, recorded_at, revised_at, revised_by) SELECT data_type, symbol, observed_at, amount, scale, currency,"
        " provider, call_id, fetched_at, pricing.clock(), 2 FROM pricing.price_history WHERE symbol = 'EUR/USD'"
    )
    core.rows("UPDATE pricing.price_history SET amount = 20000, fetched_at = pricing.clock() WHERE symbol = 'EUR/USD'")
    now = read(caller, "AAPL", "EUR")
    then = read(caller, "AAPL", "EUR", as_of=before.isoformat().replace("+00:00", "Z"))
    assert now[0]["rate"] == "EUR/USD 2.0000 2026-06-11 inverse"
    assert Decimal(now[0]["close"]) == fraction_of("146.55", "/2")
    assert then[0]["rate"] == "EUR/USD 1.0853 2026-06-11 inverse"
    assert Decimal(then[0]["close"]) == fraction_of("146.55", "/1.0853")
    assert then[3]["close"] is None


@still
@pytest.mark.parametrize("as_of", [None, datetime(2026, 6, 1, tzinfo=UTC)])
def test_e9_f12_rates_of_months_that_have_moved_to_files_are_read(
    core: Core, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_of: datetime | None
) -> None:
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path / "history"))
    store = open_store(load_settings())
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('fx', 'EUR/USD'), ('fx', 'GBP/USD')"
        " ON CONFLICT DO NOTHING"
    )
    days = [date(2025, 3, 3) + timedelta(days=day) for day in range(40)]
    clock.set(datetime(2025, 5, 20, tzinfo=UTC))
    for number, day in enumerate(days):
        put(core, DAILY, "AAPL", "146.55", day)
        put(core, DAILY, "MSFT", "146.55", day, "GBP")
        for symbol in ("EUR/USD", "GBP/USD"):
            at = midnight(day) + timedelta(hours=16)
            put(core, FX, symbol, f"1.{number + 10}", at)
            core.rows("SELECT pricing.note_changes(:type, ARRAY[:at])", type=FX, at=at)
    clock.set(datetime(2026, 6, 30, tzinfo=UTC))

    def told() -> list[list[Any]]:
        with core.engine.connect() as connection:
            return [
                price_reader.history(connection, symbol, DAILY, days[0], days[-1], as_of=as_of, currency="EUR")[
                    ["close", "currency", "rate"]
                ].values.tolist()
                for symbol in ("AAPL", "MSFT")
            ]

    before = told()
    assert [close is not None for history in before for close, *_ in history] == [True] * 80
    complete = moved_values.complete

    def move() -> None:
        keep(core, 3, FX)
        assert export_all(core, store, FX)
        assert move_all(core, store, FX) > 0

    def complete_after_a_move(connection: Connection, wanted: Sequence[Any], read: Any) -> Any:
        if not wanted:  # it is for rates, none of which has moved
            monkeypatch.setattr(moved_values, "complete", complete)
            move()
        return complete(connection, wanted, read)

    if as_of is None:  # else the database refuses to read what has moved in the meantime
        monkeypatch.setattr(moved_values, "complete", complete_after_a_move)
    else:
        move()
    assert told() == before
    assert told() == before


@still
def test_f5_f12_a_payment_is_converted_by_a_rate_that_has_moved_to_a_file(
    core: Core, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused for want of a rate. SQL alone reads no files, and says so."""
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path / "history"))
    store = open_store(load_settings())
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('fx', 'EUR/USD') ON CONFLICT DO NOTHING")
    days = [date(2025, 3, 3) + timedelta(days=day) for day in range(40)]
    clock.set(datetime(2025, 5, 20, tzinfo=UTC))
    for day in days:
        put(core, DAILY, "AAPL", "146.55", day)
        put(core, FX, "EUR/USD", "1.1", at := midnight(day) + timedelta(hours=16))
        core.rows("SELECT pricing.note_changes(:type, ARRAY[:at])", type=FX, at=at)
    with core.engine.begin() as connection:
        actions.enter(connection, "equity", CapitalGain("AAPL", days[7], Decimal(1), "EUR"), "ann")
    clock.set(datetime(2025, 12, 30, tzinfo=UTC))

    def told() -> tuple[list[Decimal | None], Any]:
        with core.engine.connect() as connection:
            bars = price_reader.bars(connection, "AAPL", DAILY, days[0], days[20], adjust=Adjust.TOTAL)
            (checked,) = connection.execute(query("checks.outliers"), {"data_types": [DAILY]})
        return [bar.close for bar in bars], checked.without_rate

    closes, without_rate = before = told()
    assert (closes[0], closes[7], without_rate) == (Decimal("145.45"), Decimal("146.55"), None)
    keep(core, 3, FX)
    assert export_all(core, store, FX)
    assert move_all(core, store, FX) > 0
    assert told() == before
    asked = "SELECT * FROM pricing.history(:type, 'AAPL', :first_day, :last_day, adjust => 'total')"
    with pytest.raises(DBAPIError, match="EUR/USD fx_rate between 2025-03-10 and 2025-03-10 have moved to files"):
        core.rows(asked, type=DAILY, first_day=days[0], last_day=days[20])


# ── Latest prices ────────────────────────────────────────────────────────────────────────────────


@still
def test_e9_latest_prices_are_converted_by_the_latest_rates_which_are_asked_for(
    api: RunningApi, cli: CommandLine, core: Core, clock: Clock
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (FX, "EUR/USD"))
    core.refresh(price="146.555")
    core.rows("UPDATE pricing.latest_prices SET amount = 1085300, scale = 6 WHERE data_type = 'fx_rate'")
    caller = api.caller(Scope.READ)
    (price,) = caller.get("prices", symbols="AAPL", data_type=QUOTE, currency="EUR")["prices"]
    assert (Decimal(price["price"]), price["currency"]) == (fraction_of("146.555", "/1.0853"), "EUR")
    assert price["rate"].startswith("EUR/USD 1.085300 20")
    assert price["rate"].endswith("Z inverse")
    text = caller.ask("GET", "prices", params={"symbols": "AAPL", "currency": "EUR", "format": "csv"}).text
    (row,) = csv.DictReader(io.StringIO(text))
    assert (Decimal(row["price"]), row["currency"], row["rate"]) == (
        Decimal(price["price"]),
        "EUR",
        price["rate"],
    )
    (printed,) = cli("price", "show", "AAPL", "--type", QUOTE, "--currency", "EUR", "--json").json["prices"]
    assert (printed["price"], printed["rate"]) == (price["price"], price["rate"])
    assert "Converted by EUR/USD" in cli("price", "show", "AAPL", "--currency", "EUR").stderr
    with PricingClient(api.url, caller.token or "", patience=0) as client:
        (by_client,) = client.prices("AAPL", data_type=QUOTE, currency="EUR").prices
    assert (by_client.price, by_client.currency) == (Decimal(price["price"]), "EUR")
    core.rows("DELETE FROM pricing.active_subscriptions")
    clock.advance(86_400)
    assert "pending" not in {task.status for task in core.tasks("EUR/USD")}
    caller.get("prices", symbols="AAPL", data_type=QUOTE, currency="EUR")
    assert "pending" in {task.status for task in core.tasks("EUR/USD")}


@still
@pytest.mark.usefixtures("rates_of")
def test_e9_a_small_price_keeps_its_digits(api: RunningApi, core: Core) -> None:
    core.rows(
        "UPDATE pricing.price_history SET amount = 12345, open_amount = 12345, scale = 12"
        " WHERE symbol = 'AAPL' AND observed_at = :at",
        at=midnight(THURSDAY),
    )
    caller = api.caller(Scope.READ)
    params = {"from": "2026-06-11", "to": "2026-06-12", "currency": "EUR"}
    plain = caller.ask("GET", f"history/{DAILY}/AAPL", params=params).json()["rows"]
    arrow = caller.ask("GET", f"history/{DAILY}/AAPL", params={**params, "format": "arrow"}).content
    small = Decimal(units_of(Fraction(12345, 10**12) / Fraction("1.0853"), 18)).scaleb(-18)
    for rows in (plain, pa.ipc.open_stream(arrow).read_all().to_pylist()):
        assert [Decimal(row["close"]) for row in rows] == [small, fraction_of("147.125", "/1.1007")]
    rate = conversion.Rate(10_000, 10_853, None)
    assert Decimal(rate.of("0.000000012345")) == small


@still
def test_e9_a_price_without_a_rate_is_missing_and_the_rate_is_proposed(
    api: RunningApi, cli: CommandLine, core: Core
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    told = api.caller(Scope.READ).get("prices", pairs=f"{QUOTE}:AAPL", currency="SEK")
    assert told["prices"] == []
    (missing,) = told["missing"]
    assert (missing["symbol"], missing["data_type"], missing["why"]["state"]) == ("AAPL", QUOTE, "no_rate")
    sentence = "No rate USD/SEK is stored, nor two pairs that lead there. Watch USD/SEK of fx_rate, and it is fetched."
    assert missing["why"]["sentence"] == sentence
    assert sentence in " ".join(cli("price", "show", "AAPL", "--currency", "SEK").stderr.split())


@still
def test_e9_b27_a_stream_tells_prices_in_another_currency_and_watches_their_rate(
    api: RunningApi, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_hub, "PACE_SECONDS", 0.05)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    caller = api.caller(Scope.READ, Scope.WATCH, user="ann")
    with PricingClient(api.url, caller.token or "", "ann", patience=0) as client:
        updates = client.watch((QUOTE, "AAPL"), currency="EUR")
        missing = next(updates)
        assert isinstance(missing, Update)
        assert (missing.kind, missing.why and missing.why.state) == ("missing", "no_rate")
        assert next(updates).kind == "ready"
        assert "USD/EUR" in core.one("SELECT string_agg(symbol, ' ') FROM pricing.active_subscriptions")
        core.refresh(price="2")  # the rate alone is due
        core.rows("UPDATE pricing.latest_prices SET currency = 'EUR' WHERE symbol = 'USD/EUR'")
        came = next(updates)
        assert isinstance(came, Update)
        assert came.price is not None
        assert (came.kind, came.price.price, came.price.currency) == ("price", Decimal("293.1"), "EUR")
        assert (came.price.rate or "").startswith("USD/EUR 2")
        assert next(updates).kind == "ready"
        with streaming(caller, pairs=f"{QUOTE}:AAPL") as plain:
            assert [event.data.get("price") for event in plain.until("ready")] == ["146.55", None]
        updates.close()  # type: ignore[attr-defined]
        (bar,) = client.history(QUOTE, "AAPL", currency="EUR")
        assert (bar.close, bar.rate) == (None, f"no rate USD/EUR of {bar.observed_at:%Y-%m-%dT%H:%M:%SZ}")
        assert list(client.history_frame(QUOTE, "AAPL", currency="EUR").rate) == [bar.rate]
        assert "rate" not in client.history_frame(QUOTE, "AAPL")
        assert client.histories(QUOTE, "AAPL", currency="USD")["AAPL"][0].close == Decimal("146.55")


@still
def test_e9_b27_a_new_rate_sends_the_prices_that_it_converts_again_also_to_a_stream_that_resumes(
    api: RunningApi, core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_hub, "PACE_SECONDS", 0.05)
    caller = api.caller(Scope.READ, Scope.WATCH, user="ann")
    shown = {"pairs": f"{QUOTE}:AAPL,{QUOTE}:SAP,{QUOTE}:VOD", "currency": "EUR"}

    def told(stream: OpenStream) -> list[tuple[str, ...]]:
        *prices, _ = stream.until("ready")
        assert {event.kind for event in prices} <= {"price"}
        return [(event.data["symbol"], event.data["price"]) for event in prices]

    def set_rate(symbol: str, amount: int) -> None:
        clock.advance(1)
        core.rows(
            "UPDATE pricing.latest_prices SET amount = :amount, scale = 0, observed_at = pricing.clock()"
            " WHERE data_type = 'fx_rate' AND symbol = :symbol",
            amount=amount,
            symbol=symbol,
        )

    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "SAP"), (QUOTE, "VOD"), (FX, "USD/EUR"), (FX, "GBP/EUR"))
    core.refresh(price="8")
    for symbol, currency in (("AAPL", "USD"), ("SAP", "EUR"), ("VOD", "GBP"), ("USD/EUR", "EUR"), ("GBP/EUR", "EUR")):
        core.rows(
            "UPDATE pricing.latest_prices SET currency = :currency WHERE symbol = :symbol",
            currency=currency,
            symbol=symbol,
        )
    with streaming(caller, **shown) as stream:
        assert dict(told(stream)) == {"AAPL": "64.00000000", "SAP": "8.00", "VOD": "64.00000000"}
        set_rate("USD/EUR", 2)
        assert told(stream) == [("AAPL", "16.00000000")]
        set_rate("GBP/EUR", 3)
        assert told(stream) == [("VOD", "24.00000000")]
        assert stream.so_far() == []
        last = stream.last_id
    set_rate("USD/EUR", 4)
    with streaming(caller, last, **shown) as stream:
        assert told(stream) == [("AAPL", "32.00000000"), ("VOD", "24.00000000")]


@still
def test_e9_a_missing_rate_is_watched_by_a_user_who_may(api: RunningApi, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    for caller in (api.caller(Scope.READ, user="ann"), api.caller(Scope.READ, Scope.WATCH, user="ann")):
        assert core.one("SELECT count(*) FROM pricing.active_subscriptions WHERE symbol = 'USD/SEK'") == 0
        caller.get("prices", pairs=f"{QUOTE}:AAPL", currency="SEK")
    assert core.one("SELECT count(*) FROM pricing.active_subscriptions WHERE symbol = 'USD/SEK'") == 1


def test_e9_pivots_are_the_usual_currencies_first() -> None:
    known = ("A/C", "C/B", "EUR/A", "B/EUR", "USD/A", "USD/B", "A/D", "A/B")
    direct, *others = conversion.ways("A", "B", lambda: (pair.split("/") for pair in known))
    assert direct == [("A", "B")]
    assert others == [[("A", pivot), (pivot, "B")] for pivot in ("USD", "EUR", "C")]


@still
@pytest.mark.usefixtures("rates_of")
def test_e9_each_row_has_the_currency_that_it_names(api: RunningApi, core: Core) -> None:
    """A share may have moved to another currency, and one row may name none."""
    core.rows("UPDATE pricing.price_history SET currency = 'JPY' WHERE symbol = 'AAPL' AND observed_at < '2026-06-12Z'")
    core.rows("UPDATE pricing.price_history SET currency = NULL WHERE symbol = 'AAPL' AND observed_at > '2026-06-14Z'")
    core.rows("UPDATE pricing.instruments SET currency = NULL WHERE symbol = 'AAPL'")
    rows = read(api.caller(Scope.READ), "AAPL", "USD")
    assert [(row["close"], row["rate"]) for row in rows] == [
        (f"{fraction_of('146.55', '/151.303')}", "USD/JPY 151.303 2026-06-11 inverse"),
        ("147.125", None),
        ("148", None),
        (None, "the prices name no currency"),
    ]
