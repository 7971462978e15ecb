"""A request that names pairs is answered pair by pair: the same by SQL, HTTP, the Python client and commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_client import PricingClient, RequestRefused, TooMuch
from pricing_pipeline.demand import viewers
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import CapExceeded, PairsRefused
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import FX, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.examples import examples

Pair = tuple[str, str]
RETIRED = "gone_quote"
GOOD: dict[Pair, str] = {
    **{(QUOTE, symbol): symbol for symbol in ("AAPL", "MSFT", "IBM", "BRK.B", "TSLA", "KO", "PEP")},
    (FX, "EUR/USD"): "EUR/USD",
    (NAV, "118632"): "118632",
}
"""Pairs and their symbols as they are spelled."""
RESPELLED: dict[Pair, str] = {(QUOTE, "aapl"): "AAPL", (QUOTE, "Msft"): "MSFT", (FX, "eur/usd"): "EUR/USD"}
BAD: dict[Pair, str] = {
    **{(QUOTE, symbol): "symbol_refused" for symbol in ("A;B", "", "A\nB", "x" * 41, "^A B", "<b>", "Ä", "A,B")},
    (FX, "EUR/EUR"): "symbol_refused",
    ("equity_qoute", "AAPL"): "unknown_type",
    ("equity_qoute", "MSFT"): "unknown_type",
    ("x" * 60, "AAPL"): "unknown_type",
    (RETIRED, "AAPL"): "retired_type",
    (RETIRED, "A;B"): "retired_type",
}
"""Pairs that are always refused, and the code."""

Requests = st.lists(st.sampled_from([*GOOD, *RESPELLED, *BAD]), min_size=1, max_size=14)
Caps = st.tuples(st.sampled_from([2, 4, 100]), st.sampled_from([3, 5, 60]))


class Model:
    """What one user watches, or holds, and what its caps leave room for. Its clock stands still."""

    def __init__(self, most: int, most_new: int) -> None:
        self.had: set[Pair] = set()
        self.most, self.left = most, most_new

    def ask(self, pairs: Sequence[Pair]) -> tuple[int, dict[Pair, tuple[str, str | None, str | None]]]:
        """How many are new; and the outcome, code and spelling of each pair that is asked for."""
        answers: dict[Pair, tuple[str, str | None, str | None]] = {}
        new: dict[Pair, str | None] = {}
        room, left = self.most - len(self.had), self.left
        for pair in dict.fromkeys(pairs):
            if pair in BAD:
                answers[pair] = ("refused", BAD[pair], None)
                continue
            wanted = (pair[0], (GOOD | RESPELLED)[pair])
            if wanted not in self.had and wanted not in new:
                place = len(new)
                new[wanted] = "pairs_per_user" if place >= room else "new_pairs_per_minute" if place >= left else None
            code = new.get(wanted)
            answers[pair] = ("refused", code, None) if code else ("accepted", None, wanted[1])
        entered = {pair for pair, code in new.items() if code is None}
        self.had |= entered
        self.left -= len(entered)
        return len(entered), answers


@pytest.fixture
def ways(core: Core, api: RunningApi, database_url: str) -> Iterator[dict[str, Callable[..., Any]]]:
    """How programs ask: each takes a function, a user and pairs, and returns the answer."""
    caller = api.caller(Scope.WATCH)
    assert caller.token is not None
    with psycopg.connect(database_url, autocommit=True) as session:

        def by_sql(function: str, user: str, pairs: Sequence[Pair]) -> Any:
            row = session.execute(
                f"SELECT pricing.{function}(%s, %s, %s)",  # type: ignore[arg-type]
                [user, [kind for kind, _ in pairs], [symbol for _, symbol in pairs]],
            ).fetchone()
            assert row is not None
            return row[0]

        def by_api(function: str, user: str, pairs: Sequence[Pair]) -> Any:
            listed = [{"data_type": kind, "symbol": symbol} for kind, symbol in pairs]
            return caller.post(function, {"pairs": listed}, user=user)

        def by_client(function: str, user: str, pairs: Sequence[Pair]) -> Any:
            with PricingClient(api.url, str(caller.token), user=user, patience=0) as client:
                return asdict(getattr(client, function)(*pairs))

        def in_python(function: str, user: str, pairs: Sequence[Pair]) -> Any:
            with core.engine.begin() as connection:
                return asdict(getattr(viewers, function)(connection, user, pairs))

        yield {"sql": by_sql, "api": by_api, "client": by_client, "python": in_python}


@pytest.fixture(autouse=True)
def _still(core: Core, clock: Clock) -> None:
    clock.stop()
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, is_active)"
        f" VALUES ('{RETIRED}', 'quote', 5, false)"
    )


def entered(core: Core, function: str, user: str) -> set[Pair]:
    table = "active_subscriptions" if function == "heartbeat" else "holdings"
    rows = core.rows(f"SELECT data_type, symbol FROM pricing.{table} WHERE user_id = :user", user=user)
    return {(row.data_type, row.symbol) for row in rows}


def forget(core: Core) -> None:
    for table in (
        *("api_call_queue", "demand", "active_subscriptions", "holdings"),
        *("pair_views", "user_allowances", "pair_requests"),
    ):
        core.rows(f"DELETE FROM pricing.{table}")  # of so few rows it is quicker than TRUNCATE


def without_user(answer: Any, user: str) -> Any:
    return json.loads(json.dumps(answer).replace(f"user {user} ", "user X "))


def test_b5_the_command_answers_as_the_function_does(
    core: Core, cli: CommandLine, ways: dict[str, Callable[..., Any]]
) -> None:
    of_quotes = [pair for pair in [*GOOD, *RESPELLED, *BAD] if pair[0] == QUOTE and "," not in pair[1]]

    @settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(pairs=st.lists(st.sampled_from(of_quotes), min_size=1, max_size=12), caps=Caps)
    def judge(pairs: list[Pair], caps: tuple[int, int]) -> None:
        forget(core)
        core.cap(*caps)
        answer = without_user(ways["sql"]("hold", "sql", pairs), "sql")
        symbols = [symbol for _, symbol in pairs]
        said = cli("holding", "open", *symbols, "--type", QUOTE, "--user", "cli", "--json")
        told = without_user(said.json, "cli")
        assert {name: told[name] for name in answer} == answer
        assert {(QUOTE, symbol) for symbol in told["symbols"]} == entered(core, "hold", "cli")
        assert said.exit_code == (1 if answer["refused"] else 0)
        faults = " ".join(fault["sentence"] for fault in answer["faults"])
        assert faults.partition("\n")[0] in without_user(said.stderr, "cli")

    judge()


@pytest.mark.parametrize("function", ["heartbeat", "hold"])
def test_b5_all_or_nothing_leaves_nothing_half_written(
    core: Core, api: RunningApi, database_url: str, function: str
) -> None:
    caller = api.caller(Scope.WATCH)

    def state() -> list[Any]:
        return [
            core.rows(f"SELECT t::text FROM pricing.{table} t ORDER BY 1")
            for table in (
                *("active_subscriptions", "holdings", "demand", "api_call_queue", "instruments"),
                *("pair_requests", "user_allowances", "pair_views"),
            )
        ]

    def by_sql(pairs: Sequence[Pair]) -> int:
        lists = [[kind for kind, _ in pairs], [symbol for _, symbol in pairs]]
        call = f"SELECT pricing.all_or_nothing(pricing.{function}('ann', %s, %s)) -> 'changed'"
        with psycopg.connect(database_url, autocommit=True) as session:
            row = session.execute(call, lists).fetchone()  # type: ignore[arg-type]
        assert row is not None
        return int(row[0])

    def by_api(pairs: Sequence[Pair]) -> int:
        listed = [{"data_type": kind, "symbol": symbol} for kind, symbol in pairs]
        content = {"pairs": listed, "all_or_nothing": True}
        answer = caller.ask("POST", function, json=content, params={"user": "ann"})
        if answer.status_code in (422, 429):
            raise PairsRefused(answer.json()["detail"], answer.json().get("pairs", []))
        return int(answer.json()["changed"])

    def by_client(pairs: Sequence[Pair]) -> int:
        with PricingClient(api.url, str(caller.token), user="ann", patience=0) as client:
            return int(getattr(client, function)(*pairs, all_or_nothing=True).changed)

    def in_python(pairs: Sequence[Pair]) -> int:
        with core.engine.begin() as connection:
            try:
                answer = getattr(viewers, function)(connection, "ann", pairs, all_or_nothing=True)
            except (PairsRefused, CapExceeded) as error:
                refusal = error  # anyone who goes on in the same transaction has nothing of it either
            else:
                return int(answer.changed)
        raise refusal

    refusals = (PairsRefused, CapExceeded, RequestRefused, TooMuch, psycopg.errors.InvalidParameterValue)
    asks = [by_sql, by_api, by_client, in_python]

    @settings(max_examples=examples(24), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(before=Requests, pairs=Requests, caps=Caps, ask=st.sampled_from(asks))
    def judge(
        before: list[Pair], pairs: list[Pair], caps: tuple[int, int], ask: Callable[[Sequence[Pair]], int]
    ) -> None:
        forget(core)
        core.cap(*caps)
        model = Model(*caps)
        model.ask(before)
        with core.engine.begin() as connection:
            getattr(viewers, function)(connection, "ann", before)
        was = state()
        changed, expected = model.ask(pairs)
        if any(outcome == "refused" for outcome, _, _ in expected.values()):
            with pytest.raises(refusals):
                ask(pairs)
            assert state() == was
        else:
            assert ask(pairs) == changed
            assert entered(core, function, "ann") == model.had

    judge()


def test_b5_refusals_of_one_kind_are_told_once(core: Core) -> None:
    unknown = [(QUOTE, f"{ticker}:FOO") for ticker in ("A", "B", "C", "D", "E", "F", "G")]
    with core.engine.begin() as connection:
        answer = viewers.heartbeat(connection, "ann", [(QUOTE, "EURUSD"), (QUOTE, "AAPL"), *unknown])
    assert (answer.changed, answer.accepted, answer.refused) == (1, 1, 8)
    pair, exchange = answer.faults
    assert (pair.pairs, exchange.pairs) == (1, 7)
    assert pair.sentence.startswith("EURUSD is not a symbol of equity_quote: ")
    assert pair.sentence.endswith(" Did you mean EUR/USD of the data type fx_rate?")
    assert exchange.sentence.startswith("7 pairs are no symbols of equity_quote: there is no exchange FOO; ")
    assert exchange.sentence.endswith(" (A:FOO, B:FOO, C:FOO, D:FOO, E:FOO and 2 more).")
    assert answer.pairs[0].proposal == "fx_rate:EUR/USD"


def test_b5_a_watch_watches_what_is_good_and_names_what_is_not(core: Core, cli: CommandLine) -> None:
    watch = ("subscription", "watch", "aapl", "TCS:FOO", "MSFT", "--type", QUOTE, "--user", "ann")
    said = cli(*watch, "--minutes", "0.001")
    assert said.exit_code == 0
    assert said.stdout.startswith("Watching equity_quote AAPL, MSFT as ann")
    assert "hint: aapl is spelled AAPL here." in said.stderr
    assert "warning: TCS:FOO is not a symbol of equity_quote: there is no exchange FOO" in said.stderr
    assert core.statuses() == {"AAPL": "pending", "MSFT": "pending"}
    refused = cli(*watch, "--all-or-nothing").error
    assert refused.startswith("nothing was changed: TCS:FOO is not a symbol of equity_quote")
    nothing = cli("subscription", "watch", "TCS:FOO", "A;B", "--type", QUOTE).error
    assert "TCS:FOO is not a symbol" in nothing
    assert "'A;B' is not a symbol" in nothing
