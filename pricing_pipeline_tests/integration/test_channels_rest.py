"""Prices in tables of REST services: the table ends as the messages say, whatever fails; no key is told."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline.operations.channels import check_address, send_to_table, shown_address
from pricing_pipeline.operations.handlers import make_handlers
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.notifiers import notifier_process
from pricing_pipeline_tests.support.operations import an_operation
from pricing_pipeline_tests.support.pages import ROOT, blocks
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.receivers import Post, receiving
from pricing_pipeline_tests.support.rest_tables import KEY, RestTable, document, rest_table
from pricing_pipeline_tests.support.secrets_told import FEW, SECRETS, echo, garbage, is_in, told

AT = "2026-11-20T15:00:00Z"


def price(symbol: str, amount: object) -> dict[str, object]:
    return {"data_type": "equity_quote", "symbol": symbol, "price": amount, "observed_at": AT}


def message(*prices: dict[str, object], **payload: object) -> Operation:
    operation = an_operation()
    return replace(operation, payload={**operation.payload, "data": {"prices": list(prices)}, **payload})


def send(url: str, operation: Operation, **changes: Any) -> dict[str, object]:
    return send_to_table(operation, SecretStr(document(url, **changes)), allow_private=True, seconds=20)


def test_e8_prices_become_records_in_as_many_requests_as_needed() -> None:
    operation = message(
        *(price(f"S{n}", f"{n}.10") for n in range(25)), price("S3", "0.123456789012345678901")
    )
    with rest_table() as (table, receiver):
        said = send(f"{receiver.url}/v0/app/table?view=1", operation)
    assert said == {"to": receiver.url, "status": 200, "records": 25, "requests": 3}
    assert len(table.records) == 25
    assert table.records["S4"] == {"Symbol": "S4", "Price": 4.1, "At": AT}
    assert table.taken == [f"{operation.idempotency_key}-{part}" for part in (1, 2, 3)]
    assert b'"Price":0.123456789012345678901' in receiver.posted[0].body, "with all digits"
    assert receiver.posted[0].path == "/v0/app/table?view=1"


@pytest.mark.parametrize(
    ("record", "row", "written"),
    [
        ({"a": "$price"}, "1.10", {"a": "1.10"}),
        ({"a": "$price:number"}, "1.10", {"a": Decimal("1.10")}),
        ({"a": "$price:number"}, 12, {"a": 12}),
        ({"a": "$price:number"}, None, {"a": None}),
        ({"a": "$price", "b": "$provider", "c": "<$provider>"}, "1", {"a": "1", "b": None, "c": "<>"}),
        ({"a": ["$symbol costs $$$price", 7, True, None]}, "1", {"a": ['A"é costs $1', 7, True, None]}),
        ({"a": {"b": "$title to $recipient"}, "c": "$price"}, "1", {"a": {"b": "t$1 to ann"}, "c": "1"}),
    ],
)
def test_e8_placeholders_are_filled(record: dict[str, object], row: object, written: object) -> None:
    operation = message(price('A"é', row), title="t$1")
    with receiving(lambda post: post.answer(200)) as receiver:
        send(receiver.url, operation, record=record, records=None, **{"with": {}}, method="POST")
    assert json.loads(receiver.posted[0].body, parse_float=Decimal) == [written]


def test_e8_a_table_of_messages_gets_a_record_for_each_message() -> None:
    with receiving(lambda post: post.answer(201)) as receiver:
        said = send(receiver.url, an_operation(), record={"What": "$title: $body"}, **{"with": {}})
    assert json.loads(receiver.posted[0].body) == {"records": [{"What": "AAPL is late: for an hour"}]}
    assert said["records"] == 1


def test_e8_a_table_of_prices_skips_a_message_without_any() -> None:
    with rest_table() as (_, receiver):
        said = send(receiver.url, an_operation())
        assert said["skipped"] == "the table takes prices, and the message has none"
        assert "skipped" in send(receiver.url, message())
    assert receiver.posted == []


@pytest.mark.parametrize("data", [{"prices": "many"}, {"prices": [1]}, {"prices": {"a": 1}}])
def test_e8_data_that_are_no_prices_fail_for_good(data: dict[str, object]) -> None:
    with pytest.raises(OperationFailed, match="no list of prices") as failed:
        send("http://127.0.0.1:9/", message(data=data))
    assert failed.value.is_permanent
    with pytest.raises(OperationFailed, match="price of a message is no number"):
        send("http://127.0.0.1:9/", message(price("A", "1,10")))


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        ({}, {"Authorization": f"Bearer {KEY}"}),
        ({"scheme": ""}, {"Authorization": KEY}),
        ({"header": "apikey", "scheme": "", "headers": {"Prefer": "x=y"}}, {"apikey": KEY, "Prefer": "x=y"}),
    ],
)
def test_e8_the_key_goes_where_the_service_wants_it(headers: dict[str, Any], sent: dict[str, str]) -> None:
    with receiving(lambda post: post.answer(200)) as receiver:
        send(receiver.url, message(price("A", "1")), **headers)
    assert sent.items() <= receiver.posted[0].headers.items()


@pytest.mark.parametrize(
    ("answer", "is_permanent", "retry_after"),
    [
        (lambda post: post.answer(429, Retry_After="70"), False, 70),
        (lambda post: post.answer(500), False, None),
        (lambda post: None, False, None),
        (lambda post: post.answer(401), True, None),
        (lambda post: post.answer(422), True, None),
        (lambda post: post.answer(302, Location="http://127.0.0.1:9/"), True, None),
    ],
)
def test_e8_an_answer_decides_whether_it_is_tried_again(
    answer: Callable[[Post], None], is_permanent: bool, retry_after: float | None
) -> None:
    operation = message(*(price(f"S{n}", "1") for n in range(11)))
    taken = []

    def second_fails(post: Post) -> None:
        taken.append(post)
        return answer(post) if len(taken) == 2 else post.answer(200)

    with (
        receiving(second_fails) as receiver,
        pytest.raises(OperationFailed, match="in request 2 of 2") as failed,
    ):
        send(receiver.url, operation)
    assert (failed.value.is_permanent, failed.value.retry_after) == (is_permanent, retry_after)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"url": "http://example.com/"}, "the table's url must begin with https://"),
        ({"url": "https://127.0.0.1/"}, "127.0.0.1 is a private address"),
        ({"url": "https://ann:password@example.com/"}, "the table's url must hold no user or password"),
        ({"url": 1}, "url: Input should be a valid string"),
        ({"method": "DELETE"}, "method: Input should be 'POST', 'PATCH' or 'PUT'"),
        ({"most": 0}, "most: Input should be greater than or equal to 1"),
        ({"most": "10"}, "most: Input should be a valid integer"),
        ({"colour": "red"}, "colour is not known; there are header, headers, key, method"),
        ({"key": "a\nb"}, "key has letters that no header can carry"),
        ({"header": "a b"}, "header has letters that no header can carry"),
        ({"headers": {"Host": "x"}}, "these headers are the pipeline's own"),
        ({"record": {"a": "$colour"}}, "record: $colour is not known; there are $data_type, $symbol"),
        ({"record": {"a": ["$5"]}}, "record: write $$ for a dollar sign"),
        ({"record": {"a": "at $price:number"}}, "stands alone in its string"),
        ({"record": {}}, "record: Dictionary should have at least 1 item"),
        ({"record": {"a": float("nan")}}, "`record` and `with` hold a number that no JSON can hold"),
        ({"with": {"a": float("inf")}}, "hold a number that no JSON can hold"),
        ({"records": None}, "there is no place for what stands in `with`"),
        ({"with": {"records": []}}, "`with` must not hold the list of records"),
    ],
)
def test_e8_a_document_that_cannot_be_used_is_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(OperationFailed) as refused:
        check_address("rest", document("https://example.com/t", **changes), allow_private=False)
    assert sentence in str(refused.value)
    for text in ("{", "[]", '{"url": "https://example.com/"}'):
        with pytest.raises(OperationFailed, match="the document of a table cannot be used: "):
            check_address("rest", text, allow_private=False)


PLACES = (
    "key",
    "url",
    "header",
    "scheme",
    "records",
    "method",
    "colour",
    "with",
    "headers",
    "most",
    "record",
)


@settings(FEW, max_examples=examples(60))
@given(secret=SECRETS, place=st.sampled_from(PLACES), whole=st.booleans())
def test_e8_a_document_that_is_refused_is_not_repeated(secret: str, place: str, whole: bool) -> None:
    text = document("https://127.0.0.1/", **{place: secret}) if whole else secret
    assert not is_in(secret, told(lambda: check_address("rest", text, allow_private=False)))
    fields = document("https://127.0.0.1/", **{secret: 1, "with": {secret: 1}})
    assert not is_in(secret, told(lambda: check_address("rest", fields, allow_private=False)))


@pytest.mark.parametrize(
    "script",
    [lambda post: post.answer(200), lambda post: post.answer(500), echo, garbage, lambda post: None],
    ids=["done", "500", "echo", "garbage", "nothing"],
)
def test_e8_a_table_tells_no_key(script: Callable[[Post], None]) -> None:
    with receiving(script) as receiver:

        @FEW
        @given(secret=SECRETS.filter(lambda text: text.isascii() and " " not in text))
        def holds(secret: str) -> None:
            text = document(f"{receiver.url}/v0", key=secret)
            operation = message(price("A", "1"))
            said = told(lambda: send_to_table(operation, SecretStr(text), allow_private=True, seconds=20))
            assert not is_in(secret, said)
            assert shown_address(SecretStr(text)) == receiver.url

        holds()
        assert receiver.posted


# With the queue


def add_recipient(cli: CommandLine, text: str) -> None:
    assert cli("recipient", "add", "sheet", "rest", "--allow-private", stdin=text).exit_code == 0


def queue(core: Core, *prices: dict[str, object]) -> None:
    core.rows(
        "SELECT pricing.enqueue_message('sheet', 'Prices', 'Two prices', false, CAST(:data AS jsonb))",
        data=json.dumps({"prices": prices}),
    )


def run_due(core: Core, home: Path) -> None:
    runner = OperationRunner(core.engine, make_handlers(core.engine, Settings(home=home)), worker="here")
    try:
        runner.run_due()
    finally:
        runner.close()


def test_e6_e8_prices_reach_a_table_whose_document_is_sealed(
    core: Core, cli: CommandLine, tmp_path: Path
) -> None:
    with rest_table() as (table, receiver):
        file = tmp_path / "table.json"
        file.write_text(json.dumps(json.loads(document(receiver.url)), indent=4))
        added = cli("recipient", "add", "sheet", "rest", "--allow-private", "--address-file", str(file))
        assert added.exit_code == 0
        assert receiver.url in cli("recipient", "show", "sheet").stdout
        stored = core.one("SELECT r::text FROM pricing.recipients r WHERE recipient = 'sheet'")
        assert KEY not in stored + added.stdout + cli("recipient", "show", "sheet", "--json").stdout
        queue(core, price("AAPL", "530.37"), price("IBM", 118.04))
        run_due(core, cli.home)
        (row,) = core.rows("SELECT status, result, idempotency_key FROM pricing.async_operations")
    assert (row.status, row.result["records"]) == ("completed", 2)
    assert table.records["AAPL"]["Price"] == 530.37
    assert table.taken == [f"{row.idempotency_key}-1"]


def test_e8_a_notifier_writes_prices_and_its_log_tells_no_key(
    core: Core, cli: CommandLine, database_url: str
) -> None:
    faults = ["500", "drop", None]
    core.rows("UPDATE pricing.operation_types SET first_pause = '1 second' WHERE operation_type = 'rest'")
    with rest_table(lambda: faults.pop(0) if faults else None) as (table, receiver):
        add_recipient(cli, document(receiver.url))
        queue(core, price("AAPL", "530.37"))
        with notifier_process(database_url, cli.home) as process:
            wait_until(lambda: core.one("SELECT count(*) FROM pricing.async_operations_completed") == 1)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert table.records["AAPL"]["Price"] == 530.37
    assert f"{receiver.url} answered with HTTP status 500" in said
    assert KEY not in said


def test_e8_a_test_message_that_a_table_skips_is_not_said_to_be_sent(core: Core, cli: CommandLine) -> None:
    with rest_table() as (_, receiver):
        add_recipient(cli, document(receiver.url))
        runner = OperationRunner(
            core.engine, make_handlers(core.engine, Settings(home=cli.home)), worker="here"
        )
        stop = threading.Event()
        thread = threading.Thread(target=runner.run, args=(stop,), kwargs={"every_seconds": 0.05})
        thread.start()
        try:
            said = cli("notify", "test", "sheet")
        finally:
            stop.set()
            thread.join()
            runner.close()
    assert said.exit_code == 1
    assert "Nothing was sent to sheet: the table takes prices, and the message has none." in said.stdout


@pytest.mark.parametrize("seed", range(4))
def test_e3_e8_a_table_ends_as_the_messages_say_whatever_fails(
    core: Core, cli: CommandLine, clock: Clock, seed: int
) -> None:
    """Messages overtake each other when one of them fails; an older price never takes the place of a newer one."""
    clock.stop()
    chance = random.Random(seed)
    lock = threading.Lock()
    faults = ["drop", "429", "500", "written, then dropped", "written, then 503"] * 8 + [None] * 30 + ["hang"]
    chance.shuffle(faults)

    def fault() -> str | None:
        with lock:
            return faults.pop() if faults else None

    core.rows(
        "UPDATE pricing.operation_types SET time_limit_seconds = 2, max_attempts = 20 WHERE operation_type = 'rest'"
    )
    model: dict[str, float] = {}
    with rest_table(fault) as (table, receiver):
        add_recipient(cli, document(receiver.url, most=3))
        for _ in range(8):
            for _ in range(chance.randint(1, 5)):
                prices = {f"S{chance.randint(0, 9)}": chance.randint(1, 10**6) for _ in range(4)}
                queue(core, *(price(symbol, str(amount)) for symbol, amount in prices.items()))
                model |= prices
            run_due(core, cli.home)
            clock.advance(chance.choice([1, 60, 301]))
        # While the table fails, one message a round is tried.
        for _ in range(200):
            clock.advance(86_400)
            run_due(core, cli.home)
        statuses = {row.status for row in core.rows("SELECT status FROM pricing.async_operations")}
    assert statuses == {"completed"}
    assert {symbol: fields["Price"] for symbol, fields in table.records.items()} == model
    texts = core.rows("SELECT o::text AS said FROM pricing.async_operations o")
    assert not any(KEY in row.said for row in texts)


def test_e8_a_price_of_a_newer_message_that_failed_is_not_left_out(core: Core, cli: CommandLine) -> None:
    with rest_table() as (table, receiver):
        add_recipient(cli, document(receiver.url))
        queue(core, price("AAPL", "1"), price("IBM", "1"))
        queue(core, price("AAPL", "2"))
        queue(core, price("IBM", "3"))
        last = core.one("SELECT max(id) FROM pricing.async_operations")
        assert cli("operation", "cancel", str(last)).exit_code == 0
        run_due(core, cli.home)
        first = core.one("SELECT result FROM pricing.async_operations ORDER BY id LIMIT 1")
    assert {symbol: fields["Price"] for symbol, fields in table.records.items()} == {"AAPL": 2, "IBM": 1}
    assert first["left_out"] == 1


def test_e8_a_newer_message_waits_while_an_older_one_is_being_sent(core: Core, cli: CommandLine) -> None:
    """The first request writes only after the second has come, if that comes at all."""
    second = threading.Event()

    def slow(post: Post) -> None:
        if len(receiver.posted) > 1:
            table(post)
            second.set()
        else:
            second.wait(1)
            table(post)

    table = RestTable()
    with receiving(slow) as receiver:
        add_recipient(cli, document(receiver.url))
        queue(core, price("AAPL", "1"))
        runner = OperationRunner(
            core.engine, make_handlers(core.engine, Settings(home=cli.home)), worker="here"
        )
        stop = threading.Event()
        thread = threading.Thread(target=runner.run, args=(stop,), kwargs={"every_seconds": 0.05})
        thread.start()
        try:
            wait_until(lambda: len(receiver.posted) == 1)
            queue(core, price("AAPL", "2"))
            wait_until(lambda: core.one("SELECT count(*) FROM pricing.async_operations_completed") == 2)
        finally:
            stop.set()
            thread.join()
            runner.close()
    assert table.records["AAPL"]["Price"] == 2


def test_e8_the_pages_document_of_airtable_writes_prices() -> None:
    (text,) = [block for block in blocks(ROOT / "docs/alerts.md", "json") if "performUpsert" in block]
    check_address("rest", text, allow_private=False)
    with rest_table() as (table, receiver):
        said = send(receiver.url, message(price("AAPL", "530.37")), record=json.loads(text)["record"])
    assert said["records"] == 1
    assert table.records == {"AAPL": {"Symbol": "AAPL", "Price": 530.37, "At": AT}}
