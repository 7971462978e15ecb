"""Histories that are written to files, and months that move to them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pricing_pipeline.domain.answers import Adjust
from pricing_pipeline.prices import exporting, price_reader
from pricing_pipeline.prices.exporting import Exported
from pricing_pipeline.prices.files import Store
from pricing_pipeline_tests.fixtures.core import Core

FIRST, LAST = date(2020, 1, 1), date(2020, 12, 31)
VOLUMES = (None, "0", "123456", "1000.50", "0.000000000000000001")


def fill(core: Core, dice: random.Random, symbols: Sequence[str], data_type: str = "equity_daily") -> list[datetime]:
    """Random values and revisions of a year, splits and dividends; returns moments to read them as of."""
    base = datetime(2021, 1, 4, 12, tzinfo=UTC)
    moments = [base + timedelta(hours=hour) for hour in range(6)]
    for symbol in symbols:
        core.rows(
            "INSERT INTO pricing.instruments (asset_class, symbol, currency) VALUES ('equity', :symbol, 'USD')"
            " ON CONFLICT DO NOTHING",
            symbol=symbol,
        )
        for day in sorted(dice.sample(range(366), dice.randint(20, 90))):
            observed_at = datetime.combine(FIRST, datetime.min.time(), UTC) + timedelta(days=day)
            steps = sorted(dice.sample(moments, dice.choice((1, 1, 1, 2, 3))))
            for step, (since, until) in enumerate(zip(steps, [*steps[1:], None], strict=True)):
                row = {
                    "data_type": data_type,
                    "symbol": symbol,
                    "at": observed_at,
                    "amount": dice.randint(10**5, 10**6),
                    "other": dice.choice((None, dice.randint(10**5, 10**6))),
                    "scale": dice.choice((2, 3, 5)),
                    "volume": dice.choice(VOLUMES),
                    "call": dice.randint(1, 10**6),
                    "since": since,
                    "adjustment": dice.choice(("raw", "splits")),
                    "quality": dice.choice((None, "", 'low: "1.0"\nis above')),
                    "text": dice.choice((None, "129.0399932861328")),
                }
                columns = (
                    "data_type, symbol, observed_at, amount, open_amount, scale, currency, volume, provider, call_id,"
                    " adjustment, quality, source_text"
                )
                values = (
                    ":data_type, :symbol, :at, :amount, :other, :scale, 'USD', :volume, 'twelvedata', :call,"
                    " :adjustment, :quality, :text"
                )
                # One in ten of the values that were believed has left the history, as when its basis changes.
                if until is None and (step == 0 or dice.random() > 0.1):
                    core.rows(
                        f"INSERT INTO pricing.price_history ({columns}, fetched_at) VALUES ({values}, :since)",
                        **row,
                    )
                else:
                    end = until or since + timedelta(minutes=30)
                    core.rows(
                        f"INSERT INTO pricing.price_revisions ({columns}, recorded_at, revised_at, revised_by)"
                        f" VALUES ({values}, :since, :until, 7)",
                        **row,
                        until=end,
                    )
            core.rows("SELECT pricing.note_changes(:data_type, ARRAY[:at])", data_type=data_type, at=observed_at)
        for _ in range(dice.randint(0, 4)):
            is_split = dice.random() < 0.5
            core.rows(
                "INSERT INTO pricing.corporate_actions (asset_class, symbol, ex_on, kind, new_shares, old_shares,"
                " amount, scale, currency, provider, call_id, recorded_at) VALUES ('equity', :symbol, :ex_on, :kind,"
                " :new, :old, :amount, :scale, :currency, 'fmp', 1, :since) ON CONFLICT DO NOTHING",
                symbol=symbol,
                ex_on=FIRST + timedelta(days=dice.randrange(366)),
                kind="split" if is_split else "dividend",
                new=dice.choice((2, 3)) if is_split else None,
                old=1 if is_split else None,
                amount=None if is_split else dice.randint(1, 9),
                scale=None if is_split else 2,
                currency=None if is_split else "USD",
                since=dice.choice(moments),
            )
    return [*moments, *(moment + timedelta(minutes=45) for moment in moments)]


def lose(core: Core, which: str) -> None:
    """Delete values from the history, as thinning does."""
    core.rows(
        f"WITH lost AS (DELETE FROM pricing.price_history WHERE {which} RETURNING data_type, observed_at)"
        " SELECT pricing.note_changes(data_type, array_agg(observed_at)) FROM lost GROUP BY data_type"
    )


def reads_of(
    dice: random.Random, symbols: Sequence[str], moments: Sequence[datetime], count: int
) -> list[dict[str, Any]]:
    """Random reads of these histories: as of a moment or now, as stored or on a basis, of the year or a part of it."""
    spans = ((FIRST, LAST), (date(2020, 2, 10), date(2020, 3, 20)), (date(2020, 11, 1), date(2021, 2, 1)))
    return [
        {
            "symbol": dice.choice(symbols),
            "span": dice.choice(spans),
            "as_of": dice.choice((None, *moments)),
            "adjust": dice.choice((None, *Adjust)),
        }
        for _ in range(count)
    ]


def readings(core: Core, reads: Sequence[dict[str, Any]], data_type: str = "equity_daily") -> list[list[str]]:
    """What these reads get, with every digit and all lineage."""
    with core.engine.connect() as connection:
        return [
            list(
                map(
                    str,
                    price_reader.bars(
                        connection,
                        *(read["symbol"], data_type, *read["span"]),
                        as_of=read["as_of"],
                        adjust=read["adjust"],
                    ),
                )
            )
            for read in reads
        ]


def export_all(core: Core, store: Store, data_type: str = "equity_daily") -> list[Exported]:
    """Write the files of all months of a type that are due."""
    with core.engine.connect() as connection:
        due = [month.month for month in exporting.months(connection, data_type) if month.is_due]
    written = [exporting.export(core.engine, store, data_type, month) for month in due]
    return [one for one in written if one is not None]


def move_all(core: Core, store: Store, data_type: str = "equity_daily") -> int:
    """Move all months that may move; returns how many rows."""
    with core.engine.connect() as connection:
        months = [month for month in exporting.movable(connection, data_type) if month.keeps is None]
    return sum(exporting.move(core.engine, store, data_type, month.month) for month in months)


def keep(core: Core, months: int | None, data_type: str = "equity_daily") -> None:
    """Have a type keep so many months in the database."""
    core.rows(
        "UPDATE pricing.data_type_registry SET keep_months = :months WHERE data_type = :data_type",
        months=months,
        data_type=data_type,
    )
