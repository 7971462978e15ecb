"""Versions of stored data rise when what is stored changes, and only then, whatever comes (G8)."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

import pytest

from pricing_pipeline.prices import price_writer
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, midnight, observation, windowed
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_changes import Key, versions
from pricing_pipeline_tests.support.examples import is_thorough
from pricing_pipeline_tests.support.storing import MARCH, bars_of, next_call

pytestmark = pytest.mark.usefixtures("still")

SYMBOLS = ("AAPL", "IBM")
FIRST, LAST = date(2026, 9, 1), date(2026, 11, 20)

STORED = """
    SELECT x.data_type, x.month, md5(string_agg(x.said, ';' ORDER BY x.said)) AS found
    FROM (SELECT data_type, to_char(observed_at AT TIME ZONE 'UTC', 'YYYY-MM-01') AS month,
                 concat_ws(' ', symbol, observed_at, trim_scale(amount * ('1e-' || scale)::numeric), currency,
                           open_amount, high_amount, low_amount, volume) AS said
          FROM pricing.price_history
          UNION ALL
          SELECT data_type, NULL, concat_ws(' ', symbol, trim_scale(amount * ('1e-' || scale)::numeric), currency)
          FROM pricing.latest_prices) x
    GROUP BY 1, 2
"""


def stored(core: Core) -> dict[Key, str]:
    return {(row.data_type, row.month): row.found for row in core.rows(STORED)}


def store_quote(core: Core, random: Random) -> None:
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.enqueue(QUOTE, random.choice(SYMBOLS))
    core.finish(core.claim_one(), random.choice(("10", "10.0", "11")), seconds_old=random.choice((0, 0, 90)))


def store_bars(core: Core, random: Random) -> None:
    core.rows("DELETE FROM pricing.api_call_queue_live")
    symbol = random.choice(SYMBOLS)
    core.enqueue(DAILY, symbol, days=(FIRST, LAST))
    call = windowed(core.claim_one(), FIRST, LAST)
    days = sorted({FIRST + timedelta(days=random.randrange(81)) for _ in range(random.choice((1, 5)))})
    core.store(call, *(observation(symbol, random.choice(("20", "21")), midnight(day)) for day in days))
    core.complete(call)


def store_columns(core: Core, random: Random) -> None:
    call = next_call(core, DAILY, random.choice(SYMBOLS), days=MARCH)
    closes = (random.choice(("10.50000", "10.60000")) for _ in range(random.choice((1, 3))))
    with core.engine.begin() as connection:
        price_writer.store(connection, call, bars_of(*closes, symbol=call.tasks[0].symbol))


def retire(core: Core, random: Random) -> None:
    """The latest prices of a retired instrument are nobody's."""
    symbol = random.choice(SYMBOLS)
    if not core.rows("SELECT FROM pricing.price_history WHERE symbol = :symbol", symbol=symbol):
        return
    core.rows("SELECT pricing.remove_instruments(ARRAY[:symbol])", symbol=symbol)
    core.rows("UPDATE pricing.instruments SET is_active = true WHERE symbol = :symbol", symbol=symbol)


STEPS = (store_quote, store_quote, store_bars, store_columns, store_columns, retire)


@pytest.mark.parametrize("seed", range(8 if is_thorough() else 3))
def test_g8_versions_rise_when_stored_values_change_and_only_then(core: Core, clock: Clock, seed: int) -> None:
    random = Random(seed)
    before, known = stored(core), versions(core)
    for _ in range(40):
        clock.advance(random.choice((1, 3600)))
        random.choice(STEPS)(core, random)
        after, now = stored(core), versions(core)
        differing = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        raised = {key for key in now if now[key] != known.get(key)}
        assert raised == differing
        assert all(now[key] > max(known.values(), default=0) for key in raised), "above all that were told before"
        before, known = after, now
