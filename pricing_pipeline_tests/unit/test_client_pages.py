"""One call of several requests, as the client makes them: each bounded, counted and without the key.

Whether limits let them be made is in integration/test_pages*.py.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from pricing_pipeline.domain.calls import Receipt
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import (
    ClientFault,
    KeyRefused,
    ProviderDown,
    ProviderError,
    SchemaDrift,
    Throttled,
    Unfinished,
)
from pricing_pipeline.providers.base import MAX_VALUES, Dialogue, Question, Request
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.dialogue import MAX_REQUESTS, Uncounted
from pricing_pipeline_tests.support.paged_provider import Paged, PagedServer, paged_server, status
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.scripted_client import KEY, NOW

THREE = ["A", "B", "C"]
ROOT = Path(__file__).parents[2]


class Counted:
    """Lets `most` further requests be made, and keeps what was said about each."""

    def __init__(self, most: int = 100) -> None:
        self.most = most
        self.begun: list[list[int]] = []
        self.ended: list[Receipt] = []

    def begin(self, spent: Sequence[int]) -> None:
        if len(self.begun) == self.most:
            raise Unfinished("no room", retry_after=7)
        assert len(self.begun) == len(self.ended), "one request at a time"
        self.begun.append(list(spent))

    def end(self, receipt: Receipt) -> None:
        self.ended.append(receipt)


def client_of(server: PagedServer, provider: Paged | None = None, **limits: int) -> ProviderClient:
    return ProviderClient(provider or Paged(), server.url, SecretStr(KEY), deadline=PATIENCE, **limits)


def failed(server: PagedServer, pages: Counted, **limits: int) -> ProviderError:
    with client_of(server, **limits) as client, pytest.raises(ProviderError) as caught:
        client.fetch(Fetcher.QUOTE, THREE, now=NOW, asset_class="equity", pages=pages)
    return caught.value


def test_b18_one_call_asks_page_after_page_by_post() -> None:
    pages = Counted()
    with paged_server() as server, client_of(server) as client:
        fetched = client.fetch(
            Fetcher.QUOTE,
            THREE,
            now=NOW,
            asset_class="equity",
            known={"B": {"currency": "EUR"}},
            pages=pages,
        )
    assert {(one.symbol, one.currency) for one in fetched.answer.observations} == {
        ("A", "USD"),
        ("B", "EUR"),
        ("C", "USD"),
    }
    assert [one.body for one in server.asked] == [{"symbols": ["a", "b", "c"], "page": page} for page in (1, 2, 3)]
    for one in server.asked:
        assert (one.method, one.path) == ("POST", "/prices")
        assert one.headers["Content-Type"] == "application/json"
        assert one.headers["X-Key"] == KEY
    assert fetched.wire_bytes + sum(fetched.page_bytes) == server.sent
    assert [receipt.wire_bytes for receipt in pages.ended] == list(fetched.page_bytes)
    assert pages.begun == [[fetched.wire_bytes], [fetched.wire_bytes, fetched.page_bytes[0]]]
    assert len(fetched.body.splitlines()) == 3


def test_a_call_that_fits_on_one_page_is_one_request() -> None:
    pages = Counted()
    with paged_server(per_page=3) as server, client_of(server) as client:
        fetched = client.fetch(Fetcher.QUOTE, THREE, now=NOW, pages=pages)
    assert (server.pages, pages.begun, fetched.page_bytes) == ([1], [], ())
    assert fetched.wire_bytes == server.sent


@pytest.mark.parametrize(
    ("answer", "kind", "booked"),
    [
        (status(500), ProviderDown, "failed"),
        (status(429, Retry_After="7", X_RateLimit_Limit="5"), Throttled, "failed"),
        (status(401), KeyRefused, "failed"),
        (status(302, Location="http://169.254.169.254/"), ProviderDown, "failed"),
        (lambda: (200, {}, b"<html>"), SchemaDrift, "ok"),
        (lambda: (200, {}, b'{"rows": 1}'), SchemaDrift, "ok"),
    ],
)
def test_a_missing_page_fails_the_call_and_all_bytes_are_booked(
    answer: object, kind: type[ProviderError], booked: str
) -> None:
    pages = Counted()
    with paged_server() as server:
        server.instead[2] = answer  # type: ignore[assignment]
        error = failed(server, pages)
        assert type(error) is kind
        assert server.pages == [1, 2], "nothing is asked again, and no redirect followed"
        (page,) = pages.ended
        assert error.wire_bytes + page.wire_bytes == server.sent
        assert ("failed" if page.error else "ok") == booked
        assert page.http_status == error.http_status
    if isinstance(error, Throttled):
        assert (error.retry_after, error.shown, page.shown) == (7.0, (5, None), (5, None))


def test_what_limits_do_not_allow_ends_the_call() -> None:
    pages = Counted(most=1)
    with paged_server() as server:
        error = failed(server, pages)
    assert isinstance(error, Unfinished)
    assert (error.retry_after, error.http_status) == (7, 200)
    assert error.wire_bytes + pages.ended[0].wire_bytes == server.sent
    assert server.pages == [1, 2]


def test_pages_without_end_stop_at_the_most_requests() -> None:
    pages = Counted()
    with paged_server() as server:
        server.answer = lambda asked: (
            200,
            {},
            json.dumps({"rows": [], "next": asked.body["page"] + 1}).encode(),
        )  # type: ignore[method-assign]
        error = failed(server, pages)
    assert isinstance(error, Unfinished)
    assert str(MAX_REQUESTS) in str(error)
    assert len(server.asked) == MAX_REQUESTS == len(pages.ended) + 1


def test_b12_all_answers_of_a_call_are_bounded_together() -> None:
    large = json.dumps({"rows": [], "next": 2, "more": "x" * 900}).encode()
    with paged_server() as server:
        server.answer = lambda asked: (200, {}, large)  # type: ignore[method-assign]
        error = failed(server, Counted(), max_bytes=2000)
    assert isinstance(error, SchemaDrift)
    assert "all answers of one call" in str(error)
    assert len(server.asked) == 9, "each is within 2,000 bytes, and nine are more than four times that"


def test_each_request_has_the_byte_budget_of_its_own() -> None:
    with paged_server() as server:
        server.instead[2] = lambda: (200, {}, b"x" * 500_000)
        error = failed(server, Counted(), max_bytes=400_000)
    assert isinstance(error, SchemaDrift)
    assert "400000 bytes that one answer may have" in str(error)


def test_a_key_in_any_answer_is_masked_out() -> None:
    with paged_server() as server:
        server.instead[2] = lambda: (400, {}, f"bad key {KEY}".encode())
        error = failed(server, Counted())
    assert KEY not in str(error)
    assert "bad key" in str(error)


def test_a_fault_of_the_providers_own_code_is_named_and_its_bytes_are_booked() -> None:
    class Broken(Paged):
        def ask(self, question: Question) -> Dialogue:
            yield Request("/prices", method="POST", json={"page": 1, "symbols": ["a", "b"]})
            raise KeyError("no such field")

    with paged_server() as server, client_of(server, Broken()) as client:
        with pytest.raises(ClientFault, match="no such field") as caught:
            client.fetch(Fetcher.QUOTE, THREE, now=NOW)
        assert caught.value.wire_bytes == server.sent


def test_b18_all_answers_of_a_call_have_no_more_values_than_one() -> None:
    """Seen: fifty pages of empty lists, in 64 MiB, took 1.5 GB."""
    many = b'{"rows": [], "next": 2, "more": [' + b"[]," * (MAX_VALUES // 5) + b"[]]}"
    with paged_server() as server:
        server.answer = lambda asked: (200, {}, many)  # type: ignore[method-assign]
        error = failed(server, Counted())
    assert isinstance(error, SchemaDrift)
    assert f"{MAX_VALUES} values that all answers of one call may have" in str(error)
    assert len(server.asked) == 3


def test_a_lost_symbol_is_noticed_at_the_end() -> None:
    class Forgetful(Paged):
        def ask(self, question: Question) -> Dialogue:
            return super().ask(replace(question, symbols=question.symbols[:1]))

    with (
        paged_server() as server,
        client_of(server, Forgetful()) as client,
        pytest.raises(SchemaDrift, match="came out not exactly once"),
    ):
        client.fetch(Fetcher.QUOTE, THREE, now=NOW)


def test_only_a_post_has_a_body() -> None:
    with pytest.raises(ValueError, match="no body"):
        Request("/prices", json={})


def test_b18_whoever_makes_a_call_says_who_lets_its_pages_be_made() -> None:
    """`Uncounted` is for callers that book the call afterwards: each is known."""
    found = set()
    for path in (ROOT / "pricing_pipeline").rglob("*.py"):
        text = path.read_text()
        if path.name == "client.py" or not re.search(r"\.(fetch|make)\(", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_call = node.func.attr in ("fetch", "make") and "client" in ast.unparse(node.func.value)
                if is_call and "pages" not in {keyword.arg for keyword in node.keywords}:
                    found.add(path.name)
    assert found == {"provider_plan.py"}
    assert Uncounted().begin([1]) is None
