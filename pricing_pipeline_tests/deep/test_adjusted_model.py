"""Raw, split-adjusted and total return prices, held against a model of rational numbers (F5).

The model knows what was traded and paid, and nothing of steps, closes and notes. What the database has of it is stored
as traded or as divided by its source, in whatever currencies, and told by providers and people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import prod

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Adjust, CapitalGain, CorporateAction, Dividend, SpinOff, Split
from pricing_pipeline.errors import UncountedPayments
from pricing_pipeline.prices import actions, price_reader
from pricing_pipeline_tests.fixtures.core import DAILY, FX, Core, midnight
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")

FIRST = date(2010, 3, 1)
DAYS = 24
RATIOS = [(2, 1), (3, 2), (1, 10), (7, 3), ("1.0125", 1)]
SPIN_OFFS = [(1253, 1000), ("1.046", 1), (1998, 1000)]
CASH = ["0.5", "0.125", "0.000001", "1.05"]
FORTNIGHT = timedelta(days=14)


@dataclass(frozen=True)
class Stored:
    """A day's close and volume as the database has them: of shares as they were on `basis`."""

    close: Decimal
    volume: int
    basis: date | None
    """When a source recorded it that divides by splits; None as traded."""


@dataclass(frozen=True)
class World:
    """Prices in USD by day, actions, and rates into USD by day and currency."""

    stored: Mapping[date, Stored]
    told: Sequence[CorporateAction]
    by_hand: Sequence[CorporateAction]
    rates: Mapping[tuple[date, str], tuple[Decimal, bool]]
    """A rate, and whether it is stored as the pair of USD."""
    first: date
    last: date

    @property
    def actions(self) -> list[CorporateAction]:
        return [*self.told, *self.by_hand]


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


days_ = st.integers(0, DAYS).map(day)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    closes = draw(
        st.dictionaries(
            days_,
            st.builds(
                Stored,
                st.integers(2_000, 90_000).map(lambda cents: Decimal(cents) / 100),
                st.integers(0, 10**6),
                st.none() | days_,
            ),
            min_size=3,
            max_size=12,
        )
    )
    stored = {on: Stored(row.close, row.volume, row.basis and max(on, row.basis)) for on, row in closes.items()}
    ratios: dict[date, CorporateAction] = {
        on: (SpinOff if is_spin_off else Split)("AAPL", on, Decimal(new), Decimal(old))
        for on, is_spin_off, (new, old) in draw(
            st.lists(
                st.tuples(days_, st.just(False), st.sampled_from(RATIOS))
                | st.tuples(days_, st.just(True), st.sampled_from(SPIN_OFFS)),
                max_size=4,
            )
        )
    }
    payments = {
        kind("AAPL", on, Decimal(cash), currency)
        for kind, on, cash, currency in draw(
            st.lists(
                st.tuples(
                    st.sampled_from([Dividend, CapitalGain]),
                    days_,
                    st.sampled_from(CASH),
                    st.sampled_from(["USD", "EUR", "GBP", None]),
                ),
                min_size=1,
                max_size=6,
            )
        )
    }
    known = [*ratios.values(), *sorted(payments, key=repr)]
    hands = draw(st.lists(st.booleans(), min_size=len(known), max_size=len(known)))
    # What a person enters of a day stands for all of its kind and currency, so each day has one source here.
    hand_days = {action.ex_on for action, by_hand in zip(known, hands, strict=True) if by_hand}
    rates = {
        (payment.ex_on, payment.currency): (
            Decimal(draw(st.integers(5_000, 20_000))) / 10_000,
            draw(st.booleans()),
        )
        for payment in sorted(payments, key=repr)
        if payment.currency not in (None, "USD") and draw(st.integers(0, 9))
    }
    first, last = sorted(draw(st.just((day(0), day(DAYS))) | st.tuples(days_, days_)))
    return World(
        stored=stored,
        told=[action for action in known if action.ex_on not in hand_days],
        by_hand=[action for action in known if action.ex_on in hand_days],
        rates={(on, currency): rate for (on, currency), rate in rates.items() if currency is not None},
        first=first,
        last=last,
    )


class Model:
    """What the world's values are on each basis, as rational numbers."""

    def __init__(self, world: World) -> None:
        self.world = world

    def shares(self, after: date, until: date | None = None, *, are_counted: bool = False) -> Fraction:
        """Into how much one share or price of `after` has been divided `until` a day: by splits alone if counted."""
        return prod(
            (
                Fraction(action.new_shares) / Fraction(action.old_shares)
                for action in self.world.actions
                if isinstance(action, Split)
                and after < action.ex_on
                and (until is None or action.ex_on <= until)
                and not (are_counted and isinstance(action, SpinOff))
            ),
            start=Fraction(1),
        )

    def traded(self, on: date) -> Fraction:
        row = self.world.stored[on]
        return Fraction(row.close) * self.shares(on, row.basis or on)

    def volume(self, on: date, adjust: Adjust) -> Fraction:
        row = self.world.stored[on]
        traded = row.volume / self.shares(on, row.basis or on, are_counted=True)
        return traded if adjust is Adjust.RAW else traded * self.shares(on, are_counted=True)

    def payments(self) -> dict[date, list[Dividend]]:
        paid = [action for action in self.world.actions if isinstance(action, Dividend)]
        return {on: [one for one in paid if one.ex_on == on] for on in sorted({one.ex_on for one in paid})}

    def close_before(self, on: date) -> Fraction | None:
        """The last close of the fortnight before a day, as it would be of that day's shares."""
        before = [other for other in self.world.stored if on - FORTNIGHT <= other < on]
        return self.traded(max(before)) / self.shares(max(before), on) if before else None

    def in_dollars(self, payment: Dividend) -> Fraction | None:
        if payment.currency in (None, "USD"):
            return Fraction(payment.amount)
        rate, _ = self.world.rates.get((payment.ex_on, payment.currency), (None, False))
        return None if rate is None else Fraction(payment.amount) * Fraction(rate)

    def missing(self, on: date) -> list[Dividend]:
        """Payments of a day that lack a rate, where a close tells what they took off."""
        if self.close_before(on) is None:
            return []
        return [payment for payment in self.payments()[on] if self.in_dollars(payment) is None]

    def kept(self, on: date) -> Fraction:
        close = self.close_before(on)
        paid = [self.in_dollars(payment) for payment in self.payments()[on]]
        if close is None or None in paid:
            return Fraction(1)
        return 1 - sum((cash for cash in paid if cash is not None), start=Fraction(0)) / close

    def value(self, on: date, adjust: Adjust) -> Fraction:
        if adjust is Adjust.RAW:
            return self.traded(on)
        divided = self.traded(on) / self.shares(on)
        if adjust is Adjust.SPLITS:
            return divided
        return divided * prod((self.kept(paid) for paid in self.payments() if paid > on), start=Fraction(1))


