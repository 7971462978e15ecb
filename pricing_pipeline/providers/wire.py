"""One request on the wire: its bytes go out, the response comes back unpacked, and every fault gets its name.

The bounds are those of transport.py. Which requests are made, and what answers mean, is client.py's business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from urllib.parse import quote, urlencode

import httpcore
import httpx

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import ProviderDown, ProviderError, SchemaDrift
from pricing_pipeline.providers.base import Request, safe_words
from pricing_pipeline.providers.transport import (
    AddressRefused,
    BoundedTransport,
    DeadlinePassed,
    Exchange,
    NameNotResolved,
    Resolver,
    WireBudgetSpent,
    is_loopback,
)
from pricing_pipeline.providers.unpacking import BrokenGzip, UnknownEncoding, UnpackedTooLarge, Unpacker

_HEADERS = ((b"Accept-Encoding", b"gzip"),)


class Wire:
    """Sends requests below one base URL, through pooled connections. Threads share it; close it after use.

    `deadline` is in seconds for each request. `hide` masks keys in a text, for messages of errors.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        *,
        deadline: float,
        resolve: Resolver | None,
        hide: Callable[[str], str],
    ) -> None:
        self._name, self._base_url = name, base_url
        self._deadline = deadline
        self._hide = hide
        # Reading the certificate store takes up to half a second, and the sandbox does not need it.
        secure = base_url.startswith("https:")
        self._transport = BoundedTransport(
            resolve=resolve, ssl_context=httpx.create_ssl_context(trust_env=False) if secure else None
        )
        url = httpx.URL(base_url)
        self._origin = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=b"/")
        self._base_path = url.raw_path.rstrip(b"/")
        self._is_here = is_loopback(url.host)

    def close(self) -> None:
        """Close the pooled connections."""
        self._transport.close()

    def send(self, request: Request, headers: Mapping[str, str], max_bytes: int) -> tuple[Response, bool]:
        """Exchange bytes; returns the response, and whether its size was not announced. Raises ProviderError."""
        with self._transport.exchange(seconds=self._deadline, max_bytes=max_bytes) as exchange:
            seen: list[int] = []
            try:
                return self._stream(request, headers, exchange, seen)
            except _FAULTS as fault:
                error = self._error(fault, exchange, seen[0] if seen else None)
        # Outside the except block, so that no traceback leads to the request and its header.
        raise error

    def _stream(
        self, request: Request, headers: Mapping[str, str], exchange: Exchange, seen: list[int]
    ) -> tuple[Response, bool]:
        target = self._base_path + _target(request)
        headers = {"Accept": "application/json", **dict(request.headers), **headers}
        if request.json is not None:
            headers = {**headers, "Content-Type": "application/json"}
        elif request.form is not None:
            headers = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
        sent = [*_HEADERS, *((name.encode(), value.encode()) for name, value in headers.items())]
        with self._transport.send(self._origin, target, sent, _content(request)) as answer:
            seen.append(answer.status)
            fields: dict[str, str] = {}
            for raw_name, raw_value in answer.headers:
                name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
                fields[name] = f"{fields[name]}, {value}" if name in fields else value
            unpack = Unpacker(fields.get("content-encoding", ""), exchange.max_bytes)
            for chunk in answer.iter_stream():
                unpack.feed(chunk)
            response = Response(
                status=answer.status, headers=fields, body=unpack.finish(), wire_bytes=exchange.received
            )
            return response, "content-length" not in fields

    def _error(self, fault: Exception, exchange: Exchange, status: int | None) -> ProviderError:
        name, arrived = self._name, f"{exchange.received} bytes had arrived"
        kind: type[ProviderError] = ProviderDown
        match fault:
            case DeadlinePassed() | httpcore.TimeoutException():
                message = f"{name} gave no complete answer within {self._deadline:g} s ({arrived})"
            case WireBudgetSpent() if not exchange.has_head:
                kind = SchemaDrift
                message = f"{name} sent headers or interim answers without end ({arrived})"
            case WireBudgetSpent() | UnpackedTooLarge():
                kind = SchemaDrift
                message = f"{name} sent more than the {exchange.max_bytes} bytes that one answer may have"
            case AddressRefused():
                message = f"{name} was not asked: {fault}. If that is intended, write the address into its base URL"
            case UnknownEncoding():
                kind = SchemaDrift
                message = f"{name} answered in an unrequested encoding: {safe_words(self._hide(str(fault)))!r}"
            case BrokenGzip():
                message = f"{name} sent a body that does not unpack ({arrived})"
            case NameNotResolved():
                words = safe_words(self._hide(str(fault)))
                message = f"{name} was not asked: DNS gives no address for the name of its host ({words})"
            case httpcore.ConnectError(args=(ConnectionRefusedError(),)) if self._is_here:
                message = (
                    f"{name} was not asked: nothing listens there. If that is the sandbox's address, "
                    "`pricing-pipeline up` or `pricing-pipeline sandbox` starts it"
                )
            case _:
                words = safe_words(self._hide(str(fault)))
                message = f"{name} could not be asked or broke off: {words} ({arrived})"
        message = self._hide(f"{message}. The base URL is {self._base_url}")
        error = kind(message, http_status=status, wire_bytes=exchange.received)
        error.was_sent = not isinstance(fault, _NOT_SENT)
        return error


def _target(request: Request) -> bytes:
    """Path and query for the request line; characters that the path has escaped already stay as they are."""
    path = quote(request.path, safe="/%:@!$&'()*+,;=~")
    return f"{path}?{urlencode(request.params)}".encode() if request.params else path.encode()


def _content(request: Request) -> bytes | None:
    """The body of a POST, which is empty without `json` and `form`; a GET has none."""
    if request.method == "GET":
        return None
    if request.form is not None:
        return urlencode(request.form).encode()
    return b"" if request.json is None else json.dumps(request.json, ensure_ascii=False).encode()


_NOT_SENT = (AddressRefused, httpcore.ConnectError, httpcore.ConnectTimeout)
"""The name has no address that may be called, or no connection could be made: a request goes out after that."""
_FAULTS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    DeadlinePassed,
    WireBudgetSpent,
    AddressRefused,
    UnpackedTooLarge,
    UnknownEncoding,
    BrokenGzip,
)
