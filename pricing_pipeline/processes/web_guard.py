"""Guard the Dagster UI, because Dagster's webserver has no login; and keep other people's web pages away from all our
servers.

Any web page can make a browser send requests to this machine. A page cannot choose Host and Origin, nor send JSON to
another origin without asking, so these are checked. This module imports neither Dagster nor the database.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.local_files.own_files import NotPrivate, read_private
from pricing_pipeline.processes import peers
from pricing_pipeline.processes.connections import LONGEST_BODY, in_time
from pricing_pipeline.processes.peers import Address
from pricing_pipeline.settings import Settings

LOGIN = "/login"
TOKEN_FILE = "ui-token"  # noqa: S105 - a file's name
SESSION_SECONDS = 7 * 86_400

_FORM = "application/x-www-form-urlencoded"
_LONGEST_FORM = 4096
_WRONG_SECONDS = 1.0
_WRONG_AT_ONCE = 10
"""How late a wrong token is answered, and how many may wait; more are refused at once. The right token never waits."""

_PAGE = """<!doctype html>
<html lang="en">
<title>Pricing pipeline: log in</title>
<style>body {{ font: 16px sans-serif; margin: 4em auto; max-width: 24em }} input, button {{ font: inherit }}</style>
<h1>Log in</h1>
<p>{words}</p>
<form method="post" action="{action}">
<label>Token <input type="password" name="token" autocomplete="current-password" required autofocus></label>
<button>Log in</button>
</form>
<p>If you followed a link and are logged in: <a href="">continue</a>.</p>
</html>
"""
_PAGE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
    "WWW-Authenticate": "Bearer",
}


def ui_token(settings: Settings) -> str | None:
    """The token that opens the UI: that of PRICING_UI_TOKEN, or of the file `ui-token` in the home; None without one.

    Raises SettingsError when it is too short, when others can read the file, and when it is missing although the UI
    is to listen on an address that other machines reach.
    """
    token, source = _configured_token(settings)
    if token is None and not settings.ui_address.is_loopback:
        raise SettingsError(
            f"PRICING_UI_ADDRESS={settings.ui_address} opens the Dagster UI to other machines, and it has no login. "
            "Set PRICING_UI_TOKEN to what `openssl rand -hex 32` prints, or leave the address out."
        )
    if token is not None and not re.fullmatch("[!-~]{16,}", token):
        raise SettingsError(
            f"the token in {source} must have 16 characters or more, without spaces or accents. "
            "`openssl rand -hex 32` makes one."
        )
    return token


def own_hosts(address: IPv4Address | IPv6Address, port: int, further: Iterable[str]) -> set[str]:
    """Each Host by which a server of ours may be called: loopback, its own address, and further names."""
    names = ["localhost", "127.0.0.1", "[::1]", *further]
    if not address.is_unspecified:
        names.append(in_url(address.compressed))
    return {host for name in names for host in (name, f"{name}:{port}")}


def foreign_refusal(connection: HTTPConnection, hosts: Container[str], setting: str) -> tuple[int, str] | None:
    """The status and message for a request that neither a user's program nor our own page sends; None for all others.

    `hosts` are the values of Host that are ours, in lower case; `setting` lists further ones.
    """
    named, origins = (connection.headers.getlist(name) for name in ("host", "origin"))
    if len(named) != 1 or named[0].lower() not in hosts:
        return 421, f"This server is not called by that name. {setting} lists further names of it."
    scheme = connection.scope["scheme"].replace("ws", "http")
    if any(origin.lower() != f"{scheme}://{named[0]}".lower() for origin in origins):
        return (
            403,
            "Only this server's own pages may send requests to it. "
            "A proxy must pass on Host, and X-Forwarded-Proto for https.",
        )
    return None


def in_url(address: str) -> str:
    """An IP address as URLs have it."""
    return f"[{address}]" if ":" in address else address


class Guard:
    """An ASGI application that passes requests from its own pages and from users' programs on to `app`.

    `hosts` are the values of Host that are ours. With a `token`, each request needs it as `Authorization: Bearer`, or
    the cookie that the login page gives for it. Without one, `is_allowed` says of both ends of a connection whether it
    comes from an account that may ask. `clock` gives Unix time.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Iterable[str],
        token: str | None = None,
        is_allowed: Callable[[Address | None, Address | None], bool] = peers.is_allowed,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._token = token
        self._is_allowed = is_allowed
        self._clock = clock
        self._wrong_tokens_waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request or WebSocket, or have the application do so."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        async def send_unframed(message: Message) -> None:
            # A page in a stranger's frame is clicked on by a user who sees something else.
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Frame-Options"] = "SAMEORIGIN"
            await send(message)

        if scope["type"] == "http":
            receive = in_time(receive, lambda words: HTTPException(408, f"{words}\n"))
        connection = HTTPConnection(scope)
        answer = self._refusal(connection)
        if answer is None and self._token is not None:
            answer = await self._require_login(connection, self._token, receive)
        handler: ASGIApp = answer or self._app
        if answer is not None and scope["type"] == "websocket":
            handler = WebSocketClose()  # answered by 403; uvicorn would log other words as an error
        with suppress(ClientDisconnect):  # nobody waits for an answer, and the log is not for strangers to fill
            await handler(scope, receive, send_unframed)

    def _refusal(self, connection: HTTPConnection) -> Response | None:
        """The refusal of a request that nobody may send; None if it is allowed."""
        stranger = foreign_refusal(connection, self._hosts, "PRICING_UI_HOSTS")
        if stranger is not None:
            return _refused(*stranger)
        # uvicorn takes the other end from X-Forwarded-For, in which anybody may name a connection of ours.
        is_passed_on = "x-forwarded-for" in connection.headers
        if self._token is None and (is_passed_on or not self._is_allowed(*_ends_of(connection))):
            return _refused(
                403,
                "Without a token only programs of the account that runs this server are answered, not a proxy. Set "
                "PRICING_UI_TOKEN.",
            )
        if connection.scope["type"] == "websocket":
            return None
        method = connection.scope["method"]
        if method not in ("GET", "HEAD", "POST"):
            return _refused(405, "Only GET, HEAD and POST are accepted.")
        if (method == "POST" or _has_body(connection)) and not self._takes_body(connection):
            return _refused(415, "A body must be application/json.")
        if "transfer-encoding" in connection.headers:
            return _refused(411, "Say how long the body is: Content-Length.")
        if int(connection.headers.get("content-length", 0)) > LONGEST_BODY:
            return _refused(413, f"A body may have {LONGEST_BODY} bytes at most.")
        # Dagster runs what the address says, unless a browser asks for a page. The path makes no difference here:
        # there are more ways to write it than to read it.
        if "query" in connection.query_params and not _wants_page(connection):
            return _refused(405, "Send GraphQL by POST, as JSON.")
        return None

    def _takes_body(self, connection: HTTPConnection) -> bool:
        kinds = [kind.partition(";")[0].strip() for kind in connection.headers.getlist("content-type")]
        return kinds == ["application/json"] or (kinds == [_FORM] and self._is_login(connection))

    def _is_login(self, connection: HTTPConnection) -> bool:
        scope = connection.scope
        return self._token is not None and (scope.get("method"), scope["path"]) == ("POST", LOGIN)

    # ── The login ────────────────────────────────────────────────────────────────────────────────

    async def _require_login(self, connection: HTTPConnection, token: str, receive: Receive) -> Response | None:
        """None for a session or a request with the token; otherwise the response."""
        if self._is_login(connection):
            return await self._log_in(connection, token, await _guess_of(connection, receive))
        if _is_session(token, connection.cookies.get(_cookie_of(connection), ""), self._clock()):
            return None
        scheme, _, bearer = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return _please_log_in(connection, "This server asks for its token.")
        return await self._refuse_wrong_token(connection, token, bearer.strip())

    async def _log_in(self, connection: HTTPConnection, token: str, guess: str) -> Response:
        refusal = await self._refuse_wrong_token(connection, token, guess)
        if refusal is not None:
            return refusal
        response = RedirectResponse("/", 303)
        response.set_cookie(
            _cookie_of(connection),
            _session(token, round(self._clock()) + SESSION_SECONDS),
            max_age=SESSION_SECONDS,
            secure=connection.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    async def _refuse_wrong_token(self, connection: HTTPConnection, token: str, guess: str) -> Response | None:
        """None for the right token, also while others guess. A wrong one is answered late."""
        if hmac.compare_digest(guess.encode(), token.encode()):
            return None
        if self._wrong_tokens_waiting >= _WRONG_AT_ONCE:
            return _refused(429, "Too many wrong tokens. Try again in a second.")
        self._wrong_tokens_waiting += 1
        try:
            await asyncio.sleep(_WRONG_SECONDS)
        finally:
            self._wrong_tokens_waiting -= 1
        return _please_log_in(connection, "This is not the token.")


def _configured_token(settings: Settings) -> tuple[str | None, str]:
    """The token and where it stands."""
    if settings.ui_token is not None:
        return settings.ui_token.get_secret_value().strip(), "PRICING_UI_TOKEN"
    path = settings.home.absolute() / TOKEN_FILE
    try:
        return read_private(path).strip(), str(path)
    except (FileNotFoundError, NotADirectoryError):
        return None, str(path)
    except NotPrivate as fault:
        raise SettingsError(f"the token in {path} {fault}.") from None
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"the token in {path} cannot be read ({why}). Write it again.") from None


