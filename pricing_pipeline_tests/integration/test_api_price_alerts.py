"""Price alerts over HTTP: each user has its own, within a cap, at recipients that are meant for it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.operations import price_watch
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import Caller, RunningApi
from pricing_pipeline_tests.support.storing import next_call

pytestmark = pytest.mark.usefixtures("still")

ABOVE = {
    "recipient": "shop",
    "data_type": QUOTE,
    "symbol": "AAPL",
    "condition": "above",
    "threshold": "200",
}


@pytest.fixture(autouse=True)
def _recipients(core: Core) -> None:
    """Of an application, of Ann and of Bob; there is the owner's mailbox, too."""
    core.rows(
        "INSERT INTO pricing.recipients (recipient, channel, user_id, takes_any_user, least_severity, created_at)"
        " VALUES ('shop', 'log', NULL, true, NULL, now()), ('anns', 'log', 'ann', false, NULL, now()),"
        " ('bobs', 'log', 'bob', false, NULL, now())"
    )


@pytest.fixture
def shop(api: RunningApi) -> Caller:
    """An application: it names a user in each request."""
    return api.caller(Scope.WATCH)


def listed(caller: Caller, user: str | None = None) -> list[int]:
    params = {} if user is None else {"user": user}
    return [alert["price_alert_id"] for alert in caller.get("price-alerts", **params)["price_alerts"]]


def test_b27_a_threshold_that_is_a_json_number_keeps_its_digits(shop: Caller) -> None:
    sent = json.dumps({**ABOVE, "threshold": "?"}).replace('"?"', "123456789012345.123456789012")
    headers = {"Content-Type": "application/json"}
    answer = shop.ask("POST", "price-alerts", content=sent, headers=headers, params={"user": "ann"})
    assert answer.json()["threshold"] == "123456789012345.123456789012"


def test_b27_an_alert_is_added_told_with_its_user_and_removed(shop: Caller, core: Core, clock: Clock) -> None:
    added = shop.post("price-alerts", {**ABOVE, "symbol": "aapl", "threshold": "200.10"}, user="ann")
    assert (added["symbol"], added["threshold"], added["user_id"]) == ("AAPL", "200.10", "ann")
    assert (added["is_fetched"], added["is_beyond"], added["told_at"]) == (False, False, None)
    assert shop.get("price-alerts", user="ann") == {"price_alerts": [added], "next": None}
    assert shop.get(f"price-alerts/{added['price_alert_id']}", user="ann") == added
    clock.advance(1)
    core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", "200.11", core.clock()))
    assert price_watch.watch(core.engine) == 1
    ((payload,),) = core.rows("SELECT payload FROM pricing.async_operations")
    assert payload["recipient"] == "shop"
    assert payload["title"] == "AAPL is above 200.10: 200.11 USD"
    assert payload["body"].endswith("'ann' asked for it.")
    seen = shop.get(f"price-alerts/{added['price_alert_id']}", user="ann")
    assert (seen["seen"], seen["is_beyond"], seen["told_at"][-1]) == ("200.11", True, "Z")
    gone = shop.post("price-alerts/remove", {"ids": [added["price_alert_id"]]}, user="ann")
    assert gone == {"removed": [added["price_alert_id"]]}
    assert listed(shop, "ann") == []


def test_b27_a_hysteresis_is_added_and_shown_over_http_and_at_the_command_line(shop: Caller, cli: CommandLine) -> None:
    added = shop.post("price-alerts", {**ABOVE, "hysteresis": "1.5", "hysteresis_in": "percent"}, user="ann")
    seen = shop.get(f"price-alerts/{added['price_alert_id']}", user="ann")
    assert (seen["hysteresis"], seen["hysteresis_in"]) == ("1.5", "percent")
    assert shop.post("price-alerts", ABOVE, user="bob")["hysteresis"] == "0"
    arguments = ("price-alert", "add", "mailbox", "AAPL", "--type", QUOTE)
    said = cli(*arguments, "--below", "150", "--hysteresis", "1%")
    assert "is notified when equity_quote AAPL goes below 150, again after it came back by 1 % (" in said.stdout
    one = cli(*arguments, "--below", "140", "--hysteresis", "0.5", "--json").json
    assert (one["hysteresis"], one["hysteresis_in"]) == ("0.5", "amount")
    assert "below 150, again after it came back by 1 %" in cli("price-alert", "list").stdout.replace("\n", "")
    assert "belongs to --above and --below" in cli(*arguments, "--moved", "5", "--hysteresis", "1").error
    assert "is not a number" in cli(*arguments, "--above", "5", "--hysteresis", "%").error
    assert "is below 0" in cli(*arguments, "--above", "5", "--hysteresis", "-1%").error
    assert "of above less than the threshold" in cli(*arguments, "--above", "5", "--hysteresis", "5").error


