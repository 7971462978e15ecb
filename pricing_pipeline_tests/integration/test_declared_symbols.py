"""The provider's own names of symbols from its list, for `provider symbols` (F11)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import DeclarationRefused, ProviderError, SchemaDrift
from pricing_pipeline.providers.base import Request
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.wire import Wire
from pricing_pipeline_tests.fixtures.cli import CommandLine, Said
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.support.declarations import DECLARED, ROOT, changed
from pricing_pipeline_tests.support.provider_contract import NOW

COINGECKO = ROOT / "docs" / "examples" / "coingecko.yaml"
KEY = "canary-5ecret-0123456789"
LIST = [
    {"id": "dogecoin", "symbol": "doge"},
    {"id": "ripple", "symbol": "xrp"},
    {"id": "weird coin/../x", "symbol": "weird"},
    {"id": "lunar", "symbol": "luna"},
    {"id": "terra-luna", "symbol": "LUNA"},
    {"id": "wrapped-bitcoin", "symbol": "btc"},
    {"id": None, "symbol": "none"},
    "no row",
]


@pytest.fixture
def asked(still: None, core: Core, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """CoinGecko, declared and with a key; it answers its list."""
    sent: list[str] = []

    def send(self: Wire, request: Request, headers: dict[str, str], max_bytes: int) -> tuple[Response, bool]:
        sent.append(f"{self._base_url}{request.path} {dict(request.params)} {KEY in str(headers)}")
        body = json.dumps(LIST).encode()
        return Response(200, {}, body, len(body)), False

    monkeypatch.setattr(Wire, "send", send)
    assert cli("provider", "declare", str(COINGECKO), sandbox="false").exit_code == 0
    assert cli("key", "set", "coingecko", stdin=KEY, sandbox="false").exit_code == 0
    return sent


def symbols(cli: CommandLine, *words: str) -> Said:
    return cli("provider", "symbols", "coingecko", *words, sandbox="false")


def test_f11_names_of_a_list_are_used_where_they_are_plain(core: Core, cli: CommandLine, asked: list[str]) -> None:
    known = ["DOGE/USD", "XRP/EUR", "LUNA/USD", "BTC/USD", "WEIRD/USD", "NONE/USD"]
    coins = ("--fetcher", "quote", "--ttl", "5", "--asset-class", "crypto")
    assert cli("type", "add", "coin_quote", *coins).exit_code == 0
    added = cli("instrument", "add", *known, "--asset-class", "crypto")
    assert added.exit_code == 0, added
    by_hand = cli("instrument", "spell", "XRP/EUR", "--at", "coingecko", "--as", "xrp-by-hand/eur")
    assert by_hand.exit_code == 0, by_hand
    said = symbols(cli, "--json")
    assert said.exit_code == 0, said
    assert said.json["given"] == {"DOGE/USD": "dogecoin/usd"}
    left = said.json["left"]
    assert left["LUNA/USD"] == "LUNA may be lunar, terra-luna"
    assert left["NONE/USD"] == "NONE is not in the list"
    assert "coingecko has no symbols spelled like 'weird coin/../x/usd'" in left["WEIRD/USD"]
    assert "XRP/EUR" not in left, "what a person has said counts more"
    assert "BTC/USD" not in left, "and so does the file"
    assert asked == ["https://api.coingecko.com/api/v3/coins/markets {'vs_currency': 'usd', 'per_page': '250'} True"]
    assert core.one("SELECT sum(units) FROM pricing.collector_call_log WHERE provider = 'coingecko'") == 1
    again = symbols(cli)
    assert "0 instruments of crypto are asked for by names of the list, which has 5" in again.stdout
    assert "instrument spell LUNA/USD --at coingecko --as NAME" in " ".join(again.stderr.split())
    assert KEY not in said.stdout + said.stderr + again.stdout + again.stderr


@pytest.mark.usefixtures("asked")
def test_f11_what_has_no_list_says_so(cli: CommandLine) -> None:
    assert "mfapi has no list of names" in cli("provider", "symbols", "mfapi", sandbox="false").error


def names(rows: object, *changes: tuple[str, str], status: int = 200) -> dict[str, list[str]]:
    provider = DeclaredProvider(changed(COINGECKO, *changes)) if changes else DECLARED["coingecko"]
    body = rows if isinstance(rows, bytes) else json.dumps(rows).encode()
    return provider.lists["crypto"].names(Response(status, {}, body, len(body)), NOW)


def test_f11_lists_come_in_every_kind_of_text() -> None:
    assert names(LIST)["LUNA"] == ["lunar", "terra-luna"]
    as_csv = ('      rows: "@"\n', "      body: {format: csv, delimiter: ';'}\n")
    assert names(b"symbol;id\ndoge;dogecoin\n", as_csv) == {"DOGE": ["dogecoin"]}
    as_xml = ('      rows: "@"\n', "      body: {format: xml}\n      rows: coin\n")
    xml = b"<all><coin id='a'><symbol>x</symbol></coin><coin id='b'><symbol>y</symbol></coin></all>"
    assert names(xml, as_xml) == {"X": ["a"], "Y": ["b"]}


@pytest.mark.parametrize("rows", [[], {}, {"error": "no"}, [{"id": "a"}], [[1, 2]], [{"symbol": 5, "id": "a"}]])
def test_f11_a_list_without_names_is_an_error(rows: object) -> None:
    with pytest.raises(SchemaDrift, match=r"answered without names: `symbol` and `id` .*Nothing has changed"):
        names(rows)
    with pytest.raises(ProviderError, match="slow down"):
        names({"error": "slow down"}, status=429)


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "doge", "XRP", "ß", "a b", "\ud800"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "symbol", "x"]), inner),
    max_leaves=20,
)


@given(rows=_JSON)
def test_f11_no_list_brings_anything_but_texts_or_an_error(rows: object) -> None:
    try:
        found = names(rows)
    except ProviderError:
        return
    assert all(one == one.upper() and all(isinstance(name, str) for name in named) for one, named in found.items())


FAULTS = [
    ('      rows: "@"\n', "", "`rows` is missing: the path to the list"),
    ("path: /coins/markets", "path: '/coins/{symbol}'", "its request has no placeholder"),
    ("vs_currency: usd, per_page", 'vs_currency: "{quote}", per_page', "its request has no placeholder"),
    ("ours: symbol", "ours: '\"{base}\"'", "it has no placeholders here"),
    ("path: /coins/markets", "path: https://evil.example/x", "write /PART/PART"),
    ("vs_currency: usd, per_page", "api_key: usd, per_page", "looks like a key"),
]


@pytest.mark.parametrize(("old", "new", "words"), FAULTS)
def test_f11_faults_of_a_list_are_told_with_their_line(old: str, new: str, words: str) -> None:
    with pytest.raises(DeclarationRefused, match=rf"coingecko.yaml:\d+: .*{re.escape(words)}"):
        changed(COINGECKO, (old, new))
