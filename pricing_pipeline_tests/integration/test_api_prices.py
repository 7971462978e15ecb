"""A10, F4 over HTTP: a read answers at once with what is stored, says why it is old, and asks for what is missing."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Scope as AsgiScope

from pricing_pipeline.api import price_reads
from pricing_pipeline.demand import freshness
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.alert_causes import refuse_new
from pricing_pipeline_tests.support.api_server import Caller, RunningApi
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")

MINUTE = 60


def asked_for(core: Core) -> set[tuple[str, str]]:
    """What is queued, or waits for a worker to queue it."""
    requests = core.rows("SELECT data_type, symbol FROM pricing.pair_requests WHERE kind = 'read'")
    return {(row.data_type, row.symbol) for row in [*requests, *core.tasks()]}


def test_a10_a_read_says_what_is_missing_and_asks_for_it(api: RunningApi, core: Core) -> None:
    caller = api.caller(Scope.READ)
    answer = caller.get("prices", symbols="AAPL,NOSUCH")
    assert answer["prices"] == []
    assert states(answer) == {
        (QUOTE, "AAPL"): "unwatched",
        (DAILY, "AAPL"): "unwatched",
        (None, "NOSUCH"): "unknown_symbol",
    }
    assert asked_for(core) == set(), "nobody wants it, and no data type is named"
    answer = caller.get("prices", pairs=f"{QUOTE}:AAPL,{DAILY}:AAPL,{DAILY}:NOSUCH,fx_rate:AAPL,nosuch:AAPL")
    assert states(answer) == {
        (QUOTE, "AAPL"): "unwatched",
        (DAILY, "AAPL"): "unwatched",
        (DAILY, "NOSUCH"): "unknown_symbol",
        ("fx_rate", "AAPL"): "unknown_symbol",
        ("nosuch", "AAPL"): "unknown_type",
    }
    assert asked_for(core) == {(QUOTE, "AAPL"), (DAILY, "AAPL")}


def states(answer: dict[str, Any]) -> dict[tuple[str | None, str], str]:
    return {(pair["data_type"], pair["symbol"]): pair["why"]["state"] for pair in answer["missing"]}


@pytest.mark.parametrize("user", [None, "ann"])
def test_a10_of_a_symbol_alone_only_watched_and_held_pairs_are_asked_for(
    api: RunningApi, core: Core, user: str | None
) -> None:
    core.heartbeat("bob", (QUOTE, "IBM"))
    core.hold("carl", (FX, "EUR/USD"))
    for table in ("api_call_queue_live", "pair_requests", "demand", "pair_views"):
        core.rows(f"DELETE FROM pricing.{table}")
    caller = api.caller(Scope.READ, user=user)
    told = states(caller.get("prices", symbols="IBM,EUR/USD,AAPL")).keys()
    wanted = {(QUOTE, "IBM"), (FX, "EUR/USD")}
    assert told == wanted | {(QUOTE, "AAPL"), (DAILY, "AAPL")}
    assert asked_for(core) == wanted
    named = f"{FX}:EUR/USD,{DAILY}:IBM"
    assert states(caller.get("prices", pairs=named)).keys() == {(FX, "EUR/USD"), (DAILY, "IBM")}
    assert asked_for(core) == wanted | {(DAILY, "IBM")}
    reasons = caller.get("why", pairs=named)["reasons"]
    assert [(why["data_type"], why["symbol"]) for why in reasons] == [(FX, "EUR/USD"), (DAILY, "IBM")]


def test_a10_f4_a_price_is_exact_and_says_why_it_is_old(api: RunningApi, core: Core, clock: Clock) -> None:
    caller = api.caller(Scope.READ)
    core.read("AAPL")
    core.refresh(price="146.5500")
    (price,) = caller.get("prices", symbols="aapl", data_type=QUOTE)["prices"]
    assert (price["symbol"], price["price"], price["fresh"], price["why"]) == ("AAPL", "146.55", True, None)
    assert price["observed_at"].endswith("Z")
    clock.advance(2 * MINUTE)
    (price,) = caller.get("prices", symbols="AAPL", data_type=QUOTE)["prices"]
    assert (price["fresh"], price["age_seconds"] >= 2 * MINUTE) == (False, True)
    reason = price["why"]
    assert reason["state"]
    assert reason["sentence"]
    (why,) = caller.get("why", symbols="AAPL", data_type=QUOTE)["reasons"]
    assert why["symbol"] == "AAPL"
    assert asked_for(core) == {(QUOTE, "AAPL"), (DAILY, "AAPL")}


def test_a10_bad_requests_are_refused_in_words(api: RunningApi, core: Core) -> None:
    caller = api.caller(Scope.READ)
    for params, status, words in (
        ({}, 422, "symbols or pairs, as in"),
        ({"symbols": "AAPL", "pairs": f"{QUOTE}:AAPL"}, 422, "symbols or pairs, as in"),
        ({"pairs": f"{QUOTE}:AAPL", "data_type": QUOTE}, 422, "each of the pairs names its own"),
        ({"pairs": f"{QUOTE}:AAPL,MSFT"}, 422, "'MSFT' is not a pair; write each as data_type:symbol"),
        ({"pairs": f"{QUOTE}:{'x' * 41}"}, 422, "write each as data_type:symbol"),
        ({"pairs": f"{QUOTE}:A\x00"}, 422, "write each as data_type:symbol"),
        ({"symbols": "AAPL", "data_type": f"{QUOTE},{QUOTE}"}, 404, "no active data type"),
        ({"symbols": ""}, 422, "symbols"),
        ({"symbols": " , ,"}, 422, "1 to 40 characters"),
        ({"symbols": f"AAPL,{'x' * 41}"}, 422, f"{'x' * 41}' is not a symbol; each has 1 to 40 characters"),
        ({"symbols": ",".join(f"S{i}" for i in range(501))}, 422, "a request may name 500"),
        ({"symbols": "AAPL", "data_type": "nosuch"}, 404, "no active data type 'nosuch'"),
        ({"symbols": "AAPL\x00"}, 422, "'AAPL\\x00' is not a symbol"),
        ({"symbols": "AAPL", "data_type": "a\x00"}, 422, "text contains the character NUL"),
        ({"symbols": "'; DROP TABLE x; --"}, 200, ""),
    ):
        if status == 200:
            assert caller.get("prices", **params)["prices"] == []
            continue
        problem = caller.refusal("GET", "prices", params=params)
        assert (problem["status"], words in problem["detail"]) == (status, True), problem
        assert asked_for(core) == set()


NAMES = st.sampled_from(["symbols", "pairs", "data_type", "user", "other"])
VALUES = st.sampled_from(
    [
        "",
        "AAPL",
        "aapl,MSFT",
        "A,,B",
        "NOSUCH",
        QUOTE,
        f"{QUOTE}:AAPL",
        f"{QUOTE}:aapl,fx_rate:EUR/USD,nosuch:X",
        "nosuch",
        "ann",
        "bob",
        "x" * 300,
        "A\x00",
        "%",
        "é",
        "A B&C",
    ]
)
QUERIES = st.one_of(
    st.builds(lambda more: urlencode([("symbols", "AAPL"), *more]), st.lists(st.tuples(NAMES, VALUES), max_size=3)),
    st.builds(
        lambda values, more: urlencode([*(("symbols", value) for value in values), *more]),
        st.lists(VALUES, min_size=2, max_size=4),
        st.lists(st.tuples(NAMES, VALUES), max_size=1),
    ),
    st.builds(
        lambda values, more: urlencode([*(("pairs", value) for value in values), *more]),
        st.lists(VALUES, min_size=1, max_size=3),
        st.lists(st.tuples(NAMES, VALUES), max_size=1),
    ),
    st.text("symbols=&;%+AE\u00fc", max_size=20).map(lambda text: f"symbols=AAPL{quote(text, safe='&;%=+')}"),
)


def test_b7_a_list_may_be_repeated_and_have_commas(api: RunningApi) -> None:
    caller = api.caller(Scope.READ)
    query = "symbols=AAPL,MSFT&symbols=IBM&symbols=AAPL"
    for path, names in (("prices", ("prices", "missing")), ("why", ("reasons", "missing"))):
        answer = caller.ask("GET", f"{path}?{query}&data_type={QUOTE}").json()
        assert {pair["symbol"] for name in names for pair in answer[name]} == {"AAPL", "MSFT", "IBM"}
    cost = caller.ask("GET", f"backfills/cost?{query}&data_type={DAILY}&first_day=2013-01-10").json()
    assert cost["symbols"] == ["AAPL", "IBM", "MSFT"]


def test_b7_a_parameter_that_would_change_nothing_is_refused(api: RunningApi, core: Core) -> None:
    caller = api.caller(Scope.READ)
    for path, words in (
        (
            "prices?symbols=AAPL&datatype=equity_quote",
            "There is no parameter 'datatype' at this path. Did you mean data_type? It takes symbols, pairs, "
            "data_type, list, format, decimal, currency, user.",
        ),
        (
            "why?symbols=AAPL&foo=1",
            "There is no parameter 'foo' at this path. It takes symbols, pairs, data_type, user.",
        ),
        (
            "prices?symbols=AAPL&data_type=a&data_type=b",
            "The parameter data_type is given 2 times, and takes one value.",
        ),
        (
            f"history/{QUOTE}/AAPL?from=2026-01-01&from=2026-01-02",
            "The parameter from is given 2 times, and takes one value.",
        ),
    ):
        problem = caller.refusal("GET", path)
        assert (problem["status"], problem["type"]) == (422, "urn:pricing-pipeline:invalid-request")
        assert problem["detail"] == words
    assert asked_for(core) == set()


def test_b7_reads_of_prices_are_answered_as_fastapi_would(
    api: RunningApi, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that is answered ahead of FastAPI gets the status and the body that FastAPI gives it."""
    core.read("AAPL")
    core.refresh(price="146.55")
    callers = [
        api.caller(Scope.READ),
        api.caller(Scope.READ, user="ann"),
        api.caller(Scope.WATCH),
        api.stranger(),
    ]
    # The first request for a price changes why it is missing.
    callers[0].get("prices", pairs=f"{QUOTE}:AAPL,{QUOTE}:MSFT,fx_rate:EUR/USD")
    usual_read, ahead = price_reads._usual_read, 0

    def counted(scope: AsgiScope) -> price_reads._Read | None:
        nonlocal ahead
        parameters = usual_read(scope)
        ahead += parameters is not None
        return parameters

    @settings(max_examples=examples(60))
    @given(st.sampled_from(callers), QUERIES)
    def check(caller: Caller, query: str) -> None:
        monkeypatch.setattr(price_reads, "_usual_read", lambda scope: None)
        later = caller.ask("GET", f"prices?{query}")
        monkeypatch.setattr(price_reads, "_usual_read", counted)
        first = caller.ask("GET", f"prices?{query}")
        assert (first.status_code, content(first)) == (later.status_code, content(later))
        assert first.headers["content-type"] == later.headers["content-type"]

    check()
    assert ahead, "some take the short way"


