"""Tables that users make for a data type: what is fetched fills them, and they are judged by what is in them."""

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.registry_rows import add
from pricing_pipeline_tests.support.stretching import later, stretch

MINUTE = 60
FULL = (
    "CREATE TABLE pricing.my_prices (ticker text PRIMARY KEY, loaded_at timestamptz NOT NULL, price numeric NOT NULL,"
    " currency text, observed_at timestamptz, provider text, call_id bigint, note text NOT NULL DEFAULT 'mine',"
    " cache_ttl_minutes integer)"
)
NAMES = {"table_name": "my_prices", "symbol_column": "ticker", "timestamp_column": "loaded_at"}
COIN = ("crypto_quote", "BTC")

pytestmark = pytest.mark.usefixtures("still")


def made(core: Core, table: str = FULL) -> None:
    core.rows(table)
    add(core, asset_class="coin", **NAMES)


def test_b1_what_is_fetched_fills_a_table_of_ones_own_and_makes_it_fresh(core: Core, clock: Clock) -> None:
    made(core)
    core.heartbeat("ann", COIN)
    for price in ("146.55", "146.56", "146.56"):
        core.refresh(price=price)
        (row,) = core.rows("SELECT * FROM pricing.my_prices")
        assert (row.ticker, str(row.price), row.note, row.cache_ttl_minutes) == ("BTC", price, "mine", None)
        (ours,) = core.rows("SELECT * FROM pricing.latest_prices WHERE data_type = 'crypto_quote'")
        assert (row.loaded_at, row.observed_at, row.call_id, row.provider, row.currency) == (
            ours.fetched_at,
            ours.observed_at,
            ours.call_id,
            ours.provider,
            ours.currency,
        )
        assert core.enqueue_due() == 0, "it is fresh"
        assert core.read("BTC").requested == 0
        clock.advance(2 * MINUTE)
        assert core.enqueue_due() == 1


def test_f2_a_stretched_ttl_in_a_table_of_ones_own_is_not_judged_again_and_again(core: Core, clock: Clock) -> None:
    """That TTL is not known where it is asked what waits too long: else each minute would write."""
    made(core)
    core.heartbeat("ann", COIN)
    core.refresh(price="146.55")
    core.rows("UPDATE pricing.my_prices SET cache_ttl_minutes = 60")
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock() + interval '1 hour'")
    stretch(core, 4)
    assert later(core, clock, 61) == 0
    waits = core.rows("SELECT xmin, due_at FROM pricing.demand")
    core.call("SELECT pricing.reconcile_demand()")
    assert core.rows("SELECT xmin, due_at FROM pricing.demand") == waits
    stretch(core, 1, 1)
    core.call("SELECT pricing.reconcile_demand()")
    assert later(core, clock, 1) == 1, "nothing is stretched any more"


@pytest.mark.parametrize("price", ["146.55", None])
def test_b1_an_empty_answer_counts_for_a_table_of_ones_own(core: Core, clock: Clock, price: str | None) -> None:
    """It confirms the row that is there; where none is, nothing is written, and the pair is asked for once per TTL."""
    made(core)
    core.heartbeat("ann", COIN)
    if price is not None:
        core.refresh(price=price)
        clock.advance(2 * MINUTE)
        core.enqueue_due()
    call = core.claim_one()
    settling.settle_answer(core.engine, call, Fetched(Answer(empty=frozenset(call.symbols)), 200, 4, body=b"[]"))
    filled = core.rows("SELECT price::text, loaded_at FROM pricing.my_prices")
    assert filled == ([] if price is None else [(price, core.clock())])
    assert core.enqueue_due() == 0
    clock.advance(2 * MINUTE)
    assert core.enqueue_due() == 1


@pytest.mark.parametrize("is_empty", [True, False])
def test_b7_what_no_answer_has_filled_is_asked_for_once_per_ttl(core: Core, clock: Clock, *, is_empty: bool) -> None:
    """The provider has no price, or the table refuses it: the duty that looks for old rows changes nothing."""
    made(core, FULL if is_empty else FULL.replace("price numeric", "price numeric CHECK (price < 1)"))
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 60 WHERE data_type = :t", t=COIN[0])
    core.heartbeat("ann", COIN)
    call = core.claim_one()
    if is_empty:
        fetched = Fetched(Answer(empty=frozenset(call.symbols)), 200, 4, body=b"[]")
        settling.settle_answer(core.engine, call, fetched)
    else:
        core.finish(call)
    for _ in range(3):
        clock.advance(10 * MINUTE)
        core.heartbeat("ann", COIN)
        core.rows("SELECT pricing.reconcile_demand()")
        assert core.enqueue_due() == 0
    clock.advance(31 * MINUTE)
    core.heartbeat("ann", COIN)
    assert core.enqueue_due() == 1


