"""Which request of a declared provider follows an answer: the next page, by number, offset, cursor or link.

No answer leads anywhere but below the base URL, the declared one or that of `provider try --at`: of a link only path
and query are used, and the client knows no other address. dialogue.py bounds the requests of a call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urljoin, urlsplit

from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import Request, safe_words
from pricing_pipeline.providers.declaration import Endpoint, Paging
from pricing_pipeline.providers.declaration_file import Declared
from pricing_pipeline.providers.declared_calls import Line, Way, line_of
from pricing_pipeline.providers.json_paths import JsonPath
from pricing_pipeline.providers.values import spelling

_LONGEST = 2000
"""Characters of a cursor or a link."""
_MOST_PARAMETERS = 50
_PATH = re.compile(r"(/[A-Za-z0-9._~@:,%=+!$&'()*-]+)+/?")
_DISGUISED = re.compile(r"%(?:2e|2f|5c|25)", re.I)
"""A dot, a slash, a backslash or a percent sign, which a server behind another one may read as the sign itself."""


@dataclass(frozen=True, slots=True)
class At:
    """Where a page begins: what fills {page}, {offset} and {cursor}, or the link that leads to it."""

    page: int = 0
    """How many pages come before it."""
    offset: int = 0
    """How many rows come before it."""
    cursor: str | int | None = None
    link: Request | None = None
    total: int | None = None
    """How many rows all pages have, as the first has said."""

    def parts(self, endpoint: Endpoint) -> dict[str, str | int]:
        """The values of the placeholders in a request for this page."""
        first = 1 if endpoint.pages is None else endpoint.pages.first
        cursor = {} if self.cursor is None else {"cursor": self.cursor}
        return {"page": self.page + first, "offset": self.offset, **cursor}


class PageOrder:
    """The pages of one call, in turn. Raises SchemaDrift for an answer that leads to none, or in a circle."""

    def __init__(self, declared: Declared, base_url: str, way: Way, paging: Paging) -> None:
        self._base_urls = tuple(dict.fromkeys((base_url, declared.declaration.base_url)))
        self._is_xml = way.is_xml
        self._paging = paging
        self._path = JsonPath(paging.path)
        key = declared.declaration.key
        self._key_parameter = None if key is None else key.query
        at = line_of(declared, (*way.endpoint_place, "pages", paging.kind))
        self._what = f"{declared.declaration.name}'s answer names as `{paging.path}` ({at})"
        self._seen: set[object] = set()
        self._pages: list[list[Line]] = []
        self._rows: set[str] = set()
        self.repeated = 0
        """How many rows an earlier page had, too."""

    def fresh(self, page: Sequence[Line]) -> list[Line]:
        """The rows of a page that no earlier page has: services repeat the last ones, or the list grows meanwhile."""
        texts = list(map(repr, page))
        found = [line for line, text in zip(page, texts, strict=True) if text not in self._rows]
        self._rows.update(texts)
        self.repeated += len(page) - len(found)
        return found

    def after(self, at: At, request: Request, body: object, page: list[Line]) -> At | None:
        """Where the page begins that follows this one, which has these rows; None if it was the last."""
        found = self._path.one(body, {}, is_xml=self._is_xml)
        following = replace(at, page=at.page + 1, offset=at.offset + len(page))
        if page and page in self._pages:
            raise self._torn(found, f"and its page {following.page} has the rows of an earlier one")
        self._pages.append(page)
        match self._paging.kind:
            case "more":
                if not found:
                    return None
            case "total":
                following = self._within(following, found)
                if following.offset == following.total:
                    return None
            case _:
                return self._led(following, request, found)
        if not page:
            raise self._torn(found, f"and its page {following.page} has no rows")
        return following

    def _within(self, following: At, total: object) -> At:
        """Raise SchemaDrift if the pages so far are not the beginning of one whole list."""
        if self._is_xml and isinstance(total, str) and re.fullmatch("[0-9]{1,9}", total):
            total = int(total)
        if not isinstance(total, int) or isinstance(total, bool) or total < 0:
            raise self._torn(total, "which is not a number of rows")
        if following.total not in (None, total):
            raise self._torn(total, f"and an earlier page {following.total}")
        if following.offset > total:
            raise self._torn(total, f"and its pages have {following.offset} rows already")
        if following.offset == total and self.repeated:
            raise self._torn(total, f"and {self.repeated} of these rows came twice, so that others are missing")
        return replace(following, total=total)

    def _led(self, following: At, request: Request, found: object) -> At | None:
        if found is None or found is False or found == "":
            return None
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise self._torn(found, "which is neither text nor number")
        if found in self._seen:
            raise self._torn(found, "which it has named before: its pages lead in a circle")
        self._seen.add(found)
        if isinstance(found, str) and (len(found) > _LONGEST or not (found.isascii() and found.isprintable())):
            raise self._torn(found, f"which is not 1 to {_LONGEST} plain characters")
        if self._paging.kind == "cursor":
            return replace(following, cursor=found)
        return replace(following, link=self._link(found, request))

    def _link(self, link: str | int, request: Request) -> Request:
        """The request that a URL asks for. Raises SchemaDrift if that is not below the address that is asked."""
        for base_url in self._base_urls if isinstance(link, str) else ():
            following = _below(base_url, request, str(link))
            if following is not None:
                # The client adds the key to each request, and has masked it in the link.
                params = tuple(one for one in following.params if one[0] != self._key_parameter)
                return replace(following, params=params)
        raise self._torn(link, f"which does not lead below {' or '.join(self._base_urls)}")

    def _torn(self, found: object, why: str) -> SchemaDrift:
        return SchemaDrift(
            f"{self._what} {safe_words(spelling(found))!r}, {why}. Correct the path, or the provider has changed its "
            "API or list meanwhile; nothing was stored."
        )


def _below(base_url: str, request: Request, link: str) -> Request | None:
    """The request that a URL in the answer of another one asks for; None if it leads elsewhere."""
    base = urlsplit(base_url)
    try:
        url = urlsplit(urljoin(f"{base_url}{request.path}", link))
        is_own = (url.scheme, url.netloc.lower()) == (base.scheme, base.netloc.lower())
        parameters = parse_qsl(url.query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        return None
    path = url.path.removeprefix(base.path)
    is_below = is_own and url.path.startswith(f"{base.path}/") and _PATH.fullmatch(path)
    if not is_below or _DISGUISED.search(path) or any(part in (".", "..") for part in path.split("/")):
        return None
    return replace(request, path=path, params=tuple(parameters))
