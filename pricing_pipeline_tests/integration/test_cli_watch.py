"""`subscription watch` and `end`: the subscription lives exactly as long as the command, outages included."""

from __future__ import annotations

import io
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from itertools import pairwise
from typing import Any, Self

import pytest
from sqlalchemy import Connection, Engine, make_url, text

from pricing_pipeline.cli import subscription
from pricing_pipeline.cli.subscription import Viewer
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.processes.leaving import Leave
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until


def watchers(core: Core) -> list[tuple[str, str, str]]:
    rows = core.rows("SELECT user_id, data_type, symbol FROM pricing.active_subscriptions ORDER BY 1, 2, 3")
    return [(row.user_id, row.data_type, row.symbol) for row in rows]


class Screen(ExitStack):
    """All that is printed in its block. What a thread prints while pytest's `capsys` is read may be lost."""

    def __init__(self) -> None:
        super().__init__()
        self._printed = io.StringIO()

    def __enter__(self) -> Self:
        self.enter_context(redirect_stdout(self._printed))
        self.enter_context(redirect_stderr(self._printed))
        return self

    @property
    def lines(self) -> list[str]:
        return self._printed.getvalue().split("\n")[:-1]

    def told(self, kind: str) -> list[dict[str, Any]]:
        """The events of one kind."""
        return [event for event in map(json.loads, self.lines) if event["event"] == kind]


@contextmanager
def watching(
    engine: Engine,
    *symbols: str,
    as_json: bool = True,
    heartbeat_seconds: float = 0.05,
    data_type: str = QUOTE,
    silence_seconds: float = 600.0,
) -> Iterator[None]:
    """A viewer who looks every 20 ms, in a thread; leaves at the end of the block."""
    leave = Leave()
    pairs = [(data_type, symbol) for symbol in symbols]
    watch = Viewer(
        engine,
        "ann",
        pairs,
        leave,
        as_json=as_json,
        heartbeat_seconds=heartbeat_seconds,
        poll_seconds=0.02,
        silence_seconds=silence_seconds,
    )
    thread = threading.Thread(target=watch.run, args=(600,))
    thread.start()
    try:
        yield
    finally:
        leave.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()


def test_b5_a_subscription_lasts_as_long_as_the_command(cli: CommandLine, core: Core) -> None:
    said = cli(
        "subscription",
        "watch",
        "TSLA",
        "AAPL",
        "AAPL",
        "--type",
        QUOTE,
        "--user",
        "ann",
        "--minutes",
        "0.001",
        "--json",
    )
    assert said.exit_code == 0
    assert said.events == [
        {"event": "subscribed", "user": "ann", "data_type": QUOTE, "symbols": ["TSLA", "AAPL"]}
        | {"changed": 2, "accepted": 2, "doubtful": 0, "refused": 0, "pairs": [], "faults": []},
        {"event": "unsubscribed", "ended": 2},
    ]
    assert watchers(core) == []
    # The first look queued what is missing, and made the missing instrument, unverified.
    assert core.statuses() == {"AAPL": "pending", "TSLA": "pending"}
    assert core.one("SELECT verified_at IS NULL FROM pricing.instruments WHERE symbol = 'TSLA'")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_b5_each_signal_that_asks_to_end_leaves(number: signal.Signals) -> None:
    before = signal.signal(number, lambda *_: None)  # one that nobody takes would end the tests
    try:
        with subscription._asked_to_leave() as leave:
            signal.raise_signal(number)
            assert leave.is_set()
    finally:
        signal.signal(number, before)


def test_b5_heartbeats_go_on(core: Core, clock: Clock) -> None:
    with watching(core.engine, "AAPL"):
        wait_until(lambda: watchers(core))
        clock.advance(240)
        moved = core.clock()
        wait_until(lambda: core.one("SELECT max(last_seen_at) FROM pricing.active_subscriptions") > moved)
        clock.advance(240)
        assert core.clean() == 0
        assert watchers(core)


def test_each_new_price_is_told_once(core: Core) -> None:
    def prices() -> list[tuple[str, str | None]]:
        return [(event["price"], event["previous"]) for event in screen.told("price")]

    with Screen() as screen, watching(core.engine, "AAPL"):
        wait_until(lambda: core.refresh(price="146.55"))
        wait_until(lambda: len(prices()) == 1)
        core.enqueue(QUOTE, "AAPL")
        core.refresh(price="146.60")
        wait_until(lambda: len(prices()) == 2)
        seen = len(screen.told("heartbeat"))
        wait_until(lambda: len(screen.told("heartbeat")) >= seen + 2)
    assert prices() == [("146.55", None), ("146.60", "146.55")]
    (first, *_) = screen.told("price")
    assert first.keys() == {
        *("event", "data_type", "symbol", "price", "currency", "observed_at", "fetched_at", "provider"),
        *("age_seconds", "fresh", "state", "paused", "provider_active", "frozen_since", "previous"),
        *("date", "why"),
    }


