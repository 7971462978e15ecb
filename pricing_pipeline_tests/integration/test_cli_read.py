"""`price show` and `price history`: what is stored, told exactly; what is not there, said clearly."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Answer, Document, Scalar
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, in_zone, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")

FEBRUARY = (date(2013, 2, 1), date(2013, 2, 28))


def store_bars(core: Core, symbol: str, *bars: tuple[date, str, dict[str, str]]) -> None:
    """Each bar is its day, its close and the other values as text."""
    core.enqueue(DAILY, symbol, days=(min(day for day, _, _ in bars), max(day for day, _, _ in bars)))
    call = core.claim_one()
    core.store(call, *(observation(symbol, close, midnight(day), **more) for day, close, more in bars))
    core.complete(call)


def store_quote(core: Core, symbol: str, price: str, seconds_old: float = 0) -> None:
    core.enqueue(QUOTE, symbol)
    core.finish(core.claim_one(), price, seconds_old)


# price


def test_a10_price_tells_what_is_stored(cli: CommandLine, core: Core) -> None:
    store_quote(core, "AAPL", "146.5500", seconds_old=30)
    said = cli("price", "show", "AAPL", "--json")
    assert said.exit_code == 0
    assert said.json.keys() == {"prices", "missing"}
    (price,) = said.json["prices"]
    assert 0 <= price.pop("age_seconds") < 30
    for stamp in ("observed_at", "fetched_at"):
        assert price[stamp].endswith("Z")
    observed = datetime.fromisoformat(price.pop("observed_at"))
    fetched = datetime.fromisoformat(price.pop("fetched_at"))
    assert timedelta(seconds=30) <= fetched - observed < timedelta(seconds=45)
    assert price == {
        "data_type": QUOTE,
        "symbol": "AAPL",
        "date": None,
        "price": "146.55",
        "currency": "USD",
        "provider": "twelvedata",
        "fresh": True,
        "state": "fresh",
        "paused": False,
        "provider_active": True,
        "frozen_since": None,
        "why": None,
    }


def test_a10_an_old_price_is_told_as_stale(cli: CommandLine, core: Core, clock: Clock) -> None:
    store_quote(core, "AAPL", "146.55")
    clock.advance(90)
    (price,) = cli("price", "show", "AAPL", "--json").json["prices"]
    assert price["fresh"] is False
    assert 90 <= price["age_seconds"] < 120
    table = cli("price", "show", "AAPL").stdout
    assert "stale" in table
    assert "1 min 3" in table


def test_every_type_with_a_price_has_a_row(cli: CommandLine, core: Core) -> None:
    store_quote(core, "AAPL", "146.55")
    core.enqueue(DAILY, "AAPL")
    core.finish(core.claim_one(), "147.00")
    table = cli("price", "show", "AAPL").stdout
    assert "146.55" in table
    assert "147.00" in table


@pytest.mark.own_sessions
def test_times_are_utc_whatever_the_zone_of_the_database(
    cli: CommandLine, core: Core, database_url: str, clock: Clock
) -> None:
    clock.set(datetime(2026, 7, 1, 23, 30, tzinfo=UTC))
    store_quote(core, "AAPL", "1.00")
    url = in_zone(database_url, "Asia/Kolkata")
    (price,) = cli("price", "show", "AAPL", "--json", database_url=url).json["prices"]
    assert price["fetched_at"].startswith("2026-07-01T23:30:")
    assert "2026-07-01 23:30:" in cli("price", "show", "AAPL", database_url=url).stdout


def test_an_unknown_symbol_is_named_with_the_way_to_make_it_known(cli: CommandLine) -> None:
    error = cli("price", "show", "XYZ", "--json").error
    assert "'XYZ'" in error
    assert "pricing-pipeline subscription watch" in error
    missing = cli("price", "show", "aapl", "--json").json["missing"]
    assert {pair["symbol"] for pair in missing} == {"AAPL"}


def test_a_known_symbol_without_a_price_is_no_error(cli: CommandLine) -> None:
    said = cli("price", "show", "AAPL", "--json")
    assert said.exit_code == 0
    assert said.json["prices"] == []
    assert {(pair["data_type"], pair["why"]["state"]) for pair in said.json["missing"]} == {
        (DAILY, "unwatched"),
        (QUOTE, "unwatched"),
    }
    assert said.stderr.startswith("hint: AAPL has no price yet")


# history


def test_a9_history_tells_bars_exactly(cli: CommandLine, core: Core) -> None:
    rest = {"open": "0.128348", "high": "0.13", "low": "0.1200", "volume": "0.12345678901234567890"}
    store_bars(core, "AAPL", (date(2013, 2, 4), "0.128300", rest), (date(2013, 2, 5), "12.30", {}))
    said = cli("price", "history", "AAPL", "--type", DAILY, "--from", "2013-02-01", "--to", "2013-02-28", "--json")
    content = said.json
    rows = content.pop("rows")
    span = {"from": "2013-02-01", "to": "2013-02-28", "as_of": None, "adjust": None, "warnings": []}
    assert content == {"symbol": "AAPL", "data_type": DAILY, **span}
    assert [row.pop("observed_at") for row in rows] == ["2013-02-04T00:00:00Z", "2013-02-05T00:00:00Z"]
    assert all(row.pop("fetched_at").endswith("Z") for row in rows)
    assert {row.pop("call_id") for row in rows} == {1}
    common = {"currency": "USD", "provider": "twelvedata", "adjustment": "raw", "quality": None}
    # One row has one scale, that of its most exact price.
    assert rows == [
        {
            "date": "2013-02-04",
            "open": "0.128348",
            "high": "0.130000",
            "low": "0.120000",
            "close": "0.128300",
            "volume": "0.12345678901234567890",
            **common,
        },
        {
            "date": "2013-02-05",
            "open": None,
            "high": None,
            "low": None,
            "close": "12.30",
            "volume": None,
            **common,
        },
    ]


def test_g6_both_days_of_a_range_are_included_and_a_month_is_all_its_days(cli: CommandLine, core: Core) -> None:
    days = [date(2013, 1, 31), date(2013, 2, 1), date(2013, 2, 28), date(2013, 3, 1)]
    store_bars(core, "AAPL", *((day, "1.00", {}) for day in days))

    def dates(first: str, last: str) -> list[str]:
        said = cli("price", "history", "AAPL", "--type", DAILY, "--from", first, "--to", last, "--json")
        return [row["date"] for row in said.json["rows"]]

    assert dates("2013-02-01", "2013-02-28") == ["2013-02-01", "2013-02-28"]
    assert dates("2013-02", "2013-02") == ["2013-02-01", "2013-02-28"]
    assert dates("2013-01", "2013-03") == [day.isoformat() for day in days]


def test_a_quote_is_dated_to_the_second(cli: CommandLine, core: Core, clock: Clock) -> None:
    clock.set(datetime(2026, 7, 1, 23, 30, tzinfo=UTC))
    store_quote(core, "AAPL", "146.55")
    said = cli("price", "history", "AAPL", "--type", QUOTE, "--json").json
    assert said["rows"][0]["date"] is None
    assert said["rows"][0]["observed_at"].startswith("2026-07-01T23:30:")
    assert said["rows"][0]["close"] == "146.55"


def test_the_range_is_the_last_thirty_days_by_the_clock_of_the_database(cli: CommandLine, clock: Clock) -> None:
    clock.set(datetime(2031, 3, 31, 12, tzinfo=UTC))
    said = cli("price", "history", "AAPL", "--type", DAILY, "--json").json
    assert (said["from"], said["to"]) == ("2031-03-01", "2031-03-31")
    said = cli("price", "history", "AAPL", "--type", DAILY, "--to", "2013-01-31", "--json").json
    assert (said["from"], said["to"]) == ("2013-01-01", "2013-01-31")


def test_history_is_listed_for_people(cli: CommandLine, core: Core) -> None:
    rest = {"open": "1.10", "high": "1.30", "low": "1.00", "volume": "117258400"}
    store_bars(core, "AAPL", (date(2013, 2, 4), "1.20", rest))
    heading, _, row = cli(
        "price", "history", "AAPL", "--type", DAILY, "--from", "2013-02", "--to", "2013-02"
    ).stdout.splitlines()
    assert heading.split() == ["day", "open", "high", "low", "close", "volume"]
    assert row.split() == ["2013-02-04", "1.10", "1.30", "1.00", "1.20", "117258400", "USD"]


def test_what_makes_no_sense_is_said_in_one_sentence(cli: CommandLine) -> None:
    for arguments, code, words in (
        (["AAPL", "--type", DAILY, "--from", "2013-02-02", "--to", "2013-02-01"], 1, "ends before it begins"),
        (["AAPL", "--type", DAILY, "--from", "2990-01"], 1, "2990-01-01 has not come yet"),
        (["AAPL", "--type", "nope"], 1, "no active data type 'nope'; there are: equity_daily, "),
        (["XYZ", "--type", DAILY], 1, "XYZ"),
        (["EUR/USD", "--type", DAILY], 1, "no equity instrument is called EUR/USD"),
        (["AAPL", "--type", DAILY, "--from", "yesterday"], 2, "--from 'yesterday' is not a day"),
        (["AAPL", "--type", DAILY, "--to", "2013-02-30"], 2, "--to '2013-02-30' is not a day"),
        (["AAPL", "--type", DAILY, "--to", "2013-13"], 2, "--to '2013-13' is not a day"),
        (["AAPL"], 2, "'--type'"),
    ):
        said = cli("price", "history", *arguments)
        assert said.exit_code == code
        assert words in said.error


def test_nothing_stored_is_no_error_and_names_the_command_that_fetches(cli: CommandLine) -> None:
    said = cli("price", "history", "AAPL", "--type", DAILY, "--from", "1999-12", "--to", "2000-01", "--json")
    assert said.exit_code == 0
    assert said.json["rows"] == []
    assert "backfill start AAPL --type equity_daily --from 2000-01-01 --to 2000-01-31" in said.stderr
    early = cli("price", "history", "AAPL", "--type", DAILY, "--from", "1999-01", "--to", "1999-02")
    assert "begins on 2000-01-01" in early.stderr
    assert "accumulate while someone watches" in cli("price", "history", "AAPL", "--type", QUOTE).stderr


# document


@pytest.fixture
def profiles(core: Core) -> str:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('company_profile', 'profile', 1440), ('company_earnings', 'earnings', 1440)"
    )
    return "company_profile"


def store_documents(core: Core, data_type: str, *found: Document) -> None:
    core.enqueue(data_type, "AAPL")
    settling.settle_answer(core.engine, core.claim_one("fmp"), Fetched(Answer(records=found), 200, 700))


def test_a10_document_tells_what_is_stored_with_every_digit(cli: CommandLine, core: Core, profiles: str) -> None:
    body: dict[str, Scalar] = {"companyName": "Apple", "lastDividend": Decimal("1.050"), "isEtf": False}
    store_documents(core, profiles, Document("AAPL", None, body))
    said = cli("document", "show", "AAPL", "--type", profiles, "--json")
    assert said.json["fresh"]
    (told,) = said.json["documents"]
    assert told["period"] is None
    assert told["body"] == {"companyName": "Apple", "lastDividend": "1.050", "isEtf": False}
    shown = cli("document", "show", "AAPL", "--type", profiles).stdout
    assert re.search(r"lastDividend +1\.050", shown)
    assert re.search(r"isEtf +no", shown)


def test_documents_of_periods_are_lines_and_the_past_can_be_read(
    cli: CommandLine, core: Core, clock: Clock, profiles: str
) -> None:
    def reports(eps: str) -> list[Document]:
        days = (date(2026, 7, 30), date(2026, 10, 29))
        return [Document("AAPL", day, {"date": str(day), "epsActual": Decimal(eps)}) for day in days]

    store_documents(core, "company_earnings", *reports("1.5"))
    then = core.clock()
    clock.advance(3 * 86400)
    store_documents(core, "company_earnings", *reports("1.6"))
    lines = cli("document", "show", "AAPL", "--type", "company_earnings").stdout.splitlines()
    assert [line.split() for line in lines[2:4]] == [["2026-10-29", "1.6"], ["2026-07-30", "1.6"]]
    for said in (then.isoformat(), str(then.date())):
        past = cli("document", "show", "AAPL", "--type", "company_earnings", "--as-of", said, "--json").json
        assert {one["body"]["epsActual"] for one in past["documents"]} == {"1.5"}
    nothing = cli("document", "show", "AAPL", "--type", "company_earnings", "--as-of", "2020-01-01")
    assert "nothing is stored" in nothing.stderr


def test_a10_a_missing_document_is_asked_for(cli: CommandLine, core: Core, profiles: str) -> None:
    said = cli("document", "show", "AAPL", "--type", profiles)
    assert "It is queued" in said.stderr
    assert [task.data_type for task in core.tasks("AAPL")] == [profiles]
    assert "on its way" in cli("document", "show", "AAPL", "--type", profiles).stderr


def test_what_document_cannot_read(cli: CommandLine, profiles: str) -> None:
    for arguments, code, words in (
        (["AAPL", "--type", QUOTE], 1, "Types of documents are: company_earnings, company_profile"),
        (["AAPL", "--type", "nonsense"], 1, "no active data type"),
        (["WHO", "--type", "company_profile"], 1, "no equity instrument is called WHO"),
        (["AAPL", "--type", "company_profile", "--as-of", "noon"], 2, "is not a time"),
    ):
        said = cli("document", "show", *arguments)
        assert said.exit_code == code
        assert words in " ".join(said.stderr.split())
