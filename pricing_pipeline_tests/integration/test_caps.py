"""B7: what one user may ask for is bounded, and what nobody should ask for does no harm."""

from __future__ import annotations

import threading

import psycopg
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import reason
from pricing_pipeline.demand import viewers
from pricing_pipeline.demand.subscriptions import SubscriptionManager
from pricing_pipeline.errors import CapExceeded
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, rows_read
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.fixtures.logins import a_login
from pricing_pipeline_tests.support.examples import is_thorough
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.sessions import wait_for_locks

pytestmark = pytest.mark.usefixtures("still")

AAPL = (QUOTE, "AAPL")


def pairs(count: int, prefix: str = "S") -> list[tuple[str, str]]:
    return [(QUOTE, f"{prefix}{number:05}") for number in range(count)]


def watched(core: Core, user: str = "ann") -> int:
    count: int = core.one("SELECT count(*) FROM pricing.active_subscriptions WHERE user_id = :user", user=user)
    return count


def test_b7_a_thousand_pairs_in_one_call_are_welcome(core: Core) -> None:
    assert core.heartbeat("ann", *pairs(1000)) == 1000


def test_b7_a_user_may_watch_so_many_pairs_at_once(core: Core, clock: Clock) -> None:
    core.cap(10, 1000)
    core.heartbeat("ann", *pairs(8))
    clock.advance(1)
    with pytest.raises(CapExceeded, match="user ann may watch or hold 10 pairs at once; leave some") as refused:
        core.heartbeat("ann", *pairs(11))
    assert (refused.value.room, refused.value.retry_after) == (2, None)
    assert watched(core) == 8
    assert len(core.tasks()) == 8, "nothing of a refused call is done"
    assert core.heartbeat("ann", *pairs(10)) == 2
    assert core.heartbeat("ann", *pairs(10)) == 0, "what is watched is never refused"
    assert core.heartbeat("bob", *pairs(10)) == 10
    core.unsubscribe("ann", *pairs(3))
    assert core.heartbeat("ann", *pairs(3, "T")) == 3


def test_b7_a_user_may_begin_so_many_pairs_a_minute(core: Core, clock: Clock) -> None:
    core.cap(1000, 60)
    core.heartbeat("ann", *pairs(50))
    with pytest.raises(CapExceeded, match="pairs are refused: user ann may begin 60 new pairs a minute") as refused:
        core.heartbeat("ann", *pairs(20, "T"))
    assert 10 <= refused.value.room <= 12
    assert refused.value.retry_after is not None
    assert 8 <= refused.value.retry_after <= 10
    clock.advance(refused.value.retry_after)
    assert core.heartbeat("ann", *pairs(20, "T")) == 20
    assert core.heartbeat("bob", *pairs(60)) == 60
    clock.advance(3600)
    with pytest.raises(CapExceeded):
        core.heartbeat("ann", *pairs(61, "U"))
    assert core.heartbeat("ann", *pairs(60, "U")) == 60, "nothing is saved up"


def test_b7_an_allowance_that_is_whole_again_is_forgotten(core: Core, clock: Clock) -> None:
    core.cap(1000, 60)
    core.heartbeat("ann", *pairs(30))
    known = "SELECT count(*) FROM pricing.user_allowances"
    for seconds, left in ((0, 1), (61, 1), (3600, 0)):
        clock.advance(seconds)
        core.rows("SELECT pricing.forget_views()")
        assert core.one(known) == left, "not at once: older snapshots do not see it"


def test_b7_coming_and_going_counts(core: Core) -> None:
    core.cap(100, 100)
    for _ in range(10):
        core.heartbeat("ann", *pairs(10))
        core.unsubscribe("ann", *pairs(10))
    with pytest.raises(CapExceeded):
        core.heartbeat("ann", *pairs(10))
    assert core.one("SELECT pricing.forget_views()") >= 0
    with pytest.raises(CapExceeded):
        core.heartbeat("ann", *pairs(10))