def content(answer: httpx.Response) -> dict[str, object]:
    """The body, without what is another one each time."""
    body: dict[str, object] = answer.json()
    body.pop("request_id", None)
    return body


@pytest.mark.parametrize("user", [None, "ann"])
def test_a10_a_read_of_what_is_fresh_writes_nothing(
    api: RunningApi, core: Core, clock: Clock, user: str | None
) -> None:
    core.read("AAPL")
    core.refresh(price="146.55")
    core.refresh(price="146.55")
    caller = api.caller(Scope.READ, user=user)
    caller.get("prices", symbols="AAPL", data_type=QUOTE)  # notes the view, and the use of the token
    before = versions(core)
    for _ in range(3):
        (price,) = caller.get("prices", symbols="AAPL", data_type=QUOTE)["prices"]
        assert price["fresh"] is True
    assert versions(core) == before
    clock.advance(11 * MINUTE)
    caller.get("prices", symbols="AAPL", data_type=QUOTE)
    viewed = core.one(f"SELECT viewed_at FROM pricing.pair_views WHERE (data_type, symbol) = ('{QUOTE}', 'AAPL')")
    assert viewed == core.clock()


def versions(core: Core) -> list[object]:
    """Each row that a read may write, with who wrote and who locked it."""
    tables = ("pair_views", "pair_requests", "demand", "api_call_queue_live", "latest_prices")
    return [core.rows(f"SELECT ctid::text, xmin::text, xmax::text FROM pricing.{table}") for table in tables]


