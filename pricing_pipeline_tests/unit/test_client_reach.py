"""Whom a call reaches and who learns the key: redirects, private addresses, TLS, and everything that is shown.

How calls are bounded and counted is in test_client.py.
"""

from __future__ import annotations

import json
import logging
import ssl
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import PricingError, ProviderDown, SettingsError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.transport import BoundedTransport, is_public
from pricing_pipeline_tests.fixtures.server import Connection, ScriptedServer
from pricing_pipeline_tests.support.certificates import self_signed
from pricing_pipeline_tests.support.scripted_client import KEY, NAV, NOW, QUOTE, read, refused, twelvedata

# --- reach --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent"])
def test_fault_11_redirects_are_never_followed(status: str) -> None:
    with ScriptedServer(lambda c: c.answer(QUOTE)) as inside:
        target = f"{inside.url}/private"
        error, _ = refused(lambda c: c.answer(QUOTE, status, Location=target), ProviderDown)
        assert inside.requests == []
    assert target in str(error)
    assert "never followed" in str(error)


def test_fault_11_a_name_that_leads_to_a_private_address_is_not_called() -> None:
    with ScriptedServer(lambda c: c.answer(NAV)) as server:
        client = ProviderClient(
            PROVIDERS["mfapi"],
            f"http://prices.example:{server.port}",
            None,
            resolve=lambda host, port: ["127.0.0.1"],
        )
        with client, pytest.raises(ProviderDown, match=r"prices\.example leads to 127\.0\.0\.1") as caught:
            client.fetch(Fetcher.NAV, ["125497"])
        assert caught.value.wire_bytes == 0
        assert server.accepted == 0


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "::1",
        "fe80::1%eth0",
        "::ffff:10.0.0.1",
        "224.0.0.1",
        "0.0.0.0",
        "::",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fec0::1",
        "64:ff9b::127.0.0.1",
        "64:ff9b:1::127.0.0.1",
        "::127.0.0.1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "64:ff9b::a9fe:a9fe",
    ],
)
def test_fault_11_private_addresses_are_known(address: str) -> None:
    assert not is_public(address)
    assert is_public("93.184.215.14")
    assert is_public("64:ff9b::93.184.215.14")
    assert is_public("2606:2800:21f:cb07:6820:80da:af6b:8b2c")


def test_a_host_without_an_address_or_a_server_is_down() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    client = ProviderClient(PROVIDERS["mfapi"], "https://prices.example", None, resolve=unknown)
    with client, pytest.raises(ProviderDown) as caught:
        client.fetch(Fetcher.NAV, ["125497"])
    assert str(caught.value) == (
        "mfapi was not asked: DNS gives no address for the name of its host (Name or service not known). "
        "The base URL is https://prices.example"
    )
    with ScriptedServer(lambda c: c.answer()) as server:
        url = server.url
    with (
        twelvedata(url) as client,
        pytest.raises(ProviderDown, match=r"nothing listens there\..*pricing-pipeline sandbox") as caught,
    ):
        client.fetch(Fetcher.QUOTE, ["AAPL"])
    assert (caught.value.http_status, caught.value.wire_bytes) == (None, 0)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://127.0.0.1", "begin with https"),
        ("127.0.0.1:8100", "begin with https|no URL"),
        ("https://", "begin with https"),
        ("http://[::1", "not a URL"),
        ("https://xn--0.example.com", "not a URL"),
        ("https://user:pa55@127.0.0.1", "no user"),
        ("https://127.0.0.1/?apikey=pa55", "query"),
        ("http://api.twelvedata.com", "unencrypted"),
        ("http://93.184.215.14", "unencrypted"),
    ],
)
def test_a_base_url_that_cannot_work_is_refused_at_start(url: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        twelvedata(url)
    assert "pa55" not in str(caught.value)


def test_the_environments_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        ScriptedServer(lambda c: c.answer(b"proxied")) as proxy,
        ScriptedServer(lambda c: c.answer(QUOTE)) as server,
    ):
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with twelvedata(server.url) as client:
            assert client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW).answer.observations
        assert proxy.accepted == 0


