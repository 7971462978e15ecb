"""The token of a feed: it may be in a URL, so it reads its own prices, opens nothing else and stands nowhere."""

from __future__ import annotations

import base64
import csv
import http.client
import io
import logging
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import Engine

from pricing_pipeline.api import access, feeds, limits
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.keys import api_tokens
from pricing_pipeline.keys.api_tokens import hash_of
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_routes import ROUTES, request_of
from pricing_pipeline_tests.support.api_server import RunningApi, running_api

pytestmark = pytest.mark.usefixtures("still")

PAIRS = ((DAILY, "AAPL"), (QUOTE, "AAPL"), (QUOTE, "VOD:XLON"))
READS = ("/v1/prices", f"/v1/history/{DAILY}", f"/v1/history/{DAILY}/AAPL")


@pytest.fixture(autouse=True)
def _prices(core: Core) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'VOD:XLON')")
    core.heartbeat("ann", *PAIRS, (QUOTE, "IBM"))
    core.refresh(price="146.55")


def basic(password: str, user: str = "") -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def test_e9_b7_a_feed_is_read_in_every_format_by_url_and_by_password(api: RunningApi) -> None:
    token = api.feed(*PAIRS)

    def read(path: str, headers: dict[str, str] | None = None, **params: str) -> httpx.Response:
        answer = api.client.get(f"/v1/{path}", params=params, headers=headers)
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "private, no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        return answer

    bearer = {"Authorization": f"Bearer {token}"}
    for answer in (
        read("prices", token=token),
        *(read("prices", headers) for headers in (basic(token), basic(token, "anybody"), bearer)),
    ):
        prices = answer.json()["prices"]
        assert {(price["data_type"], price["symbol"]) for price in prices} == set(PAIRS)
    rows = list(csv.DictReader(io.StringIO(read("prices", token=token, format="csv", symbols="VOD.L").text)))
    assert [(row["symbol"], row["price"]) for row in rows] == [("VOD:XLON", "146.55")]
    assert {row["symbol"] for row in read("prices", token=token, symbols="AAPL").json()["prices"]} == {"AAPL"}
    assert len(read("prices", token=token, pairs=f"{QUOTE}:AAPL").json()["prices"]) == 1
    assert len(read("prices", token=token, data_type=DAILY).json()["prices"]) == 1
    for headers, params in ((None, {"token": token}), (basic(token), {})):
        history = read(f"history/{DAILY}/AAPL", headers, **params).json()
        assert [bar["close"] for bar in history["rows"]] == ["146.55"]
    (history,) = read(f"history/{DAILY}", token=token).json()["histories"]
    assert history["symbol"] == "AAPL"
    table = pa.ipc.open_stream(read(f"history/{DAILY}/AAPL", token=token, format="arrow").content).read_all()
    assert table.num_rows == 1
    table = parquet.read_table(pa.BufferReader(read(f"history/{DAILY}", token=token, format="parquet").content))
    assert table["symbol"].to_pylist() == ["AAPL"]


def test_e9_b7_a_feed_opens_no_other_route_and_no_other_symbol(api: RunningApi) -> None:
    token = api.feed(*PAIRS)
    for name, route in ROUTES.items():
        if route.needs is None:
            continue
        method, path, request = request_of(name)
        kind = "not-in-feed" if path.startswith(("/v1/prices", "/v1/history/")) else "feed-only"
        if name == "GET /v1/prices" or ("{data_type}" in name and kind == "not-in-feed"):
            request["params"]["symbols"] = "IBM"
            if name.endswith("{symbol}"):
                del request["params"]["symbols"]
        for way in ({"token": token}, {}):
            headers = {} if way else {"Authorization": f"Bearer {token}"}
            answer = api.client.request(
                method, path, **{**request, "params": {**request["params"], **way}}, headers=headers
            )
            assert (answer.status_code, answer.json()["type"]) == (403, f"urn:pricing-pipeline:{kind}"), name
            assert token not in answer.text
    for path, params in (
        ("prices", {"symbols": "AAPL,IBM"}),
        ("prices", {"symbols": "NOSUCH"}),
        ("prices", {"pairs": f"{DAILY}:VOD:XLON"}),
        ("prices", {"data_type": "fx_rate"}),
        (f"history/{DAILY}/VOD:XLON", {}),
        ("history/nosuch/AAPL", {}),
        ("history/fx_rate", {}),
    ):
        answer = api.client.get(f"/v1/{path}", params={**params, "token": token})
        assert (answer.status_code, answer.json()["type"]) == (403, "urn:pricing-pipeline:not-in-feed")
    answer = api.client.get("/v1/prices", params={"user": "bob", "token": token})
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:pricing-pipeline:other-user")
    assert api.client.get("/v1/nosuch", params={"token": token}).status_code == 403
    assert api.client.delete("/v1/prices", params={"token": token}).status_code == 405


