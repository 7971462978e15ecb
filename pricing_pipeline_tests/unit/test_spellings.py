"""One symbol, one spelling at each provider: the rules, answers named as people do, and sentences that say both."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import (
    Answer,
    Dividend,
    Document,
    FailureKind,
    RejectedValue,
    Split,
    SymbolFailure,
    Unconfirmed,
)
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.exchanges import currency_of, exchanges
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.errors import ProviderDown, Throttled
from pricing_pipeline.providers import PROVIDERS, wire
from pricing_pipeline.providers.base import Question, check_answer
from pricing_pipeline.providers.currencies import CURRENCIES, PARTS
from pricing_pipeline.providers.spellings import NO_OVERRIDES, Spellings
from pricing_pipeline.providers.values import to_enter
from pricing_pipeline.sandbox.instruments import Kind, find_instrument, known_instruments
from pricing_pipeline.sandbox.spellings import of_fmp, of_twelvedata, of_yahoo

AT = datetime(2026, 11, 20, 15, tzinfo=UTC)
CLASSES = {Kind.EQUITY: "equity", Kind.FOREX: "fx", Kind.CRYPTO: "crypto"}


def spelled(symbol: str, asset_class: str) -> dict[str, str]:
    return {name: provider.spell(symbol, asset_class) for name, provider in PROVIDERS.items()}


@pytest.mark.parametrize(
    ("symbol", "asset_class", "twelvedata", "yahoo", "fmp"),
    [
        ("AAPL", "equity", "AAPL", "AAPL", "AAPL"),
        ("BRK.B", "equity", "BRK.B", "BRK-B", "BRK-B"),
        ("VOD:XLON", "equity", "VOD:LSE", "VOD.L", "VOD.L"),
        ("BT.A:XLON", "equity", "BT.A:LSE", "BT-A.L", "BT-A.L"),
        ("SAP:XETR", "equity", "SAP:XETR", "SAP.DE", "SAP.DE"),
        ("BHP:XASX", "equity", "BHP:ASX", "BHP.AX", "BHP.AX"),
        ("NPN:XJSE", "equity", "NPN:JSE", "NPN.JO", "NPN.JO"),
        ("MC:XPAR", "equity", "MC:XPAR", "MC.PA", "MC.PA"),
        ("ASML:XAMS", "equity", "ASML:XAMS", "ASML.AS", "ASML.AS"),
        ("RY:XTSE", "equity", "RY:TSX", "RY.TO", "RY.TO"),
        ("7203:XTKS", "equity", "7203:JPX", "7203.T", "7203.T"),
        ("0700:XHKG", "equity", "0700:HKEX", "0700.HK", "0700.HK"),
        ("NESN:XSWX", "equity", "NESN:SIX", "NESN.SW", "NESN.SW"),
        ("SBIN:XNSE", "equity", "SBIN:NSE", "SBIN.NS", "SBIN.NS"),
        ("SBIN:XBOM", "equity", "SBIN:XBOM", "SBIN.BO", "SBIN.BO"),
        ("ENEL:XMIL", "equity", "ENEL:MTA", "ENEL.MI", "ENEL.MI"),
        ("SAN:XMAD", "equity", "SAN:XMAD", "SAN.MC", "SAN.MC"),
        ("VOLV.B:XSTO", "equity", "VOLV.B:XSTO", "VOLV-B.ST", "VOLV-B.ST"),
        ("NOVO.B:XCSE", "equity", "NOVO.B:XCSE", "NOVO-B.CO", "NOVO-B.CO"),
        ("SAMPO:XHEL", "equity", "SAMPO:XHEL", "SAMPO.HE", "SAMPO.HE"),
        ("DNB:XOSL", "equity", "DNB:XOSL", "DNB.OL", "DNB.OL"),
        ("M&M:XNSE", "equity", "M&M:NSE", "M&M.NS", "M&M.NS"),
        ("J&KBANK:XNSE", "equity", "J&KBANK:NSE", "J&KBANK.NS", "J&KBANK.NS"),
        ("L&TFH:XBOM", "equity", "L&TFH:XBOM", "L&TFH.BO", "L&TFH.BO"),
        ("BAJAJ-AUTO:XNSE", "equity", "BAJAJ-AUTO:NSE", "BAJAJ-AUTO.NS", "BAJAJ-AUTO.NS"),
        ("VOLV B:XSTO", "equity", "VOLV B:XSTO", "VOLV-B.ST", "VOLV-B.ST"),
        ("O'KEY:XLON", "equity", "O'KEY:LSE", "O'KEY.L", "O'KEY.L"),
        ("EUR/USD", "fx", "EUR/USD", "EURUSD=X", "EURUSD"),
        ("BTC/USD", "crypto", "BTC/USD", "BTC-USD", "BTCUSD"),
        ("BTC/USDT", "crypto", "BTC/USDT", "BTC-USDT", "BTCUSDT"),
    ],
)
def test_a5_each_provider_has_its_own_spelling(
    symbol: str, asset_class: str, twelvedata: str, yahoo: str, fmp: str
) -> None:
    own = {"twelvedata": twelvedata, "yahoo": yahoo, "fmp": fmp}
    unchanged = dict.fromkeys(PROVIDERS, symbol)
    assert spelled(symbol, asset_class) == unchanged | own


@pytest.mark.parametrize(
    ("name", "known", "strangers"),
    [
        (
            "twelvedata",
            ["AAPL", "BRK.A", "BTC/USD", "ALD:TASE", "^GSPC", "7203:XTKS"],
            ["", "A,B", "A B", "A\nB", "A\x00", "\u0410APL", "A" * 65],
        ),
        (
            "fmp",
            ["AAPL", "BRK-B", "SAP.DE", "^GSPC", "EURUSD", "0700.HK"],
            ["", "A,B", "A B", "EUR/USD", "A&limit=1", "A\n", "aapl", "A" * 33, "-A"],
        ),
        (
            "yahoo",
            ["AAPL", "BRK-B", "VOD.L", "EURUSD=X", "^GSPC", "M&M.NS", "0P000071W8.TO"],
            ["", "aapl", "..", "../x", "A/B", "A,B", "A?b", "A%2F", "A B", "\u00c4", "A" * 33],
        ),
        ("mfapi", ["1"], ["", "AAPL", "12/../latest", "0123", "-1", "1" * 11, "\u0661\u0662\u0663", "1 ", "1\n"]),
    ],
    ids=["twelvedata", "fmp", "yahoo", "mfapi"],
)
def test_a5_only_what_a_provider_could_know_is_sent_to_it(name: str, known: list[str], strangers: list[str]) -> None:
    accepts = PROVIDERS[name].accepts
    assert all(map(accepts, known))
    assert not any(map(accepts, strangers))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("yahoo", b"/v8/finance/chart/M%26M.NS?"),
        ("fmp", b"/quote?symbol=M%26M.NS"),
        ("twelvedata", b"symbol=M%26M%3ANSE"),
    ],
)
def test_a5_a_sign_of_a_symbol_never_parts_a_url(name: str, target: bytes) -> None:
    provider: Any = PROVIDERS[name]
    symbol = provider.spell("M&M:XNSE", "equity")
    assert provider.accepts(symbol)
    assert target in wire._target(provider.build(Question(Fetcher.QUOTE, [symbol], None, AT)))


@pytest.mark.parametrize(
    ("symbol", "asset_class"),
    [
        *((symbol, "equity") for symbol in ("VOD.L", "7203.T", "SAP.DE", "SAP.F", "SHOP.V", "^GSPC", "BRK-B")),
        *((symbol, "equity") for symbol in ("ALD:TASE", "VOD:LSE", "EURUSD=X", "GC=F", "000001.SS", "X.AB")),
        ("EURUSD=X", "fx"),
        ("118632", "fund"),
        ("BRK.B", "bond"),
        ("EUR/USD", "rates"),
    ],
)
def test_a_symbol_that_no_rule_changes_is_sent_as_it_is(symbol: str, asset_class: str) -> None:
    assert set(spelled(symbol, asset_class).values()) == {symbol}


def canonical_symbols() -> dict[str, list[str]]:
    """The sandbox's instruments, and shares with classes, by asset class."""
    shares = [find_instrument(f"{ticker}.{letter}") for ticker in ("BRK", "BF", "S1") for letter in "AB"]
    found: dict[str, list[str]] = {name: [] for name in CLASSES.values()}
    for one in (*known_instruments(), *shares):
        assert one is not None
        mic = f":{one.venue.mic_code}" if one.venue.suffix else ""
        found[CLASSES[one.kind]].append(f"{one.symbol}{mic}")
    return found


