"""What a token of the HTTP API opens, and what nobody gets through."""

from __future__ import annotations

import json
import shlex

import httpx
import pytest
from sqlalchemy import Engine

from pricing_pipeline.api import access
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.keys import api_tokens
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import RunningApi, running_api
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("still")

PAIR = {"pairs": [{"data_type": QUOTE, "symbol": "AAPL"}]}


def test_b7_a_token_opens_what_its_scopes_allow(api: RunningApi) -> None:
    reader, watcher, admin = (api.caller(scope, user="ann") for scope in (Scope.READ, Scope.WATCH, Scope.ADMIN))
    reader.get("prices", symbols="AAPL")
    watcher.post("heartbeat", PAIR)
    admin.get("prices", symbols="AAPL")
    admin.post("heartbeat", PAIR)
    for caller, method, path in ((reader, "POST", "heartbeat"), (watcher, "GET", "prices?symbols=AAPL")):
        problem = caller.refusal(method, path, json=PAIR if method == "POST" else None)
        assert (problem["status"], problem["type"]) == (403, "urn:pricing-pipeline:scope-missing")


def test_b7_without_a_token_of_ours_nothing_is_told(api: RunningApi) -> None:
    for token in (
        None,
        "x",
        "pp_" + "A" * 43,
        "x" * 5000,
        "pp_\xe9",
    ):
        headers = {} if token is None else {b"authorization": b"Bearer " + token.encode("latin-1")}
        answer = api.client.get("/v1/prices?symbols=AAPL", headers=headers)  # type: ignore[arg-type]
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert "AAPL" not in answer.text


