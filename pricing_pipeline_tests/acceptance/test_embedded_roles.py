"""Who may do what on the embedded server, and that nobody becomes its superuser."""

from __future__ import annotations

import json
from contextlib import ExitStack

import psycopg
import pytest
from sqlalchemy import make_url

from pricing_pipeline.db import embedded_home as places
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.db.roles import role_faults
from pricing_pipeline_tests.fixtures.embedded import MakeServer, ask
from pricing_pipeline_tests.support.harm import HARMFUL, LOCKS
from pricing_pipeline_tests.tools.schema_page import SERVER_PAGE, server_rights


def test_starts_with_both_databases_and_both_roles(make_server: MakeServer) -> None:
    """A first start makes all of it; a second finds it, and asks for nothing."""
    server = make_server(new=True, durable=True)
    server.start()
    owners = "SELECT string_agg(datname || ' ' || datdba::regrole, ', ' ORDER BY datname) FROM pg_database"
    assert ask(server.url("pricing"), f"{owners} WHERE NOT datistemplate") == (
        "dagster postgres, postgres postgres, pricing pricing_owner"
    )
    assert ask(server.url("pricing"), "SELECT current_user") == "pricing_owner"
    for database in ("pricing", "dagster"):
        assert ask(server.url(database, "worker"), "SELECT current_user") == "pricing_worker"
    ask(server.url("pricing"), "CREATE TABLE kept (n int)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(server.url("pricing", "worker"), "SELECT count(*) FROM kept")
    settings = "SELECT concat_ws(' ', current_setting('timezone'), current_setting('jit'), current_setting('fsync'))"
    assert ask(server.url("pricing"), settings) == "UTC off on"
    assert (
        ask(
            server.url("pricing"),
            "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user",
        )
        is False
    )

    server.stop()
    assert not server.is_running
    server.start()
    assert ask(server.url("pricing"), "SELECT count(*) FROM kept") == 0


OF_OTHERS = [
    ("dagster", "ALTER DATABASE dagster SET search_path = pg_temp"),
    ("dagster", "CREATE SCHEMA own"),
    ("dagster", "CREATE TEMPORARY TABLE own (n int)"),
    ("pricing", "ALTER DATABASE pricing SET search_path = pg_temp"),
    ("pricing", "CREATE SCHEMA own"),
    ("pricing", "CREATE TEMPORARY TABLE own (n int)"),
    ("pricing", "CREATE FUNCTION public.own() RETURNS int RETURN 1"),
    ("pricing", "CREATE FUNCTION pricing.own() RETURNS int RETURN 1"),
    ("postgres", "SELECT 1"),
    ("template1", "SELECT 1"),
    ("pricing", "SELECT lo_create(0)"),
    ("pricing", "SELECT lo_from_bytea(0, 'x')"),
    ("dagster", "SELECT lo_creat(-1)"),
]


def test_b2_a_worker_shapes_no_session_of_others(make_server: MakeServer) -> None:
    """What decides on the meaning of names in owner's and superuser's sessions is closed to a worker."""
    refusals = (psycopg.errors.InsufficientPrivilege, psycopg.OperationalError, psycopg.ProgrammingError)
    with make_server() as server:
        upgrade(server.url("pricing"))
        for database, statement in OF_OTHERS:
            with pytest.raises(refusals, match=r"permission denied|must be owner"):
                ask(server.url(database, "worker"), statement)


def test_b2_a_location_of_others_reports_to_dagster_and_changes_nothing_else(make_server: MakeServer) -> None:
    """Also where its login is new: a home of an earlier version has none, and tables that it may not read."""
    refusals = (psycopg.errors.InsufficientPrivilege, psycopg.OperationalError, psycopg.ProgrammingError)
    with make_server(new=True, durable=True) as server:
        upgrade(server.url("pricing"))
        ask(server.url("dagster", "worker"), "CREATE TABLE later (id serial PRIMARY KEY)")
        ask(server.url("dagster", "superuser"), "DROP OWNED BY pricing_location")
        for database in ("pricing", "postgres"):
            ask(server.url(database, "superuser"), "DROP OWNED BY pricing_location")
        ask(server.url("postgres", "superuser"), "DROP ROLE pricing_location")
        memory = server.home / "postgres.json"
        known = json.loads(memory.read_text())
        del known["passwords"]["pricing_location"]
        memory.write_text(json.dumps(known))
    with server:
        ask(server.url("dagster", "worker"), "CREATE TABLE newest (id serial PRIMARY KEY)")
        for table in ("later", "newest"):
            ask(server.url("dagster", "location"), f"INSERT INTO {table} DEFAULT VALUES")
            ask(server.url("dagster", "location"), f"UPDATE {table} SET id = 2")
            ask(server.url("dagster", "location"), f"DELETE FROM {table}")
        assert ask(server.url("pricing", "location"), "SELECT count(*) FROM pricing.latest_prices") == 0
        harmful = [
            *OF_OTHERS,
            ("dagster", "DROP TABLE later"),
            ("dagster", "CREATE TABLE own (n int)"),
            ("pricing", "DELETE FROM pricing.latest_prices"),
            ("pricing", "SELECT pg_advisory_lock(1)"),
        ]
        for database, statement in harmful:
            with pytest.raises(refusals, match=r"permission denied|must be owner"):
                ask(server.url(database, "location"), statement)


def test_b2_the_page_shows_every_right_on_the_server(make_server: MakeServer) -> None:
    with make_server(new=True, durable=True) as server:
        upgrade(server.url("pricing"))
        assert server_rights(server) == SERVER_PAGE.read_text(), "rights have changed: run `make pages`"


def most(sessions: ExitStack, url: str) -> int:
    """Opens sessions until the server refuses one; how many that were."""
    for number in range(200):
        try:
            sessions.enter_context(psycopg.connect(url))
        except psycopg.OperationalError as refused:
            if "too many connections" in str(refused) or "remaining connection slots" in str(refused):
                return number
            raise
    return 200


def test_b2_no_login_keeps_the_others_out(make_server: MakeServer) -> None:
    """Of 100 places owner and worker have the last 20, a worker 70 at most, and a person 10 from the next start on."""
    server = make_server(new=True, durable=True)
    with server:
        owner, superuser = server.url("pricing"), server.url("postgres", "superuser")
        worker, person = server.url("pricing", "worker"), owner.replace("pricing_owner:", "ann:")
        password = make_url(person).password
        ask(superuser, f"CREATE ROLE ann LOGIN PASSWORD '{password}' IN ROLE pricing_reader")
        with ExitStack() as sessions:
            assert most(sessions, person) == 100 - 3 - 20
            assert most(sessions, worker) == 20
        with ExitStack() as sessions:
            assert most(sessions, worker) == 70
            assert most(sessions, person) == 100 - 3 - 20 - 70
            assert most(sessions, owner) == 20
            assert ask(superuser) == 1
        ask(superuser, "ALTER ROLE pricing_worker CONNECTION LIMIT 50")
    with server, ExitStack() as sessions:
        assert most(sessions, person) == 10
        assert most(sessions, worker) == 50, "what an administrator sets stays"


def person(server: EmbeddedServer, group: str, database: str = "pricing") -> str:
    """Make the login ann, a member of `group`, and return its URL."""
    url = make_url(server.url(database)).set(username="ann")
    ask(
        server.url("postgres", "superuser"),
        f"CREATE ROLE ann LOGIN PASSWORD '{url.password}' IN ROLE {group}",
    )
    return url.render_as_string(hide_password=False)


@pytest.mark.parametrize("group", ["pricing_client", "pricing_reader"])
def test_b2_a_person_may_do_nothing_that_harms_the_whole_server(make_server: MakeServer, group: str) -> None:
    """One session took advisory locks until no other could start a transaction, in any database."""
    with make_server() as server:
        upgrade(server.url("pricing"))
        superuser = server.url("postgres", "superuser")
        ann = person(server, group)
        for database in ("one", "other"):
            ask(superuser, f"CREATE DATABASE {database}")
        other = make_url(ann).set(database="other").render_as_string(hide_password=False)
        # As an earlier version left it, and as somebody may grant it again.
        for database in ("template1", "other"):
            ask(server.url(database, "superuser"), "GRANT USAGE ON LANGUAGE plpgsql TO PUBLIC")
            ask(
                server.url(database, "superuser"),
                "GRANT EXECUTE ON FUNCTION pg_advisory_lock(bigint) TO PUBLIC",
            )
        ask(other, "SELECT pg_advisory_lock(1)")
    with server:
        ask(superuser, "CREATE DATABASE later")
        for database in ("pricing", "one", "other", "later"):
            url = make_url(ann).set(database=database).render_as_string(hide_password=False)
            for statement in HARMFUL:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    ask(url, statement)
        for role in ("owner", "worker"):
            for statement in (*LOCKS, "DO $$ BEGIN END $$"):
                ask(server.url("pricing", role), statement)  # type: ignore[arg-type]
        assert ask(ann, "SHOW temp_file_limit") == "1GB"


def test_b2_what_an_administrator_sets_for_a_role_stays(make_server: MakeServer) -> None:
    server = make_server()
    with server:
        superuser = server.url("postgres", "superuser")
        ann = person(server, "pricing_reader")
        ask(superuser, "ALTER ROLE ann SET temp_file_limit = '1MB'")
        ask(superuser, "ALTER ROLE pricing_worker IN DATABASE pricing RESET ALL")
        # A setting whose name ends as another's does is another one.
        ask(superuser, "ALTER ROLE pricing_worker SET deadlock_timeout = '7s'")
        ask(superuser, "ALTER ROLE pricing_worker SET statement_timeout = '7s'")
    with server:
        worker = server.url("pricing", "worker")
        names = (
            "lock_timeout",
            "statement_timeout",
            "deadlock_timeout",
            "idle_in_transaction_session_timeout",
            "client_connection_check_interval",
        )
        assert [ask(worker, f"SHOW {name}") for name in names] == ["2s", "7s", "7s", "30s", "5s"]
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="temp_file_limit"):
            ask(ann, "SELECT count(*) FROM (SELECT g::text FROM generate_series(1, 1000000) g ORDER BY 1) s")