def test_b1_a_ttl_in_a_table_of_ones_own_survives_refreshes(core: Core, clock: Clock) -> None:
    made(core)
    core.heartbeat("ann", COIN)
    core.refresh()
    core.rows("UPDATE pricing.my_prices SET cache_ttl_minutes = 60, note = 'slow'")
    clock.advance(3 * MINUTE)
    core.enqueue_due()
    core.refresh()
    assert core.rows("SELECT cache_ttl_minutes, note FROM pricing.my_prices") == [(60, "slow")]
    clock.advance(50 * MINUTE)
    assert core.enqueue_due() == 0


def test_b1_a_table_that_refuses_a_price_costs_none(core: Core, clock: Clock) -> None:
    """The price is ours all the same, the fault is a warning, and the pair is asked for once per TTL."""
    made(core, FULL.replace("price numeric NOT NULL", "price numeric NOT NULL CHECK (price < 1)"))
    core.heartbeat("ann", COIN)
    core.refresh(price="146.55")
    assert core.one("SELECT amount FROM pricing.latest_prices WHERE data_type = 'crypto_quote'") == 14655
    (warning,) = core.rows("SELECT subject, message FROM pricing.warnings")
    assert warning.subject == "crypto_quote"
    assert "pricing.my_prices was not filled" in warning.message
    assert core.enqueue_due() == 0
    clock.advance(2 * MINUTE)
    assert core.enqueue_due() == 1


def test_b1_a_table_that_somebody_has_locked_delays_no_answer(core: Core) -> None:
    made(core)
    core.heartbeat("ann", COIN)
    with core.owner.begin() as connection:
        connection.exec_driver_sql("LOCK TABLE pricing.my_prices IN EXCLUSIVE MODE")
        core.refresh()
    assert core.one("SELECT count(*) FROM pricing.latest_prices WHERE data_type = 'crypto_quote'") == 1
    assert core.one("SELECT count(*) FROM pricing.my_prices") == 0
    assert "was not filled" in core.one("SELECT message FROM pricing.warnings")


def test_b1_a_table_that_cannot_be_filled_is_refused(core: Core) -> None:
    for table, fault in (
        (FULL.replace("text PRIMARY KEY", "text"), "has no unique index on its column ticker alone"),
        (
            FULL.replace("note text NOT NULL DEFAULT 'mine'", "note text NOT NULL"),
            r"nothing fills the column\(s\) note",
        ),
    ):
        with pytest.raises(DBAPIError, match=fault):
            made(core, table)
        core.rows("DROP TABLE pricing.my_prices")


def test_b1_a_view_of_what_is_stored_is_never_written(core: Core, clock: Clock) -> None:
    made(
        core,
        "CREATE VIEW pricing.my_prices AS SELECT l.symbol AS ticker, l.fetched_at AS loaded_at, 5 AS cache_ttl_minutes"
        " FROM pricing.latest_prices l WHERE l.data_type = 'crypto_quote'",
    )
    core.heartbeat("ann", COIN)
    core.refresh()
    clock.advance(4 * MINUTE)
    assert core.enqueue_due() == 0
    clock.advance(MINUTE)
    assert core.enqueue_due() == 1
    assert core.rows("SELECT FROM pricing.warnings") == []


def test_b1_a_table_of_documents_has_when_they_were_confirmed(core: Core) -> None:
    core.rows(
        "CREATE TABLE pricing.my_prices (ticker text PRIMARY KEY, loaded_at timestamptz, provider text,"
        " cache_ttl_minutes integer)"
    )
    add(core, data_type="profile", fetcher="profile", asset_class="equity", **NAMES)
    core.rows("SELECT pricing.confirm_pairs('profile', ARRAY['AAPL'], 'fmp', 7)")
    (row,) = core.rows("SELECT * FROM pricing.my_prices")
    assert (row.ticker, row.provider, row.loaded_at is not None) == ("AAPL", "fmp", True)
    assert not core.one("SELECT pricing.is_pair_stale('profile', 'AAPL')")
