"""Every answer of the sandbox that was recorded at the provider has the same shape: names, types, nulls, formats."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from pricing_pipeline_tests.support.recordings import recorded, recorded_files
from pricing_pipeline_tests.support.sandbox_server import Asked, parsed

NOON = datetime(2026, 11, 18, 17, 0, 5, tzinfo=UTC)
PROVIDERS = ("twelvedata", "yahoo", "fmp", "mfapi")


class Case(NamedTuple):
    """One recording, and how the sandbox is asked for the like of it."""

    file: str
    endpoint: str
    params: Mapping[str, str]
    settings: Mapping[str, Any] = {}
    since: frozenset[str] = frozenset()
    """Names that the provider has added since the recording."""


def days(first: str, last: str) -> dict[str, str]:
    """A window as Yahoo is asked for it."""
    found = (datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() for day in (first, last))
    return {
        "interval": "1d",
        "events": "div|split",
        **dict(zip(("period1", "period2"), map(str, map(int, found)), strict=True)),
    }


BODY, FREE_TD = {"error_style": "body"}, {"credits_per_minute": 8, "credits_per_day": 800}
STAMPED = frozenset({"timestamp", "last_quote_at", "is_market_open", "mic_code"})
NAMED_LATER = frozenset(
    {"fullExchangeName", "hasPrePostMarketData", "longName", "shortName", "regularMarketVolume"}
    | {"fiftyTwoWeekHigh", "fiftyTwoWeekLow", "regularMarketDayHigh", "regularMarketDayLow"}
)
SPARK = NAMED_LATER | frozenset(
    {"exchangeName", "firstTradeDate", "timezone", "priceHint", "currentTradingPeriod", "validRanges"}
)
MINUTE = {"interval": "1min"}
DAILY, ONE_DAY, ONE_YEAR = (
    {"interval": "1day"},
    {"range": "1d", "interval": "1d"},
    {"limit": "1", "period": "annual"},
)
CHART, NO_KEY = "v8/finance/chart/", {"apikey": "wrong"}
CASES = {
    "twelvedata": [
        Case("quote_AAPL_2022_02_08.json", "quote", {"symbol": "AAPL"}, since=STAMPED),
        Case("quote_IBM_2021_07_01.json", "quote", {"symbol": "IBM"}, since=STAMPED),
        Case("batch_quote_AAPL_MSFT_SYNTH.json", "quote", {"symbol": "AAPL,MSFT"}, since=STAMPED),
        Case("batch_quote_all_not_found.json", "quote", {"symbol": "NOPE1,NOPE2"}, BODY),
        Case("batch_time_series_partial_error_SYNTH.json", "time_series", {"symbol": "AAPL,NOPE", **DAILY}),
        Case("price_IBM.json", "price", {"symbol": "IBM"}),
        Case("exchange_rate_USDJPY.json", "exchange_rate", {"symbol": "USD/JPY"}),
        Case("api_usage_free.json", "api_usage", {}, FREE_TD),
        Case("symbol_search_IBM_multi_exchange.json", "symbol_search", {"symbol": "IBM"}, since=STAMPED),
        Case("time_series_IBM_1day_default30.json", "time_series", {"symbol": "IBM", **DAILY}, since=STAMPED),
        Case("time_series_AAPL_1min_2021_03_01.json", "time_series", {"symbol": "AAPL", **MINUTE}, since=STAMPED),
        Case("error_400_bad_interval_http200.json", "time_series", {"symbol": "IBM", "interval": "1ms"}, BODY),
        Case("error_400_no_data_on_dates.json", "time_series", {"symbol": "IBM", **DAILY, "date": "2026-11-14"}),
        Case("error_400_symbol_not_found.json", "time_series", {"symbol": "NOPE", "interval": "1min"}, BODY),
        Case("error_401_apikey_http200.json", "quote", {"symbol": "AAPL", **NO_KEY}, BODY),
        Case("error_429_minute_credits_http429.json", "quote", {"symbol": "A,B"}, {"credits_per_minute": 1}),
    ],
    "yahoo": [
        Case("chart_AAPL_split_and_dividend_2020.json", CHART + "AAPL", days("2005-01-01", "2006-01-01")),
        Case("chart_MSFT_dividends_2021.json", CHART + "MSFT", days("2021-02-01", "2022-01-31")),
        Case("chart_BTCUSD_utc_7d.json", CHART + "BTC-USD", days("2020-01-01", "2020-01-03")),
        Case("chart_EURUSD_fx_london_tz.json", CHART + "EURUSD=X", days("2020-01-01", "2020-01-03")),
        Case("chart_WSU_DE_berlin_3bars.json", CHART + "SAP.DE", days("2026-11-16", "2026-11-18")),
        Case("chart_MUV2_DE_ohlcv_2017_2018.json", CHART + "SIE.DE", days("2026-11-16", "2026-11-18")),
        Case("chart_ASX_sydney_tz.json", CHART + "ALL.AX", {"range": "3mo", "interval": "1d"}, since=NAMED_LATER),
        Case("spark_batch_trimmed.json", "v7/finance/spark", {"symbols": "AAPL,JPYKRW=X", **ONE_DAY}, since=SPARK),
        Case("error_400_no_data_in_range.json", CHART + "IBM", days("1990-01-01", "1991-12-31")),
        Case("error_404_symbol_delisted.json", CHART + "NOPE", {"range": "1d"}),
        Case("error_422_1m_span.json", CHART + "TSLA", {"interval": "1m"}),
        Case("error_422_1m_retention.json", CHART + "AAPL", {"interval": "1m"}),
    ],
    "fmp": [
        Case("stable_quote_AAPL.json", "quote", {"symbol": "AAPL"}),
        Case("stable_quote_unknown_symbol_empty200.json", "quote", {"symbol": "NOPE"}),
        Case("stable_historical_price_eod_full_AAPL_2023_01.json", "historical-price-eod/full", {"symbol": "AAPL"}),
        Case("stable_earnings_AAPL.json", "earnings", {"symbol": "AAPL", "limit": "6"}),
        Case("stable_income_statement_AAPL.json", "income-statement", {"symbol": "AAPL", **ONE_YEAR}),
        Case("stable_dividends_AAPL_limit1.json", "dividends", {"symbol": "AAPL", "limit": "1"}),
        Case("error_401_invalid_key.json", "quote", {"symbol": "AAPL", **NO_KEY}),
        Case("error_403_legacy_endpoint.json", "api/v3/quote/AAPL", {}),
        Case("error_429_limit_reach.json", "quote", {"symbol": "AAPL"}, {"fmp_calls_per_minute": 1}),
    ],
    "mfapi": [
        Case("mf_118632_full_history.json", "mf/118632", {}),
        Case("mf_119551_full_history.json", "mf/119551", {}),
        Case("mf_120841_full_history.json", "mf/120841", {}),
        Case("mf_125497_full_history.json", "mf/125497", {}),
        Case("mf_125497_latest.json", "mf/125497/latest", {}),
        Case("mf_latest_bulk_item_docs.json", "mf/latest", {"limit": "1", "offset": "1551"}),
        Case("mf_search_parag.json", "mf/search", {"q": "parag parikh flexi"}),
        Case("mf_unknown_scheme_200_empty.json", "mf/99999999", {}),
        Case("mf_invalid_code_400.json", "mf/x", {}),
    ],
}  # fmt: skip
# Errors whose words are the same, too; wherever a symbol or a number is in them, it is the asked one.
WORD_FOR_WORD = frozenset(
    {
        "error_400_bad_interval_http200.json",
        "error_400_no_data_on_dates.json",
        "error_401_apikey_http200.json",
        "error_404_symbol_delisted.json",
        "error_401_invalid_key.json",
        "error_403_legacy_endpoint.json",
        "error_429_limit_reach.json",
        "mf_search_parag.json",
        "mf_unknown_scheme_200_empty.json",
        "mf_invalid_code_400.json",
        "stable_quote_unknown_symbol_empty200.json",
    }
)
TEXTS = "a text, which tests of the provider's dialect compare byte for byte"
UNSERVED = {
    "twelvedata": {
        "dividends_AAPL.json": "not served",
        "error_400_plan_gate_TASE_http200.json": "the sandbox has no markets that a plan leaves out",
        "error_403_demo_key_http200.json": "there is no demo key",
        "error_403_plan_grow.json": "the endpoint is not served",
        "error_404_nothing_found_http200.json": "the request is not known",
        "error_520_cloudflare_text.txt": "a fault that is asked for",
        "headers_200_free_key.json": "headers, which a test of its credits compares",
        "time_series_IBM_1day_csv.csv": "CSV is refused",
    },
    "yahoo": {
        "chart_AAPL_1m_weekend_empty200.json": "minutes are not served",
        "chart_AAPL_latest_1d.json": "minutes are not served",
        "chart_mutualfund_0P0000XTS7.json": "funds are not served",
        "chart_mutualfund_0P_TO.json": "funds are not served",
        "chart_notimestamp_weird_FAKE.json": "nobody recorded it",
        "error_401_invalid_crumb.json": "no endpoint that needs a crumb is served",
        "error_429_edge_text.txt": TEXTS,
        "eu_consent_redirect_307.txt": TEXTS,
        "getcrumb_ok_text.txt": TEXTS,
        "quoteSummary_404_not_found.json": "not served",
        "v7quote_ADH_partial_nocurrency.json": "not served",
        "v7quote_OCDO_L_GBp.json": "not served",
        "v7quote_batch_AAPL_BABA.json": "not served",
        "v7quote_unknown_empty200.json": "not served",
    },
    "fmp": {
        "error_400_query_text.txt": TEXTS,
        "error_402_endpoint_gate.txt": TEXTS,
        "error_402_symbol_gate.txt": TEXTS,
        "stable_intraday_5min_docs.json": "not served",
        "v3_historical_price_full_AAPL_2023_01.json": "the older interface is refused",
        "v3_quote_AAPL.json": "the older interface is refused",
        "v3_stock_split_AAPL.json": "the older interface is refused",
    },
    "mfapi": {"mf_latest_bulk_dead_scheme.json": "one row of the list, without its scheme code"},
}

_FORMATS = {
    "day": r"\d{4}-\d\d-\d\d",
    "Indian day": r"\d\d-\d\d-\d{4}",
    "time": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    "five decimals": r"-?\d+\.\d{5}",
    "two numbers": r"\d+\.\d{6} - \d+\.\d{6}",
    "digits": r"\d+",
    "ISIN": r"IN[A-Z0-9]{10}",
    "zone": r"[A-Z]\w+/\w+(/\w+)?",
    "code": r"[A-Z][A-Z0-9]{1,4}",
}


def kind(value: object) -> str:
    """What a JSON value is; a text has a format."""
    if value is None or isinstance(value, bool):
        return str(value).replace("True", "boolean").replace("False", "boolean")
    if isinstance(value, (int, float)):
        return "whole number" if isinstance(value, int) else "number"
    assert isinstance(value, str)
    return next((name for name, form in _FORMATS.items() if re.fullmatch(form, value)), "text")


def shape(value: object) -> dict[str, set[str]]:
    """The kinds of values at each path. Keys that are data (symbols, time stamps) are all the same."""
    found: defaultdict[str, set[str]] = defaultdict(set)

    def walk(part: object, path: str) -> None:
        if isinstance(part, dict):
            found[path].add("object")
            for name, inner in part.items():
                walk(inner, f"{path}.{'*' if re.fullmatch(r'[A-Z0-9]+', name) else name}")
        elif isinstance(part, list):
            found[path].add("list")
            for inner in part:
                walk(inner, f"{path}[]")
        else:
            found[path].add(kind(part))

    walk(value, "")
    return dict(found)


def without(shapes: dict[str, set[str]], names: frozenset[str]) -> dict[str, set[str]]:
    return {path: kinds for path, kinds in shapes.items() if not names & set(re.split(r"[.\[\]]+", path))}


def fractions(provider: str) -> set[str]:
    """Paths at which a recording has a fraction: where others have whole numbers there, that is chance."""
    bodies = (parsed(recorded(provider, case.file)) for case in CASES[provider])  # type: ignore[arg-type]
    return {path for body in bodies for path, kinds in shape(body).items() if "number" in kinds}


def differences(
    ours: dict[str, set[str]], theirs: dict[str, set[str]], fractional: Collection[str] = ()
) -> list[str]:
    """Names that only one has, and kinds of values that ours has and theirs has not."""
    found = [f"only ours: {path}" for path in sorted(ours.keys() - theirs.keys())]
    found += [f"only theirs: {path}" for path in sorted(theirs.keys() - ours.keys())]
    for path in sorted(ours.keys() & theirs.keys()):
        # Whether a name looks like a code is chance; texts that may be empty or null are told apart.
        mine, other = (
            {"text" if one == "code" else one for one in kinds} for kinds in (ours[path], theirs[path])
        )
        if "number" in other or path in fractional:
            mine, other = ({"number" if "number" in one else one for one in kinds} for kinds in (mine, other))
        if mine - other:
            found.append(f"{path}: {sorted(mine)} instead of {sorted(other)}")
    return found


def answer(provider: str, case: Case) -> Any:
    asked = Asked(NOON, **case.settings)
    ask = getattr(asked, provider)
    extra = {"headers": {}} if provider == "fmp" and "apikey" in case.params else {}
    reply = ask(case.endpoint, **extra, **case.params)
    if case.settings.get("fmp_calls_per_minute"):
        reply = ask(case.endpoint, **case.params)
    return reply


@pytest.mark.parametrize(
    ("provider", "case"),
    [pytest.param(name, case, id=f"{name}-{case.file}") for name in PROVIDERS for case in CASES[name]],
)
def test_an_answer_has_the_recorded_shape(provider: str, case: Case) -> None:
    reply, real = answer(provider, case), recorded(provider, case.file)
    theirs = parsed(real)  # type: ignore[arg-type]
    assert reply.status == real.status
    ours_then, theirs_then = (without(shape(body), case.since) for body in (parsed(reply), theirs))
    assert differences(ours_then, theirs_then, fractions(provider)) == []
    if case.file in WORD_FOR_WORD:
        assert parsed(reply) == theirs


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_recording_is_compared_or_has_a_reason(provider: str) -> None:
    compared = {case.file for case in CASES[provider]}
    assert compared.isdisjoint(UNSERVED[provider])
    assert compared | UNSERVED[provider].keys() == recorded_files(provider)


@pytest.mark.parametrize(
    ("ours", "told"),
    [
        ({"a": "1.00000", "b": [1, None], "c": 1}, []),
        ({"a": "1.00000", "b": [1.5, None], "c": 1.5}, [".c: ['number'] instead of ['whole number']"]),
        ({"a": "1.0", "b": [1, None], "c": 1}, [".a: ['text'] instead of ['five decimals']"]),
        ({"a": 1.0, "b": [1, None], "c": 1}, [".a: ['number'] instead of ['five decimals']"]),
        (
            {"a": None, "b": []},
            ["only theirs: .b[]", "only theirs: .c", ".a: ['None'] instead of ['five decimals']"],
        ),
        ({"a": "1.00000", "b": [1], "c": 1, "d": 1}, ["only ours: .d"]),
    ],
)
def test_differences_are_seen(ours: dict[str, Any], told: list[str]) -> None:
    assert differences(shape(ours), shape({"a": "2.50000", "b": [2.5, None], "c": 2})) == told
