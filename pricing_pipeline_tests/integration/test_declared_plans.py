"""Plans in the file of a declared provider, for `provider use` and `provider undo` (F11, A6)."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import DeclarationRefused
from pricing_pipeline.providers.base import Request
from pricing_pipeline.providers.wire import Wire
from pricing_pipeline_tests.fixtures.cli import CommandLine, Said
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.support.declarations import FRANKFURTER, SHARES, changed

pytestmark = pytest.mark.usefixtures("still")

KEY = "canary-5ecret-0123456789"
PLANS = """plans:
  free:
    title: the free plan
    limits: {minute: {units: 5, seconds: 60}, day: {units: 500, day: UTC}}
    batch: {quote: 4}
    types:
      share_price: {asset_class: equity, fetcher: quote, at_least: 2, description: The last price of a share.}
      share_bars: {asset_class: equity, fetcher: daily_bars, at_least: 1440, history_from: 2001-02-03}
    check: {type: share_price, symbol: IBM}
  paid:
    title: the paid plan
    limits: {minute: {units: 600, seconds: 60}}
    types:
      share_price: {asset_class: equity, fetcher: quote, at_least: 1}
symbols:
"""
ANSWER = b'{"quotes": [{"ticker": "IBM", "last": "225.10", "at": 1795010400, "currency": "USD"}]}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shares.yaml"
    path.write_text(SHARES.read_text().replace("symbols:\n", PLANS, 1))
    return path


def use(cli: CommandLine, *words: str, stdin: str | None = None) -> Said:
    return cli("provider", "use", "shares", *words, stdin=stdin, sandbox="false")


def rows(core: Core) -> dict[str, object]:
    """What a plan decides."""
    limits = core.rows("SELECT name, units FROM pricing.provider_limits WHERE provider = 'shares'")
    types = core.rows(
        "SELECT data_type, default_ttl_minutes, staleness_function, history_from FROM pricing.data_type_registry "
        "WHERE data_type LIKE 'share\\_%' AND is_active"
    )
    routed = core.rows("SELECT data_type FROM pricing.provider_routing WHERE provider = 'shares' AND is_active")
    batch = core.one(
        "SELECT batch_size FROM pricing.provider_capabilities WHERE (provider, fetcher) = ('shares', 'quote')"
    )
    return {
        "limits": {row.name: row.units for row in limits},
        "types": {row.data_type: tuple(map(str, row[1:])) for row in types},
        "routes": sorted(row.data_type for row in routed),
        "of_others": core.one(
            "SELECT count(*) FROM pricing.provider_routing WHERE data_type LIKE 'share\\_%' AND provider <> 'shares'"
        ),
        "batch": batch,
    }


def test_f11_a_plan_of_the_file_is_used_changed_and_undone(core: Core, cli: CommandLine, file: Path) -> None:
    said = cli("provider", "declare", str(file), sandbox="false")
    assert "pricing-pipeline provider use shares --plan free" in " ".join(said.stderr.split())
    before = rows(core)
    assert "Say one of: --plan free (the free plan), --plan paid (the paid plan)" in use(cli).error
    used = use(cli, "--plan", "free", "--no-check", "--symbols", "20", stdin=KEY)
    assert used.exit_code == 0, used
    assert "source: the declaration of shares" in used.stdout
    assert rows(core) == {
        "limits": {"minute": 5, "day": 500},
        "types": {
            "share_price": ("21", "is_data_stale", "None"),
            "share_bars": ("1440", "is_market_stale", "2001-02-03"),
        },
        "routes": ["share_bars", "share_price"],
        "of_others": 0,
        "batch": 4,
    }
    # Declaring once more leaves what the plan has written; the plan itself must stay in the file.
    changed_ = cli("provider", "declare", str(file), "--json", sandbox="false").json
    assert changed_["before"] == changed_["after"]
    text = file.read_text()
    file.write_text(text.replace("  free:\n", "  other:\n", 1))
    assert "the plan free of shares is in use" in cli("provider", "declare", str(file), sandbox="false").error
    file.write_text(text)
    paid = use(cli, "--plan", "paid", "--no-check")
    assert paid.exit_code == 0, paid
    assert rows(core)["limits"] == {"minute": 600}
    undone = cli("provider", "undo", "shares", sandbox="false")
    assert undone.exit_code == 0, undone
    assert rows(core) == before
    core.rows("DELETE FROM pricing.provider_credentials")
    assert cli("provider", "undeclare", "shares").exit_code == 0


def test_f11_the_key_of_a_declared_provider_is_tried_by_its_plan(
    core: Core, cli: CommandLine, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call goes to the host of the file, with the key in its header, and counts."""
    sent: list[str] = []
    accepted = {KEY}

    def send(self: Wire, request: Request, headers: dict[str, str], max_bytes: int) -> tuple[Response, bool]:
        sent.append(f"{self._base_url}{request.path} {dict(request.params)} {headers}")
        if any(one in sent[-1] for one in accepted):
            return Response(200, {}, ANSWER, len(ANSWER)), False
        return Response(401, {}, b"It has expired.", 15), False

    monkeypatch.setattr(Wire, "send", send)
    cli("provider", "declare", str(file), sandbox="false")
    before = rows(core)
    words = "shares does not accept the key. shares answered 401: It has expired. Copy it again from your account "
    refused = use(cli, "--plan", "free", stdin="another-5ecret-0123456789").error
    assert refused == f"{words}there. Nothing has changed."
    assert rows(core) == before
    used = use(cli, "--plan", "free", stdin=KEY)
    assert used.exit_code == 0, used
    assert sent[-1].startswith("https://shares.example.com/v2/")
    assert "shares answers: IBM 225.10 USD of 2026-11-18.\n" in used.stdout
    accepted.clear()
    refused = use(cli, "--plan", "free", "--check").error
    replaced = "`pricing-pipeline key set shares` replaces the stored one."
    assert refused == f"{words}there. {replaced} Nothing has changed."
    assert core.one("SELECT sum(units) FROM pricing.collector_call_log WHERE provider = 'shares'") == 1