@pytest.mark.parametrize("asset_class", CLASSES.values())
@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_two_symbols_of_the_sandbox_have_one_spelling(provider: str, asset_class: str) -> None:
    symbols = dict.fromkeys(canonical_symbols()[asset_class])
    counts = Counter(PROVIDERS[provider].spell(symbol, asset_class) for symbol in symbols)
    assert counts.most_common(1)[0][1] == 1


@given(
    st.sets(st.from_regex(rf"[A-Z][A-Z0-9]{{0,4}}(\.[ABC])?(:({'|'.join(exchanges())}))?", fullmatch=True)),
    st.sets(st.tuples(*[st.sampled_from(sorted(code for code in CURRENCIES if len(code) == 3))] * 2)),
)
def test_no_two_symbols_of_a_class_have_one_spelling(shares: set[str], pairs: set[tuple[str, str]]) -> None:
    rates = {f"{base}/{quote}" for base, quote in pairs}
    for provider in PROVIDERS.values():
        assert len({provider.spell(symbol, "equity") for symbol in shares}) == len(shares)
        assert len({provider.spell(symbol, "fx") for symbol in rates}) == len(rates)


def test_rules_and_sandbox_agree() -> None:
    """Metals are futures at Yahoo, and the sandbox's FMP has shares only: these it does not find."""
    for asset_class, symbols in canonical_symbols().items():
        for symbol in symbols:
            expected = of_twelvedata(symbol)
            assert expected is not None
            own = spelled(symbol, asset_class)
            assert of_twelvedata(own["twelvedata"]) == expected
            is_metal = symbol[:3] in ("XAG", "XAU", "XPD", "XPT")
            assert of_yahoo(own["yahoo"]) == (None if is_metal else expected)
            assert of_fmp(own["fmp"]) == (expected if asset_class == "equity" else None)


