"""Books of GnuCash: written with commodities, read for the prices that were stored, and its own import of prices.

GnuCash has no command for that import, so `import_prices` calls what the window calls, in a process of its own.
"""

from __future__ import annotations

import ctypes
import gzip
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from pricing_pipeline_tests.support.patience import PATIENCE

PROGRAM = shutil.which("gnucash-cli")
_XML = "http://www.gnucash.org/XML/"
_SPACES = ["gnc", "act", "book", "cd", "cmdty", "price", "ts"]
_LIBRARIES = Path("/usr/lib/x86_64-linux-gnu/gnucash")


@dataclass(frozen=True, slots=True)
class Commodity:
    """A security or currency of a book; with a source, its quotes are fetched from there."""

    namespace: str
    symbol: str
    source: str | None = "pricing_pipeline"


@dataclass(frozen=True, slots=True)
class Stored:
    """A price of a book."""

    namespace: str
    symbol: str
    currency: str
    at: datetime
    value: Fraction


def write_book(path: Path, commodities: Iterable[Commodity]) -> None:
    """A book without accounts."""
    spaces = " ".join(f'xmlns:{name}="{_XML}{name}"' for name in _SPACES)
    path.write_text(
        f'<?xml version="1.0" encoding="utf-8" ?>\n<gnc-v2 {spaces}><gnc:count-data cd:type="book">1</gnc:count-data>'
        f'<gnc:book version="2.0.0"><book:id type="guid">{"1" * 32}</book:id>{"".join(map(_element, commodities))}'
        f'<gnc:account version="2.0.0"><act:name>Root</act:name><act:id type="guid">{"2" * 32}</act:id>'
        "<act:type>ROOT</act:type></gnc:account></gnc:book></gnc-v2>"
    )


def _element(one: Commodity) -> str:
    asked = f"<cmdty:get_quotes/><cmdty:quote_source>{one.source}</cmdty:quote_source>" if one.source else ""
    return (
        f'<gnc:commodity version="2.0.0"><cmdty:space>{escape(one.namespace)}</cmdty:space>'
        f"<cmdty:id>{escape(one.symbol)}</cmdty:id><cmdty:fraction>10000</cmdty:fraction>{asked}</gnc:commodity>"
    )


def stored_prices(path: Path) -> set[Stored]:
    """What a book has, as XML or as compressed XML."""
    content = path.read_bytes()
    root = ElementTree.fromstring(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content)
    return {
        Stored(
            _text(price, "price:commodity/cmdty:space"),
            _text(price, "price:commodity/cmdty:id"),
            _text(price, "price:currency/cmdty:id"),
            datetime.fromisoformat(_text(price, "price:time/ts:date")).astimezone(UTC),
            Fraction(_text(price, "price:value")),
        )
        for price in root.iter("price")
    }


def _text(price: ElementTree.Element, path: str) -> str:
    text = price.findtext(path, namespaces={name: _XML + name for name in _SPACES})
    assert text is not None, path
    return text


def import_prices(book: Path, file: Path, environment: dict[str, str]) -> str:
    """Read a file into a book as the window does, with days like 2026-11-27 and decimal points; returns what the window
    would complain about."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, book, file],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout


class _String(ctypes.Structure):
    """A std::string of libstdc++."""

    _fields_ = (("place", ctypes.c_void_p), ("length", ctypes.c_size_t), ("capacity", ctypes.c_size_t * 2))


def _import(book: str, file: str) -> None:
    """What the assistant does with a file of five columns."""
    engine, window = (
        ctypes.CDLL(str(_LIBRARIES / name), mode=ctypes.RTLD_GLOBAL)
        for name in ("libgnc-engine.so", "gnucash/libgnc-csv-import.so")
    )
    engine.gnc_engine_init(0, None)
    engine.gnc_get_current_session.restype = ctypes.c_void_p
    session = ctypes.c_void_p(engine.gnc_get_current_session())
    engine.qof_session_begin(session, f"xml://{book}".encode(), 0)
    engine.qof_session_load(session, None)
    room = ctypes.create_string_buffer(1 << 16)  # more than a GncPriceImport takes

    def call(name: str, *arguments: Any) -> None:
        getattr(window, f"_ZN14GncPriceImport{name}")(ctypes.byref(room), *arguments)

    path = ctypes.create_string_buffer(file.encode())
    given = _String(ctypes.addressof(path), len(file.encode()))
    complaint = _String()
    csv, year_month_day, with_points = 1, 0, 1
    call("C1E16GncImpFileFormat", csv)
    call("9load_fileERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", ctypes.byref(given))
    call("8tokenizeEb", True)
    call("11date_formatEi", year_month_day)
    call("15currency_formatEi", with_points)
    for column, kind in enumerate((1, 2, 3, 4, 5)):  # date, amount, from symbol, from namespace, to currency
        call("21set_column_type_priceEj16GncPricePropTypeb", column, kind, False)
    window._ZN14GncPriceImport6verifyB5cxx11Ev(ctypes.byref(complaint), ctypes.byref(room))
    if complaint.length:
        print(ctypes.string_at(complaint.place, complaint.length).decode())
    else:
        call("13create_pricesEv")
        engine.qof_session_save(session, None)
    engine.qof_session_end(session)


if __name__ == "__main__":
    _import(*sys.argv[1:])
