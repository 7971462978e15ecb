"""Contradictions between parts of a declaration, and bodies that are no templates, with their places.

The models in declaration.py check each part alone. declaration_file.py turns places into lines.
"""

from __future__ import annotations

from collections.abc import Iterator

from pricing_pipeline.providers.declaration import (
    Declaration,
    Endpoint,
    Place,
    QuoteReading,
    Reading,
    endpoints_of,
    paths_of,
    texts_of,
)
from pricing_pipeline.providers.declaration_texts import (
    OF_NUMBERED_PAGE,
    OF_SPAN,
    OF_SYMBOL,
    check_name,
    check_template,
    is_parted,
    placeholders_of,
)
from pricing_pipeline.providers.declared_times import needs_zone
from pricing_pipeline.providers.json_paths import JsonPath


def faults(declaration: Declaration) -> Iterator[tuple[Place, str]]:
    """Contradictions between parts of a declaration, each with its place."""
    yield from _faults_of_login(declaration)
    yield from _faults_of_plans(declaration)
    used: set[str] = set()
    for fetcher, asked in declaration.fetchers.named.items():
        here: Place = ("fetchers", fetcher.value)
        endpoints = endpoints_of(asked)
        if not endpoints.keys() & {"latest", "span"}:
            yield here, "it has neither `latest` nor `span`"
        for way, endpoint in endpoints.items():
            used |= endpoint.placeholders
            yield from _faults_of_endpoint((*here, way), way, endpoint)
            yield from _faults_of_body((*here, way, "post"), endpoint)
            yield from _faults_of_pages((*here, way), endpoint)
            reading = endpoint.answer or asked.answer
            if reading is None:
                yield (
                    (*here, way),
                    "nothing says how its answer is read: it has no `answer`, nor has the fetcher",
                )
                continue
            used |= _used_by(reading)
            at = (*here, way, "answer") if endpoint.answer is not None else (*here, "answer")
            yield from _faults_of_reading(at, way, reading, endpoint)
    if used & {"base", "quote"}:
        for name, symbols in declaration.symbols.items():
            if not is_parted(symbols.spelling):
                yield (
                    ("symbols", name, "spelling"),
                    "{base} and {quote} are used below and cannot be told from it; write one such as {base}/{quote}",
                )


def _faults_of_login(declaration: Declaration) -> Iterator[tuple[Place, str]]:
    login, key = declaration.login, declaration.key
    if login is None:
        return
    if key is None or key.headers is not None:
        yield ("login",), "`key` says with which `header` or `query` the token of a login travels"
    if declaration.sandbox is not None:
        yield ("sandbox",), "the sandbox knows no logins"
    if placeholders_of(login.path) or "{" in login.path:
        yield ("login", "path"), "a login is about no symbol, so its path has no placeholder"
    named = login.post if login.form is None else login.form
    for place, _ in texts_of(dict(named or {})):
        for name in place:
            try:
                check_name(str(name))
            except ValueError as fault:
                yield ("login", "form" if login.post is None else "post", *place), str(fault)
    for number, name in enumerate(login.parts or ()):
        if name in (named or {}) or name in (login.parts or ())[:number]:
            yield ("login", "parts", number), f"`{name}` is in the login twice"


def _faults_of_plans(declaration: Declaration) -> Iterator[tuple[Place, str]]:
    named = {fetcher.value: asked for fetcher, asked in declaration.fetchers.named.items()}
    for name, plan in declaration.plans.items():
        at: Place = ("plans", name)
        for data_type, type_ in plan.types.items():
            if type_.fetcher not in named:
                yield (*at, "types", data_type, "fetcher"), f"this file has no fetcher {type_.fetcher}"
            if type_.asset_class not in declaration.symbols:
                yield (
                    (*at, "types", data_type, "asset_class"),
                    f"this file has no symbols of {type_.asset_class}",
                )
        for fetcher, size in plan.batch.items():
            most = (
                max((one.most for one in endpoints_of(named[fetcher]).values()), default=1) if fetcher in named else 0
            )
            if size > most:
                yield (*at, "batch", fetcher), f"no request of this fetcher takes more than {most} symbols"
        if plan.check is not None and plan.check.type not in plan.types:
            yield (*at, "check", "type"), f"this plan has no type {plan.check.type}"