def test_exchanges_are_named_by_their_mic() -> None:
    for mic, exchange in exchanges().items():
        assert (exchange.mic, len(mic)) == (mic, 4)
        assert exchange.currency is None or exchange.currency in CURRENCIES
        assert exchange.minor_unit is None or exchange.minor_unit in PARTS
        assert not (exchange.minor_unit and exchange.currency) or PARTS[exchange.minor_unit][0] == exchange.currency
        ZoneInfo(exchange.zone)
    for names in (
        Counter(name for one in exchanges().values() if (name := one.twelvedata)),
        Counter(suffix for one in exchanges().values() if (suffix := one.suffix)),
    ):
        assert set(names.values()) == {1}, "two exchanges have one name"
    shared = Counter(name for one in exchanges().values() for name in one.shared)
    assert min(shared.values()) > 1, "a name that only one exchange has is not shared"
    assert [currency_of("equity", symbol) for symbol in ("SAP:XETR", "NPN:XJSE", "VOD:XLON", "AAPL", "X:NONE")] == [
        *("EUR", "ZAR", None, None, None)
    ]
    assert (currency_of("fx", "EUR/USD"), currency_of("crypto", "BTC/USDT")) == ("USD", "USDT")
    assert currency_of("fund", "118632") is None


def full_answer(spelling: str) -> Answer:
    """An answer with something in each field, of one symbol."""
    split = Split(spelling, date(2026, 11, 2), Decimal(500), Decimal(1))
    return Answer(
        observations=Rows([Observation(spelling, AT, Decimal(7), "7", "USD")]),
        failures=(SymbolFailure(spelling, FailureKind.IMPLAUSIBLE, f"it is about {spelling}."),),
        empty=frozenset({spelling}),
        rejected=(RejectedValue(spelling, AT, to_enter(split), spelling),),
        records=(Document(spelling, None, {"symbol": spelling}),),
        actions=(split, Dividend(spelling, date(2026, 11, 3), Decimal(1))),
        actions_since={spelling: date(2026, 1, 1)},
        gains_reported=frozenset({spelling}),
        unread={spelling: frozenset({date(2026, 1, 2)})},
        unsplit=frozenset({spelling}),
        unconfirmed=Unconfirmed((split,), Answer(observations=Rows([Observation(spelling, AT, Decimal(8), "8")]))),
    )


def symbols_in(answer: Answer) -> dict[str, list[str]]:
    """The symbols that each field of an answer names."""
    named: dict[str, list[str]] = {}
    for field in fields(Answer):
        if field.name == "left_out":
            continue  # a count
        value = getattr(answer, field.name)
        if field.name == "unconfirmed":
            named["splits"] = [one.symbol for one in value.splits]
            named["otherwise"] = [one.symbol for one in value.answer.observations]
        else:
            named[field.name] = [one if isinstance(one, str) else one.symbol for one in value]
    return named


def test_each_field_of_an_answer_names_the_symbol_that_people_use() -> None:
    spellings = Spellings(PROVIDERS["yahoo"], ["BRK.B"], "equity", NO_OVERRIDES)
    answer = spellings.answer(full_answer("BRK-B"))
    assert spellings.spelled == ["BRK-B"]
    assert all(set(named) == {"BRK.B"} for named in symbols_in(answer).values())
    assert len(symbols_in(answer)) == len(fields(Answer))  # "otherwise" in place of "left_out"
    assert answer.failures[0].message == "it is about BRK.B (asked as BRK-B)."
    assert "action add BRK.B 2026-11-02 --split 500:1" in answer.rejected[0].reason
    assert (answer.rejected[0].text, answer.records[0].body) == ("BRK-B", {"symbol": "BRK-B"})