def test_b29_documents_that_came_or_changed_are_told_once(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('earned', 'earnings', 60)"
    )

    def counts() -> list[int]:
        return [event["documents"] for event in screen.told("documents")]

    def store(*bodies: str) -> None:
        core.call(
            "SELECT pricing.merge_documents('earned', 'fmp', 1, '{AAPL}', '{}',"
            " array_fill(CAST('AAPL' AS text), ARRAY[CAST(:count AS integer)]),"
            " (CAST('{2026-04-30,2026-07-30}' AS date[]))[1:CAST(:count AS integer)], CAST(:bodies AS jsonb[]))",
            count=len(bodies),
            bodies=list(bodies),
        )

    with Screen() as screen, watching(core.engine, "AAPL", data_type="earned"):
        store('{"eps": 1}')
        wait_until(lambda: counts() == [1])
        store('{"eps": 1}')
        store('{"eps": 1}', '{"eps": 2}')
        wait_until(lambda: counts() == [1, 2])
    (first, *_) = screen.told("documents")
    assert first.keys() == {"event", "data_type", "symbol", "documents", "recorded_at"}


def test_people_read_lines(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.finish(core.claim_one(), "150.00", seconds_old=60)
    with Screen() as screen, watching(core.engine, "AAPL", as_json=False):
        wait_until(lambda: len(screen.lines) == 2)
        core.enqueue(QUOTE, "AAPL")
        core.refresh(price="153.00")
        wait_until(lambda: len(screen.lines) == 3)
    lines = screen.lines
    assert lines[0] == "Watching equity_quote AAPL as ann, one heartbeat a minute. Ctrl-C leaves."
    assert "AAPL" in lines[1]
    assert "150.00 USD" in lines[1]
    assert lines[2].endswith("153.00 USD  +3.00 (+2.00 %)")
    assert lines[3] == "ann has left."


@contextmanager
def outage(server: TestServer, database: str) -> Iterator[None]:
    """The database throws everybody out and lets nobody in, as while it restarts."""
    with server.admin() as admin:
        admin.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database])
        try:
            yield
        finally:
            admin.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")


def test_leaving_during_an_outage_says_when_the_subscription_ends(
    core: Core, server: TestServer, database_url: str
) -> None:
    database = make_url(database_url).database
    assert database is not None
    with Screen() as screen, ExitStack() as stack, watching(core.engine, "AAPL", as_json=False):
        wait_until(lambda: watchers(core))
        stack.enter_context(outage(server, database))
        wait_until(lambda: any("Trying again" in line for line in screen.lines))
    assert "ends by itself five minutes after its last heartbeat" in screen.lines[-1]


def test_b5_a_heartbeat_that_meets_the_last_leave_is_made_again(engine: Engine) -> None:
    watch = Viewer(engine, "ann", [(QUOTE, "AAPL")], Leave(), as_json=True)
    met: list[bool] = []

    def work(connection: Connection) -> int:
        if not met:
            met.append(True)
            # What a heartbeat runs into when clean-up has just removed the demand.
            connection.execute(
                text("INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol) VALUES ('a', 'b', 'c')")
            )
        return 7

    assert watch._write(work) == 7
    assert met


def test_what_cannot_be_watched_is_said_in_one_sentence(cli: CommandLine, core: Core) -> None:
    for arguments, code, words in (
        (["AAPL", "--type", "nope"], 1, "no data type is called nope"),
        (["A?", "--type", QUOTE], 1, "a symbol has 1 to 40 letters"),
        (["AAPL", "--type", QUOTE, "--user", ""], 1, "a user's name has 1 to 200 characters"),
        (["AAPL", "--type", QUOTE, "--minutes", "0"], 2, "--minutes 0"),
        (["--type", QUOTE], 2, "'SYMBOL'"),
    ):
        said = cli("subscription", "watch", *arguments)
        assert said.exit_code == code
        assert words in said.error
        assert watchers(core) == []


