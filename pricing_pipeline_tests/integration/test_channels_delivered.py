"""Messages from the transaction that causes them to real receivers: recipient, sealed address, queue, channel."""

from __future__ import annotations

import json
import time
from email import message_from_bytes, policy

from pricing_pipeline.operations import recipients
from pricing_pipeline.operations.channels import verify_signature
from pricing_pipeline.operations.handlers import make_handlers
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.support.receivers import mail_server, receiving


def run_due(core: Core, cli: CommandLine) -> None:
    runner = OperationRunner(core.engine, make_handlers(core.engine, Settings(home=cli.home)), worker="here")
    try:
        runner.run_due()
    finally:
        runner.close()


def test_e6_e8_a_webhook_reaches_its_receiver_and_is_tried_again(core: Core, cli: CommandLine) -> None:
    with receiving(lambda post: post.answer(503 if len(receiver.posted) == 1 else 200)) as receiver:
        address = f"{receiver.url}/hook?key=5ecret\n"
        refused = cli("recipient", "add", "ops", "webhook", stdin=address)
        assert "must begin with https://" in refused.error
        added = cli("recipient", "add", "ops", "webhook", "--allow-private", "--json", stdin=address)
        secret = added.json["secret"]
        assert receiver.url in cli("recipient", "show", "ops").stdout
        with core.engine.begin() as connection:
            recipients.send(connection, "ops", "AAPL is late", "for an hour")
        run_due(core, cli)
        (row,) = core.rows("SELECT id, status, errors FROM pricing.async_operations")
        assert row.status == "pending"
        assert row.errors[-1]["message"] == f"{receiver.url} answered with HTTP status 503"
        core.rows("UPDATE pricing.async_operations SET due_at = pricing.clock()")
        run_due(core, cli)
        (row,) = core.rows("SELECT id, status, result, idempotency_key FROM pricing.async_operations")
        assert (row.status, row.result) == ("completed", {"to": receiver.url, "status": 200})
    first, second = receiver.posted
    assert first.body == second.body
    assert first.headers["Idempotency-Key"] == str(row.idempotency_key)
    assert json.loads(first.body)["payload"]["title"] == "AAPL is late"
    for posted in receiver.posted:
        stamp, signature = posted.headers["Pricing-Timestamp"], posted.headers["Pricing-Signature"]
        assert verify_signature(secret, stamp, signature, posted.body, time.time())


def test_e6_e8_an_e_mail_reaches_its_recipient(core: Core, cli: CommandLine) -> None:
    with mail_server() as server:
        address = f"mailto://127.0.0.1:{server.port}?from=ann%40example.com&to=bob%40example.com\n"
        assert "private address" in cli("recipient", "add", "bob", "email", stdin=address).error
        cli("recipient", "add", "bob", "email", "--allow-private", stdin=address)
        with core.engine.begin() as connection:
            recipients.send(connection, "bob", "AAPL is late", "for an hour")
        run_due(core, cli)
    (row,) = core.rows("SELECT status, result, idempotency_key FROM pricing.async_operations")
    assert (row.status, row.result) == ("completed", {"to": "127.0.0.1"})
    message = message_from_bytes(server.messages[0], policy=policy.default)
    assert message["Message-ID"] == f"<{row.idempotency_key}@example.com>"
    assert "bob@example.com by 127.0.0.1" in cli("recipient", "show", "bob").stdout
