"""`/v1/prices` and `/v1/why`: the latest prices as they are stored. Nothing here waits for a provider."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from sqlalchemy import Engine

from pricing_pipeline.api import feeds
from pricing_pipeline.api.access import Caller, Database, FeedReader, Reader, Sessions
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.formats import (
    MEDIA_TYPES,
    NOT_ACCEPTABLE,
    Currency,
    Decimal,
    Format,
    Wanted,
    chosen,
)
from pricing_pipeline.api.parameters import (
    LONGEST_NAME,
    SomePairs,
    SomeSymbols,
    each_of,
    each_pair,
    type_of_prices,
)
from pricing_pipeline.api.problems import invalid
from pricing_pipeline.db.loop_sessions import LoopSessions
from pricing_pipeline.demand import freshness, instruments, viewers
from pricing_pipeline.demand.freshness import AnyPair
from pricing_pipeline.domain.cells import Decimals
from pricing_pipeline.domain.prices import Missing, Prices, Reason
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.prices import conversion, lines, price_reader
from pricing_pipeline.registry import data_type_registry

router = APIRouter(tags=["prices"])

OFFERED = (Format.JSON, Format.CSV)
"""The formats of latest prices."""

DataType = Annotated[
    str | None,
    Query(
        max_length=LONGEST_NAME,
        description="The data type of the symbols; default: all that apply.",
        examples=["equity_quote"],
    ),
]


class PairReason(Shape):
    """Why the price of a pair is as old as it is, in one word of docs/operations.md and in a sentence."""

    symbol: str
    data_type: str
    state: str = Field(examples=["rate_limited"])
    sentence: str
    since: datetime | None
    next_at: datetime | None
    """When it may change, if that is known."""
    observed_at: datetime | None
    fetched_at: datetime | None


class Reasons(Shape):
    """Why prices are as old as they are, and the unknown symbols."""

    reasons: list[PairReason]
    missing: list[Missing]


@router.get(
    "/prices",
    response_model=Prices,
    responses={200: {"content": {MEDIA_TYPES[Format.CSV]: {}}}, **NOT_ACCEPTABLE},
)
async def read_prices(
    request: Request,
    sessions: Sessions,
    caller: FeedReader,
    symbols: SomeSymbols = None,
    pairs: SomePairs = None,
    data_type: DataType = None,
    list_: feeds.ListName = None,
    format: Wanted = None,
    decimal: Decimal = Decimals.POINT,
    currency: Currency = None,
) -> Response:
    """The stored prices of symbols, of pairs or of a list, at once. Missing and stale prices are queued, so a later
    request has them: of pairs, of a list, and of symbols with a data type, all; of symbols without one, those that are
    watched or held.
    A price that is not fresh says why. An unknown symbol is listed as missing.

    The header Accept, or `format`, chooses JSON or CSV, which has a line for each price and each missing pair.
    With `currency` prices are converted by the latest stored rates, which `rate` names; without one they are missing.
    With the token of a feed, which may be in the URL, it reads the pairs of the feed: all, or those that are named.
    """
    wanted = chosen(request.headers.get("accept", ""), format, OFFERED)
    into = None if currency is None else conversion.Target.named(currency)
    if list_ is not None:
        if symbols is not None or pairs is not None:
            raise invalid("name symbols or pairs, or a list, but not both")
        found = await feeds.listed(sessions.engine, caller, list_, data_type)
        return await stored(sessions, caller, found, None, wanted, decimal, into)
    if not caller.token.is_feed:
        each = wanted_pairs(symbols, pairs, data_type)
        return await stored(sessions, caller, each, data_type, wanted, decimal, into)
    named = None if symbols is None and pairs is None else wanted_pairs(symbols, pairs, data_type)
    own = await to_thread.run_sync(feeds.narrowed, sessions.engine, caller.token, named, data_type)
    return await stored(sessions, caller, own, None, wanted, decimal, into)


@router.get("/why")
def explain(
    database: Database,
    caller: Reader,
    symbols: SomeSymbols = None,
    pairs: SomePairs = None,
    data_type: DataType = None,
) -> Reasons:
    """Why the prices of symbols or of pairs are as old as they are. It queues nothing.

    An unknown symbol is listed as missing.
    """
    wanted = wanted_pairs(symbols, pairs, data_type)
    with database.connect() as connection:
        if data_type is not None:
            data_type_registry.active_data_type(connection, data_type)
        spelled = instruments.all_spelled_anywhere(connection, [symbol for _, symbol in wanted])
        each = dict.fromkeys(zip((named for named, _ in wanted), spelled, strict=True))
        unknown = freshness.unknown_symbols(connection, list(each))
        for one in unknown:
            del each[one.data_type, one.symbol]
        reasons = freshness.why_pairs(connection, list(each))
    return Reasons(
        reasons=[PairReason.model_validate(reason, from_attributes=True) for reason in reasons],
        missing=[
            Missing(
                data_type=one.data_type,
                symbol=one.symbol,
                why=Reason(state=one.state, sentence=one.sentence, since=None, next_at=None),
            )
            for one in unknown
        ],
    )


def wanted_pairs(symbols: Iterable[str] | None, pairs: Iterable[str] | None, data_type: str | None) -> list[AnyPair]:
    """What a request is about: pairs, or symbols, each of the data type or of all. Raises Refused."""
    if (symbols is None) == (pairs is None):
        raise invalid("name symbols or pairs, as in symbols=AAPL,MSFT or pairs=equity_quote:AAPL,fx_rate:EUR/USD")
    if pairs is None:
        return [(data_type, symbol) for symbol in each_of(symbols or ())]
    if data_type is not None:
        raise invalid("the parameter data_type belongs to symbols; each of the pairs names its own")
    return list(each_pair(pairs))


async def stored(
    sessions: LoopSessions,
    caller: Caller,
    wanted: Sequence[AnyPair],
    data_type: str | None,
    format: Format,
    decimals: Decimals = Decimals.POINT,
    into: conversion.Target | None = None,
) -> Response:
    """The stored prices of pairs, as `read_prices` answers them.

    Raises UnknownDataType if `data_type`, which all of them have, is not an active data type of prices.
    """
    answer = await price_reader.read_as_json(sessions, wanted, data_type, caller.user_or_none)
    if answer is None:
        await to_thread.run_sync(_refuse_type, sessions.engine, data_type or "")
        raise AssertionError(f"{data_type} has just become a data type of prices")
    if into is not None:
        told = json.loads(answer)
        rates = await to_thread.run_sync(_convert, sessions.engine, caller, told, into)
        if rates:  # they are asked for where they are stale, as what is read by itself
            await price_reader.read_as_json(sessions, rates, None, caller.user_or_none)
        answer = json.dumps(told, separators=(",", ":"), ensure_ascii=False)
    # The database writes the answer: a model of each price would take longer than all the rest.
    text = (
        answer
        if format is Format.JSON
        else lines.prices_as_csv(json.loads(answer), decimals, is_converted=into is not None)
    )
    return Response(text, media_type=MEDIA_TYPES[format], headers={"Vary": "Accept"})


def _convert(
    engine: Engine, caller: Caller, told: dict[str, Any], into: conversion.Target
) -> Sequence[tuple[str, str]]:
    """Convert prices, in place, and watch what is missing for it, if the caller may; returns the pairs of the rates."""
    with engine.begin() as connection:
        rates = conversion.convert_answer(connection, told, into)
        if rates.missing and caller.token.allows(Scope.WATCH) and caller.user_or_none is not None:
            viewers.heartbeat(connection, caller.user, rates.missing)
        return rates.pairs


def _refuse_type(engine: Engine, data_type: str) -> None:
    with engine.connect() as connection:
        type_of_prices(connection, data_type)  # which it is not, and says why
