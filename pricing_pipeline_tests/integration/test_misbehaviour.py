"""Faults of providers, committed by the sandbox against the real client and store: no bad row is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from pydantic import SecretStr

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.sandbox.calls import ProviderCall
from pricing_pipeline.sandbox.recordings import Recordings
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.refresher import reset_sandbox
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.recordings import FOLDER, recorded_files
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox

sandbox = reset_sandbox

PAIRS = ((QUOTE, "AAPL"), (DAILY, "AAPL"), (NAV, "118632"))


def stored(core: Core) -> list[Any]:
    return list(
        core.rows(
            "SELECT data_type, symbol, observed_at, amount, scale, currency, high_amount, low_amount"
            " FROM pricing.price_history ORDER BY 1, 2, 3"
        )
    )


def daily_bars(core: Core) -> list[Any]:
    return [row for row in stored(core) if row.data_type == DAILY]


def bars_before(core: Core, today: date) -> list[Any]:
    """Those of days that are over: the bar of a day moves as long as that lasts."""
    return [row for row in daily_bars(core) if row.observed_at.date() < today]


_AT_WORK = """
    SELECT count(*) FROM pricing.api_call_queue_live q JOIN pricing.provider_state s USING (provider)
    WHERE q.status = 'processing' OR (q.status = 'pending' AND s.breaker = 'closed' AND NOT EXISTS (
        SELECT FROM pricing.provider_keys k WHERE k.provider = q.provider AND k.blocked_until > pricing.clock()))
"""


def ask(core: Core, sandbox: RunningSandbox, deadline: float = PATIENCE) -> set[str]:
    """Ask for all pairs once; returns what the tasks' last errors say."""
    for data_type, symbol in PAIRS:
        core.enqueue(data_type, symbol)
    with refreshing(core.engine, sandbox.url, deadline=deadline) as refresher:
        work_until(refresher, lambda: core.one(_AT_WORK) == 0)
    found = {task.errors[-1]["kind"] for task in core.tasks() if task.errors}
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("DELETE FROM pricing.provider_keys")
    return found


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"kind": "currency", "value": "GBP", "provider": "twelvedata"}, "currency"),
        ({"kind": "other_symbol", "answer": "IBM", "provider": "twelvedata"}, "refused"),
    ],
    ids=["currency", "other symbol"],
)
def test_b18_f6_what_belongs_to_something_else_is_quarantined(
    core: Core, sandbox: RunningSandbox, fault: dict[str, Any], kind: str
) -> None:
    ask(core, sandbox)
    before = daily_bars(core)
    sandbox.behave(**fault)
    assert "implausible" in ask(core, sandbox)
    assert daily_bars(core) == before
    assert kind in {row.kind for row in core.rows("SELECT kind FROM pricing.quarantined_values")}


def test_b18_f6_a_low_above_the_high_costs_both_and_nothing_that_is_stored(core: Core, sandbox: RunningSandbox) -> None:
    """The close of such a bar is stored, and what it says otherwise of a stored day changes nothing."""
    # The day lasts until midnight in New York, which may come during the test.
    today = core.clock().astimezone(ZoneInfo("America/New_York")).date()
    sandbox.behave("crossed", path="time_series")
    ask(core, sandbox)
    rows = core.rows("SELECT * FROM pricing.price_history WHERE data_type = 'equity_daily'")
    assert len(rows) >= 3
    assert {(row.high_amount, row.low_amount) for row in rows if row.quality} == {(None, None)}
    assert any("is below the close" in row.quality for row in rows if row.quality)
    sandbox.behave_well()
    ask(core, sandbox)
    whole = bars_before(core, today)
    assert all(row.high_amount is not None for row in whole), "the whole bars take their place"
    sandbox.behave("crossed", path="time_series")
    assert ask(core, sandbox) == set()
    assert bars_before(core, today) == whole
    assert whole


def test_b18_f6_a_day_that_comes_twice_is_refused_and_the_others_are_stored(
    core: Core, sandbox: RunningSandbox
) -> None:
    sandbox.behave("duplicate", provider="twelvedata")
    ask(core, sandbox)
    assert len(daily_bars(core)) >= 3
    reasons = {row.reason for row in core.rows("SELECT reason FROM pricing.quarantined_values")}
    assert any("different values" in reason for reason in reasons)