def test_b27_a_webhook_is_told_whose_alert_it_is(shop: Caller, core: Core, clock: Clock) -> None:
    core.rows(
        "INSERT INTO pricing.recipients (recipient, channel, takes_any_user, least_severity, created_at, master_key_id,"
        " key_nonce, wrapped_key, secret_nonce, ciphertext)"
        " VALUES ('hook', 'webhook', true, NULL, now(), 'one', '', '', '', '')"
    )
    ids = [
        shop.post("price-alerts", {**ABOVE, "recipient": "hook", **other}, user="ann")["price_alert_id"]
        for other in (
            {},
            {"condition": "each", "threshold": None},
            {"condition": "stale", "threshold": None, "lasts_seconds": 60},
        )
    ]
    clock.advance(1)
    core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", "201", core.clock()))
    price_watch.watch(core.engine)
    clock.advance(86_400)
    price_watch.watch_stale(core.engine)
    data = [row.data for row in core.rows("SELECT payload -> 'data' AS data FROM pricing.async_operations")]
    assert sorted((item["price_alert"], item["user_id"]) for item in data) == [(id_, "ann") for id_ in ids]


def test_b27_a_user_sees_and_ends_only_its_own(api: RunningApi, shop: Caller, cli: CommandLine) -> None:
    ann, bob = (api.caller(Scope.WATCH, user=user) for user in ("ann", "bob"))
    of_ann = ann.post("price-alerts", ABOVE)["price_alert_id"]
    of_bob = bob.post("price-alerts", ABOVE)["price_alert_id"]
    added = cli("price-alert", "add", "mailbox", "AAPL", "--type", QUOTE, "--above", "200", "--json").json
    of_owner = added["price_alert_id"]
    assert listed(ann) == listed(shop, "ann") == [of_ann]
    assert listed(bob) == [of_bob]
    assert listed(shop, "cleo") == []
    for foreign in (of_bob, of_owner, 999_999):
        assert ann.refusal("GET", f"price-alerts/{foreign}")["type"].endswith("unknown-price-alert")
        body = {"ids": [of_ann, foreign]}
        assert ann.refusal("POST", "price-alerts/remove", json=body)["status"] == 404
    assert listed(ann) == [of_ann], "nothing is ended if not all are"
    of_all = cli("price-alert", "list", "--json").json["price_alerts"]
    assert [(alert["price_alert_id"], alert["user_id"]) for alert in of_all] == [
        (of_ann, "ann"),
        (of_bob, "bob"),
        (of_owner, None),
    ]


def test_b27_only_recipients_for_users_are_written_to_and_no_other_is_named(api: RunningApi) -> None:
    ann = api.caller(Scope.WATCH, user="ann")
    for foreign in ("mailbox", "bobs", "nosuch"):
        problem = ann.refusal("POST", "price-alerts", json={**ABOVE, "recipient": foreign})
        assert (problem["status"], problem["type"]) == (404, "urn:pricing-pipeline:unknown-recipient")
        assert "There are: anns, shop." in problem["detail"]
    for own in ("anns", "shop"):
        assert ann.post("price-alerts", {**ABOVE, "recipient": own})["recipient"] == own


def test_b27_a_recipient_for_users_hears_of_no_trouble(cli: CommandLine, core: Core) -> None:
    refused = cli("recipient", "add", "phone", "log", "--user", "ann", "--severity", "P2")
    assert "no alerts about trouble" in refused.error
    assert "either --user or --any-user" in cli("recipient", "add", "x", "log", "--user", "a", "--any-user").error
    assert cli("recipient", "add", "phone", "log", "--user", "ann").exit_code == 0
    assert "prices, for ann" in cli("recipient", "show", "phone").stdout
    assert "prices, for any user" in cli("recipient", "list").stdout
    assert "users get no alerts" in cli("recipient", "change", "phone", "--severity", "P1").error
    core.rows("DELETE FROM pricing.recipients WHERE recipient = 'mailbox'")
    core.rows(
        "INSERT INTO pricing.alerts (rule, subject, severity, says, since, last_seen_at, raised_at)"
        " SELECT 'breaker_open', 'twelvedata', 'P0', 'x', t, t, t FROM pricing.clock() t"
    )
    assert core.rows("SELECT * FROM pricing.alerts_to_tell()") == [], "it waits for somebody to be told of it"


