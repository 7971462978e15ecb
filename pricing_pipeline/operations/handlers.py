"""What does each type of side effect: messages go to their recipient by its channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pricing_pipeline.errors import OperationFailed, PricingError, UnknownRecipient
from pricing_pipeline.keys import master_keys
from pricing_pipeline.operations import recipients
from pricing_pipeline.operations.channels import send_message, send_to_log, send_webhook
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.operations.recipients import Address, Recipient
from pricing_pipeline.operations.runner import Handler
from pricing_pipeline.settings import Settings

if TYPE_CHECKING:
    from sqlalchemy import Engine


def make_handlers(engine: Engine, settings: Settings) -> Mapping[str, Handler]:
    """A handler for each type of side effect that the pipeline itself queues."""
    messages = Messages(engine, settings)
    return {
        "email": messages.send,
        "sms": messages.send,
        "chat": messages.send,
        "webhook": messages.post,
        "log": messages.keep,
    }


def for_active_recipients(engine: Engine, handler: Handler) -> Handler:
    """A handler of the user's own, which is not called for a recipient who has become inactive."""

    def handle(operation: Operation) -> object:
        name = operation.payload.get("recipient")
        if isinstance(name, str):
            with engine.connect() as connection:
                found = recipients.stored(connection, name)
            if found and found[0].channel == operation.operation_type and not found[0].is_active:
                raise OperationFailed(_inactive(name), is_permanent=True)
        return handler(operation)

    return handle


def _inactive(name: str) -> str:
    return f"{name} is inactive: nothing is sent"


class Messages:
    """Sends messages to recipients. Their addresses are opened for each message, in memory alone."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings

    def send(self, operation: Operation) -> object:
        """Send an e-mail, a short message or a chat message. Raises OperationFailed."""
        recipient = self._recipient(operation)
        address = self._address(recipient)
        return send_message(operation, address.url, allow_private=recipient.allows_private)

    def post(self, operation: Operation) -> object:
        """Post to a webhook, signed. Raises OperationFailed."""
        recipient = self._recipient(operation)
        address = self._address(recipient)
        assert address.secret is not None  # noqa: S101 - each webhook is stored with one
        return send_webhook(operation, address.url, address.secret, allow_private=recipient.allows_private)

    def keep(self, operation: Operation) -> object:
        """Send nothing; the result is what would have been sent. Raises OperationFailed."""
        self._recipient(operation)
        return send_to_log(operation)

    def _recipient(self, operation: Operation) -> Recipient:
        try:
            with self._engine.connect() as connection:
                recipient = recipients.find(connection, operation.payload["recipient"])
        except UnknownRecipient as error:
            raise OperationFailed(str(error), is_permanent=True) from error
        except PricingError as error:  # the database comes back
            raise OperationFailed(str(error)) from error
        if not recipient.is_active:
            raise OperationFailed(_inactive(recipient.recipient), is_permanent=True)
        if recipient.channel != operation.operation_type:
            raise OperationFailed(
                f"{recipient.recipient} is told by {recipient.channel}, not by {operation.operation_type}",
                is_permanent=True,
            )
        return recipient

    def _address(self, recipient: Recipient) -> Address:
        try:
            return recipients.open_address(master_keys.load(self._settings), recipient)
        except PricingError as error:  # a master key that is missing may come back
            raise OperationFailed(str(error)) from error
