"""`/` and what its page fetches. The page itself has no data and needs no token; `/v1/page` has, and does."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from sqlalchemy import Engine

from pricing_pipeline.api.access import Reader
from pricing_pipeline.api.page import documentation
from pricing_pipeline.api.page.reading import Reading, Readings
from pricing_pipeline.api.page.rendering import sections
from pricing_pipeline.api.problems import Refused
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.processes import home
from pricing_pipeline.settings import Settings

shell = APIRouter(include_in_schema=False)
"""The page without data."""
router = APIRouter(tags=["page"])
"""What it shows, below `/v1`."""

_FOLDER = Path(__file__).parent
_TYPES = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
_HEADERS = {
    # Nothing but our own files, and nobody else's frame around them.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


class Page:
    """The newest reading and its HTML, which all open pages share."""

    def __init__(self, engine: Engine, ui_url: str | None, asset_prefix: str | None = None) -> None:
        self._readings = Readings(engine)
        self._ui_url = ui_url
        self._asset_prefix = asset_prefix
        self._turn = threading.Lock()
        self._rendered: dict[bool, tuple[Reading, str, str]] = {}

    def sections(self, *, may_operate: bool, anew: bool) -> tuple[str, str]:
        """The HTML of all sections, and its tag, which changes when the HTML does."""
        reading = self._readings.newest(anew=anew)
        with self._turn:
            known = self._rendered.get(may_operate)
            if known is None or known[0] is not reading:
                html = sections(
                    reading,
                    ui_url=self._ui_url,
                    asset_prefix=self._asset_prefix,
                    may_operate=may_operate,
                )
                tag = hashlib.sha256(html.encode()).hexdigest()[:32]
                known = self._rendered[may_operate] = reading, html, f'"{tag}"'
        return known[1:]


def ui_url(settings: Settings | None) -> str | None:
    """Where people open the Dagster UI; None if that is not known."""
    return None if settings is None else settings.ui_url or home.urls(settings.home).get("dagster")


@shell.get("/")
async def page() -> Response:
    """The page without data; its script fetches the sections."""
    return FileResponse(_FOLDER / "static/page.html", headers=_HEADERS, media_type="text/html")


@shell.get("/ops/docs/{name}.md")
def read_documentation(name: str) -> Response:
    """A page of the documentation, for links such as those to the runbook."""
    html = documentation.page(name)
    if html is None:
        raise Refused(404, "no-such-path", "There is no such page, or this installation has no documentation")
    return HTMLResponse(html, headers=_HEADERS)


@router.get("/page", response_class=HTMLResponse)
def read_sections(
    request: Request,
    caller: Reader,
    if_none_match: Annotated[str | None, Header()] = None,
    cache_control: Annotated[str | None, Header()] = None,
) -> Response:
    """All sections as HTML, or 304 when they are as before. `Cache-Control: no-cache` asks for this moment's."""
    shown: Page = request.app.state.page
    may_operate = caller.token.allows(Scope.OPERATE)
    html, tag = shown.sections(may_operate=may_operate, anew=cache_control == "no-cache")
    headers: dict[str, Any] = {"ETag": tag}
    if if_none_match is not None and tag in if_none_match:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(html, headers=headers)


@shell.get("/ops/{name}")
async def static(name: str) -> Response:
    """How the page looks, and what it does."""
    if name not in _TYPES:
        raise HTTPException(404)
    return FileResponse(_FOLDER / "static" / name, media_type=_TYPES[name])
