"""The HTTP server around one sandbox: mounts, start, stop. What is answered is decided elsewhere.

/twelvedata/...   as https://api.twelvedata.com/...
/mfapi/...        as https://api.mfapi.in/...
/yahoo/...        as https://query1.finance.yahoo.com/...
/fmp/...          as https://financialmodelingprep.com/stable/..., also below /fmp/stable
/octo/...         as a partner that follows OCTO
/headout/...      as https://www.headout.com/api/public/v1/...
/uex/...          as https://api.uexcorp.space/2.0/..., also below /uex/2.0
/_sandbox/...     control and audit
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pricing_pipeline.errors import SupervisorError
from pricing_pipeline.processes.connections import server_config
from pricing_pipeline.sandbox.calls import Dialect
from pricing_pipeline.sandbox.control import control_routes
from pricing_pipeline.sandbox.service import Clock, Sandbox, system_clock
from pricing_pipeline.sandbox.settings import SandboxSettings

__all__ = ["SandboxSettings", "create_app", "listen", "make_server", "serve"]


_LOOPBACK = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)


def create_app(settings: SandboxSettings, clock: Clock = system_clock) -> Starlette:
    """The application for these settings; `app.state.sandbox` is its Sandbox. `clock` gives aware UTC times.

    Raises SettingsError for recordings that cannot be read.
    """
    sandbox = Sandbox(settings, clock)

    def provider_route(provider: Dialect) -> Route:
        async def answer(request: Request) -> Response:
            return await sandbox.call(provider, request)

        return Route("/{endpoint:path}", answer, methods=["GET", "POST"])

    mounts = [Mount(f"/{name}", routes=[provider_route(provider)]) for name, provider in sandbox.providers.items()]
    app = Starlette(
        routes=[*mounts, Mount("/_sandbox", routes=control_routes(sandbox))],
        middleware=[Middleware(NoWebPages)],
    )
    app.state.sandbox = sandbox
    return app


class NoWebPages:
    """Middleware that answers programs and refuses pages in a browser, because any web site could have one open.

    Browsers name the page's origin, or say that it is another site's. A name that was made to point here (DNS
    rebinding) is not a loopback name.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        is_page = "origin" in headers or headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if is_page or not _LOOPBACK.fullmatch(headers.get("host", "")):
            refused = JSONResponse({"error": "the sandbox is for programs, and not for web pages"}, 403)
            await refused(scope, receive, send)
            return
        await self._app(scope, receive, send)


def listen(settings: SandboxSettings) -> socket.socket:
    """The socket the settings ask for, already listening: calls wait in its queue until the server runs.

    Raises SupervisorError when the port is taken or not allowed.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    # Connections of a former server in TIME_WAIT must not forbid a restart; a second listener still fails.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((settings.host, settings.port))
        sock.listen()
    except OSError as error:
        sock.close()
        where = f"{settings.host}:{settings.port}"
        if error.errno == errno.EADDRINUSE:
            raise SupervisorError(
                f"The sandbox cannot start: {where} is taken by another process. "
                "Stop that one, or choose another port with --port or PRICING_SANDBOX_PORT."
            ) from error
        raise SupervisorError(
            f"The sandbox cannot start: listening on {where} fails ({error.strerror}). "
            "Choose another port with --port or PRICING_SANDBOX_PORT."
        ) from error
    return sock


def make_server(app: Starlette) -> uvicorn.Server:
    """A server for an application of ours, to be run with `sockets=[listen(...)]`."""
    return uvicorn.Server(
        server_config(
            app,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
            date_header=False,  # the sandbox's clock gives the date
        )
    )


def serve(
    settings: SandboxSettings,
    clock: Clock = system_clock,
    *,
    on_listening: Callable[[str, list[str]], None] = lambda url, providers: None,
) -> None:
    """Serve until SIGINT or SIGTERM; `on_listening` is told the URL and the providers below it.

    Raises SupervisorError or SettingsError when it cannot start.
    """
    with listen(settings) as sock:
        app = create_app(settings, clock)
        sandbox: Sandbox = app.state.sandbox
        on_listening(f"http://{settings.host}:{sock.getsockname()[1]}", sorted(sandbox.providers))
        make_server(app).run(sockets=[sock])
