"""Payments in several currencies and of several kinds, spin-offs, and what a total return cannot count (F5, F8)."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.answers import Adjust, CapitalGain, CorporateAction, SpinOff
from pricing_pipeline.errors import UncountedPayments
from pricing_pipeline.prices import actions, price_reader
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, Core, midnight
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.reported_actions import (
    MARCH,
    bar,
    bring,
    closes,
    day,
    dividend,
    split,
    stored,
)
from pricing_pipeline_tests.support.yahoo_answers import chart, parse

pytestmark = pytest.mark.usefixtures("still")


def store_rate(core: Core, symbol: str, on: int, rate: str) -> None:
    scale = len(rate.partition(".")[2])
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, currency, provider, call_id,"
        " fetched_at) VALUES ('fx_rate', :symbol, :at, :amount, :scale, :currency, 'fmp', 1, :at)",
        symbol=symbol,
        at=midnight(day(on)) + timedelta(hours=15),
        amount=int(rate.replace(".", "")),
        scale=scale,
        currency=symbol[-3:],
    )


def gain(on: int, cash: str, currency: str | None = "USD") -> CapitalGain:
    return CapitalGain("AAPL", day(on), Decimal(cash), currency)


def test_f5_payments_of_one_day_keep_their_currencies(core: Core) -> None:
    """They were one sum of 1.6125. The rate of the day is that of either spelling of the pair."""
    told = {dividend(2, "0.9425", "CAD"), dividend(2, "0.67", "USD")}
    bring(core, bar(1, "100.00"), bar(2, "99.00"), told=sorted(told, key=repr))
    assert set(stored(core)) == told
    said = r"dividend of 0\.9425 CAD on 2010-03-02: no rate CAD/USD of that day"
    with pytest.raises(UncountedPayments, match=said) as refused:
        closes(core, Adjust.TOTAL)
    (one,) = refused.value.payments
    assert (one.ex_on, one.reason, one.kind) == (day(2), "no_rate", "dividend")
    assert (one.amount, one.currency, one.into) == ("0.9425", "CAD", "USD")
    store_rate(core, "USD/CAD", 2, "1.25")
    assert closes(core, Adjust.TOTAL) == {1: "98.576", 2: "99.00"}, "100 - 0.67 - 0.9425 / 1.25"
    store_rate(core, "CAD/USD", 2, "0.72")
    assert closes(core, Adjust.TOTAL) == {1: "98.6514", 2: "99.00"}, "as it is spelled, if both are stored"


def test_f5_what_is_read_in_parts_is_refused_like_the_whole(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """A payment of a part's first day is in no part: after the one before it, and not after that day."""
    monkeypatch.setattr(price_reader, "_ROWS_OF_A_PART", 1)
    bring(core, *(bar(on, "100.00") for on in (1, 2, 3)), told=[dividend(2, "1", "EUR")])
    with core.engine.connect() as connection, pytest.raises(UncountedPayments):
        list(price_reader.history_parts(connection, "AAPL", DAILY, *MARCH, adjust=Adjust.TOTAL))


def test_f5_what_its_provider_says_of_a_day_replaces_what_it_said(core: Core, clock: Clock) -> None:
    """0.10 USD was stored as 0.001 GBP: the corrected payment stands alone, and so does one where there were two."""
    bring(core, bar(1, "100.00"), told=[dividend(1, "0.001", "GBP"), gain(1, "2")])
    then = core.clock()
    clock.advance(60)
    bring(core, bar(1, "100.00"), told=[dividend(1, "0.10"), dividend(1, "0.20"), dividend(1, "0.3", "CHF")])
    told = {dividend(1, "0.10"), dividend(1, "0.20"), dividend(1, "0.3", "CHF"), gain(1, "2")}
    assert set(stored(core)) == told
    assert set(stored(core, then)) == {dividend(1, "0.001", "GBP"), gain(1, "2")}
    clock.advance(60)
    bring(core, bar(1, "100.00"), told=[dividend(1, "0.35")])
    assert set(stored(core)) == {dividend(1, "0.35"), gain(1, "2")}, "nothing is told of gains of that day now"
    assert core.one("SELECT count(*) FROM pricing.revisions") == 4
    core.rows("UPDATE pricing.corporate_actions SET provider = 'another'")
    bring(core, bar(1, "100.00"), told=[dividend(1, "0.35"), dividend(1, "0.4", "CHF")])
    assert set(stored(core)) == {dividend(1, "0.35"), gain(1, "2")}, "who said it first may say it otherwise"


def test_f5_what_a_person_enters_stands_for_its_kind_and_currency(core: Core, clock: Clock) -> None:
    bring(core, bar(1, "100.00"), told=[dividend(1, "0.9", "CAD"), dividend(1, "0.67")])

    def enter(action: CorporateAction, **more: Any) -> str:
        with core.engine.begin() as connection:
            return actions.enter(connection, "equity", action, "ann", **more)

    assert enter(dividend(1, "0.67")) == "known_already"
    assert enter(dividend(1, "0.70")) == "replaced"
    assert enter(gain(1, "1", "EUR")) == enter(dividend(1, "0.5", "EUR")) == "added"
    by_hand = {dividend(1, "0.70"), gain(1, "1", "EUR"), dividend(1, "0.5", "EUR")}
    assert set(stored(core)) == {dividend(1, "0.9", "CAD"), *by_hand}
    bring(
        core,
        bar(1, "100.00"),
        told=[dividend(1, "0.95", "CAD"), dividend(1, "0.67"), dividend(1, "0.6", "EUR")],
    )
    assert set(stored(core)) == {dividend(1, "0.95", "CAD"), *by_hand}
    assert enter(dividend(1, "2"), is_further=True) == "added"
    with pytest.raises(DBAPIError, match="AAPL has 2 payments in USD on 2010-03-01"):
        enter(dividend(1, "3"))
    clock.advance(60)
    core.rows("SELECT pricing.remove_action('equity', 'AAPL', '2010-03-01', 'dividend', 'ann', of_currency => 'USD')")
    assert set(stored(core)) == {dividend(1, "0.95", "CAD"), dividend(1, "0.5", "EUR"), gain(1, "1", "EUR")}


