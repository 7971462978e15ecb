"""Trading days of real exchanges, as the library, its corrections and the second source give them together."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text

from pricing_pipeline.domain.exchanges import corrections, exchanges
from pricing_pipeline.registry import calendars, second_source
from pricing_pipeline.registry.sessions import Sessions
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, Core, midnight, utc
from pricing_pipeline_tests.fixtures.database import Clock

# The library keeps each calendar that it has built, so one process builds each of them once.
pytestmark = pytest.mark.xdist_group("trading_days")
still = pytest.mark.usefixtures("still")

FIRST, LAST = date(2021, 1, 1), date(2027, 12, 31)
DAYS = Path(__file__).parents[1] / "data/trading_days.csv"
ZONES = {exchange.calendar: ZoneInfo(exchange.zone) for exchange in exchanges().values()}


@pytest.fixture(autouse=True)
def _since_2021(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before that, no test looks at a day, and the library takes seconds for each calendar."""
    build = calendars.exchange_sessions

    def of_recent_years(calendar: str, start: date, end: date) -> Sessions:
        return build(calendar, max(start, FIRST), end)

    monkeypatch.setattr(calendars, "exchange_sessions", of_recent_years)


def follow(core: Core, *names: str) -> None:
    """Have one instrument follow each of these calendars, and the sample's none."""
    core.rows("UPDATE pricing.instruments SET calendar = NULL")
    for name in names:
        core.rows(
            "INSERT INTO pricing.instruments (asset_class, symbol, calendar) VALUES ('equity', :symbol, :calendar)",
            symbol=f"OF-{name}",
            calendar=name,
        )


def did(core: Core, calendar: str, day: str) -> str:
    rows = core.rows(
        "SELECT opens_at, closes_at FROM pricing.calendar_sessions WHERE calendar = :c AND session = :d",
        c=calendar,
        d=date.fromisoformat(day),
    )
    if not rows:
        return "closed"
    return "-".join(f"{at.astimezone(ZONES[calendar]):%H:%M}" for at in rows[0])


def test_f7_each_shipped_correction_changes_what_the_library_says() -> None:
    """A row that the library knows by now is to be deleted: it would hide what a newer version learns."""
    needless = []
    for calendar in sorted({correction.calendar for correction in corrections()}):
        own = [correction for correction in corrections() if correction.calendar == calendar]
        assert len({correction.day for correction in own}) == len(own)
        assert FIRST <= min(one.day for one in own) <= max(one.day for one in own) <= LAST
        sessions = calendars.exchange_sessions(calendar, FIRST, LAST)
        hours = {
            day: tuple(at.astimezone(ZONES[calendar]).time() for at in pair)
            for day, *pair in zip(sessions.days, sessions.opens, sessions.closes, strict=True)
        }
        for one in own:
            if one.opens_at is None:
                is_needless = (one.day in hours) == one.is_open
            else:
                is_needless = hours.get(one.day) == (one.opens_at, one.closes_at)
            if is_needless:
                needless.append(one)
    assert needless == []


def disagree(core: Core, day: str, *, is_open: bool) -> list[date]:
    with core.engine.begin() as connection:
        connection.execute(
            text("SELECT pricing.store_disagreements('XNYS', ARRAY[CAST(:d AS date)], ARRAY[:o], ARRAY['a day'])"),
            {"d": day, "o": is_open},
        )
    return [row.day for row in core.rows("SELECT day FROM pricing.calendar_disagreements WHERE calendar = 'XNYS'")]


def trade(core: Core, *days: str) -> None:
    """Both AAPL and MSFT have bars of these days."""
    core.rows(
        "INSERT INTO pricing.price_history"
        " (data_type, symbol, observed_at, amount, scale, fetched_at, provider, call_id, source_text, adjustment)"
        " SELECT :t, s.symbol, d.at, 1, 0, d.at, 'twelvedata', 1, '1', 'raw'"
        " FROM unnest(ARRAY['AAPL', 'MSFT']) AS s (symbol) CROSS JOIN unnest(CAST(:days AS timestamptz[])) AS d (at)",
        t=DAILY,
        days=[midnight(date.fromisoformat(day)) for day in days],
    )


@still
def test_f7_what_two_sources_dispute_is_undecided_until_bars_or_people_decide(
    core: Core, clock: Clock, cli: CommandLine
) -> None:
    clock.set(utc("2026-03-10 12:00"))
    calendars.extend(core.engine)
    assert disagree(core, "2026-03-17", is_open=False) == [date(2026, 3, 17)]
    assert "two sources disagree about 1 coming day(s) of XNYS" in cli("status").stdout
    assert "undecided" in cli("calendar", "list", "XNYS").stdout
    assert did(core, "XNYS", "2026-03-17") != "closed", "the first source counts"
    clock.set(utc("2026-03-30 12:00"))
    trade(core, "2026-03-16", "2026-03-18")
    assert disagree(core, "2026-03-17", is_open=False) == []
    assert did(core, "XNYS", "2026-03-17") == "closed", "nobody traded on it, and both did around it"
    trade(core, "2026-03-19", "2026-03-20")
    assert disagree(core, "2026-03-19", is_open=False) == [], "they traded on it"
    assert did(core, "XNYS", "2026-03-19") != "closed"
    trade(core, "2026-03-06", "2026-03-09")
    assert disagree(core, "2026-03-07", is_open=True) == [], "a Saturday without a bar is none, in any source"
    assert did(core, "XNYS", "2026-03-07") == "closed"
    assert disagree(core, "2026-04-20", is_open=False) == [date(2026, 4, 20)]
    assert cli("calendar", "close-day", "XNYS", "2026-04-20", "--reason", "told by phone").exit_code == 0
    assert disagree(core, "2026-04-20", is_open=False) == []


