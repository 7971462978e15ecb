"""E9: lists: symbols under a name, read together, and watched as one for as long as they are read."""

from __future__ import annotations

import csv
import io

import pytest

from pricing_pipeline.demand import lists, viewers
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import PricingError
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.sessions import joined, meanwhile, wait_for_locks

pytestmark = pytest.mark.usefixtures("still")

ANN = ("--user", "ann")
MINE = {(DAILY, "AAPL"), (DAILY, "IBM"), (QUOTE, "AAPL"), (QUOTE, "IBM")}


@pytest.fixture(autouse=True)
def _mine(core: Core, cli: CommandLine) -> None:
    assert cli("list", "add", "mine", "aapl", "IBM", *ANN).stdout == "mine has AAPL, IBM.\n"
    core.refresh(price="146.55")


def watched(core: Core, user: str = "ann") -> set[tuple[str, str]]:
    rows = core.rows("SELECT data_type, symbol FROM pricing.active_subscriptions WHERE user_id = :user", user=user)
    return {(row.data_type, row.symbol) for row in rows}


def forget(core: Core, clock: Clock) -> None:
    """Let all subscriptions end."""
    clock.advance(301)
    core.call("SELECT pricing.clean_subscriptions()")
    assert watched(core) == set()


def test_e9_a_list_is_changed_and_shown(cli: CommandLine, core: Core) -> None:
    shown = cli("list", "show", *ANN, "--json").json["lists"]
    assert [one["list"] for one in shown] == ["mine"]
    assert {(pair["data_type"], pair["symbol"]) for pair in shown[0]["pairs"]} == MINE
    added = cli("list", "add", "mine", "NEW:XLON", "--type", QUOTE, *ANN, "--json").json["pairs"]
    assert {(pair["data_type"], pair["symbol"]) for pair in added} == MINE | {(QUOTE, "NEW:XLON")}
    assert cli("list", "remove", "mine", "ibm", *ANN).stdout == "mine no longer has ibm.\n"
    assert "IBM" not in cli("list", "show", "mine", *ANN).stdout
    assert cli("list", "remove", "mine", *ANN).stdout == "mine is removed.\n"
    assert "There are: none yet" in cli("list", "show", "mine", *ANN).error
    assert "There are: none yet" in cli("list", "remove", "mine", *ANN).error
    assert "has no list" in cli("list", "show", *ANN).stdout