def test_b7_no_other_token_is_taken_in_a_url_or_as_a_password(api: RunningApi) -> None:
    token = str(api.caller(*Scope, user="ann").token)
    for path in (*READS, "/v1/types", "/metrics", "/v1/stream"):
        in_url = api.client.get(path, params={"token": token, "symbols": "AAPL"})
        as_password = api.client.get(path, params={"symbols": "AAPL"}, headers=basic(token))
        for answer in (in_url, as_password):
            assert (answer.status_code, answer.json()["type"]) == (403, "urn:pricing-pipeline:not-a-feed")
            assert token not in answer.text
        assert "pricing-pipeline token remove caller" in in_url.json()["detail"]
        assert "--feed" in as_password.json()["detail"]


def test_b7_a_token_is_sent_once(api: RunningApi) -> None:
    token = api.feed(*PAIRS)
    bearer = {"Authorization": f"Bearer {token}"}
    for answer in (
        api.client.get(f"/v1/prices?token={token}&token={token}"),
        api.client.get(f"/v1/prices?token={token}&to%6ben={token}"),
        api.client.get("/v1/prices", params={"token": token}, headers=bearer),
        api.client.get("/v1/prices?token="),
        api.client.get("/v1/prices?token"),
        api.client.get("/v1/prices?" + "&".join(f"token={number}" for number in range(5000))),
    ):
        assert (answer.status_code, answer.json()["type"]) == (401, "urn:pricing-pipeline:no-token")
        assert token not in answer.text
        assert "A feed may also be ?token=TOKEN" in answer.json()["detail"]
    asked = api.client.get("/v1/prices")
    assert asked.headers["www-authenticate"] == 'Bearer, Basic realm="feed"'
    assert api.client.get("/v1/types").headers["www-authenticate"] == "Bearer"


