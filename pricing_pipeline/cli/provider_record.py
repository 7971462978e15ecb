"""`provider record`: make a call as a worker would, and write request and answer to files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from pricing_pipeline.cli.database import load_settings, open_owner
from pricing_pipeline.cli.options import Json, Provider, Symbols
from pricing_pipeline.cli.output import print_json
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.provider_access import access_to
from pricing_pipeline.cli.recording import Recording
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.domain.calls import Call, Response, Task
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import PricingError, SettingsError, UnknownDataType
from pricing_pipeline.keys import credentials
from pricing_pipeline.providers.base import Request, give_key
from pricing_pipeline.providers.client import MAX_BYTES, MAX_DOCUMENT_BYTES, ProviderClient
from pricing_pipeline.queue import limits
from pricing_pipeline.queue.pages import BY_HAND_SECONDS, CallByHand, ClaimedPages
from pricing_pipeline.refresh import writing
from pricing_pipeline.registry import data_type_registry, plans, spellings
from pricing_pipeline.registry.declarations import provider_named

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from pricing_pipeline.providers import base
    from pricing_pipeline.settings import Settings

_WHO = "provider record"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A call that is to be recorded."""

    provider: base.Provider
    data_type: str
    fetcher: Fetcher
    symbols: list[str]
    recording: Recording


def record(
    provider: Provider,
    symbols: Symbols,
    types: Annotated[list[str], typer.Option("--type", metavar="TYPE", help="A data type of `type list`; repeatable.")],
    folder: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where the files go, in a folder of the provider.")
    ] = Path("recordings"),
    is_forced: Annotated[bool, typer.Option("--force", help="Replace files of the same name.")] = False,
    as_json: Json = False,
) -> None:
    """Make one call for each data type, and write request and answer to files, without your keys.

    The calls count and keep to the limits, as those of workers do. Refusals are recorded, too; no price is stored.
    `sandbox --recordings FOLDER` replays the files. It needs the owner's URL.

    \b
    Example: pricing-pipeline provider record yahoo AAPL --type equity_quote
    """
    settings = load_settings()
    with open_owner(settings) as engine:
        wanted = [
            _wanted(engine, provider, name, list(dict.fromkeys(symbols)), folder) for name in dict.fromkeys(types)
        ]
        for request in wanted:
            request.recording.check_room(is_forced=is_forced)
        access = access_to(engine, settings, provider)
        if access.service.needs_key and not access.keys:
            raise SettingsError(f"{provider} needs an API key, and none is stored or set. {give_key(provider)}")
        service, agent = access.service, settings.user_agent
        # Each answer is searched for keys in every form.
        most = MAX_DOCUMENT_BYTES if service.needs_key else MAX_BYTES
        with ProviderClient(service, access.base_url, access.keys, max_bytes=most, user_agent=agent) as client:
            if client.hide_keys(" ".join(symbols)) != " ".join(symbols):
                raise PricingError("a symbol contains the API key. No call was made.")
            for request in wanted:
                request.recording.make_folder()
            done = []
            for request in wanted:
                done.append(_record(engine, settings, client, request))
                if not as_json:
                    _print(provider, done[-1])
    if as_json:
        print_json({"provider": provider, "recordings": done})
        return
    if settings.sandbox:
        hint("with PRICING_SANDBOX on, the sandbox was asked, and not the real service.")
    keys = "your keys are masked. " if access.service.needs_key else ""
    hint(f"{keys}Look through the files of {folder} before you give them to anybody.")


def _print(provider: str, facts: Mapping[str, object]) -> None:
    requests = f" to {facts['requests']} requests" if facts["requests"] != 1 else ""
    typer.echo(f"{provider} answered HTTP {facts['http_status']}, {facts['bytes']} bytes{requests}: {facts['file']}")
    if facts["error"]:
        typer.echo(f"It reads as a failure: {facts['error']}")


