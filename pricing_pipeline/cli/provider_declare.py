"""`provider draft|try|declare|undeclare`: providers that a file declares."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import parse_qsl, urlencode, urlsplit

import typer

from pricing_pipeline.cli import arguments, key
from pricing_pipeline.cli.database import load_settings, open_owner
from pricing_pipeline.cli.options import Json, Last, Provider, Symbol
from pricing_pipeline.cli.output import (
    decimal,
    iso,
    moment,
    print_change,
    print_json,
    print_lines,
    print_table,
    printable,
)
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import listing
from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window, last_of, span
from pricing_pipeline.errors import PricingError, ProviderError, Unfinished
from pricing_pipeline.keys import credentials
from pricing_pipeline.providers import declaration_draft
from pricing_pipeline.providers.base import Question, Request, check_key, refusal, safe_words
from pricing_pipeline.providers.client import DEADLINE_SECONDS, MAX_BYTES, USER_AGENT, ProviderClient
from pricing_pipeline.providers.declaration import Key, endpoints_of
from pricing_pipeline.providers.declaration_file import read_file, read_text
from pricing_pipeline.providers.declaration_texts import is_key
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.drafted_request import Asked
from pricing_pipeline.providers.key_echoes import LEAST_UNMISTAKABLE, KeyEchoes
from pricing_pipeline.providers.sent import DEFAULT_KEY_NAME
from pricing_pipeline.providers.transport import checked_base_url
from pricing_pipeline.providers.wire import Wire
from pricing_pipeline.registry import declarations

if TYPE_CHECKING:
    from decimal import Decimal

    from pydantic import SecretStr

    from pricing_pipeline.domain.calls import Receipt
    from pricing_pipeline.settings import Settings

DeclarationFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A declaration, in YAML; docs/adding-a-provider.md has an example."),
]
_SHOWN = 1000
"""Characters of an answer that are shown."""
_MOST_ROWS = 20


@dataclass(frozen=True, slots=True)
class _AnsweredRequest:
    """A request, without its key, and its answer."""

    method: str
    url: str
    post: str | None
    """The JSON that was sent."""
    response: Response


class _WithinLimits:
    """Lets a call make as many requests as the declared limits allow at once: nothing counts those made by hand."""

    def __init__(self, provider: DeclaredProvider, fetcher: Fetcher) -> None:
        about = provider.declared.declaration
        asked = about.fetchers.named[fetcher]
        units = min(limit.units for limit in about.limits.values())
        self._most = units // (asked.units_per_call + asked.units_per_symbol)

    def begin(self, spent: Sequence[int]) -> None:
        if len(spent) >= self._most:
            raise Unfinished(
                f"its declared limits allow {len(spent)} requests at once, and more pages follow. Try fewer days."
            )

    def end(self, receipt: Receipt) -> None:
        """Nothing is booked."""


@listing
def declare(path: DeclarationFile, as_json: Json = False) -> None:
    """Add a provider that a file declares, or change it: how it is asked, what it allows, how its answers are read.

    Each fault of the file is shown with its line, and then nothing changes. The file overrides what was set by hand,
    limits too. Running workers follow within ten seconds. It needs the owner's URL.

    \b
    Example: pricing-pipeline provider declare docs/examples/frankfurter.yaml
    """
    declared = read_file(path)
    settings = load_settings()
    name = declared.declaration.name
    with open_owner(settings) as engine, engine.begin() as connection:
        written = declarations.declare(connection, declared)
    if as_json:
        print_json({"provider": name, "before": written.before or None, "after": written.after})
    elif written.is_new:
        typer.echo(f"{name} is declared. Running workers know it within ten seconds.")
    else:
        names = dict.fromkeys([*written.before, *written.after])
        before, after = ({one: side.get(one) for one in names} for side in (written.before, written.after))
        print_change({"provider": name}, before, after, as_json=False)
    _hints(settings, DeclaredProvider(declared), is_new=written.is_new)


def undeclare(name: Provider, as_json: Json = False) -> None:
    """Remove a declared provider with its limits and keys. Its logged calls and its prices stay.

    It is refused while data types have a route to it, or tasks wait for it. It needs the owner's URL.

    \b
    Example: pricing-pipeline provider undeclare frankfurter
    """
    with open_owner() as engine, engine.begin() as connection:
        declarations.undeclare(connection, name)
    if as_json:
        print_json({"provider": name, "undeclared": True})
    else:
        typer.echo(f"{name} is no longer declared. Its limits and stored keys are gone; its prices stay.")


@listing
def try_(
    path: DeclarationFile,
    symbol: Symbol,
    fetcher: Annotated[
        str | None,
        typer.Option("--fetcher", metavar="FETCHER", help="The fetcher to try, if the file has several."),
    ] = None,
    asset_class: Annotated[
        str | None,
        typer.Option("--asset-class", metavar="CLASS", help="Asset class of the symbol, if the file has several."),
    ] = None,
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="DATE", help="First day of a span; default: ask for the latest value."),
    ] = None,
    last: Last = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="URL", help="Call this URL instead of the file's base URL.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make one call as a file declares it: show the request, the answer, and what would be stored.

    Nothing is stored, and no database is needed. Faults of the file are shown with their line. The command asks for
    a key without showing it, or reads it from standard input, and does not keep it.

    \b
    Example: pricing-pipeline provider try docs/examples/frankfurter.yaml EUR/USD
    """
    provider = DeclaredProvider(read_file(path), None if at is None else at.rstrip("/"))
    declarations.require_free_name(provider.name)
    about = provider.declared.declaration
    wanted = Fetcher(arguments.chosen("--fetcher", fetcher, [one.value for one in about.fetchers.named]))
    of_class = arguments.chosen("--asset-class", asset_class, about.symbols)
    window = _window(first, last)
    secret = None
    if provider.needs_key:
        address = checked_base_url(provider.name, at or provider.base_url, sends_key=True)
        secret = credentials.checked_secret(key.read(provider.name, DEFAULT_KEY_NAME, urlsplit(address).netloc))
    seen: list[_AnsweredRequest] = []
    answer, error = _call(provider, at, secret, wanted, symbol, of_class, window, seen)
    if as_json:
        print_json(_content(provider, seen, answer, error))
    else:
        _print_seen(provider, seen)
        _print_answer(answer)
    if error is not None:
        words = str(error).replace(check_key(provider.name), "Check the key that you gave.")
        raise PricingError(f"{path}: {words}") from error
    for failure in answer.failures:
        raise PricingError(f"{path}: {failure.message}")