def test_b7_an_expired_feed_an_unknown_and_a_removed_one_are_answered_alike(
    api: RunningApi, owner_engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs one look at the tokens: time does not tell them apart either."""
    expired, removed = api.feed(*PAIRS, name="old", hours=1), api.feed(*PAIRS, name="gone")
    for token in (expired, removed):
        assert api.client.get("/v1/prices", params={"token": token}).status_code == 200
    clock.advance(3601)
    with owner_engine.begin() as connection:
        api_tokens.remove(connection, "gone")
    monkeypatch.setattr(access, "REMEMBERED_SECONDS", 0.0)
    assert api.client.get("/v1/prices", params={"token": expired}).status_code == 401
    monkeypatch.undo()
    looks = 0
    stored = api.app.state.tokens._stored

    async def counted() -> Any:
        nonlocal looks
        looks += 1
        return await stored()

    monkeypatch.setattr(api.app.state.tokens, "_stored", counted)
    told: dict[str, set[Any]] = {"url": set(), "password": set(), "header": set()}
    for token in (expired, removed, f"pp_{'x' * 43}"):
        for way, request in (
            ("url", {"params": {"token": token}}),
            ("password", {"headers": basic(token)}),
            ("header", {"headers": {"Authorization": f"Bearer {token}"}}),
        ):
            before = looks
            answer = api.client.get("/v1/prices", **request)  # type: ignore[arg-type]
            assert answer.status_code == 401
            content = {name: value for name, value in answer.json().items() if name != "request_id"}
            headers = {name: value for name, value in answer.headers.items() if name not in ("x-request-id", "date")}
            told[way].add((str(content), str(headers), looks - before))
    assert {way: len(answers) for way, answers in told.items()} == {"url": 1, "password": 1, "header": 1}
    assert all(answer[2] == 1 for answers in told.values() for answer in answers)


ODD = ("", "&symbols=AAPL", "&symbols=IBM", "&nosuch=1", "&from=x", "&format=x", "&user=bob")


def test_b7_a_thief_finds_the_token_of_a_feed_nowhere(
    api: RunningApi,
    core: Core,
    engine: Engine,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Asked without httpx, which would log it itself."""
    caplog.set_level(logging.DEBUG)
    token = api.feed(*PAIRS)
    ordinary = str(api.caller(Scope.READ).token)
    found: list[str] = []

    def ask(path: str, method: str = "GET", headers: dict[str, str] | None = None) -> int:
        connection = http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=60)
        connection.request(method, path, headers={"Referer": f"{api.url}{path}", **(headers or {})})
        answer = connection.getresponse()
        found.extend([str(answer.getheaders()), answer.read().decode("latin-1")])
        connection.close()
        return answer.status

    for secret in (token, ordinary):
        for path in (
            *READS,
            "/v1/types",
            "/v1/stream",
            "/v1/nosuch",
            "/metrics",
            "/",
            "/openapi.json",
            "/healthz",
        ):
            # Another token is refused before the rest is looked at.
            for more in ODD if secret == token else ("",):
                ask(f"{path}?token={secret}{more}")
        for method in ("OPTIONS", "HEAD", "POST", "DELETE"):
            ask(f"/v1/prices?token={secret}", method)
        ask("/v1/prices", headers=basic(secret))
        ask(f"/v1/prices?token={secret}", headers={"Host": "evil.example"})

    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(feeds, "narrowed", broken)
    assert ask(f"/v1/prices?token={token}") == 500
    assert ask(f"/v1/history/{DAILY}/AAPL?token={token}") == 500
    monkeypatch.undo()
    assert ask("/metrics", headers={"Authorization": f"Bearer {ordinary}"}) == 200
    assert "a fault of ours" in caplog.text
    places = {
        "answers": "".join(found),
        "log": caplog.text,
        "output": "".join(capfd.readouterr()),
        "statements": str(core.rows("SELECT query FROM pg_stat_activity")),
        "database": "".join(
            str(core.rows(f"SELECT t::text FROM pricing.{row.relname} t"))
            for row in core.rows(
                "SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind IN ('r', 'p')"
            )
        ),
    }
    assert hash_of(token).hex() in places["database"], "the search reaches where it is stored as a hash"  # type: ignore[union-attr]
    for place, content in places.items():
        assert content or place == "output", place
        for secret in (token, ordinary):
            assert secret not in content, place
            assert secret[3:] not in content, place


