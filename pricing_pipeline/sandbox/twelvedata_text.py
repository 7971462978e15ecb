"""How Twelve Data writes quotes, bars and errors as JSON text. Limits, parameters and HTTP are not here.

Texts are made by hand because numbers are strings of fixed decimals and thousands of rows are asked for at
once. Shapes and wordings are those of recorded answers (2021 to 2026); the wording before 2023 differs for
errors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Literal

from pricing_pipeline.sandbox.instruments import Instrument, Kind
from pricing_pipeline.sandbox.prices import Quote, Slice
from pricing_pipeline.sandbox.series import Bar
from pricing_pipeline.sandbox.spellings import TYPES
from pricing_pipeline.sandbox.units import CENT, UNITS, decimal_text, divided

Style = Literal["status", "body"]
_FourPrices = tuple[int, int, int, int]
_FourTexts = tuple[str, str, str, str]
_PRICING = "https://twelvedata.com/pricing"


def percent_text(change: int, base: int) -> str:
    """`change` in percent of `base`, five decimals, cut off."""
    share = abs(change) * 100 * UNITS // base if base else 0
    return decimal_text(-share if change < 0 else share)


def quote_text(instrument: Instrument, quote: Quote, timestamp: int, last_quote_at: int) -> str:
    """One member of `/quote`. Pairs have no currency, MIC code or volume; coins have rolling changes."""
    change = quote.close - quote.previous_close
    equity = instrument.kind is Kind.EQUITY
    listing = f',"mic_code":"{instrument.mic_code}","currency":"{instrument.currency}"' if equity else ""
    volume = f',"volume":"{quote.volume}"' if equity else ""
    rolling = ""
    if instrument.kind is Kind.CRYPTO:
        day = percent_text(change, quote.previous_close)
        week = percent_text(quote.close - quote.week_ago_close, quote.week_ago_close)
        rolling = f',"rolling_1d_change":"{day}","rolling_7d_change":"{week}","rolling_change":"{day}"'
    above, below = quote.close - quote.year_low, quote.close - quote.year_high
    low, high = decimal_text(quote.year_low), decimal_text(quote.year_high)
    return (
        f'{{"symbol":"{instrument.symbol}","name":"{instrument.name}","exchange":"{instrument.exchange}"{listing}'
        f',"datetime":"{quote.day}","timestamp":{timestamp},"last_quote_at":{last_quote_at}'
        f',"open":"{decimal_text(quote.open)}","high":"{decimal_text(quote.high)}"'
        f',"low":"{decimal_text(quote.low)}","close":"{decimal_text(quote.close)}"{volume}'
        f',"previous_close":"{decimal_text(quote.previous_close)}","change":"{decimal_text(change)}"'
        f',"percent_change":"{percent_text(change, quote.previous_close)}"'
        f',"average_volume":"{quote.average_volume}"{rolling}'
        f',"is_market_open":{"true" if quote.is_open else "false"}'
        f',"fifty_two_week":{{"low":"{low}","high":"{high}"'
        f',"low_change":"{decimal_text(above)}","high_change":"{decimal_text(below)}"'
        f',"low_change_percent":"{percent_text(above, quote.year_low)}"'
        f',"high_change_percent":"{percent_text(below, quote.year_high)}","range":"{low}0 - {high}0"}}}}'
    )


def rate_text(symbol: str, close: int, timestamp: int) -> str:
    """One member of `/exchange_rate`, whose rate is a number and not a string."""
    rate = decimal_text(close).rstrip("0").rstrip(".")
    return f'{{"symbol":"{symbol}","rate":{rate},"timestamp":{timestamp}}}'


def search_text(instruments: Sequence[Instrument]) -> str:
    """The answer of `/symbol_search`. Pairs are listed with their quote currency, as shares with theirs."""
    rows = [
        {
            "symbol": instrument.symbol,
            "instrument_name": instrument.name,
            "exchange": instrument.exchange,
            "mic_code": instrument.mic_code,
            "exchange_timezone": instrument.zone.key,
            "instrument_type": TYPES[instrument.kind],
            "country": instrument.venue.country,
            "currency": instrument.currency,
        }
        for instrument in instruments
    ]
    return json.dumps({"data": rows, "status": "ok"}, separators=(",", ":"))


def series_text(instrument: Instrument, interval: str, rows: Sequence[str]) -> str:
    """One member of `/time_series`."""
    if instrument.kind is Kind.EQUITY:
        about = (
            f'"currency":"{instrument.currency}","exchange_timezone":"{instrument.zone.key}"'
            f',"exchange":"{instrument.exchange}","mic_code":"{instrument.mic_code}"'
        )
    else:
        about = f'"currency_base":"{instrument.base}","currency_quote":"{instrument.quote}"'
        if instrument.kind is Kind.CRYPTO:
            about += f',"exchange":"{instrument.exchange}"'
    return (
        f'{{"meta":{{"symbol":"{instrument.symbol}","interval":"{interval}",{about}'
        f',"type":"{TYPES[instrument.kind]}"}},"values":[{",".join(rows)}],"status":"ok"}}'
    )


def daily_row(instrument: Instrument, bar: Bar, *, split_adjusted: bool) -> str:
    """One day. Unadjusted days keep their source's own spelling, to the last digit."""
    recorded = bar.recorded
    prices, volume = bar.prices[:4], bar.prices.volume
    if recorded is not None and split_adjusted:
        prices = _shared(prices, recorded.split)
        volume *= recorded.split
        texts = _texts(prices)
    elif recorded is not None:
        texts = (recorded.open, recorded.high, recorded.low, recorded.close)
    else:
        texts = _texts(prices)
        if instrument.tick == CENT and not split_adjusted:
            texts = (texts[0][:-3], texts[1][:-3], texts[2][:-3], texts[3][:-3])
    return _row(str(bar.day), texts, volume, instrument)