def _used_by(reading: Reading) -> set[str]:
    """The names of all placeholders of a reading."""
    used = set(placeholders_of(reading.currency.code or ""))
    for _, path in paths_of(reading):
        used |= JsonPath(path).placeholders
    return used.union(*(placeholders_of(text) for text in reading.expect.values()))


def _faults_of_endpoint(at: Place, way: str, endpoint: Endpoint) -> Iterator[tuple[Place, str]]:
    used = endpoint.placeholders
    if "end" in used and not used & {"start", "days"}:
        yield at, "a span with {end} needs {start}"
    if way != "span" and used & OF_SPAN:
        yield at, "{start}, {end} and {days} belong to `span`"
    if way == "batch" and endpoint.most < 2:
        yield at, "a batch has `most` of 2 or more"
    if endpoint.most > 1 and used & OF_SYMBOL:
        yield at, "a call for several symbols has {symbols}, or all symbols in one list"
    if sum(text.count("{symbols}") for text in endpoint.templates) > 1:
        yield at, "{symbols} stands once in a request, because it may be long"


def _faults_of_body(at: Place, endpoint: Endpoint) -> Iterator[tuple[Place, str]]:
    for place, text in texts_of(endpoint.post):
        for name in place:
            try:
                check_name(str(name))
            except ValueError as fault:
                yield (*at, *place), str(fault)
        if not isinstance(text, str):
            continue
        try:
            check_template(text)
        except ValueError as fault:
            yield (*at, *place), str(fault)
        if "{cursor}" in text and place and isinstance(place[-1], int):
            yield (*at, *place), "{cursor} is the value of a key: the first request goes without the key"


def _faults_of_pages(at: Place, endpoint: Endpoint) -> Iterator[tuple[Place, str]]:
    used, pages = endpoint.placeholders & (OF_NUMBERED_PAGE | {"cursor"}), endpoint.pages
    if pages is None:
        if used:
            yield at, f"{{{min(used)}}} is used, and `pages` does not say how pages follow each other"
        return
    needed = {"cursor": frozenset({"cursor"}), "next": frozenset[str]()}.get(pages.kind, OF_NUMBERED_PAGE)
    if used - needed:
        yield (*at, "pages", pages.kind), f"with `{pages.kind}` there is no {{{min(used - needed)}}}"
    if needed and not used & needed:
        names = " or ".join(f"{{{name}}}" for name in sorted(needed, reverse=True))
        yield (*at, "pages", pages.kind), f"the request needs {names}, or all pages are the first"
    if pages.kind == "next" and endpoint.post is not None:
        yield (*at, "pages", "next"), "a URL leads to a GET, and this request has `post`"


def _faults_of_reading(at: Place, way: str, reading: Reading, endpoint: Endpoint) -> Iterator[tuple[Place, str]]:
    if endpoint.most > 1 and reading.symbol is None:
        yield (
            at,
            f"`{way}` asks for several symbols, and nothing says which a row is about: `symbol` is missing",
        )
    used = endpoint.placeholders | _used_by(reading)
    if not (used & {"symbol", "symbols"} or {"base", "quote"} <= used or reading.symbol):
        yield (
            at,
            f"neither the request of `{way}` nor its answer names the symbol: {{symbol}}, or {{base}} and {{quote}}",
        )
    if endpoint.pages is not None and not reading.is_table:
        yield at, f"the answer of `{way}` has pages, and nothing says which rows each has: `rows` is missing"
    for place, path in paths_of(reading):
        if JsonPath(path).placeholders and endpoint.most > 1 and place[0] in ("rows", "columns", "symbol", "expect"):
            yield (*at, *place), "it is read once for all symbols of a call, so it has no placeholder"
    if reading.time.at is not None and way == "span":
        yield (*at, "time", "at"), "rows of a span have a time each: `path` and `format`"
    if (
        isinstance(reading, QuoteReading)
        and reading.time.zone is None
        and needs_zone(reading.time.format or "iso_date")
    ):
        yield (
            (*at, "time", "format"),
            "such times name no offset from UTC; `zone` says whose clock they are of",
        )
    for path, text in reading.expect.items():
        used = placeholders_of(text)
        if used - OF_SYMBOL or (used and endpoint.most > 1):
            yield (
                (*at, "expect", path),
                "a text that is expected has {symbol}, {base} and {quote} of one symbol only",
            )
