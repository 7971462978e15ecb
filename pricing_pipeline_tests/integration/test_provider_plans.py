"""`provider use` and `provider undo`: plans as data, written with one command and taken back with another."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from pricing_pipeline import sample
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.registry import plans
from pricing_pipeline_tests.fixtures.cli import CommandLine, Said
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock, bare_template
from pricing_pipeline_tests.support.free_plan import symbols
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.support.trading_days import store_weekdays

template = bare_template
pytestmark = pytest.mark.usefixtures("still")

KEY, OTHER = "canary-5ecret-0123456789", "another-5ecret-0123456789"


@pytest.fixture(autouse=True)
def registry(owner_url: str) -> None:
    """It has the providers and no data types."""
    sample.load(owner_url, demo=False)


@pytest.fixture
def service(core: Core) -> Iterator[RunningSandbox]:
    """A sandbox in the place of the real providers, none of which is in use."""
    core.rows("UPDATE pricing.data_collectors SET is_active = false")
    with running_sandbox(key=KEY) as sandbox:
        core.rows("UPDATE pricing.data_collectors SET base_url = :url || '/' || provider", url=sandbox.url)
        yield sandbox


def use(cli: CommandLine, *words: str, stdin: str | None = None) -> Said:
    return cli("provider", "use", *words, stdin=stdin, sandbox="false")


def limits(core: Core, provider: str = TWELVEDATA) -> dict[str, int]:
    rows = core.rows("SELECT name, units FROM pricing.provider_limits WHERE provider = :p", p=provider)
    return {row.name: row.units for row in rows}


def types(core: Core) -> dict[str, tuple[int, str]]:
    rows = core.rows(
        "SELECT data_type, default_ttl_minutes, staleness_function FROM pricing.data_type_registry WHERE is_active"
    )
    return {row.data_type: (row.default_ttl_minutes, row.staleness_function) for row in rows}


def settings(core: Core) -> list[tuple[Any, ...]]:
    """All that a plan may change."""
    return [
        tuple(row)
        for table in ("provider_limits", "provider_capabilities", "data_collectors", "data_type_registry")
        for row in core.rows(f"SELECT * FROM pricing.{table} ORDER BY 1, 2")
    ]


@pytest.mark.usefixtures("service")
def test_a6_one_command_makes_the_free_plan_work(core: Core, cli: CommandLine) -> None:
    said = use(cli, TWELVEDATA, "--plan", "free", stdin=f"{KEY}\n")
    assert said.exit_code == 0, said
    assert KEY not in said.stdout + said.stderr
    assert "twelvedata answers: AAPL " in said.stdout
    assert "is in use with the plan free" in said.stdout
    assert limits(core) == {"minute": 8, "day": 800}
    assert types(core) == {
        QUOTE: (13, "is_market_stale"),
        "equity_daily": (1440, "is_market_stale"),
        "fx_rate": (15, "is_market_stale"),
        "crypto_quote": (60, "is_data_stale"),
    }
    assert core.one("SELECT is_active FROM pricing.data_collectors WHERE provider = 'twelvedata'")
    assert core.one("SELECT count(*) FROM pricing.provider_credentials") == 1
    # The call that tried the key counts.
    assert core.allowance().units_left == 7
    # The types are routed to it, and one call takes no more symbols than a minute allows.
    assert core.one("SELECT provider FROM pricing.route('equity_quote', 'AAPL')") == TWELVEDATA
    assert (
        core.one(
            "SELECT batch_size FROM pricing.provider_capabilities WHERE (provider, fetcher) = ('twelvedata', 'quote')"
        )
        == 8
    )
    again = use(cli, TWELVEDATA, "--plan", "free", "--json").json
    assert (again["changes"], again["key_stored"]) == ([], False)
    assert again["is_checked"] is False, "it answers already, so another call would say nothing new"


@pytest.mark.usefixtures("service")
def test_a6_a_key_that_is_refused_changes_nothing(core: Core, cli: CommandLine) -> None:
    before = settings(core)
    error = use(cli, TWELVEDATA, "--plan", "free", stdin=OTHER).error
    assert error.startswith("twelvedata does not accept the key. twelvedata answered 401: ")
    assert error.endswith("Copy it again from your account there. Nothing has changed.")
    assert OTHER not in error
    assert settings(core) == before
    assert core.one("SELECT count(*) FROM pricing.provider_credentials") == 0


@pytest.mark.usefixtures("service")
def test_a6_what_needs_no_key_asks_for_none(core: Core, cli: CommandLine) -> None:
    said = use(cli, "mfapi")
    assert said.exit_code == 0, said
    assert "mfapi answers: 118632 " in said.stdout
    assert types(core) == {"mf_nav": (1440, "is_market_stale")}
    said = use(cli, "yahoo")
    assert said.exit_code == 0, said
    assert limits(core, "yahoo") == {"minute": 60}


@pytest.mark.usefixtures("service")
def test_a6_plans_are_switched_and_undone(core: Core, cli: CommandLine) -> None:
    """The second plan replaces the first; undoing it restores what was before both."""
    before = settings(core)
    use(cli, TWELVEDATA, "--plan", "free", stdin=KEY)
    paid = use(cli, TWELVEDATA, "--plan", "custom", "--minute", "377").stdout
    assert limits(core) == {"minute": 377}
    assert types(core)[QUOTE] == (1, "is_market_stale")
    assert "limit day" in paid
    undone = cli("provider", "undo", TWELVEDATA, sandbox="false")
    assert "as they were before its plan" in undone.stdout
    assert types(core) == {}
    kept = [row for row in settings(core) if row[0] not in {QUOTE, "equity_daily", "fx_rate", "crypto_quote"}]
    assert kept == before
    assert "no plan of twelvedata is in use" in cli("provider", "undo", TWELVEDATA, sandbox="false").error


@pytest.mark.usefixtures("service")
def test_a6_a_second_plan_says_which_ttl_of_the_first_stays_and_may_be_undone_first(
    core: Core, cli: CommandLine
) -> None:
    first = use(cli, TWELVEDATA, "--plan", "free", stdin=KEY).stdout
    assert "keeps its TTL" not in first
    ttl = types(core)[QUOTE][0]
    second = " ".join(use(cli, "yahoo", "--plan", "free", "--no-check").stdout.split())
    assert f"{QUOTE} keeps its TTL of {ttl} min, because another plan in use serves it, too." in second
    cli("provider", "undo", "yahoo", sandbox="false")
    assert types(core)[QUOTE][0] == ttl
    cli("provider", "undo", TWELVEDATA, sandbox="false")
    assert types(core) == {}


@pytest.mark.usefixtures("service")
def test_a6_undo_names_the_routes_of_symbols_and_restores_all_of_a_batch(core: Core, cli: CommandLine) -> None:
    """The free plan has batches of eight, so batch_from could not stay 40."""
    batch = "SELECT batch_size, batch_from FROM pricing.provider_capabilities WHERE provider = :p AND fetcher = 'quote'"
    core.rows(
        "UPDATE pricing.provider_capabilities SET batch_size = 100, batch_from = 40 WHERE provider = 'twelvedata'"
    )
    changes = use(cli, TWELVEDATA, "--plan", "free", "--json", stdin=KEY).json["changes"]
    assert {"setting": "shared calls from, quote", "before": "40 symbols", "after": "8 symbols"} in changes
    cli("instrument", "add", "GOOG", "AAPL", "--asset-class", "equity")
    for symbol in ("AAPL", "GOOG"):
        assert cli("route", "add", TWELVEDATA, symbol, "--type", QUOTE).exit_code == 0
    undone = cli("provider", "undo", TWELVEDATA, sandbox="false")
    (row,) = core.rows(batch, p=TWELVEDATA)
    assert tuple(row) == (100, 40)
    said = " ".join(undone.stderr.split())
    assert "stay, because no plan made them: AAPL (equity_quote), GOOG (equity_quote)" in said
    command = said.rpartition("pricing-pipeline ")[2].split()
    assert command == ["route", "remove", TWELVEDATA, "AAPL", "--type", QUOTE]
    assert cli(*command).exit_code == 0
    left = core.rows("SELECT symbol FROM pricing.provider_routing WHERE symbol IS NOT NULL AND is_active")
    assert [route.symbol for route in left] == ["GOOG"]


@pytest.mark.usefixtures("service")
def test_a6_two_providers_in_use_serve_the_same_types(core: Core, cli: CommandLine) -> None:
    """The second is asked after the first; the longer TTL stays; undoing one leaves what the other serves."""
    use(cli, TWELVEDATA, "--plan", "free", stdin=KEY)
    use(cli, "yahoo")
    order = core.rows("SELECT provider FROM pricing.provider_routing WHERE data_type = 'fx_rate' ORDER BY rank")
    assert [row.provider for row in order] == [TWELVEDATA, "yahoo"]
    assert types(core)[QUOTE][0] == 13
    cli("provider", "undo", TWELVEDATA, sandbox="false")
    assert types(core)[QUOTE][0] == 13
    assert core.one("SELECT provider FROM pricing.route('equity_quote', 'AAPL')") == "yahoo"
    cli("provider", "undo", "yahoo", sandbox="false")
    assert types(core) == {}
    use(cli, "yahoo")
    assert core.one("SELECT provider FROM pricing.route('equity_quote', 'AAPL')") == "yahoo"


@pytest.mark.usefixtures("service")
def test_a6_limits_of_single_keys_come_back_with_undo(core: Core, cli: CommandLine) -> None:
    """A plan is that of each key."""
    core.rows("INSERT INTO pricing.provider_keys (provider, key_name) VALUES ('twelvedata', 'second')")
    core.rows("INSERT INTO pricing.provider_key_limits VALUES ('twelvedata', 'second', 'minute', 9)")
    count = "SELECT sum(units) FROM pricing.provider_key_limits"
    changes = use(cli, TWELVEDATA, "--plan", "free", "--json", stdin=KEY).json["changes"]
    assert {"setting": "limit minute of key second", "before": "9 units", "after": None} in changes
    assert core.one(count) is None
    cli("provider", "undo", TWELVEDATA, sandbox="false")
    assert core.one(count) == 9


def notifier_works(core: Core) -> None:
    """Else `status` warns that nobody is told of trouble."""
    core.rows("SELECT pricing.note_life('look_for_alerts', 0), pricing.note_life('send_messages', 0)")


@pytest.mark.usefixtures("service")
def test_a6_what_the_advice_sets_up_gets_no_warning(core: Core, cli: CommandLine, clock: Clock) -> None:
    notifier_works(core)
    assert use(cli, TWELVEDATA, "--plan", "free", stdin=KEY).exit_code == 0
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols(20)))
    today = core.clock().date()
    store_weekdays(core, "XNYS", str(today - timedelta(days=9)), str(today + timedelta(days=40)))
    needed, allowed = core.rows(
        "SELECT units_needed, units_allowed FROM pricing.budget() WHERE provider = 'twelvedata'"
    )[0]
    assert needed <= allowed
    assert "warning" not in cli("status", sandbox="false").stdout, "nor before the first answers tell the calendars"


@pytest.mark.usefixtures("service")
def test_a6_nothing_is_warned_of_until_the_sessions_of_a_new_calendar_are_known(core: Core, cli: CommandLine) -> None:
    notifier_works(core)
    assert use(cli, TWELVEDATA, "--plan", "free", stdin=KEY).exit_code == 0
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols(12)))
    core.rows("UPDATE pricing.instruments SET calendar = 'XNYS', verified_at = pricing.clock()")
    core.rows("DELETE FROM pricing.calendar_sessions")
    core.rows("UPDATE pricing.calendars SET filled_at = NULL, sessions_from = NULL, sessions_to = NULL")
    assert "warning" not in cli("status", sandbox="false").stdout
    core.rows("UPDATE pricing.calendars SET filled_at = pricing.clock()")
    assert "cannot serve the 12 watched or held pairs" in cli("status", sandbox="false").stdout, (
        "without sessions it may trade all day"
    )


@pytest.mark.usefixtures("service")
def test_a6_a_key_of_the_environment_is_told_of(core: Core, cli: CommandLine) -> None:
    said = cli("provider", "use", TWELVEDATA, "--plan", "free", sandbox="false", twelvedata_api_key=KEY)
    assert said.exit_code == 0, said
    assert "comes from PRICING_TWELVEDATA_API_KEY here" in said.stderr
    assert core.one("SELECT count(*) FROM pricing.provider_credentials") == 0


@pytest.mark.usefixtures("service")
def test_a6_what_is_no_plan_is_refused(core: Core, cli: CommandLine) -> None:
    for words, sentence in (
        ((TWELVEDATA,), "has several plans. Say one of: --plan free (Basic, the free plan), --plan custom"),
        ((TWELVEDATA, "--plan", "gold"), "has no plan 'gold'. Say one of: --plan free"),
        ((TWELVEDATA, "--plan", "custom"), "needs --minute UNITS"),
        (("nobody", "--plan", "free"), "no provider is called 'nobody'"),
    ):
        before = settings(core)
        assert sentence in use(cli, *words, stdin=KEY).error
        assert settings(core) == before


def test_a6_with_the_sandbox_no_key_is_asked_for(core: Core, cli: CommandLine) -> None:
    said = cli("provider", "use", TWELVEDATA, "--plan", "free", "--symbols", "5", sandbox="true")
    assert said.exit_code == 0, said
    assert "needs no key" in said.stderr
    assert types(core)[QUOTE] == (4, "is_market_stale")


@pytest.mark.parametrize(
    ("provider", "name", "symbols", "minutes"),
    [
        (TWELVEDATA, "free", 1, 1),
        (TWELVEDATA, "free", 20, 13),
        (TWELVEDATA, "free", 100, 64),
        ("yahoo", "free", 100, 2),
    ],
)
def test_a6_the_ttl_is_what_the_limits_pay_for(
    core: Core, provider: str, name: str, symbols: int, minutes: int
) -> None:
    """800 a day, of which eight tenths in 405 minutes: 1.58 a minute."""
    with core.engine.connect() as connection:
        assert plans.plan_of(connection, provider, name)[1].refresh_minutes(symbols) == minutes


def test_a6_every_provider_has_plans_that_it_can_serve(core: Core) -> None:
    with core.engine.connect() as connection:
        known = {provider: plans.plans_of(connection, provider) for provider in PROVIDERS}
    assert all(known.values())
    for provider, name, plan in ((p, name, plan) for p, named in known.items() for name, plan in named.items()):
        fetchers = {Fetcher(kind.about.fetcher) for kind in plan.types.values()}
        assert fetchers <= set(PROVIDERS[provider].fetchers), (provider, name)
        # Which products a partner sells is in a contract with it.
        assert plan.check.type in plan.types if plan.check else provider in ("octo", "headout")
        assert all((source.url is None) is (source.read is None) for source in plan.sources)