def test_f11_the_newest_of_several_days_is_told_with_its_day(
    core: Core, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rates.yaml"
    plan = """plans:
  free:
    title: the free plan
    limits: {minute: {units: 5, seconds: 60}}
    types: {rates_daily: {asset_class: fx, fetcher: daily_bars, at_least: 240}}
    check: {type: rates_daily, symbol: EUR/USD}
symbols:
"""
    text = FRANKFURTER.read_text().replace("symbols:\n", plan, 1)
    path.write_text(re.sub(r"    latest:\n(      .*\n)+", "", text))
    newest = datetime.now(UTC).date() - timedelta(days=1)
    rates = {f"{newest - timedelta(days=2)}": {"USD": 1.1241}, f"{newest}": {"USD": 1.1351}}
    body = json.dumps({"base": "EUR", "rates": rates}).encode()

    def send(self: Wire, request: Request, headers: dict[str, str], max_bytes: int) -> tuple[Response, bool]:
        return Response(200, {}, body, len(body)), False

    monkeypatch.setattr(Wire, "send", send)
    cli("provider", "declare", str(path), sandbox="false")
    used = cli("provider", "use", "frankfurter", "--plan", "free", sandbox="false")
    assert f"frankfurter answers: EUR/USD 1.1351 USD of {newest}.\n" in used.stdout


def test_f11_a_type_of_another_kind_is_not_taken_over(core: Core, cli: CommandLine, file: Path) -> None:
    file.write_text(file.read_text().replace("share_price", "equity_daily"))
    cli("provider", "declare", str(file), sandbox="false")
    before = rows(core)
    assert (
        "equity_daily is a data type of equity from the fetcher daily_bars already"
        in use(cli, "--plan", "paid", "--no-check", stdin=KEY).error
    )
    assert rows(core) == before


def test_a6_partners_of_tours_are_used_by_their_contract(core: Core, cli: CommandLine) -> None:
    """Which products a key sees is in no file, so the key is stored and not tried."""
    core.rows("DELETE FROM pricing.data_type_registry WHERE contents = 'inventory'")
    for name in ("octo", "headout"):
        assert "needs --minute UNITS" in cli("provider", "use", name, sandbox="false").error
        used = cli("provider", "use", name, "--minute", "12", stdin=KEY, sandbox="false")
        assert used.exit_code == 0, used
        limit = core.one("SELECT units FROM pricing.provider_limits WHERE provider = :p", p=name)
        assert limit == 12
    days = core.rows("SELECT data_type, days_ahead FROM pricing.data_type_registry WHERE fetcher = 'slots'")
    assert {row.data_type: row.days_ahead for row in days} == {
        "slots_today": 1,
        "slots_week": 7,
        "slots_month": 30,
    }
    for name in ("octo", "headout"):
        assert cli("provider", "undo", name, sandbox="false").exit_code == 0
    assert core.one("SELECT count(*) FROM pricing.data_type_registry WHERE fetcher = 'slots' AND is_active") == 0


FAULTS = [
    ("fetcher: quote, at_least: 2", "fetcher: nav, at_least: 2", "this file has no fetcher nav"),
    ("equity, fetcher: quote, at_least: 2", "bond, fetcher: quote, at_least: 2", "no symbols of bond"),
    ("batch: {quote: 4}", "batch: {quote: 51}", "takes more than 50 symbols"),
    ("batch: {quote: 4}", "batch: {nav: 4}", "takes more than 0 symbols"),
    ("check: {type: share_price,", "check: {type: shares,", "this plan has no type shares"),
    ("history_from: 2001-02-03", "history_from: soon", "write a day such as 2000-01-01"),
    ("daily_bars, at_least: 1440, history_from", "quote, at_least: 1440, history_from", "a quote is the current price"),
    ("at_least: 2,", "at_least: 0,", "expected 1 or more"),
]


@pytest.mark.parametrize(("old", "new", "words"), FAULTS, ids=[words for *_, words in FAULTS])
def test_f11_faults_of_plans_are_told_with_their_line(old: str, new: str, words: str) -> None:
    assert old in PLANS
    with pytest.raises(DeclarationRefused, match=rf"shares.yaml:\d+: .*{re.escape(words)}"):
        changed(SHARES, ("symbols:\n", PLANS.replace(old, new, 1)))
    assert changed(FRANKFURTER).declaration.plans == {}
