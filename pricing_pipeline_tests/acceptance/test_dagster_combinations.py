"""Whatever is set and registered, the code location loads whole."""

from __future__ import annotations

import logging
from typing import Any

import dagster as dg
import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.data_types import Contents, Fetcher
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.dagster import Stage
from pricing_pipeline_tests.support.pairwise import pairwise

KINDS = {
    "price": ("quote", "equity", None),
    "document": ("profile", "equity", None),
    "slots": ("slots", "inventory", 7),
    "commodity": ("terminal_prices", "commodity", None),
}
"""Fetcher, asset class and days ahead of data types of each kind of contents."""
SOME = 2
"""How many types of each kind there are."""
FACTORS: dict[str, list[Any]] = {
    "types": ["none", *(f"{kind}_1" for kind in KINDS), "all"],
    "off": [None, "twelvedata", "uex"],
    "exports": [None, "history", "s3://bucket/prices?region=eu-central-1"],
    "schedule": [None, "30 6 * * *"],
    "drains": [1, 100],
    "page": [None, "https://prices.example.com/ops"],
    "sandbox": [True, False],
}
PROVIDERS = ("twelvedata", "mfapi", "fmp", "octo", "headout", "uex", "yahoo")
SENSORS = {
    "refresh_watched",
    "report_prices",
    "report_sources",
    "report_alerts",
    "follow_registry",
    "prune_dagster",
    "extend_calendars",
    "end_silent_runs",
    "note_failures",
}


def add_types(core: Core) -> dict[str, Contents]:
    """Have some data types of each kind, and no other; returns what they consist of."""
    core.rows("UPDATE pricing.data_type_registry SET is_active = false")
    for kind, (fetcher, asset_class, days) in KINDS.items():
        core.rows(
            "INSERT INTO pricing.data_type_registry"
            " (data_type, fetcher, asset_class, days_ahead, default_ttl_minutes, is_active)"
            " SELECT :kind || '_' || number, :fetcher, :asset_class, :days, 5, false"
            " FROM generate_series(1, :count) number RETURNING data_type",
            kind=kind,
            fetcher=fetcher,
            asset_class=asset_class,
            days=days,
            count=SOME,
        )
    return {
        f"{kind}_{number}": Fetcher(fetcher).contents
        for kind, (fetcher, *_) in KINDS.items()
        for number in range(1, SOME + 1)
    }


def put(core: Core, monkeypatch: pytest.MonkeyPatch, combination: dict[str, Any]) -> None:
    """Set and register what a combination says."""
    core.rows(
        "UPDATE pricing.data_type_registry SET is_active = (:types IN ('all', data_type)),"
        " refresh_strategy = CASE WHEN CAST(:cron AS text) IS NULL THEN 'on-demand' ELSE 'scheduled' END,"
        " refresh_schedule = :cron WHERE data_type ~ '_[0-9]+$'",
        types=combination["types"],
        cron=combination["schedule"],
    )
    core.rows(
        "UPDATE pricing.data_collectors SET is_active = (provider IS DISTINCT FROM :off)",
        off=combination["off"],
    )
    for name, value in {
        "EXPORT_URL": combination["exports"],
        "MAX_DRAINS": combination["drains"],
        "PAGE_URL": combination["page"],
        "SANDBOX": str(combination["sandbox"]).lower(),
    }.items():
        monkeypatch.setenv(f"PRICING_{name}", "" if value is None else str(value))


def missing(stage: Stage, combination: dict[str, Any], types: dict[str, Contents]) -> set[str]:
    """What the loaded definitions lack, or have without being asked for it."""
    stage.reload()
    dg.Definitions.validate_loadable(stage.definitions)
    found = {"/".join(key.path) for key in stage.repository.asset_graph.get_all_asset_keys()}
    found |= {sensor.name for sensor in stage.repository.sensor_defs}
    found |= {schedule.name for schedule in stage.repository.schedule_defs}
    if not types:
        return found ^ {"follow_registry"}
    has_lists = Contents.COMMODITIES in types.values()
    prices = {name for name, contents in types.items() if contents is Contents.PRICES}
    exported = {f"exported_history/{name}" for name in prices if combination["exports"]}
    prefixes = {
        Contents.PRICES: "price_history",
        Contents.DOCUMENTS: "document",
        Contents.INVENTORY: "inventory",
        Contents.COMMODITIES: "commodity",
    }
    return found ^ {
        *(f"{kind}/{name}" for name in types for kind in ("latest_price", "freshness")),
        *(f"{prefixes[contents]}/{name}" for name, contents in types.items()),
        *(f"provider/{name}" for name in PROVIDERS),
        *(f"{name}_schedule" for name in types if combination["schedule"]),
        *(("commodity_lists", "sync_commodities") if has_lists else ()),
        *exported,
        *(["export_history"] if exported else ()),
        *SENSORS,
        "active_subscriptions",
        "check_prices",
    }


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Each type that has no schedule is warned of, in a line of its own."""
    caplog.set_level(logging.ERROR)


def test_b1_every_combination_of_settings_and_registry_loads_whole(
    quiet: None, stage: Stage, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_types = add_types(core)
    faults = {}
    for combination in pairwise(FACTORS):
        put(core, monkeypatch, combination)
        types = {name: contents for name, contents in all_types.items() if combination["types"] in ("all", name)}
        try:
            if lacks := missing(stage, combination, types):
                faults[str(combination)] = str(sorted(lacks)[:10])
        except Exception as error:
            faults[str(combination)] = f"{type(error).__name__}: {error}"
    assert not faults, "\n".join(f"{combination}: {fault}" for combination, fault in faults.items())


@pytest.mark.parametrize("first", ["1800-01-01", "2999-12-31"])
def test_b1_the_utmost_that_the_registry_takes_loads(
    quiet: None, stage: Stage, core: Core, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    types = add_types(core)
    everything = {name: values[1] for name, values in FACTORS.items()} | {"types": "all", "off": None}
    put(core, monkeypatch, everything)
    core.rows(
        "UPDATE pricing.data_type_registry SET default_ttl_minutes = 2147483647,"
        " history_from = CASE WHEN contents = 'prices' AND fetcher <> 'quote' THEN CAST(:first AS date) END,"
        " description = repeat(chr(1) || '<b>{}%s', 1000)",
        first=first,
    )
    assert missing(stage, everything, types) == set()


@pytest.mark.parametrize("first", ["0999-12-31", "1799-12-31", "-infinity", "infinity", "3000-01-01"])
def test_b1_the_registry_refuses_history_from_a_day_that_does_not_load(core: Core, first: str) -> None:
    with pytest.raises(DBAPIError, match="history_begins_within_reason"):
        core.rows(f"UPDATE pricing.data_type_registry SET history_from = '{first}' WHERE fetcher = 'nav'")
