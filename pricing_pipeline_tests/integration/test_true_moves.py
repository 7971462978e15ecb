"""F6: what is known beside an answer lets true moves through: trading, the kind of instrument, another provider."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import reviews
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, a_call, midnight, observation, windowed

pytestmark = pytest.mark.usefixtures("still")

FIRST = date(2012, 3, 5)


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def bars(closes: list[str], volumes: list[int], first: int = 0) -> list[Observation]:
    return [
        observation("IBM", close, midnight(day(number)), volume=str(volume))
        for number, (close, volume) in enumerate(zip(closes, volumes, strict=True), first)
    ]


def brought(core: Core, rows: list[Observation], *, is_latest: bool, is_unsplit: bool = False) -> int:
    """How many days are stored after an answer of a source that tells all splits."""
    core.lift_limits()
    core.rows("DELETE FROM pricing.api_call_queue_live")
    first, last = rows[0].observed_at.date(), rows[-1].observed_at.date()
    core.enqueue(DAILY, "IBM", days=None if is_latest else (first, last))
    call = core.claim_one()
    call = call if is_latest else windowed(a_call(call), first, last)
    answer = Answer(
        observations=Rows(rows),
        actions_since={"IBM": first},
        unsplit=frozenset({"IBM"}) if is_unsplit else frozenset(),
    )
    settling.settle_answer(core.engine, call, Fetched(answer, 200, 4, body=b"x"))
    return len(core.history("IBM", DAILY, day(0), day(60)))


@pytest.mark.parametrize(("volume", "stored"), [(6_000_000, 23), (1_000_000, 20)])
def test_f6_a_crash_is_proved_by_the_trading_of_stored_days_where_its_answer_has_too_few(
    core: Core, volume: int, stored: int
) -> None:
    """The workers were away for two days: of the five days of the answer only two came before the crash."""
    assert brought(core, bars(["100.00"] * 20, [1_000_000] * 20), is_latest=False) == 20
    answer = bars(["100.00", "100.00", "50.00", "50.10", "49.90"], [1_000_000] * 2 + [volume] + [1_000_000] * 2, 18)
    assert brought(core, answer, is_latest=True) == stored


@pytest.mark.parametrize(
    ("asset_class", "is_unsplit", "stored"),
    [("equity", False, 20), ("equity", True, 30), ("fx", False, 30), ("crypto", False, 30)],
)
def test_f6_what_is_never_split_has_no_split_that_was_forgotten(
    core: Core, asset_class: str, is_unsplit: bool, stored: int
) -> None:
    """By its asset class, or by what its provider says of its kind: 366.50 pesos, and then 799.90."""
    core.rows(
        "UPDATE pricing.data_type_registry SET asset_class = :name WHERE data_type = :type",
        name=asset_class,
        type=DAILY,
    )
    rows = bars(["366.50"] * 20 + ["799.90"] * 10, [0] * 30)
    assert brought(core, rows[:20], is_latest=False) == 20
    assert brought(core, rows, is_latest=False, is_unsplit=is_unsplit) == stored


def test_f6_two_providers_that_see_one_move_confirm_each_other(core: Core) -> None:
    """The first value is quarantined, for the other's price is still the old one; the second provider's is believed."""
    core.lift_limits()
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)"
        " VALUES ('second_quote', 'equity', 'quote', 1)"
    )

    def said(data_type: str, provider: str, price: str, at: datetime) -> Decimal | None:
        core.rows("DELETE FROM pricing.api_call_queue_live")
        core.rows("UPDATE pricing.demand SET backoff_until = NULL, failures = 0")
        core.enqueue(data_type, "AAPL")
        call = a_call(core.claim_one(), provider=provider)
        answer = Answer(observations=Rows([observation("AAPL", price, at)]))
        settling.settle_answer(core.engine, call, Fetched(answer, 200, 4, body=b"x"))
        latest = core.latest("AAPL", data_type)
        return latest and latest.price

    before, now = core.clock() - timedelta(minutes=2), core.clock() - timedelta(seconds=30)
    for data_type, provider in ((QUOTE, "twelvedata"), ("second_quote", "yahoo")):
        assert said(data_type, provider, "100.00", before) == Decimal("100.00")
    assert said(QUOTE, "twelvedata", "350.00", now) == Decimal("100.00")
    assert said("second_quote", "yahoo", "260.00", now) == Decimal("100.00"), "they differ"
    assert said("second_quote", "yahoo", "351.00", now + timedelta(seconds=2)) == Decimal("351.00")
    assert said(QUOTE, "twelvedata", "352.00", now + timedelta(seconds=4)) == Decimal("352.00")
    assert said("second_quote", "yahoo", "100.00", now + timedelta(seconds=6)) == Decimal("351.00"), "alone again"


@pytest.mark.parametrize(("volume", "outcomes"), [(1_000_000, ["released"]), (150_000, [])])
def test_f6_what_is_judged_anew_is_proved_by_trading_as_it_would_have_been_at_first(
    core: Core, volume: int, outcomes: list[str]
) -> None:
    """A share triples on the day of its reverse split, which nobody told: ten times the usual trading proves it."""
    assert brought(core, bars(["10.00"] * 20, [1_000_000] * 20), is_latest=False) == 20
    assert brought(core, bars(["10.00", "300.00"], [1_000_000, volume], 19), is_latest=True) == 20
    core.rows("SELECT pricing.enter_action('equity', 'IBM', :day, 'split', 1, 10, NULL, NULL, 'ann')", day=day(20))
    assert [one.outcome for one in reviews.judge_anew(core.engine)] == outcomes