def _ends_of(connection: HTTPConnection) -> tuple[Address | None, Address | None]:
    peer, here = connection.scope.get("client"), connection.scope.get("server")
    return (None if peer is None else tuple(peer)), (None if here is None else tuple(here))


def _has_body(connection: HTTPConnection) -> bool:
    return connection.headers.get("content-length", "0") != "0" or "transfer-encoding" in connection.headers


def _wants_page(connection: HTTPConnection) -> bool:
    """Whether Dagster sends a page for this request and runs nothing; it asks the same."""
    return "text/html" in connection.headers.get("accept", "")


def _refused(status: int, words: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{words}\n", status, headers)


def _please_log_in(connection: HTTPConnection, words: str) -> Response:
    if _wants_page(connection):
        return HTMLResponse(_PAGE.format(words=words, action=LOGIN), 401, _PAGE_HEADERS)
    return _refused(401, f"{words} Send it as Authorization: Bearer.", {"WWW-Authenticate": "Bearer"})


async def _guess_of(connection: HTTPConnection, receive: Receive) -> str:
    """The token of a form; empty if it is missing or too long."""
    body = b""
    try:
        async for chunk in Request(connection.scope, receive).stream():
            body += chunk
            if len(body) > _LONGEST_FORM:
                return ""
    except (ClientDisconnect, HTTPException):  # it left, or was too slow
        return ""
    return parse_qs(body.decode(errors="replace")).get("token", [""])[0].strip()


def _cookie_of(connection: HTTPConnection) -> str:
    """Cookies do not tell ports apart, so that two pipelines on one machine would overwrite each other's."""
    return f"pricing-session-{connection.url.port or connection.url.scheme.replace('ws', 'http')}"


def _session(token: str, ends_at: int) -> str:
    """A session cookie that needs the token to be written. Sessions need no storage, and a new token ends them."""
    return f"{ends_at}.{hmac.digest(token.encode(), f'session until {ends_at}'.encode(), 'sha256').hex()}"


def _is_session(token: str, value: str, now: float) -> bool:
    ends_at, _, _ = value.partition(".")
    if not re.fullmatch("[0-9]{1,12}", ends_at) or int(ends_at) < now:
        return False
    return hmac.compare_digest(value.encode(), _session(token, int(ends_at)).encode())
