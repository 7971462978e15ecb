"""F3 over HTTP: history as JSON, CSV, Arrow and Parquet, exactly as it is stored, was believed or is adjusted."""

from __future__ import annotations

import csv
import gc
import io
import json
import tempfile
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from tempfile import SpooledTemporaryFile
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import text

from pricing_client import PricingClient
from pricing_pipeline.api import history
from pricing_pipeline.api.formats import Format
from pricing_pipeline.api.history import Histories, History
from pricing_pipeline.domain.cells import Decimals
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.prices import lines, price_reader
from pricing_pipeline.prices.frames import Columns
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import Caller, RunningApi
from pricing_pipeline_tests.support.patience import wait_until

pytestmark = pytest.mark.usefixtures("still")

FIRST, LAST = date(2010, 3, 1), date(2010, 3, 31)
SPAN = {"from": str(FIRST), "to": str(LAST)}
ARROW = "application/vnd.apache.arrow.stream"
NUMBERS = ("open", "high", "low", "close", "volume")


def insert(core: Core, rows: list[dict[str, Any]], symbol: str = "AAPL", data_type: str = DAILY) -> None:
    if rows:
        with core.owner.begin() as connection:
            connection.execute(INSERT, [{**PLAIN, **row, "symbol": symbol, "data_type": data_type} for row in rows])


INSERT = text(
    "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, open_amount, high_amount,"
    " low_amount, scale, currency, volume, provider, call_id, fetched_at, adjustment, quality)"
    " VALUES (:data_type, :symbol, :at, :amount, :open, :high, :low, :scale, :currency, :volume, :provider,"
    " :call, '2010-04-01Z', :adjustment, :quality)"
)
PLAIN: dict[str, Any] = {
    **dict.fromkeys(("open", "high", "low", "volume", "quality")),
    "amount": 1050,
    "scale": 2,
    "currency": "USD",
    "provider": "twelvedata",
    "call": 7,
    "adjustment": "raw",
}


def read(
    caller: Caller, format_: Format, symbol: str = "AAPL", data_type: str = DAILY, **params: Any
) -> list[dict[str, Any]]:
    """The rows of a history as Python values: Decimals, times, None."""
    answer = caller.ask("GET", f"history/{data_type}/{symbol}", params={**SPAN, "format": format_.value, **params})
    assert answer.status_code == 200, answer.text
    match format_:
        case Format.JSON:
            History.model_validate_json(answer.content)
            rows = answer.json()["rows"]
        case Format.CSV:
            rows = list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))
        case Format.ARROW:
            return pa.ipc.open_stream(answer.content).read_all().to_pylist()
        case Format.PARQUET:
            return parquet.read_table(io.BytesIO(answer.content)).to_pylist()
    return as_values(rows)


def as_values(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            name: None
            if value in (None, "")
            else Decimal(value)
            if name in NUMBERS
            else datetime.fromisoformat(value)
            if name.endswith("_at")
            else date.fromisoformat(value)
            if name == "date"
            else int(value)
            if name == "call_id"
            else value
            for name, value in row.items()
        }
        for row in rows
    ]