def test_b7_holdings_have_the_same_caps(core: Core, cli: CommandLine) -> None:
    core.cap(2, 100)
    assert core.hold("ann", AAPL) == 1
    with pytest.raises(CapExceeded):
        core.hold("ann", *pairs(2))
    as_ann = ("--type", QUOTE, "--user", "ann")
    said = cli("holding", "open", "IBM", "MSFT", *as_ann)
    assert said.stdout.startswith("ann holds equity_quote IBM. ")
    assert "MSFT of equity_quote is refused: user ann may watch or hold 2 pairs at once; leave some" in said.stderr
    watch = cli("subscription", "watch", "A", "B", "C", *as_ann, "--all-or-nothing")
    assert "nothing was changed: C of equity_quote is refused: user ann may watch or hold 2 pairs" in watch.error
    core.cap(100, 2)
    said = cli("holding", "open", "A", "B", "C", "D", "--type", QUOTE, "--user", "bob", "--json")
    assert [(pair["given"], pair["code"], pair["retry_after"]) for pair in said.json["pairs"]] == [
        (symbol, "new_pairs_per_minute", 60) for symbol in "CD"
    ]


def test_b7_many_sessions_of_one_user_share_its_caps(core: Core, database_url: str) -> None:
    wait_for_locks(core)
    core.cap(1000, 40)
    outcomes: list[int] = []
    barrier = threading.Barrier(8)

    def look(number: int) -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            barrier.wait(PATIENCE)
            row = connection.execute(
                "SELECT pricing.heartbeat('ann', %s, %s)",
                [[QUOTE] * 12, [symbol for _, symbol in pairs(12, f"S{number}")]],
            ).fetchone()
            assert row is not None
            outcomes.append(row[0]["changed"])

    threads = [threading.Thread(target=look, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(outcomes) == [0, 0, 0, 0, 4, 12, 12, 12]
    assert watched(core) == 40


def test_b7_the_manager_sends_what_fits_and_the_rest_later(core: Core, engine: Engine, clock: Clock) -> None:
    core.cap(1000, 60)
    with SubscriptionManager(engine, "ann", every=0.2) as manager:
        manager.enter(pairs(90))
        wait_until(lambda: 60 <= watched(core) < 90)
        clock.advance(30)
        wait_until(lambda: watched(core) == 90)
        assert manager.refused == {}


def test_b7_the_manager_tells_what_can_never_fit(core: Core, engine: Engine) -> None:
    core.cap(30, 1000)
    with SubscriptionManager(engine, "ann", every=0.2) as manager:
        manager.enter(pairs(40))
        wait_until(lambda: len(manager.refused) == 10)
        wait_until(lambda: watched(core) == 30)
        assert manager.watched == set(pairs(30))
        assert "may watch or hold 30 pairs at once" in manager.refused[pairs(40)[-1]]


# What nobody should ask for


@pytest.mark.parametrize("function", ["heartbeat", "hold"])
def test_b7_odd_calls_are_refused_in_few_words(core: Core, function: str) -> None:
    for arguments, words in (
        ("NULL, '{equity_quote}', '{AAPL}'", "a user's name has"),
        ("repeat('x', 100000), '{equity_quote}', '{AAPL}'", "a user's name has"),
        ("'ann', '{equity_quote}', ARRAY[repeat('A', 100000)]", "more than 1000 characters"),
        ("'ann', ARRAY[repeat('x', 100000)], '{AAPL}'", "more than 1000 characters"),
        (
            "'ann', '{equity_quote}', '{AAPL,IBM}'",
            "two lists of one length are needed, not 1 data types and 2 symbols",
        ),
        ("'ann', '{equity_quote}', NULL", "two lists of one length"),
        ("'ann', '{equity_quote}', '{NULL}'", "one of them is NULL"),
        ("'ann', '{equity_quote,NULL}', '{AAPL,IBM}'", "one of them is NULL"),
        (
            "'ann', array_fill('equity_quote'::text, '{10001}'), array_fill('A'::text, '{10001}')",
            "10000 pairs, not 10001",
        ),
    ):
        with pytest.raises(DBAPIError) as refused:
            core.rows(f"SELECT pricing.{function}({arguments})".replace("::", "\\:\\:"))
        assert words in reason(refused.value)
        assert len(str(refused.value.orig)) < 2000
        assert core.rows("SELECT FROM pricing.demand") == []


def test_b7_a_call_of_nothing_does_nothing(core: Core) -> None:
    nothing = dict.fromkeys(("changed", "accepted", "doubtful", "refused"), 0) | {"pairs": [], "faults": []}
    assert core.one("SELECT pricing.heartbeat('ann', '{}', '{}')") == nothing
    assert core.one("SELECT pricing.hold('ann', '{}', '{}')") == nothing
    assert core.one("SELECT pricing.request_prices('{}', '{}')") == 0


def test_b7_the_server_stamps_the_time(core: Core) -> None:
    """No function of a client takes a time, so neither infinity nor the year 294276 can be said."""
    core.heartbeat("ann", AAPL)
    core.hold("ann", AAPL)
    taken = core.rows(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'pricing'::regnamespace"
        " AND proname IN ('heartbeat', 'unsubscribe', 'hold', 'release', 'request_prices')"
        " AND 'timestamptz'::regtype::oid = ANY (proargtypes)"
    )
    assert taken == []
    for column in ("subscribed_at", "last_seen_at"):
        assert abs((core.one(f"SELECT {column} FROM pricing.active_subscriptions") - core.clock()).total_seconds()) < 10


def test_b7_a_user_touches_nobody_elses_subscriptions(core: Core) -> None:
    core.heartbeat("ann", AAPL)
    core.hold("ann", AAPL)
    before = core.rows("SELECT *, ctid::text FROM pricing.active_subscriptions")
    with core.engine.begin() as connection:
        assert viewers.unsubscribe(connection, "bob", [AAPL]) == 0
        assert viewers.release(connection, "bob", [AAPL]) == 0
        viewers.heartbeat(connection, "bob", [AAPL])
    assert core.rows("SELECT *, ctid::text FROM pricing.active_subscriptions WHERE user_id = 'ann'") == before
    assert core.one("SELECT status FROM pricing.holdings") == "active"


def test_b5_lists_that_make_no_pairs_are_refused_on_leaving_too(core: Core) -> None:
    for function in ("unsubscribe", "release"):
        with pytest.raises(DBAPIError, match="two lists of one length"):
            core.rows(f"SELECT pricing.{function}('ann', '{{equity_quote}}', '{{AAPL,IBM}}')")


def test_b7_caps_that_were_deleted_are_named_with_the_way_back(core: Core) -> None:
    core.rows("DELETE FROM pricing.user_caps")
    with pytest.raises(DBAPIError, match=r"pricing\.user_caps has no row(.|\n)*INSERT INTO pricing\.user_caps"):
        core.heartbeat("ann", (QUOTE, "AAPL"))


# Reads


def read_all(owner_url: str, symbols: list[str]) -> list[str]:
    """Read prices as a client, each in a transaction of its own; returns the notices."""
    notices: list[str] = []
    with psycopg.connect(owner_url, autocommit=True) as client:
        client.add_notice_handler(lambda one: notices.append(str(one.message_primary)))
        client.execute("SELECT pricing.price(s) FROM unnest(%s::text[]) AS s", [symbols])
    return notices


def listed(core: Core, count: int) -> list[str]:
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol)"
        " SELECT 'equity', 'R' || n FROM generate_series(1, :n) AS n",
        n=count,
    )
    return [f"R{number}" for number in range(1, count + 1)]