def test_b7_a_header_that_names_no_bearer_is_told_how_it_is_written(api: RunningApi) -> None:
    """The answer is the same for a right and for a wrong token."""
    token = str(api.caller(Scope.READ).token)
    for headers in (
        [("Authorization", token)],
        [("Authorization", "x")],
        [("Authorization", f"Basic {token}")],
        [("Authorization", "Bearer")],
        [("Authorization", f"Bearer {token}")] * 2,
    ):
        answer = api.client.get("/v1/prices?symbols=AAPL", headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (401, "urn:pricing-pipeline:no-token")
        assert "must be `Authorization: Bearer TOKEN`" in answer.json()["detail"]


@pytest.mark.parametrize("user", [None, "ann o'neill"])
def test_b7_the_command_for_a_missing_scope_makes_a_token_that_has_it(
    api: RunningApi, cli: CommandLine, user: str | None
) -> None:
    detail = api.caller(Scope.READ, Scope.OPERATE, user=user).refusal("POST", "hold", json=PAIR)["detail"]
    command = shlex.split(detail.split("`")[1])
    assert command[0] == "pricing-pipeline"
    made = cli(*command[1:])
    assert made.exit_code == 0, made.error
    tokens = {token["name"]: token for token in cli("token", "list", "--json").json["tokens"]}
    token = tokens[command[3]]
    assert (token["scopes"], token["user_id"]) == (["operate", "read", "watch"], user)


def test_b5_a_token_acts_for_its_user_only(api: RunningApi, core: Core) -> None:
    ann = api.caller(Scope.WATCH, user="ann")
    assert ann.post("heartbeat", PAIR)["changed"] == 1
    assert ann.post("heartbeat", PAIR, user="ann")["changed"] == 0
    for path in ("heartbeat", "unsubscribe", "hold", "release"):
        assert ann.refusal("POST", path, json=PAIR, params={"user": "bob"})["status"] == 403
    assert ann.refusal("GET", "subscriptions", params={"user": "bob"})["status"] == 403
    assert {row.user_id for row in core.rows("SELECT user_id FROM pricing.active_subscriptions")} == {"ann"}


def test_b5_an_application_names_its_users(api: RunningApi) -> None:
    application = api.caller(Scope.WATCH)
    assert application.refusal("POST", "heartbeat", json=PAIR)["type"].endswith("no-user")
    assert application.post("heartbeat", PAIR, user="ann")["changed"] == 1
    assert application.post("hold", PAIR, user="bob")["changed"] == 1
    (subscription,) = application.get("subscriptions", user="ann")["subscriptions"]
    assert (subscription["user_id"], subscription["symbol"]) == ("ann", "AAPL")
    (holding,) = application.get("holdings", user="bob")["holdings"]
    assert (holding["user_id"], holding["status"]) == ("bob", "active")
    assert application.post("release", PAIR, user="bob") == {"changed": 1}
    assert application.get("holdings", user="bob")["holdings"] == []
    assert application.post("unsubscribe", PAIR, user="ann") == {"changed": 1}
    assert application.get("subscriptions", user="ann")["subscriptions"] == []


def test_b7_caps_hold_over_http_and_say_when_to_come_again(api: RunningApi, core: Core) -> None:
    core.cap(per_user=2, per_minute=2)
    ann = api.caller(Scope.WATCH, user="ann")
    many = {"pairs": [{"data_type": QUOTE, "symbol": symbol} for symbol in ("AAPL", "MSFT", "IBM")]}
    answer = ann.ask("POST", "heartbeat", json=many | {"all_or_nothing": True})
    assert (answer.status_code, answer.json()["type"]) == (429, "urn:pricing-pipeline:cap-exceeded")
    assert int(answer.headers["retry-after"]) >= 1
    assert ann.get("subscriptions")["subscriptions"] == []


def test_b7_a_body_that_is_wrong_is_refused_whole(api: RunningApi, core: Core) -> None:
    watcher = api.caller(Scope.WATCH, user="ann")
    for body in (
        {},
        {"pairs": []},
        {"pairs": [{"data_type": QUOTE}]},
        {"pairs": [{"data_type": QUOTE, "symbol": "AAPL", "user": "bob"}]},
        {"pairs": [{"data_type": "nosuch", "symbol": "AAPL"}], "all_or_nothing": True},
        {"pairs": [{"data_type": QUOTE, "symbol": "A;B"}], "all_or_nothing": True},
        {"pairs": [{"data_type": QUOTE, "symbol": "A\x00"}], "all_or_nothing": True},
        {"pairs": [{"data_type": QUOTE, "symbol": "AAPL"}], "all_or_nothing": "perhaps"},
        {"pairs": [{"data_type": QUOTE, "symbol": "AAPL"}] * 10_001},
        [1],
        "AAPL",
        None,
    ):
        assert watcher.refusal("POST", "heartbeat", json=body)["status"] == 422
        assert core.rows("SELECT FROM pricing.active_subscriptions") == []


def test_b7_a_refusal_says_how_a_body_or_a_day_is_written(api: RunningApi) -> None:
    caller = api.caller(Scope.WATCH, Scope.READ, user="ann")
    form = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl sends data without another header
    refused = caller.refusal("POST", "heartbeat", content=json.dumps(PAIR), headers=form)
    assert refused["detail"] == "Send the body as JSON, with the header Content-Type: application/json."
    refused = caller.refusal("GET", f"history/{QUOTE}/AAPL", params={"from": "yesterday"})
    assert refused["detail"] == "Parameter from: write a day like 2013-02-28."
    as_json = {"Content-Type": "application/json"}
    refused = caller.refusal("POST", "heartbeat", content='{"pairs": nothing}', headers=as_json)
    assert refused["detail"] == "The body is not JSON: Expecting value at character 10."
    refused = caller.refusal("GET", "products/NOSUCH/availability", params={"currency": "euro"})
    assert refused["detail"] == "Parameter currency: write a currency as three capital letters, such as EUR."


def test_b7_a_removed_token_is_refused_once_it_is_forgotten(
    api: RunningApi, owner_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "REMEMBERED_SECONDS", 0.0)
    reader = api.caller(Scope.READ)
    reader.get("prices", symbols="AAPL")
    with owner_engine.begin() as connection:
        (token,) = api_tokens.stored(connection)
        assert token.last_used_at is not None
        api_tokens.remove(connection, token.name)
    assert reader.refusal("GET", "prices", params={"symbols": "AAPL"})["status"] == 401


def test_b7_a_token_expires(
    api: RunningApi, owner_engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "REMEMBERED_SECONDS", 0.0)
    with owner_engine.begin() as connection:
        token = api_tokens.add(connection, "short", [Scope.READ], None, hours=0.5).get_secret_value()
    short = api.stranger(token)
    assert short.get("tasks")["tasks"] == []
    clock.advance(29 * 60)
    assert short.get("tasks")["tasks"] == []
    clock.advance(61)
    problem = short.refusal("GET", "tasks")
    assert (problem["status"], problem["type"]) == (401, "urn:pricing-pipeline:expired-token")
    with owner_engine.begin() as connection:
        assert [one.has_expired for one in api_tokens.stored(connection)] == [True]
        again = api_tokens.add(connection, "short", [Scope.READ], "ann").get_secret_value()
    assert short.refusal("GET", "tasks")["type"] == "urn:pricing-pipeline:wrong-token"
    assert api.stranger(again).get("tasks")["tasks"] == []


def test_b7_a_token_expires_also_while_it_is_remembered(api: RunningApi, owner_engine: Engine) -> None:
    with owner_engine.begin() as connection:
        token = api_tokens.add(connection, "short", [Scope.READ], None, hours=0.5 / 3600).get_secret_value()
    short = api.stranger(token)
    assert short.ask("GET", "tasks").status_code in (200, 401)
    wait_until(lambda: short.ask("GET", "tasks").status_code == 401)


def test_b7_long_expired_tokens_are_forgotten(owner_engine: Engine, clock: Clock) -> None:
    with owner_engine.begin() as connection:
        api_tokens.add(connection, "old", [Scope.READ], None, hours=1)
        api_tokens.add(connection, "lasting", [Scope.READ], None)
    clock.advance(31 * 86_400)
    with owner_engine.begin() as connection:
        api_tokens.add(connection, "new", [Scope.READ], None, hours=1)
        assert [token.name for token in api_tokens.stored(connection)] == ["lasting", "new"]


def test_b7_pages_of_others_are_refused_whatever_token_they_have(api: RunningApi) -> None:
    """A page under a rebound name, one of another site, and one without a name."""
    admin = api.caller(Scope.ADMIN)
    for headers, status, kind in (
        ({"host": "evil.example"}, 421, "wrong-host"),
        ({"origin": "https://evil.example"}, 403, "foreign-origin"),
        ({"origin": "null"}, 403, "foreign-origin"),
    ):
        problem = admin.refusal("GET", "prices?symbols=AAPL", headers=headers)
        assert (problem["status"], problem["type"]) == (status, f"urn:pricing-pipeline:{kind}")


def test_b7_nobody_learns_where_a_database_is_that_does_not_answer(caplog: pytest.LogCaptureFixture) -> None:
    """Anyone who has no token could ask, too: nobody can tell then whether a token is right."""
    engine = make_engine("postgresql://keeper@127.0.0.9:9/books")
    with running_api(engine, engine) as api:
        problem = api.stranger(f"pp_{'x' * 43}").refusal("GET", "prices?symbols=AAPL")
    engine.dispose()
    assert (problem["status"], problem["type"]) == (503, "urn:pricing-pipeline:database-error")
    assert "does not answer" in problem["detail"]
    assert not any(word in str(problem) for word in ("127.0.0.9", "books", "keeper"))
    assert "127.0.0.9" in caplog.text, "the log says it"


def test_b7_a_body_that_is_too_long_is_not_read(api: RunningApi) -> None:
    watcher = api.caller(Scope.WATCH, user="ann")
    assert watcher.refusal("POST", "heartbeat", content=b" " * 2_000_001)["status"] == 413
    answer = httpx.post(
        f"{api.url}/v1/heartbeat",
        content=iter([b"{}"]),
        headers={"Authorization": f"Bearer {watcher.token}"},
        timeout=PATIENCE,
    )
    assert answer.status_code == 411


def test_b7_what_is_not_there_is_a_problem_too_and_a_wrong_method_is_told_the_right_ones(api: RunningApi) -> None:
    reader = api.caller(Scope.READ)
    assert reader.refusal("GET", "nosuch")["type"].endswith("no-such-path")
    assert reader.refusal("DELETE", "prices")["type"].endswith("wrong-method")
    for path, methods in (("prices", "GET, HEAD, OPTIONS"), ("backfills", "GET, POST"), ("tasks/retry", "POST")):
        answer = reader.ask("DELETE", path)
        assert (answer.status_code, answer.headers["Allow"]) == (405, methods)


def test_b7_the_worker_cannot_make_tokens(core: Core) -> None:
    for statement in (
        "INSERT INTO pricing.api_tokens (name, secret_hash, scopes) VALUES ('x', sha256('x'), '{admin}') RETURNING 1",
        "UPDATE pricing.api_tokens SET scopes = '{admin}' RETURNING 1",
        "DELETE FROM pricing.api_tokens RETURNING 1",
    ):
        with pytest.raises(Exception, match="permission denied"):
            core.call(statement)
