"""B27: the Python client: exact prices, the problem's words, retries, and a stream that goes on by itself."""

from __future__ import annotations

import itertools
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pricing_client import (
    ApiError,
    HistoryWarning,
    NotAllowed,
    NotFound,
    Notice,
    Price,
    PricingClient,
    RequestRefused,
    TooMuch,
    Unavailable,
    Update,
)
from pricing_client import client as client_module
from pricing_client.events import Event, lines_of, read_events
from pricing_pipeline.api import stream_hub
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.domain.words import as_json
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.support.api_server import RunningApi

AAPL = (QUOTE, "AAPL")
READY = b'event: ready\ndata: {"pairs": 1}\nid: 1-aaaaaaaaaaaa\n\n'


@pytest.fixture
def client(api: RunningApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[PricingClient]:
    monkeypatch.setattr(stream_hub, "PACE_SECONDS", 0.05)
    token = api.caller(Scope.READ, Scope.WATCH).token
    assert token is not None
    with PricingClient(api.url, token, user="ann", patience=0) as client:
        yield client


@pytest.mark.usefixtures("still")
def test_a9_f4_prices_are_exact_and_say_why_they_are_old(client: PricingClient, core: Core) -> None:
    assert client.heartbeat(AAPL).changed == 1
    core.refresh(price="146.5500")
    found = client.prices("AAPL", "NOSUCH")
    (price,) = found.prices
    assert (price.price, price.fresh, price.why) == (Decimal("146.55"), True, None)
    assert price.observed_at.tzinfo == UTC
    assert {(pair.symbol, pair.why.state) for pair in found.missing} >= {("NOSUCH", "unknown_symbol")}
    mixed = client.prices(AAPL, ("fx_rate", "EUR/USD"), (QUOTE, "NOSUCH"))
    assert (
        [price.symbol for price in mixed.prices],
        {(pair.data_type, pair.symbol) for pair in mixed.missing},
    ) == (
        ["AAPL"],
        {("fx_rate", "EUR/USD"), (QUOTE, "NOSUCH")},
    )
    reasons = client.why(("fx_rate", "EUR/USD"), AAPL)
    assert [(why.data_type, why.state) for why in reasons] == [("fx_rate", "due"), (QUOTE, "fresh")]
    (why,) = client.why("AAPL", data_type=QUOTE)
    assert (why.symbol, why.state) == ("AAPL", "fresh")
    assert [client.hold(AAPL).changed, client.hold(AAPL).changed] == [1, 0]
    assert [client.release(AAPL), client.leave(AAPL)] == [1, 1]


@pytest.mark.usefixtures("still")
def test_b27_what_a_user_watches_and_holds_is_listed_however_long(
    client: PricingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_ROWS_OF_A_PAGE", 2)
    pairs = [(QUOTE, symbol) for symbol in ("AAPL", "IBM", "META", "MSFT", "NVDA")]
    client.heartbeat(*pairs)
    client.hold(*pairs)
    client.release(pairs[0])
    assert [(one.data_type, one.symbol) for one in client.subscriptions()] == pairs
    assert [(one.data_type, one.symbol) for one in client.holdings()] == pairs[1:]
    (released,) = (one for one in client.holdings(closed_too=True) if one.closed_at is not None)
    assert (released.symbol, released.status) == ("AAPL", "closed")


@pytest.mark.usefixtures("still")
def test_b27_price_alerts_are_added_listed_and_removed(client: PricingClient, core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.recipients (recipient, channel, takes_any_user, least_severity, created_at)"
        " VALUES ('shop', 'log', true, NULL, now())"
    )
    above = client.add_price_alert("shop", *AAPL, "above", Decimal("200.10"), hysteresis="1.5")
    stale = client.add_price_alert("shop", *AAPL, "stale", lasts_seconds=600)
    assert (above.threshold, above.hysteresis, above.is_fetched) == (Decimal("200.10"), Decimal("1.5"), False)
    assert client.price_alerts() == [above, stale]
    with pytest.raises(RequestRefused, match="has this price alert already"):
        client.add_price_alert("shop", *AAPL, "above", "200.10")
    with pytest.raises(NotFound, match="nosuch"):
        client.add_price_alert("nosuch", *AAPL, "each")
    assert client.remove_price_alerts(above.price_alert_id) == [above.price_alert_id]
    with pytest.raises(NotFound):
        client.remove_price_alerts(above.price_alert_id, stale.price_alert_id)
    assert client.price_alerts() == [stale]


def test_problems_are_told_in_their_words(client: PricingClient, api: RunningApi) -> None:
    with pytest.raises(NotFound, match="no active data type 'nosuch'") as caught:
        client.prices("AAPL", data_type="nosuch")
    assert (caught.value.status, caught.value.kind) == (404, "unknown-data-type")
    assert caught.value.request_id
    with pytest.raises(RequestRefused, match="1 to 40 characters"):
        client.prices("A" * 41)
    with (
        PricingClient(api.url, "pp_no", patience=0) as stranger,
        pytest.raises(NotAllowed, match="is unknown"),
    ):
        stranger.why("AAPL")
    with pytest.raises(NotFound):
        next(client.watch(("nosuch", "AAPL")))


@pytest.mark.usefixtures("still")
def test_b27_watching_tells_what_holds_and_what_changes(client: PricingClient, core: Core) -> None:
    updates = client.watch(AAPL)
    first, second = next(updates), next(updates)
    assert isinstance(first, Update)
    assert (first.kind, first.symbol, first.price) == ("missing", "AAPL", None)
    assert second == Notice("ready", pairs=1)
    core.refresh(price="1.25")
    third = next(updates)
    assert isinstance(third, Update)
    assert (third.kind, third.price and third.price.price) == ("price", Decimal("1.25"))
    updates.close()  # type: ignore[attr-defined]


Answer = Callable[[BaseHTTPRequestHandler], None]


def refusal(status: int, retry_after: str | None = None) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        body = b'{"type": "urn:pricing-pipeline:database-busy", "detail": "It is busy.", "request_id": "r"}'
        request.send_response(status)
        request.send_header("Content-Type", "application/problem+json")
        request.send_header("Content-Length", str(len(body)))
        if retry_after is not None:
            request.send_header("Retry-After", retry_after)
        request.end_headers()
        request.wfile.write(body)

    return answer


def body(content: bytes, kind: str = "text/event-stream; charset=utf-8") -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.end_headers()
        request.wfile.write(content)

    return answer


def hang_up(request: BaseHTTPRequestHandler) -> None:
    request.connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def scripted(*answers: Answer) -> Iterator[tuple[str, list[str | None]]]:
    """A server that gives these answers, one after the other; and the Last-Event-ID of each request."""
    turns, seen = itertools.chain(answers), []  # type: ignore[var-annotated]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Last-Event-ID"))
            next(turns)(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


def test_requests_are_sent_again_after_the_time_that_is_named() -> None:
    pauses: list[float] = []
    good = body(b'{"reasons": [], "missing": []}')
    with (
        scripted(refusal(503, "7"), hang_up, refusal(429, "3"), good) as (url, _),
        PricingClient(url, "t", patience=60, pause=pauses.append) as client,
    ):
        assert client.why("AAPL") == []
    assert (pauses[0], pauses[2]) == (7, 3)
    assert 0.4 <= pauses[1] <= 1.0


@pytest.mark.parametrize(
    ("answer", "error"),
    [(refusal(503, "31"), Unavailable), (refusal(429, "31"), TooMuch), (hang_up, Unavailable)],
)
def test_patience_ends(answer: Answer, error: type[Exception]) -> None:
    with scripted(answer) as (url, _), PricingClient(url, "t", patience=0.1) as client, pytest.raises(error):
        client.why("AAPL")


def test_a9_history_is_bars_or_a_frame_with_exact_numbers() -> None:
    row = (
        b'{"date": "2026-01-05", "observed_at": "2026-01-05T00:00:00Z", "open": null, "high": null, "low": null,'
        b' "close": "1.10", "volume": "7", "currency": "USD", "adjustment": "raw", "provider": "p", "call_id": 4,'
        b' "fetched_at": "2026-01-06T00:00:00Z",'
        b' "quality": null}'
    )
    answer = body(b'{"symbol": "EUR/USD", "rows": [' + row + b"]}")
    with scripted(answer, answer) as (url, _), PricingClient(url, "t") as client:
        (bar,) = client.history("fx_rate", "EUR/USD", date(2026, 1, 1), date(2026, 1, 31), adjust="raw")
        frame = client.history_frame("fx_rate", "EUR/USD")
    assert (str(bar.close), bar.open, bar.observed_at) == ("1.10", None, datetime(2026, 1, 5, tzinfo=UTC))
    assert bar.date == frame.date.iloc[0] == date(2026, 1, 5)
    assert (str(frame.close.iloc[0]), frame.index[0]) == ("1.10", bar.observed_at)


def test_a9_an_adjusted_history_warns_of_what_looks_like_a_split() -> None:
    answer = body(b'{"symbol": "A", "warnings": ["2026-01-05: 100 to 50"], "rows": []}')
    with (
        scripted(answer) as (url, _),
        PricingClient(url, "t") as client,
        pytest.warns(HistoryWarning, match="2026-01-05: 100 to 50") as caught,
    ):
        assert client.history(QUOTE, "A", adjust="splits") == []
    assert caught[0].filename == __file__
    with (
        scripted(answer) as (url, _),
        PricingClient(url, "t") as client,
        pytest.warns(HistoryWarning) as caught,
    ):
        assert client.history_frame(QUOTE, "A", adjust="splits").empty
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "answer",
    [b"[]", b"3", b"{}", b'{"prices": [{"symbol": "A"}], "missing": []}', b"[" * 100_000],
    ids=["list", "number", "no-fields", "fields-are-missing", "deep"],
)
def test_b27_an_answer_of_another_version_or_of_another_server_is_an_error_of_the_api(answer: bytes) -> None:
    with scripted(*[body(answer)] * 3) as (url, _), PricingClient(url, "t", patience=0) as client:
        for ask in (client.prices, client.why, client.holdings):
            with pytest.raises(ApiError, match="answered what this client cannot read"):
                ask(*() if ask == client.holdings else ("A",))


def test_b27_what_cannot_be_unpacked_is_an_error_of_the_api() -> None:
    def garbled(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Encoding", "gzip")
        request.end_headers()
        request.wfile.write(b"{}")

    with (
        scripted(garbled) as (url, _),
        PricingClient(url, "t", patience=0) as client,
        pytest.raises(Unavailable),
    ):
        client.why("A")


def test_a9_a_number_of_json_is_as_exact_as_it_is_written() -> None:
    content = b'{"observed_at": "2026-01-05T00:00:00Z", "close": 0.1, "fetched_at": "2026-01-05T00:00:00Z"'
    rest = (
        "date",
        "open",
        "high",
        "low",
        "volume",
        "currency",
        "adjustment",
        "provider",
        "call_id",
        "quality",
    )
    row = content + b"".join(b', "%s": null' % name.encode() for name in rest) + b"}"
    with scripted(body(b'{"rows": [' + row + b"]}")) as (url, _), PricingClient(url, "t") as client:
        assert client.history(QUOTE, "A")[0].close == Decimal("0.1")
    (event,) = read_events(lines_of(['event: price\ndata: {"price": 0.1}\n\n']))
    assert event.data == {"price": Decimal("0.1")}


def test_b27_watching_a_server_that_sends_no_events_ends() -> None:
    """A page to sign in answers every request, and nobody would know why nothing comes."""
    with (
        scripted(body(b"<html>Sign in</html>", "text/html")) as (url, _),
        PricingClient(url, "t", patience=0) as client,
        pytest.raises(ApiError, match="answered no stream of events"),
    ):
        next(client.watch(("q", "A")))
    for event in (b"{bad", b"[1]", b'{"symbol": "A"}'):
        with (
            scripted(body(READY + b"event: price\ndata: " + event + b"\n\n")) as (url, _),
            PricingClient(url, "t", patience=0) as client,
        ):
            updates = client.watch(("q", "A"))
            assert next(updates).kind == "ready"
            with pytest.raises(ApiError, match="answered what this client cannot read"):
                next(updates)


def test_f4_an_answer_that_is_no_json_is_told_in_words() -> None:
    with (
        scripted(body(b"<html>Sign in</html>")) as (url, _),
        PricingClient(url, "t", patience=0) as client,
        pytest.raises(ApiError, match="answered no JSON"),
    ):
        client.why("AAPL")


def test_b27_watching_ends_while_too_many_streams_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's other streams hold the places, and nobody would know why nothing comes."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if seconds > 1:
            monkeypatch.setattr(client._transport, "patience", 0.0)  # as if it were over

    with (
        scripted(body(READY), refusal(429, "0"), refusal(429, "30"), refusal(429, "30")) as (url, _),
        PricingClient(url, "t", patience=20, pause=pauses.append) as client,
    ):
        updates = client.watch(("q", "A"))
        assert next(updates).kind == "ready"
        client._transport._pause = client._pause = pause
        with pytest.raises(TooMuch, match="It is busy"):
            next(updates)
    assert pauses[1] == 0
    assert 19 < pauses[2] <= 20, "the whole patience, and one more try"
    assert len(pauses) == 3


def test_b27_watching_waits_for_an_api_that_has_gone_but_not_for_one_that_never_came() -> None:
    """A wrong URL would wait for ever, and say nothing."""
    with (
        scripted(refusal(503, "31")) as (url, _),
        PricingClient(url, "t", patience=0, pause=lambda _: None) as client,
        pytest.raises(Unavailable, match="It is busy"),
    ):
        next(client.watch(("q", "A")))
    away = [refusal(503, "31")] * 3
    with (
        scripted(body(READY), *away, body(READY)) as (url, _),
        PricingClient(url, "t", patience=0, pause=lambda _: None) as client,
    ):
        updates = client.watch(("q", "A"))
        assert [next(updates).kind for _ in range(3)] == ["ready", "lost", "ready"], "lost is told once"
        updates.close()  # type: ignore[attr-defined]


def test_what_is_wrong_is_not_sent_again() -> None:
    with (
        scripted(refusal(422)) as (url, seen),
        PricingClient(url, "t") as client,
        pytest.raises(RequestRefused, match="It is busy"),
    ):
        client.why("AAPL")
    assert len(seen) == 1


def price_as_json(number: int) -> str:
    at = datetime(2026, 11, 27, 15, tzinfo=UTC)
    price = Price(
        *(
            "A",
            "q",
            None,
            Decimal(number),
            "USD",
            at,
            at,
            0.0,
            "fresh",
            True,
            False,
            "twelvedata",
            True,
            None,
            None,
        )
    )
    return json.dumps(price, default=as_json)


def test_b27_watching_goes_on_where_it_was_cut_off() -> None:
    """Cut off between events, in the middle of one, refused for a while, and told to begin anew."""
    second, third = (
        f"id: {number}-aaaaaaaaaaaa\nevent: price\ndata: {price_as_json(number)}\n\n".encode() for number in (2, 3)
    )
    missed = b'id\nevent: missed\ndata: {"events": null, "detail": "late"}\n\n'
    pauses: list[float] = []
    answers: Sequence[Answer] = (
        body(READY + second + third[:40]),
        refusal(503, "9"),
        body(b": nothing new\n\n" + third + b": nothing new\nid: 7-aaaaaaaaaaaa\n\n"),
        body(missed),
        body(READY),
    )
    with scripted(*answers) as (url, seen), PricingClient(url, "t", pause=pauses.append) as client:
        updates = client.watch(("q", "A"))
        told = [next(updates) for _ in range(6)]
        updates.close()  # type: ignore[attr-defined]
    prices = [update.price if isinstance(update, Update) else None for update in told]
    assert [(update.kind, price and price.price) for update, price in zip(told, prices, strict=True)] == [
        ("ready", None),
        ("price", Decimal(2)),
        ("lost", None),
        ("price", Decimal(3)),
        ("missed", None),
        ("ready", None),
    ]
    assert seen == [None, "2-aaaaaaaaaaaa", "2-aaaaaaaaaaaa", "7-aaaaaaaaaaaa", None]
    assert 9 in pauses


def test_the_client_imports_neither_the_database_nor_the_server() -> None:
    code = (
        "import sys, pricing_client\n"
        "print(*sorted(name for name in sys.modules if name.split('.')[0] in"
        " ('sqlalchemy', 'psycopg', 'fastapi', 'starlette', 'pydantic', 'pandas', 'uvicorn')"
        " or name.startswith('pricing_pipeline.') and not name.startswith('pricing_client')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


@given(
    st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=20), max_size=5),
    st.lists(st.integers(0, 400), max_size=6),
)
@example({"sentence": "what it sent\u2028is not\x85believed\x0b"}, [])
def test_b18_no_text_of_others_tears_an_event_apart(data: dict[str, str], cuts: list[int]) -> None:
    """Sentences quote providers. Python takes characters for ends of lines that are none in a stream of events."""
    sent = f"event: missing\ndata: {json.dumps(data, ensure_ascii=False)}\nid: 7-a\n\n"
    places = [0, *sorted(cuts), len(sent)]
    parts = [sent[first:last] for first, last in itertools.pairwise(min(at, len(sent)) for at in places)]
    assert list(read_events(lines_of(parts))) == [Event("7-a", "missing", data)]


def test_a4_a_wrong_token_is_never_shown() -> None:
    with pytest.raises(ValueError, match="no token of `token add` has") as caught:
        PricingClient("http://127.0.0.1:9", "s3cret\ntoken")
    assert "ann:secret" not in str(caught.value)
    with pytest.raises(ValueError, match="the token is empty"):
        PricingClient("http://127.0.0.1:9", "\n")
    with pytest.raises(ValueError, match=r"'127\.0\.0\.1:9' begins with neither"):
        PricingClient("127.0.0.1:9", "token")
    with pytest.raises(ValueError, match="this is not a valid URL"):
        PricingClient("http://[::1", "token")
    with pytest.raises(ValueError, match="the token says who asks") as caught:
        PricingClient("http://ann:secret@127.0.0.1:9", "token")
    assert "ann:secret" not in str(caught.value)


@pytest.mark.usefixtures("still")
def test_f4_a_token_may_have_the_line_end_of_its_file(api: RunningApi) -> None:
    with PricingClient(api.url, f"{api.caller(Scope.READ).token}\n", patience=0) as client:
        assert client.prices("NOSUCH").prices == []


def test_f4_slips_in_a_call_are_told_in_words() -> None:
    with PricingClient("http://127.0.0.1:9", "token", patience=0) as client:
        with pytest.raises(TypeError, match=r"Name several like this: 'AAPL', 'MSFT'"):
            client.prices(["AAPL", "MSFT"])  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="or pairs alone"):
            client.why("AAPL", (QUOTE, "MSFT"))
        with pytest.raises(TypeError, match=r"such as \('equity_quote', 'AAPL'\), not 'equity_quote'"):
            client.heartbeat(QUOTE, "AAPL")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a pair has a data type and a symbol"):
            next(client.watch(QUOTE))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"nothing is called '\.\./\.\./metrics'"):
            client.history(QUOTE, "../../metrics")


@pytest.mark.usefixtures("still")
def test_f4_a_day_may_be_a_text(client: PricingClient) -> None:
    with pytest.raises(RequestRefused, match="write a day"):
        client.history(QUOTE, "AAPL", "2026-13-01")
    with pytest.raises(NotFound):
        client.history(QUOTE, "NOSUCH", "2026-01-01", date(2026, 1, 2))