@pytest.mark.parametrize(("per_user", "per_minute"), [(5, 5000), (10_000, 5)])
def test_b7_reads_are_capped(core: Core, owner_url: str, clock: Clock, per_user: int, per_minute: int) -> None:
    """Two thousand reads of a client with caps of 5 made four thousand tasks; a part of them shows it as well."""
    core.cap(per_user, per_minute)
    symbols = listed(core, 400 if is_thorough() else 30)
    notices = read_all(owner_url, symbols)
    assert any("asks for too many prices in a minute, so equity_" in one for one in notices)
    core.enqueue_due()
    assert len(core.tasks()) == 5
    read_all(owner_url, symbols)
    core.enqueue_due()
    assert len(core.tasks()) == 5, "not in this minute"
    clock.advance(61)
    read_all(owner_url, symbols)
    core.enqueue_due()
    assert len(core.tasks()) == 10


def test_b7_a_price_that_is_asked_for_already_uses_up_nothing(core: Core, owner_url: str) -> None:
    core.cap(5, 5)
    for _ in range(6):
        assert read_all(owner_url, ["AAPL"]) == []
    core.enqueue_due()
    for _ in range(6):
        assert read_all(owner_url, ["AAPL"]) == []
    assert len(core.tasks()) == 2
    assert read_all(owner_url, ["IBM"]) == [], "two more fit"


