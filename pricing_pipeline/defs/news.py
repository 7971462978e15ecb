"""Materializations that say which version of the data an asset has, and whether an instance has reported it."""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg

from pricing_pipeline.defs.tables import Metadata
from pricing_pipeline.prices.changes import DataVersion

DATA_VERSION = "dagster/data_version"
"""Dagster's tag of the version of an asset's data."""
EVER = "changes_ever"


def materialization(
    key: dg.AssetKey,
    version: DataVersion | None,
    last: LastReport,
    metadata: Metadata,
    partition: str | None = None,
) -> dg.AssetMaterialization:
    """The event that an asset has this version of its data (None = nothing of it ever changed).

    Its metadata also counts the values that have changed since the instance was last told, and ever.
    """
    ever = version.changes if version else 0
    new = ever - last.changes if ever >= last.changes else ever
    counts: Metadata = {"changes": dg.MetadataValue.int(new), EVER: dg.MetadataValue.int(ever)}
    tags = {DATA_VERSION: str(version.version if version else 0)}
    return dg.AssetMaterialization(key, partition=partition, metadata={**counts, **metadata}, tags=tags)


@dataclass(frozen=True, slots=True)
class LastReport:
    """The last report of an instance about an asset or a partition: the version, and its count of changes.

    Both are empty if it was never told.
    """

    version: str = ""
    changes: int = 0

    def is_of(self, version: DataVersion) -> bool:
        return self.version == str(version.version)


def last_report(instance: dg.DagsterInstance, key: dg.AssetKey, partition: str | None = None) -> LastReport:
    """What the instance last reported of an asset, or of a partition of it."""
    wanted = dg.AssetRecordsFilter(key, asset_partitions=[partition] if partition else None)
    for record in instance.fetch_materializations(wanted, limit=1).records:
        event = record.asset_materialization
        if event is not None:
            changes = event.metadata.get(EVER)
            ever = changes.value if isinstance(changes, dg.IntMetadataValue) else None
            return LastReport((event.tags or {}).get(DATA_VERSION, ""), ever or 0)
    return LastReport()
