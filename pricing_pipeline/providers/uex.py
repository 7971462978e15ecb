"""UEX: prices of commodities in a game, by the terminals that trade them.

This module knows only its URLs and answers; uex_lists.py reads rows and lists. A call asks for some terminals by their
numbers. A terminal without a row has nothing to trade, or nobody has reported it: the two look the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pricing_pipeline.domain.answers import Answer, FailureKind, SymbolFailure
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.commodities import PREFIX
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import Question, Request
from pricing_pipeline.providers.uex_lists import NAME, by_terminal, content_of, rows_of, terminal_of

MAX_TERMINALS = 10
_TERMINAL = re.compile(r"[1-9][0-9]{0,8}")


class Uex:
    """Provider `uex`. A symbol is the number of a terminal, such as 12; canonical is UEX:12."""

    name = NAME
    base_url = "https://api.uexcorp.space/2.0"
    needs_key = True
    fetchers = frozenset({Fetcher.TERMINAL_PRICES})

    def accepts(self, symbol: str) -> bool:
        """Digits only: a comma would part a batch."""
        return _TERMINAL.fullmatch(symbol) is not None

    def spell(self, symbol: str, asset_class: str) -> str:
        """UEX:12 is 12."""
        return symbol.removeprefix(PREFIX) if asset_class == "commodity" else symbol

    def batch_limit(self, fetcher: Fetcher, window: Window | None) -> int:
        """Ten terminals."""
        return MAX_TERMINALS

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        """None: prices are the latest ones, without a span."""
        return None

    def build(self, question: Question) -> Request:
        """All prices of these terminals."""
        return Request("/commodities_prices", (("id_terminal", ",".join(question.symbols)),))

    def authorize(self, key: str) -> Mapping[str, str]:
        """The key as a bearer token."""
        return {"Authorization": f"Bearer {key}"}

    def parse(self, question: Question, response: Response) -> Answer:
        """A record for each terminal that trades. See OneRequest.parse."""
        symbols, now = question.symbols, question.now
        grouped, nameless = by_terminal(rows_of(content_of(response, now), "list of prices"))
        if nameless and not grouped:
            raise SchemaDrift(
                f"none of the {len(nameless)} prices in uex's answer names its terminal. Nothing was stored."
            )
        unasked = grouped.keys() - set(symbols)
        read = [terminal_of(symbol, grouped[symbol], now) for symbol in symbols if symbol in grouped]
        missing = [symbol for symbol in symbols if symbol not in grouped]
        failures = [row.failure for row in read if row.failure is not None]
        if unasked or nameless:
            failures += [_lost(symbol, sorted(unasked)) for symbol in missing]
            missing = []
        records = [row.prices for row in read if row.prices is not None]
        if nameless:  # one of them may be of any terminal
            records = [replace(record, is_whole=False) for record in records]
        return Answer(
            records=tuple(records),
            failures=tuple(failures),
            empty=frozenset(missing),
            rejected=tuple(value for row in read for value in row.rejected),
        )


def _lost(symbol: str, unasked: Sequence[str]) -> SymbolFailure:
    others = f"of terminals that were not asked for ({', '.join(unasked[:3])})" if unasked else "without a terminal"
    message = f"uex's answer has no price at terminal {symbol}, and prices {others}. Nothing was stored for it."
    return SymbolFailure(symbol, FailureKind.IMPLAUSIBLE, message)
