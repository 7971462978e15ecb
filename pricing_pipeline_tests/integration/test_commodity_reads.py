"""C4: commodities as people read them: by command and over HTTP. And the delay that the environment sets (C1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from psycopg import errors
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from pricing_client import NotFound, PricingClient
from pricing_pipeline.domain.commodities import CommodityPrice, TerminalPrices
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.registry import provider_rules
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.fixtures.logins import Login
from pricing_pipeline_tests.integration.test_commodities import GOLD, live, settle
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.commodities import add_type
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture(autouse=True)
def kind(core: Core) -> None:
    add_type(core)


def at(number: int, price: CommodityPrice) -> TerminalPrices:
    return TerminalPrices(f"UEX:{number}", (price,), f"Terminal {number}", f"T{number}")


@pytest.fixture
def traded(core: Core, clock: Clock) -> str:
    """Gold at two terminals; returns a time before its price was another."""
    live(core, "4.1")
    stamp = core.clock() - timedelta(minutes=5)
    buying = replace(GOLD, buy=5000, sell=None, stock=40, demand=None, modified_at=stamp)
    selling = replace(GOLD, sell=6000, demand=None, modified_at=stamp)
    settle(core, at(1, buying), at(2, replace(selling, sell=5500)))
    then = core.clock().isoformat()
    clock.advance(60)
    settle(core, at(2, selling))
    return then


def test_c4_the_past_is_judged_by_the_version_that_was_played_then(
    api: RunningApi, core: Core, clock: Clock, traded: str
) -> None:
    clock.advance(60)
    live(core, "4.2")
    in_between = core.clock().isoformat()
    clock.advance(60)
    caller = api.caller(Scope.READ)

    def are_of_others(**when: str) -> list[bool]:
        answer = caller.get("commodities/gold/prices", **when)
        return [price["is_of_other_version"] for price in answer["prices"]]

    moments: tuple[dict[str, str], ...] = ({}, {"as_of": in_between}, {"as_of": traded})
    assert [are_of_others(**when) for when in moments] == [[True, True], [True, True], [False, False]]
    for version in ("4.1", "4.2", "4.1"):  # taken back, and back again
        live(core, version)
        clock.advance(60)
    assert [are_of_others(**when) for when in moments] == [[False, False], [True, True], [False, False]]


def test_c4_the_command_line_tells_what_is_traded_and_what_it_earns(cli: CommandLine, core: Core, traded: str) -> None:
    (line,) = cli("commodity", "list", "--json").json["commodities"]
    assert (line["name"], line["sold_at"], line["cheapest"], line["bought_at"], line["dearest"]) == (
        *("Gold", 1, "5000", 1, "6000"),
    )
    assert "Gold" in cli("commodity", "list").stdout
    now = cli("commodity", "show", "GOLD", "--json").json
    assert [(one["symbol"], one["buy"], one["sell"]) for one in now["prices"]] == [
        ("UEX:1", "5000", None),
        ("UEX:2", None, "6000"),
    ]
    past = cli("commodity", "show", "gold", "--as-of", traded, "--json").json
    assert [one["sell"] for one in past["prices"]] == [None, "5500"]
    assert "Terminal 2" in cli("commodity", "show", "33").stdout
    (route,) = cli("commodity", "routes", "--from", "t1", "--json").json["routes"]
    assert (route["margin"], route["quantity"], route["total"]) == ("1000", 40, "40000")
    assert cli("commodity", "routes", "--from", "UEX:2", "--json").json["routes"] == []
    assert "40,000" in cli("commodity", "routes").stdout
    said = cli("commodity", "terminal", "Terminal 2", "--json").json
    assert (said["symbol"], [(one["commodity"], one["sell"]) for one in said["prices"]]) == (
        "UEX:2",
        [("Gold", "6000")],
    )
    assert "5,500" in cli("commodity", "terminal", "t2", "--as-of", traded).stdout
    for arguments in (("show", "nothing"), ("terminal", "nowhere"), ("routes", "--from", "nowhere")):
        said = cli("commodity", *arguments)
        assert (said.exit_code, "is called" in said.stderr) == (1, True)


def test_c4_http_tells_the_same_in_exact_numbers(api: RunningApi, core: Core, traded: str) -> None:
    caller = api.caller(Scope.READ)
    answer = caller.get("commodities")
    assert answer["game_version"] == "4.1"
    (line,) = answer["commodities"]
    assert (line["slug"], line["cheapest"], line["dearest"]) == ("gold", "5000", "6000")
    prices = caller.get("commodities/gold/prices")["prices"]
    assert [(one["symbol"], one["buy"], one["sell"], one["stock"]) for one in prices] == [
        ("UEX:1", "5000", None, "40"),
        ("UEX:2", None, "6000", None),
    ]
    assert all(300 <= one["age_seconds"] < 420 for one in prices)
    past = caller.get("commodities/gold/prices", as_of=traded)
    assert [one["sell"] for one in past["prices"]] == [None, "5500"]
    routes = caller.get("trade-routes", **{"from": "UEX:1", "limit": "5"})
    (route,) = routes["routes"]
    assert (routes["from_symbol"], route["margin"], route["margin_percent"], route["total"]) == (
        *("UEX:1", "1000", "20.0", "40000"),
    )
    at_one = caller.get("terminals/T1/prices")
    assert (at_one["symbol"], [(one["commodity"], one["buy"]) for one in at_one["prices"]]) == (
        "UEX:1",
        [("Gold", "5000")],
    )
    past = caller.get("terminals/UEX:2/prices", as_of=traded)
    assert [one["sell"] for one in past["prices"]] == ["5500"]
    refused = caller.refusal("GET", "terminals/minal/prices")
    assert "Did you mean Terminal 1 or Terminal 2?" in refused["detail"]
    assert caller.refusal("GET", "commodities/nothing/prices")["type"].endswith("unknown-commodity")
    assert caller.refusal("GET", "trade-routes?from=nowhere")["type"].endswith("unknown-terminal")
    listed = caller.ask("GET", "commodities")
    again = caller.ask("GET", "commodities", headers={"If-None-Match": listed.headers["etag"]})
    assert again.status_code == 304
    for path in ("commodities/gold/prices", "trade-routes"):
        assert "etag" not in caller.ask("GET", path).headers, "its ages would be wrong"


@pytest.mark.parametrize("role", ["client", "reader"])
def test_c4_a_plain_login_reads_prices_and_routes_by_functions(
    core: Core, traded: str, role: str, request: pytest.FixtureRequest
) -> None:
    login: Login = request.getfixturevalue(role)[1]
    read = "SELECT symbol, terminal, buy, sell FROM pricing.commodity"
    now = [("UEX:1", "Terminal 1", 5000, None), ("UEX:2", "Terminal 2", None, 6000)]
    for name in ("gold", "GOLD", "33"):
        assert login.execute(f"{read}(%s)", [name]).fetchall() == now
    assert [row[3] for row in login.execute(f"{read}('gold', %s)", [traded]).fetchall()] == [None, 5500]
    assert login.execute(f"{read}('nothing')").fetchall() == []
    at = "SELECT commodity, buy, sell FROM pricing.terminal"
    assert login.execute(f"{at}('Terminal 2')").fetchall() == [("Gold", None, 6000)]
    assert login.execute(f"{at}('UEX:2', %s)", [traded]).fetchall() == [("Gold", None, 5500)]
    assert login.execute(f"{at}('nowhere')").fetchall() == []
    routes = "SELECT commodity, margin, total FROM pricing.best_routes"
    for start in ("()", "('t1')", "('UEX:1', 5)"):
        assert login.execute(f"{routes}{start}").fetchall() == [("Gold", 1000, 40000)]
    for start in ("('UEX:2')", "('nowhere')", "(at_most => 0)"):
        assert login.execute(f"{routes}{start}").fetchall() == []


@pytest.mark.parametrize("read", ["commodity", "terminal", "best_routes"])
def test_b7_a_client_compares_no_endless_word_with_every_name(
    client: tuple[str, Login], traded: str, read: str
) -> None:
    ask = f"SELECT * FROM pricing.{read}(repeat('x', %s))"
    assert client[1].execute(ask, [200]).fetchall() == []
    with pytest.raises(errors.InvalidParameterValue, match="a name of 201 characters") as refused:
        client[1].execute(ask, [201])
    assert "at most 200 characters" in str(refused.value.diag.message_hint)


def test_c4_a_client_reads_no_table_of_commodities(client: tuple[str, Login]) -> None:
    for table in (
        "commodities",
        "commodity_prices",
        "revisions",
        "terminals",
        "trade_routes",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            client[1].execute(f"SELECT * FROM pricing.{table}")


def test_f3_a_worker_deletes_no_price_of_a_commodity(core: Core, traded: str) -> None:
    for table in (
        "game_versions",
        "terminals",
        "commodities",
        "commodity_prices",
        "revisions",
    ):
        with core.engine.connect() as connection, pytest.raises(ProgrammingError, match="permission denied"):
            connection.execute(text(f"DELETE FROM pricing.{table}"))


def test_c4_a_commodity_without_a_slug_does_not_hide_one_of_that_slug(core: Core, traded: str) -> None:
    core.rows(
        "INSERT INTO pricing.commodities (commodity_id, name, recorded_at, call_id)"
        " VALUES (1, 'gold', pricing.clock(), 1)"
    )
    assert core.one("SELECT pricing.commodity_of('gold')") == 33


def test_c4_the_python_client_reads_exact_numbers_also_by_names_with_a_slash(
    api: RunningApi, core: Core, traded: str
) -> None:
    token = api.caller(Scope.READ).token
    assert token is not None
    with PricingClient(api.url, token, user="ann", patience=0) as client:
        first, second = client.commodity_prices("gold")
        past = client.commodity_prices("gold", as_of=datetime.fromisoformat(traded))
        (at_two,) = client.terminal_prices("Terminal 2")
        assert (at_two.commodity, at_two.sell) == ("Gold", 6000)
        (route,) = client.trade_routes("t1", limit=1)
        assert client.trade_routes("UEX:2") == []
        with pytest.raises(NotFound, match="No commodity is called"):
            client.commodity_prices("nothing")
        core.rows("UPDATE pricing.terminals SET name = 'Pyro/Stanton Gateway' WHERE symbol = 'UEX:1'")
        core.rows("UPDATE pricing.commodities SET name = 'Gold/Raw'")
        assert [price.commodity for price in client.terminal_prices("Pyro/Stanton Gateway")] == ["Gold/Raw"]
        assert len(client.commodity_prices("gold/raw")) == 2
    assert (first.terminal, first.buy, first.sell, first.stock) == ("Terminal 1", 5000, None, 40)
    assert (second.sell, past[1].sell, second.recorded_at.tzinfo) == (6000, 5500, UTC)
    assert (route.margin, route.margin_percent, route.total) == (1000, Decimal("20.0"), Decimal(40000))


@pytest.fixture
def sandbox(core: Core) -> Iterator[RunningSandbox]:
    with running_sandbox(clock=core.clock, uex_calls_per_minute=None) as sandbox:
        yield sandbox


def test_c4_the_command_syncs(cli: CommandLine, core: Core, sandbox: RunningSandbox) -> None:
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 0 WHERE provider = 'uex'")
    said = cli("commodity", "sync", "--json", sandbox_url=sandbox.url)
    assert said.exit_code == 0, said.stderr
    assert (said.json["is_complete"], [step["calls"] for step in said.json["steps"]]) == (True, [1] * 4)
    sandbox.behave("html", provider="uex", path="terminals")
    said = cli("commodity", "sync", sandbox_url=sandbox.url)
    assert said.exit_code == 1
    assert "these lists could not be read: terminals" in said.stderr
    assert core.one("SELECT count(*) FROM pricing.etl_warnings WHERE step = 'terminals'") == 1


def test_c1_the_environment_sets_the_delay_of_every_worker(
    cli: CommandLine, core: Core, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    delay = "SELECT request_delay_ms FROM pricing.data_collectors WHERE provider = 'uex'"
    assert core.one(delay) == 500
    core.rows("UPDATE pricing.instruments SET calendar = NULL")  # whose days it would write anew
    assert cli("db", "upgrade", uex_request_delay_ms="1200").exit_code == 0
    assert core.one(delay) == 1200
    monkeypatch.setenv("UEX_REQUEST_DELAY_MS", "700")
    provider_rules.apply_settings(owner_url, load_settings())
    assert core.one(delay) == 700