# For each function and operator of PostgreSQL one of the same name and arguments: an attack on the caller.
# Polymorphic and internal ones are left out: no other type of argument is nearer to them than their own.
SHADOWS = """
DO $$
DECLARE
    shadow record;
BEGIN
    CREATE SCHEMA trap;
    GRANT ALL ON SCHEMA trap TO PUBLIC;
    FOR shadow IN
        SELECT p.proname, p.proretset, p.prorettype::regtype AS returned,
               pg_catalog.pg_get_function_identity_arguments(p.oid) AS arguments
        FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.provariadic = 0
          AND p.proargmodes IS NULL AND NOT EXISTS (
              SELECT FROM unnest(p.proargtypes || p.prorettype) AS a (oid) JOIN pg_catalog.pg_type t ON t.oid = a.oid
              WHERE t.typtype = 'p')
    LOOP
        EXECUTE format(
            'CREATE FUNCTION trap.%I(%s) RETURNS %s %s LANGUAGE plpgsql AS $f$
             BEGIN ALTER ROLE pricing_worker SUPERUSER; RAISE EXCEPTION ''sprung''; END$f$',
            shadow.proname, shadow.arguments, CASE WHEN shadow.proretset THEN 'SETOF' ELSE '' END, shadow.returned);
    END LOOP;
    FOR shadow IN
        SELECT o.oprname, o.oprleft::regtype AS left_type, o.oprright::regtype AS right_type, p.proname
        FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode
        WHERE o.oprleft <> 0 AND to_regprocedure(
            format('trap.%I(%s, %s)', p.proname, o.oprleft::regtype, o.oprright::regtype)) IS NOT NULL
    LOOP
        EXECUTE format('CREATE OPERATOR trap.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = trap.%I)',
                       shadow.oprname, shadow.left_type, shadow.right_type, shadow.proname);
    END LOOP;
END $$;
"""


