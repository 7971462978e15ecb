"""FMP end to end: one INSERT, a viewer, a real call to the sandbox, documents stored, read, changed and kept (B29)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Adjust
from pricing_pipeline.prices import documents, price_reader
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.refreshing import Reports, refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.tools.audit import audit

EARNINGS = "company_earnings"


@pytest.fixture
def sandbox(core: Core) -> Iterator[RunningSandbox]:
    """A sandbox that goes by the database's clock, which the tests move."""
    with running_sandbox(clock=core.clock) as sandbox:
        yield sandbox


def all_done(core: Core) -> Callable[[], bool]:
    return lambda: core.one("SELECT NOT EXISTS (SELECT FROM pricing.api_call_queue_live)")


def body_of(core: Core, period: date) -> Any:
    with core.engine.begin() as connection:
        found = documents.read(connection, EARNINGS, "IBM").documents
    return next((one.body for one in found if one.period == period), None)


def test_b29_a_report_comes_out_and_what_was_believed_before_is_kept(
    core: Core, sandbox: RunningSandbox, clock: Clock, cli: CommandLine
) -> None:
    with core.owner.begin() as connection:
        data_type_registry.add_data_type(connection, EARNINGS, fetcher="earnings", ttl_minutes=60)
    clock.set(datetime(2026, 11, 18, 12, tzinfo=UTC))
    core.heartbeat("ann", (EARNINGS, "IBM"))
    reports = Reports()
    with refreshing(core.engine, sandbox.url, reports=reports) as refresher:
        work_until(refresher, all_done(core))
        (first,) = sandbox.calls("fmp")
        assert (first["path"], first["symbols"]) == ("/earnings", ["IBM"])
        assert reports.total("added") > 60
        audit(core)

        # The next report is announced, and then it is there.
        said = cli("document", "show", "IBM", "--type", EARNINGS, "--json").json
        ahead = min(date.fromisoformat(one["period"]) for one in said["documents"] if one["body"]["epsActual"] is None)
        assert ahead > date(2026, 11, 18)
        clock.set(datetime.combine(ahead - timedelta(days=20), time(12), UTC))
        core.heartbeat("ann", (EARNINGS, "IBM"))
        work_until(refresher, lambda: len(sandbox.calls("fmp")) == 2 and all_done(core)())
        announced = min(one.period for one in _read(core) if one.period is not None and one.body["epsActual"] is None)
        before = core.clock()
        clock.set(datetime.combine(announced, time(23), UTC))
        core.heartbeat("ann", (EARNINGS, "IBM"))
        work_until(refresher, lambda: len(sandbox.calls("fmp")) == 3 and all_done(core)())

    assert body_of(core, announced)["epsActual"] is not None
    past = cli("document", "show", "IBM", "--type", EARNINGS, "--as-of", before.isoformat(), "--json").json
    (then,) = (one["body"] for one in past["documents"] if one["period"] == str(announced))
    assert then["epsActual"] is None
    assert core.one("SELECT count(*) FROM pricing.revisions WHERE old->>'period' = :day", day=f"{announced}") == 1


def _read(core: Core) -> list[documents.StoredDocument]:
    with core.engine.begin() as connection:
        return documents.read(connection, EARNINGS, "IBM").documents


def test_b29_quotes_and_bars_come_from_it_where_a_route_says_so(core: Core, sandbox: RunningSandbox) -> None:
    core.rows("UPDATE pricing.provider_routing SET provider = 'fmp' WHERE data_type ~ '^equity'")
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "MSFT"), (DAILY, "IBM"))
    with refreshing(core.engine, sandbox.url) as refresher:
        work_until(refresher, all_done(core))
    assert sorted(call["path"] for call in sandbox.calls("fmp")) == [
        "/batch-quote",
        "/historical-price-eod/full",
    ]
    stored = core.rows("SELECT data_type, symbol, provider FROM pricing.latest_prices ORDER BY 1, 2")
    assert [tuple(one) for one in stored] == [
        (DAILY, "IBM", "fmp"),
        (QUOTE, "AAPL", "fmp"),
        (QUOTE, "MSFT", "fmp"),
    ]
    audit(core)


def test_b29_a_plan_without_batches_is_asked_one_symbol_at_a_time(core: Core) -> None:
    core.rows("UPDATE pricing.provider_routing SET provider = 'fmp' WHERE data_type = 'equity_quote'")
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 1 WHERE provider = 'fmp'")
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "MSFT"), (QUOTE, "TSLA"))
    with running_sandbox(fmp_plan="free") as sandbox, refreshing(core.engine, sandbox.url) as refresher:
        work_until(refresher, all_done(core))
        assert {call["path"] for call in sandbox.calls("fmp")} == {"/quote"}
    assert core.statuses() == {"AAPL": "completed", "MSFT": "completed", "TSLA": "failed"}
    assert core.task("TSLA").failure_kind == "plan_restricted"


def test_f5_lists_of_dividends_and_splits_make_total_return_of_another_providers_prices(
    core: Core, sandbox: RunningSandbox, cli: CommandLine
) -> None:
    """Twelve Data sends bars as traded and tells no actions; FMP tells them. Both are asked of the real sandbox."""
    with core.owner.begin() as connection:
        data_type_registry.add_data_type(connection, "dividends", fetcher="dividends", ttl_minutes=1440)
        data_type_registry.add_data_type(connection, "splits", fetcher="splits", ttl_minutes=1440)
    days = (date(2004, 1, 2), date(2005, 6, 1))
    core.enqueue(DAILY, "AAPL", priority=-2, days=days)
    with refreshing(core.engine, sandbox.url) as refresher:
        work_until(refresher, all_done(core))
        assert _closes(core, days, Adjust.TOTAL) == _closes(core, days, Adjust.RAW), "none is known"
        core.heartbeat("ann", ("dividends", "AAPL"), ("splits", "AAPL"), ("dividends", "GOOG"))
        work_until(refresher, all_done(core))
    assert {call["path"] for call in sandbox.calls("fmp")} == {"/dividends", "/splits"}
    assert core.one("SELECT count(*) FROM pricing.corporate_actions WHERE symbol = 'AAPL' AND kind = 'split'") == 2
    assert core.one("SELECT count(*) FROM pricing.corporate_actions WHERE symbol = 'GOOG'") == 0
    assert core.one("SELECT bool_and(fetched_at IS NOT NULL) AND count(*) = 3 FROM pricing.confirmed_pairs"), (
        "an empty list is an answer, too"
    )
    raw, splits, total = (_closes(core, days, adjust) for adjust in (Adjust.RAW, Adjust.SPLITS, Adjust.TOTAL))
    assert raw[0] == 2 * splits[0]
    assert raw[-1] == splits[-1]
    assert 0.9 * float(splits[0]) < float(total[0]) < float(splits[0]), "six small dividends were paid since"
    said = cli("document", "show", "AAPL", "--type", "dividends", "--json").json
    assert said["documents"][-1]["body"]["frequency"] == "Quarterly"
    audit(core)


def _closes(core: Core, days: tuple[date, date], adjust: Adjust) -> list[Decimal]:
    with core.engine.connect() as connection:
        frame = price_reader.history(connection, "AAPL", DAILY, *days, adjust=adjust)
    return list(frame["close"])