@pytest.mark.parametrize("format_", Format)
def test_e9_f3_histories_of_several_symbols_are_one_answer(
    api: RunningApi, core: Core, cli: CommandLine, format_: Format
) -> None:
    days = [{"at": datetime(2010, 3, day, tzinfo=UTC), "amount": 1000 + day} for day in (1, 2, 3)]
    insert(core, days)
    insert(core, days[1:], symbol="IBM")
    caller = api.caller(Scope.READ)
    params = {**SPAN, "format": format_.value, "symbols": "ibm,AAPL,MSFT,IBM"}
    answer = caller.ask("GET", f"history/{DAILY}", params=params)
    assert answer.status_code == 200, answer.text
    each = [("IBM", day) for day in (2, 3)] + [("AAPL", day) for day in (1, 2, 3)]
    if format_ is Format.JSON:
        found = Histories.model_validate_json(answer.content).histories
        assert [one.symbol for one in found] == ["IBM", "AAPL", "MSFT"]
        assert [(one.symbol, bar.date and bar.date.day) for one in found for bar in one.rows] == each
        assert answer.json()["histories"][1] == caller.get(f"history/{DAILY}/AAPL", **SPAN)
        token = caller.token or ""
        with PricingClient(api.url, token, patience=0) as client:
            first, last = SPAN["from"], SPAN["to"]
            bars = client.histories(DAILY, "IBM", "AAPL", "MSFT", first=first, last=last)
            assert {symbol: len(rows) for symbol, rows in bars.items()} == {"IBM": 2, "AAPL": 3, "MSFT": 0}
            assert bars["AAPL"] == client.history(DAILY, "AAPL", first, last)
        return
    if format_ is Format.CSV:
        rows = as_values(list(csv.DictReader(io.StringIO(answer.text, newline=""))))
        span = ("--from", SPAN["from"], "--to", SPAN["to"])
        shown = cli("price", "history", "ibm", "AAPL", "MSFT", "--type", DAILY, *span, "--csv")
        assert shown.stdout.splitlines() == answer.text.splitlines()
        assert "add --csv" in cli("price", "history", "IBM", "AAPL", "--type", DAILY).error
    elif format_ is Format.ARROW:
        rows = pa.ipc.open_stream(answer.content).read_all().to_pylist()
    else:
        rows = parquet.read_table(io.BytesIO(answer.content)).to_pylist()
    assert [(row["symbol"], row["date"].day) for row in rows] == each
    assert [row["close"] for row in rows] == [Decimal(1000 + day) / 100 for _, day in each]
    assert [*rows[0]] == [*lines.COLUMNS]


def test_f3_histories_that_cannot_be_read_are_refused_together(api: RunningApi, core: Core) -> None:
    caller = api.caller(Scope.READ)
    for symbols, status, words in (
        ("AAPL,NOSUCH", 404, "NOSUCH"),
        ("", 422, "symbols"),
        (
            ",".join(f"S{number}" for number in range(51)),
            422,
            "these are 51, and a request may name 50 histories",
        ),
    ):
        problem = caller.refusal("GET", f"history/{DAILY}", params={**SPAN, "symbols": symbols})
        assert (problem["status"], words in problem["detail"]) == (status, True), problem


def test_f3_history_is_read_as_it_was_believed(api: RunningApi, core: Core, clock: Clock) -> None:
    at = datetime(2010, 3, 2, tzinfo=UTC)
    insert(core, [{"at": at, "amount": 1000}])
    core.rows(
        "INSERT INTO pricing.price_revisions (data_type, symbol, observed_at, amount, scale, currency, provider,"
        " call_id, recorded_at, revised_at, revised_by, adjustment) VALUES (:type, 'AAPL', :at, 900, 2, 'USD',"
        " 'twelvedata', 1, '2010-03-20Z', '2010-04-01Z', 7, 'raw')",
        type=DAILY,
        at=at,
    )
    caller = api.caller(Scope.READ)
    for format_ in Format:
        closes = {
            moment: [row["close"] for row in read(caller, format_, as_of=moment)]
            for moment in ("2010-03-19T00:00:00Z", "2010-03-31T12:00:00Z", "2010-04-02T02:00:00+02:00")
        }
        assert list(closes.values()) == [[], [Decimal("9.00")], [Decimal("10.00")]], format_


