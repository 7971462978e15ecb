"""The symbols of one call: spelled for its provider before it is asked, and named as people do in its answer.

A module of a provider sees its own spellings only; everything else sees canonical symbols only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pricing_pipeline.domain.answers import Answer, RejectedValue, SymbolFailure, Unconfirmed
from pricing_pipeline.domain.observations import joined
from pricing_pipeline.errors import PricingError
from pricing_pipeline.providers.canonical import share_of

if TYPE_CHECKING:
    from pricing_pipeline.providers.base import Provider

NO_OVERRIDES: Mapping[str, str] = {}
_COMMAND = "action add "
"""A command that an error sentence tells people to type: the symbol in it stands alone."""

T = TypeVar("T")


def spelling_of(provider: Provider, symbol: str, asset_class: str, overrides: Mapping[str, str]) -> str:
    """How a provider spells a canonical symbol: as a person has said, else by its rule.

    Without an asset class no rule is known, so the symbol is taken for the provider's own.
    """
    if symbol in overrides:
        return overrides[symbol]
    return provider.spell(symbol, asset_class) if asset_class else symbol


class Spellings:
    """The canonical symbols of one call, and their spellings. Symbols with one spelling share its answer."""

    def __init__(
        self, provider: Provider, symbols: Iterable[str], asset_class: str, overrides: Mapping[str, str]
    ) -> None:
        self._asset_class = asset_class
        self._symbols: dict[str, list[str]] = {}
        for symbol in dict.fromkeys(symbols):
            spelling = spelling_of(provider, symbol, asset_class, overrides)
            self._symbols.setdefault(spelling, []).append(symbol)
        self._changed = {spelling: symbols for spelling, symbols in self._symbols.items() if symbols != [spelling]}

    @property
    def spelled(self) -> list[str]:
        """The spellings, each once."""
        return list(self._symbols)

    def known(self, known: Mapping[str, Mapping[str, object]]) -> Mapping[str, Mapping[str, object]]:
        """The known facts of symbols by their spellings: those that a symbol tells itself, and those of storage."""
        return {
            spelling: {**self._told_by(symbols[0]), **known.get(symbols[0], {})}
            for spelling, symbols in self._symbols.items()
        }

    def _told_by(self, symbol: str) -> dict[str, object]:
        share = share_of(symbol, self._asset_class)
        exchange = None if share is None else share.exchange
        return {
            **({"asset_class": self._asset_class} if self._asset_class else {}),
            **({} if exchange is None else {"exchange_zone": exchange.zone}),
        }

    def answer(self, answer: Answer) -> Answer:
        """An answer about spellings, as one about canonical symbols."""
        if not self._changed:
            return answer
        observed = answer.observations.by_symbol()
        return Answer(
            observations=joined(
                values if symbol == spelling else values.called(symbol)
                for spelling, values in observed.items()
                for symbol in self._symbols[spelling]
            ),
            failures=tuple(
                self._failure(failure, symbol)
                for failure in answer.failures
                for symbol in self._symbols[failure.symbol]
            ),
            empty=frozenset(symbol for spelling in answer.empty for symbol in self._symbols[spelling]),
            rejected=tuple(
                self._rejected(value, symbol) for value in answer.rejected for symbol in self._symbols[value.symbol]
            ),
            records=tuple(
                replace(record, symbol=symbol)  # type: ignore[type-var]  # every record is a dataclass
                for record in answer.records
                for symbol in self._symbols[record.symbol]
            ),
            actions=tuple(
                replace(action, symbol=symbol) for action in answer.actions for symbol in self._symbols[action.symbol]
            ),
            actions_since=self._by_symbol(answer.actions_since),
            gains_reported=frozenset(
                symbol for spelling in answer.gains_reported for symbol in self._symbols.get(spelling, ())
            ),
            unread=self._by_symbol(answer.unread),
            unsplit=frozenset(symbol for spelling in answer.unsplit for symbol in self._symbols.get(spelling, ())),
            unconfirmed=answer.unconfirmed and self._unconfirmed(answer.unconfirmed),
        )

    def error(self, error: PricingError) -> None:
        """Have the message of an error name canonical symbols."""
        if self._changed and error.args:
            names = {spelling: " and ".join(symbols) for spelling, symbols in self._changed.items()}
            error.args = (_renamed(str(error.args[0]), names)[0], *error.args[1:])

    def _by_symbol(self, values: Mapping[str, T]) -> dict[str, T]:
        return {symbol: value for spelling, value in values.items() for symbol in self._symbols.get(spelling, ())}

    def _failure(self, failure: SymbolFailure, symbol: str) -> SymbolFailure:
        if symbol == failure.symbol:
            return failure
        message, is_named = _renamed(failure.message, {failure.symbol: symbol})
        if not is_named:
            message = f"{message} ({symbol} was asked as {failure.symbol}.)"
        return replace(failure, symbol=symbol, message=message)

    def _rejected(self, value: RejectedValue, symbol: str) -> RejectedValue:
        if symbol == value.symbol:
            return value
        reason, _ = _renamed(value.reason, {value.symbol: symbol})
        return replace(value, symbol=symbol, reason=reason, unasked=value.unasked.called(symbol))

    def _unconfirmed(self, other: Unconfirmed) -> Unconfirmed:
        splits = tuple(
            replace(split, symbol=symbol) for split in other.splits for symbol in self._symbols[split.symbol]
        )
        return Unconfirmed(splits, self.answer(other.answer))


def _renamed(text: str, names: Mapping[str, str]) -> tuple[str, bool]:
    """A sentence with names for spellings, the first of each with its spelling; and whether any has come with it."""
    told: set[str] = set()

    def name(found: re.Match[str]) -> str:
        spelling = found[0]
        if spelling in told or text[: found.start()].endswith(_COMMAND):
            return names[spelling]
        told.add(spelling)
        return f"{names[spelling]} (asked as {spelling})"

    return _whole_words(names).sub(name, text), bool(told)


def _whole_words(spellings: Sequence[str] | Mapping[str, str]) -> re.Pattern[str]:
    """Spellings that stand alone: BRK-B is not in BRK-B.L, but may end a sentence."""
    longest_first = sorted(spellings, key=len, reverse=True)
    parts = "|".join(re.escape(spelling) for spelling in longest_first)
    return re.compile(rf"(?<![\w.:/=^-])(?:{parts})(?![\w/=^-]|[.:]\w)")
