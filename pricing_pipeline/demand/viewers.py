"""Subscriptions and holdings of users: heartbeats, leaving, holding, closing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from psycopg import errors

from pricing_pipeline.db.errors import statement_error
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import CapExceeded, PairsRefused

if TYPE_CHECKING:
    from sqlalchemy import Connection

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""Characters that the database cannot store: a NUL, or half a surrogate pair."""
_LONGEST_TEXT = 200
"""Characters of a symbol that is too long to be one, as it is answered."""
MOST_HELD = 10**30
"""The largest quantity of a holding, far above any real one."""
MOST_DECIMALS = 30
"""Decimals of a quantity; coins need eighteen."""
_TOLD_FAULTS = 5
"""So many kinds of faults are told in a sentence each."""


@dataclass(frozen=True, slots=True)
class Watching:
    """The subscriptions of a data type or of a client; of all if both are None. `seen_at` is the last heartbeat."""

    data_type: str | None
    user_id: str | None
    subscriptions: int
    clients: int
    pairs: int
    seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A viewer of a pair: since when, and the last heartbeat."""

    user_id: str
    data_type: str
    symbol: str
    subscribed_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class Holding:
    """A holder of a pair; `status` is active, or closed since `closed_at`. An unknown `quantity` is None."""

    user_id: str
    data_type: str
    symbol: str
    quantity: Decimal | None
    status: str
    since: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """What became of a pair whose symbol was `given`: `outcome` is accepted, doubtful (with a warning) or refused.

    `symbol` is its canonical spelling, None if it is refused. `code` is the reason in one word, `proposal` an
    alternative, and `retry_after` the seconds until the same pair may be accepted.
    """

    data_type: str
    given: str
    symbol: str | None
    outcome: str
    code: str | None
    reason: str | None
    proposal: str | None
    retry_after: int | None


@dataclass(frozen=True, slots=True)
class Fault:
    """The doubts or refusals of one kind: how many pairs, and one sentence that names some of them."""

    outcome: str
    code: str
    pairs: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of the pairs of a request. `changed` are new; `pairs` are those not accepted as they are written."""

    changed: int
    accepted: int
    doubtful: int
    refused: int
    pairs: Sequence[PairAnswer]
    faults: Sequence[Fault]

    def by_pair(self) -> dict[tuple[str, str], PairAnswer]:
        """`pairs` by their data type and their symbol as it was given."""
        return {(pair.data_type, pair.given): pair for pair in self.pairs}

    def taken(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those pairs of the request that are not refused, each once and in its canonical spelling."""
        told = self.by_pair()
        answers = [
            (data_type, told[data_type, symbol].symbol if (data_type, symbol) in told else symbol)
            for data_type, symbol in map(storable, pairs)
        ]
        return list(dict.fromkeys((data_type, symbol) for data_type, symbol in answers if symbol is not None))

    @property
    def refusals(self) -> str:
        """Why pairs are refused, in a sentence for each of the first kinds."""
        told = [fault.sentence for fault in self.faults if fault.outcome == "refused"]
        more = len(told) - _TOLD_FAULTS
        return " ".join(told[:_TOLD_FAULTS] + ([f"{more} more kinds of faults are not listed."] if more > 0 else []))


def heartbeat(
    connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]], *, all_or_nothing: bool = False
) -> Answer:
    """Note that a user watches these (data type, symbol) pairs now; each is accepted or refused separately.

    Missing instruments are created, unverified until a provider's first valid answer; missing or stale prices are
    queued in the same transaction. With `all_or_nothing`, a refused pair raises PairsRefused, or CapExceeded if only
    the user's caps refuse any, and nothing is changed.
    """
    return _begin(connection, "heartbeat", user_id, pairs, all_or_nothing)


def unsubscribe(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """End a user's subscriptions to these pairs; returns how many ended."""
    return int(call_sql(connection, "unsubscribe", user_id, *_lists(sorted(set(pairs)))).scalar_one())


def hold(
    connection: Connection,
    user_id: str,
    pairs: Sequence[tuple[str, str]],
    *,
    quantities: Sequence[Decimal | None] | None = None,
    all_or_nothing: bool = False,
) -> Answer:
    """Note that a user holds these pairs from now on; answers and raises as `heartbeat` does.

    Held pairs are fetched if they have no price, and kept fresh by the background TTL. Missing instruments are created
    as by a heartbeat. `quantities`, one for each pair, replace the stored ones; None keeps the stored one. If a pair
    comes twice, its quantities are added.
    """
    if quantities is None or all(quantity is None for quantity in quantities):
        return _begin(connection, "hold", user_id, pairs, all_or_nothing)
    return _begin(connection, "hold", user_id, pairs, all_or_nothing, quantities)


def release(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """Close a user's holdings of these pairs; returns how many were closed."""
    return int(call_sql(connection, "release", user_id, *_lists(sorted(set(pairs)))).scalar_one())


def serve_requests(connection: Connection) -> int:
    """Serve new requests of clients; returns how many pairs are queued. `enqueue_due` does it, too."""
    return int(call_sql(connection, "serve_requests").scalar_one())


def subscriptions(
    connection: Connection,
    user_id: str | None,
    data_type: str | None,
    symbols: Sequence[str] | None,
    at_most: int,
    after: tuple[str, str, str] | None = None,
) -> list[Subscription]:
    """Who watches what, by user, data type and symbol, after these three; None does not choose."""
    parameters = {
        "user_id": user_id,
        "data_type": data_type,
        "symbols": symbols,
        "at_most": at_most,
        **_after(after),
    }
    rows = connection.execute(query("demand.subscriptions"), parameters).mappings()
    return [Subscription(**row) for row in rows]


def holdings(
    connection: Connection,
    user_id: str | None,
    data_type: str | None,
    symbols: Sequence[str] | None,
    at_most: int,
    *,
    closed_too: bool,
    after: tuple[str, str, str] | None = None,
) -> list[Holding]:
    """Who holds what, by user, data type and symbol, after these three; None does not choose."""
    parameters = {
        "user_id": user_id,
        "data_type": data_type,
        "symbols": symbols,
        "at_most": at_most,
        "closed_too": closed_too,
        **_after(after),
    }
    return [Holding(**row) for row in connection.execute(query("demand.holdings"), parameters).mappings()]


def watching(connection: Connection) -> list[Watching]:
    """The subscriptions of all, of each data type and of each client, the largest number first."""
    return [Watching(**row) for row in connection.execute(query("demand.watching")).mappings()]


def within_caps(connection: Connection, function: str, *arguments: object) -> int:
    """The result of a function that enforces a user's caps. Raises CapExceeded when it refuses."""
    try:
        return int(call_sql(connection, function, *arguments).scalar_one())
    except statement_error() as error:
        diagnostics = getattr(error.orig, "diag", None)
        if diagnostics is None or not isinstance(error.orig, errors.ConfigurationLimitExceeded):
            raise
        detail = json.loads(diagnostics.message_detail)
        room, retry_after = detail["room"], detail.get("retry_after")
        when = f" and for the rest in {retry_after} s" if retry_after is not None else ""
        raise CapExceeded(
            f"{diagnostics.message_primary}. There is room for {room} of them now{when}. {diagnostics.message_hint}",
            room=room,
            retry_after=retry_after,
        ) from error


def _begin(
    connection: Connection,
    function: str,
    user_id: str,
    pairs: Sequence[tuple[str, str]],
    all_or_nothing: bool,
    *more: Sequence[Decimal | None],
) -> Answer:
    # In the given order, which decides which pairs a cap refuses.
    arguments = (user_id, *_lists(pairs if more else dict.fromkeys(pairs)), *map(list, more))
    if not all_or_nothing:
        return _answer(call_sql(connection, function, *arguments).scalar_one())
    with connection.begin_nested():
        answer = _answer(call_sql(connection, function, *arguments).scalar_one())
        if answer.refused:
            raise _refusal(answer)
    return answer


def is_storable(text: str) -> bool:
    """Whether the database can store a text: it has no NUL, and no half of a surrogate pair."""
    return _NO_TEXT.search(text) is None


def storable(pair: tuple[str, str]) -> tuple[str, str]:
    """A pair as the database can answer it: cut, and with U+FFFD for what cannot be stored.

    What this changes is refused, and keeps no other pair out.
    """
    data_type, symbol = (_NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text[:_LONGEST_TEXT]) for text in pair)
    return data_type, symbol


def _answer(content: Mapping[str, Any]) -> Answer:
    told = {
        "pairs": [PairAnswer(**pair) for pair in content["pairs"]],
        "faults": [Fault(**fault) for fault in content["faults"]],
    }
    return Answer(**{**content, **told})


def _refusal(answer: Answer) -> PairsRefused | CapExceeded:
    refused = [pair for pair in answer.pairs if pair.outcome == "refused"]
    message = f"nothing was changed: {answer.refusals}"
    if {pair.code for pair in refused} <= {"pairs_per_user", "new_pairs_per_minute"}:
        waits = [pair.retry_after for pair in refused]
        retry_after = None if None in waits else max(wait for wait in waits if wait is not None)
        return CapExceeded(message, room=answer.changed, retry_after=retry_after)
    return PairsRefused(message, [asdict(pair) for pair in answer.pairs])


def _after(key: tuple[str, str, str] | None) -> dict[str, str | None]:
    return dict(zip(("after_user", "after_type", "after_symbol"), key or (None,) * 3, strict=True))


def _lists(pairs: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
    listed = [storable(pair) for pair in pairs]
    return [data_type for data_type, _ in listed], [symbol for _, symbol in listed]