def build(core: Core, world: World) -> None:
    core.rows(
        "TRUNCATE pricing.price_history, pricing.corporate_actions, pricing.revisions, pricing.corporate_action_pairs"
    )
    insert = (
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, currency, volume, provider,"
        " call_id, fetched_at, adjustment)"
        " VALUES (:type, :symbol, :at, :amount, :scale, :currency, :volume, 'yahoo', 1, :recorded, :adjustment)"
    )
    for on, row in world.stored.items():
        core.rows(
            insert,
            type=DAILY,
            symbol="AAPL",
            at=midnight(on),
            amount=int(row.close * 100),
            scale=2,
            currency="USD",
            volume=row.volume,
            recorded=datetime.combine(row.basis or day(DAYS), datetime.min.time(), UTC) + timedelta(hours=9),
            adjustment="raw" if row.basis is None else "splits",
        )
    for (on, currency), (rate, is_inverse) in world.rates.items():
        spelled = 1 / rate if is_inverse else rate
        core.rows(
            insert,
            type=FX,
            symbol=f"USD/{currency}" if is_inverse else f"{currency}/USD",
            at=midnight(on) + timedelta(hours=15),
            amount=int(spelled * 10**4),
            scale=4,
            currency=currency if is_inverse else "USD",
            volume=None,
            recorded=midnight(on) + timedelta(hours=15),
            adjustment="raw",
        )


def tell(core: Core, world: World) -> int:
    """A provider tells all that it knows, in one answer; returns how many rows that changed."""
    return int(
        core.one(
            "SELECT pricing.merge_actions(:type, 'yahoo', 1, CAST(:said AS jsonb), '{AAPL}', '{2010-01-01}', '{AAPL}')",
            type=DAILY,
            said=json.dumps([actions.to_row(action) for action in world.told]),
        )
    )


def exact_rates(world: World) -> World:
    """The rates as they are stored, to four places."""
    rates = {
        key: (
            1 / Fraction(int(1 / rate * 10**4), 10**4) if is_inverse else Fraction(int(rate * 10**4), 10**4),
            is_inverse,
        )
        for key, (rate, is_inverse) in world.rates.items()
    }
    return World(world.stored, world.told, world.by_hand, rates, world.first, world.last)  # type: ignore[arg-type]


@settings(
    max_examples=examples(160),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(world=worlds())
def test_f5_every_basis_is_what_a_model_of_rational_numbers_says(core: Core, world: World) -> None:
    """Invariant: no stored number is read in a currency, unit or basis other than its source's."""
    build(core, world)
    assert tell(core, world) == len(world.told)
    assert tell(core, world) == 0, "the same again writes nothing"
    with core.engine.begin() as connection:
        for action in world.by_hand:
            actions.enter(connection, "equity", action, "ann", is_further=isinstance(action, Dividend))
    model = Model(exact_rates(world))
    for adjust in Adjust:
        missing = [
            payment
            for on in model.payments()
            if adjust is Adjust.TOTAL and world.first < on <= world.last
            for payment in model.missing(on)
        ]
        with core.engine.connect() as connection:
            if missing and any(world.first <= on <= world.last for on in world.stored):
                with pytest.raises(UncountedPayments) as refused:
                    price_reader.bars(connection, "AAPL", DAILY, world.first, world.last, adjust=adjust)
                assert sorted(
                    (one.ex_on, one.kind, one.amount, one.currency) for one in refused.value.payments
                ) == sorted(
                    (one.ex_on, actions.kind_of(one), actions.digits(one.amount), one.currency) for one in missing
                )
                continue
            bars = price_reader.bars(connection, "AAPL", DAILY, world.first, world.last, adjust=adjust)
        assert [bar.observed_at.date() for bar in bars] == sorted(
            on for on in world.stored if world.first <= on <= world.last
        )
        for bar in bars:
            on = bar.observed_at.date()
            expected, volume = model.value(on, adjust), model.volume(on, adjust)
            assert abs(Fraction(bar.close) - expected) <= Fraction(6, 10**11) + expected / 10**14, (
                on,
                adjust,
            )
            assert bar.volume is not None
            assert abs(Fraction(bar.volume) - volume) <= Fraction(1, 2), (on, adjust)
            # What is left out is said.
            later = [paid for paid in model.payments() if paid > on and adjust is Adjust.TOTAL]
            is_lacking = any(model.missing(paid) or model.close_before(paid) is None for paid in later)
            assert ("not counted" in (bar.quality or "")) == is_lacking