def test_b2_a_worker_who_owned_its_database_does_not_become_superuser(make_server: MakeServer) -> None:
    """It once could decide what the superuser's statements mean in `dagster`, at each start."""
    with make_server() as server:
        superuser, worker = server.url("postgres", "superuser"), server.url("dagster", "worker")
        ask(superuser, "ALTER DATABASE dagster OWNER TO pricing_worker")
        ask(worker, SHADOWS)
        ask(worker, "CREATE TABLE runs (id bigserial PRIMARY KEY)")
        ask(worker, "ALTER DATABASE dagster SET search_path = trap, pg_catalog, public")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied to alter role"):
            ask(worker, "SELECT current_database()")
    with server:
        assert not ask(superuser, "SELECT rolsuper FROM pg_roles WHERE rolname = 'pricing_worker'")
        assert ask(worker, "SHOW search_path") == '"$user", public'
        assert ask(worker, "INSERT INTO runs DEFAULT VALUES RETURNING id") == 1
        ask(worker, "CREATE TABLE more (id bigint)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(worker, "ALTER DATABASE dagster SET search_path = trap, pg_catalog, public")


def test_b2_a_cluster_of_an_earlier_version_gets_its_roles_parted(make_server: MakeServer) -> None:
    """Its worker was a member of the owner."""
    server = make_server(new=True)
    with server:
        upgrade(server.url("pricing"))
        superuser = server.url("postgres", "superuser")
        ask(superuser, "GRANT pricing_owner TO pricing_worker")
        for role in places.GROUPS:
            ask(server.url("pricing", "superuser"), f"DROP OWNED BY {role}")
            ask(superuser, f"DROP ROLE {role}")
    with server:
        upgrade(server.url("pricing"))
        assert ask(superuser, "SELECT pg_has_role('pricing_worker', 'pricing_owner', 'MEMBER')") is False
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(server.url("pricing", "worker"), "DELETE FROM pricing.data_type_registry")
        engine = make_engine(server.url("pricing", "worker"))
        with engine.connect() as connection:
            assert role_faults(connection) == []
        engine.dispose()