def test_e9_what_a_list_cannot_have_is_refused_whole(
    cli: CommandLine, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "a list's name has" in cli("list", "add", "My list", "AAPL", *ANN).error
    assert "NOSUCH" in cli("list", "add", "mine", "MSFT", "NOSUCH", *ANN).error
    assert "uex_terminal" in cli("list", "add", "mine", "MSFT", "--type", "uex_terminal", *ANN).error
    monkeypatch.setattr(lists, "MOST_PAIRS", 5)
    assert "would have 6 pairs" in cli("list", "add", "mine", "MSFT", *ANN).error
    with core.engine.connect() as connection:
        assert set(lists.of_user(connection, "ann")["mine"]) == MINE


def test_e9_two_sessions_of_a_user_do_not_make_a_list_too_long(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_locks(core)
    monkeypatch.setattr(lists, "MOST_PAIRS", 5)
    with core.engine.begin() as connection:  # watched already, so a heartbeat only renews them
        viewers.heartbeat(connection, "ann", [(QUOTE, "KO"), (QUOTE, "MSFT")])
    with core.engine.begin() as connection:
        lists.add(connection, "ann", "mine", [(QUOTE, "KO")])
        other = meanwhile(core.engine, lambda second: lists.add(second, "ann", "mine", [(QUOTE, "MSFT")]))
    with pytest.raises(PricingError, match="would have 6 pairs"):
        joined(*other)


def test_e9_a_read_of_a_list_watches_all_of_it_for_five_minutes(api: RunningApi, core: Core, clock: Clock) -> None:
    assert watched(core) == MINE, "since it was added"
    forget(core, clock)
    reader = api.caller(Scope.READ, Scope.WATCH, user="ann")
    answer = reader.get("prices", list="mine")
    assert {(price["data_type"], price["symbol"]) for price in answer["prices"]} == MINE
    assert watched(core) == MINE
    clock.advance(200)
    reader.ask("GET", "prices", params={"list": "mine", "format": "csv"})
    clock.advance(200)
    core.call("SELECT pricing.clean_subscriptions()")
    assert watched(core) == MINE, "each read begins the five minutes anew"
    forget(core, clock)
    histories = reader.get(f"history/{DAILY}", list="mine")["histories"]
    assert [history["symbol"] for history in histories] == ["AAPL", "IBM"]
    assert watched(core) == MINE, "as one"


def test_e9_a_list_is_its_users_own(api: RunningApi, core: Core) -> None:
    anybody = api.caller(Scope.READ, Scope.WATCH)
    for params, words in (
        ({"list": "mine"}, "user"),
        ({"list": "mine", "user": "bob"}, "No list of bob is called 'mine'"),
    ):
        problem = anybody.refusal("GET", "prices", params=params)
        assert words in problem["detail"], problem
    assert len(anybody.get("prices", list="mine", user="ann", data_type=QUOTE)["prices"]) == 2
    for path, others in (("prices", {"symbols": "AAPL"}), (f"history/{DAILY}", {"symbols": "AAPL"})):
        problem = anybody.refusal("GET", path, params={"list": "mine", "user": "ann", **others})
        assert (problem["status"], "not both" in problem["detail"]) == (422, True)
    assert watched(core, "bob") == set()


def test_e9_a_feed_reads_what_its_list_has_now(api: RunningApi, cli: CommandLine, core: Core, clock: Clock) -> None:
    made = cli("token", "add", "sheet", "--feed", "--list", "mine", *ANN, "--json").json
    forget(core, clock)

    def symbols(**params: str) -> set[str]:
        answer = api.client.get("/v1/prices", params={"token": made["token"], "format": "csv", **params})
        assert answer.status_code == 200, answer.text
        return {row["symbol"] for row in csv.DictReader(io.StringIO(answer.text))}

    assert symbols() == {"AAPL", "IBM"}
    assert watched(core) == MINE
    cli("list", "add", "mine", "MSFT", "--type", QUOTE, *ANN)
    cli("list", "remove", "mine", "IBM", *ANN)
    assert symbols(data_type=QUOTE) == {"AAPL", "MSFT"}
    assert "feed of 2 symbols" in cli("token", "list").stdout
    problem = api.client.get("/v1/prices", params={"token": made["token"], "list": "mine"})
    assert (problem.status_code, "Leave the list out" in problem.text) == (422, True)
    cli("list", "remove", "mine", *ANN)
    problem = api.client.get("/v1/prices", params={"token": made["token"]})
    assert (problem.status_code, "ann" in problem.text) == (403, False), "a feed tells nothing of its user"
    for given, words in (
        (("--list", "mine"), "--user"),
        (("--list", "nosuch", *ANN), "no list of ann"),
        (("--list", "mine", "--symbols", "AAPL", *ANN), "--symbols or --list"),
    ):
        assert words in cli("token", "add", "other", "--feed", *given).error


def test_e9_a_renamed_symbol_stays_on_its_list(core: Core, cli: CommandLine) -> None:
    cli("list", "add", "mine", "VODA:XLON", "--type", QUOTE, *ANN)
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'VOD:XLON')")
    assert cli("instrument", "merge", "VODA:XLON", "VOD:XLON").exit_code == 0
    shown = cli("list", "show", "mine", *ANN).stdout
    assert ("VOD:XLON" in shown, "VODA" in shown) == (True, False)


def test_b7_who_may_not_watch_reads_no_list(api: RunningApi, core: Core, clock: Clock) -> None:
    """It says what its user watches, and watches it."""
    forget(core, clock)
    for user, params in ((None, {"user": "ann"}), ("ann", {})):
        reader = api.caller(Scope.READ, user=user)
        for path in ("prices", f"history/{DAILY}"):
            for name in ("mine", "nosuch"):
                problem = reader.refusal("GET", path, params={"list": name, **params})
                assert (problem["status"], "does not allow watch" in problem["detail"]) == (403, True)
                assert "mine" not in problem["detail"]
    assert watched(core) == set()


def test_e9_a_removed_instrument_leaves_its_lists(api: RunningApi, core: Core, cli: CommandLine) -> None:
    cli("list", "add", "mine", "NEW:XLON", "--type", QUOTE, *ANN)
    assert "is removed" in cli("instrument", "remove", "NEW:XLON").stdout
    api.caller(Scope.READ, Scope.WATCH, user="ann").get("prices", list="mine")
    assert watched(core) == MINE
    assert core.rows("SELECT FROM pricing.instruments WHERE symbol = 'NEW:XLON'") == []


def test_e9_a_program_changes_and_shows_the_lists_of_its_user(api: RunningApi, core: Core, clock: Clock) -> None:
    ann = api.caller(Scope.WATCH, user="ann")
    pairs = [{"data_type": data_type, "symbol": symbol} for data_type, symbol in sorted(MINE)]
    assert ann.get("lists") == {"lists": [{"list": "mine", "pairs": pairs}]}
    forget(core, clock)
    assert ann.get("lists/mine") == {"list": "mine", "pairs": pairs}
    assert watched(core) == set(), "no read of prices"
    more = [{"data_type": QUOTE, "symbol": symbol} for symbol in ("vod.l", "AAPL")]
    added = ann.post("lists/add", {"list": "mine", "pairs": more})
    assert added["pairs"] == [*pairs, {"data_type": QUOTE, "symbol": "VOD:XLON"}]
    assert watched(core) == {(QUOTE, "AAPL"), (QUOTE, "VOD:XLON")}
    assert ann.post("lists/add", {"list": "other", "pairs": more[1:]})["pairs"] == more[1:]
    assert [one["list"] for one in ann.get("lists")["lists"]] == ["mine", "other"]
    assert ann.post("lists/remove", {"list": "mine", "symbols": ["aapl", "VOD:LSE"]}) == {"removed": 3}
    assert [pair["symbol"] for pair in ann.get("lists/mine")["pairs"]] == ["IBM", "IBM"]
    assert ann.post("lists/remove", {"list": "mine"}) == {"removed": 2}
    assert ann.refusal("POST", "lists/remove", json={"list": "mine"})["status"] == 404
    problem = ann.refusal("GET", "lists/mine")
    assert (problem["status"], problem["type"]) == (404, "urn:pricing-pipeline:unknown-list")
    assert "There are: other. `pricing-pipeline list add NAME SYMBOLS` or POST /v1/lists/add" in problem["detail"]
    assert api.caller(Scope.WATCH, user="bob").get("lists") == {"lists": []}


def test_e9_a_change_of_a_list_is_refused_whole(api: RunningApi, core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = api.caller(Scope.WATCH, user="ann")
    good = {"data_type": QUOTE, "symbol": "MSFT"}
    for name, pair, words in (
        ("My list", good, "name has 1 to 48 small letters"),
        ("mine", {"data_type": QUOTE, "symbol": "A;B"}, "A;B"),
        ("mine", {"data_type": "uex_terminal", "symbol": "X"}, "uex_terminal"),
        ("mine", {"data_type": "nosuch", "symbol": "AAPL"}, "nosuch"),
    ):
        problem = ann.refusal("POST", "lists/add", json={"list": name, "pairs": [good, pair]})
        assert problem["status"] in (404, 422)
        assert words in problem["detail"]
    monkeypatch.setattr(lists, "MOST_LISTS", 1)
    problem = ann.refusal("POST", "lists/add", json={"list": "second", "pairs": [good]})
    assert "The user ann would have 2 lists; a user has at most 1" in problem["detail"]
    with core.engine.connect() as connection:
        assert {name: set(pairs) for name, pairs in lists.of_user(connection, "ann").items()} == {"mine": MINE}
    assert (QUOTE, "MSFT") not in watched(core)
    for scopes in ((Scope.READ,), (Scope.OPERATE,)):
        refused = api.caller(*scopes, user="ann").refusal("POST", "lists/add", json={"list": "mine", "pairs": [good]})
        assert refused["status"] == 403
