"""Price alerts against a plain model: whatever comes between, each message is queued once, and none is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from sqlalchemy import Connection, text

from pricing_pipeline.db.query_loader import call_sql
from pricing_pipeline.operations import price_alerts, price_watch
from pricing_pipeline.operations.price_alerts import Wanted
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

SYMBOLS = ("AAPL", "IBM")
CENTS = (5000, 9900, 10000, 10001, 10999, 11000, 12100)
KINDS = (
    ("above", "100"),
    ("above", "110"),
    ("below", "100"),
    ("moved", "10"),
    ("moved", "0.01"),
    ("each", "60"),
)
WAYS_BACK = ("0", "1", "9.99", "1%", "10%", "0.01%")
"""Hysteresis: amounts of the price, and percent of the threshold."""
TEN_MINUTES = 600
STORE = text(
    "SELECT pricing.merge_prices('equity_quote', 'twelvedata', 1, true, ARRAY[:symbol],"
    " ARRAY[pricing.clock() - make_interval(secs => CAST(:age AS float8))], ARRAY[CAST(:cents AS bigint)],"
    " ARRAY[NULL::bigint], ARRAY[NULL::bigint], ARRAY[NULL::bigint], ARRAY[2::smallint], ARRAY['USD'],"
    " ARRAY[NULL::numeric], ARRAY['x'], ARRAY['raw'])"
)

Told = tuple[int, frozenset[tuple[str, str]]]
"""An alert, and the symbols and prices that one message has."""


@dataclass
class Alert:
    """What the model knows of an alert."""

    symbol: str | None
    condition: str
    value: Decimal
    way_back: str = "0"
    waiting: list[tuple[str, int]] = field(default_factory=list)
    is_beyond: bool = False
    reference: int | None = None
    told_at: int | None = None

    def sees(self, cents: int) -> bool:
        """Whether its recipient is told of this price."""
        if self.condition == "moved":
            if self.reference is None:
                self.reference = cents
                return False
            moved = abs(Fraction(cents - self.reference, self.reference)) * 100 >= Fraction(self.value)
            self.reference = cents if moved else self.reference
            return moved
        was_beyond, threshold = self.is_beyond, Fraction(self.value * 100)
        if was_beyond:
            way = Fraction(self.way_back.removesuffix("%"))
            way *= threshold / 100 if "%" in self.way_back else 100
            threshold += -way if self.condition == "above" else way
        self.is_beyond = cents > threshold if self.condition == "above" else cents < threshold
        return self.is_beyond and not was_beyond


@dataclass
class Open:
    """A transaction that has stored a price and is not committed."""

    connection: Connection
    symbol: str
    cents: int
    at: int
    asked_by: list[int]


class Model:
    """Who is told of what, as people would say it. Prices are cents, times seconds."""

    def __init__(self) -> None:
        self.now = 0
        self.is_active = True
        self.latest: dict[str, tuple[int, int]] = {}
        self.alerts: dict[int, Alert] = {}

    def asking(self, symbol: str) -> list[int]:
        return [id_ for id_, alert in self.alerts.items() if alert.symbol in (symbol, None)]

    def commit(self, symbol: str, cents: int, at: int, asked_by: list[int]) -> None:
        before = self.latest.get(symbol)
        if before is not None and at < before[0]:
            return
        self.latest[symbol] = (at, cents)
        if before != (at, cents):
            for id_ in set(asked_by) & self.alerts.keys():
                self.alerts[id_].waiting.append((symbol, cents))

    def look(self) -> list[Told]:
        told: list[Told] = []
        for id_, alert in self.alerts.items():
            if alert.condition == "each":
                newest = dict(alert.waiting)
                if not newest or (alert.told_at is not None and alert.told_at + alert.value > self.now):
                    continue
                told.append((id_, frozenset((symbol, words(cents)) for symbol, cents in newest.items())))
                alert.told_at = self.now if self.is_active else alert.told_at
            else:
                assert alert.symbol is not None
                seen = [cents for _, cents in alert.waiting]
                if alert.symbol in self.latest:  # whenever the alert was made, and however long that took
                    seen.append(self.latest[alert.symbol][1])
                told += [(id_, frozenset({(alert.symbol, words(cents))})) for cents in seen if alert.sees(cents)]
            alert.waiting = []
        return told if self.is_active else []


def words(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def machine(core: Core, clock: Clock) -> type[RuleBasedStateMachine]:
    """The state machine on this test's database."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            for table in (
                "price_alerts",
                "price_events",
                "latest_prices",
                "price_history",
                "async_operations",
            ):
                core.rows(f"DELETE FROM pricing.{table}")
            core.rows("UPDATE pricing.recipients SET is_active = true")
            self.model = Model()
            self.open: Open | None = None

        def teardown(self) -> None:
            if self.open is not None:
                self.open.connection.close()

        def pass_time(self, seconds: int) -> None:
            clock.advance(seconds)
            self.model.now += seconds

        @rule(seconds=st.sampled_from([1, 58, 60, TEN_MINUTES]))
        def time_passes(self, seconds: int) -> None:
            self.pass_time(seconds)

        @rule(
            symbol=st.sampled_from(SYMBOLS),
            cents=st.lists(st.sampled_from(CENTS), min_size=1, max_size=3),
            is_same_time=st.booleans(),
        )
        def prices_come(self, symbol: str, cents: list[int], is_same_time: bool) -> None:
            if self.open is not None and self.open.symbol == symbol:
                return
            for one in cents:
                self.pass_time(1)
                at = self.model.latest.get(symbol, (self.model.now,))[0] if is_same_time else self.model.now
                with core.engine.begin() as connection:
                    self.store(connection, symbol, one, at)
                self.model.commit(symbol, one, at, self.model.asking(symbol))

        @rule(symbol=st.sampled_from(SYMBOLS), cents=st.sampled_from(CENTS))
        def an_older_price_comes(self, symbol: str, cents: int) -> None:
            if symbol in self.model.latest and not (self.open and self.open.symbol == symbol):
                self.pass_time(1)
                with core.engine.begin() as connection:
                    self.store(connection, symbol, cents, self.model.latest[symbol][0] - 1)

        @precondition(lambda self: self.open is None)
        @rule(symbol=st.sampled_from(SYMBOLS), cents=st.sampled_from(CENTS))
        def a_transaction_stores(self, symbol: str, cents: int) -> None:
            self.pass_time(1)
            connection = core.engine.connect()
            self.store(connection, symbol, cents, self.model.now)
            self.open = Open(connection, symbol, cents, self.model.now, self.model.asking(symbol))

        @precondition(lambda self: self.open is not None)
        @rule(is_kept=st.booleans())
        def it_ends(self, is_kept: bool) -> None:
            assert self.open is not None
            if is_kept:
                self.open.connection.commit()
                self.model.commit(self.open.symbol, self.open.cents, self.open.at, self.open.asked_by)
            self.open.connection.close()
            self.open = None

        @precondition(lambda self: self.open is None)
        @rule(symbol=st.sampled_from(SYMBOLS), kind=st.sampled_from(KINDS[:3]), cents=st.sampled_from(CENTS))
        def it_is_asked_for_while_it_is_stored(self, symbol: str, kind: tuple[str, str], cents: int) -> None:
            self.a_transaction_stores(symbol, cents)
            self.somebody_asks(symbol, kind, is_of_all=False, meanwhile=None)
            self.notifiers_look(1)
            self.pass_time(TEN_MINUTES)
            self.notifiers_look(2)

        def store(self, connection: Connection, symbol: str, cents: int, at: int) -> None:
            connection.execute(STORE, {"symbol": symbol, "cents": cents, "age": self.model.now - at})

        @rule(
            symbol=st.sampled_from(SYMBOLS),
            kind=st.sampled_from(KINDS),
            is_of_all=st.booleans(),
            meanwhile=st.none() | st.sampled_from(CENTS),
            way_back=st.sampled_from(WAYS_BACK),
        )
        def somebody_asks(
            self,
            symbol: str,
            kind: tuple[str, str],
            is_of_all: bool,
            meanwhile: int | None,
            way_back: str = "0",
        ) -> None:
            condition, value = kind[0], Decimal(kind[1])
            if condition not in ("above", "below"):
                way_back = "0"
            of = None if condition == "each" and is_of_all else symbol
            if any((a.symbol, a.condition, a.value) == (of, condition, value) for a in self.model.alerts.values()):
                return
            wanted = (
                Wanted("hook", QUOTE, of, condition, pace=60)
                if condition == "each"
                else Wanted(
                    "hook",
                    QUOTE,
                    of,
                    condition,
                    value,
                    hysteresis=Decimal(way_back.removesuffix("%")),
                    hysteresis_in="percent" if "%" in way_back else "amount",
                )
            )
            with core.engine.begin() as connection:
                id_ = price_alerts.add(connection, wanted, "ann").price_alert_id
                if meanwhile is not None:
                    self.pass_time(TEN_MINUTES)
                    self.prices_come(symbol, [meanwhile], is_same_time=False)
            self.model.alerts[id_] = Alert(of, condition, value, way_back)

        @precondition(lambda self: self.model.alerts)
        @rule(data=st.data())
        def somebody_ends_one(self, data: st.DataObject) -> None:
            id_ = data.draw(st.sampled_from(sorted(self.model.alerts)))
            with core.engine.begin() as connection:
                price_alerts.remove(connection, id_)
            del self.model.alerts[id_]

        @rule(is_active=st.booleans())
        def the_recipient_goes_or_comes(self, is_active: bool) -> None:
            core.rows("UPDATE pricing.recipients SET is_active = :is_active", is_active=is_active)
            self.model.is_active = is_active

        @rule()
        def a_notifier_dies(self) -> None:
            with core.engine.connect() as connection:
                rows = call_sql(connection, "take_price_events", 100).all()
                price_watch._look(connection, rows)
                connection.rollback()

        @rule(notifiers=st.integers(1, 3))
        def notifiers_look(self, notifiers: int) -> None:
            with ThreadPoolExecutor(notifiers) as threads:
                queued = sum(threads.map(lambda _: price_watch.watch(core.engine), range(notifiers)))
            found = core.rows("SELECT payload -> 'data' AS data FROM pricing.async_operations ORDER BY id")
            core.rows("DELETE FROM pricing.async_operations")
            told = [
                (row.data["price_alert"], frozenset((p["symbol"], p["price"]) for p in row.data["prices"]))
                for row in found
            ]
            expected = self.model.look()
            assert sorted(told, key=repr) == sorted(expected, key=repr)
            for id_ in self.model.alerts:
                assert [one for one in told if one[0] == id_] == [one for one in expected if one[0] == id_], "in order"
            assert queued == len(told)

    return Machine


def test_b27_prices_are_told_as_a_plain_model_says(core: Core, clock: Clock) -> None:
    clock.stop()
    core.rows(
        "INSERT INTO pricing.recipients (recipient, channel, created_at, master_key_id, key_nonce, wrapped_key,"
        " secret_nonce, ciphertext) VALUES ('hook', 'webhook', pricing.clock(), 'one', '', '', '', '')"
    )
    run_machine(machine(core, clock), examples(60), steps=40)
