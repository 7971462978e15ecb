"""A wrong symbol is not a fault of the pipeline; many at once are, and a symbol that vanishes is worth a word."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from pricing_pipeline.api.page import verdict
from pricing_pipeline.api.page.reading import read
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.operations import alerts
from pricing_pipeline.operations.alert_rules import RULES
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.alert_causes import refuse_known, refuse_new
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.working import start

pytestmark = pytest.mark.usefixtures("still")

FOUR, FIVE = ("A", "B", "C", "D"), ("A", "B", "C", "D", "E")
ABOUT_SYMBOLS = [rule for rule in RULES if rule.name.startswith(("symbol", "price_fetch"))]


def raised(core: Core) -> dict[str, str]:
    """Severity and rule of the open alerts about symbols or tasks."""
    alerts.look(core.engine, ABOUT_SYMBOLS)
    rows = core.rows("SELECT rule, severity FROM pricing.alerts WHERE raised_at IS NOT NULL AND resolved_at IS NULL")
    return {row.rule: row.severity for row in rows}


def priced(core: Core, *symbols: str) -> None:
    """Somebody watches these, and they have prices."""
    core.lift_limits()
    core.heartbeat("bob", *((QUOTE, symbol) for symbol in symbols))
    core.refresh()


@pytest.mark.parametrize("wrong", [("APPL",), FOUR])
def test_b21_a_wrong_symbol_of_a_user_is_no_alert(core: Core, clock: Clock, wrong: tuple[str, ...]) -> None:
    refuse_new(*wrong)(core, clock)
    assert raised(core) == {}


@pytest.mark.parametrize("kind", [FailureKind.UNKNOWN_SYMBOL, FailureKind.PLAN_RESTRICTED])
def test_b21_many_wrong_symbols_beside_good_ones_are_no_alert(core: Core, clock: Clock, kind: FailureKind) -> None:
    priced(core, "AAPL")
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in FIVE))
    core.fail(core.claim_one(), kind, "no such symbol")
    assert raised(core) == {}


def test_b23_a_wrong_symbol_of_a_user_is_counted_and_makes_nobody_ill(core: Core, clock: Clock) -> None:
    start(core)
    core.rows("UPDATE pricing.data_type_registry SET refresh_strategy = 'on-demand', refresh_schedule = NULL")
    priced(core, "AAPL")
    refuse_new("APPL")(core, clock)
    alerts.look(core.engine)
    with core.engine.begin() as connection:
        judged = verdict.judge(read(connection))
    assert [finding.words for finding in judged.findings if finding.section in ("tasks", "alerts", "old")] == [
        "1 task has failed for good, by its symbol"
    ]
    assert judged.state is not verdict.State.ILL


def test_b21_a_provider_that_knows_no_symbol_any_more_is_an_alert(core: Core, clock: Clock) -> None:
    priced(core, "AAPL")
    refuse_known(*FIVE)(core, clock)
    assert raised(core) == {"symbols_unknown": "P1"}, "and the same trouble is not told twice"
    says = core.one("SELECT says FROM pricing.alerts WHERE rule = 'symbols_unknown'")
    assert says == (
        "twelvedata refuses many symbols of equity_quote at once: 5, of which 5 had a price before,"
        " such as E: no such symbol"
    )


def test_b21_a_provider_that_knows_neither_of_two_symbols_any_more_is_an_alert(core: Core, clock: Clock) -> None:
    """Where little is watched, all of it is many."""
    refuse_known("A", "B")(core, clock)
    assert raised(core) == {"symbols_unknown": "P1"}


def test_b21_a_provider_that_never_knew_any_symbol_is_an_alert(core: Core, clock: Clock) -> None:
    refuse_new(*FIVE)(core, clock)
    assert raised(core) == {"symbols_unknown": "P1"}


def test_b21_a_symbol_that_vanishes_is_told_with_the_next_message(core: Core, clock: Clock) -> None:
    priced(core, "MSFT")
    refuse_known("AAPL")(core, clock)
    assert raised(core) == {"symbol_vanished": "P2"}
    says = core.one("SELECT says FROM pricing.alerts WHERE rule = 'symbol_vanished'")
    assert says == (
        "Symbols of equity_quote that were priced before, and that twelvedata refuses now: 1, such as AAPL:"
        " no such symbol"
    )
    core.pause("AAPL")
    clock.advance(301)
    assert raised(core) == {}, "a person has decided"


def test_b21_symbols_that_vanish_one_by_one_are_no_fault(core: Core, clock: Clock) -> None:
    for symbol in FIVE:
        refuse_known(symbol)(core, clock)
        clock.advance(86_400)
    assert raised(core) == {"symbol_vanished": "P2"}


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    good=st.integers(0, 130),
    at_once=st.integers(0, 8),
    earlier=st.integers(0, 8),
    never=st.integers(0, 8),
)
def test_b21_what_counts_as_a_fault_follows_the_rule(
    core: Core, good: int, at_once: int, earlier: int, never: int
) -> None:
    groups = {"G": (good, 0), "V": (at_once, 1), "W": (earlier, 90), "N": (never, None)}
    with core.owner.connect() as connection:
        for prefix, (count, days) in groups.items():
            named = {"prefix": prefix, "count": count, "days": days, "is_refused": prefix != "G"}
            for statement in ARRANGED:
                connection.execute(text(statement), named)
        found = connection.execute(text("SELECT * FROM pricing.refused_symbols()")).one_or_none()
        connection.rollback()
    refused, vanished, priced = at_once + earlier + never, at_once + earlier, good + at_once + earlier
    if not refused:
        assert found is None
        return
    assert found is not None
    assert (found.refused, found.vanished) == (refused, vanished)
    together = at_once or earlier
    if together > 1:
        expected = together > 0.05 * priced and (together >= 5 or together == priced)
    else:
        expected = refused >= 5 and priced == 0
    assert found.is_fault == expected


ARRANGED = (
    "INSERT INTO pricing.instruments (asset_class, symbol)"
    " SELECT 'equity', :prefix || n FROM generate_series(1, :count) n ON CONFLICT DO NOTHING",
    "INSERT INTO pricing.demand (data_type, symbol, due_at)"
    " SELECT 'equity_quote', :prefix || n, pricing.clock() FROM generate_series(1, :count) n ON CONFLICT DO NOTHING",
    "INSERT INTO pricing.latest_prices"
    " (data_type, symbol, amount, scale, observed_at, fetched_at, provider, call_id, source_text)"
    " SELECT 'equity_quote', :prefix || n, 1, 0, at, at, 'twelvedata', 1, '1'"
    " FROM generate_series(1, :count) n, (SELECT pricing.clock() - coalesce(:days, 0) * interval '1 day') a (at)"
    " WHERE CAST(:days AS integer) IS NOT NULL",
    "INSERT INTO pricing.api_call_queue"
    " (data_type, symbol, provider, status, finished_at, failure_kind, errors)"
    " SELECT 'equity_quote', :prefix || n, 'twelvedata', 'failed', pricing.clock(), 'unknown_symbol',"
    ' \'[{"message": "no"}]\' FROM generate_series(1, :count) n WHERE :is_refused',
)


def test_e4_trouble_is_one_row_of_the_page_for_what_is_said_whatever_symbol_it_names(core: Core) -> None:
    for symbol, said in (("AAPL", "no AAPL today"), ("MSFT", "no MSFT today"), ("IBM", "another fault")):
        core.fail(core.claimed(QUOTE, symbol), FailureKind.MISCONFIGURED, said)
    with core.engine.connect() as connection:
        rows = read(connection).dead_tasks
    assert [sorted(row.symbols) for row in rows] == [["IBM"], ["AAPL", "MSFT"]]
