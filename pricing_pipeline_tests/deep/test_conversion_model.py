"""Converted prices, held against a model of rational numbers (E9).

The model knows what is stored, and nothing of tables, spans and queries. Each converted price is the stored one times
the rates that it names, rounded once. These rates are stored, are not of a later time than the price, and are the ones
that the documented rule chooses. Where the rule finds none, there is no price.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pricing_pipeline.prices import price_reader
from pricing_pipeline.prices.conversion import LatestRates, Target
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")

FIRST = datetime(2026, 6, 8, tzinfo=UTC)  # a Monday
DAYS = 16
A_DAY = timedelta(days=1)
FX_DAILY = "fx_daily"
SYMBOLS = ["EUR/USD", "USD/EUR", "GBP/USD", "EUR/GBP", "CHF/USD", "CHF/EUR", "USD/CHF"]
PIVOTS = ["USD", "EUR", "CHF", "GBP"]


@dataclass(frozen=True)
class Rate:
    """A stored rate; `is_named` says whether it names its currency, which it need not."""

    data_type: str
    symbol: str
    at: datetime
    amount: int
    scale: int

    def fraction(self, base: str) -> Fraction:
        """What one of `base` is worth."""
        exact = Fraction(self.amount, 10**self.scale)
        return exact if self.symbol.startswith(f"{base}/") else 1 / exact

    def words(self, base: str, *, of_days: bool) -> str:
        """How an answer names it."""
        exact = format(Decimal(self.amount).scaleb(-self.scale), "f")
        when = f"{self.at:%Y-%m-%d}" if of_days else f"{self.at:%Y-%m-%dT%H:%M:%SZ}"
        return f"{self.symbol} {exact} {when}" + ("" if self.symbol.startswith(f"{base}/") else " inverse")


@dataclass(frozen=True)
class World:
    """Rates, and prices of one symbol by time, each in a currency or in that of its instrument (None)."""

    rates: Sequence[Rate]
    prices: Sequence[tuple[datetime, int, int, str | None]]
    of_days: bool
    target: str


def times(of_days: bool) -> st.SearchStrategy[datetime]:
    days = st.integers(0, DAYS - 1).map(lambda day: FIRST + day * A_DAY)
    if of_days:
        return days
    return st.builds(lambda day, minutes: day + timedelta(minutes=minutes), days, st.integers(0, 1439))


amounts, scales = st.one_of(st.integers(1, 10**6), st.integers(1, 10**17)), st.integers(0, 9)
quoted = st.builds(Rate, st.just(FX), st.sampled_from(SYMBOLS), times(False), amounts, scales)
daily = st.builds(Rate, st.just(FX_DAILY), st.sampled_from(SYMBOLS), times(True), amounts, scales)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    of_days = draw(st.booleans())
    many = st.lists(st.one_of(quoted, daily), max_size=40, unique_by=lambda one: (one.data_type, one.symbol, one.at))
    price = st.tuples(times(of_days), amounts, scales, st.sampled_from(["USD", "GBP", "CHF", None]))
    prices = draw(st.lists(price, min_size=1, max_size=12, unique_by=lambda one: one[0]))
    return World(draw(many), sorted(prices), of_days, draw(st.sampled_from(["EUR", "USD", "GBP"])))


def market_day(at: datetime) -> date:
    """FX has no session on weekends."""
    day = at.date()
    return day - timedelta(days=max(0, day.weekday() - 4))


def of_pair(world: World, base: str, quote: str, at: datetime) -> Rate | None:
    """The rate of a pair for a price of this time, by the rule of docs/prices.md."""
    ours = [rate for rate in world.rates if rate.symbol in (f"{base}/{quote}", f"{quote}/{base}")]
    if world.of_days:
        its = [rate for rate in ours if rate.at.date() == market_day(at)]
        return min(
            its,
            default=None,
            key=lambda rate: (
                rate.data_type == FX,
                rate.symbol != f"{base}/{quote}",
                -rate.at.timestamp(),
            ),
        )
    since = market_day(at - A_DAY)
    its = [rate for rate in ours if rate.data_type == FX and rate.at <= at and rate.at.date() >= since]
    return max(its, default=None, key=lambda rate: (rate.at, rate.symbol == f"{base}/{quote}"))


def ways(base: str, quote: str) -> Iterator[list[tuple[str, str]]]:
    yield [(base, quote)]
    known = {frozenset(symbol.split("/")) for symbol in SYMBOLS}
    for pivot in PIVOTS:
        if {frozenset((base, pivot)), frozenset((pivot, quote))} <= known:
            yield [(base, pivot), (pivot, quote)]


def expected(world: World, at: datetime, price: Fraction, currency: str) -> tuple[Fraction | None, str | None]:
    """The exact converted price and the rates in words; or why there is none."""
    if currency == world.target:
        return price, None
    for way in ways(currency, world.target):
        legs = [(base, of_pair(world, base, quote, at)) for base, quote in way]
        found = [(base, rate) for base, rate in legs if rate is not None]
        if len(found) == len(way):
            for base, rate in found:
                price *= rate.fraction(base)
            return price, " * ".join(rate.words(base, of_days=world.of_days) for base, rate in found)
    when = f"{market_day(at)}" if world.of_days else f"{at:%Y-%m-%dT%H:%M:%SZ}"
    return None, f"no rate {currency}/{world.target} of {when}"


def is_rounded(found: Decimal, exact: Fraction) -> bool:
    """Rounded once, half up, to 8 decimals, or to 18 below 0.01; or the stored digits."""
    return any(
        Fraction(found)
        == Fraction((2 * exact.numerator * 10**places + exact.denominator) // (2 * exact.denominator)) / 10**places
        for places in ((18, 8) if abs(exact * 100 - 1) < Fraction(1, 10**9) else (18,) if exact * 100 < 1 else (8,))
    )


@pytest.fixture
def instruments(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)"
        " VALUES (:type, 'fx', 'daily_bars', 1440)",
        type=FX_DAILY,
    )
    for symbol in SYMBOLS:
        core.rows(
            "INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('fx', :symbol) ON CONFLICT DO NOTHING",
            symbol=symbol,
        )
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol, currency) VALUES ('equity', 'X', 'GBP')")


def store(core: Core, world: World) -> None:
    data_type = DAILY if world.of_days else QUOTE
    rows = [(rate.data_type, rate.symbol, rate.at, rate.amount, rate.scale, rate.symbol[4:]) for rate in world.rates]
    rows += [(data_type, "X", at, amount, scale, currency) for at, amount, scale, currency in world.prices]
    core.rows("TRUNCATE pricing.price_history, pricing.latest_prices")
    for kind, symbol, at, amount, scale, currency in rows:
        core.rows(
            "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, open_amount, scale, currency,"
            " provider, call_id, fetched_at) VALUES (:kind, :symbol, :at, :amount, :amount, :scale, :currency,"
            " 'twelvedata', 1, pricing.clock())",
            kind=kind,
            symbol=symbol,
            at=at,
            amount=amount,
            scale=scale,
            currency=currency,
        )


def in_hours(day: int, *hours: int) -> list[datetime]:
    return [FIRST + timedelta(days=day, hours=hour) for hour in hours]


OVER_A_WEEKEND = World(
    [
        Rate(FX, "EUR/USD", at, amount, 0)
        for at, amount in zip([*in_hours(4, 14, 16), *in_hours(7, 9)], (3, 2, 4), strict=True)
    ],
    [
        (at, 100, 0, "USD")
        for day, hours in ((4, (13, 15)), (6, (12,)), (7, (8, 10)), (8, (10,)), (9, (10,)))
        for at in in_hours(day, *hours)
    ],
    of_days=False,
    target="EUR",
)
"""Prices before the first rate, between rates, on the weekend, and when the last rate is of today, old, and too old."""


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(world=worlds())
@example(world=OVER_A_WEEKEND)
@pytest.mark.usefixtures("instruments")
def test_e9_each_converted_price_is_the_stored_one_times_the_rates_that_it_names(core: Core, world: World) -> None:
    store(core, world)
    first, last = FIRST.date(), (FIRST + DAYS * A_DAY).date()
    data_type = DAILY if world.of_days else QUOTE
    with core.engine.connect() as connection:
        frame = price_reader.history(connection, "X", data_type, first, last, currency=world.target)
    assert len(frame) == len(world.prices)
    for (at, amount, scale, currency), row in zip(world.prices, frame.itertuples(), strict=True):
        price = Fraction(amount, 10**scale)
        exact, words = expected(world, at, price, currency or "GBP")
        assert (row.rate if isinstance(row.rate, str) else None) == words
        assert row.currency == world.target
        if exact is None:
            assert row.close is None
        else:
            assert row.open == row.close
            assert Fraction(row.close) == price if words is None else is_rounded(row.close, exact)


OF_OTHER_SPELLINGS = [Rate(FX, "USD/EUR", FIRST, 2, 0), Rate(FX, "EUR/USD", FIRST + A_DAY, 4, 0)]
OF_DAYS = Rate(FX_DAILY, "EUR/USD", FIRST + 2 * A_DAY, 5, 0)
"""The newest of them."""
BY_WAY_OF_GBP = [Rate(FX, symbol, FIRST + A_DAY, 4, 0) for symbol in ("EUR/GBP", "GBP/USD")]
"""Newer than the direct one."""


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stored=st.lists(st.one_of(quoted, daily), max_size=8, unique_by=lambda one: (one.data_type, one.symbol)),
    base=st.sampled_from(["USD", "GBP", "CHF"]),
    price=st.tuples(amounts, scales),
)
@example(stored=[*OF_OTHER_SPELLINGS, OF_DAYS], base="USD", price=(100, 0))
@example(stored=OF_OTHER_SPELLINGS, base="USD", price=(100, 0))
@example(stored=[OF_OTHER_SPELLINGS[0], *BY_WAY_OF_GBP], base="USD", price=(100, 0))
@pytest.mark.usefixtures("instruments")
def test_e9_the_latest_price_is_converted_by_the_newest_day_of_rates(
    core: Core, stored: list[Rate], base: str, price: tuple[int, int]
) -> None:
    core.rows("TRUNCATE pricing.price_history, pricing.latest_prices")
    for rate in stored:
        core.rows(
            "INSERT INTO pricing.latest_prices (data_type, symbol, amount, scale, currency, observed_at, fetched_at,"
            " provider, call_id, source_text, changed_at) VALUES (:type, :symbol, :amount, :scale, :currency, :at, :at,"
            " 'twelvedata', 1, '', :at)",
            type=rate.data_type,
            symbol=rate.symbol,
            amount=rate.amount,
            scale=rate.scale,
            currency=rate.symbol[4:],
            at=rate.at,
        )

    def newest(one: str, other: str) -> Rate | None:
        ours = [rate for rate in stored if rate.symbol in (f"{one}/{other}", f"{other}/{one}")]
        return max(
            ours,
            default=None,
            key=lambda rate: (rate.at, rate.data_type == FX, rate.symbol == f"{one}/{other}"),
        )

    best: list[tuple[str, Rate]] | None = None
    for way in ways(base, "EUR"):
        legs = [(one, newest(one, other)) for one, other in way]
        found = [(one, rate) for one, rate in legs if rate is not None]
        if len(found) == len(way) and (
            best is None or min(rate.at.date() for _, rate in found) > min(rate.at.date() for _, rate in best)
        ):
            best = found
    with core.engine.connect() as connection:
        (told,) = LatestRates(connection, Target.named("EUR")).of(base)
    if best is None:
        assert told is None
        return
    assert told is not None
    assert told.words == " * ".join(rate.words(one, of_days=False) for one, rate in best)
    exact = Fraction(price[0], 10 ** price[1])
    for one, rate in best:
        exact *= rate.fraction(one)
    assert is_rounded(Decimal(told.of(format(Decimal(price[0]).scaleb(-price[1]), "f"))), exact)
