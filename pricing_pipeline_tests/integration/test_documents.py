"""Documents: stored with every digit, changes kept, fetched like prices and never mixed with them (B29, F3, A10)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError, IntegrityError

from pricing_pipeline.demand import freshness
from pricing_pipeline.domain.answers import (
    Answer,
    Document,
    FailureKind,
    RejectedValue,
    Scalar,
    SymbolFailure,
)
from pricing_pipeline.errors import PlanRestricted
from pricing_pipeline.prices import documents
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")

PROFILE, EARNINGS, FMP = "company_profile", "company_earnings", "fmp"
SPRING, SUMMER, AUTUMN, WINTER = (
    date(2026, 4, 30),
    date(2026, 7, 30),
    date(2026, 10, 29),
    date(2027, 1, 28),
)


@pytest.fixture(autouse=True)
def types(core: Core) -> None:
    """Two document types, each by one INSERT."""
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        f" VALUES ('{PROFILE}', 'profile', 1440), ('{EARNINGS}', 'earnings', 60)"
    )


def report(day: date, symbol: str = "AAPL", **body: Scalar) -> Document:
    return Document(symbol, day, {"symbol": symbol, "date": day.isoformat(), **body})


def settle(core: Core, *found: Document, data_type: str = EARNINGS, **more: Any) -> Tally:
    """One call that brings these documents, stored and settled as a worker does."""
    core.enqueue(data_type, *sorted({one.symbol for one in found} | set(more.get("empty", ()))))
    call = core.claim_one(FMP)
    return settling.settle_answer(core.engine, call, Fetched(Answer(records=found, **more), 200, 700))


def current(core: Core, data_type: str = EARNINGS, symbol: str = "AAPL") -> dict[date | None, Any]:
    with core.engine.begin() as connection:
        return {one.period: one.body for one in documents.read(connection, data_type, symbol).documents}


def believed(core: Core, moment: datetime, data_type: str = EARNINGS) -> dict[date | None, Any]:
    with core.engine.begin() as connection:
        return {one.period: one.body for one in documents.as_of(connection, data_type, "AAPL", moment)}


def revisions(core: Core) -> Sequence[Any]:
    return core.rows(
        "SELECT d.period, d.body::text AS body"
        " FROM pricing.revisions r CROSS JOIN jsonb_populate_record(NULL::pricing.documents, r.old) d"
        " WHERE r.kind = 'documents' ORDER BY r.revised_at, d.period"
    )


def versions(core: Core) -> Sequence[Any]:
    return core.rows("SELECT ctid, xmin FROM pricing.documents ORDER BY 1")


# Storage


def test_b1_a_document_type_is_one_insert(core: Core) -> None:
    (kind,) = core.rows(
        "SELECT table_name, symbol_column, timestamp_column FROM pricing.data_type_registry WHERE fetcher = 'profile'"
    )
    assert kind == ("document_company_profile", "symbol", "fetched_at")
    assert core.one("SELECT to_regclass('pricing.price_history_company_profile')") is None
    routes = core.rows(
        "SELECT data_type, provider FROM pricing.provider_routing WHERE data_type ~ '^company' ORDER BY 1"
    )
    assert [tuple(one) for one in routes] == [(EARNINGS, FMP), (PROFILE, FMP)]
    settle(core, Document("AAPL", None, {"symbol": "AAPL", "companyName": "Apple Inc."}), data_type=PROFILE)
    (row,) = core.rows("SELECT symbol, documents, provider FROM pricing.document_company_profile")
    assert row == ("AAPL", [{"symbol": "AAPL", "companyName": "Apple Inc."}], FMP)
    audit(core)


def test_a5_new_types_of_prices_do_not_find_their_way_to_a_provider_that_does_not_want_them(
    core: Core,
) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes) VALUES ('q', 'quote', 1)"
    )
    assert core.one("SELECT provider FROM pricing.provider_routing WHERE data_type = 'q'") == "twelvedata"


def test_b1_a_document_type_with_data_is_not_deleted_and_an_empty_one_goes_with_its_view(core: Core) -> None:
    settle(core, report(SPRING))
    core.rows("DELETE FROM pricing.demand")
    with pytest.raises(DBAPIError, match="has data or is watched"):
        core.rows("DELETE FROM pricing.data_type_registry WHERE data_type = :name", name=EARNINGS)
    core.rows("DELETE FROM pricing.data_type_registry WHERE data_type = :name", name=PROFILE)
    assert core.one("SELECT to_regclass('pricing.document_company_profile')") is None


def test_b2_what_a_type_is_cannot_change_and_documents_have_no_backfill(core: Core) -> None:
    with pytest.raises(DBAPIError, match="cannot become one of prices"):
        core.rows("UPDATE pricing.data_type_registry SET fetcher = 'quote' WHERE data_type = :name", name=PROFILE)
    with pytest.raises(DBAPIError, match="cannot become one of documents"):
        core.rows("UPDATE pricing.data_type_registry SET fetcher = 'profile' WHERE data_type = :name", name=QUOTE)
    with pytest.raises(IntegrityError, match="only_prices_have_backfill"):
        core.rows(
            "UPDATE pricing.data_type_registry SET history_from = '2000-01-01' WHERE data_type = :name",
            name=PROFILE,
        )


def test_b2_no_type_may_name_a_table_of_all_types(core: Core) -> None:
    for own in ("confirmed_pairs", "latest_answers", "latest_prices"):
        with pytest.raises(DBAPIError, match="not a table or view that a data type may name"):
            core.rows(
                "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, table_name)"
                " VALUES ('mine', 'profile', 1, :own)",
                own=own,
            )


# Exactness and revisions


def test_a9_numbers_keep_every_digit(core: Core) -> None:
    figures: dict[str, Scalar] = {
        "epsActual": Decimal("1.850000000000000001"),
        "revenueActual": 123456789012345678901,
        "tiny": Decimal("1E-20"),
        "spelled": Decimal("1.50"),
        "none": None,
        "flag": True,
        "text": 'quote " and \\ and é',
    }
    settle(core, report(SPRING, **figures))
    body = current(core)[SPRING]
    assert {name: body[name] for name in figures} == figures
    assert str(body["spelled"]) == "1.50"
    assert not any(isinstance(value, float) for value in body.values())


def test_f3_an_identical_answer_only_confirms(core: Core, clock: Clock) -> None:
    first = settle(core, report(SPRING, eps=Decimal("1.5")), report(SUMMER, eps=None))
    assert (first.added, first.revised, first.symbols) == (2, 0, {"AAPL"})
    before, rows = core.clock(), versions(core)
    clock.advance(61 * 60)
    second = settle(core, report(SPRING, eps=Decimal("1.500")), report(SUMMER, eps=None))
    assert (second.added, second.revised) == (0, 0)
    assert (versions(core), revisions(core)) == (rows, [])
    assert core.one("SELECT fetched_at FROM pricing.confirmed_pairs") > before


def test_f3_a_changed_document_leaves_the_old_one_and_its_neighbours_alone(core: Core, clock: Clock) -> None:
    settle(core, report(SPRING, eps=1), report(SUMMER, eps=2))
    long_ago = core.clock()
    clock.advance(61 * 60)
    tally = settle(core, report(SPRING, eps=1), report(SUMMER, eps=3))
    assert (tally.added, tally.revised) == (0, 1)
    (old,) = revisions(core)
    assert (old.period, '"eps": 2' in old.body) == (SUMMER, True)
    assert current(core)[SUMMER]["eps"] == 3
    assert believed(core, long_ago)[SUMMER]["eps"] == 2
    assert believed(core, long_ago - timedelta(days=1)) == {}
    audit(core)


def test_f3_what_is_no_longer_listed_is_withdrawn_and_what_is_out_of_reach_stays(core: Core, clock: Clock) -> None:
    settle(core, report(SPRING, eps=1), report(SUMMER, eps=2), report(AUTUMN, eps=None))
    then = core.clock()
    clock.advance(61 * 60)
    tally = settle(core, report(SUMMER, eps=2), report(WINTER, eps=None))
    assert (tally.added, tally.revised) == (1, 1)
    assert set(current(core)) == {SPRING, SUMMER, WINTER}, "autumn's report was moved to winter"
    assert set(believed(core, then)) == {SPRING, SUMMER, AUTUMN}
    meanwhile = core.clock()
    clock.advance(61 * 60)
    settle(core, report(SUMMER, eps=2), report(AUTUMN, eps=4), report(WINTER, eps=None))
    assert current(core)[AUTUMN]["eps"] == 4
    assert AUTUMN not in believed(core, meanwhile)


def test_f3_a_period_that_could_not_be_believed_withdraws_nothing(core: Core, clock: Clock) -> None:
    settle(core, report(SPRING, eps=1), report(SUMMER, eps=2))
    clock.advance(61 * 60)
    settle(core, report(SPRING, eps=1), rejected=(RejectedValue("AAPL", None, "no day", "2026-02-30"),))
    assert set(current(core)) == {SPRING, SUMMER}


def test_f3_an_empty_answer_erases_nothing_and_confirms(core: Core, clock: Clock) -> None:
    settle(core, report(SPRING, eps=1))
    before = core.clock()
    clock.advance(61 * 60)
    tally = settle(core, empty=frozenset({"AAPL"}))
    assert (tally.symbols, tally.failed) == ({"AAPL"}, 0)
    assert set(current(core)) == {SPRING}
    assert core.one("SELECT fetched_at FROM pricing.confirmed_pairs") > before
    assert core.tasks("AAPL")[-1].status == "completed"


def test_b11_a_late_answer_changes_no_document(core: Core, clock: Clock) -> None:
    core.enqueue(EARNINGS, "AAPL")
    call = core.claim_one(FMP)
    clock.advance(2 * 60)
    assert core.recover() == 1
    settling.settle_answer(core.engine, call, Fetched(Answer(records=(report(SPRING),)), 200, 700))
    assert core.rows("SELECT FROM pricing.documents") == []
    assert core.rows("SELECT FROM pricing.confirmed_pairs") == []


def test_b8_a_document_that_the_database_refuses_costs_no_other(core: Core) -> None:
    core.lift_limits()
    bad = report(SPRING, "IBM", text="\x00")
    tally = settle(core, report(SPRING), bad)
    assert (tally.symbols, tally.failed) == ({"AAPL"}, 1)
    assert core.tasks("IBM")[0].errors[0]["kind"] == FailureKind.NOT_STORABLE
    assert set(current(core)) == {SPRING}


# Refresh


def test_b6_a_document_is_due_a_ttl_after_it_was_fetched(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (EARNINGS, "AAPL"))
    call = core.claim_one(FMP)
    settling.settle_answer(core.engine, call, Fetched(Answer(records=(report(SPRING),)), 200, 700))
    assert core.one("SELECT pricing.enqueue_due()") == 0
    clock.advance(30 * 60)
    core.heartbeat("ann", (EARNINGS, "AAPL"))
    assert core.one("SELECT pricing.enqueue_due()") == 0
    with core.engine.begin() as connection:
        (served,) = freshness.measure(connection, [EARNINGS])
    assert (served.watched, served.fresh, served.late) == (1, 1, 0)
    clock.advance(31 * 60)
    core.heartbeat("ann", (EARNINGS, "AAPL"))
    assert core.one("SELECT pricing.enqueue_due()") == 1


def test_b3_a_pair_may_have_a_ttl_of_its_own(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (EARNINGS, "AAPL"))
    settling.settle_answer(core.engine, core.claim_one(FMP), Fetched(Answer(records=(report(SPRING),)), 200, 700))
    core.rows("UPDATE pricing.confirmed_pairs SET cache_ttl_minutes = 5")
    clock.advance(6 * 60)
    core.heartbeat("ann", (EARNINGS, "AAPL"))
    assert core.one("SELECT pricing.enqueue_due()") == 1


def test_a10_a_read_answers_at_once_and_asks_once(core: Core, clock: Clock) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'AAPL') ON CONFLICT DO NOTHING")

    def read() -> documents.Reading:
        with core.engine.begin() as connection:
            return documents.read(connection, EARNINGS, "AAPL")

    first, again = read(), read()
    assert (first.documents, first.fetched_at, first.is_requested, again.is_requested) == (
        [],
        None,
        True,
        False,
    )
    settling.settle_answer(core.engine, core.claim_one(FMP), Fetched(Answer(records=(report(SPRING),)), 200, 700))
    found = read()
    assert (found.fresh, found.is_requested, len(found.documents)) == (True, False, 1)
    clock.advance(61 * 60)
    stale = read()
    assert (stale.fresh, stale.is_requested, len(stale.documents)) == (False, True, 1)


def test_b4_when_staleness_cannot_be_judged_a_read_asks_at_most_once_a_ttl(core: Core) -> None:
    core.rows("CREATE FUNCTION pricing.broken(timestamptz, integer) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 > 0'")
    core.rows(
        "UPDATE pricing.data_type_registry SET staleness_function = 'broken' WHERE data_type = :name",
        name=EARNINGS,
    )
    settle(core, report(SPRING))
    with core.engine.begin() as connection:
        assert not documents.read(connection, EARNINGS, "AAPL").is_requested


def test_a10_reading_a_price_asks_for_no_document(core: Core) -> None:
    core.read("AAPL")
    assert {task.data_type for task in core.tasks("AAPL")} == {QUOTE, "equity_daily"}


def test_a8_a_dead_document_task_is_settled_by_a_later_success(core: Core, clock: Clock) -> None:
    core.enqueue(EARNINGS, "AAPL")
    failed = Answer(failures=(SymbolFailure("AAPL", FailureKind.UNKNOWN_SYMBOL, "who?"),))
    settling.settle_answer(core.engine, core.claim_one(FMP), Fetched(failed, 200, 700))
    assert core.task("AAPL").failure_kind == "unknown_symbol"
    clock.advance(1 * 60)
    settle(core, report(SPRING))
    assert core.one("SELECT pricing.resolve_tasks()") == 1


def test_b29_a_plan_without_the_endpoint_ends_a_batch_at_once(core: Core, clock: Clock) -> None:
    """A symbol may have spoiled its batch for the others; an endpoint has not been spoiled by any."""
    core.rows("UPDATE pricing.provider_routing SET provider = 'fmp' WHERE data_type = :name", name=QUOTE)

    core.enqueue(QUOTE, "AAPL", "IBM")

    def fail(error: PlanRestricted) -> None:
        call = core.claim_one(FMP)
        assert len(call.tasks) == 2
        settling.settle_failure(core.engine, call, error)

    fail(PlanRestricted("402"))
    assert set(core.statuses().values()) == {"scheduled"}
    clock.advance(1 * 60)
    core.promote()
    fail(PlanRestricted("402", is_whole_endpoint=True))
    assert set(core.statuses().values()) == {"failed"}


def test_the_tally_counts_documents_and_no_months_of_theirs(core: Core) -> None:
    tally = settle(core, report(SPRING), report(WINTER))
    assert (tally.records, tally.months) == (2, {})
