"""`provider declare|undeclare|try`: providers that a file declares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import typer
from pydantic import SecretStr

from pricing_pipeline.cli import arguments, key
from pricing_pipeline.cli.database import open_owner
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
from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Receipt, Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window, last_of, span
from pricing_pipeline.errors import PricingError, ProviderError, Unfinished
from pricing_pipeline.keys import credentials
from pricing_pipeline.providers.base import Request, safe_words
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.declaration_file import read_file
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.sent import DEFAULT_KEY_NAME
from pricing_pipeline.providers.transport import checked_base_url
from pricing_pipeline.registry import declarations
from pricing_pipeline.settings import Settings, load_settings

_SHOWN = 1000
"""Characters of an answer that are shown."""
_MOST_ROWS = 20


def declare(path: Path, *, as_json: bool) -> None:
    """Write a declaration, as the owner. Raises DeclarationRefused; then nothing has changed."""
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


def _hints(settings: Settings, provider: DeclaredProvider, *, is_new: bool) -> None:
    name = provider.name
    if is_new:
        hint(
            f"nothing is fetched from it before it has a route: pricing-pipeline route add {name} --type TYPE"
        )
    if provider.needs_key and is_new:
        hint(f"its calls need a key: pricing-pipeline key set {name}")
    if settings.sandbox and provider.sandbox is None:
        hint(
            f"PRICING_SANDBOX is on, and the sandbox does not know {name}: it is not asked, and its tasks wait until "
            "the sandbox is off. `provider try` asks the real service meanwhile."
        )
    elif settings.sandbox:
        hint(f"PRICING_SANDBOX is on: the sandbox's {provider.sandbox} is asked in its place.")


def undeclare(name: str, *, as_json: bool) -> None:
    """Forget a declared provider, as the owner. Raises UnknownProvider and DeclarationRefused."""
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        declarations.undeclare(connection, name)
    if as_json:
        print_json({"provider": name, "undeclared": True})
    else:
        typer.echo(f"{name} is declared no more. Its limits and stored keys are gone; its prices stay.")


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


def try_(
    path: Path,
    symbol: str,
    fetcher: str | None,
    asset_class: str | None,
    first: str | None,
    last: str | None,
    at: str | None,
    *,
    as_json: bool,
) -> None:
    """Make one call from the file alone, and show it. Raises PricingError if it would store nothing."""
    provider = DeclaredProvider(read_file(path))
    declarations.require_free_name(provider.name)
    about = provider.declared.declaration
    wanted = Fetcher(_chosen("--fetcher", fetcher, [one.value for one in about.fetchers.named]))
    of_class = _chosen("--asset-class", asset_class, about.symbols)
    window = _window(first, last)
    secret = None
    if provider.needs_key:
        address = checked_base_url(provider.name, at or provider.base_url, sends_key=True)
        secret = credentials.checked_secret(
            key.read(provider.name, DEFAULT_KEY_NAME, urlsplit(address).netloc)
        )
    seen: list[_AnsweredRequest] = []
    answer, error = _call(provider, at, secret, wanted, symbol, of_class, window, seen)
    if as_json:
        print_json(_content(provider, seen, answer, error))
    else:
        _print_seen(provider, seen)
        _print_answer(answer)
    if error is not None:
        raise PricingError(f"{path}: {error}") from error
    for failure in answer.failures:
        raise PricingError(f"{path}: {failure.message}")


def _chosen(option: str, given: str | None, known: Iterable[str]) -> str:
    """What the option names, or the only one there is."""
    names = list(known)
    if given is None and len(names) == 1:
        return names[0]
    if given not in names:
        raise typer.BadParameter(f"{option} is one of: {', '.join(names)}")
    return given


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
        headers = provider.authorize("(your key)") if provider.needs_key else {}
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


def _beginning(response: Response) -> str:
    return safe_words(response.body[:_SHOWN])


def _print_answer(answer: Answer) -> None:
    rows = list(answer.observations)
    if rows:
        typer.echo(f"would be stored: {len(rows)} value{'s' * (len(rows) > 1)}")
        shown = rows if len(rows) <= _MOST_ROWS else [*rows[: _MOST_ROWS // 2], *rows[-_MOST_ROWS // 2 :]]
        print_table(
            ["symbol", "time", "price", "currency", "open", "high", "low", "volume", "left out"],
            [
                (
                    row.symbol,
                    moment(row.observed_at),
                    decimal(row.close),
                    row.currency or "the instrument's",
                    *(
                        "" if part is None else decimal(part)
                        for part in (row.open, row.high, row.low, row.volume)
                    ),
                    row.quality or "",
                )
                for row in shown
            ],
            right=["price", "open", "high", "low", "volume"],
            spare=["open", "high", "low", "volume", "left out"],
        )
        if len(shown) < len(rows):
            typer.echo(f"{len(rows) - len(shown)} values between them are not shown")
    for symbol in sorted(answer.empty):
        typer.echo(printable(f"would be noted: {symbol} has no values there"))
    for value in answer.rejected[:_MOST_ROWS]:
        typer.echo(printable(f"would be refused: {value.text}: {value.reason}"))


def _content(
    provider: DeclaredProvider, seen: list[_AnsweredRequest], answer: Answer, error: ProviderError | None
) -> dict[str, object]:
    return {
        "provider": provider.name,
        "requests": [
            {"method": request.method, "url": request.url, "post": request.post} for request in seen
        ],
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
        "refused": [{"text": one.text, "reason": one.reason} for one in answer.rejected],
        "failures": [{"kind": one.kind.value, "message": one.message} for one in answer.failures],
        "error": None if error is None else str(error),
    }