def test_e9_b7_what_a_spreadsheet_sends_for_a_cell_counts_once(
    engine: Engine, owner_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_api(engine, owner_engine, rate=0.001) as api:
        token = api.feed(*PAIRS)
        for method, status in (("OPTIONS", 204), ("HEAD", 200), ("GET", 200), ("GET", 200)):
            answer = api.client.request(method, "/v1/prices", params={"token": token, "format": "csv"})
            assert answer.status_code == status
        for method in ("GET", "OPTIONS", "HEAD"):
            again = api.client.request(method, "/v1/prices", params={"token": token, "format": "csv"})
            assert again.status_code == 429, "the next round"


def test_b7_rounds_of_a_spreadsheet_end_and_are_not_kept_for_ever() -> None:
    now = 0.0
    share = limits.Share(1000, 1, lambda: now)
    taken: list[int] = []
    share.take = lambda body_bytes: taken.append(body_bytes)  # type: ignore[method-assign]
    for _ in range(3):
        for method in ("OPTIONS", "HEAD", "GET", "GET"):
            share.take_round("/v1/prices?", method)
        now += 20
    assert len(taken) == 3
    share.take_round("/v1/prices?", "DELETE")
    share.take_round("/v1/prices?", "DELETE")
    assert len(taken) == 5
    for number in range(5000):
        share.take_round(f"/v1/prices?symbols=S{number}", "GET")
    assert len(share._rounds) == 1000
    assert len(taken) == 5005


def test_b7_a_feed_is_made_listed_and_removed(cli: CommandLine, api: RunningApi) -> None:
    made = cli("token", "add", "sheet", "--feed", "--symbols", "AAPL,VOD.L", "--type", QUOTE, "--json").json
    assert made["expires_at"] is not None
    prices = api.client.get("/v1/prices", params={"token": made["token"]}).json()["prices"]
    assert {price["symbol"] for price in prices} == {"AAPL", "VOD:XLON"}
    forever = cli("token", "add", "all", "--feed", "--symbols", "AAPL", "--expires", "never")
    assert "&token=TOKEN" in forever.stderr + forever.stdout
    listed = {token["name"]: token for token in cli("token", "list", "--json").json["tokens"]}
    assert listed["sheet"]["feed"] == [
        {"data_type": QUOTE, "symbol": "AAPL"},
        {"data_type": QUOTE, "symbol": "VOD:XLON"},
    ]
    assert listed["all"]["expires_at"] is None
    assert {pair["data_type"] for pair in listed["all"]["feed"]} >= {QUOTE, DAILY}
    shown = cli("token", "list", "--wide").stdout
    assert "feed of 2 symbols" in shown
    assert "nobody" in shown
    assert cli("token", "remove", "sheet").exit_code == 0
    assert cli("token", "add", "sheet", "--feed", "--symbols", "AAPL").exit_code == 0


def test_b7_a_feed_that_cannot_be_is_refused(cli: CommandLine, core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('earned', 'earnings', 60)"
    )
    for options, words in (
        ("--feed", "a feed takes --symbols"),
        ("--feed --symbols ,", "a feed takes --symbols"),
        ("--feed --symbols AAPL --scope read", "neither --scope"),
        ("--scope read --any-user --symbols AAPL", "add --feed"),
        ("--any-user", "give --scope"),
        ("--feed --symbols NOSUCH1", "no equity"),
        ("--feed --symbols AAPL --type nosuch", "nosuch"),
        ("--feed --symbols AAPL --type earned", "has no prices"),
    ):
        refused = cli("token", "add", "sheet", *options.split())
        assert refused.exit_code != 0, options
        assert words in " ".join((refused.stdout + refused.error).split()), options
    assert cli("token", "list", "--json").json == {"tokens": []}


def test_b7_an_expired_feed_leaves_its_symbols_to_no_other_token(
    api: RunningApi, core: Core, owner_engine: Engine, clock: Clock
) -> None:
    api.feed(*PAIRS, hours=1)
    clock.advance(3601)
    token = api.feed((QUOTE, "IBM"), hours=1)
    prices = api.client.get("/v1/prices", params={"token": token}).json()["prices"]
    assert [price["symbol"] for price in prices] == ["IBM"]
    clock.advance(3601)
    with owner_engine.begin() as connection:
        api_tokens.add(connection, "sheet", [Scope.READ], None)
    assert core.rows("SELECT FROM pricing.feed_pairs") == []


def test_b7_a_feed_follows_an_instrument_to_its_new_symbol(api: RunningApi, cli: CommandLine) -> None:
    token = api.feed(*PAIRS)
    assert cli("instrument", "merge", "VOD:XLON", "VODA:XLON").exit_code == 0
    answer = api.client.get("/v1/prices", params={"token": token, "symbols": "VODA:XLON"})
    assert [price["symbol"] for price in answer.json()["prices"]] == ["VODA:XLON"], answer.text


def test_b7_a_feed_reads_the_rest_when_an_instrument_is_removed(api: RunningApi, cli: CommandLine) -> None:
    token = api.feed((DAILY, "AAPL"), (DAILY, "MSFT"))
    assert "is removed" in cli("instrument", "remove", "MSFT").stdout
    answer = api.client.get(f"/v1/history/{DAILY}", params={"token": token})
    assert [history["symbol"] for history in answer.json()["histories"]] == ["AAPL"], answer.text
    assert api.client.get("/v1/prices", params={"token": token}).json()["missing"] == []