@still
def test_f7_commands_correct_a_calendar_and_take_it_back(core: Core, clock: Clock, cli: CommandLine) -> None:
    clock.set(utc("2026-11-28 12:00"))
    follow(core, "XBOM")
    calendars.extend(core.engine)
    listed = cli("calendar", "list", "XNSE", "--from", "2025-01-01", "--json").json
    assert listed["calendar"] == "XBOM", "by the MIC of an exchange that follows it"
    assert {row["origin"] for row in listed["corrections"]} >= {"shipped"}
    told = cli("calendar", "add-session", "XNSE", "2026-11-08", "--opens", "18:00", "--closes", "19:00", "--json")
    assert (told.exit_code, told.json["outcome"], told.json["calendar"]) == (0, "added", "XBOM")
    assert did(core, "XBOM", "2026-11-08") == "18:00-19:00", "an operator's row comes before the shipped one"
    assert cli("calendar", "close-day", "XBOM", "2026-12-24", "--user", "ann").exit_code == 0
    assert did(core, "XBOM", "2026-12-24") == "closed"
    calendars.extend(core.engine, again=True)
    assert did(core, "XBOM", "2026-12-24") == "closed", "a library that is read anew does not undo it"
    assert "session" in cli("calendar", "list", "XBOM").stdout
    assert cli("calendar", "undo", "XBOM", "2026-12-24").exit_code == 0
    assert did(core, "XBOM", "2026-12-24") == "09:15-15:30"
    for words, sentence in (
        (["undo", "XBOM", "2026-12-24"], "nobody has corrected XBOM on 2026-12-24"),
        (["close-day", "NONE", "2026-12-24"], "no trading calendar or exchange is called 'NONE'"),
        (["add-session", "XBOM", "2026-12-24", "--opens", "09:00"], "give --opens and --closes, or neither"),
        (["add-session", "XBOM", "2026-12-24", "--opens", "9", "--closes", "10"], "is not a time of day"),
        (
            ["add-session", "XBOM", "2026-12-24", "--opens", "10:00", "--closes", "09:00"],
            "--opens must be before",
        ),
    ):
        said = cli("calendar", *words)
        assert said.exit_code != 0
        assert sentence in " ".join(said.error.split())


def known_days() -> list[dict[str, str]]:
    with DAYS.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@still
def test_f7_the_sessions_of_real_exchanges_are_as_reported(core: Core, clock: Clock) -> None:
    """The proof: holidays, half days, special sessions, a moved week, of 2023 to 2027; all of them are right."""
    clock.set(utc("2026-11-28 12:00"))
    days = known_days()
    assert len({(row["calendar"], row["day"]) for row in days}) == len(days) >= 120
    assert len({row["calendar"] for row in days}) >= 20
    assert {row["day"][:4] for row in days} == {"2023", "2024", "2025", "2026", "2027"}
    follow(core, *sorted({row["calendar"] for row in days}))
    assert calendars.extend(core.engine).failed == {}
    wrong = {}
    for row in days:
        found = did(core, row["calendar"], row["day"])
        if found != row["did"] and (row["did"] != "open" or found == "closed"):
            wrong[row["calendar"], row["day"]] = (found, row["did"], row["source"])
    assert wrong == {}


def test_f7_the_library_and_its_pandas_fit_each_other() -> None:
    """pandas 3.1 makes exchange_calendars 4.13.2 lose weekend sessions, and some calendars cannot be built.

    What neither corrections nor a database touch: it fails when one of the two moves and the other is not right.
    """
    known = {
        ("XBOM", date(2024, 1, 20)): True,
        ("XBOM", date(2025, 2, 1)): True,
        ("XBOM", date(2024, 1, 22)): False,
        ("XTAE", date(2025, 5, 18)): True,  # a Sunday
        ("XTAE", date(2025, 12, 28)): True,
        ("XTAE", date(2025, 6, 6)): False,  # a Friday
        ("XTAE", date(2026, 1, 9)): True,
        ("XTAE", date(2026, 1, 11)): False,
        ("XTAE", date(2026, 4, 22)): False,  # Independence Day
        ("XSAU", date(2026, 1, 11)): True,
        ("ASEX", date(2026, 4, 13)): False,  # the Orthodox Easter Monday
        ("ASEX", date(2026, 4, 14)): True,
        ("XBSE", date(2026, 4, 13)): False,
        ("XBEL", date(2026, 4, 13)): False,
        ("XCYS", date(2026, 4, 13)): False,
        ("XNYS", date(2025, 1, 9)): False,
    }
    days = {name: set(calendars.exchange_sessions(name, FIRST, LAST).days) for name, _ in known}
    assert {(name, day): day in days[name] for name, day in known} == known
    weekdays = Counter(day.weekday() for day in days["XTAE"] if day.year == 2025)
    assert weekdays[6] > 40, "Sundays of Tel Aviv"
    assert weekdays[4] == weekdays[5] == 0


def test_f7_the_second_source_tells_where_it_contradicts_the_first() -> None:
    """Without corrections it knows two late closures of Seoul."""
    sessions = calendars.exchange_sessions("XKRX", date(2026, 1, 1), date(2026, 12, 31))
    found = second_source.disagreements(sessions, date(2026, 6, 1))
    assert [(one.day, one.is_open) for one in found] == [
        (date(2026, 6, 3), False),
        (date(2026, 7, 17), False),
    ]
    assert "Election" in found[0].reason
    unknown = Sessions("XIDX", date(2026, 1, 1), date(2026, 12, 31), [], [], [])
    assert second_source.disagreements(unknown, date(2026, 6, 1)) == [], "it has no Jakarta"
