"""What must hold after every fault, whatever happened: nothing lost, doubled or unaccounted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, text

from pricing_pipeline_tests.fixtures.core import Core


class Snapshot(Core):
    """Looks at the books of one moment, while the pipeline goes on."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.engine, connection.engine)
        self._connection = connection

    def rows(self, sql: str, **parameters: Any) -> Sequence[Row[Any]]:
        return self._connection.execute(text(sql), parameters).all()


def audit(core: Core, acknowledged: int | None = None) -> None:
    """Check the books. `acknowledged` is the number of tasks that an enqueue ever reported as new."""
    (seen,) = core.rows(
        "SELECT count(*) AS tasks, count(DISTINCT id) AS ids, count(*) FILTER (WHERE status IN"
        " ('pending', 'processing', 'scheduled')) AS live,"
        " count(DISTINCT (data_type, symbol, window_start, window_end)) FILTER (WHERE status IN"
        " ('pending', 'processing', 'scheduled')) AS live_keys FROM pricing.api_call_queue"
    )
    assert seen.tasks == seen.ids, "an id is in two table partitions"
    assert seen.live == seen.live_keys, "the same work is live twice"
    if acknowledged is not None:
        assert seen.tasks == acknowledged, "an acknowledged task is lost, or one appeared from nowhere"

    assert _orphans(core, "latest_prices") == []
    assert _orphans(core, "price_history") == []
    assert _orphans(core, "documents") == []
    assert _orphans(core, "confirmed_pairs") == []
    assert (
        core.rows(
            "SELECT data_type, symbol, amount FROM pricing.latest_prices l WHERE NOT EXISTS ("
            "SELECT FROM pricing.price_history h WHERE (h.data_type, h.symbol, h.observed_at)"
            " = (l.data_type, l.symbol, l.observed_at) AND pricing.same_amount(h.amount, h.scale, l.amount, l.scale))"
        )
        == []
    ), "a latest price is not in its history"

    for books in core.rows(
        "SELECT p.provider, pricing.bytes_used(p.provider, pricing.clock()) AS used,"
        " coalesce(sum(c.wire_bytes), 0) AS settled,"
        " coalesce(sum(c.reserved_bytes) FILTER (WHERE c.finished_at IS NULL), 0) AS reserved"
        " FROM pricing.data_collectors p LEFT JOIN pricing.collector_call_log c USING (provider) GROUP BY 1"
    ):
        assert books.used == books.settled + books.reserved, f"the quota's books of {books.provider} are wrong"


def _orphans(core: Core, table: str) -> list[object]:
    """What no successful call accounts for: of its type, or of slots on more days, which serves several types."""
    return list(
        core.rows(
            f"SELECT p.data_type, p.symbol, p.call_id FROM pricing.{table} p WHERE NOT EXISTS ("
            "SELECT FROM pricing.collector_call_log c WHERE c.call_id = p.call_id AND c.outcome = 'ok'"
            " AND p.symbol = ANY (c.symbols) AND (c.data_type = p.data_type OR EXISTS ("
            "SELECT FROM pricing.data_type_registry wide JOIN pricing.data_type_registry narrow"
            " ON narrow.data_type = p.data_type AND narrow.days_ahead <= wide.days_ahead"
            " WHERE wide.data_type = c.data_type)))"
        )
    )