def test_b7_reads_and_heartbeats_share_one_allowance(core: Core, owner_url: str) -> None:
    core.cap(100, 10)
    user = core.one("SELECT session_user::text")
    core.heartbeat(user, *pairs(9))
    read_all(owner_url, ["AAPL"])
    with pytest.raises(CapExceeded):
        core.heartbeat(user, *pairs(2, "T"))
    core.enqueue_due()
    assert len(core.tasks()) == 10


def test_b7_sessions_of_one_user_that_read_at_once_keep_its_caps(core: Core, owner_url: str) -> None:
    """Nobody had read before, so each session entered an allowance of its own: ten pairs instead of five."""
    core.cap(5, 5)
    symbols = listed(core, 10)
    with psycopg.connect(owner_url) as slow:
        slow.execute("SELECT pricing.price(s) FROM unnest(%s::text[]) AS s", [symbols[:5]])
        read_all(owner_url, symbols[5:])
        slow.commit()
    read_all(owner_url, symbols[5:])
    core.enqueue_due()
    assert len(core.tasks()) == 5


def test_b7_reads_that_go_past_the_caps_unseen_wait_for_the_next_minute(
    core: Core, owner_url: str, clock: Clock
) -> None:
    """Sessions do not see what others have not committed: workers hold the caps, and lose nothing."""
    core.cap(5, 5)
    symbols = listed(core, 20)
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'equity_daily'")
    sessions = [psycopg.connect(owner_url) for _ in range(4)]
    for number, session in enumerate(sessions):
        mine = symbols[5 * number : 5 * number + 5]
        session.execute("SELECT pricing.price(s) FROM unnest(%s::text[]) AS s", [mine])
    for session in sessions:
        session.commit()
        session.close()
    for served in (5, 10, 15, 20, 20):
        core.enqueue_due()
        core.enqueue_due()
        assert len(core.tasks()) == served
        clock.advance(61)
    assert core.one("SELECT count(*) FROM pricing.pair_requests WHERE kind = 'read'") == 0


def test_a_reader_sees_of_what_is_asked_for_its_own(
    core: Core, owner_url: str, server: TestServer, database_url: str
) -> None:
    user = core.one("SELECT session_user::text")
    core.rows(
        "INSERT INTO pricing.pair_requests (data_type, symbol, kind, user_id)"
        " VALUES ('equity_quote', 'A', 'watched', NULL), ('equity_quote', 'B', 'read', :user)",
        user=user,
    )
    core.rows("INSERT INTO pricing.read_charges VALUES (:user, pricing.clock(), 1)", user=user)
    with a_login(server, database_url, "pricing_reader") as (name, url), psycopg.connect(url) as reader:
        assert name != user
        core.rows(
            "INSERT INTO pricing.pair_requests (data_type, symbol, kind, user_id)"
            " VALUES ('equity_quote', 'C', 'read', :name)",
            name=name,
        )
        assert reader.execute("SELECT symbol FROM pricing.pair_requests").fetchall() == [("C",)]
        assert reader.execute("SELECT FROM pricing.read_charges").fetchall() == []


def test_b7_reads_that_wait_count_as_much_as_served_ones(core: Core, owner_url: str) -> None:
    core.cap(100, 4)
    symbols = listed(core, 5)
    user = core.one("SELECT session_user::text")
    assert read_all(owner_url, symbols[:2]) == []
    with pytest.raises(CapExceeded):
        core.heartbeat(user, *pairs(1))
    core.rows("SELECT pricing.serve_requests()")
    assert read_all(owner_url, symbols[2:]) != []
    with pytest.raises(CapExceeded):
        core.heartbeat(user, *pairs(1))


