"""The network below every provider call and webhook: one deadline, one byte budget, no private addresses.

HTTP clients have a timeout for each operation but none for the whole exchange, so a server that sends one
byte a second, in the headers or the body, can hold a worker for ever (FAULTS 11). Here every
operation on the socket, name resolution too, gets only what is left of the exchange's time, and
every byte that arrives is counted where it arrives. What the bytes mean is client.py's business.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.providers.base import give_key

Resolver = Callable[[str, int], Sequence[str]]
"""Host name and port -> IP addresses in the order to try them. Raises OSError."""

MAX_CONNECTIONS = 10
MAX_HEAD_BYTES = 256 * 1024
"""The most bytes before the body: headers, and interim (1xx) answers, which take as much work as an answer."""
# Below the idle timeout of common servers (nginx 75 s, Node 5 s after headers): a connection that the
# server just closed would fail a call that costs credits.
_KEEPALIVE_SECONDS = 4.0


# Its debug log prints the headers of answers, and a careless provider may repeat our key in one.
logging.getLogger("httpcore").setLevel(logging.INFO)


class DeadlinePassed(Exception):
    """The exchange's time is over."""


class WireBudgetSpent(Exception):
    """More bytes arrived than the exchange may bring."""


class AddressRefused(Exception):
    """The host's name leads to an address that is not on the public internet."""


@dataclass(slots=True)
class Exchange:
    """The limits of one call and its use of them: `deadline` by time.monotonic(), bytes on the wire."""

    deadline: float
    max_bytes: int
    received: int = 0
    has_head: bool = False
    """Whether the head of the answer is complete."""

    def remaining(self) -> float:
        """Seconds left. Raises DeadlinePassed if none are."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise DeadlinePassed
        return left

    def count(self, size: int) -> None:
        """Book bytes that arrived. Raises WireBudgetSpent when they are too many."""
        self.received += size
        if self.received > (self.max_bytes if self.has_head else min(self.max_bytes, MAX_HEAD_BYTES)):
            raise WireBudgetSpent


class _Current(threading.local):
    """The exchange of the calling thread: httpcore's hooks have no argument to pass it through."""

    exchange: Exchange | None = None

    def require(self) -> Exchange:
        if self.exchange is None:
            raise RuntimeError("network use outside of BoundedTransport.exchange(); wrap the call in it")
        return self.exchange


_current = _Current()


