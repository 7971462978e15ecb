"""`task list`, `type list|add`, `db upgrade`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest

import pricing_pipeline
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.registry import calendars
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import TestServer

MIGRATIONS = Path(pricing_pipeline.__file__).parent.parent / "migrations" / "versions"
NAMES = ["equity_daily", "equity_quote", "fx_rate", "mf_nav"]


# task list


def test_b9_the_queue_is_listed_by_status(cli: CommandLine, core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.complete(core.claim_one())
    core.enqueue(QUOTE, "IBM")
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "never heard of it")
    core.enqueue(QUOTE, "META")
    core.enqueue(QUOTE, "GOOG", priority=5)

    def listed(*options: str) -> list[tuple[str, str]]:
        tasks = cli("task", "list", "--json", *options).json["tasks"]
        return [(task["symbol"], task["status"]) for task in tasks]

    # In the order in which they are taken; what is done shows only on demand.
    assert listed() == [("GOOG", "pending"), ("META", "pending"), ("IBM", "failed")]
    assert listed("--limit", "1") == [("GOOG", "pending")]
    assert listed("--status", "failed") == [("IBM", "failed")]
    assert listed("--status", "completed", "--status", "failed") == [("IBM", "failed"), ("AAPL", "completed")]
    assert listed("--status", "cancelled") == []


def test_a8_a_failed_task_tells_why(cli: CommandLine, core: Core) -> None:
    core.enqueue(QUOTE, "IBM")
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "never heard of it")
    (task,) = cli("task", "list", "--json").json["tasks"]
    assert task.keys() == {
        *("id", "data_type", "symbol", "window_start", "window_end", "provider", "status", "priority"),
        *("attempt", "max_attempts", "enqueued_at", "run_after", "finished_at", "failure_kind", "last_error"),
    }
    assert task["failure_kind"] == "unknown_symbol"
    assert task["last_error"] == "never heard of it"
    assert task["finished_at"].endswith("Z")
    assert task["window_start"] is None
    table = cli("task", "list").stdout
    assert "never heard of it" in table
    assert "1 of 4" in table


def test_an_empty_queue_says_so(cli: CommandLine) -> None:
    assert "no task is pending or processing or scheduled or failed." in cli("task", "list").stdout
    assert cli("task", "list", "--json").json == {"tasks": []}
    assert "'stuck' is not one of" in cli("task", "list", "--status", "stuck").error
    assert "--limit" in cli("task", "list", "--limit", "0").error
    assert "Value error" not in cli("task", "list", "--status", "stuck").error
    assert "should be a valid integer. See" in cli("task", "show", "abc").error


# registry


def test_b1_the_registry_is_listed(cli: CommandLine) -> None:
    kinds = {kind["data_type"]: kind for kind in cli("type", "list", "--json").json["data_types"]}
    assert list(kinds) == NAMES
    assert kinds["mf_nav"] == {
        "data_type": "mf_nav",
        "description": "Net asset value of an Indian mutual fund, published once a day.",
        "fetcher": "nav",
        "asset_class": "fund",
        "table_name": "latest_price_mf_nav",
        "history_from": "2006-04-01",
        "ttl_minutes": 1440,
        "strategy": "scheduled",
        "schedule": "30 23 * * *",
        "timezone": "Asia/Kolkata",
        "background_ttl_minutes": 1440,
        "owner": None,
        "contents": "prices",
        "days_ahead": None,
        "has_own_table": False,
    }
    table = cli("type", "list").stdout
    assert "30 23 * * * (Asia/Kolkata)" in table
    assert "on demand" in table


def test_b1_a_data_type_is_added_with_its_storage(cli: CommandLine, core: Core) -> None:
    said = cli(
        *("type", "add", "crypto_quote", "--fetcher", "quote", "--ttl", "5", "--asset-class", "crypto"),
        *("--schedule", "0 6 * * 1-5", "--timezone", "Europe/Berlin"),
        *("--description", "Coins.", "--background-ttl", "720"),
        *("--owner", "team:quants", "--json"),
    )
    assert said.exit_code == 0
    assert said.json == {
        "data_type": "crypto_quote",
        "description": "Coins.",
        "fetcher": "quote",
        "asset_class": "crypto",
        "table_name": "latest_price_crypto_quote",
        "history_from": None,
        "ttl_minutes": 5,
        "strategy": "scheduled",
        "schedule": "0 6 * * 1-5",
        "timezone": "Europe/Berlin",
        "background_ttl_minutes": 720,
        "owner": "team:quants",
        "contents": "prices",
        "days_ahead": None,
        "has_own_table": False,
    }
    assert said.json in cli("type", "list", "--json").json["data_types"]
    assert core.rows("SELECT FROM pricing.latest_price_crypto_quote") == []


def test_b1_a_type_on_demand_needs_three_words(cli: CommandLine) -> None:
    said = cli("type", "add", "share", "--fetcher", "quote", "--ttl", "1")
    assert said.stdout.startswith("share is added; ")
    (kind,) = [k for k in cli("type", "list", "--json").json["data_types"] if k["data_type"] == "share"]
    assert (kind["asset_class"], kind["strategy"], kind["schedule"]) == ("equity", "on-demand", None)


def test_b2_what_the_registry_refuses_is_said_in_one_sentence(cli: CommandLine, core: Core) -> None:
    for name, options, code, words in (
        ("fx_rate", {}, 1, "'fx_rate' is not added: a data type of this name already exists"),
        ("Fx", {}, 1, "small letters"),
        ("new", {"--asset-class": "a b"}, 1, "an asset class has"),
        ("new", {"--timezone": "Mars"}, 1, "unknown time zone Mars"),
        ("new", {"--ttl": "soon"}, 2, "--ttl"),
        ("new", {"--ttl": "99999999999"}, 1, "larger than the database can hold"),
        ("new", {"--fetcher": "guess"}, 2, "'quote', 'daily_bars', 'nav'"),
        (
            "new",
            {"--schedule": "61 * * * *"},
            1,
            "'new' is not added: data type new: the schedule '61 * * * *' is not a cron expression",
        ),
        ("new", {"--schedule": "* * * * * *"}, 1, "not a cron expression"),
        ("new", {"--schedule": "0 0 30 2 1"}, 1, "a day that never comes"),
        ("new", {"--history-from": "then"}, 2, "--history-from"),
        (
            "new",
            {"--history-from": "2015-01"},
            1,
            "a quote is the current price, and a data type of daily bars has the",
        ),
    ):
        given = {"--fetcher": "quote", "--ttl": "1"} | options
        said = cli("type", "add", name, *(word for pair in given.items() for word in pair))
        assert said.exit_code == code
        assert words in said.error
        assert core.one("SELECT array_agg(data_type ORDER BY data_type) FROM pricing.data_type_registry") == NAMES


def test_b2_a_quote_gets_no_first_day_that_no_backfill_would_take(cli: CommandLine) -> None:
    said = cli("type", "change", "fx_rate", "--history-from", "2015-01-01")
    assert said.exit_code == 1
    assert "a quote is the current price" in said.error
    assert cli("type", "change", "mf_nav", "--history-from", "2015-01-01").exit_code == 0


# db upgrade


def test_db_upgrade_says_which_database_is_at_which_migration_and_what_its_roles_lack(
    cli: CommandLine, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it makes an empty database usable: faults/test_upgrades.py. That it fills calendars: test_calendars.py."""
    monkeypatch.setattr(calendars, "extend", lambda *_, **__: SimpleNamespace(failed={}))
    said = cli("db", "upgrade", "--json", database_url=owner_url)
    assert said.exit_code == 0
    assert said.json["revision"] == max(path.name[:4] for path in MIGRATIONS.glob("*.sql"))
    assert "***" in said.json["database"]
    (fault,) = said.json["role_faults"]
    assert fault["remedy"].startswith("ALTER ROLE pricing_worker LOGIN PASSWORD")


def test_a_registry_without_types_is_said_to_be_empty(cli: CommandLine, core: Core) -> None:
    core.rows("DELETE FROM pricing.data_type_registry")
    assert cli("type", "list", "--json").json == {"data_types": []}
    assert "is empty" in cli("type", "list").stdout


def test_a_database_without_our_schema_says_how_it_is_made(cli: CommandLine, server: TestServer) -> None:
    name = f"pricing_empty_{uuid4().hex[:12]}"
    server.create(name, "template1")
    try:
        assert "Run `pricing-pipeline db upgrade`." in cli("type", "list", database_url=server.url(name)).error
    finally:
        server.drop(name)


def test_db_upgrade_is_for_the_owner(cli: CommandLine, database_url: str) -> None:
    said = cli("db", "upgrade", owner_url="postgresql://ann:secret@127.0.0.1:1/pricing")
    assert "does not answer" in said.error
    assert "secret" not in said.stderr
    said = cli(
        *("type", "add", "new", "--fetcher", "quote", "--ttl", "1"),
        owner_url="postgresql://ann:secret@127.0.0.1:1/pricing",
    )
    assert "does not answer" in said.error