def test_a10_reads_of_one_login_in_parallel_are_all_asked_for(core: Core, owner_url: str) -> None:
    """Eight sessions read 400 missing prices: 160 were asked for, and 240 notices told of a cap of 100,000."""
    core.cap(100_000, 100_000)
    symbols, notices, barrier = listed(core, 64), list[str](), threading.Barrier(8)

    def read(number: int) -> None:
        with psycopg.connect(owner_url, autocommit=True) as client:
            client.add_notice_handler(lambda one: notices.append(str(one.message_primary)))
            barrier.wait(PATIENCE)
            for symbol in symbols[8 * number : 8 * number + 8]:
                client.execute("SELECT pricing.price(%s)", [symbol])

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert notices == []
    assert core.one("SELECT count(*) FROM pricing.pair_requests WHERE kind = 'read'") == 128


@pytest.mark.parametrize("is_first", [True, False])
def test_a10_an_open_heartbeat_keeps_no_read_of_its_login_from_being_asked_for(
    core: Core, owner_url: str, is_first: bool
) -> None:
    symbols = listed(core, 6)
    user = core.one("SELECT session_user::text")
    if not is_first:
        core.heartbeat(user, *pairs(1))
    with psycopg.connect(owner_url) as slow:
        slow.execute("SELECT pricing.heartbeat('{equity_quote}', '{IBM}')")
        assert read_all(owner_url, symbols) == []
        core.enqueue_due()
        assert {task.symbol for task in core.tasks()} >= set(symbols), "and served"
        slow.rollback()


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
def test_a10_a_read_of_an_older_snapshot_answers_and_asks(
    core: Core, owner_url: str, level: psycopg.IsolationLevel
) -> None:
    """Another session of the login had read since the snapshot, and this one failed with 40001."""
    symbols = listed(core, 2)
    core.heartbeat(core.one("SELECT session_user::text"), *pairs(1))
    with psycopg.connect(owner_url) as old:
        old.isolation_level = level
        old.execute("SELECT 1")
        read_all(owner_url, symbols[:1])
        core.enqueue_due()
        core.heartbeat(core.one("SELECT session_user::text"), *pairs(2))
        old.execute("SELECT pricing.price(%s)", [symbols[1]])
        old.commit()
    core.enqueue_due()
    assert {task.symbol for task in core.tasks()} >= set(symbols)


@pytest.mark.parametrize("seconds", [120, 7200])
def test_b7_an_old_snapshot_does_not_get_past_the_caps(core: Core, owner_url: str, clock: Clock, seconds: int) -> None:
    """The allowance that another session had used was forgotten, and an old snapshot saw neither it nor the pairs."""
    core.cap(10, 1000)
    user = core.one("SELECT session_user::text")
    with psycopg.connect(owner_url) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("SELECT 1")
        core.heartbeat(user, *pairs(10))
        clock.advance(seconds)
        core.rows("UPDATE pricing.active_subscriptions SET last_seen_at = pricing.clock()")
        core.rows("SELECT pricing.forget_views()")
        with pytest.raises(psycopg.errors.SerializationFailure):
            old.execute("SELECT pricing.heartbeat('{equity_quote}', '{T1}')")
    assert watched(core, user) == 10


def test_b7_a_client_reads_and_watches_by_the_indexes(core: Core, owner_url: str) -> None:
    """The name of a session has a collation of its own, and no index of texts serves that."""
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol)"
        " SELECT 'equity', 'R' || n FROM generate_series(1, 1000) AS n"
    )
    core.rows(
        "INSERT INTO pricing.demand (data_type, symbol, due_at)"
        " SELECT 'equity_quote', 'R' || n, pricing.clock() FROM generate_series(1, 1000) AS n"
    )
    core.rows(
        "INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol)"
        " SELECT 'user' || n, 'equity_quote', 'R' || n FROM generate_series(1, 1000) AS n"
    )
    with core.owner.begin() as connection:
        before = rows_read(connection)
        connection.execute(text("SELECT * FROM pricing.price('R17')"))
        connection.execute(text("SELECT pricing.heartbeat('{equity_quote}', '{R17}')"))
        connection.execute(text("SELECT pricing.heartbeat('{equity_quote}', '{R17}')"))
        assert rows_read(connection) - before < 300
