"""A declared provider's requests by POST and its answers in pages (F11): the file, the requests, and what ends them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import DeclarationRefused, ProviderDown, SchemaDrift, Unfinished
from pricing_pipeline.providers.base import Question, Request
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.declaration_file import Declared, read_file, read_text
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.dialogue import MAX_REQUESTS, Pages, Uncounted
from pricing_pipeline_tests.support.declarations import PAGES, SHARES, answered, asked, changed
from pricing_pipeline_tests.support.json_server import serving
from pricing_pipeline_tests.support.paged_bars import FIRST, LAST, WAYS, PagedBars, bars
from pricing_pipeline_tests.support.patience import PATIENCE

NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)
WINDOW = Window(FIRST, LAST)
KEY = SecretStr("canary-5ecret-0123456789")
DAYS = [FIRST.replace(day=day) for day in range(FIRST.day, LAST.day + 1)]


def declared(way: str, *changes: tuple[str, str]) -> DeclaredProvider:
    return DeclaredProvider(changed(PAGES, WAYS[way], *changes))


@contextmanager
def paged(server: PagedBars | None = None) -> Iterator[PagedBars]:
    server = server or PagedBars()
    with serving(server):
        yield server


def fetch(provider: DeclaredProvider, server: PagedBars, pages: Pages | None = None) -> Answer:
    with ProviderClient(provider, server.url, KEY, deadline=PATIENCE) as client:
        return client.fetch(Fetcher.DAILY_BARS, ["AAPL"], WINDOW, now=NOW, pages=pages or Uncounted()).answer


# --- requests ---


def test_f11_the_example_posts_its_body_page_after_page_and_only_the_header_has_the_key() -> None:
    provider = DeclaredProvider(read_file(PAGES))
    with paged() as server:
        answer = fetch(provider, server)
    assert [one.observed_at.date() for one in answer.observations] == DAYS
    filters = {"tickers": ["AAPL"], "from": "2026-11-02", "to": "2026-11-06"}
    assert [(one.method, one.path, one.body) for one in server.asked] == [
        ("POST", "/bars/search", {"filter": filters, "limit": 100}),
        ("POST", "/bars/search", {"filter": filters, "limit": 100, "after": "x2"}),
        ("POST", "/bars/search", {"filter": filters, "limit": 100, "after": "x4"}),
    ]
    assert {one.headers["X-Api-Key"] for one in server.asked} == {KEY.get_secret_value()}
    assert KEY.get_secret_value() not in json.dumps([(one.path, one.body) for one in server.asked])


@pytest.mark.parametrize("way", WAYS)
def test_f11_pages_are_followed_by_number_offset_cursor_and_link(way: str) -> None:
    with paged() as server:
        answer = fetch(declared(way), server)
    assert [one.observed_at.date() for one in answer.observations] == DAYS
    assert len(server.asked) == 3


def test_f11_numbers_of_pages_are_numbers_and_begin_where_it_is_said() -> None:
    request = asked(declared("number"), Fetcher.DAILY_BARS, ["AAPL"], WINDOW, now=NOW)
    assert isinstance(request.json, dict)
    assert request.json["page"] == 1
    from_0 = declared("number", ('"meta.page < meta.pages"', '"meta.page < meta.pages", first: 0'))
    request = asked(from_0, Fetcher.DAILY_BARS, ["AAPL"], WINDOW, now=NOW)
    assert isinstance(request.json, dict)
    assert request.json["page"] == 0


@pytest.mark.parametrize("template", ['["{symbols}"]', '"of {symbols}"'])
def test_f11_many_symbols_are_a_list_or_a_text_of_a_body(template: str) -> None:
    provider = DeclaredProvider(
        changed(
            SHARES,
            (
                '      query: {symbols: "{symbols}", fields: all}\n',
                f"      post: {{a: {template}, n: 5, no: null}}\n",
            ),
        )
    )
    request = asked(provider, Fetcher.QUOTE, ["AAPL", "IBM"], None, now=NOW)
    expected = ["AAPL", "IBM"] if template.startswith("[") else "of AAPL,IBM"
    assert request == Request("/quotes", (), "POST", {"a": expected, "n": 5, "no": None})


@given(symbol=st.text(max_size=12), cursor=st.text(min_size=1, max_size=30) | st.integers())
def test_b2_neither_symbol_nor_cursor_changes_anything_of_a_body_but_its_own_value(
    symbol: str, cursor: str | int
) -> None:
    provider = DeclaredProvider(changed(PAGES, ('pattern: "[A-Z0-9^][A-Z0-9.^-]{0,31}"', 'pattern: ".*"')))
    if not provider.accepts(symbol):
        return
    dialogue = provider.ask(Question(Fetcher.DAILY_BARS, [symbol], WINDOW, NOW))
    first = next(dialogue)
    body = json.dumps({"ticker": symbol, "bars": [], "meta": {"next": cursor}}).encode()
    try:
        second = dialogue.send(Response(200, {}, body, len(body)))
    except SchemaDrift:
        assert not (str(cursor).isascii() and str(cursor).isprintable() and len(str(cursor)) < 19)
        return
    assert isinstance(first.json, dict)
    assert (second.path, second.params, second.json) == (first.path, (), first.json | {"after": cursor})


# --- answers that end a call ---


def torn(way: str, instead: dict[int, Any], *changes: tuple[str, str], most: int | None = None) -> str:
    server = PagedBars(instead=instead)
    with paged(server), pytest.raises(SchemaDrift) as caught:
        fetch(declared(way, *changes), server)
    assert len(server.asked) <= (most or 3)
    line = WAYS[way][1][: WAYS[way][1].index("pages:")].count("\n")
    line += PAGES.read_text()[: PAGES.read_text().index("      post:\n")].count("\n") + 1
    assert f"(line {line} of its declaration)" in str(caught.value)
    return str(caught.value)


def meta(**values: object) -> Any:
    return lambda content: content | {"meta": content["meta"] | values}


def link(url: object) -> Any:
    return lambda content: content | {"links": {"next": url}}


def first_again(**values: object) -> Any:
    return lambda content: meta(**values)(content) | {"bars": bars()[:2]}


@pytest.mark.parametrize(
    ("way", "instead", "words"),
    [
        ("cursor", {1: meta(next="x2")}, "its pages lead in a circle"),
        ("cursor", {0: meta(next={"a": 1})}, "neither text nor number"),
        ("cursor", {0: meta(next=True)}, "neither text nor number"),
        ("cursor", {0: meta(next="x\n")}, "plain characters"),
        ("cursor", {0: meta(next="x" * 2001)}, "plain characters"),
        ("cursor", {0: meta(next="\ud800")}, "plain characters"),
        ("number", {1: lambda content: content | {"bars": []}}, "its page 2 has no rows"),
        ("offset", {0: meta(count="5")}, "which is not a number of rows"),
        ("offset", {0: meta(count=True)}, "which is not a number of rows"),
        ("offset", {0: meta(count=-1)}, "which is not a number of rows"),
        ("offset", {0: meta(count=1)}, "its pages have 2 rows already"),
        ("offset", {1: meta(count=6)}, "and an earlier page 5"),
        ("offset", {0: meta(count=4), 1: first_again(count=4)}, "its page 2 has the rows of an earlier one"),
        ("number", {2: first_again(page=3)}, "its page 3 has the rows of an earlier one"),
        ("cursor", {2: first_again(next=None)}, "its page 3 has the rows of an earlier one"),
        ("offset", {1: lambda content: content | {"bars": []}}, "its page 2 has no rows"),
    ],
)
def test_f11_pages_that_are_no_whole_list_are_not_believed(way: str, instead: dict[int, Any], words: str) -> None:
    assert words in torn(way, instead)


@pytest.mark.parametrize("way", ["cursor", "number", "link"])
def test_f11_rows_that_a_page_repeats_of_the_last_are_left_out_and_counted(way: str) -> None:
    def overlapping(content: dict[str, Any]) -> object:
        return content | {"bars": [bars()[1], *content["bars"]]}

    with paged(PagedBars(instead={1: overlapping, 2: overlapping})) as server:
        answer = fetch(declared(way), server)
    assert [one.observed_at.date() for one in answer.observations] == DAYS
    assert answer.left_out == 2
    broken = bars()
    broken[1]["close"] = "-5"
    both = {
        0: lambda content: content | {"bars": broken[:2]},
        1: lambda content: content | {"bars": broken[1:4]},
    }
    with paged(PagedBars(instead=both)) as server:
        answer = fetch(declared(way), server)
    assert [value.text for value in answer.rejected] == ["-5"], "one that is refused is refused once"
    assert answer.left_out == 1


def test_f11_pages_that_reach_their_total_by_rows_that_came_twice_lack_others() -> None:
    """A list of five that begins a day earlier while it is read: its third page would be its last."""
    words = "and 1 of these rows came twice, so that others are missing"
    assert words in torn("offset", {1: lambda content: content | {"bars": bars()[1:3]}})


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/v2/bars",
        "//evil.example/v2/bars",
        "http://api.example.com/v2/bars",
        "https://api.example.com:8443/v2/bars",
        "https://api.example.com.evil.example/v2/bars",
        "https://me" + "@api.example.com/v2/bars",
        "https://api.example.com/v1/bars",
        "https://api.example.com/v22/bars",
        "/bars",
        "../../bars",
        "/v2/../admin",
        "/v2/%2e%2e/admin",
        "/v2/tenant/..%2f..%2fadmin",
        "/v2/tenant%2F%2e%2E/admin",
        "/v2/..%5c..%5Cadmin",
        "/v2/%252e%252e/admin",
        "/v2/..;/admin",
        "/v2/bars;x=1/admin",
        "/v2//evil.example/",
        "/v2/\\evil.example",
        "file:///etc/passwd",
        "gopher://api.example.com/v2/bars",
        "http://169.254.169.254/",
        "https://[::1/v2/bars",
        "/v2/bars?" + "&".join(f"p{n}=1" for n in range(60)),
        5,
    ],
)
def test_b2_a_link_leads_nowhere_but_below_the_declared_address(url: object) -> None:
    assert "does not lead below https://api.example.com/v2" in torn("link", {0: link(url)}, most=1)


@pytest.mark.parametrize("secret", ["demo-5ecret", KEY.get_secret_value()])
@pytest.mark.parametrize("way", ["cursor", "link"])
def test_a4_a_key_that_an_answer_repeats_is_no_part_of_the_next_request(way: str, secret: str) -> None:
    """Plain, if it is short, or escaped in a way in which no answer is searched."""
    escaped = "".join(f"%{ord(char):02x}" for char in secret)
    for told in (f"/v2/bars/{secret}", f"/v2/bars/{escaped}", f"/v2/bars?a={escaped}", f"/v2/bars?{escaped}"):
        instead = meta(next=told) if way == "cursor" else link(told)
        server = PagedBars(instead={0: lambda content, instead=instead: instead(content) | {"x": 5000 * " "}})
        with (
            paged(server),
            ProviderClient(declared(way), server.url, SecretStr(secret), deadline=PATIENCE) as client,
            pytest.raises(SchemaDrift, match="nothing was stored") as caught,
        ):
            client.fetch(Fetcher.DAILY_BARS, ["AAPL"], WINDOW, now=NOW)
        assert not {one for one in server.asked if secret in unquote(one.path) + unquote(str(one.body))}
        assert secret not in unquote(str(caught.value))
        assert caught.value.wire_bytes, "the answer is booked"


@pytest.mark.parametrize("secret", ["demo-5ecret", KEY.get_secret_value()])
def test_a4_a_link_that_repeats_the_parameter_of_the_key_is_asked_with_the_key_once(secret: str) -> None:
    """Many services name the address that was asked, with another page in it."""
    server = PagedBars()
    for page, after in enumerate(["x2", "x4"]):
        server.instead[page] = link(f"/v2/bars/search?api_key={secret}&after={after}&ticker=AAPL")
    provider = declared("link", ("key: {header: X-Api-Key}", "key: {query: api_key}"))
    with paged(server), ProviderClient(provider, server.url, SecretStr(secret), deadline=PATIENCE) as client:
        answer = client.fetch(Fetcher.DAILY_BARS, ["AAPL"], WINDOW, now=NOW).answer
        assert [one.observed_at.date() for one in answer.observations] == DAYS
        assert [parse_qs(urlsplit(one.path).query)["api_key"] for one in server.asked] == [[secret]] * 3
        del server.asked[:]
        server.instead[1] = server.instead[0]
        with pytest.raises(SchemaDrift, match="its pages lead in a circle"):
            client.fetch(Fetcher.DAILY_BARS, ["AAPL"], WINDOW, now=NOW)
    assert len(server.asked) == 2


@pytest.mark.parametrize("way", ["cursor", "link"])
def test_a4_what_has_replaced_a_key_is_asked_for_nowhere(way: str) -> None:
    told = f"/v2/bars?token={KEY.get_secret_value()}"
    server = PagedBars(instead={0: meta(next=told) if way == "cursor" else link(told)})
    with paged(server), pytest.raises(SchemaDrift, match="names a next page with its API key"):
        fetch(declared(way), server)
    assert len(server.asked) == 1


def test_f11_pages_by_link_are_asked_for_with_the_declared_headers() -> None:
    provider = declared("link", ("key: {header: X-Api-Key}", "key: {header: X-Api-Key}\nheaders: {X-Version: '3'}"))
    with paged() as server:
        fetch(provider, server)
    assert [one.headers["X-Version"] for one in server.asked] == ["3"] * 3
    responses = [
        Response(200, {}, f"<all><bar day='{DAYS[0]}' close='1'/>{follows}</all>".encode(), 50)
        for follows in ("<next>/v2/bars?after=1</next>", "")
    ]
    dialogue = in_xml("{next: next}", "a: b").ask(Question(Fetcher.DAILY_BARS, ["AAPL"], WINDOW, NOW))
    assert next(dialogue).headers == dialogue.send(responses[0]).headers == (("Accept", "*/*"),)


def test_f11_a_short_key_that_is_a_symbol_keeps_no_page_from_being_asked() -> None:
    with paged() as server, ProviderClient(declared("cursor"), server.url, SecretStr("AAPL")) as client:
        client.fetch(Fetcher.DAILY_BARS, ["AAPL"], WINDOW, now=NOW)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/v2/bars/search?after=x2&ticker=A%26B",
        "https://API.example.com/v2/bars/search?after=x2&ticker=A%26B",
        "/v2/bars/search?after=x2&ticker=A%26B",
        "search?after=x2&ticker=A%26B#top",
    ],
)
def test_f11_a_link_may_be_absolute_or_relative(url: str) -> None:
    server = PagedBars(instead={0: link(url)})
    with paged(server):
        fetch(declared("link"), server)
    assert server.asked[1].path == "/bars/search?after=x2&ticker=A%26B"


def test_f11_links_of_a_try_lead_below_the_address_that_is_asked_in_the_place_of_the_declared_one() -> None:
    server = PagedBars()
    server.instead[0] = lambda content: link(f"{server.url}/bars/search?after=x2&ticker=AAPL")(content)
    server.instead[1] = link("https://api.example.com/v2/bars/search?after=x4&ticker=AAPL")
    with paged(server):
        answer = fetch(DeclaredProvider(changed(PAGES, WAYS["link"]), server.url), server)
        assert [one.observed_at.date() for one in answer.observations] == DAYS
        assert len(server.asked) == 3
        server.instead[0] = link("http://127.0.0.2:9/bars")
        words = rf"does not lead below {server.url} or https://api\.example\.com/v2"
        with pytest.raises(SchemaDrift, match=words):
            fetch(DeclaredProvider(changed(PAGES, WAYS["link"]), server.url), server)
        assert len(server.asked) == 4


def in_xml(pages: str, query: str) -> DeclaredProvider:
    """The example, with pages of XML."""
    begin = PAGES.read_text().partition("      post:\n")[0]
    asked_by = f'      query: {{s: "{{symbol}}", {query}}}\n      pages: {pages}\n'
    return DeclaredProvider(read_text(f"{begin}{asked_by}{XML}", "pages.yaml"))


XML = """      answer:
        body: {format: xml}
        rows: bar
        time: {path: day, format: iso_date}
        close: close
        currency: {code: USD}