def _wanted(engine: Engine, name: str, data_type: str, symbols: list[str], folder: Path) -> _Wanted:
    """A call that the provider can serve. Raises PricingError with what to change."""
    with engine.connect() as connection:
        credentials.require_provider(connection, name)
        known = data_type_registry.about(connection, data_type)
        fetcher_name, asset_class = (
            (known["fetcher"], known["asset_class"]) if known is not None else _planned(data_type)
        )
        fetcher = Fetcher(fetcher_name)
        provider = provider_named(connection, name)
        if provider is None:
            raise PricingError(f"this version has no client of {name}.")
        batch = connection.execute(query("by_hand.batch"), {"provider": name, "fetcher": fetcher.value}).one_or_none()
        # As the provider spells them, since that is what its answer and the replay name.
        symbols = [spellings.at(connection, name, asset_class, symbol) for symbol in symbols]
    if batch is None or fetcher not in provider.fetchers:
        raise PricingError(f"{name} cannot be asked for {data_type}.")
    most = min(batch.batch_size, provider.batch_limit(fetcher, None))
    if len(symbols) > most or 1 < len(symbols) < batch.batch_from:
        most = most if len(symbols) > most and batch.batch_from == 1 else 1
        raise PricingError(
            f"one call to {name} for {data_type} takes {most} symbol{'s' * (most > 1)}, and {len(symbols)} are named."
        )
    for symbol in symbols:
        if not provider.accepts(symbol):
            raise PricingError(f"{name} has no symbols spelled like {symbol!r}, so it was not asked.")
    recording = Recording.of(folder, name, data_type, symbols)
    return _Wanted(provider, data_type, fetcher, symbols, recording)


def _planned(data_type: str) -> tuple[str, str]:
    """The fetcher and the asset class of a data type that a plan would add."""
    try:
        known = plans.known_type(data_type)
        return known.fetcher, known.asset_class
    except KeyError:
        raise UnknownDataType(
            f"there is no data type {data_type!r}. `pricing-pipeline type list` lists them."
        ) from None


def _record(engine: Engine, settings: Settings, client: ProviderClient, wanted: _Wanted) -> dict[str, object]:
    """Make one call, logged before and settled after, and write its files. Raises PricingError without an answer."""
    call_id, key_name, at = _claim(engine, client, wanted)
    seen: list[tuple[Request, Response]] = []
    error: PricingError | None = None
    try:
        prepared = writing.prepare(engine, _call(wanted, call_id, key_name, at))
        fetched = client.fetch(
            wanted.fetcher,
            wanted.symbols,
            prepared.window,
            now=at,
            key_name=key_name,
            known=prepared.known,
            witness=lambda request, response: seen.append((request, response)),
            pages=ClaimedPages(engine, CallByHand(call_id, client.provider.name), seconds=BY_HAND_SECONDS),
        )
        with engine.begin() as connection:
            limits.settle(connection, call_id, fetched.receipt)
        message = "; ".join(failure.message for failure in fetched.answer.failures)
    except PricingError as failed:
        error = failed
        with engine.begin() as connection:
            message = limits.message_of(connection, client.provider.name, error)
            limits.settle_failed(connection, call_id, client.provider.name, key_name, error, message)
    if not seen:
        raise PricingError(f"{message.rstrip('. ')}. Nothing was recorded.") from error
    for number, (request, response) in enumerate(seen, 1):
        wanted.recording.page(number).write(
            client.base_url,
            request,
            response,
            asked={
                "data_type": wanted.data_type,
                "fetcher": wanted.fetcher.value,
                "symbols": wanted.symbols,
                "at": at.isoformat(),
            },
            kind="sandbox" if settings.sandbox else "recorded",
            hide=client.hide_keys,
        )
    _, response = seen[0]
    return {
        "data_type": wanted.data_type,
        "file": str(wanted.recording.body_of(response)),
        "meta": str(wanted.recording.meta),
        "http_status": seen[-1][1].status,
        "bytes": sum(len(response.body) for _, response in seen),
        "requests": len(seen),
        "error": message or None,
    }


def _call(wanted: _Wanted, call_id: int, key_name: str, at: datetime) -> Call:
    """The call as a worker would make it; its tasks are in no queue."""
    tasks = tuple(Task(0, symbol, 0, 1) for symbol in wanted.symbols)
    provider, data_type, fetcher = wanted.provider.name, wanted.data_type, wanted.fetcher
    return Call(call_id, provider, key_name, data_type, fetcher, None, tasks, uuid4(), at)


def _claim(engine: Engine, client: ProviderClient, wanted: _Wanted) -> tuple[int, str, datetime]:
    """Take one call within the provider's limits: its id, its key and its time. Raises PricingError if none is left."""
    with engine.begin() as connection:
        limits.register_keys(connection, client.provider.name, client.key_names)
        row = call_sql(
            connection,
            "claim_by_hand",
            client.provider.name,
            wanted.data_type,
            wanted.fetcher.value,
            wanted.symbols,
            sorted(client.key_names),
            _WHO,
        ).one()
    if row.refusal is not None:
        raise PricingError(f"{wanted.data_type} is not recorded: {row.refusal}.")
    return row.call_id, row.key_name, row.claimed_at
