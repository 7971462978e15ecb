"""`subscription watch|end|list`: watch from the foreground, end and list subscriptions.

What a heartbeat does is decided by the database (db/functions/demand/demand.sql).
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from decimal import Decimal
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from pricing_pipeline.cli import pair_answers, reads
from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.options import (
    AllOrNothing,
    AnySymbols,
    AnyType,
    AnyUser,
    Json,
    Limit,
    Symbols,
    Type,
    User,
)
from pricing_pipeline.cli.output import (
    console,
    decimal,
    duration,
    iso,
    listed,
    login,
    moment,
    print_event,
    print_json,
    print_table,
)
from pricing_pipeline.cli.program import hint, warn
from pricing_pipeline.cli.style import in_zone, listing, zone, zoned
from pricing_pipeline.db import errors as database_errors
from pricing_pipeline.demand import freshness, instruments, viewers
from pricing_pipeline.domain.words import as_object
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.prices import documents, price_reader
from pricing_pipeline.processes.leaving import Leave

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from pricing_pipeline.domain.prices import Price

noun = typer.Typer()

HEARTBEAT_SECONDS = 60.0
POLL_SECONDS = 2.0
SILENCE_SECONDS = 5.0
"""How long a pair may lack a fresh price before the reason is printed, and how often it is looked up."""
_FIGURES = re.compile(r"\d[\d:.,-]*(st|nd|rd|th)?( (s|min|h|days)\b)?")
"""What changes in a sentence although its reason stays."""
_NO_WAITS = frozenset({"fresh", "not_due"})
"""States of `why` in which nothing is waited for."""
_LONGEST_PAUSE = 15.0
_RETRIES = 5
T = TypeVar("T")


class Viewer:
    """One viewer of some symbols of one data type, until `leave` is set or the time is up.

    An outage of the database does not end it: it warns, tries again, and the
    first heartbeat that gets through restores what was forgotten meanwhile.
    """

    def __init__(
        self,
        engine: Engine,
        user: str,
        pairs: Sequence[tuple[str, str]],
        leave: Leave,
        *,
        as_json: bool,
        all_or_nothing: bool = False,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        poll_seconds: float = POLL_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self._engine = engine
        self._user = user
        self._pairs = list(pairs)
        self._data_type = pairs[0][0]
        self._symbols = [symbol for _, symbol in pairs]
        self._leave = leave
        self._as_json = as_json
        self._all_or_nothing = all_or_nothing
        self._heartbeat_seconds = heartbeat_seconds
        self._poll_seconds = poll_seconds
        self._silence_seconds = silence_seconds
        self._asked_why_at = float("-inf")
        self._waits_since: dict[str, float] = {}
        self._waits_for: dict[str, str] = {}
        self._seen: dict[str, Price] = {}
        self._documents: dict[str, documents.DocumentCount] = {}
        self._confirmed: dict[str, reads.Confirmed] = {}
        self._failed: dict[str, str] = {}
        self._console = console()

    def run(self, seconds: float | None) -> None:
        """Watch for `seconds`, or until asked to leave. Raises PairsRefused if no pair can be watched."""
        ends = float("inf") if seconds is None else time.monotonic() + seconds
        answer = self._heartbeat()
        if not self._as_json:
            pair_answers.tell_doubts(answer)
            if answer.refused:
                warn(answer.refusals)
        self._print(
            {
                "event": "subscribed",
                "user": self._user,
                "data_type": self._data_type,
                "symbols": self._symbols,
                **pair_answers.content(answer),
            },
            f"Watching {self._data_type} {listed(self._symbols)} as {self._user}, one heartbeat a minute. "
            "Ctrl-C leaves.",
        )
        try:
            self._stay(ends)
        finally:
            self._unsubscribe()

    def _stay(self, ends: float) -> None:
        next_heartbeat = time.monotonic() + self._heartbeat_seconds
        pause = 0.0
        while not self._leave.is_set() and time.monotonic() < ends:
            try:
                if pause or time.monotonic() >= next_heartbeat:
                    # Counted from the last due time: heartbeats that came late must not drift.
                    next_heartbeat = max(next_heartbeat, time.monotonic()) + self._heartbeat_seconds
                    answer = self._heartbeat()
                    if answer.refused:
                        self._warn(answer.refusals)
                    self._print({"event": "heartbeat", **pair_answers.content(answer)})
                self._poll()
                if pause:
                    self._warn("the database answers again")
                pause = 0.0
            except _outages() as error:
                if not pause:
                    self._warn(f"{error} Trying again until it does.")
                pause = min(max(1.0, pause * 2), _LONGEST_PAUSE)
            self._leave.wait(max(0.0, min(pause or self._poll_seconds, ends - time.monotonic())))

    def _heartbeat(self) -> viewers.Answer:
        """Send a heartbeat; pairs for which there may be room later are repeated in the next one."""
        answer = self._write(
            lambda connection: viewers.heartbeat(
                connection, self._user, self._pairs, all_or_nothing=self._all_or_nothing
            )
        )
        taken = answer.taken(self._pairs)
        waiting = [(pair.data_type, pair.given) for pair in answer.pairs if pair.retry_after is not None]
        if not taken and not waiting:
            pair_answers.require_all(answer)
        self._pairs = taken + waiting
        self._symbols = [symbol for _, symbol in self._pairs]
        return answer

    def _write(self, work: Callable[[Connection], T]) -> T:
        from sqlalchemy.exc import DBAPIError

        for attempt in range(1, _RETRIES + 1):
            try:
                with self._engine.begin() as connection:
                    return work(connection)
            except DBAPIError as error:
                if attempt == _RETRIES or not database_errors.is_conflict(error):
                    raise
        raise AssertionError("unreachable")

    def _poll(self) -> None:
        with self._engine.connect() as connection:
            latest = price_reader.latest(connection, *self._symbols, data_type=self._data_type)
            stocks = documents.newest(connection, self._data_type, self._symbols)
            confirmed = reads.confirmed(connection, self._data_type, self._symbols)
            failures = reads.faults(connection, self._data_type, self._symbols)
            reasons = self._reasons(connection, latest, {failure.symbol for failure in failures})
        for price in latest:
            before = self._seen.get(price.symbol)
            if before is None or (before.price, before.observed_at) != (price.price, price.observed_at):
                self._seen[price.symbol] = price
                self._tell_price(price, before)

        for stock in stocks:
            if self._documents.get(stock.symbol) != stock:
                self._documents[stock.symbol] = stock
                self._tell_documents(stock)

        for row in confirmed:
            if self._confirmed.get(row.symbol) != row:
                self._confirmed[row.symbol] = row
                self._tell_confirmed(row)

        for failure in failures:
            if self._failed.get(failure.symbol) != failure.reason:
                self._failed[failure.symbol] = failure.reason
                self._tell_failure(failure)

        self._tell_reasons(reasons)

    def _reasons(self, connection: Connection, latest: Sequence[Price], failed: Collection[str]) -> list[freshness.Why]:
        """Why pairs have been without a fresh price for some seconds, except those whose failure says it."""
        now = time.monotonic()
        fresh = {price.symbol for price in latest if price.fresh}
        self._waits_since = {
            symbol: self._waits_since.get(symbol, now) for symbol in self._symbols if symbol not in fresh
        }
        self._waits_for = {symbol: why for symbol, why in self._waits_for.items() if symbol in self._waits_since}
        waiting = [
            (self._data_type, symbol)
            for symbol, since in self._waits_since.items()
            if now >= since + self._silence_seconds and symbol not in failed
        ]
        if not waiting or now < self._asked_why_at + self._silence_seconds:
            return []
        self._asked_why_at = now
        return freshness.why_pairs(connection, waiting)

    def _tell_reasons(self, reasons: Sequence[freshness.Why]) -> None:
        """Tell the reasons that are new, those of one kind in one line."""
        alike: dict[str, list[freshness.Why]] = {}
        for reason in reasons:
            kind = _FIGURES.sub("", reason.sentence)
            if reason.state in _NO_WAITS or self._waits_for.get(reason.symbol) == kind:
                continue
            self._waits_for[reason.symbol] = kind
            alike.setdefault(kind.replace(reason.symbol, ""), []).append(reason)
            if self._as_json:
                content = {"event": "waiting", "data_type": self._data_type, "symbol": reason.symbol}
                next_at = None if reason.next_at is None else iso(reason.next_at)
                print_event(content | {"state": reason.state, "sentence": reason.sentence, "next_at": next_at})
        for first, *others in [] if self._as_json else alike.values():
            who = listed([reason.symbol for reason in (first, *others)])
            words = f"{first.sentence[:1].upper()}{first.sentence[1:]}."
            self._console.print(f"{who} {'wait' if others else 'waits'}. {words}")

    def _tell_failure(self, failure: reads.Fault) -> None:
        content = {"event": "failed", "data_type": self._data_type, "symbol": failure.symbol}
        until = moment(failure.backoff_until)
        self._print(
            content | {"reason": failure.reason, "backoff_until": iso(failure.backoff_until)},
            f"{failure.symbol} failed: {failure.reason.rstrip('. ')}. It is left alone until {until} {zone()}.",
        )

    def _tell_documents(self, stock: documents.DocumentCount) -> None:
        content = {"event": "documents", "data_type": self._data_type, "symbol": stock.symbol}
        count = f"{stock.documents} document{'s' if stock.documents > 1 else ''}"
        self._print(
            content | {"documents": stock.documents, "recorded_at": iso(stock.recorded_at)},
            f"{moment(stock.recorded_at)}  {stock.symbol:<8} {count}",
        )

    def _tell_confirmed(self, row: reads.Confirmed) -> None:
        content = {"event": "confirmed", "data_type": self._data_type, "symbol": row.symbol}
        self._print(
            content | {"fetched_at": iso(row.fetched_at), "provider": row.provider},
            f"{moment(row.fetched_at)}  {row.symbol:<8} confirmed by {row.provider}",
        )

    def _tell_price(self, price: Price, before: Price | None) -> None:
        content = {"event": "price", **as_object(price), "previous": before and decimal(before.price)}
        line = f"{moment(price.observed_at)}  {price.symbol:<8} {decimal(price.price):>12} {price.currency or ''}"
        if before is not None:
            line += f"  {_change(before.price, price.price)}"
        elif not price.fresh:
            line += f"  {duration(price.age_seconds)} old, being refreshed"
        self._print(content, line)

    def _unsubscribe(self) -> None:
        try:
            ended = self._write(lambda connection: viewers.unsubscribe(connection, self._user, self._pairs))
        except _outages() as error:
            self._warn(f"{error} The subscription ends by itself five minutes after its last heartbeat.")
        else:
            self._print({"event": "unsubscribed", "ended": ended}, f"{self._user} has left.")

    def _print(self, content: dict[str, Any], line: str | None = None) -> None:
        if self._as_json:
            print_event(content)
        elif line is not None:
            self._console.print(line)

    def _warn(self, message: str) -> None:
        if self._as_json:
            print_event({"event": "warning", "message": message})
        else:
            warn(message)


@noun.command()
@zoned
def watch(
    symbols: Symbols,
    data_type: Type,
    user: User = None,
    minutes: Annotated[float | None, typer.Option(help="Leave after this many minutes; default: at Ctrl-C.")] = None,
    all_or_nothing: AllOrNothing = False,
    as_json: Json = False,
) -> None:
    """Watch prices, which keeps them fresh: one heartbeat a minute until you leave.

    A symbol that is new here is added to the instruments, unverified until a provider's first valid
    answer. Symbols that are refused are named with the reason, and the others are watched. A pair without a fresh price
    says why after five seconds, and again when the reason changes. With --json, one line per event: subscribed, price,
    documents, confirmed, waiting, failed, heartbeat, warning, unsubscribed.

    \b
    Example: pricing-pipeline subscription watch AAPL MSFT --type equity_quote --minutes 5
    """
    if minutes is not None and minutes <= 0:
        raise typer.BadParameter(f"--minutes {minutes:g} leaves before it begins. Give more than 0")
    user = login() if user is None else user
    with open_engine() as engine, _asked_to_leave() as leave:
        pairs = [(data_type, symbol) for symbol in symbols]
        Viewer(engine, user, pairs, leave, all_or_nothing=all_or_nothing, as_json=as_json).run(
            None if minutes is None else minutes * 60
        )


@noun.command()
def end(symbols: Symbols, data_type: Type, user: User = None, as_json: Json = False) -> None:
    """End subscriptions that were not ended where they began.

    \b
    Example: pricing-pipeline subscription end AAPL MSFT --type equity_quote --user alice
    """
    pair_answers.end(viewers.unsubscribe, user, data_type, symbols, words=("watches", "watching"), as_json=as_json)


@noun.command("list")
@listing
def list_(
    symbols: AnySymbols = None,
    data_type: AnyType = None,
    user: AnyUser = None,
    at_most: Limit = 100,
    as_json: Json = False,
) -> None:
    """List who watches what now, and since when.

    \b
    Example: pricing-pipeline subscription list AAPL --type equity_quote
    """
    with open_connection() as connection:
        if data_type is not None:
            reads.any_data_type(connection, data_type)
        named = [instruments.spelled_anywhere(connection, symbol) for symbol in symbols] if symbols else None
        subscriptions = viewers.subscriptions(connection, user, data_type, named, at_most + 1)
    if as_json:
        print_json({"subscriptions": [asdict(subscription) for subscription in subscriptions[:at_most]]})
        return
    print_table(
        ["user", "data type", "symbol", in_zone("since"), in_zone("last seen")],
        [
            (
                subscription.user_id,
                subscription.data_type,
                subscription.symbol,
                moment(subscription.subscribed_at),
                moment(subscription.last_seen_at),
            )
            for subscription in subscriptions[:at_most]
        ],
        spare=[in_zone("since")],
    )
    if not subscriptions:
        typer.echo("no such subscriptions.")
    elif len(subscriptions) > at_most:
        hint(f"There are more; --limit shows more than {at_most}.")


def _change(before: Decimal, now: Decimal) -> str:
    if now == before:
        return "unchanged"
    relative = f" ({(now - before) / before * 100:+.2f} %)" if before else ""
    return f"{now - before:+f}{relative}"


@contextmanager
def _asked_to_leave() -> Iterator[Leave]:
    """What SIGINT, SIGTERM and SIGHUP set; a second signal ends the process in its usual way."""
    leave = Leave()
    before: dict[signal.Signals, Any] = {}

    def ask(number: int, frame: FrameType | None) -> None:
        leave.set()
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A script's `command &` starts us with SIGINT ignored, yet must not leave us behind; nohup means it.
        if each is not signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN:
            before[each] = signal.signal(each, ask)
    try:
        yield leave
    finally:
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)


def _outages() -> tuple[type[Exception], ...]:
    """Errors that end by themselves. They are looked up after one has happened."""
    from sqlalchemy.exc import OperationalError

    return (DatabaseError, OperationalError)
