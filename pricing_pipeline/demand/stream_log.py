"""The log that live streams read: the events of the pairs that they show. The streams themselves are in the API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.query_loader import call_sql, driver_query, query
from pricing_pipeline.domain.exact import to_decimal
from pricing_pipeline.domain.prices import Missing, Price, Reason
from pricing_pipeline.errors import UnknownDataType

if TYPE_CHECKING:
    from sqlalchemy import Connection

Pair = tuple[str, str]
"""A data type and a symbol."""


@dataclass(frozen=True, slots=True)
class PairEvent:
    """An event of a pair: its price and freshness as they became at a position of the log, or that it has no price.

    Of a state (the newest event of a pair), `position` is the one since which the log has all events of the pair.
    `age_seconds` counts to the event; `paused`, `provider_active` and `frozen_since` are of now.
    """

    position: int
    is_new_price: bool
    content: Price | Missing

    @property
    def pair(self) -> Pair:
        """The pair that it is about."""
        return self.content.data_type or "", self.content.symbol


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one look at the log.

    `log_id` tells this log from that of another database, or from before a restore. `position` is how far it goes, and
    events up to `kept_from` are deleted. `events` are those after the position that was asked for, `states` are those
    of the opened pairs at `position`, and `caught_up` the events of the opened pairs since the earliest position from
    which a stream goes on, among those that are not deleted.
    """

    log_id: str
    position: int
    kept_from: int
    events: list[PairEvent]
    states: Mapping[Pair, PairEvent]
    caught_up: list[PairEvent]

    def convert_prices(self, form: Callable[[Price], Price | Missing]) -> Look:
        """The same with each price in another form."""

        def each(event: PairEvent) -> PairEvent:
            return event if isinstance(event.content, Missing) else replace(event, content=form(event.content))

        states = {pair: each(event) for pair, event in self.states.items()}
        return replace(
            self,
            events=[*map(each, self.events)],
            states=states,
            caught_up=[*map(each, self.caught_up)],
        )


def look(
    connection: Connection, after: int | None, opened: Iterable[Pair] = (), resume_from: Iterable[int] = ()
) -> Look:
    """Look for changes and read the log after a position, in one transaction, which the caller commits.

    Send the events only after the commit: a crash may undo the positions of a transaction that is not on disk. The
    opened pairs are streamed from now on.
    """
    pairs = _columns(opened)
    position, kept_from, log_id = connection.execute(query("stream.look"), pairs).one()
    events = []
    if after is not None and kept_from <= after < position:
        of_all = {"data_types": None, "symbols": None}
        events = _events(connection, "stream.events", {**of_all, "after": after, "until": position})
    if not pairs["symbols"]:
        return Look(log_id, position, kept_from, events, {}, [])
    states = {state.pair: state for state in _events(connection, "stream.states", pairs)}
    earliest = min((at for at in resume_from if kept_from <= at), default=position)
    caught_up = []
    if earliest < position:
        parameters = {**pairs, "after": earliest, "until": position}
        caught_up = _events(connection, "stream.events", parameters)
    return Look(log_id, position, kept_from, events, states, caught_up)


def watched(connection: Connection, users: Sequence[str]) -> dict[str, set[Pair]]:
    """The pairs of prices that users watch."""
    pairs_of: dict[str, set[Pair]] = {user: set() for user in users}
    for user, data_type, symbol in connection.execute(query("stream.watched"), {"users": list(users)}):
        pairs_of[user].add((data_type, symbol))
    return pairs_of


def renew(connection: Connection, user: str) -> None:
    """Note that a user looks at all pairs that `watched` shows. A pair that the user leaves at the same time is
    left."""
    call_sql(connection, "lock_allowance", user)
    connection.execute(query("stream.renew"), {"user": user})


def spelled(connection: Connection, pairs: Iterable[Pair]) -> set[Pair]:
    """Pairs as their instruments are spelled. Raises UnknownDataType, also for a type of documents."""
    columns = _columns(pairs)
    odd = connection.execute(query("stream.not_streamed"), columns).scalar_one_or_none()
    if odd is not None:
        raise UnknownDataType(
            f"no active data type of prices is called {odd!r}. `pricing-pipeline type list` shows the data types; "
            "those of other contents, such as documents and slots, are not streamed."
        )
    symbols = call_sql(connection, "spelled", columns["data_types"], columns["symbols"]).scalar_one()
    return set(zip(columns["data_types"], symbols or [], strict=True))


def _events(connection: Connection, name: str, parameters: Mapping[str, Any]) -> list[PairEvent]:
    return [_event(row) for row in driver_rows(connection, driver_query(name), parameters)]


def _event(row: tuple[Any, ...]) -> PairEvent:
    position, is_new_price, symbol, data_type, state, sentence, since, next_at, amount, scale, *rest = row
    why = Reason(state, sentence, since, next_at)
    if amount is None:
        return PairEvent(position, is_new_price, Missing(symbol, data_type, why))
    is_daily, currency, observed_at, fetched_at, noted_at, verdict = rest[:6]
    paused, provider, provider_active, frozen_since = rest[6:]
    price = Price(
        symbol=symbol,
        data_type=data_type,
        date=observed_at.astimezone(UTC).date() if is_daily else None,
        price=to_decimal(amount, scale),
        currency=currency,
        observed_at=observed_at,
        fetched_at=fetched_at,
        age_seconds=round((noted_at - fetched_at).total_seconds(), 3),
        state=verdict,
        fresh=verdict == "fresh",
        paused=paused,
        provider=provider,
        provider_active=provider_active,
        frozen_since=frozen_since,
        why=None if state is None else why,
    )
    return PairEvent(position, is_new_price, price)


def _columns(pairs: Iterable[Pair]) -> dict[str, list[str]]:
    ordered = sorted(set(pairs))
    return {"data_types": [pair[0] for pair in ordered], "symbols": [pair[1] for pair in ordered]}
