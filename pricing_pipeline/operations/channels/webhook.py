"""Webhooks: an operation as a signed JSON document, posted to an address that a user names.

The receiver checks the signature with `verify_signature`, and recognises a repeat by `Idempotency-Key`, which is in the
signed body, too.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import ssl
import time
from datetime import UTC

from pydantic import SecretStr

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline.operations.channels.posting import checked_url, origin_of, seconds_for, send_json
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.providers.transport import Resolver


def send_webhook(
    operation: Operation,
    url: SecretStr,
    secret: SecretStr,
    *,
    allow_private: bool = False,
    seconds: float | None = None,
    resolve: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> dict[str, object]:
    """Post an operation; returns the receiver's origin and HTTP status. Raises OperationFailed.

    Done means a status of 2xx. The body of the answer is never read. `seconds` bounds the whole exchange; without it,
    it is a little less than the operation's time limit. The environment's proxies are not used. `allow_private` allows
    private addresses, and http without TLS.
    """
    if not secret.get_secret_value():
        raise OperationFailed("the webhook has no secret to sign with", is_permanent=True)
    address = checked_url(url.get_secret_value(), allow_private=allow_private)
    body = document(operation)
    timestamp = int(time.time())
    headers = {
        "Idempotency-Key": str(operation.idempotency_key),
        "Pricing-Timestamp": str(timestamp),
        "Pricing-Signature": sign(secret.get_secret_value(), timestamp, body),
    }
    status = send_json(
        address,
        headers,
        body,
        seconds=seconds_for(operation) if seconds is None else seconds,
        allow_private=allow_private,
        resolve=resolve,
        ssl_context=ssl_context,
    )
    return {"to": origin_of(address), "status": status}


def document(operation: Operation) -> bytes:
    """The body of a webhook, the same bytes in each attempt."""
    content = {
        "id": str(operation.idempotency_key),
        "type": operation.operation_type,
        "queued_at": operation.enqueued_at.astimezone(UTC).isoformat(timespec="seconds"),
        "payload": dict(operation.payload),
    }
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """The value of Pricing-Signature."""
    digest = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256)
    return f"v1={digest.hexdigest()}"


def verify_signature(
    secret: str, timestamp: str, signature: str, body: bytes, now: float, tolerance_seconds: float = 300
) -> bool:
    """Whether a webhook is genuine and recent. The texts are those of its headers; `now` is time.time().

    The comparison takes the same time wherever the signatures differ.
    """
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16):
        return False
    if abs(now - int(timestamp)) > tolerance_seconds:
        return False
    return hmac.compare_digest(sign(secret, int(timestamp), body).encode(), signature.encode())
