"""A provider that comes and goes, its viewers and one drain, on a clock that passes only when it is moved.

The drain does each second what a `Refresher` does, with the project's own words; only the calls are not made. The clock
is a table, so that moving it does not cost every session its plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pricing_pipeline.demand import freshness
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.errors import (
    ClientFault,
    KeyRefused,
    Misconfigured,
    PlanRestricted,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline.queue import task_queue
from pricing_pipeline.refresh.settling import settle_failure
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core, symbols

START = datetime(2026, 3, 10, 15, tzinfo=UTC)
TTL, GRACE = timedelta(minutes=1), timedelta(seconds=30)

TROUBLE: dict[str, ProviderError] = {
    "provider_down": ProviderDown("twelvedata answered 503", http_status=503),
    "schema_drift": SchemaDrift("twelvedata sent a web page"),
    "key_refused": KeyRefused("twelvedata does not accept the key", http_status=401),
    "throttled": Throttled("too fast", http_status=429),
    "request_refused": RequestRefused("twelvedata answered 400: Bad Request", http_status=400),
    "endpoint_restricted": PlanRestricted("not in your plan", http_status=403, is_whole_endpoint=True),
    "misconfigured": Misconfigured("the base URL is missing"),
    "client_fault": ClientFault("our own code failed"),
}


def freeze(core: Core) -> None:
    """Have the database's clock stand still at START."""
    core.rows("CREATE TABLE pricing.frozen_clock AS SELECT CAST(:at AS timestamptz) AS at", at=START)
    core.rows("GRANT SELECT ON pricing.frozen_clock TO PUBLIC")
    core.rows(
        "CREATE OR REPLACE FUNCTION pricing.clock() RETURNS timestamptz LANGUAGE sql VOLATILE"
        " SET search_path = '' AS 'SELECT at FROM pricing.frozen_clock'"
    )
    # What would fetch the pair elsewhere is another story.
    core.rows("DELETE FROM pricing.provider_routing WHERE rank > 1")


def fresh_world(core: Core, count: int, batch_size: int = 1) -> OutageWorld:
    """A world of so many pairs, all of them fresh. A call asks for `batch_size` of them."""
    freeze(core)
    core.lift_limits(batch_size)
    world = OutageWorld(core, symbols(count))
    world.pass_by(2)
    assert set(world.states().values()) == {"fresh"}
    return world


class OutageWorld:
    """Pairs of one data type that one provider serves, all of them watched by ann."""

    def __init__(self, core: Core, symbols: Sequence[str]) -> None:
        self.core = core
        self.now = self.source_now = START
        self.symbols = list(symbols)
        self.trouble: str | None = None
        self.unknown: set[str] = set()
        self.poisoned: set[str] = set()
        self.refused: set[str] = set()
        """Requests for these alone are answered with 400."""
        self.asked: list[tuple[datetime, tuple[str, ...]]] = []
        self.confirmed: dict[str, datetime] = {}
        self.outcomes: dict[str, str] = {}
        self.failing_since: dict[str, datetime] = {}
        self.answered_at = START
        self._beaten_at = START - timedelta(hours=1)

    def pass_by(self, seconds: float, step: float = 1.0) -> None:
        """Let time pass, the drain at work."""
        until = self.now + timedelta(seconds=seconds)
        while self.now < until:
            self.move(min(step, (until - self.now).total_seconds()))
            self.work()

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.source_now += timedelta(seconds=max(seconds, 0))  # nobody sets the source's clock back
        self.core.rows("UPDATE pricing.frozen_clock SET at = :now", now=self.now)

    def work(self) -> None:
        """What a drain does each second."""
        if self.now - self._beaten_at >= timedelta(minutes=2):
            self._beaten_at = self.now
            self.core.heartbeat("ann", *((QUOTE, symbol) for symbol in self.symbols))
        self.core.enqueue_due()
        self.core.promote()
        self.tend()
        while calls := self.core.claim(TWELVEDATA, max_calls=10):
            for call in calls:
                self._answer(call)

    def look_as_client(self, user: str, symbol: str) -> None:
        """A client's first heartbeat, which a worker serves later."""
        self.core.rows(
            "SELECT pricing.heartbeat(:user, ARRAY[:type], ARRAY[:symbol], false)",
            user=user,
            type=QUOTE,
            symbol=symbol,
        )

    def tend(self) -> int:
        with self.core.engine.begin() as connection:
            return task_queue.tend_outages(connection)

    def _answer(self, call: Call) -> None:
        self.asked.append((self.now, tuple(call.symbols)))
        asked = set(call.symbols)
        outcome = self._outcome(asked)
        if outcome == "ok":
            self.core.finish(call, seconds_old=(self.now - self.source_now).total_seconds())
            self.confirmed |= dict.fromkeys(asked, self.now)
            self.answered_at = self.now
        elif outcome == "unknown_symbol":
            assert len(asked) == 1, "symbols that nobody knows are asked for one by one here"
            self.core.fail(call, FailureKind.UNKNOWN_SYMBOL, "no such symbol")
            self.core.settle(call, kind=FailureKind.UNKNOWN_SYMBOL)
            self.answered_at = self.now  # it knows what it serves and what not
        else:
            settle_failure(self.core.engine, call, TROUBLE[outcome])
        self.outcomes |= dict.fromkeys(asked, outcome)
        for symbol in asked:
            if outcome == "ok":
                self.failing_since.pop(symbol, None)
            else:
                self.failing_since.setdefault(symbol, self.now)

    def _outcome(self, asked: set[str]) -> str:
        if self.trouble is not None:
            return self.trouble
        if asked & self.poisoned:
            return "schema_drift"
        if asked & self.refused:
            return "request_refused"
        return "unknown_symbol" if asked & self.unknown else "ok"

    # Looking

    def freshness(self) -> freshness.Freshness:
        with self.core.engine.connect() as connection:
            (row,) = freshness.measure(connection, [QUOTE])
        return row

    def states(self) -> dict[str, str]:
        rows = self.core.rows("SELECT symbol, state FROM pricing.watched_pairs()")
        return {row.symbol: row.state for row in rows}

    def calls_since(self, moment: datetime) -> int:
        return sum(at > moment for at, _ in self.asked)
