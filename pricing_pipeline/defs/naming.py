"""What our definitions are called in a code location: the one place for the keys of assets and for all other names.

A user's project may hold our definitions beside its own, and those of two pricing databases. So each set of them has a
prefix, and whatever Dagster tells apart by its name begins with it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.errors import SettingsError
from pricing_pipeline.settings import PREFIX_PART, Settings

REFRESH_JOB, CHECKS_JOB, SYNC_JOB, EXPORT_JOB = (
    "refresh",
    "check_prices",
    "sync_commodities",
    "export_history",
)
REFRESH_OP = "refresh_prices"
"""The step that fetches."""

UNREAD_LISTS = "unread_lists"
"""The check of the lists of commodities."""

_HISTORY = "price_history"
_STORED = {
    Contents.PRICES: _HISTORY,
    Contents.DOCUMENTS: "document",
    Contents.INVENTORY: "inventory",
    Contents.COMMODITIES: "commodity",
}


@dataclass(frozen=True, slots=True)
class Naming:
    """Keys and names under a prefix. `prefix` is what the key of each asset begins with; none, if it is empty."""

    prefix: tuple[str, ...] = ()

    @classmethod
    def under(cls, prefix: str | Sequence[str] | None) -> "Naming":
        """The names under a prefix such as "prices", "eu/prices" or ["eu", "prices"].

        Raises SettingsError for one that Dagster could not use in the name of a job.
        """
        parts = prefix.split("/") if isinstance(prefix, str) else list(prefix or ())
        if unfit := [part for part in parts if not (isinstance(part, str) and re.fullmatch(PREFIX_PART, part))]:
            raise SettingsError(
                f"The prefix {prefix!r} cannot be used because of {unfit[0]!r}: Dagster's names of jobs and sensors "
                "begin with it. Write parts of letters, digits and underscores that begin with a letter, such as "
                '"prices" or "eu/prices".'
            )
        return cls(tuple(parts))

    @classmethod
    def of(cls, settings: Settings, prefix: str | Sequence[str] | None = None) -> "Naming":
        """The names under a prefix, or under that of the settings.

        Raises SettingsError if both are given and differ: commands and the HTTP API would look for other assets.
        """
        theirs = cls.under(settings.asset_prefix)
        naming = theirs if prefix is None else cls.under(prefix)
        if settings.asset_prefix is not None and naming != theirs:
            raise SettingsError(
                f"The prefix {prefix!r} is not the one of the settings, {settings.asset_prefix!r} in "
                "PRICING_ASSET_PREFIX, by which commands and the HTTP API know the assets. Leave one of them out, or "
                "make them the same."
            )
        return naming

    def name(self, name: str) -> str:
        """The name of one of our jobs, schedules, sensors, ops, groups and resources."""
        return "_".join([*self.prefix, name])

    @property
    def subscriptions(self) -> dg.AssetKey:
        return self._key("active_subscriptions")

    @property
    def commodity_lists(self) -> dg.AssetKey:
        return self._key("commodity_lists")

    def provider_key(self, provider: str) -> dg.AssetKey:
        return self._key("provider", provider)

    def history_key(self, data_type: str) -> dg.AssetKey:
        return self._key(_HISTORY, data_type)

    def export_key(self, data_type: str) -> dg.AssetKey:
        """The asset of the files of a history."""
        return self._key("exported_history", data_type)

    def stored_key(self, type_: DataType) -> dg.AssetKey:
        """The asset of a data type's stored data, which runs materialize."""
        return self._key(_STORED[type_.contents], type_.data_type)

    def latest_key(self, data_type: str) -> dg.AssetKey:
        return self._key("latest_price", data_type)

    def freshness_key(self, data_type: str) -> dg.AssetKey:
        """The asset that has the freshness policy of a data type."""
        return self._key("freshness", data_type)

    def is_stored(self, key: dg.AssetKey) -> bool:
        """Whether a key is one that `stored_key` makes."""
        return [*key.path[:-1]] in ([*self.prefix, kind] for kind in _STORED.values())

    @property
    def jobs(self) -> frozenset[str]:
        """The names of all our jobs."""
        return frozenset(map(self.name, (REFRESH_JOB, CHECKS_JOB, SYNC_JOB, EXPORT_JOB)))

    def _key(self, *path: str) -> dg.AssetKey:
        return dg.AssetKey([*self.prefix, *path])


PLAIN = Naming()
"""The names in the code location of `pricing-pipeline up`: without a prefix."""
