"""Channels that tell somebody: webhooks, e-mail, chat, SMS, and a log.

None of them knows the database. A channel does an operation and returns what is worth keeping, or raises
OperationFailed. What it returns and raises names the receiver's host or service alone: users, passwords, paths and
queries of addresses are secrets.
"""

from pricing_pipeline.operations.channels.addresses import check_address, shown_address
from pricing_pipeline.operations.channels.log import send_to_log
from pricing_pipeline.operations.channels.messages import send_message
from pricing_pipeline.operations.channels.webhook import send_webhook, verify_signature

__all__ = [
    "check_address",
    "send_message",
    "send_to_log",
    "send_webhook",
    "shown_address",
    "verify_signature",
]