class _BoundedStream(httpcore.NetworkStream):
    """A socket that asks the current exchange before each operation. Counts after TLS, before unzipping."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        exchange = _current.require()
        data = self._inner.read(max_bytes, exchange.remaining())
        exchange.count(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _current.require().remaining())

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = _current.require().remaining()
        return _BoundedStream(self._inner.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class NameNotResolved(httpcore.ConnectError):
    """DNS gives no address for the name of a host, so nothing was sent."""


class _BoundedBackend(httpcore.NetworkBackend):
    def __init__(self, resolve: Resolver, *, allow_private: bool) -> None:
        self._inner = httpcore.SyncBackend()
        self._resolve = resolve
        self._allow_private = allow_private

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        exchange = _current.require()
        fault: Exception = httpcore.ConnectError(f"{host} has no address")
        addresses = self._addresses(host, port, exchange)
        for tried, address in enumerate(addresses):
            # An even share each, so that a silent first address leaves time for the next.
            share = exchange.remaining() / (len(addresses) - tried)
            try:
                stream = self._inner.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                fault = error
            else:
                return _BoundedStream(stream)
        raise fault

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        raise AddressRefused("no provider is reached through a unix socket")

    def _addresses(self, host: str, port: int, exchange: Exchange) -> Sequence[str]:
        if is_literal(host):
            # An address that is written in the base URL is meant.
            return ["127.0.0.1", "::1"] if host == "localhost" else [host.strip("[]")]
        addresses = _within(exchange, lambda: self._resolve(host, port))
        for address in addresses:
            if not self._allow_private and not is_public(address):
                raise AddressRefused(f"{host} leads to {address}, which is not on the public internet")
        return addresses


class BoundedTransport:
    """Pooled HTTP connections on which every exchange is bounded.

    `ssl_context` is needed for https; without it a verifying one is made for each connection. `allow_private`
    lets host names lead to private addresses; an address that is written in the URL is always meant.
    """

    def __init__(
        self,
        *,
        resolve: Resolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
        allow_private: bool = False,
    ) -> None:
        self._backend = _BoundedBackend(resolve or system_resolver, allow_private=allow_private)
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl_context,
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_CONNECTIONS,
            keepalive_expiry=_KEEPALIVE_SECONDS,
            network_backend=self._backend,
        )

    @contextmanager
    def exchange(self, *, seconds: float, max_bytes: int) -> Iterator[Exchange]:
        """Bound all that this thread sends through the transport inside the `with` block."""
        before = _current.exchange
        _current.exchange = Exchange(time.monotonic() + seconds, max_bytes)
        try:
            yield _current.exchange
        finally:
            _current.exchange = before

    @contextmanager
    def send(
        self,
        origin: httpcore.URL,
        target: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        content: bytes | None = None,
        method: bytes = b"POST",
    ) -> Iterator[httpcore.Response]:
        """Ask an origin for a target (path and query, ASCII), or send `content` there by `method`.

        The answer's body is streamed, and closed at the end. Raises httpcore's exceptions and those of this module.
        """
        length = [] if content is None else [(b"Content-Length", b"%d" % len(content))]
        request = httpcore.Request(
            method=b"GET" if content is None else method,
            url=httpcore.URL(scheme=origin.scheme, host=origin.host, port=origin.port, target=target),
            headers=[(b"Host", _host(origin)), *length, *headers],
            content=content,
            extensions={"timeout": {"pool": _current.require().remaining()}},
        )
        answer = self._pool.handle_request(request)
        _current.require().has_head = True
        try:
            yield answer
        finally:
            answer.close()

    def connect(self, host: str, port: int) -> socket.socket:
        """A connection for another protocol than HTTP. Only making it is bounded by the exchange, not its use."""
        connected: socket.socket = self._backend.connect_tcp(host, port).get_extra_info("socket")
        return connected

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


def _host(origin: httpcore.URL) -> bytes:
    host = b"[%b]" % origin.host if b":" in origin.host else origin.host
    return host if origin.port is None else b"%b:%d" % (host, origin.port)


def is_literal(host: str) -> bool:
    """True for an IP address or `localhost`: hosts that need no name resolution."""
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """True for an address of this machine, or `localhost`."""
    return host == "localhost" or (is_literal(host) and ipaddress.ip_address(host.strip("[]")).is_loopback)


_SPECIAL = [
    ipaddress.ip_network(block)
    for block in (
        # The special-purpose registries of IANA. A block that holds others of them stands for those, too.
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
        *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("240.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
        # Multicast.
        "224.0.0.0/4",
        # An address from which a cloud answers with credentials or settings, though it looks public.
        "168.63.129.16/32",
    )
]
"""Blocks of addresses in which no host of the internet answers. `ipaddress` takes some of them as global, and which
ones depends on the release of Python."""
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """True for an address of the public internet: unicast, and in no block that has another purpose.

    An IPv6 address that a translator of the network (NAT64) made is judged by the IPv4 address in it.
    """
    ip = ipaddress.ip_address(address.split("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:
            ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        elif ip not in _GLOBAL_UNICAST:
            return False
    return not any(ip in block for block in _SPECIAL)


def system_resolver(host: str, port: int) -> Sequence[str]:
    """The addresses that the operating system knows for a host name."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def _within(exchange: Exchange, resolve: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Run a name resolution that cannot be interrupted (getaddrinfo may take 30 s) inside the deadline.

    A late one is left to end in its daemon thread.
    """
    outcome: list[Sequence[str] | OSError] = []

    def work() -> None:
        try:
            outcome.append(resolve())
        except (OSError, UnicodeError) as error:  # an over-long label is a UnicodeError
            outcome.append(OSError(str(error)))

    thread = threading.Thread(target=work, name="resolve", daemon=True)
    thread.start()
    thread.join(exchange.remaining())
    if not outcome:
        raise DeadlinePassed
    if isinstance(outcome[0], OSError):
        raise NameNotResolved(str(outcome[0]))
    return outcome[0]


def checked_base_url(provider: str, base_url: str, *, sends_key: bool) -> str:
    """The base URL without a trailing slash. Errors do not repeat it, because it may contain a password."""
    try:
        url = httpx.URL(base_url)
        host = url.host  # a ValueError, if it begins with xn-- and stands for no name
    except (httpx.InvalidURL, ValueError):
        raise SettingsError(f"the base URL of {provider} is not a URL. Write https://HOST/PATH.") from None
    if url.scheme not in ("http", "https") or not host:
        raise SettingsError(f"the base URL of {provider} must begin with https://HOST or http://HOST.")
    if url.userinfo or url.query or url.fragment:
        raise SettingsError(
            f"the base URL of {provider} must hold no user, password, query or fragment. "
            f"A key does not belong there. {give_key(provider)}"
        )
    in_clear = url.scheme == "http" and not (is_literal(host) and _is_private_host(host))
    if sends_key and in_clear:
        raise SettingsError(f"the base URL of {provider} would send its key unencrypted to {host}. Use https://.")
    return str(url).rstrip("/")


def _is_private_host(host: str) -> bool:
    return host == "localhost" or not ipaddress.ip_address(host.strip("[]")).is_global