def slice_row(instrument: Instrument, bar: Slice, zone: tzinfo) -> str:
    """One bar within a day, with the naive local time of `zone`."""
    at = datetime.fromtimestamp(bar.start, zone).isoformat(" ")[:19]
    texts = _texts((bar.open, bar.high, bar.low, bar.close))
    return _row(at, texts, bar.volume, instrument)


def error_text(code: int, message: str, meta: dict[str, str] | None = None) -> str:
    """An error object, alone or as a member of a batch."""
    body: dict[str, object] = {"code": code, "message": message, "status": "error"}
    return json.dumps(body if meta is None else body | {"meta": meta}, separators=(",", ":"))


def unknown_symbol(style: Style, symbol: str, asked: str, interval: str) -> tuple[int, str]:
    """Code and text for a symbol the provider does not know. `asked` is the whole list of the request."""
    if style == "body":
        text = f"**symbol** not found: {symbol}. Please specify it correctly according to API Documentation."
        return 400, error_text(400, text, {"symbol": asked, "interval": interval, "exchange": ""})
    return 404, error_text(
        404,
        "**symbol** or **figi** parameter is missing or invalid. Please provide a valid symbol according to "
        "API documentation: https://twelvedata.com/docs#reference-data",
    )


def wrong_key(style: Style) -> tuple[int, str]:
    """Code and text for a missing or wrong key."""
    if style == "body":
        link, contact = "https://twelvedata.com/apikey", "you can email us at apikey@twelvedata.com"
        key = "API Key"
    else:
        link, contact = _PRICING, "you can contact us at https://twelvedata.com/contact/customer"
        key = "API key"
    return 401, error_text(
        401,
        f"**apikey** parameter is incorrect or not specified. You can get your free {key} instantly "
        f"following this link: {link}. If you believe that everything is correct, {contact}",
    )


def out_of_credits(period: Literal["minute", "day"], used: int, limit: int) -> tuple[int, str]:
    """Code and text for a call that the plan refuses."""
    when = "the current minute" if period == "minute" else "the day"
    return 429, error_text(
        429,
        f"You have run out of API credits for {when}. {used} API credits were used, with the current limit "
        f"being {limit}. Wait for the next {period} or consider switching to a higher tier plan at "
        f"{_PRICING}",
    )


def no_data() -> tuple[int, str]:
    """Code and text for a window that holds no bar."""
    return 400, error_text(
        400, "No data is available on the specified dates. Try setting different start/end dates."
    )


def _row(at: str, texts: _FourTexts, volume: int, instrument: Instrument) -> str:
    opened, high, low, close = texts
    row = f'{{"datetime":"{at}","open":"{opened}","high":"{high}","low":"{low}","close":"{close}"'
    return f'{row},"volume":"{volume}"}}' if instrument.kind is Kind.EQUITY else row + "}"


def _texts(prices: _FourPrices) -> _FourTexts:
    opened, high, low, close = prices
    return decimal_text(opened), decimal_text(high), decimal_text(low), decimal_text(close)


def _shared(prices: _FourPrices, split: int) -> _FourPrices:
    opened, high, low, close = prices
    return divided(opened, split), divided(high, split), divided(low, split), divided(close, split)
