"""Good answers of the services in docs/examples, each in the shape in which the service writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from xml.sax.saxutils import escape, quoteattr
from zoneinfo import ZoneInfo

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline_tests.support.provider_samples import Sample, Value, number

_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?")


def midnight(day: date) -> int:
    return int(datetime.combine(day, time(), UTC).timestamp())


def times(value: object, factor: int) -> object:
    """A price in another unit; what is no price stays as it is."""
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value)
    return f"{(Decimal(str(value)) * factor).normalize():f}" if is_plain else value


def comma(value: object) -> object:
    """A price with a decimal comma; what is no price stays as it is."""
    return str(value).replace(".", ",") if isinstance(value, str) and _PLAIN.fullmatch(value) else value


def _cell(value: object) -> str:
    return "" if value is None else str(value).removeprefix("@@").removesuffix("@@")


def csv_of(
    delimiter: str = ",", before: str = "", after: str = "", *, header: bool = True, encoding: str = "utf-8"
) -> Callable[[object], bytes]:
    """Writes rows as lines: cells that a row lacks make its line shorter."""

    def line(cells: Sequence[object]) -> str:
        texts = [_cell(cell) for cell in cells]
        return delimiter.join(
            f'"{text.replace(chr(34), chr(34) * 2)}"' if set(text) & {delimiter, '"', "\n"} else text for text in texts
        )

    def write(body: object) -> bytes:
        rows = body if isinstance(body, list) else [body]
        names = list(next((row for row in rows if isinstance(row, dict)), {}))
        lines = [line(names)] if header else []
        for row in rows:
            cells = [row[name] for name in names if name in row] if isinstance(row, dict) else [row]
            lines.append(line(cells))
        text = before + "".join(f"{one}\r\n" for one in lines) + after
        return text.encode(encoding, "replace")

    return write


def xml_of(root: str, encoding: str = "utf-8") -> Callable[[object], bytes]:
    """Writes objects as elements: members that are lists become children, others attributes."""

    def element(name: str, value: object) -> str:
        if not isinstance(value, dict):
            return f"<{name}>{escape(_cell(value))}</{name}>"
        lists = {key: inner for key, inner in value.items() if isinstance(inner, list)}
        attributes = "".join(f" {key}={quoteattr(_cell(inner))}" for key, inner in value.items() if key not in lists)
        children = "".join(element(key, one) for key, inner in lists.items() for one in inner)
        return f"<{name}{attributes}>{children}</{name}>"

    def write(body: object) -> bytes:
        text = f'<?xml version="1.0" encoding="{encoding}"?>{element(root, body)}'
        return text.encode(encoding, "replace")

    return write


Body = Callable[[Sequence[str], Sequence[Value]], object]


def _quote(asked: Sequence[str], values: Sequence[Value]) -> tuple[str, str]:
    base, _, quote = (values[-1].symbol if values else asked[0]).partition("/")
    return base, quote


def _finnhub(asked: Sequence[str], values: Sequence[Value]) -> object:
    columns = {
        "t": [midnight(one.day) for one in values],
        "o": [None if one.close is None else 10 for one in values],
        "v": [100 for _ in values],
    }
    named = {"h": "high", "l": "low", "c": "close"}
    return {"s": "ok"} | columns | {key: [number(getattr(one, name)) for one in values] for key, name in named.items()}


def _onvista(asked: Sequence[str], values: Sequence[Value]) -> object:
    names = {"last": "close", "high": "high", "low": "low"}
    prices = {name: [number(times(getattr(one, part), 100)) for one in values] for name, part in names.items()}
    last = values[-1] if values else Value(asked[0])
    return {
        "idInstrument": last.symbol,
        "isoCurrency": last.currency,
        "datetimeLast": [midnight(one.day) + 3600 for one in values],
        "first": [None if one.close is None else 1000 for one in values],
        "volume": [100 for _ in values],
        **prices,
    }


def _kraken(asked: Sequence[str], values: Sequence[Value]) -> object:
    rows = [
        [
            midnight(one.day),
            None if one.close is None else "10.0",
            one.high,
            one.low,
            one.close,
            "10.1",
            "100.5",
            7,
        ]
        for one in values
    ]
    base, quote = _quote(asked, values)
    return {"error": [], "result": {f"{base}{quote}": rows, "last": 5}}


def _binance(asked: Sequence[str], values: Sequence[Value]) -> object:
    return [
        [
            midnight(one.day) * 1000,
            None if one.close is None else "10.0",
            *(one.high, one.low, one.close, "100.5"),
            midnight(one.day) * 1000 + 86_399_999,
        ]
        for one in values
    ]


def _coingecko(asked: Sequence[str], values: Sequence[Value]) -> object:
    return {"prices": [[midnight(one.day) * 1000, number(one.close)] for one in values], "market_caps": []}


def _coingecko_quote(asked: Sequence[str], values: Sequence[Value]) -> object:
    base, quote = _quote(asked, values)
    one = values[-1] if values else Value(asked[0])
    return {base: {quote: number(one.close), "last_updated_at": one.stamp}}


def _refinitiv(asked: Sequence[str], values: Sequence[Value]) -> object:
    names = ["DATE", "OPEN_PRC", "HIGH_1", "LOW_1", "TRDPRC_1", "ACVOL_UNS"]
    rows = [
        [
            str(one.day),
            None if one.close is None else 10,
            *(number(price) for price in (one.high, one.low, one.close)),
            100,
        ]
        for one in values
    ]
    ric = values[-1].symbol if values else asked[0]
    headers = [{"name": name, "type": "number"} for name in names]
    return [{"universe": {"ric": ric}, "interval": "P1D", "headers": headers, "data": rows}]


def _alphavantage(asked: Sequence[str], values: Sequence[Value]) -> object:
    days = {
        str(one.day): {
            "1. open": None if one.close is None else "10.0",
            "2. high": one.high,
            "3. low": one.low,
            "4. close": one.close,
            "5. volume": "100",
        }
        for one in values
    }
    symbol = values[-1].symbol if values else asked[0]
    return {"Meta Data": {"2. Symbol": symbol}, "Time Series (Daily)": days}


def _bankofcanada(asked: Sequence[str], values: Sequence[Value]) -> object:
    base, quote = _quote(asked, values)
    return {"observations": [{"d": str(one.day), f"FX{base}{quote}": {"v": one.close}} for one in values]}


def _exchangerate(asked: Sequence[str], values: Sequence[Value]) -> object:
    base, quote = _quote(asked, values)
    rates = {str(one.day): {f"{base}{quote}": number(one.close)} for one in values}
    return {"success": True, "timeframe": True, "source": base, "quotes": rates}


def _exchangerate_live(asked: Sequence[str], values: Sequence[Value]) -> object:
    base, quote = _quote(asked, values)
    one = values[-1] if values else Value(asked[0])
    return {
        "success": True,
        "timestamp": one.stamp,
        "source": base,
        "quotes": {f"{base}{quote}": number(one.close)},
    }


def _amfi(asked: Sequence[str], values: Sequence[Value]) -> object:
    return [
        {
            "Scheme Code": one.symbol,
            "ISIN Div Payout/ ISIN Growth": "INF209KA12Z1",
            "Scheme Name": "A fund",
            "Net Asset Value": one.close,
            "Date": f"{one.day:%d-%b-%Y}",
        }
        for one in values
    ]


def _stooq(asked: Sequence[str], values: Sequence[Value]) -> object:
    return [
        {
            "Date": str(one.day),
            "Open": None if one.close is None else "10.0",
            "High": one.high,
            "Low": one.low,
            "Close": one.close,
            "Volume": "100",
        }
        for one in values
    ]


def _ecb(asked: Sequence[str], values: Sequence[Value]) -> object:
    base, quote = _quote(asked, values)
    return [
        {
            "KEY": f"EXR.D.{quote}.{base}.SP00.A",
            "TIME_PERIOD": str(one.day),
            "OBS_VALUE": one.close,
            "TITLE": "A rate, of the day",
        }
        for one in values
    ]


def _ecb_xml(asked: Sequence[str], values: Sequence[Value]) -> object:
    _, quote = _quote(asked, values)
    gold = {"currency": "XAU", "rate": "0.00025"}
    cubes = [{"time": str(one.day), "Cube": [{"currency": quote, "rate": one.close}, gold]} for one in values]
    return {"Cube": [{"Cube": cubes}]}


def _cbr(asked: Sequence[str], values: Sequence[Value]) -> object:
    base, _ = _quote(asked, values)
    records = [
        {
            "Date": f"{one.day:%d.%m.%Y}",
            "Id": base,
            "Nominal": ["100"],
            "Value": [comma(times(one.close, 100))],
        }
        for one in values
    ]
    return {"ID": base, "Record": records}


def _bundesbank(asked: Sequence[str], values: Sequence[Value]) -> object:
    rows: list[dict[str, object]] = [{"day": str(one.day), "rate": comma(one.close), "flag": ""} for one in values]
    return [*rows, {"day": "2026-11-18", "rate": ".", "flag": "Kein Wert vorhanden"}]


def _rapidapi(asked: Sequence[str], values: Sequence[Value]) -> object:
    one = values[-1] if values else Value(asked[0])
    is_time = isinstance(one.stamp, int) and not isinstance(one.stamp, bool) and 86_400 < one.stamp < 10**11
    at = (
        f"{datetime.fromtimestamp(one.stamp, ZoneInfo('America/New_York')):%Y-%m-%d %H:%M:%S}" if is_time else one.stamp
    )
    return {"symbol": one.symbol, "price": one.close, "time": at, "currency": one.currency}


_BARS, _QUOTE = Fetcher.DAILY_BARS, Fetcher.QUOTE
_SHARES, _NO_SHARES = (
    ("AAPL", "IBM", "MSFT"),
    ("", " ", "A B", "A,B", "A\nB", "Ä", "A" * 65, "AAPL\0", "..", "aapl"),
)
_NO_PAIRS = ("", "EURUSD", "EUR/US", "EUR/USD\n", "EUR/../USD", "EUR/USD/CHF")
_EUROS = ("EUR/USD", "EUR/GBP", "EUR/CHF")
_DOLLARS = ("EUR/USD", "GBP/USD", "CHF/USD")
_COINS = ("ETH/USD", "SOL/USD", "XBT/USD")

_LINES = csv_of(";", "".join(f'"";line {n};\r\n' for n in range(9)), "Kommentar;Quelle;\r\n", header=False)
_SECTION = "\r\nOpen Ended Schemes(Debt Scheme - Banking and PSU Fund)\r\n \r\nA House\r\n\r\n"


def _amfi_lines(body: object) -> bytes:
    head, _, rows = csv_of(";")(body).partition(b"\r\n")
    return head + _SECTION.encode() + rows


SHAPES = (
    Sample("finnhub", _BARS, _SHARES, _NO_SHARES, _finnhub, says_range=True, currency=None, names_symbol=False),
    Sample(
        "onvista",
        _BARS,
        ("1000", "2000", "77"),
        ("", "AAPL", "1/2", "-1"),
        _onvista,
        names_currency=True,
        keeps_text=False,
    ),
    Sample(
        *("refinitiv", _BARS, ("AAPL.O", "VOD.L", "IBM"), ("", "aapl", "A/B", "..", "VOD."), _refinitiv),
        says_range=True,
        currency=None,
    ),
    Sample("kraken", _BARS, _COINS, _NO_PAIRS, _kraken, says_range=True, writes_text=True),
    Sample("binance", _BARS, _COINS, _NO_PAIRS, _binance, says_range=True, writes_text=True, names_symbol=False),
    Sample(
        "coingecko",
        _BARS,
        ("bitcoin/usd", "ethereum/usd", "binance-coin/usd"),
        _NO_PAIRS,
        _coingecko,
        names_symbol=False,
    ),
    Sample("coingecko", _QUOTE, ("bitcoin/usd", "ethereum/usd", "binance-coin/usd"), _NO_PAIRS, _coingecko_quote),
    Sample(
        *("alphavantage", _BARS, _SHARES, _NO_SHARES, _alphavantage),
        says_range=True,
        is_keyed_by_day=True,
        writes_text=True,
    ),
    Sample("bankofcanada", _BARS, _DOLLARS, _NO_PAIRS, _bankofcanada, writes_text=True),
    Sample("exchangerate_host", _BARS, _DOLLARS, _NO_PAIRS, _exchangerate, is_keyed_by_day=True),
    Sample("exchangerate_host", _QUOTE, _DOLLARS, _NO_PAIRS, _exchangerate_live),
    Sample(
        *("amfi", Fetcher.NAV, ("118632", "119551", "125497"), ("", "AAPL", "0", "-1"), _amfi),
        currency="INR",
        is_latest=True,
        encode=_amfi_lines,
        is_csv=True,
        writes_text=True,
    ),
    Sample(
        *("stooq", _BARS, ("^spx", "aapl.us", "cdr"), ("", " ", "a b", "AAPL", "..", "a\n"), _stooq),
        says_range=True,
        encode=csv_of(),
        is_csv=True,
        writes_text=True,
        currency=None,
        names_symbol=False,
    ),
    Sample(
        *("ecb", _BARS, _EUROS, _NO_PAIRS, _ecb),
        encode=csv_of(),
        is_csv=True,
        writes_text=True,
        names_symbol=False,
    ),
    Sample(
        *("ecb_xml", _BARS, _EUROS, _NO_PAIRS, _ecb_xml),
        encode=xml_of("Envelope"),
        also_prices=frozenset({"[1]"}),  # a child that stands once is written so, and read as itself
        writes_text=True,
    ),
    Sample(
        *("cbr", _BARS, ("R01235/RUB", "R01239/RUB", "R01820/RUB"), _NO_PAIRS, _cbr),
        currency="RUB",
        keeps_text=False,
        encode=xml_of("ValCurs", "windows-1251"),
        writes_text=True,
    ),
    Sample(
        *("bundesbank", _BARS, _EUROS, _NO_PAIRS, _bundesbank),
        keeps_text=False,
        encode=_LINES,
        is_csv=True,
        is_positional=True,
        writes_text=True,
        names_symbol=False,
    ),
    Sample(
        *("rapidapi", _QUOTE, _SHARES, _NO_SHARES, _rapidapi),
        names_currency=True,
        also_prices=frozenset({"1,000.00"}),
        writes_text=True,
    ),
)
