"""A10, F3: a price has one shape: every way to read it says the same, and CSV has the same columns everywhere."""

from __future__ import annotations

import csv
import io
import json
import time
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_client import Missing, Price, PricingClient
from pricing_client.prices import Prices, shaped
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.cells import Decimals, number
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.domain.words import as_json
from pricing_pipeline.prices import lines, price_reader
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, in_zone
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.streams import streaming

still = pytest.mark.usefixtures("still")

PAIRS = f"{DAILY}:AAPL,{QUOTE}:AAPL,{QUOTE}:IBM"


def refresh(core: Core, clock: Clock, old_by: int) -> None:
    """Prices of AAPL, a quote and a bar, so many seconds old, and none of IBM."""
    core.heartbeat("ann", (QUOTE, "AAPL"), (DAILY, "AAPL"))
    core.refresh(price="146.555")
    clock.advance(old_by)


def without_age(told: Any) -> Any:
    """What stays the same from one read to the next: ages grow, and so do those in sentences."""
    if isinstance(told, dict):
        return {name: without_age(value) for name, value in told.items() if name not in ("age_seconds", "sentence")}
    return list(map(without_age, told)) if isinstance(told, list) else told


@still
@pytest.mark.parametrize("old_by", [0, 180])
def test_e9_a10_every_way_to_read_a_price_says_the_same(
    api: RunningApi, cli: CommandLine, core: Core, clock: Clock, old_by: int
) -> None:
    refresh(core, clock, old_by)
    caller = api.caller(Scope.READ, Scope.WATCH, user="ann")
    caller.get("prices", pairs=PAIRS)  # asks for what is old or missing, which the next read knows
    told = caller.get("prices", pairs=PAIRS)
    assert [(price["symbol"], price["data_type"]) for price in told["prices"]] == [
        ("AAPL", DAILY),
        ("AAPL", QUOTE),
    ]
    assert [(pair["symbol"], pair["data_type"]) for pair in told["missing"]] == [("IBM", QUOTE)]
    bar, quote = told["prices"]
    assert (bar["date"], quote["date"]) == (bar["observed_at"][:10], None)
    assert date.fromisoformat(bar["date"])
    assert {price["price"] for price in told["prices"]} == {"146.555"}
    assert (quote["fresh"], quote["state"]) == ((True, "fresh") if old_by == 0 else (False, "stale"))

    with PricingClient(api.url, caller.token or "", "ann", patience=0) as client:
        by_client = client.prices(*(tuple(pair.split(":")) for pair in PAIRS.split(",")))  # type: ignore[arg-type]
    assert all(isinstance(price, Price) for price in by_client.prices)
    assert all(isinstance(pair, Missing) for pair in by_client.missing)
    spelled = json.loads(json.dumps(by_client, default=as_json))
    assert without_age(spelled) == without_age(told), "as the model spells it"
    assert spelled["prices"][0].keys() == bar.keys()
    assert list(spelled["prices"][0]) == list(bar), "in this order, too"

    by_command = cli("price", "show", *PAIRS.split(","), "--json").json
    assert without_age(by_command) == without_age(told)
    with core.engine.connect() as connection:
        stored = price_reader.latest(connection, "AAPL")
    model = shaped(Prices, told)
    assert json.loads(json.dumps(stored, default=as_json)) == [
        json.loads(json.dumps(replace(price, why=None, age_seconds=found.age_seconds), default=as_json))
        for price, found in zip(model.prices, stored, strict=True)
    ]
    with streaming(caller, pairs=PAIRS) as stream:
        first, second, missing, _ = stream.until("ready")
        told = caller.get("prices", pairs=PAIRS)
    streamed = {"prices": [first.data, second.data], "missing": [missing.data]}
    assert without_age(streamed) == without_age(told)


@still
def test_e9_f3_prices_are_a_table_that_is_the_same_everywhere(
    api: RunningApi, cli: CommandLine, core: Core, clock: Clock
) -> None:
    refresh(core, clock, 180)
    caller = api.caller(Scope.READ, user="ann")
    answer = caller.ask("GET", f"prices?pairs={PAIRS}", headers={"Accept": "text/csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "Accept" in answer.headers["vary"]
    rows = list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))
    assert list(rows[0]) == [*lines.OF_PRICES]
    bar, quote, missing = rows
    told = caller.get("prices", pairs=PAIRS)
    assert [bar["date"], quote["date"], missing["date"]] == [told["prices"][0]["date"], "", ""]
    assert {bar["price"], quote["price"]} == {"146.5550"}, "never three decimals"
    assert (quote["state"], bool(quote["why"])) == ("stale", True)
    assert (quote["paused"], quote["provider_active"]) == ("false", "true")
    assert (missing["symbol"], missing["price"], missing["state"]) == ("IBM", "", "missing")
    assert missing["why"]
    by_name = caller.ask("GET", f"prices?pairs={PAIRS}&format=csv")
    assert without_ages(by_name.text) == without_ages(answer.text)
    shown = cli("price", "show", *PAIRS.split(","), "--csv")
    assert without_ages(shown.stdout.replace("\n", "\r\n")) == without_ages(answer.text)
    semicolons = caller.ask("GET", f"prices?pairs={PAIRS}&format=csv&decimal=comma").text
    assert semicolons.splitlines()[0] == ";".join(lines.OF_PRICES)
    assert ";146,555;" in semicolons
    with_commas = cli("price", "show", *PAIRS.split(","), "--csv", "--decimal", "comma").stdout
    assert without_ages(with_commas.replace("\n", "\r\n")) == without_ages(semicolons)


