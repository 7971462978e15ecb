"""How a channel sends bytes to a URL that a user names, and what the answer means.

One deadline bounds the whole exchange. Redirects are never followed, and the body of the answer is never read. Errors
name the receiver's origin and the status alone: paths, queries and headers are secrets.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import cache

import httpcore
import httpx

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.providers.base import parse_retry_after, safe_words
from pricing_pipeline.providers.client import USER_AGENT
from pricing_pipeline.providers.transport import (
    MAX_HEAD_BYTES,
    AddressRefused,
    BoundedTransport,
    DeadlinePassed,
    Resolver,
    WireBudgetSpent,
    is_literal,
    is_public,
)

PRIVATE_ALLOWED = "--allow-private of `recipient add` and `recipient change` allows it"
"""The way out for an address that is refused because it is private."""

_DAY = 86_400.0
_TRY_AGAIN = (408, 425, 429)
_FAULTS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    DeadlinePassed,
    WireBudgetSpent,
    AddressRefused,
)


def send_json(
    address: httpx.URL,
    headers: Mapping[str, str],
    body: bytes,
    *,
    seconds: float,
    allow_private: bool = False,
    resolve: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> int:
    """Send a JSON document to a checked address; returns the HTTP status, which is 2xx. Raises OperationFailed.

    `seconds` bounds the whole exchange. The environment's proxies are not used.
    """
    origin = httpcore.URL(scheme=address.raw_scheme, host=address.raw_host, port=address.port, target=b"/")
    name = origin_of(address)
    sent = {"Content-Type": "application/json", "User-Agent": USER_AGENT, **headers}
    pairs = [(key.encode(), value.encode()) for key, value in sent.items()]
    context = ssl_context or (tls_context() if address.scheme == "https" else None)
    transport = BoundedTransport(resolve=resolve, ssl_context=context, allow_private=allow_private)
    with closing(transport), transport.exchange(seconds=seconds, max_bytes=MAX_HEAD_BYTES):
        try:
            with transport.send(origin, address.raw_path, pairs, body) as answer:
                status = answer.status
                fields = {key.lower(): value.decode("latin-1") for key, value in answer.headers}
        except _FAULTS as fault:
            error = _broken(name, fault, seconds)
        else:
            if 200 <= status < 300:
                return status
            error = _refused(name, status, fields.get(b"retry-after"))
    # Outside the except block, so that no traceback leads to the address.
    raise error


def checked_url(url: str, *, allow_private: bool) -> httpx.URL:
    """The address of a receiver. Raises OperationFailed, without repeating it, because it may contain secrets."""
    address, host = None, ""
    # Raising in an except block would keep the error, which quotes. A host is decoded when it is asked for.
    with suppress(httpx.InvalidURL, ValueError):
        address = httpx.URL(url)
        host = address.host
    if address is None or (not host and address.netloc):
        raise OperationFailed("the webhook's address is not a URL", is_permanent=True)
    if address.scheme not in ("https", "http") or not host:
        raise OperationFailed("the webhook's address must begin with https://HOST", is_permanent=True)
    if address.userinfo:
        raise OperationFailed("the webhook's address must hold no user or password", is_permanent=True)
    if address.scheme == "http" and not allow_private:
        raise OperationFailed(
            "the webhook's address must begin with https://: http is for addresses that may be private. "
            f"{PRIVATE_ALLOWED}",
            is_permanent=True,
        )
    refuse_private(host, allow_private=allow_private)
    return address


def origin_of(address: httpx.URL) -> str:
    """What of an address may be shown."""
    return f"{address.scheme}://{address.netloc.decode('ascii')}"


def refuse_private(host: str, *, allow_private: bool) -> None:
    """Refuse a private address that stands where a host name could. Names are judged when they are resolved."""
    if not allow_private and is_literal(host) and (host == "localhost" or not is_public(host.strip("[]"))):
        raise OperationFailed(f"{host} is a private address. {PRIVATE_ALLOWED}", is_permanent=True)


def seconds_for(operation: Operation) -> float:
    """The time for a channel: less than the operation's, so that the channel can say what took so long."""
    return 0.9 * operation.time_limit_seconds


@cache
def tls_context() -> ssl.SSLContext:
    """A verifying context for servers that users name: it also trusts what this machine trusts."""
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context


def _broken(name: str, fault: Exception, seconds: float) -> OperationFailed:
    match fault:
        case DeadlinePassed() | httpcore.TimeoutException():
            return OperationFailed(f"{name} gave no answer within {seconds:g} s")
        case WireBudgetSpent():
            return OperationFailed(f"{name} sent headers or interim answers without end")
        case AddressRefused():
            return OperationFailed(f"{name} was not sent: {fault}", is_permanent=True)
        case httpcore.ConnectError():
            return OperationFailed(f"{name} cannot be reached: {safe_words(str(fault))}")
        case _:  # what a server sent instead of HTTP is not repeated: it may hold our secrets
            return OperationFailed(f"{name} closed the connection, or its answer is not HTTP")


def _refused(name: str, status: int, retry_after: str | None) -> OperationFailed:
    if status in _TRY_AGAIN or status >= 500:
        wait = parse_retry_after(retry_after, datetime.now(UTC), most=_DAY)
        return OperationFailed(f"{name} answered with HTTP status {status}", retry_after=wait)
    why = ": redirects are never followed" if 300 <= status < 400 else ""
    return OperationFailed(f"{name} refused with HTTP status {status}{why}", is_permanent=True)