# --- TLS ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls_server(certificate: Path) -> Iterator[ScriptedServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ScriptedServer(lambda c: c.answer(QUOTE), ssl_context=context) as server:
        yield server


def test_a_certificate_that_nobody_vouches_for_is_refused(tls_server: ScriptedServer) -> None:
    with twelvedata(tls_server.url) as client, pytest.raises(ProviderDown, match="certificate verify failed"):
        client.fetch(Fetcher.QUOTE, ["AAPL"])
    assert tls_server.requests == []


def test_bounds_and_counts_hold_inside_tls(tls_server: ScriptedServer, certificate: Path) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate))
    transport = BoundedTransport(ssl_context=trusting)
    with closing(transport):
        with transport.exchange(seconds=5, max_bytes=10_000) as exchange:
            assert read(transport, tls_server.url) == QUOTE
        assert exchange.received == tls_server.sent
        with pytest.raises(RuntimeError, match=r"outside of BoundedTransport\.exchange"):
            read(transport, tls_server.url)


# --- the key ------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, ""])
def test_a_missing_key_is_said_at_start(key: str | None) -> None:
    with pytest.raises(SettingsError, match=r"none is stored or set\..* or set PRICING_TWELVEDATA_API_KEY"):
        twelvedata("http://127.0.0.1:1", key=key)


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY} x", f"{KEY}\u2019", f"\t{KEY}"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(SettingsError, match="PRICING_TWELVEDATA_API_KEY") as caught:
        twelvedata("http://127.0.0.1:1", key=key)
    assert KEY not in str(caught.value)


def echo(c: Connection) -> str:
    """What a careless provider would say: the key it was sent."""
    return c.request.split(b"apikey ")[1].split(b"\r\n")[0].decode()


@pytest.mark.parametrize(
    "script",
    [
        lambda c: c.answer(QUOTE),
        lambda c: c.answer(b"key " + echo(c).encode(), "401 Unauthorized"),
        lambda c: c.answer(json.dumps({"code": 401, "message": f"bad {echo(c)}", "status": "error"}).encode()),
        lambda c: c.answer(
            json.dumps({"code": 404, "message": f"no symbol for {echo(c)}", "status": "error"}).encode()
        ),
        lambda c: c.answer(QUOTE, f"200 {echo(c)}"),
        lambda c: c.answer(b"not JSON " + echo(c).encode()),
        lambda c: c.answer(b"x" * 60 + echo(c).encode()),
        lambda c: c.answer(b"", "429 Too Many Requests", Retry_After=echo(c)),
        lambda c: c.answer(b"", "302 Found", Location=f"http://10.0.0.1/?apikey={echo(c)}"),
        lambda c: c.answer(b"x", Content_Encoding=echo(c)),
        lambda c: c.send(f"HTTP/9.9 {echo(c)}\r\n\r\n".encode()),
        lambda c: c.hang(),
    ],
)
def test_the_key_appears_nowhere_but_in_the_request(
    script: Callable[[Connection], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with ScriptedServer(script) as server, twelvedata(server.url, deadline=0.4) as client:
        shown = [repr(client), str(client), str(vars(client))]
        try:
            shown.append(repr(client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW)))
        except PricingError as error:
            shown += [repr(error), *traceback.format_exception(error), repr(error.__context__)]
        assert any(KEY.encode() in request for request in server.requests)
        assert not any(KEY.encode() in request.split(b"\r\n")[0] for request in server.requests)
    shown += [record.getMessage() for record in caplog.records]
    assert KEY[:8] not in "\n".join(shown), "a part of a key is too much already"


def test_a_key_that_could_be_a_price_changes_none() -> None:
    with ScriptedServer(lambda c: c.answer(QUOTE)) as server, twelvedata(server.url, key="174") as client:
        (observation,) = client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW).answer.observations
    assert observation.text == "174.83000"