def test_b27_the_same_alert_is_had_once_by_each_user(shop: Caller) -> None:
    first = shop.post("price-alerts", ABOVE, user="ann")["price_alert_id"]
    assert shop.post("price-alerts", ABOVE, user="bob")["price_alert_id"] > first
    problem = shop.refusal("POST", "price-alerts", json={**ABOVE, "threshold": "200.0"}, params={"user": "ann"})
    assert problem["status"] == 422
    assert f"has this price alert already: {first}" in problem["detail"]


def test_b27_what_makes_no_sense_is_refused_and_leaves_nothing(shop: Caller, core: Core) -> None:
    for changes, detail in (
        ({"threshold": None}, "below and moved have a threshold"),
        ({"lasts_seconds": 60}, "below and moved have a threshold"),
        ({"condition": "each"}, "below and moved have a threshold"),
        ({"condition": "each", "threshold": None, "pace_seconds": 59}, "pace_seconds"),
        ({"condition": "stale", "threshold": None, "lasts_seconds": 59}, "lasts_seconds"),
        ({"threshold": "0"}, "threshold"),
        ({"hysteresis": "200"}, "less than the threshold"),
        ({"hysteresis": "100", "hysteresis_in": "percent"}, "less than 100 percent"),
        ({"hysteresis": "-1"}, "hysteresis"),
        ({"condition": "moved", "hysteresis": "1"}, "the conditions above and below have a hysteresis"),
        ({"threshold": "1e999999"}, "threshold"),
        ({"threshold": "1e-999999"}, "12 decimal"),
        ({"threshold": "NaN"}, "threshold"),
        ({"threshold": "1_0"}, "threshold"),
        ({"threshold": "0.0000000000001"}, "12 decimal"),
        ({"condition": "beside"}, "condition"),
        ({"symbol": None}, "symbol"),
        ({"symbol": "not a symbol"}, "symbol"),
        ({"all_symbols": True}, "all_symbols"),
    ):
        problem = shop.refusal("POST", "price-alerts", json={**ABOVE, **changes}, params={"user": "ann"})
        assert problem["status"] == 422
        assert detail in problem["detail"]
        assert core.one("SELECT count(*) FROM pricing.price_alerts") == 0


def test_b27_what_has_no_prices_has_no_price_alerts(shop: Caller, core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('company_profile', 'profile', 1440)"
    )
    wanted = {**ABOVE, "data_type": "company_profile"}
    problem = shop.refusal("POST", "price-alerts", json=wanted, params={"user": "ann"})
    assert "has no prices" in problem["detail"]


def test_b27_a_user_has_so_many_alerts_however_many_requests_come_at_once(
    api: RunningApi, core: Core, cli: CommandLine
) -> None:
    assert cli("limit", "set-caps", "--price-alerts", "3").exit_code == 0
    ann = api.caller(Scope.WATCH, user="ann")

    def add(price: int) -> int:
        return ann.ask("POST", "price-alerts", json={**ABOVE, "threshold": str(price)}).status_code

    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(add, range(1, 9)))
    assert sorted(statuses) == [201] * 3 + [429] * 5
    problem = ann.refusal("POST", "price-alerts", json=ABOVE)
    assert (problem["status"], problem["type"]) == (429, "urn:pricing-pipeline:cap-exceeded")
    assert "ser ann may have 3 price alerts" in problem["detail"]
    assert api.caller(Scope.WATCH, user="bob").post("price-alerts", ABOVE)["user_id"] == "bob"
    ann.post("price-alerts/remove", {"ids": listed(ann)[:1]})
    assert add(9) == 201
    core.rows("DELETE FROM pricing.user_caps")
    assert ann.refusal("POST", "price-alerts", json={**ABOVE, "threshold": "10"})["status"] in (422, 503)
