"""What is left of a request that comes with the token of a feed: the feed's own pairs, or a refusal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

from anyio import to_thread
from fastapi import Query
from sqlalchemy import Engine

from pricing_pipeline.api.access import Caller, caller_with
from pricing_pipeline.api.problems import Refused, invalid
from pricing_pipeline.demand import instruments, lists, viewers
from pricing_pipeline.demand.freshness import AnyPair
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.keys import api_tokens
from pricing_pipeline.keys.api_tokens import ApiToken, Pair

ListName = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=48,
        alias="list",
        description="Instead of symbols: a list of the user, whose pairs are watched for five minutes from now.",
        examples=["mine"],
    ),
]
_SHOWN = 5
"""How many symbols a refusal names."""


async def listed(database: Engine, caller: Caller, name: str, data_type: str | None) -> list[Pair]:
    """The pairs of a list of the caller's user, of one data type if that is given; all of the list are watched now.

    Raises Refused if the token is that of a feed or does not allow to watch, and UnknownList.
    """
    if caller.token.is_feed:
        raise invalid("parameter list: a feed reads its own symbols. Leave the list out")
    caller_with(caller.token, Scope.WATCH, caller.named_user)

    def watch() -> list[Pair]:
        with database.begin() as connection:
            return lists.watch(connection, caller.user, name)

    return [pair for pair in await to_thread.run_sync(watch) if data_type in (None, pair[0])]


def narrowed(
    database: Engine, token: ApiToken, named: Sequence[AnyPair] | None, data_type: str | None = None
) -> list[Pair]:
    """The pairs of a feed that a request names, a symbol without a data type in each of its types.

    With None it names all, of one data type if that is given. Raises Refused if one is not of the feed, known or not.
    """
    with database.begin() as connection:
        feed = api_tokens.feed(connection, token.token_id)
        if feed and token.list is not None and token.user_id is not None:
            viewers.heartbeat(connection, token.user_id, feed)
        if named is None:
            named = [pair for pair in feed if data_type in (None, pair[0])]
        symbols = [symbol for _, symbol in named]
        spelled = instruments.all_spelled_anywhere(connection, symbols) if symbols else []
    of_symbol: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in feed:
        of_symbol[pair[1]].append(pair)
    wanted: dict[Pair, None] = {}
    others = []
    for (type_, given), symbol in zip(named, spelled, strict=True):
        own = [pair for pair in of_symbol[symbol] if type_ in (None, pair[0])]
        wanted |= dict.fromkeys(own)
        if not own:
            others.append(given if type_ is None else f"{type_}:{given}")
    if others or not wanted:
        some = f"{', '.join(others[:_SHOWN])}{' and others' if len(others) > _SHOWN else ''}"
        raise Refused(
            403,
            "not-in-feed",
            f"the feed {token.name!r} does not read {some or 'anything of this data type'}. "
            "`pricing-pipeline token add NAME --feed --symbols ...` makes one that does",
        )
    return list(wanted)