def without_ages(table: str) -> list[list[str]]:
    """The rows of CSV without the columns that grow from one read to the next."""
    delimiter = ";" if ";" in table.splitlines()[0] else ","
    rows = list(csv.reader(io.StringIO(table, newline=""), delimiter=delimiter))
    kept = [place for place, name in enumerate(rows[0]) if name not in ("age_seconds", "why")]
    return [[row[place] for place in kept] for row in rows]


@still
@pytest.mark.own_sessions
def test_e9_f3_a_day_is_that_of_the_exchange_whatever_the_zone_of_the_reader(
    cli: CommandLine, core: Core, clock: Clock, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In New York midnight UTC, by which a daily value is stored, is the evening of the day before."""
    clock.set(datetime(2026, 7, 1, 23, 30, tzinfo=UTC))
    core.heartbeat("ann", (DAILY, "AAPL"))
    core.refresh(price="146.55")
    url = in_zone(database_url, "America/New_York")
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        show, history = ("price", "show", "AAPL"), ("price", "history", "AAPL")
        told = [
            *cli(*show, "--type", DAILY, "--json", database_url=url).json["prices"],
            *cli(*history, "--type", DAILY, "--json", database_url=url).json["rows"],
            *csv.DictReader(cli(*show, "--type", DAILY, "--csv", database_url=url).stdout.splitlines()),
        ]
        engine = make_engine(url)
        with engine.connect() as connection:
            told += [{"date": f"{price.date}"} for price in price_reader.latest(connection, "AAPL")]
            days = (date(2026, 6, 1), date(2026, 7, 2))
            told += [{"date": f"{bar.date}"} for bar in price_reader.bars(connection, "AAPL", DAILY, *days)]
            frame = price_reader.history(connection, "AAPL", DAILY, *days)
            told += [{"date": f"{day}"} for day in frame["date"]]
        engine.dispose()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert {row["date"] for row in told} == {"2026-07-01"}
    assert len(told) == 6


@still
def test_e9_f3_what_a_client_does_not_take_is_refused(api: RunningApi) -> None:
    caller = api.caller(Scope.READ)
    for accept, media in (
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/*", "text/csv"),
        ("text/html, text/csv;q=0.9, */*;q=0.1", "text/csv"),
        ("application/json;q=0.5, TEXT/CSV ; q=0.6", "text/csv"),
        ("text/html", None),
        ("application/vnd.apache.parquet", None),
        ("application/json;q=0", None),
    ):
        for more in ("", "&decimal=point"):  # which the short way leaves to FastAPI
            path, headers = f"prices?symbols=AAPL{more}", {"Accept": accept}
            if media is None:
                problem = caller.refusal("GET", path, headers=headers)
                assert (problem["status"], problem["type"]) == (406, "urn:pricing-pipeline:not-acceptable")
                assert "text/csv" in problem["detail"]
            else:
                answer = caller.ask("GET", path, headers=headers)
                assert answer.headers["content-type"].partition(";")[0] == media
    assert caller.refusal("GET", "prices?symbols=AAPL&format=arrow")["status"] == 406


@still
def test_e9_f3_a_spreadsheet_asks_by_options_and_head_first(api: RunningApi, core: Core) -> None:
    """WEBSERVICE of LibreOffice does. Without a token, nothing is answered."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    caller = api.caller(Scope.READ)
    for path in (f"prices?pairs={QUOTE}:AAPL&format=csv", f"history/{QUOTE}/AAPL?format=csv"):
        asked = caller.ask("OPTIONS", path)
        assert (asked.status_code, asked.headers["allow"], asked.content) == (204, "GET, HEAD, OPTIONS", b"")
        head, whole = caller.ask("HEAD", path), caller.ask("GET", path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == whole.headers["content-type"] == "text/csv; charset=utf-8"
        assert b"146.55" in whole.content
        for method in ("OPTIONS", "HEAD", "GET"):
            assert api.client.request(method, f"/v1/{path}").status_code == 401
    assert caller.ask("HEAD", "prices").status_code == 422
    assert caller.ask("HEAD", "types").status_code == 405


WORDS = ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "a,b", 'a"b', "a;b", "plain", ""]


@given(st.sampled_from(WORDS), st.sampled_from(WORDS), st.sampled_from(Decimals))
def test_e9_f3_no_text_of_a_table_is_a_formula(symbol: str, sentence: str, decimals: Decimals) -> None:
    reason = {"state": "x", "sentence": sentence, "since": None, "next_at": None}
    told = {"prices": [], "missing": [{"symbol": symbol, "data_type": None, "why": reason}]}
    table = lines.prices_as_csv(told, decimals)
    delimiter = ";" if decimals is Decimals.COMMA else ","
    _, row = csv.reader(io.StringIO(table, newline=""), delimiter=delimiter)
    assert len(row) == len(lines.OF_PRICES)
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)
    assert row[0].removeprefix("'") == symbol


@given(st.decimals(allow_nan=False, allow_infinity=False), st.sampled_from(Decimals))
def test_e9_f3_a_number_in_a_cell_is_exact_and_never_of_three_decimals(value: Any, decimals: Decimals) -> None:
    cell = number(format(value, "f"), decimals)
    assert type(value)(cell.replace(",", ".")) == value
    if decimals is Decimals.POINT:
        assert cell[-4:-3] != "."
    else:
        assert "." not in cell