def test_a10_a_read_says_why_before_it_asks(api: RunningApi, core: Core) -> None:
    """What nobody has asked for is not told to be on its way; the next read knows."""
    caller = api.caller(Scope.READ)
    states = [caller.get("prices", symbols="AAPL", data_type=QUOTE)["missing"][0]["why"]["state"] for _ in range(2)]
    assert states[0] != states[1]
    with core.engine.connect() as connection:
        (now,) = freshness.why(connection, "AAPL", QUOTE)
    assert states[1] == now.state


def test_a10_a_table_of_ones_own_is_judged_by_its_own_times(api: RunningApi, core: Core, clock: Clock) -> None:
    """A read asks for what `missing_prices` finds missing, whatever our own price says."""
    core.read("AAPL")
    core.refresh(price="146.55")
    core.rows(
        "CREATE TABLE pricing.own_quotes (symbol text PRIMARY KEY, fetched_at timestamptz, cache_ttl_minutes integer)"
    )
    core.rows("GRANT SELECT ON pricing.own_quotes TO pricing_worker")
    core.rows(f"UPDATE pricing.data_type_registry SET table_name = 'own_quotes' WHERE data_type = '{QUOTE}'")
    asked = []
    for minutes in (0, 2):
        clock.advance(minutes * MINUTE)
        expected = core.call("SELECT symbols FROM pricing.missing_prices(ARRAY[:type], ARRAY['AAPL'])", type=QUOTE)
        api.caller(Scope.READ).get("prices", symbols="AAPL", data_type=QUOTE)
        asked.append([task.symbol for task in core.tasks() if (task.data_type, task.status) == (QUOTE, "pending")])
        assert asked[-1] == (expected or [])
    assert asked == [[], ["AAPL"]]


