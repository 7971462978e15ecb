"""F3 over HTTP: whatever a history holds, every format says the same of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline.api.formats import Format
from pricing_pipeline.domain import cells
from pricing_pipeline.domain.answers import Adjust
from pricing_pipeline.domain.cells import Decimals
from pricing_pipeline.domain.prices import Bar
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.prices import lines, price_reader
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.integration.test_api_history import FIRST, LAST, insert, read
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")

amounts = st.integers(-(10**18) + 1, 10**18 - 1)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


@st.composite
def stored_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of the history table, with whatever it can have, a day each."""
    rows = []
    for day in range(draw(st.integers(0, 12))):
        at = datetime(2010, 3, 1, tzinfo=UTC) + timedelta(days=day, microseconds=draw(st.sampled_from([0, 1, 500_000])))
        rows.append(
            {
                "at": at,
                "amount": draw(amounts),
                **{name: draw(st.none() | amounts) for name in ("open", "high", "low")},
                "scale": draw(st.sampled_from([0, 2, 3, 5, 18])),
                "currency": draw(st.sampled_from(["USD", None, "EUR"])),
                "volume": draw(
                    st.none() | st.decimals("0", "99999999999999999999", places=draw(st.sampled_from([0, 2, 8])))
                ),
                "provider": draw(texts),
                "quality": draw(st.none() | texts),
                "call": draw(st.integers(0, 2**63 - 1)),
                "adjustment": draw(st.sampled_from(["raw", "splits"])),
            }
        )
    return rows


def as_row(bar: Bar) -> dict[str, Any]:
    return {name: getattr(bar, name) for name in lines.COLUMNS[1:]}


@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=stored_rows(), adjust=st.sampled_from([None, *Adjust]))
def test_f3_every_format_has_what_the_bars_have(
    api: RunningApi, core: Core, rows: list[dict[str, Any]], adjust: Adjust | None
) -> None:
    core.rows("DELETE FROM pricing.price_history")
    insert(core, rows)
    with core.engine.connect() as connection:
        bars = [as_row(bar) for bar in price_reader.bars(connection, "AAPL", DAILY, FIRST, LAST, adjust=adjust)]
    assert len(bars) == len(rows)
    caller = api.caller(Scope.READ)
    params = {} if adjust is None else {"adjust": adjust.value}
    for format_ in Format:
        told = read(caller, format_, **params)
        if format_ is not Format.JSON:
            assert {row.pop("symbol") for row in told} <= {"AAPL"}
        # A spreadsheet must not run what a text says.
        said = [{**bar, **safe(bar)} for bar in bars] if format_ is Format.CSV else bars
        assert told == said, format_
        if adjust is None and format_ in (Format.JSON, Format.CSV):
            # Not only the same numbers: the same digits.
            spelled = [f"{bar['close']:f}" for bar in bars]
            if format_ is Format.CSV:
                spelled = [cells.number(close, Decimals.POINT) for close in spelled]
            assert [f"{row['close']:f}" for row in told] == spelled


def safe(bar: dict[str, Any]) -> dict[str, Any]:
    return {
        name: f"'{bar[name]}" if bar[name][0] in "=+-@\t\r" else bar[name]
        for name in ("provider", "quality")
        if bar[name] is not None
    }