def test_f5_the_command_names_what_it_cannot_count(core: Core, cli: CommandLine) -> None:
    bring(core, bar(1, "50.00"), bar(2, "47.60"), bar(3, "47.60"), told=[])
    entered = cli("action", "add", "AAPL", "2010-03-02", "--capital-gain", "2", "--currency", "EUR")
    assert "capital gain 2 EUR of AAPL on 2010-03-02 is entered" in entered.stdout
    cli("action", "add", "AAPL", "2010-03-02", "--dividend", "0.5")
    cli("action", "add", "AAPL", "2010-03-02", "--dividend", "0.25", "--further")
    cli("action", "add", "AAPL", "2010-03-03", "--spin-off", "1253:1000")
    listed = cli("action", "list", "AAPL").stdout
    assert "capital gain 2 EUR" in listed
    assert "spin-off 1253:1000" in listed
    read = ("price", "history", "AAPL", "--type", DAILY, "--adjust", "total")
    refused = cli(*read, "--from", "2010-03-01", "--to", "2010-03-03").error
    assert "capital gain of 2 EUR on 2010-03-02: no rate EUR/USD of that day is stored" in refused
    said = cli(*read, "--from", "2010-03-01", "--to", "2010-03-01")
    assert "lack later payments: capital gain of 2 EUR on 2010-03-02" in said.stderr
    assert "dropped" not in said.stdout
    assert "no splits, 1 spin-off, 2 dividends and 1 capital gain" in said.stderr
    taken = cli("action", "remove", "AAPL", "2010-03-02", "--kind", "dividend").stdout
    assert taken.startswith("the 2 payments (dividend) of AAPL on 2010-03-02 are removed. ")


def test_f5_what_yahoo_tells_is_read_to_the_total(core: Core) -> None:
    """The whole way of a body: prices in pence, a dividend in dollars, a gain in pence, and a spin-off."""
    days = {f"2026-11-{on}T09:30": 4000 for on in (16, 17, 18, 19)}
    answer = parse(
        chart(
            days,
            currency="GBp",
            dividends=[("2026-11-17T09:30", 0.8, "USD")],
            gains=[("2026-11-17T09:30", 160)],
            splits=[("2026-11-19T09:30", 1253, 1000)],
        )
    )
    core.lift_limits()
    core.enqueue(DAILY, "AAPL", days=(date(2026, 11, 1), date(2026, 11, 19)))
    core.rows("UPDATE pricing.instruments SET currency = 'GBP' WHERE symbol = 'AAPL'")
    settling.settle_answer(core.engine, core.claim_one(), Fetched(answer, 200, 100, body=b"{}"))
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, currency, provider, call_id,"
        " fetched_at) VALUES ('fx_rate', 'GBP/USD', '2026-11-17T15:00Z', 125, 2, 'USD', 'fmp', 1, '2026-11-17T15:00Z')"
    )

    def read(adjust: Adjust) -> list[tuple[str, str | None, object]]:
        span = (date(2026, 11, 16), date(2026, 11, 19))
        with core.engine.connect() as connection:
            bars = price_reader.bars(connection, "AAPL", DAILY, *span, adjust=adjust)
        return [(f"{one.close:.4f}", one.currency, one.volume) for one in bars]

    # 40 at 1253:1000 was 50.12 as traded; 0.8 / 1.25 + 1.6, of shares of today, were taken off.
    assert read(Adjust.RAW) == [*[("50.1200", "GBP", 400)] * 3, ("40.0000", "GBP", 400)]
    assert read(Adjust.SPLITS) == [("40.0000", "GBP", 400)] * 4
    first, *others = read(Adjust.TOTAL)
    assert others == [("40.0000", "GBP", 400)] * 3
    assert first == ("37.7600", "GBP", 400)


def test_f5_a_spin_off_divides_prices_and_no_volume(core: Core) -> None:
    """A day has one ratio: anyone who knows it to be a spin-off replaces the split that it was told as."""
    bring(core, bar(1, "125.30", volume="10"), bar(2, "100.00", volume="10"), told=[split(2, "1253", "1000")])
    with core.engine.begin() as connection:
        spin_off = SpinOff("AAPL", day(2), Decimal(1253), Decimal(1000))
        assert actions.enter(connection, "equity", spin_off, "ann") == "replaced"
    bring(core, bar(2, "100.00", volume="10"), told=[split(2, "1253", "1000")])
    assert stored(core) == [spin_off]
    for adjust in (Adjust.SPLITS, Adjust.TOTAL):
        with core.engine.connect() as connection:
            bars = price_reader.bars(connection, "AAPL", DAILY, *MARCH, adjust=adjust)
        assert [(f"{one.close:f}", one.volume) for one in bars] == [("100", 10), ("100.00", 10)]


def test_f8_who_cannot_tell_gains_leaves_their_days_unknown(core: Core) -> None:
    known = "SELECT covered, gains_covered FROM pricing.corporate_action_pairs"
    bring(core, bar(1, "100.00"), told=[])
    ((covered, gains),) = core.rows(known)
    assert (bool(covered), bool(gains)) == (True, False)
    bring(core, bar(1, "100.00"), told=[], gains_reported=frozenset({"AAPL"}))
    ((covered, gains),) = core.rows(known)
    assert covered == gains