def test_symbols_with_one_spelling_share_its_answer() -> None:
    spellings = Spellings(PROVIDERS["yahoo"], ["BRK.B", "AAPL", "BRK-B", "BRK.B"], "equity", NO_OVERRIDES)
    assert spellings.spelled == ["BRK-B", "AAPL"]
    answer = spellings.answer(full_answer("BRK-B"))
    for named in symbols_in(answer).values():
        assert set(named) == {"BRK.B", "BRK-B"}
    assert {one.symbol: one.message for one in answer.failures} == {
        "BRK.B": "it is about BRK.B (asked as BRK-B).",
        "BRK-B": "it is about BRK-B.",
    }


@given(st.data(), st.sampled_from(sorted(CLASSES.values())), st.sampled_from(sorted(PROVIDERS)))
def test_an_answer_named_back_has_exactly_what_was_asked(data: st.DataObject, asset_class: str, name: str) -> None:
    known = sorted(set(canonical_symbols()[asset_class]))
    symbols = data.draw(st.lists(st.sampled_from(known), min_size=1, unique=True))
    spellings = Spellings(PROVIDERS[name], symbols, asset_class, NO_OVERRIDES)
    kinds = data.draw(st.lists(st.sampled_from("vfe"), min_size=len(symbols), max_size=len(symbols)))
    of_kind = {
        kind: [one for one, mine in zip(spellings.spelled, kinds, strict=True) if mine == kind] for kind in "vfe"
    }
    answer = Answer(
        observations=Rows(Observation(one, AT, Decimal(n + 1), one) for n, one in enumerate(of_kind["v"])),
        failures=tuple(SymbolFailure(one, FailureKind.UNKNOWN_SYMBOL, f"{name} has no {one}.") for one in of_kind["f"]),
        empty=frozenset(of_kind["e"]),
    )
    check_answer(name, spellings.spelled, answer)
    back = spellings.answer(answer)
    check_answer(name, symbols, back)
    by_symbol = dict(zip(symbols, spellings.spelled, strict=True))
    assert all(row.text == by_symbol[row.symbol] for row in back.observations)


def test_an_override_comes_before_the_rule() -> None:
    overrides = {"BRK.B": "BRKB", "IBM": "IBM.US"}
    spellings = Spellings(PROVIDERS["yahoo"], ["BRK.B", "AAPL"], "equity", overrides)
    assert spellings.spelled == ["BRKB", "AAPL"]


def test_without_a_class_symbols_are_the_providers_own() -> None:
    assert Spellings(PROVIDERS["yahoo"], ["BRK.B"], "", NO_OVERRIDES).spelled == ["BRK.B"]


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("yahoo has no value for BRK-B.", "yahoo has no value for BRK.B (asked as BRK-B)."),
        ("BRK-B: none. Route BRK-B elsewhere.", "BRK.B (asked as BRK-B): none. Route BRK.B elsewhere."),
        ("BRK-B.L is no BRK-BX, not XBRK-B", "BRK-B.L is no BRK-BX, not XBRK-B (BRK.B was asked as BRK-B.)"),
        ("it has no such symbol.", "it has no such symbol. (BRK.B was asked as BRK-B.)"),
    ],
)
def test_a_sentence_names_the_symbol_and_its_spelling(message: str, told: str) -> None:
    spellings = Spellings(PROVIDERS["yahoo"], ["BRK.B"], "equity", NO_OVERRIDES)
    failure = SymbolFailure("BRK-B", FailureKind.UNKNOWN_SYMBOL, message)
    assert spellings.answer(Answer(failures=(failure,))).failures == (replace(failure, symbol="BRK.B", message=told),)


def test_an_error_of_the_whole_call_names_symbols_too() -> None:
    spellings = Spellings(PROVIDERS["yahoo"], ["BRK.B", "AAPL", "EUR"], "equity", NO_OVERRIDES)
    error = Throttled("yahoo's chart of BRK-B: wait.", retry_after=7, wire_bytes=9)
    spellings.error(error)
    assert str(error) == "yahoo's chart of BRK.B (asked as BRK-B): wait."
    assert (error.retry_after, error.wire_bytes) == (7, 9)
    plain = ProviderDown("AAPL")
    spellings.error(plain)
    assert str(plain) == "AAPL"
