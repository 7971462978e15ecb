"""A9: how a source spelled a number can be had from history, whatever way it was stored."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, composite

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.prices import price_writer
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh.settling import settle_answer
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, midnight
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.storing import MARCH, bars_of, next_call

SPELLED = (
    "SELECT observed_at, coalesce(source_text, (amount * ('1e-' || scale)::numeric)::text) AS spelled,"
    " source_text FROM pricing.price_history ORDER BY observed_at"
)


@composite
def spellings(draw: DrawFn) -> tuple[Decimal, str]:
    """A price between 90 and 110, and a text that stands for it, or for the binary noise or unit it came in."""
    places = draw(st.integers(0, 8))
    value = Decimal(draw(st.integers(90 * 10**places, 110 * 10**places))).scaleb(-places)
    text = draw(
        st.sampled_from(
            [
                f"{value:f}",
                f"{value:f}" + ("000" if places else ".000"),
                f"{value * 100:f}",
                f"{value:E}",
                f"0{value:f}",
            ]
        )
    )
    return value, text


def test_a9_every_way_into_history_keeps_the_spelling(core: Core) -> None:
    """Invariant: a spelling is kept, or is the stored digits; and never both."""
    day = [date(1990, 1, 1)]

    @settings(max_examples=examples(25), deadline=None)
    @given(st.lists(spellings(), min_size=1, max_size=8), st.booleans())
    def stored(values: list[tuple[Decimal, str]], is_latest: bool) -> None:
        core.rows("DELETE FROM pricing.price_history")
        core.rows("DELETE FROM pricing.latest_prices")
        rows = []
        for value, text in values:
            day[0] += timedelta(days=1)
            rows.append(Observation("AAPL", midnight(day[0]), value, text, "USD"))
        call = next_call(core, DAILY, "AAPL", days=None if is_latest else (day[0], day[0]))
        with core.engine.begin() as connection:
            price_writer.store(connection, call, Rows(rows))
        found = core.rows(SPELLED)
        assert [row.spelled for row in found] == [text for _, text in values]
        digits = core.rows(
            "SELECT (amount * ('1e-' || scale)::numeric)::text AS said FROM pricing.price_history ORDER BY observed_at"
        )
        assert all(row.source_text != one.said for row, one in zip(found, digits, strict=True))

    stored()


def test_a9_columns_that_are_copied_or_compared_keep_it_too(core: Core) -> None:
    texts = ["9.50000", "10.51234", "98.00000", "10.52000"]
    bars = bars_of(*texts[:3], second={"close": texts[1]})
    with core.engine.begin() as connection:
        price_writer.store(connection, next_call(core, DAILY, "AAPL", days=MARCH), bars_of(*texts[:2]))
    assert [row.spelled for row in core.rows(SPELLED)] == texts[:2]
    with core.engine.begin() as connection:
        price_writer.store(connection, next_call(core, DAILY, "AAPL", days=MARCH), bars_of(texts[3], *texts[1:2]))
    assert [row.spelled for row in core.rows(SPELLED)] == [texts[3], texts[1]]
    assert core.one("SELECT source_text FROM pricing.price_revisions") == texts[0], "and so does a revision"
    assert len(bars) == 3


def test_a9_a_quote_keeps_it(core: Core) -> None:
    texts = {"AAPL": "101.50", "GOOG": "101.5", "IBM": "101.50000", "MSFT": "101.49999999999997"}
    core.lift_limits()
    core.enqueue(QUOTE, *texts)
    at = core.clock() - timedelta(seconds=1)
    values = [Observation(symbol, at, Decimal("101.50"), text, "USD") for symbol, text in texts.items()]
    fetched = Fetched(Answer(Rows(values)), http_status=200, wire_bytes=600)
    assert settle_answer(core.engine, core.claim_one(), fetched).added == len(texts)
    stored = core.rows(SPELLED.replace("SELECT ", "SELECT symbol, ", 1))
    assert {row.symbol: row.spelled for row in stored} == texts
    assert {row.symbol for row in stored if row.source_text is None} == {"AAPL"}, "whose digits say it"
