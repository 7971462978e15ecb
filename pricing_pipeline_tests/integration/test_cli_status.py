"""`status`: what runs, who watches, how fresh it is, what is still allowed; never a password."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import make_url

from pricing_pipeline.cli import reads
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock, TestServer

pytestmark = pytest.mark.usefixtures("still")

URLS = {"dagster": "http://127.0.0.1:3000", "sandbox": "http://127.0.0.1:8100"}
PROCESSES = {"dagster-daemon": {"pid": 4711, "restarts": 2, "log": "/somewhere/daemon.log"}}
KEYS = {
    "unqueued",
    "notifier",
    "refetches",
    "waiting_schedules",
    "left_out",
    *("running", "started_at", "first_price_seconds", "watched", "fresh", "due", "late", "refused", "types"),
    *("paused", "source_old"),
    *(
        "queue",
        "quota",
        "budget",
        "forecast",
        "no_provider",
        "shown_limits",
        "warnings",
        "quarantine",
        "urls",
        "processes",
        "home",
        "database",
        "role_faults",
        "sandbox",
        "error",
        "health",
        "alerts",
        "recipients_unreached",
    ),
}


def test_b21_status_says_how_many_alerts_are_open(cli: CommandLine, core: Core) -> None:
    assert "alerts:" not in cli("status").stdout
    core.rows(
        "INSERT INTO pricing.alerts (rule, subject, severity, says, since, last_seen_at, raised_at)"
        " SELECT rule, 'twelvedata', severity, 'odd', now_, now_, now_"
        " FROM (VALUES ('breaker_open', 'P1'), ('quota_short', 'P1'), ('limit_near', 'P2')) v (rule, severity),"
        " pricing.clock() AS now_"
    )
    assert "alerts:      2 P1, 1 P2; `pricing-pipeline alert list` shows them" in cli("status").stdout
    assert [alert["rule"] for alert in cli("status", "--json").json["alerts"]][-1] == "limit_near"


def test_g3_watched_pairs_are_counted_as_fresh_due_and_late(cli: CommandLine, core: Core, clock: Clock) -> None:
    clock.set(datetime(2026, 3, 2, 15, tzinfo=UTC))
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"), (DAILY, "AAPL"))
    core.refresh()
    clock.advance(50)
    core.enqueue(QUOTE, "IBM")
    core.refresh()
    clock.advance(45)
    core.enqueue_due()
    content = cli("status", "--json").json
    assert content.keys() == KEYS
    counts = ("watched", "fresh", "due", "late", "refused")
    assert [content[name] for name in counts] == [3, 2, 0, 1, 0]
    assert [content["types"][QUOTE][name] for name in counts] == [2, 1, 0, 1, 0]
    assert [content["types"][DAILY][name] for name in counts] == [1, 1, 0, 0, 0]
    assert content["types"][QUOTE]["ttl_minutes"] == 1
    assert content["types"][QUOTE]["oldest_fetched_at"].startswith("2026-03-02T15:00:")
    assert content["types"]["fx_rate"]["oldest_fetched_at"] is None
    assert content["queue"] == {"pending": 1, "processing": 0, "scheduled": 0, "dead": 0}
    assert content["quota"]["twelvedata"] | {"used_bytes": 0, "left_bytes": 0} == {
        "quota_bytes": 20 * 2**30,
        "used_bytes": 0,
        "left_bytes": 0,
        "is_spent": False,
        "units_left": 1999,
        "units_limit": 2000,
        "no_units": None,
        "next_unit_at": None,
        "blocked_seconds": None,
        "blocked_reason": None,
        "breaker": "closed",
        "breaker_seconds": None,
        "breaker_reason": None,
        "outages": None,
        "stop": None,
        "unannounced_calls": 0,
        "keys": {
            "default": {
                "is_active": True,
                "units_left": 1999,
                "units_limit": 2000,
                "blocked_seconds": None,
                "blocked_reason": None,
            }
        },
    }
    used, left = (content["quota"]["twelvedata"][name] for name in ("used_bytes", "left_bytes"))
    assert used > 0
    assert used + left == 20 * 2**30


def test_b10_a_blocked_provider_and_dead_tasks_are_seen(cli: CommandLine, core: Core) -> None:
    core.throttle("twelvedata", 40)
    core.enqueue("fx_rate", "EUR/USD")
    core.rows("UPDATE pricing.provider_routing SET is_active = false WHERE data_type = 'mf_nav'")
    core.enqueue("mf_nav", "118632")
    content = cli("status", "--json").json
    assert 0 < content["quota"]["twelvedata"]["blocked_seconds"] <= 40
    assert content["quota"]["twelvedata"]["blocked_reason"] == "too fast"
    assert content["queue"] == {"pending": 1, "processing": 0, "scheduled": 0, "dead": 1}
    assert "too fast" in cli("status").stdout


def test_b10_a_limit_that_is_used_up_is_named_with_the_time_of_its_next_unit(
    cli: CommandLine, core: Core, clock: Clock
) -> None:
    """The limit of the minute has room; that of the day binds."""
    clock.set(datetime(2026, 3, 1, 16, 20, tzinfo=UTC))  # a Sunday: nothing is spread
    core.rows(
        "INSERT INTO pricing.provider_limits (provider, name, units, day_timezone)"
        " VALUES ('twelvedata', 'day', 3, 'UTC')"
    )
    core.enqueue(QUOTE, "AAPL", "IBM", "META")
    core.refresh()
    quota = cli("status", "--json").json["quota"]
    assert (quota["twelvedata"]["units_left"], quota["yahoo"]["no_units"]) == (0, None)
    assert quota["twelvedata"]["next_unit_at"] == "2026-03-02T00:00:00Z"
    said = cli("status").stdout
    sentence = "twelvedata allows 3 units in a day, and 3 are used; the next come at 2026-03-02 00:00:00 UTC, in 7 h "
    assert quota["twelvedata"]["no_units"].startswith(sentence)
    assert f"used up:     {sentence}" in said
    assert sentence[1:] in " ".join(cli("provider", "show", "twelvedata").stdout.split())


def test_b10_a_quota_that_is_spent_is_said_to_be(cli: CommandLine, core: Core) -> None:
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100000 WHERE provider = 'twelvedata'")
    core.enqueue(QUOTE, "AAPL", "IBM")
    core.settle(core.claim_one(), wire_bytes=94_999)
    assert cli("status", "--json").json["quota"]["twelvedata"]["stop"] is None
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 99999 WHERE provider = 'twelvedata'")
    spent = cli("status", "--json").json["quota"]["twelvedata"]
    assert spent["is_spent"]
    assert spent["stop"].startswith("twelvedata: the quota of twelvedata is spent: 94999 of the 94905 bytes that such ")
    assert f"blocked:     {spent['stop']}." in cli("status").stdout
    core.enqueue(QUOTE, "META")
    assert core.claim() == []


def test_b10_a_provider_with_a_blocked_key_and_a_used_up_one_is_rate_limited(cli: CommandLine, core: Core) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 1 WHERE provider = 'twelvedata'")
    core.call("SELECT pricing.register_keys('twelvedata', '{default,second}')")
    core.enqueue(QUOTE, "AAPL")
    core.throttle("twelvedata", 40, "second")
    core.claim_one()
    assert core.allowance().state == "rate_limited"
    assert "used up:     twelvedata allows 1 unit in " in cli("status").stdout


def test_b16_breakers_blocked_keys_and_a_budget_that_is_too_small_are_seen(
    cli: CommandLine, core: Core, clock: Clock
) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 2 WHERE provider = 'twelvedata'")
    core.call("SELECT pricing.register_keys('twelvedata', '{default,second}')")
    core.throttle("twelvedata", 40, "second")
    core.heartbeat("ann", *((QUOTE, f"S{number}") for number in range(9)))
    content = cli("status", "--json").json
    assert content["budget"]["twelvedata"]["units_needed_per_minute"] == 9
    assert content["budget"]["twelvedata"]["units_allowed_per_minute"] == 4
    said = cli("status").stdout
    assert "key second for " in said
    assert "warning:     twelvedata cannot serve the 9 watched or held pairs" in said
    core.one("SELECT pricing.open_breaker('twelvedata', '10 of 12 calls failed')")
    assert cli("status", "--json").json["quota"]["twelvedata"]["breaker"] == "open"
    assert "blocked:     twelvedata: the breaker of twelvedata is open since " in cli("status").stdout


def test_g5_the_first_price_counts_from_the_start_and_only_from_a_run(
    cli: CommandLine, core: Core, clock: Clock
) -> None:
    begin = datetime(2026, 3, 2, 15, tzinfo=UTC)
    started_at = begin + timedelta(seconds=5)

    def fetch(symbol: str, run_id: str | None) -> datetime | None:
        """Returns when the first price came, as it is then known."""
        core.enqueue(QUOTE, symbol)
        core.refresh()
        core.rows(
            "UPDATE pricing.collector_call_log SET run_id = :run_id WHERE symbols = ARRAY[:symbol]",
            run_id=run_id,
            symbol=symbol,
        )
        with core.engine.connect() as connection:
            return reads.first_price(connection, started_at)

    clock.set(begin)
    assert fetch("AAPL", "before the start") is None
    clock.advance(10)
    assert fetch("IBM", None) is None
    clock.advance(10)
    first = fetch("META", "a run")
    clock.advance(100)
    assert fetch("GOOG", "a later run") == first
    assert cli("status", "--json").json["first_price_seconds"] is None
    with cli.running(started_at=started_at.isoformat()):
        seconds = cli("status", "--json").json["first_price_seconds"]
        assert 15 <= seconds < 25
        assert f"{seconds:.1f} s after the start" in cli("status").stdout


def test_what_the_supervisor_recorded_is_told(cli: CommandLine) -> None:
    content = cli("status", "--json").json
    assert (content["running"], content["urls"], content["processes"]) == (False, {}, {})
    facts = {
        "started_at": "2026-03-02T15:00:00+00:00",
        "urls": URLS,
        "processes": PROCESSES,
        "sandbox": False,
    }
    with cli.running(**facts):
        content = cli("status", "--json").json
        lines = cli("status").stdout
    assert content["running"] is True
    assert content["started_at"] == "2026-03-02T15:00:00Z"
    assert (content["urls"], content["processes"]) == (URLS, PROCESSES)
    assert content["sandbox"] is False
    for word in (*URLS.values(), "dagster-daemon", "4711", "the real providers", "running for"):
        assert word in lines


def test_processes_that_run_without_up_are_not_said_to_stand_still(cli: CommandLine) -> None:
    """Their database is somebody's own server, and nobody has noted them in a home."""
    assert "no `up` runs here; `pricing-pipeline status --check`" in cli("status").stdout