@pytest.mark.own_sessions
def test_a10_the_answer_survives_a_restart_of_the_database(api: RunningApi, core: Core) -> None:
    caller = api.caller(Scope.READ)
    for _ in range(2):
        caller.get("prices", symbols="AAPL")
        ended = core.call(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = current_user"
            " AND datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert ended >= 1
    caller.get("prices", symbols="AAPL")


def test_a10_documents_are_no_prices(api: RunningApi, core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('company_profile', 'profile', 1440)"
    )
    problem = api.caller(Scope.READ).refusal(
        "GET", "prices", params={"symbols": "AAPL", "data_type": "company_profile"}
    )
    assert (problem["status"], "/v1/documents/company_profile" in problem["detail"]) == (404, True)


def test_f4_reasons_of_many_symbols_come_in_their_order(api: RunningApi, core: Core) -> None:
    core.read("AAPL")
    reasons = api.caller(Scope.READ).get("why", symbols="ibm,AAPL,IBM")["reasons"]
    assert list(dict.fromkeys(reason["symbol"] for reason in reasons)) == ["IBM", "AAPL"]
    with core.engine.connect() as connection:
        each = [why.sentence for symbol in ("IBM", "AAPL") for why in freshness.why(connection, symbol)]
    assert [reason["sentence"] for reason in reasons] == each


def test_f4_why_of_a_stranger_says_so_and_keeps_no_other_from_its_answer(api: RunningApi, core: Core) -> None:
    core.read("AAPL")
    caller = api.caller(Scope.READ)
    answer = caller.get("why", symbols="NOSUCH,AAPL")
    assert {(reason["data_type"], reason["symbol"]) for reason in answer["reasons"]} == {
        (QUOTE, "AAPL"),
        (DAILY, "AAPL"),
    }
    assert answer["missing"] == [
        pair
        for pair in caller.get("prices", symbols="NOSUCH,AAPL")["missing"]
        if pair["why"]["state"] == "unknown_symbol"
    ]
    assert answer["missing"] == [
        {
            "data_type": None,
            "symbol": "NOSUCH",
            "why": {
                "state": "unknown_symbol",
                "sentence": "no instrument is called NOSUCH; watching it adds it",
                "since": None,
                "next_at": None,
            },
        }
    ]


def test_f4_why_of_one_data_type_tells_an_instrument_that_no_provider_knows_from_a_stranger(
    api: RunningApi, core: Core, clock: Clock
) -> None:
    refuse_new("APPL")(core, clock)
    answer = api.caller(Scope.READ).get("why", symbols="APPL,EUR/USD,NOSUCH", data_type=QUOTE)
    assert [(reason["symbol"], reason["state"]) for reason in answer["reasons"]] == [("APPL", "unknown_symbol")]
    assert [(pair["symbol"], pair["why"]["sentence"]) for pair in answer["missing"]] == [
        ("EUR/USD", f"no instrument of {QUOTE} is called EUR/USD; {TICKER}. EUR/USD is of the class fx"),
        ("NOSUCH", f"no instrument of {QUOTE} is called NOSUCH; watching it adds it"),
    ]


TICKER = "shares have tickers without a slash, such as AAPL or BRK.B"
PAIR = "exchange rates are of two known currencies, such as EUR/USD"
STRANGE = "it looks like a symbol of no data type; `pricing-pipeline type list` lists them"


def test_f4_watching_is_no_way_out_for_what_cannot_be_watched(api: RunningApi) -> None:
    caller = api.caller(Scope.READ)
    for path, asked, words in (
        ("prices", {"symbols": "EURXYZ", "data_type": FX}, f"no instrument of fx_rate is called EURXYZ; {PAIR}"),
        ("prices", {"symbols": "AAPL MSFT"}, f"no instrument is called AAPL MSFT; {STRANGE}"),
        (
            "prices",
            {"symbols": "TCS:FOO"},
            "no instrument is called TCS:FOO; there is no exchange FOO; the exchange stands after the colon by its "
            "MIC, as in VOD:XLON",
        ),
        (
            "why",
            {"symbols": "US0378331005", "data_type": QUOTE},
            f"no instrument of {QUOTE} is called US0378331005; no instrument is known by this number. "
            "`pricing-pipeline instrument find US0378331005` looks for it, and `pricing-pipeline instrument add SYMBOL "
            "--asset-class CLASS --isin US0378331005` tells which instrument it is of",
        ),
        ("prices", {"symbols": "nosuch"}, "no instrument is called nosuch; watching it adds it"),
    ):
        (missing,) = caller.get(path, **asked)["missing"]
        assert missing["why"]["sentence"] == words


def test_f4_why_of_an_instrument_whose_only_data_type_is_retired_says_so(api: RunningApi, core: Core) -> None:
    """Why said that it is an instrument without prices, of which why tells."""
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE asset_class = 'fx'")
    answer = api.caller(Scope.READ).get("why", symbols="EUR/USD")
    assert answer["missing"] == []
    ((state, sentence),) = [(reason["state"], reason["sentence"]) for reason in answer["reasons"]]
    assert (state, sentence.endswith("pricing-pipeline type revive fx_rate")) == ("retired", True)


def test_a10_white_space_and_a_last_comma_are_no_part_of_a_symbol(api: RunningApi, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "MSFT"))
    core.refresh(price="1")
    caller = api.caller(Scope.READ)
    found = caller.get("prices", symbols=" aapl, MSFT ,,", data_type=QUOTE)
    assert ([price["symbol"] for price in found["prices"]], found["missing"]) == (["AAPL", "MSFT"], [])


def test_f3_a_plus_that_a_url_has_lost_is_told(api: RunningApi) -> None:
    params = "from=2026-11-01&as_of=2026-11-01T00:00:00+02:00"
    problem = api.caller(Scope.READ).refusal("GET", f"history/{QUOTE}/AAPL?{params}")
    assert "as %2B" in problem["detail"], problem
    spaced = "as_of=2026-11-01%2015:00Z&from=2026-11-01"
    assert "%2B" not in api.caller(Scope.READ).refusal("GET", f"history/{QUOTE}/NOSUCH?{spaced}")["detail"]
