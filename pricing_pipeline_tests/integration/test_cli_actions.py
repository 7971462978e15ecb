"""F5: people enter splits and dividends that no source tells, and take back wrong ones; what they did is kept."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Adjust, Answer, Split
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.judging.answers import Judgement
from pricing_pipeline.prices import actions, price_reader, price_writer
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, Core, a_call, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock

DAYS = (date(2020, 8, 27), date(2020, 8, 28), date(2020, 8, 31))
EX = DAYS[-1]


@pytest.fixture
def stored(core: Core) -> None:
    """Three days of AAPL as traded, over a split of 4:1 that nobody told."""
    core.lift_limits()
    core.enqueue(DAILY, "AAPL", days=(DAYS[0], EX))
    call = a_call(core.claim_one(), fetcher=Fetcher.DAILY_BARS, window=Window(DAYS[0], EX))
    rows = [observation("AAPL", price, midnight(day)) for price, day in zip(("400", "500", "129"), DAYS, strict=True)]
    with core.engine.begin() as connection:
        price_writer.store(connection, call, Rows(rows))


def closes(core: Core, adjust: Adjust, **more: object) -> list[str]:
    with core.engine.begin() as connection:
        found = price_reader.bars(connection, "AAPL", DAILY, DAYS[0], EX, adjust=adjust, **more)  # type: ignore[arg-type]
    return [f"{bar.close.normalize():f}" for bar in found]


@pytest.mark.usefixtures("stored")
def test_f5_a_forgotten_split_is_entered_read_and_taken_back(cli: CommandLine, core: Core, clock: Clock) -> None:
    before = core.clock()
    clock.advance(60)
    assert "no split, spin-off or payment of AAPL is known" in cli("action", "list", "AAPL").stdout
    read = (
        "price",
        "history",
        "AAPL",
        "--type",
        DAILY,
        "--from",
        "2020-08-27",
        "--to",
        "2020-08-31",
        "--adjust",
        "splits",
    )
    looks_so = "hint: On 2020-08-31 the price steps like a split of 4:1, and none is known."
    assert looks_so in cli(*read).stderr
    made = cli(
        "action",
        "add",
        "AAPL",
        "2020-08-31",
        "--split",
        "4:1",
        "--reason",
        "the source forgot it",
        "--user",
        "ann",
    )
    assert made.stdout == (
        "split 4:1 of AAPL on 2020-08-31 is entered. Adjusted histories include it now, or from its day on.\n"
    )
    assert closes(core, Adjust.SPLITS) == ["100", "125", "129"]
    assert closes(core, Adjust.SPLITS, as_of=before) == ["400", "500", "129"]
    assert looks_so not in cli(*read).stderr
    (told,) = cli("action", "list", "AAPL", "--json").json["actions"]
    assert (told["kind"], told["new_shares"], told["old_shares"], told["ex_on"]) == (
        "split",
        "4",
        "1",
        "2020-08-31",
    )
    assert (told["provider"], told["call_id"], told["entered_by"]) == ("by hand", None, "ann")
    assert told["reason"] == "the source forgot it"
    again = cli("action", "add", "AAPL", "2020-08-31", "--split", "8:2", "--json").json
    assert again["outcome"] == "known_already"

    clock.advance(60)
    entered = core.clock()
    clock.advance(60)
    better = cli("action", "add", "AAPL", "2020-08-31", "--split", "5:1", "--user", "bob", "--json").json
    assert (better["outcome"], better["by"]) == ("replaced", "bob")
    assert closes(core, Adjust.SPLITS) == ["80", "100", "129"]
    assert closes(core, Adjust.SPLITS, as_of=entered) == ["100", "125", "129"]
    gone = cli("action", "remove", "AAPL", "2020-08-31", "--user", "ann", "--reason", "it was never")
    assert gone.stdout.startswith("the split of AAPL on 2020-08-31 is removed.")
    assert closes(core, Adjust.SPLITS) == ["400", "500", "129"]
    kept = core.rows(
        "SELECT (old->>'new_shares')::numeric, old->>'entered_by', removed_by, removed_because"
        " FROM pricing.revisions ORDER BY revised_at"
    )
    assert [tuple(row) for row in kept] == [
        (4, "ann", "bob", None),
        (5, "bob", "ann", "it was never"),
    ]


@pytest.mark.usefixtures("stored")
def test_f5_a_dividend_by_hand_counts_for_total_return(cli: CommandLine, core: Core) -> None:
    read = (
        "price",
        "history",
        "AAPL",
        "--type",
        DAILY,
        "--from",
        "2020-08-27",
        "--to",
        "2020-08-31",
        "--adjust",
        "total",
    )
    known = "hint: These prices count what is known of AAPL since 2020-08-27: "
    assert f"{known}no splits and no dividends. Where they come from" in cli(*read).stderr
    cli("action", "add", "AAPL", "2020-08-31", "--dividend", "12.5", "--currency", "usd")
    assert f"{known}no splits and 1 dividend. Where" in cli(*read).stderr
    assert closes(core, Adjust.TOTAL) == ["390", "487.5", "129"]
    assert "dividend 12.5 USD" in cli("action", "list", "AAPL").stdout


@pytest.mark.usefixtures("stored")
def test_f5_what_was_taken_back_does_not_come_back_by_itself(cli: CommandLine, core: Core) -> None:
    def is_believed(new_shares: int, provider: str = "yahoo") -> bool:
        """Let a provider tell a split. Returns whether anything is stored anew."""
        core.rows("DELETE FROM pricing.api_call_queue_live")
        core.enqueue(DAILY, "AAPL", days=(DAYS[0], EX))
        call = a_call(core.claim_one(), provider=provider)
        answer = Answer(actions=(Split("AAPL", EX, Decimal(new_shares), Decimal(1)),))
        judged = Judgement(call, answer, {}, {}, {}, frozenset(), Rows(), {})
        with core.engine.begin() as connection:
            before = actions.read(connection, "equity", "AAPL")
            assert actions.store(connection, judged) == []
            return actions.read(connection, "equity", "AAPL") != before

    assert is_believed(4)
    cli("action", "remove", "AAPL", "2020-08-31")
    assert not is_believed(4), "the same again, from the same source"
    assert is_believed(4, "fmp"), "another source says so, too"
    cli("action", "add", "AAPL", "2020-08-31", "--split", "7:1")
    assert not is_believed(9, "fmp"), "no source takes the place of what a person has entered"
    assert closes(core, Adjust.SPLITS)[0] == "57.1428571429"


def test_errors_are_one_sentence(cli: CommandLine, core: Core) -> None:
    add = ("action", "add", "AAPL", "2020-08-31")
    for arguments, said, code in (
        ((*add,), "give one of --split, --spin-off, --dividend, --capital-gain", 2),
        ((*add, "--split", "4"), "--split '4' is not a ratio", 2),
        ((*add, "--split", "1:1"), "is not a ratio", 2),
        ((*add, "--split", "0:1"), "is not a ratio", 2),
        ((*add, "--dividend", "NaN"), "is not an amount", 2),
        ((*add, "--dividend", "1_0"), "is not an amount", 2),
        ((*add, "--dividend", "-1"), "is not an amount", 2),
        ((*add, "--dividend", "1", "--currency", "dollars"), "is not a known currency", 2),
        ((*add, "--dividend", "1", "--currency", "XXZ"), "is not a known currency", 2),
        ((*add, "--split", "4:1", "--currency", "USD"), "leave them out with --split", 2),
        (("action", "add", "AAPL", "yesterday", "--split", "4:1"), "is not a day", 2),
        (("action", "add", "NOPE", "2020-08-31", "--split", "4:1"), "no instrument is called 'NOPE'", 1),
        (("action", "list", "AAPL", "--asset-class", "fx"), "no fx instrument is called 'AAPL'", 1),
        (
            ("action", "remove", "AAPL", "2020-08-31"),
            "no split, spin-off or payment of AAPL on 2020-08-31 is known",
            1,
        ),
    ):
        result = cli(*arguments)
        assert said in result.error, arguments
        assert result.exit_code == code
    core.rows(
        "SELECT pricing.enter_action('equity', 'AAPL', '2020-08-31', 'split', 2, 1, NULL, NULL, 'ann'),"
        " pricing.enter_action('equity', 'AAPL', '2020-08-31', 'dividend', NULL, NULL, 0.5, NULL, 'ann')"
    )
    both = cli("action", "remove", "AAPL", "2020-08-31").error
    assert "a dividend and a split of AAPL on 2020-08-31 are known. Say which by --kind." in both
    assert cli("action", "remove", "AAPL", "2020-08-31", "--kind", "dividend", "--json").json["kind"] == "dividend"


def test_b2_a_worker_can_take_nothing_back(core: Core) -> None:
    core.rows("SELECT pricing.enter_action('equity', 'AAPL', '2020-08-31', 'split', 2, 1, NULL, NULL, 'ann')")
    with pytest.raises(Exception, match="permission denied"):
        core.call("SELECT pricing.remove_action('equity', 'AAPL', '2020-08-31', 'split', 'worker')")


def named_lines(text: str) -> dict[str, str]:
    """Lines of a thing by their names."""
    return {name: value.strip() for name, value in (line.split(":", 1) for line in text.splitlines() if line)}


def test_an_action_is_shown_with_what_was_believed_before(cli: CommandLine, core: Core) -> None:
    show = ("action", "show", "aapl", "2020-08-31")
    assert "no split, spin-off or payment of AAPL on 2020-08-31 was ever known" in cli(*show).error
    add = ("action", "add", "AAPL", "2020-08-31")
    cli(*add, "--split", "5:1", "--user", "ann", "--reason", "a guess")
    cli(*add, "--split", "4:1", "--user", "bob", "--reason", "the exchange said so")
    cli(*add, "--dividend", "0.25", "--user", "ann")
    now, _, before = cli(*show, "--kind", "split").stdout.partition("\n\n")
    assert named_lines(now).items() >= {
        ("action", "split 4:1 of AAPL (equity)"),
        ("ex day", "2020-08-31"),
        ("by", "bob"),
        ("why", "the exchange said so"),
    }
    assert named_lines(before).items() >= {
        ("action", "split 5:1 of AAPL (equity)"),
        ("by", "ann"),
        ("why", "a guess"),
        ("ended by", "bob"),
    }
    shown = cli(*show, "--json").json
    assert sorted(one["kind"] for one in shown["actions"]) == ["dividend", "split"]
    assert [one["new_shares"] for one in shown["revisions"]] == ["5"]
    cli("action", "remove", "AAPL", "2020-08-31", "--kind", "dividend", "--user", "eve", "--reason", "no")
    gone = named_lines(cli(*show, "--kind", "dividend").stdout)
    assert (gone["ended by"], gone["ended because"]) == ("eve", "no")