def test_the_database_is_named_without_its_password(cli: CommandLine, database_url: str) -> None:
    password = make_url(database_url).password
    assert isinstance(password, str)
    hidden = make_url(database_url).update_query_dict({"password": password}).set(password=None)
    for url, options in ((database_url, []), (hidden.render_as_string(hide_password=False), ["--json"])):
        said = cli("status", *options, database_url=url)
        assert said.exit_code == 0
        assert password not in said.stdout + said.stderr
    content = said.json
    assert make_url(content["database"]["url"]).database == make_url(database_url).database
    assert content["database"]["folder"] is None
    assert content["home"] == str(cli.home)


def test_it_tells_what_it_can_while_the_database_is_away(cli: CommandLine) -> None:
    with cli.running(started_at="2026-03-02T15:00:00+00:00", urls=URLS, processes=PROCESSES):
        said = cli("status", "--json", database_url="postgresql://ann:secret@127.0.0.1:1/pricing")
    assert said.exit_code == 1
    assert said.stderr.startswith("error: the database at ")
    content = said.json
    assert content.keys() == KEYS
    assert f"error: {content['error']}\n" == said.stderr
    assert content["processes"] == PROCESSES
    assert content["watched"] is None
    assert "secret" not in said.stdout + said.stderr


def test_a_home_without_a_database_says_how_to_start_one(cli: CommandLine, tmp_path: Path) -> None:
    home = tmp_path / "no such home"
    for command in (["status"], ["price", "show", "AAPL"], ["db", "upgrade"]):
        said = cli(*command, database_url="", owner_url="", home=str(home))
        assert said.exit_code == 1
        (line,) = said.stderr.splitlines()
        assert line.startswith(f"error: the home {home} does not exist. Set PRICING_HOME to")
        assert "pricing-pipeline up" in line
        assert not home.exists()


def test_b2_one_role_for_all_is_said_with_its_remedy(
    cli: CommandLine, server: TestServer, database_url: str, owner_url: str
) -> None:
    """A role that may not make roles works alone; what an administrator would do about it stands beside it."""
    assert cli("status", "--json").json["role_faults"] == []
    assert "not separated" not in cli("status").stdout
    (fault,) = cli("status", "--json", database_url=owner_url).json["role_faults"]
    assert "names pricing_owner, which may do everything" in fault["fault"]
    assert fault["remedy"].startswith("ALTER ROLE pricing_worker LOGIN PASSWORD")
    said = cli("status", database_url=owner_url).stdout
    assert "not separated. As an administrator" in said
    assert fault["remedy"] in said