def draft(
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="What to ask, once: a complete request of the service."),
    ] = None,
    body: Annotated[
        Path | None,
        typer.Option("--body", metavar="FILE", help="A saved answer to read; no call is made."),
    ] = None,
    symbol: Annotated[
        str | None,
        typer.Option("--symbol", metavar="SYMBOL", help="What the answer is about, such as EUR/USD."),
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME: VALUE", help="A header to send. Repeatable."),
    ] = None,
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="DATE", help="Which date in the URL is the first day of a span."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a declaration that one answer suggests, with comments on what to check.

    The shape of the answer, questions, and what would be stored of it are written to standard error. Where the answer
    can be read in two ways, you are asked; without a terminal the first way is taken, and shown. A key in the URL or in
    a header is sent, but not written to the file.

    \b
    Example: pricing-pipeline provider draft 'https://api.frankfurter.dev/v1/latest?base=EUR' --symbol EUR/USD
    """
    if url is None and body is None:
        raise typer.BadParameter("give a URL, or --body FILE")
    given = dict(_header(text) for text in headers or ())
    start = None if first is None else arguments.day(first, "--from")
    about = Asked(url or "https://api.example.com/prices", symbol, given, start)
    response = _asked_once(about) if body is None else _saved(body)
    now = datetime.now(UTC)
    drafted = declaration_draft.draft(response, about, _ask, now)
    for line in drafted.shape:
        typer.echo(printable(line), err=True)
    if as_json:
        print_json({"declaration": drafted.text, "shape": drafted.shape})
    else:
        typer.echo(drafted.text, nl=False)
    try:
        provider = DeclaredProvider(read_text(drafted.text, "draft"))
    except PricingError as error:
        hint(str(error))
        return
    for line in _would_store(provider, about, response, now):
        typer.echo(printable(line), err=True)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not re.fullmatch("[A-Za-z][A-Za-z0-9-]*", name) or not value.strip().isprintable():
        raise typer.BadParameter('--header is "NAME: VALUE"')
    return name, value.strip()


def _ask(question: str, answers: Sequence[str]) -> int:
    """The choice of a person at a terminal; without one the first, which is then named."""
    if not sys.stdin.isatty():
        hint(printable(f"{question} Taken: {answers[0]}. Or: {'; '.join(answers[1:])}."))
        return 0
    typer.echo(printable(question), err=True)
    for number, answer in enumerate(answers, 1):
        typer.echo(printable(f"  {number}  {answer}"), err=True)
    number = int(typer.prompt("Number", type=int, default=1, err=True))
    return min(max(number, 1), len(answers)) - 1


def _saved(path: Path) -> Response:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PricingError(f"{path} cannot be read: {error.strerror}.") from None
    if len(content) > MAX_BYTES:
        raise PricingError(f"{path} has more than {MAX_BYTES} bytes.")
    return Response(200, {}, content, len(content))


def _asked_once(about: Asked) -> Response:
    """The answer of a URL, with every key in it masked. Raises PricingError for a refusal."""
    url = urlsplit(about.url)
    parameters = tuple(parse_qsl(url.query, keep_blank_values=True))
    secrets = [
        *(value for value in about.headers.values() if len(value) >= LEAST_UNMISTAKABLE),
        *about.key_headers.values(),
        *(value.rpartition(" ")[2] for value in about.key_headers.values()),  # after a word such as Bearer
        *(value for name, value in parameters if is_key(name)),
    ]
    sends_key = bool(secrets or about.headers)
    base_url = checked_base_url("the service", f"{url.scheme}://{url.netloc}", sends_key=sends_key)
    echoes = KeyEchoes([secret for secret in secrets if secret])
    wire = Wire("the service", base_url, deadline=DEADLINE_SECONDS, resolve=None, hide=echoes.mask_text)
    try:
        headers = {"User-Agent": USER_AGENT, "Accept": "*/*", **about.headers}
        response, _ = wire.send(Request(url.path or "/", parameters), headers, MAX_BYTES)
    finally:
        wire.close()
    response = replace(response, body=echoes.mask(response.body))
    refused = refusal("the service", response, now=datetime.now(UTC))
    if refused is not None:
        given = "A key goes into the URL, or into --header 'NAME: VALUE'."
        raise PricingError(str(refused).replace(check_key("the service"), given))
    return response


def _would_store(provider: DeclaredProvider, about: Asked, response: Response, now: datetime) -> list[str]:
    """What the draft reads in its own answer."""
    (fetcher,) = provider.fetchers
    symbol = about.symbol or "SYMBOL"
    window = None
    if "span" in endpoints_of(provider.declared.declaration.fetchers.named[fetcher]):
        window = Window(now.date() - timedelta(days=360), now.date())
    try:
        asked = provider.ask(Question(fetcher, [symbol], window, now))
        next(asked)
        asked.send(response)
    except StopIteration as end:
        answer: Answer = end.value
        rows = list(answer.observations)
        told = [
            f"would be stored: {len(rows)} values of the last 360 days" if window else f"would be stored: {len(rows)}"
        ]
        told += [f"  {one.observed_at:%Y-%m-%d %H:%M}  {one.close:f} {one.currency or ''}" for one in rows[-3:]]
        told += [f"  left out: {answer.left_out} rows of other days"] if answer.left_out else []
        return [*told, *(f"  refused: {one.text}: {one.reason}" for one in answer.rejected[:5])]
    except PricingError as error:
        return [f"nothing would be stored: {error}"]
    return ["its pages were not followed"]


def _hints(settings: Settings, provider: DeclaredProvider, *, is_new: bool) -> None:
    name = provider.name
    plans = list(provider.declared.declaration.plans)
    if is_new and plans:
        hint(f"to use it, with its key and data types: pricing-pipeline provider use {name} --plan {plans[0]}")
    elif is_new:
        hint(f"nothing is fetched from it before it has a route: pricing-pipeline route add {name} --type TYPE")
        if provider.needs_key:
            hint(f"its calls need a key: pricing-pipeline key set {name}")
    if settings.sandbox and provider.sandbox is None:
        hint(
            f"PRICING_SANDBOX is on, and the sandbox does not know {name}: it is not asked, and its tasks wait until "
            "the sandbox is off. `provider try` asks the real service meanwhile."
        )
    elif settings.sandbox:
        hint(f"PRICING_SANDBOX is on: the sandbox's {provider.sandbox} is asked in its place.")


def _window(first: str | None, last: str | None) -> Window | None:
    if first is None:
        if last is not None:
            raise typer.BadParameter("--to is the end of a span that begins with --from")
        return None
    begin = arguments.day(first, "--from")
    end = None if last is None else arguments.day(last, "--to", last=True)
    return span(begin, last_of(begin, end, datetime.now(UTC).date()))


def _call(
    provider: DeclaredProvider,
    at: str | None,
    secret: SecretStr | None,
    fetcher: Fetcher,
    symbol: str,
    asset_class: str,
    window: Window | None,
    seen: list[_AnsweredRequest],
) -> tuple[Answer, ProviderError | None]:
    """The answer of one call, or why it failed as a whole."""
    with ProviderClient(provider, at or provider.base_url, secret) as client:

        def see(request: Request, response: Response) -> None:
            query = f"?{urlencode(request.params)}" if request.params else ""
            post = None if request.json is None else client.hide_keys(json.dumps(request.json))
            url = client.hide_keys(f"{client.base_url}{request.path}{query}")
            seen.append(_AnsweredRequest(request.method, url, post, response))

        try:
            fetched = client.fetch(
                fetcher,
                [symbol],
                window,
                asset_class=asset_class,
                witness=see,
                pages=_WithinLimits(provider, fetcher),
            )
        except ProviderError as error:
            return Answer(), error
    return fetched.answer, None


def _print_seen(provider: DeclaredProvider, seen: list[_AnsweredRequest]) -> None:
    for request in seen:
        headers = _places_of_key(provider)
        print_lines(
            {
                "request": f"{request.method} {request.url}",
                "sends": request.post,
                "key": ", ".join(f"{name}: {value}" for name, value in headers.items()),
                "answer": f"HTTP {request.response.status}, {len(request.response.body)} bytes",
                "begins": _beginning(request.response),
            }
        )
        typer.echo()


def _places_of_key(provider: DeclaredProvider) -> dict[str, str]:
    """Where a request has its key, without the key."""
    own = "(your key)" if provider.log_in is None else "(a token for your key)"
    match provider.declared.declaration.key:
        case Key(headers=list() as names):
            return dict.fromkeys(names, "(a part of your key)")
        case Key(query=str() as name):
            return {f"parameter {name}": own}
    return dict(provider.authorize(own))


def _beginning(response: Response) -> str:
    return safe_words(response.body[:_SHOWN])


def _print_answer(answer: Answer) -> None:
    rows = list(answer.observations)
    if rows:
        typer.echo(f"would be stored: {len(rows)} value{'s' * (len(rows) > 1)}")
        shown = rows if len(rows) <= _MOST_ROWS else [*rows[: _MOST_ROWS // 2], *rows[-_MOST_ROWS // 2 :]]
        columns = {
            "symbol": [row.symbol for row in shown],
            "time": [moment(row.observed_at) for row in shown],
            "price": [decimal(row.close) for row in shown],
            "currency": [row.currency or "the instrument's" for row in shown],
            "open": [_amount(row.open) for row in shown],
            "high": [_amount(row.high) for row in shown],
            "low": [_amount(row.low) for row in shown],
            "volume": [_amount(row.volume) for row in shown],
            "left out": [row.quality or "" for row in shown],
        }
        columns = {name: column for name, column in columns.items() if any(column)}
        print_table(
            list(columns),
            list(zip(*columns.values(), strict=True)),
            right=[name for name in ("price", "open", "high", "low", "volume") if name in columns],
            spare=[name for name in ("open", "high", "low", "volume", "left out") if name in columns],
        )
        if len(shown) < len(rows):
            typer.echo(f"{len(rows) - len(shown)} values between them are not shown")
    for symbol in sorted(answer.empty):
        typer.echo(printable(f"would be noted: {symbol} has no values there"))
    if answer.left_out:
        typer.echo(f"would be left out: {answer.left_out} rows that were not asked for, or come twice")
    for value in answer.rejected[:_MOST_ROWS]:
        typer.echo(printable(f"would be refused: {value.text}: {value.reason}"))


def _amount(value: Decimal | None) -> str:
    return "" if value is None else decimal(value)


def _content(
    provider: DeclaredProvider, seen: list[_AnsweredRequest], answer: Answer, error: ProviderError | None
) -> dict[str, object]:
    return {
        "provider": provider.name,
        "requests": [{"method": request.method, "url": request.url, "post": request.post} for request in seen],
        "answers": [
            {
                "http_status": request.response.status,
                "bytes": len(request.response.body),
                "begins": _beginning(request.response),
            }
            for request in seen
        ],
        "values": [
            {
                "symbol": row.symbol,
                "observed_at": iso(row.observed_at),
                "price": row.close,
                "currency": row.currency,
                "open": row.open,
                "high": row.high,
                "low": row.low,
                "volume": row.volume,
                "quality": row.quality,
            }
            for row in answer.observations
        ],
        "empty": sorted(answer.empty),
        "left_out": answer.left_out,
        "refused": [{"text": one.text, "reason": one.reason} for one in answer.rejected],
        "failures": [{"kind": one.kind.value, "message": one.message} for one in answer.failures],
        "error": None if error is None else str(error),
    }
