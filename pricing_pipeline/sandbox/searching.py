"""What a search finds among the sandbox's instruments. How a provider lists it is its dialect's affair."""

from __future__ import annotations

import re
from functools import cache

from pricing_pipeline.sandbox.instruments import Instrument, find_instrument, known_instruments

_NUMBER = re.compile("[A-Z]{2}[A-Z0-9]{9}[0-9]")


def matching_instruments(query: str) -> list[Instrument]:
    """Those whose symbol begins with the query, or whose name has it; the case of letters does not count.

    A ticker that nobody named is a made-up share, and is found by its whole symbol only, in capitals. What looks like
    an ISIN or a FIGI is none: such numbers are not made up.
    """
    made_up = None if _NUMBER.fullmatch(query) else find_instrument(query)
    known = _known()
    matches = [instrument for instrument in known if instrument.symbol.startswith(query.upper())]
    matches += [instrument for instrument in known if query.lower() in instrument.name.lower()]
    return list(dict.fromkeys([*([] if made_up is None else [made_up]), *matches]))


def has_words(query: str, text: str) -> bool:
    """Whether the text has all words of the query, as names of funds are searched."""
    return all(word in text.lower() for word in query.lower().split())


@cache
def _known() -> tuple[Instrument, ...]:
    return tuple(known_instruments())