def test_b18_f6_a_split_that_was_not_applied_is_noticed_in_the_latest_days(core: Core, sandbox: RunningSandbox) -> None:
    ask(core, sandbox)
    before = daily_bars(core)
    sandbox.behave("split", factor=2, path="time_series")
    ask(core, sandbox)
    # The newest is true, and on trading days still forming.
    assert daily_bars(core)[:-1] == before[:-1]
    assert "split" in {row.kind for row in core.rows("SELECT kind FROM pricing.quarantined_values")}


# Recordings


@pytest.fixture(scope="module")
def replaying() -> Iterator[RunningSandbox]:
    for provider in ("twelvedata", "mfapi", "yahoo", "fmp"):
        recorded_files(provider)
    with running_sandbox(recordings=FOLDER) as sandbox:
        yield sandbox


def test_recorded_answers_are_replayed_byte_for_byte(replaying: RunningSandbox) -> None:
    head = {"Authorization": f"apikey {replaying.key}"}
    for url, file in (
        (f"{replaying.mfapi_url}/mf/118632", "mfapi/mf_118632_full_history.json"),
        (f"{replaying.mfapi_url}/mf/125497/latest", "mfapi/mf_125497_latest.json"),
        (f"{replaying.twelvedata_url}/quote?symbol=IBM", "twelvedata/quote_IBM_2021_07_01.json"),
        (
            f"{replaying.twelvedata_url}/time_series?symbol=IBM&interval=1day&order=ASC",
            "twelvedata/time_series_IBM_1day_default30.json",
        ),
        (f"{replaying.yahoo_url}/v7/finance/quote?symbols=OCDO.L", "yahoo/v7quote_OCDO_L_GBp.json"),
    ):
        answer = httpx.get(url, headers=head, timeout=PATIENCE)
        assert answer.content == (FOLDER / file).read_bytes(), url
        meta = json.loads((FOLDER / file).with_suffix(".meta.json").read_text())
        assert answer.status_code == meta["http_status"]
    refused = httpx.get(f"{replaying.mfapi_url}/mf/abcdef", timeout=PATIENCE)
    assert (refused.status_code, refused.content) == (
        400,
        (FOLDER / "mfapi/mf_invalid_code_400.json").read_bytes(),
    )


def test_what_nobody_recorded_is_made_up(replaying: RunningSandbox) -> None:
    head = {"Authorization": f"apikey {replaying.key}"}
    asked = f"{replaying.twelvedata_url}/quote?symbol=MSFT"
    answer = httpx.get(asked, headers=head, timeout=PATIENCE).json()
    assert answer["symbol"] == "MSFT"
    fund = httpx.get(f"{replaying.mfapi_url}/mf/119552/latest", timeout=PATIENCE).json()
    assert fund["meta"]["scheme_code"] == 119552


def test_a_replayed_answer_goes_through_the_real_client(replaying: RunningSandbox) -> None:
    with ProviderClient(PROVIDERS["twelvedata"], replaying.twelvedata_url, SecretStr(replaying.key)) as client:
        (quote,) = client.fetch(Fetcher.QUOTE, ["IBM"]).answer.observations
    body = json.loads((FOLDER / "twelvedata/quote_IBM_2021_07_01.json").read_text())
    assert quote.text == body["close"]


def test_a_recording_is_chosen_by_what_agrees_most(tmp_path: Path) -> None:
    folder = tmp_path / "twelvedata"
    folder.mkdir()

    def record(name: str, url: str, status: int = 200) -> None:
        (folder / f"{name}.json").write_text(name)
        meta = {"url_requested": url, "http_status": status, "headers": {"Retry-After": "7", "Server": "x"}}
        (folder / f"{name}.meta.json").write_text(json.dumps(meta))

    at = "https://api.example/time_series"
    record("a", f"{at}?symbol=IBM&apikey=REDACTED", 500)
    record("b", f"{at}?symbol=IBM&interval=1day")
    record("c", f"{at}?symbol=IBM&interval=1min")
    record("d", at)
    found = Recordings(tmp_path)

    def body(**params: str) -> bytes | None:
        reply = found.find("twelvedata", ProviderCall("time_series", params, (), None, datetime.now(UTC)))
        return None if reply is None else reply.body

    assert body(symbol="IBM", interval="1day", order="ASC") == b"b"
    assert body(symbol="IBM", interval="1h") == b"a"
    assert body(symbol="MSFT") is None
    assert body() == b"d"
    reply = found.find("twelvedata", ProviderCall("time_series", {}, (), None, datetime.now(UTC)))
    assert reply is not None
    assert reply.headers == {"retry-after": "7"}
