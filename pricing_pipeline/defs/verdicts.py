"""What checks conclude, and the rules of the checks of slots and commodities. Those of prices are in checks.py."""

from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg
from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.defs.tables import Metadata


@dataclass(frozen=True)
class Verdict:
    """The result of a check for one data type. A fault fails it as a warning, a grave fault as an error.

    `place` is where the operations page tells more, by the id of its element.
    """

    sentence: str
    numbers: Metadata
    is_fault: bool = False
    is_grave: bool = False
    place: str | None = None


def numbers_of(**counts: int) -> Metadata:
    """Counts as metadata."""
    return {name: dg.MetadataValue.int(count) for name, count in counts.items()}


def examples_of(examples: Sequence[str] | None) -> Metadata:
    """A few examples as metadata; none without any."""
    return {"examples": dg.MetadataValue.text("; ".join(examples))} if examples else {}


def vanished_slots(connection: Connection, names: Sequence[str]) -> dict[str, Verdict]:
    """Whether a product has lost more than half of its slots within a day, by data type."""
    rows = connection.execute(query("samples.vanished_slots"), {"data_types": list(names)}).all()
    verdicts = {name: Verdict("No slots are stored.", {}) for name in names}
    for row in rows:
        emptied = row.emptied or []
        sentence = f"{row.vanished} of {row.listed + row.vanished} slots vanished within a day."
        if emptied:
            sentence += f" More than half vanished of {len(emptied)} products, such as {emptied[0]}."
        numbers = numbers_of(listed=row.listed, vanished=row.vanished, products_emptied=len(emptied))
        verdicts[row.data_type] = Verdict(sentence, numbers | examples_of(emptied[:8]), is_fault=bool(emptied))
    return verdicts


def game_version(connection: Connection, names: Sequence[str]) -> dict[str, Verdict]:
    """Whether most prices of commodities are of the version of the game that people play."""
    row = connection.execute(query("samples.old_versions")).one()
    version = row.version or "unknown"
    verdict = Verdict(
        f"{row.prices - row.older} of {row.prices} prices are of version {version}, which people play.",
        numbers_of(prices=row.prices, of_older_versions=row.older),
        is_fault=2 * row.older > row.prices,
    )
    return dict.fromkeys(names, verdict)
