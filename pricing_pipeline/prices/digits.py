"""Writes all amounts of a column in digits at once: one by one takes many times as long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pricing_pipeline.db import copying
from pricing_pipeline.prices.frames import LEAST

if TYPE_CHECKING:
    from pricing_pipeline.domain.bars import Column


def spelled(prices: bytes | str, scales: bytes | None) -> str:
    """Prices of frames.Columns in digits, with spaces between them; a missing one is empty."""
    if isinstance(prices, str):
        return prices
    return in_digits(copying.read_bigints(prices), copying.read_smallints(scales or b""))


def in_digits(amounts: Column, scales: Column) -> str:
    """Amounts with as many decimals as their scales say, with spaces between them; LEAST stands for a missing one."""
    import numpy as np

    text = characters(amounts, scales)
    spaced = np.hstack((text, np.full((len(text), 1), ord(" "), dtype=np.uint8)))
    return spaced.tobytes().translate(None, b"\0").decode()[:-1]


def characters(amounts: Column, scales: Column) -> Any:
    """The characters of each amount as a row, its sign first; NUL stands for no character."""
    import numpy as np

    is_there = amounts != LEAST
    rest = sizes = np.abs(np.where(is_there, amounts, 0))
    fewest, most = int(scales.min()), int(scales.max())
    # What stands at each place of a text, from its end.
    places = []
    for power in range(max(len(str(sizes.max())), most + 1)):
        if power > 0 and fewest <= power <= most:
            places.append(np.where(scales == power, ord("."), 0).astype(np.uint8))
        rest, above = rest // 10, rest
        is_shown = (power <= scales) | (sizes >= 10**power)
        places.append(np.where(is_shown, above - rest * 10 + ord("0"), 0).astype(np.uint8))
    places.append(np.where(amounts < 0, ord("-"), 0).astype(np.uint8))
    text = np.stack(places[::-1], axis=1)
    text[~is_there] = 0
    return text