def test_f3_a_restatement_is_told_whole_or_not_at_all(
    api: RunningApi, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of one history are of one moment, whatever is written between them."""
    days = [{"at": datetime(2010, 3, 1, tzinfo=UTC) + timedelta(days=n)} for n in range(20)]
    insert(core, days)
    monkeypatch.setattr(price_reader, "_ROWS_OF_A_PART", 5)
    parts = price_reader.history_parts

    def restated(*args: Any, **kwargs: Any) -> Iterator[Columns]:
        for number, part in enumerate(parts(*args, **kwargs)):
            yield part
            if number == 0:
                core.rows("UPDATE pricing.price_history SET amount = amount / 4")

    caller = api.caller(Scope.READ)
    for format_ in (Format.JSON, Format.ARROW):
        (before,) = {row["close"] for row in read(caller, format_)}
        monkeypatch.setattr(price_reader, "history_parts", restated)
        assert [row["close"] for row in read(caller, format_)] == [before] * 20
        monkeypatch.setattr(price_reader, "history_parts", parts)


def test_f3_years_of_history_take_little_memory(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three years of a quote, of an hour each: they are on disk, and some thousand rows in memory."""
    monkeypatch.setattr(price_reader, "_ROWS_OF_A_PART", 1000)
    monkeypatch.setattr(history, "IN_MEMORY", 400_000)
    rows = 3 * 365 * 24
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, currency, provider,"
        " call_id, fetched_at) SELECT 'equity_quote', 'AAPL', timestamptz '2000-01-01Z' + n * interval '1 hour',"
        f" 12345678, 2, 'USD', 'twelvedata', 7, '2020-01-01Z' FROM generate_series(0, {rows - 1}) n"
    )
    sizes: list[int] = []
    parts = price_reader.history_parts

    def counted(*args: Any, **kwargs: Any) -> Iterator[Columns]:
        for part in parts(*args, **kwargs):
            sizes.append(len(part.observed_at) // 8)
            yield part

    monkeypatch.setattr(price_reader, "history_parts", counted)
    for format_ in (Format.CSV, Format.ARROW):
        asked = history._Selection(
            QUOTE, ["AAPL"], False, date(1990, 1, 1), date(2030, 1, 1), None, None, format_, Decimals.POINT
        )
        # Modules that the first answer imports are not part of a history.
        history._write(core.engine, replace(asked, last=date(2000, 1, 2))).file.close()
        sizes.clear()
        tracemalloc.start()
        try:
            written = history._write(core.engine, asked)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        with written.file as file:
            assert (sum(sizes), max(sizes) <= 1024) == (rows, True)
            assert written.length > 1_500_000
            assert peak < 1_800_000, "all parts or all bytes at once take more than 2,700,000"
            body = file.read()
        assert len(body) == written.length
        if format_ is Format.ARROW:
            assert pa.ipc.open_stream(body).read_all().num_rows == rows
        else:
            assert body.count(b"\n") == rows + 1


@pytest.mark.own_sessions
def test_f3_a_database_that_is_lost_in_the_middle_is_a_problem(
    api: RunningApi, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never a body that ends early and looks whole."""
    insert(core, [{"at": datetime(2010, 3, 1, tzinfo=UTC) + timedelta(days=n)} for n in range(20)])
    monkeypatch.setattr(price_reader, "_ROWS_OF_A_PART", 5)
    parts = price_reader.history_parts

    def interrupted(connection: Any, *args: Any, **kwargs: Any) -> Iterator[Columns]:
        for part in parts(connection, *args, **kwargs):
            yield part
            lost = connection.connection.driver_connection.info.backend_pid
            assert core.call("SELECT pg_terminate_backend(:pid)", pid=lost)

    monkeypatch.setattr(price_reader, "history_parts", interrupted)
    caller = api.caller(Scope.READ)
    for format_ in Format:
        problem = caller.refusal("GET", f"history/{DAILY}/AAPL", params={**SPAN, "format": format_.value})
        assert (problem["status"], problem["type"]) == (503, "urn:pricing-pipeline:database-error"), problem
    monkeypatch.setattr(price_reader, "history_parts", parts)
    assert len(read(caller, Format.JSON)) == 20


def test_f3_history_does_not_wait_for_tables_of_demand(api: RunningApi, core: Core) -> None:
    insert(core, [{"at": datetime(2010, 3, 1, tzinfo=UTC)}])
    caller = api.caller(Scope.READ)
    with core.owner.begin() as connection:
        tables = "active_subscriptions, pricing.holdings, pricing.demand, pricing.latest_prices"
        connection.execute(text(f"LOCK TABLE pricing.{tables}, pricing.api_call_queue IN ACCESS EXCLUSIVE MODE"))
        assert len(read(caller, Format.JSON)) == 1
        connection.rollback()


def test_f3_a_full_disk_is_a_problem(api: RunningApi, core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(core, [{"at": datetime(2010, 3, 1, tzinfo=UTC)}])
    monkeypatch.setattr(history, "IN_MEMORY", 10)
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    problem = api.caller(Scope.READ).refusal("GET", f"history/{DAILY}/AAPL", params=SPAN)
    assert (problem["status"], "/nonexistent" in problem["detail"]) == (503, True), problem


def test_f3_a_slow_reader_keeps_no_session(api: RunningApi, core: Core) -> None:
    insert(core, [{"at": datetime(2010, 3, 1, tzinfo=UTC), "quality": "x" * 2000}])
    token = api.caller(Scope.READ).token
    with api.client.stream(
        "GET", f"/v1/history/{DAILY}/AAPL", params=SPAN, headers={"Authorization": f"Bearer {token}"}
    ) as answer:
        assert answer.status_code == 200
        held = core.one(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND xact_start IS NOT NULL AND backend_type = 'client backend'"
        )
        assert held == 0
        assert len(json.loads(answer.read())["rows"]) == 1


@pytest.mark.parametrize("adjust", ["splits", "total"])
def test_f5_an_adjusted_history_says_where_a_split_may_be_missing(api: RunningApi, core: Core, adjust: str) -> None:
    first = datetime(2010, 3, 1, tzinfo=UTC)
    insert(core, [{"at": first, "amount": 9000}, {"at": first + timedelta(days=1), "amount": 4500}])
    caller = api.caller(Scope.READ)
    warning = "On 2010-03-02 the price steps like a split of 2:1, and none is known. If it was one: pricing-"
    where = f"history/{DAILY}/AAPL"
    (told,) = caller.get(where, **SPAN, adjust=adjust)["warnings"]
    assert told.startswith(warning)
    answer = caller.ask("GET", where, params={**SPAN, "adjust": adjust, "format": "arrow"})
    assert answer.headers["x-price-warnings"] == "1"
    assert pa.ipc.open_stream(answer.content).schema.metadata[b"warnings"].decode() == told
    for others in ({}, {"adjust": "raw"}, {"adjust": adjust, "to": "2010-03-01"}):
        plain = caller.ask("GET", where, params={**SPAN, **others})
        assert (plain.json()["warnings"], "x-price-warnings" in plain.headers) == ([], False)


def test_f5_a_total_return_names_the_payments_that_it_cannot_count(api: RunningApi, core: Core) -> None:
    first = datetime(2010, 3, 1, tzinfo=UTC)
    core.heartbeat("ann", (DAILY, "AAPL"))
    insert(core, [{"at": first + timedelta(days=day), "amount": 5000} for day in range(3)])
    core.rows("UPDATE pricing.price_history SET currency = 'GBP'")
    core.rows("SELECT pricing.enter_action('equity', 'AAPL', '2010-03-02', 'dividend', NULL, NULL, 0.1, 'USD', 'ann')")
    caller, where = api.caller(Scope.READ), f"history/{DAILY}/AAPL"
    for format_ in Format:
        answer = caller.ask("GET", where, params={**SPAN, "adjust": "total", "format": format_.value})
        problem = answer.json()
        assert (answer.status_code, problem["type"]) == (422, "urn:pricing-pipeline:uncounted-payments")
        assert "dividend of 0.1 USD on 2010-03-02: no rate USD/GBP of that day" in problem["detail"]
        assert problem["payments"] == [
            {
                "ex_on": "2010-03-02",
                "reason": "no_rate",
                "kind": "dividend",
                "amount": "0.1",
                "currency": "USD",
                "into": "GBP",
            }
        ]
    assert "payments" not in caller.ask("GET", f"history/{DAILY}/NOPE").json()
    later = caller.get(where, **{**SPAN, "from": "2010-03-02"}, adjust="total")["rows"]
    assert [row["quality"] for row in later] == [None, None]
    (before,) = caller.get(where, **{**SPAN, "to": "2010-03-01"}, adjust="total")["rows"]
    assert before["quality"].startswith("not counted: dividend of 0.1 USD on 2010-03-02")


def test_f3_whoever_goes_away_leaves_no_file_behind(
    api: RunningApi, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = datetime(1996, 1, 1, tzinfo=UTC)
    insert(core, [{"at": at + timedelta(days=day), "quality": "x" * 2000} for day in range(5000)])
    files: list[Any] = []

    def made(**more: Any) -> Any:
        files.append(SpooledTemporaryFile(**more))  # noqa: SIM115 - who sends it closes it
        return files[-1]

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", made)
    span = {"from": "1996-01-01", "to": "2010-01-01"}
    headers = {"Authorization": f"Bearer {api.caller(Scope.READ).token}"}
    gc.disable()  # it would close them some time
    try:
        for _ in range(3):
            with api.client.stream("GET", f"/v1/history/{DAILY}/AAPL", params=span, headers=headers) as answer:
                assert answer.status_code == 200
                assert next(answer.iter_raw())
        wait_until(lambda: all(file.closed for file in files))
    finally:
        gc.enable()
    assert len(files) == 3


def test_f3_an_answer_that_the_client_has_is_not_sent_again(api: RunningApi, core: Core) -> None:
    insert(core, [{"at": datetime(2010, 3, 1, tzinfo=UTC)}])
    caller = api.caller(Scope.READ)
    tags = {}
    for format_ in Format:
        params = {**SPAN, "format": format_.value}
        first = caller.ask("GET", f"history/{DAILY}/AAPL", params=params, headers={"Accept-Encoding": "identity"})
        tags[format_] = first.headers["etag"]
        assert int(first.headers["content-length"]) > 0
        again = caller.ask(
            "GET",
            f"history/{DAILY}/AAPL",
            params=params,
            headers={"If-None-Match": f'"other", {tags[format_]}'},
        )
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tags[format_])
    assert len(set(tags.values())) == 4
    insert(core, [{"at": datetime(2010, 3, 2, tzinfo=UTC)}])
    for format_, tag in tags.items():
        params = {**SPAN, "format": format_.value}
        new = caller.ask("GET", f"history/{DAILY}/AAPL", params=params, headers={"If-None-Match": tag})
        assert (new.status_code, new.headers["etag"] != tag) == (200, True)


def test_f3_the_client_chooses_the_format(api: RunningApi) -> None:
    caller = api.caller(Scope.READ)
    for accept, media in (
        (None, "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("text/*", "text/csv"),
        (f"text/html, {ARROW};q=0.9, */*;q=0.1", ARROW),
        ("application/json;q=0.5, application/vnd.apache.parquet", "application/vnd.apache.parquet"),
        ("application/json;q=0.5, TEXT/CSV ; q=0.6", "text/csv"),
        ("text/html", None),
        ("application/json;q=0", None),
        ("text/csv;q=x", None),
    ):
        headers = {"Accept": accept} if accept is not None else {"Accept": ""}
        if media is None:
            problem = caller.refusal("GET", f"history/{DAILY}/AAPL", headers=headers)
            assert (problem["status"], "text/csv" in problem["detail"]) == (406, True)
        else:
            answer = caller.ask("GET", f"history/{DAILY}/AAPL", headers=headers)
            assert answer.headers["content-type"].partition(";")[0] == media
            assert "Accept" in answer.headers["vary"]


def test_f3_text_is_compressed_and_columns_are_not(api: RunningApi, core: Core) -> None:
    insert(core, [{"at": datetime(2010, 3, 1, tzinfo=UTC) + timedelta(days=n)} for n in range(20)])
    caller = api.caller(Scope.READ)
    for format_ in Format:
        answer = caller.ask(
            "GET",
            f"history/{DAILY}/AAPL",
            params={**SPAN, "format": format_.value},
            headers={"Accept-Encoding": "gzip"},
        )
        is_text = format_ in (Format.JSON, Format.CSV)
        assert answer.headers.get("content-encoding") == ("gzip" if is_text else None)
        assert answer.headers["etag"].startswith("W/")


@pytest.mark.parametrize("path", ["EUR/USD", "EUR%2FUSD", "eur/usd"])
def test_f3_a_symbol_may_have_a_slash(api: RunningApi, core: Core, path: str) -> None:
    answer = api.caller(Scope.READ).get(f"history/{FX}/{path}", **SPAN)
    assert (answer["symbol"], answer["rows"]) == ("EUR/USD", [])


def test_f3_days_that_are_left_out_are_the_last_thirty(api: RunningApi, core: Core) -> None:
    today = core.clock().date()
    caller = api.caller(Scope.READ)
    answer = caller.get(f"history/{DAILY}/AAPL")
    assert (answer["from"], answer["to"]) == (str(today - timedelta(days=30)), str(today))
    answer = caller.get(f"history/{DAILY}/AAPL", to="0001-01-05")
    assert (answer["from"], answer["to"]) == ("0001-01-01", "0001-01-05")
    assert caller.get(f"history/{DAILY}/AAPL", **{"from": "0001-01-01", "to": "9999-12-31"})["rows"] == []


REFUSED: list[tuple[str, dict[str, str], int, str]] = [
    ("nosuch/AAPL", {}, 404, "no active data type 'nosuch'"),
    (
        f"{DAILY}/NOSUCH",
        {},
        404,
        "o equity instrument is called 'NOSUCH'; watching it as equity_daily adds it.",
    ),
    (
        "fx_rate/AAPL",
        {},
        404,
        "is called 'AAPL'; exchange rates are of two known currencies, such as EUR/USD. AAPL is of the class equity.",
    ),
    (f"{DAILY}/{'A' * 41}", {}, 422, "40 characters"),
    (f"{DAILY}/AAPL%00", {}, 422, "NUL"),
    (f"{DAILY}/AAPL", {"from": "2010-03-02", "to": "2010-03-01"}, 422, "ends before it begins"),
    (f"{DAILY}/AAPL", {"from": "2999-01-01"}, 422, "has not come yet"),
    (f"{DAILY}/AAPL", {"from": "20100301"}, 422, "write a day like"),
    (f"{DAILY}/AAPL", {"to": "2010-02-30"}, 422, "to"),
    (f"{DAILY}/AAPL", {"as_of": "1700000000"}, 422, "write a time like"),
    (f"{DAILY}/AAPL", {"as_of": "2010-03-01T12:00:00"}, 422, "zone"),
    (f"{DAILY}/AAPL", {"as_of": "0001-01-01T00:00:00+14:00"}, 422, "as_of"),
    (f"{DAILY}/AAPL", {"adjust": "dividends"}, 422, "raw"),
    (f"{DAILY}/AAPL", {"format": "xml"}, 422, "arrow"),
]
"""Path and parameters; status and words of the refusal."""


def test_f3_bad_requests_are_refused_in_words(api: RunningApi) -> None:
    caller = api.caller(Scope.READ)
    for path, params, status, words in REFUSED:
        problem = caller.refusal("GET", f"history/{path}", params=params)
        assert (problem["status"], words in problem["detail"]) == (status, True), (path, params, problem)


def test_f3_a_number_too_long_for_arrow_is_refused_and_json_has_it(api: RunningApi, core: Core) -> None:
    insert(core, [{"at": datetime(2010, 3, 1, tzinfo=UTC), "volume": Decimal(10) ** 25}])
    caller = api.caller(Scope.READ)
    for format_ in (Format.ARROW, Format.PARQUET):
        problem = caller.refusal("GET", f"history/{DAILY}/AAPL", params={**SPAN, "format": format_.value})
        assert (problem["status"], "JSON or CSV" in problem["detail"]) == (422, True)
    assert read(caller, Format.JSON)[0]["volume"] == Decimal(10) ** 25