"""


@pytest.mark.parametrize(
    ("pages", "query", "follows"),
    [
        ("{cursor: next}", 'after: "{cursor}"', "<next>x{}</next>"),
        ("{next: next}", "a: b", "<next>/v2/bars/search?after={}</next>"),
        ("{more: next}", 'page: "{page}"', "<next>{}</next>"),
        ("{total: count}", 'skip: "{offset}"', ""),
    ],
)
def test_f11_pages_of_xml_are_followed(pages: str, query: str, follows: str) -> None:
    """An element stands in a list of one."""
    bodies = []
    for number, day in enumerate(DAYS, 1):
        more = follows.format(number) if number < len(DAYS) else ""
        bodies.append(f"<all><count>{len(DAYS)}</count><bar day='{day}' close='{number}.5'/>{more}</all>".encode())
    responses = [Response(200, {}, body, len(body)) for body in bodies]
    answer = answered(in_xml(pages, query), Fetcher.DAILY_BARS, ["AAPL"], WINDOW, *responses, now=NOW)
    assert [one.observed_at.date() for one in answer.observations] == DAYS


@pytest.mark.parametrize("way", WAYS)
def test_f11_nothing_is_believed_if_one_page_fails(way: str) -> None:
    for status, kind in ((500, ProviderDown), (404, SchemaDrift)):
        server = PagedBars(instead={1: lambda content, status=status: (status, {"error": "no"})})
        with paged(server), pytest.raises(kind, match="no"):
            fetch(declared(way), server)


def test_f11_a_page_about_another_symbol_ends_the_call() -> None:
    server = PagedBars(instead={1: lambda content: content | {"ticker": "IBM"}})
    with paged(server), pytest.raises(SchemaDrift, match=r"page 2 contradicts those before it: .*'IBM'"):
        fetch(declared("cursor"), server)


def test_f11_a_later_page_that_says_there_is_nothing_ends_the_call() -> None:
    server = PagedBars(instead={2: lambda content: (404, {"error": "no more"})})
    empty = ("    - means: unknown\n", "    - means: empty\n")
    with (
        paged(server),
        pytest.raises(SchemaDrift, match="page 3 contradicts those before it: it says that there is"),
    ):
        fetch(declared("number", empty), server)


def test_f11_pages_without_end_stop_at_the_most_requests() -> None:
    server = PagedBars(instead={n: meta(next=f"x{n * 2 + 2}") for n in range(100)})
    with paged(server), pytest.raises(Unfinished, match=str(MAX_REQUESTS)):
        fetch(declared("cursor"), server)
    assert len(server.asked) == MAX_REQUESTS


def test_f11_each_page_after_the_first_waits_until_it_is_allowed() -> None:
    begun: list[int] = []

    class Counted(Uncounted):
        def begin(self, spent: Any) -> None:
            begun.append(len(spent))

    with paged() as server:
        fetch(declared("cursor"), server, Counted())
    assert begun == [1, 2]


# --- faults of the file ---

NUMBER, CURSOR = WAYS["number"][1], WAYS["cursor"][1]


@pytest.mark.parametrize(
    ("way", "change", "words"),
    [
        ("cursor", ('      pages: {cursor: meta.next}\n', ""), "{cursor} is used, and `pages` does not say"),
        ("cursor", ("{cursor: meta.next}", "{more: meta.next}"), "with `more` there is no {cursor}"),
        ("cursor", ("{cursor: meta.next}", "{}"), "pages have one of `cursor`, `next`, `more` and `total`"),
        ("cursor", ("{cursor: meta.next}", "{cursor: a, next: b}"), "pages have one of"),
        ("cursor", ("{cursor: meta.next}", "{cursor: 'meta.\"{symbol}\"'}"), "it has no placeholders here"),
        ("cursor", ('"{cursor}" # the', '"x" # the'), "the request needs {cursor}, or all pages are the first"),
        ("cursor", ('"{cursor}" # the', '["{cursor}"] # the'), "{cursor} is the value of a key"),
        ("cursor", ('"{cursor}" # the', '"{cursr}" # the'), "{cursr} is not a placeholder here"),
        ("cursor", ("limit: 100", "api_key: abc"), "`api_key` looks like a key"),
        ("cursor", ("limit: 100", 'limit: {a: "{"}'), "braces stand for placeholders only"),
        ("cursor", ("path: /bars/search", "path: '/bars/{cursor}'"), "{cursor} is not a placeholder here"),
        ("cursor", ("rows: bars", "if_missing: empty"), "`rows` is missing"),
        ("number", ('page: "{page}"', "page: 1"), "the request needs {page} or {offset}"),
        ("number", ('{more: "meta.page < meta.pages"}', "{next: links.next}"), "with `next` there is no {page}"),
        ("number", ('page: "{page}"', 'page: "{page}", a: ["{symbols}", "{symbols}"]'), "{symbols} stands once"),
        (
            "number",
            ('page: "{page}"}\n      pages: {more: "meta.page < meta.pages"}', "a: 1}\n      pages: {next: a}"),
            "a URL leads to a GET",
        ),
    ],
)  # fmt: skip
def test_f11_a_fault_of_pages_and_bodies_is_told_with_its_line(way: str, change: tuple[str, str], words: str) -> None:
    def read() -> Declared:
        return changed(PAGES, WAYS[way], change)

    with pytest.raises(DeclarationRefused, match=re.escape(words)) as caught:
        read()
    text = PAGES.read_text().replace(*WAYS[way], 1)
    began = text[: text.index(change[0])].count("\n") + 1
    told = [int(line) for line in re.findall(r"^pages\.yaml:([0-9]+): ", str(caught.value), re.MULTILINE)]
    assert told
    assert all(began - 8 <= line <= began + 5 for line in told), caught.value