def test_b5_unsubscribe_ends_what_is_watched(cli: CommandLine, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.heartbeat("bob", (QUOTE, "AAPL"))
    said = cli("subscription", "end", "AAPL", "IBM", "META", "--type", QUOTE, "--user", "ann", "--json")
    assert said.json == {"user": "ann", "data_type": QUOTE, "symbols": ["AAPL", "IBM", "META"], "ended": 2}
    assert watchers(core) == [("bob", QUOTE, "AAPL")]
    assert "nothing has changed" in cli("subscription", "end", "AAPL", "--type", QUOTE, "--user", "ann").stdout
    assert "no longer watches" in cli("subscription", "end", "AAPL", "--type", QUOTE, "--user", "bob").stdout
    assert "no active data type 'nope'" in cli("subscription", "end", "AAPL", "--type", "nope", "--user", "ann").error


def test_b5_who_watches_is_told_that_a_symbol_failed_and_why(engine: Engine, core: Core) -> None:
    with Screen() as screen:
        with watching(engine, "AAPL", "NOPE1"):
            wait_until(lambda: len(watchers(core)) == 2)
            core.lift_limits(batch_size=1)
            for call in core.claim(max_calls=2):
                if "NOPE1" in call.symbols:
                    core.fail(call, FailureKind.UNKNOWN_SYMBOL, "twelvedata has no value for NOPE1")
            wait_until(lambda: screen.told("failed"))
        (failed,) = screen.told("failed")
    assert (failed["symbol"], failed["reason"]) == ("NOPE1", "twelvedata has no value for NOPE1")
    assert failed["backoff_until"].endswith("Z")


def test_b5_small_letters_watch_the_instrument_that_is_known(cli: CommandLine, core: Core) -> None:
    said = cli("subscription", "watch", "aapl", "--type", QUOTE, "--user", "ann", "--minutes", "0.001", "--json")
    assert said.events[0]["symbols"] == ["AAPL"]
    assert core.statuses() == {"AAPL": "pending"}


def test_b5_a_symbol_that_fits_no_such_type_is_refused_with_what_is_meant(cli: CommandLine) -> None:
    said = cli("subscription", "watch", "EURUSD", "--type", QUOTE, "--user", "ann", "--minutes", "0.001")
    assert "EURUSD is not a symbol of equity_quote: shares have tickers without a slash" in said.error
    assert said.error.endswith("Did you mean EUR/USD of the data type fx_rate?")


def test_d1_slots_that_were_confirmed_are_told(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, asset_class, default_ttl_minutes, days_ahead)"
        " VALUES ('tours_today', 'slots', 'inventory', 15, 1)"
    )
    confirm = "SELECT pricing.confirm_pairs('tours_today', ARRAY['TOUR'], 'octo', 7)"
    with Screen() as screen, watching(core.engine, "TOUR", data_type="tours_today"):
        core.rows(confirm)
        wait_until(lambda: len(screen.told("confirmed")) == 1)
        core.rows(confirm)
        wait_until(lambda: len(screen.told("confirmed")) == 2)
    (first, *_) = screen.told("confirmed")
    assert first.keys() == {"event", "data_type", "symbol", "fetched_at", "provider"}
    assert (first["symbol"], first["provider"]) == ("TOUR", "octo")


def test_f4_who_watches_is_told_why_a_price_does_not_come_and_when_that_changes(engine: Engine, core: Core) -> None:
    core.rows("UPDATE pricing.registry_state SET prices_from = 'sandbox'")

    def work(*providers: str) -> None:
        # Between two transactions the watcher would see no worker.
        with core.engine.begin() as connection:
            connection.execute(text("UPDATE pricing.drains SET finished_at = pricing.clock()"))
            connection.execute(
                text(
                    "SELECT pricing.extend_drain(d.drain, :asked) FROM pricing.begin_drain('w', NULL, 600) AS d (drain)"
                ),
                {"asked": list(providers)},
            )

    with Screen() as screen, watching(engine, "AAPL", "IBM", silence_seconds=0.1):

        def states(symbol: str) -> list[str]:
            return [event["state"] for event in screen.told("waiting") if event["symbol"] == symbol]

        wait_until(lambda: states("AAPL") == states("IBM") == ["no_worker"])
        work("mfapi")
        wait_until(lambda: states("AAPL") == states("IBM") == ["no_worker", "no_client"])
        assert "twelvedata is not asked" in screen.told("waiting")[-1]["sentence"]
        work("twelvedata")
        wait_until(lambda: states("AAPL") == states("IBM") == ["no_worker", "no_client", "queued"])
        core.refresh()
        wait_until(lambda: len(screen.told("price")) == 2)
        for symbol in ("AAPL", "IBM"):
            assert all(a != b for a, b in pairwise(states(symbol))), "a reason is told when it changes"


def test_f4_pairs_that_wait_for_the_same_are_told_in_one_line(engine: Engine, core: Core) -> None:
    with Screen() as screen, watching(engine, "AAPL", "IBM", as_json=False, silence_seconds=0.1):
        wait_until(lambda: any("wait" in line for line in screen.lines))
    (line,) = [line for line in screen.lines if " wait. " in line]
    assert line.startswith("AAPL, IBM wait. Nothing was ever fetched: it has waited since ")
