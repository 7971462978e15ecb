"""What a person decides about quarantined values: released ones are prices, rejected ones ask nobody again."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Answer, CorporateAction, Dividend, RejectedValue, Split
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices import actions
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import quarantined_values
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.quarantining import reject, release
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")

MARCH = (date(2010, 3, 1), date(2010, 3, 31))


def bring(core: Core, call: Call, *observations: Observation, **parts: Any) -> None:
    answer = Answer(observations=Rows(observations), **parts)
    settling.settle_answer(core.engine, call, Fetched(answer, 200, 4, body=b"body"))


def one_call(core: Core, data_type: str, symbol: str, days: tuple[date, date] | None = None) -> Call:
    core.lift_limits()
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.enqueue(data_type, symbol, days=days)
    return core.claim_one()


def quote(core: Core, price: str, seconds_old: float = 1, **more: Any) -> Observation:
    return observation("AAPL", price, core.clock() - timedelta(seconds=seconds_old), **more)


def quarantined_quote(core: Core, price: str = "7250", seconds_old: float = 1, **more: Any) -> int:
    """A price of 72.50, then another that is not believed; returns the id of that one."""
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "72.50", 60))
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, price, seconds_old, **more))
    value_id: int = core.one("SELECT max(value_id) FROM pricing.quarantined_values")
    return value_id


def row(core: Core, value_id: int) -> Any:
    (found,) = core.rows("SELECT * FROM pricing.quarantined_values WHERE value_id = :id", id=value_id)
    return found


def test_f6_a_released_value_is_the_latest_price_with_its_own_lineage(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    value_id = quarantined_quote(core)
    before = row(core, value_id)
    clock.advance(600)
    made = release(core, value_id, "ann", "checked")
    assert (made.outcome, made.is_latest, made.revised) == ("released", True, False)
    latest = core.latest("AAPL")
    assert latest is not None
    assert (str(latest.price), latest.observed_at, latest.provider) == (
        "7250.00",
        before.observed_at,
        "twelvedata",
    )
    assert latest.fetched_at == before.last_seen_at, "as old as its provider's last word"
    assert core.one("SELECT source_text FROM pricing.latest_prices WHERE symbol = 'AAPL'") == "7250"
    (stored,) = core.rows(
        "SELECT amount, call_id, fetched_at FROM pricing.price_history WHERE symbol = 'AAPL' AND observed_at = :at",
        at=before.observed_at,
    )
    assert (stored.amount, stored.call_id) == (725000, before.call_id)
    assert stored.fetched_at > before.last_seen_at, "believed since the decision"
    after = row(core, value_id)
    assert (after.status, after.resolved_by, after.resolution) == ("released", "ann", "checked")
    assert after.resolved_at >= before.last_seen_at + timedelta(seconds=600)
    audit(core)


def test_f6_releasing_twice_is_releasing_once(core: Core, clock: Clock) -> None:
    value_id = quarantined_quote(core)
    release(core, value_id, "ann")
    first = (row(core, value_id), core.latest("AAPL"))
    clock.advance(60)
    assert release(core, value_id, "bob").outcome == "released_already"
    assert reject(core, value_id, "bob").outcome == "released_already"
    again = core.latest("AAPL")
    assert first[1] is not None
    assert again is not None
    assert (row(core, value_id), again.price) == (first[0], first[1].price)
    assert core.one("SELECT count(*) FROM pricing.price_revisions") == 0


def test_f6_an_older_value_is_released_into_the_history_only(core: Core) -> None:
    value_id = quarantined_quote(core, seconds_old=30)
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "72.60", 0))
    made = release(core, value_id, "ann")
    assert (made.outcome, made.is_latest) == ("released", False)
    assert str(core.latest("AAPL").price) == "72.60"  # type: ignore[union-attr]
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE symbol = 'AAPL'") == 3


def test_f6_a_day_of_the_past_is_no_latest_price_though_there_is_none(core: Core) -> None:
    days = [midnight(date(2010, 3, day)) for day in (1, 2, 3)]
    good = [observation("AAPL", "30", day) for day in days]
    wrong = replace(good[1], close=good[1].close * 100, text="3000")
    bring(core, one_call(core, DAILY, "AAPL", MARCH), good[0], wrong, good[2])
    value_id = core.one("SELECT max(value_id) FROM pricing.quarantined_values")
    made = release(core, value_id, "ann")
    assert (made.outcome, made.is_latest) == ("released", False)
    assert core.latest("AAPL", DAILY) is None
    assert [str(bar.close) for bar in core.history("AAPL", DAILY, *MARCH)] == ["30.00", "3000.00", "30.00"]


def test_f6_what_stood_at_the_same_time_becomes_a_revision(core: Core) -> None:
    day = midnight(date(2010, 3, 2))
    bring(core, one_call(core, DAILY, "AAPL", MARCH), observation("AAPL", "30", day))
    bring(core, one_call(core, DAILY, "AAPL", MARCH), observation("AAPL", "45", day))
    value_id = core.one("SELECT max(value_id) FROM pricing.quarantined_values")
    assert row(core, value_id).kind == "jump"
    made = release(core, value_id, "ann")
    assert made.revised
    (kept,) = core.rows("SELECT amount, revised_by FROM pricing.price_revisions")
    assert (kept.amount, kept.revised_by) == (3000, row(core, value_id).call_id)
    assert [str(bar.close) for bar in core.history("AAPL", DAILY, *MARCH)] == ["45.00"]


def test_f6_a_released_value_is_believed_whatever_rule_quarantined_it(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.plausibility_bounds (data_type, symbol, highest) VALUES ('equity_daily', 'AAPL', 40)"
    )
    above = observation("AAPL", "41", midnight(date(2010, 3, 2)))
    bring(core, one_call(core, DAILY, "AAPL", MARCH), above)
    value_id = core.one("SELECT max(value_id) FROM pricing.quarantined_values")
    assert row(core, value_id).kind == "bounds"
    release(core, value_id, "ann")
    call = one_call(core, DAILY, "AAPL", MARCH)
    bring(core, call, above, observation("AAPL", "42", midnight(date(2010, 3, 3))))
    assert [str(bar.close) for bar in core.history("AAPL", DAILY, *MARCH)] == ["41.00"]
    assert row(core, value_id).times == 1
    assert core.tasks("AAPL")[-1].status == "completed"


def test_f6_a_pair_that_was_backing_off_is_due_when_its_value_is_released(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    value_id = quarantined_quote(core)
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.call("SELECT pricing.back_off('equity_quote', ARRAY['AAPL'], 'implausible', 'not believed')")
    release(core, value_id, "ann")
    pair = core.demand_of(QUOTE, "AAPL")
    assert pair is not None
    assert pair.backoff_until is None
    assert pair.due_at <= core.clock()


def test_f6_a_rejected_value_that_comes_again_asks_nobody(core: Core, clock: Clock) -> None:
    value_id = quarantined_quote(core)
    assert reject(core, value_id, "ann", "pence").outcome == "rejected"
    assert reject(core, value_id, "bob").outcome == "rejected_already"
    clock.advance(3600)
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "7250"))  # a newer time, the same value
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "7250", currency="GBP"))  # for another reason
    decided = row(core, value_id)
    assert (decided.status, decided.resolved_by, decided.times) == ("rejected", "ann", 3)
    with core.engine.connect() as connection:
        assert quarantined_values.counts(connection) == []
        assert quarantined_values.listed(connection, None, None, 9) == []
    assert str(core.latest("AAPL").price) == "72.50"  # type: ignore[union-attr]
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "7251"))
    assert core.one("SELECT count(*) FROM pricing.quarantined_values WHERE status = 'quarantined'") == 1
    assert release(core, value_id, "bob").outcome == "released", "a mind may be changed"


def test_f6_a_day_that_was_rejected_says_nothing_about_other_days(core: Core) -> None:
    days = [midnight(date(2010, 3, day)) for day in (1, 2, 3, 4)]
    good = [observation("AAPL", "30", day) for day in days]
    wrong = [replace(one, close=one.close * 100, text="3000") for one in good]
    bring(core, one_call(core, DAILY, "AAPL", MARCH), good[0], wrong[1], good[3])
    reject(core, core.one("SELECT value_id FROM pricing.quarantined_values"), "ann")
    bring(core, one_call(core, DAILY, "AAPL", MARCH), good[0], wrong[1], wrong[2], good[3])
    found = core.rows("SELECT status, observed_at FROM pricing.quarantined_values ORDER BY observed_at")
    assert [(one.status, one.observed_at) for one in found] == [
        ("rejected", days[1]),
        ("quarantined", days[2]),
    ]


def test_f6_what_cannot_be_stored_is_refused_with_its_reason(cli: CommandLine, core: Core) -> None:
    rejected = (RejectedValue("AAPL", midnight(date(2010, 3, 2)), "close 'NaN' is not a number", "NaN"),)
    good = observation("AAPL", "30", midnight(date(2010, 3, 3)))
    bring(core, one_call(core, DAILY, "AAPL", MARCH), good, rejected=rejected)
    value_id = str(core.one("SELECT value_id FROM pricing.quarantined_values"))
    refused = cli("quarantine", "release", value_id, "999", "--user", "ann")
    assert refused.exit_code == 1
    assert f"value {value_id}: is not released: its answer gave no value" in refused.stdout
    assert "value 999: there is none" in refused.stdout
    assert row(core, int(value_id)).status == "quarantined"


def test_f6_people_decide_by_command(cli: CommandLine, core: Core) -> None:
    value_id = str(quarantined_quote(core))
    done = cli("quarantine", "release", value_id, "--user", "ann", "--reason", "checked")
    assert (done.exit_code, "7250 of AAPL is stored, and is the latest price" in done.stdout) == (0, True)
    again = cli("quarantine", "release", value_id, "--json")
    assert (again.exit_code, again.json["values"][0]["outcome"]) == (0, "released_already")
    refused = cli("quarantine", "reject", value_id)
    assert (refused.exit_code, "it was released by ann and is believed now" in refused.stdout) == (1, True)
    shown = cli("quarantine", "show", value_id).stdout
    assert "released by ann at" in shown
    assert "checked" in shown
    assert cli("quarantine", "list").stdout == "no value is quarantined.\n"
    assert "released by ann" in " ".join(cli("quarantine", "show", "1").stdout.split())


def test_f6_a_decision_has_a_name(core: Core) -> None:
    with pytest.raises(Exception, match="needs the name") as refused:
        core.call("SELECT pricing.decide_quarantined(ARRAY[1]::bigint[], 'rejected', ' ')")
    assert not isinstance(refused.value, PricingError)
    with pytest.raises(Exception, match="released or rejected, not deleted"):
        core.call("SELECT pricing.decide_quarantined(ARRAY[1]::bigint[], 'deleted', 'ann')")


def test_f6_what_a_later_answer_has_confirmed_waits_no_more(cli: CommandLine, core: Core, clock: Clock) -> None:
    """A jump that later days confirmed stayed quarantined, and could be rejected while it was the price."""
    days = [midnight(date(2010, 3, day)) for day in range(1, 13)]
    rows = [observation("AAPL", "100" if n < 8 else "300", at) for n, at in enumerate(days)]
    bring(core, one_call(core, DAILY, "AAPL", MARCH), *rows[:8])
    for newest in (9, 10):
        clock.set(days[newest - 1] + timedelta(hours=30))
        bring(core, one_call(core, DAILY, "AAPL"), *rows[newest - 3 : newest])
    first, second = core.rows("SELECT value_id, status FROM pricing.quarantined_values ORDER BY value_id")
    assert (first.status, second.status) == ("quarantined", "quarantined")
    assert core.one("SELECT pricing.close_believed()") == 0
    clock.set(days[10] + timedelta(hours=30))
    bring(core, one_call(core, DAILY, "AAPL"), *rows[8:11])
    call_id = core.one("SELECT max(call_id) FROM pricing.price_history")

    refused = cli("quarantine", "reject", str(first.value_id), "--user", "ann")
    assert refused.exit_code == 1
    assert f"is not rejected: it was released by call {call_id} and is believed now" in refused.stdout
    assert core.one("SELECT pricing.close_believed()") == 1, "the other one, by the duty"
    assert row(core, second.value_id).resolved_by == f"call {call_id}"
    audit(core)


@pytest.mark.parametrize(("kind", "said"), [("dividend", "30.00"), ("split", "2000:1")])
def test_f6_an_action_that_was_entered_by_hand_waits_no_more(core: Core, kind: str, said: str) -> None:
    day = date(2010, 3, 2)
    doubted = RejectedValue("AAPL", midnight(day), f"the {kind} of {day}: it is larger than any", said)
    other = RejectedValue("AAPL", midnight(day), "close '29.00' is not a price", "29.00")
    good = observation("AAPL", "100", midnight(date(2010, 3, 1)))
    bring(core, one_call(core, DAILY, "AAPL", MARCH), good, rejected=(doubted, other))
    entered: CorporateAction = Dividend("AAPL", day, Decimal(30), "USD")
    if kind == "split":
        entered = Split("AAPL", day, Decimal(4000), Decimal(2))
    with core.owner.begin() as connection:
        actions.enter(connection, "equity", entered, "ann", "the company said so")
    assert core.one("SELECT pricing.close_believed()") == 1
    found = core.rows("SELECT value, status, resolved_by FROM pricing.quarantined_values ORDER BY status")
    assert [tuple(one) for one in found] == [("29.00", "quarantined", None), (said, "released", "ann")]


def test_f6_the_note_of_a_latest_price_is_that_of_its_own_bar(core: Core) -> None:
    days = [midnight(date(2010, 3, day)) for day in (1, 2)]
    noted = replace(observation("AAPL", "100", days[0]), quality="low 0 is not above zero")
    bring(core, one_call(core, DAILY, "AAPL"), noted)
    bring(core, one_call(core, DAILY, "AAPL"), observation("AAPL", "900", days[1]))
    value_id = core.one("SELECT value_id FROM pricing.quarantined_values")
    assert release(core, value_id, "ann").is_latest
    assert core.one("SELECT quality FROM pricing.latest_prices WHERE data_type = :type", type=DAILY) is None
