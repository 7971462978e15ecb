"""What is stored of answers that are partly junk: documents with texts that no database holds, floods of dividends."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Answer, Dividend
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.providers.base import Question
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.providers.fmp import Fmp
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.core import DAILY, Core, midnight, observation

pytestmark = pytest.mark.usefixtures("still")

PROFILE = {"symbol": "AAPL", "companyName": "Apple", "currency": "USD", "exchange": "NASDAQ"}


@pytest.mark.parametrize(("bad", "kept"), [("a\0b", "a\\x00b"), ("a\ud800b", "a\\ud800b")])
def test_b18_a_document_with_text_that_no_database_holds_is_stored_escaped(core: Core, bad: str, kept: str) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('equity_profile', 'profile', 1440)"
    )
    core.enqueue("equity_profile", "AAPL")
    call = core.claim_one("fmp")
    body = json.dumps([PROFILE | {"description": bad}]).encode()
    answer = Fmp().parse(Question(Fetcher.PROFILE, ["AAPL"], None, core.clock()), Response(200, {}, body, len(body)))
    tally = settling.settle_answer(core.engine, call, Fetched(answer, 200, len(body), body=body))
    assert (tally.added, tally.failed) == (1, 0)
    assert core.one("SELECT body ->> 'description' FROM pricing.documents") == kept


def test_f6_a_flood_of_absurd_dividends_fills_a_hundred_rows_and_one(core: Core) -> None:
    core.enqueue(DAILY, "AAPL")
    call = core.claim_one()
    today = midnight(core.clock().date())
    bars = [observation("AAPL", "100", today - timedelta(days=n)) for n in range(3, 0, -1)]
    paid = [Dividend("AAPL", date(2009, 1, 1) + timedelta(days=n), Decimal(10**6 + n), "USD") for n in range(500)]
    since = {"AAPL": date(2009, 1, 1)}
    old = [observation("AAPL", "100", datetime(2008, 12, 31, tzinfo=UTC) + timedelta(days=n)) for n in range(502)]
    answer = Answer(observations=Rows([*old, *bars]), actions=tuple(paid), actions_since=since)
    settling.settle_answer(core.engine, call, Fetched(answer, 200, 2, body=b"{}"))
    assert core.one("SELECT count(*) FROM pricing.quarantined_values") == 101
    assert core.one("SELECT reason FROM pricing.quarantined_values WHERE value = 'more values'").startswith("400 more")
    assert core.one("SELECT count(*) FROM pricing.corporate_actions") == 0
