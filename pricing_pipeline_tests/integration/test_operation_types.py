"""Operation types of users' own: added, changed and removed by people; as channels; told of when nobody does them."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.errors import OperationRefused
from pricing_pipeline.operations import operation_queue, recipients
from pricing_pipeline.operations.alert_rules import AWAKE_AFTER, RULES
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.alert_causes import keep_looking
from pricing_pipeline_tests.support.examples import examples

MESSAGE = ("--field", "recipient=string", "--field", "title=string", "--field", "body=string")
KINDS = {"string", "number", "boolean", "object", "array", "url"}
PRICES = {"prices": [{"symbol": "AAPL", "price": "1.10"}]}


def insert(core: Core, name: str, fields: object, **columns: object) -> None:
    columns = {"operation_type": name, "payload_fields": json.dumps(fields), **columns}
    values = ", ".join(f"CAST(:{c} AS jsonb)" if c == "payload_fields" else f":{c}" for c in columns)
    core.rows(f"INSERT INTO pricing.operation_types ({', '.join(columns)}) VALUES ({values})", **columns)


def test_e2_a_type_of_ones_own_lives_from_add_to_remove(core: Core, cli: CommandLine) -> None:
    added = cli(
        "operation-type", "add", "sheet_row", "--field", "symbol=string", "--field", "price=string?",
        "--max-attempts", "5", "--time-limit", "60", "--first-pause", "10", "--description", "Writes a row.",
    )  # fmt: skip
    assert added.exit_code == 0
    assert "wait for a handler: a package with an entry point sheet_row" in added.stdout
    shown = cli("operation-type", "show", "sheet_row", "--json").json
    assert shown["fields"] == {"symbol": "string", "price": "string?"}
    assert (shown["max_attempts"], shown["time_limit_seconds"], shown["first_pause_seconds"]) == (5, 60, 10)
    assert (shown["handler"], shown["is_channel"]) == (None, False)
    assert "none in this installation" in cli("operation-type", "list").stdout
    with core.engine.begin() as connection:
        waits = operation_queue.enqueue(connection, "sheet_row", {"symbol": "AAPL"})
    with (
        pytest.raises(OperationRefused, match="price is not a string"),
        core.engine.begin() as connection,
    ):
        operation_queue.enqueue(connection, "sheet_row", {"symbol": "AAPL", "price": 1})
    refused = cli("operation-type", "remove", "sheet_row").error
    assert refused.startswith("sheet_row is not removed: 1 of its operations wait or are under way")
    assert cli("operation", "cancel", str(waits)).exit_code == 0
    assert cli("operation-type", "change", "sheet_row", "--field", "symbol=string").exit_code == 0
    assert cli("operation-type", "remove", "sheet_row").stdout == "sheet_row is removed.\n"
    assert "no operation type is called 'sheet_row'" in cli("operation-type", "show", "sheet_row").error


def test_e2_a_command_that_cannot_be_done_says_why(core: Core, cli: CommandLine) -> None:
    for command, sentence in (
        (["add", "webhook"], "an operation type 'webhook' already exists"),
        (["add", "9lives"], "an operation type's name has 1 to 48 small letters"),
        (["add", "post", "--field", "price"], "--field 'price' is not a field. Write it like price=string"),
        (["add", "post", "--field", "price=money"], "kinds are string, number, boolean, object, array, url"),
        (["add", "post", "--field", "a=url", "--field", "a=url?"], "--field a is given twice"),
        (["add", "post", "--field", "a b=url"], "a field has a name of letters, digits and _"),
        (["add", "post", "--max-attempts", "0"], "an operation is tried 1 to 20 times"),
        (["add", "post", "--time-limit", "99999999"], "an attempt may take 1 to 240 seconds"),
        (["add", "post", "--first-pause", "0"], "a first pause is 1 second to 1 day"),
        (["change", "webhook"], "give at least one option to change"),
        (["change", "fax", "--inactive"], "no operation type is called 'fax'. There are: chat, email"),
        (["change", "webhook", "--field", "to=url"], "webhook is built in: its fields stay"),
        (["remove", "webhook"], "webhook is not removed: it is built in"),
        (["remove", "log"], "log is not removed: it is built in"),
    ):
        before = core.rows("SELECT t.* FROM pricing.operation_types t ORDER BY 1")
        assert sentence in cli("operation-type", *command).error
        assert core.rows("SELECT t.* FROM pricing.operation_types t ORDER BY 1") == before


def test_e2_the_limits_of_built_in_types_can_be_changed(core: Core, cli: CommandLine) -> None:
    said = cli("operation-type", "change", "webhook", "--max-attempts", "8", "--first-pause", "60", "--json")
    assert (said.json["before"]["max_attempts"], said.json["after"]["max_attempts"]) == (5, 8)
    with core.engine.begin() as connection:
        payload = {"recipient": "ops", "title": "t", "body": "b"}
        operation_queue.enqueue(connection, "webhook", payload)
    assert core.one("SELECT max_attempts FROM pricing.async_operations") == 8


WORDS = st.text('abz_ =?A9"$.é\n', max_size=6)
FIELDS = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS | st.sampled_from([*KINDS, "string?", "url??"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=FIELDS | st.dictionaries(st.sampled_from(["a", "aB_9"]), st.sampled_from([*KINDS, "url?"])))
def test_e2_a_raw_insert_cannot_store_nonsense_fields(core: Core, fields: object) -> None:
    def is_name(name: str) -> bool:
        return name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()

    is_good = isinstance(fields, dict) and all(
        is_name(name) and isinstance(kind, str) and kind.removesuffix("?") in KINDS for name, kind in fields.items()
    )
    refusal = None
    try:
        insert(core, "post", fields)
    except DBAPIError as error:
        refusal = str(error)
    core.rows("DELETE FROM pricing.operation_types WHERE operation_type = 'post'")
    assert (refusal is None) == is_good
    assert is_good or "payload_fields_are_known" in refusal


def test_e8_a_type_that_takes_messages_and_needs_nothing_else_can_be_a_channel(core: Core, cli: CommandLine) -> None:
    message = {"recipient": "string", "title": "string", "body": "string"}
    for number, (fields, is_channel) in enumerate(
        (
            ({}, True),
            ({"data": "object?"}, True),
            ({"colour": "string?"}, True),
            ({"data": "object"}, False),
            ({"data": "string?"}, False),
            ({"colour": "string"}, False),
            ({"body": "object"}, False),
        )
    ):
        name = f"desk_{number}"
        insert(core, name, {**message, **fields})
        assert cli("operation-type", "show", name, "--json").json["is_channel"] == is_channel, fields
    assert cli("recipient", "add", "bob", "desk_2").exit_code == 0
    added = cli("recipient", "add", "ann", "desk_3")
    assert (
        "'desk_3' is not a channel. There are: chat, email, log, sms, webhook, desk_0, desk_1, desk_2." in added.error
    )
    with pytest.raises(DBAPIError, match="channel_takes_messages"):
        core.rows("INSERT INTO pricing.recipients (recipient, channel, created_at) VALUES ('ann', 'desk_3', now())")


def test_e8_data_go_to_channels_that_have_a_field_for_them(core: Core) -> None:
    insert(core, "desk", {"recipient": "string", "title": "string", "body": "string", "data": "object?"})
    sealed = "'k', 'a', 'b', 'c', 'd'"
    for channel, secret in (
        ("log", "NULL, NULL, NULL, NULL, NULL"),
        ("email", sealed),
        ("webhook", sealed),
        ("desk", "NULL, NULL, NULL, NULL, NULL"),
    ):
        core.rows(
            "INSERT INTO pricing.recipients (recipient, channel, created_at, master_key_id, key_nonce, wrapped_key,"
            f" secret_nonce, ciphertext) VALUES ('of_{channel}', '{channel}', pricing.clock(), {secret})"
        )
        core.rows(
            f"SELECT pricing.enqueue_message('of_{channel}', 't', 'b', false, CAST(:data AS jsonb))",
            data=json.dumps(PRICES),
        )
    with core.engine.begin() as connection:
        recipients.send(connection, "of_desk", "A title", "A body")
    rows = core.rows("SELECT operation_type, payload -> 'data' AS data FROM pricing.async_operations ORDER BY id")
    assert [(row.operation_type, row.data) for row in rows] == [
        ("log", None),
        ("email", None),
        ("webhook", PRICES),
        ("desk", PRICES),
        ("desk", None),
    ]


def test_e8_a_type_stays_a_channel_while_recipients_have_it(core: Core, cli: CommandLine) -> None:
    assert ", and can be a channel." in cli("operation-type", "add", "desk", *MESSAGE).stdout
    assert cli("recipient", "add", "ann", "desk").exit_code == 0
    words = "a channel is an operation type that takes recipient, title and body"
    assert words in cli("operation-type", "change", "desk", "--field", "title=string").error
    assert "it is the channel of ann." in cli("operation-type", "remove", "desk").error
    assert "the channel desk takes none" in cli("recipient", "change", "ann", "--address").error
    assert cli("recipient", "remove", "ann").exit_code == 0
    assert cli("operation-type", "remove", "desk").exit_code == 0


# Operations that nobody does


UNHANDLED = [rule for rule in RULES if rule.name == "operation_unhandled"]


def open_alerts(core: Core) -> dict[str, str]:
    rows = core.rows("SELECT rule, subject FROM pricing.alerts WHERE raised_at IS NOT NULL")
    return {row.rule: row.subject for row in rows}


def leave_operation(core: Core, clock: Clock) -> None:
    clock.stop()
    insert(core, "post", {})
    with core.engine.begin() as connection:
        operation_queue.enqueue(connection, "post", {})
    clock.advance(601)


@pytest.mark.parametrize("why", ["begun", "inactive", "later"])
def test_b21_what_waits_for_its_turn_is_not_unhandled(core: Core, clock: Clock, why: str) -> None:
    """Of a long queue some are attempted all the time; an inactive type and a later time are meant."""
    leave_operation(core, clock)
    with core.engine.begin() as connection:
        operation_queue.enqueue(connection, "post", {})
        if why == "begun":
            operation_queue.claim(connection, ["post"], 1, "here")
    if why == "inactive":
        core.rows("UPDATE pricing.operation_types SET is_active = false WHERE operation_type = 'post'")
    if why == "later":
        core.rows("UPDATE pricing.async_operations SET due_at = pricing.clock() + interval '1 hour'")
    clock.advance(500)
    keep_looking(core, clock, AWAKE_AFTER, UNHANDLED)
    assert "operation_unhandled" not in open_alerts(core)
    clock.advance(200)
    keep_looking(core, clock, AWAKE_AFTER, UNHANDLED)
    assert ("operation_unhandled" in open_alerts(core)) == (why == "begun")


def test_b21_an_operation_whose_type_is_gone_is_told(core: Core, clock: Clock) -> None:
    leave_operation(core, clock)
    core.rows("DELETE FROM pricing.operation_types WHERE operation_type = 'post'")
    keep_looking(core, clock, AWAKE_AFTER, UNHANDLED)
    assert open_alerts(core)["operation_unhandled"] == "post"
    told = "SELECT payload ->> 'body' FROM pricing.async_operations WHERE operation_type = 'log'"
    assert "There is no such type any more" in core.one(told)
