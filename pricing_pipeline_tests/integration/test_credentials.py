"""A4, F9: stored keys of providers, in a real database: who may touch them, what opens, what a change of them means."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.errors import (
    PricingError,
    SealBroken,
    UnknownCredential,
    UnknownMasterKey,
    UnknownProvider,
)
from pricing_pipeline.keys import credentials
from pricing_pipeline.keys.sealing import Keyring, new_key
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")

CANARY = "canary-5ecret-0123456789"
OLD, NEW = new_key("old"), new_key("new")
BEFORE, AFTER = Keyring.parse([OLD]), Keyring.parse([NEW, OLD])
SEALED = ("key_nonce", "wrapped_key", "secret_nonce", "ciphertext")


def put(engine: Engine, name: str = "default", secret: str = CANARY, keyring: Keyring = BEFORE, **limits: int) -> bool:
    with engine.begin() as connection:
        return credentials.store(connection, keyring, TWELVEDATA, name, SecretStr(secret), limits)


def opened(engine: Engine, keyring: Keyring = BEFORE) -> tuple[dict[str, str], dict[str, PricingError]]:
    """What opens, and why the rest does not, by the key's name; read as the worker reads."""
    with engine.begin() as connection:
        good, bad = credentials.open_all(keyring, credentials.stored(connection))
    return {n: s.get_secret_value() for (_, n), s in good.items()}, {n: error for (_, n), error in bad.items()}


def test_a4_a_stored_key_is_opened_by_a_worker_and_by_nobody_without_the_master_key(core: Core) -> None:
    put(core.owner)
    assert opened(core.engine) == ({"default": CANARY}, {})
    assert isinstance(opened(core.engine, Keyring.parse([NEW]))[1]["default"], UnknownMasterKey)
    assert isinstance(opened(core.engine, Keyring.parse([new_key("old")]))[1]["default"], SealBroken)
    (row,) = core.rows("SELECT c::text AS shown FROM pricing.provider_credentials c")
    for form in (CANARY, CANARY.encode().hex(), OLD.partition(":")[2]):
        assert form not in row.shown


def test_a4_what_is_swapped_between_rows_does_not_open(core: Core) -> None:
    """Whole rows, every part alone, and every group of parts."""
    put(core.owner, "one", "first-of-two-secrets")
    put(core.owner, "two", "second-of-two-secrets")
    honest = opened(core.engine)
    assert honest[0] == {"one": "first-of-two-secrets", "two": "second-of-two-secrets"}
    columns = ("row_version", "master_key_id", *SEALED)
    groups: set[tuple[str, ...]] = {(one,) for one in SEALED} | {("row_version",), SEALED, columns}
    groups |= {tuple(sorted(pair)) for pair in permutations(SEALED, 2)}
    for group in sorted(groups):
        # The version is unique at any moment, so a thief would free it first.
        swap = ", ".join(f"{column} = o.{column}" for column in group)
        core.rows("ALTER TABLE pricing.provider_credentials DROP CONSTRAINT IF EXISTS credential_version_is_unique")
        exchange = (
            f"UPDATE pricing.provider_credentials c SET {swap} FROM pricing.provider_credentials o"
            " WHERE o.provider = c.provider AND o.key_name <> c.key_name"
        )
        core.rows(exchange)
        good, bad = opened(core.engine)
        assert good == {}, group
        assert {type(error) for error in bad.values()} == {SealBroken}
        core.rows(exchange)
        assert opened(core.engine) == honest


@pytest.mark.parametrize("column", SEALED)
def test_a4_a_bit_flipped_in_the_database_is_noticed(core: Core, column: str) -> None:
    put(core.owner)
    put(core.owner, "other", "another-secret-of-the-same")
    bits = 8 * core.one(f"SELECT min(octet_length({column})) FROM pricing.provider_credentials")
    for bit in (0, 1, bits // 2, bits - 128, bits - 1):
        flip = (
            f"UPDATE pricing.provider_credentials SET {column} = set_bit({column}, {max(bit, 0)},"
            f" 1 - get_bit({column}, {max(bit, 0)})) WHERE key_name = 'default'"
        )
        core.rows(flip)
        good, bad = opened(core.engine)
        assert good == {"other": "another-secret-of-the-same"}, "one bad row costs no other"
        assert isinstance(bad["default"], SealBroken)
        core.rows(flip)
    assert opened(core.engine)[1] == {}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("key_name = 'mine'", SealBroken),
        ("provider = 'mfapi'", SealBroken),
        ("row_version = row_version + 1", SealBroken),
        ("master_key_id = 'new'", SealBroken),
        ("master_key_id = 'unheard-of'", UnknownMasterKey),
    ],
)
def test_a4_a_row_that_is_called_otherwise_does_not_open(core: Core, change: str, fault: type[Exception]) -> None:
    core.rows(
        "INSERT INTO pricing.provider_keys (provider, key_name) VALUES ('twelvedata', 'mine'), ('mfapi', 'default')"
    )
    put(core.owner)
    core.rows(f"UPDATE pricing.provider_credentials SET {change}")
    good, bad = opened(core.engine, AFTER)
    assert good == {}
    assert [type(error) for error in bad.values()] == [fault]


def test_a4_an_earlier_secret_put_back_under_the_new_version_does_not_open(core: Core) -> None:
    put(core.owner, secret="the-secret-of-before")
    core.rows("CREATE TABLE loot AS SELECT * FROM pricing.provider_credentials")
    put(core.owner, secret="the-secret-of-today")
    core.rows(
        "UPDATE pricing.provider_credentials c SET (key_nonce, wrapped_key, secret_nonce, ciphertext)"
        " = (SELECT key_nonce, wrapped_key, secret_nonce, ciphertext FROM loot)"
    )
    assert isinstance(opened(core.engine)[1]["default"], SealBroken)


def test_a4_no_version_and_no_nonce_is_used_twice(core: Core) -> None:
    """Also where a key is removed and set again."""
    core.rows("CREATE TABLE seen AS SELECT * FROM pricing.provider_credentials")
    for turn in range(8):
        put(core.owner, secret=CANARY)
        core.rows("INSERT INTO seen SELECT * FROM pricing.provider_credentials")
        if turn % 4 == 3:
            with core.owner.begin() as connection:
                credentials.remove(connection, TWELVEDATA, "default")
    for column in ("row_version", "wrapped_key", "ciphertext"):
        assert core.one(f"SELECT count(DISTINCT {column}) FROM seen") == 8
    assert (
        core.one(
            "SELECT count(DISTINCT n) FROM (SELECT key_nonce AS n FROM seen UNION ALL SELECT secret_nonce FROM seen) x"
        )
        == 16
    )
    assert (
        core.one(
            "SELECT count(*) FROM seen WHERE octet_length(key_nonce) * 8 <> 96 OR octet_length(secret_nonce) * 8 <> 96"
        )
        == 0
    )


# Who may


def test_a4_a_worker_reads_sealed_keys_and_writes_none(core: Core) -> None:
    put(core.owner)
    with core.owner.begin() as connection:
        sealed = credentials.stored(connection)[0].sealed
    assert [row.sealed for row in _stored(core.engine)] == [sealed]
    for attempt in (
        lambda: put(core.engine, secret="of-a-worker-taken-over"),
        lambda: _removed(core.engine),
        lambda: credentials.reseal(core.engine, AFTER),
        lambda: core.call("DELETE FROM pricing.provider_keys"),
    ):
        with pytest.raises(DBAPIError) as refused:
            attempt()
        assert getattr(refused.value.orig, "sqlstate", None) == "42501"
    assert opened(core.engine) == ({"default": CANARY}, {})


@pytest.mark.parametrize("role", ["pricing_client", "pricing_reader"])
def test_a4_clients_and_readers_see_not_even_what_is_sealed(
    core: Core, role: str, connection: psycopg.Connection[Any]
) -> None:
    put(core.owner)
    for right in ("SELECT", "INSERT", "UPDATE", "DELETE"):
        row = connection.execute(
            "SELECT has_table_privilege(%s, 'pricing.provider_credentials', %s)"
            " OR has_any_column_privilege(%s, 'pricing.provider_credentials', %s)",
            [role, right, role, right if right != "DELETE" else "SELECT"],
        ).fetchone()
        assert row == (False,), right


def _stored(engine: Engine) -> list[credentials.Stored]:
    with engine.begin() as connection:
        return credentials.stored(connection)


def _removed(engine: Engine) -> None:
    with engine.begin() as connection:
        credentials.remove(connection, TWELVEDATA, "default")


# What it means for calls


def test_a4_a_stored_key_is_claimed_for_with_its_own_limits(core: Core) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    put(core.owner, "small", "secret-of-the-small-plan")
    put(core.owner, "large", "secret-of-the-large-plan", minute=55)
    core.enqueue(QUOTE, *(f"S{number:03d}" for number in range(90)))
    taken: dict[str, int] = {}
    while calls := core.claim(max_calls=10):
        for call in calls:
            taken[call.key_name] = taken.get(call.key_name, 0) + len(call.tasks)
    assert taken == {"large": 55, "small": 8}


def test_a4_a_removed_key_is_claimed_for_no_more_until_it_is_stored_again(core: Core) -> None:
    put(core.owner)
    core.enqueue(QUOTE, "AAPL", "MSFT")
    _removed(core.owner)
    assert core.claim() == []
    assert core.rows("SELECT FROM pricing.provider_credentials") == []
    with pytest.raises(UnknownCredential, match="no key 'default' of 'twelvedata' is stored"):
        _removed(core.owner)
    put(core.owner)
    assert core.claim_one().key_name == "default"


def test_a4_a_new_secret_does_not_inherit_the_pause_of_the_old_one(core: Core, clock: Clock) -> None:
    assert put(core.owner) is False
    core.throttle(TWELVEDATA, 3000)
    assert core.allowance().blocked_seconds
    clock.advance(60)
    assert put(core.owner, secret="the-secret-of-today") is True
    assert core.allowance().blocked_seconds is None
    (row,) = _stored(core.owner)
    assert row.replaced_at == row.sealed_at
    assert (row.sealed_at - row.created_at).total_seconds() == pytest.approx(60, abs=5)


def test_a4_an_unknown_provider_is_told_with_those_that_are_known(core: Core) -> None:
    with (
        pytest.raises(UnknownProvider, match=r"'nobody'\. Known: .*mfapi.*twelvedata"),
        core.owner.begin() as connection,
    ):
        credentials.store(connection, BEFORE, "nobody", "default", SecretStr(CANARY))
    with pytest.raises(UnknownProvider), core.engine.begin() as connection:
        credentials.stored(connection, "nobody")


def test_a4_a_provider_takes_its_keys_along(core: Core) -> None:
    core.rows("INSERT INTO pricing.data_collectors (provider, base_url) VALUES ('short', 'https://short.example')")
    with core.owner.begin() as connection:
        credentials.store(connection, BEFORE, "short", "default", SecretStr(CANARY))
    core.rows("DELETE FROM pricing.data_collectors WHERE provider = 'short'")
    assert _stored(core.owner) == []


# Rotation


def test_f9_reseal_puts_every_key_under_the_newest_master_key(core: Core) -> None:
    put(core.owner, "one", "first-of-two-secrets")
    put(core.owner, "two", "second-of-two-secrets")
    before = {row.key_name: row for row in _stored(core.owner)}
    result = credentials.reseal(core.owner, AFTER)
    assert (result.done, result.faults, result.in_use) == (2, (), {"new"})
    for name, row in {row.key_name: row for row in _stored(core.owner)}.items():
        assert row.sealed.row_version > before[name].sealed.row_version
        for part in SEALED:
            assert getattr(row.sealed, part) != getattr(before[name].sealed, part), "nothing of before is left"
        assert row.replaced_at is None, "the secret is the same"
    newest_alone = Keyring.parse([NEW])
    assert opened(core.engine, newest_alone)[0] == {
        "one": "first-of-two-secrets",
        "two": "second-of-two-secrets",
    }
    assert credentials.reseal(core.owner, AFTER).done == 0, "what is done is not done again"


def test_f9_a_row_that_does_not_open_is_told_and_costs_the_others_nothing(core: Core) -> None:
    put(core.owner, "lost", keyring=Keyring.parse([new_key("gone")]))
    put(core.owner, "two")
    result = credentials.reseal(core.owner, AFTER)
    assert (result.done, result.in_use) == (1, {"new", "gone"})
    assert [type(fault) for fault in result.faults] == [UnknownMasterKey]


def test_f9_a_key_that_is_set_while_it_is_sealed_anew_is_not_undone(core: Core) -> None:
    """The rotation has read the old row when somebody sets another secret."""
    put(core.owner, secret="the-secret-of-before")

    class Meanwhile(Keyring):
        def open(self, sealed: Any) -> SecretStr:
            found = super().open(sealed)
            put(core.owner, secret="the-secret-of-today")
            return found

    result = credentials.reseal(core.owner, Meanwhile.parse([NEW, OLD]))
    assert (result.done, result.in_use) == (0, {"old"})
    assert opened(core.engine)[0] == {"default": "the-secret-of-today"}


@pytest.mark.parametrize("secret", ["", "two words", "line\nbreak", "nö", "tab\t", "x" * 4097])
def test_a4_a_secret_that_no_header_can_carry_is_refused_and_not_shown(secret: str) -> None:
    with pytest.raises(PricingError, match="Nothing has changed") as refused:
        credentials.checked_secret(secret)
    assert not secret or secret not in str(refused.value)


def test_a4_a_person_sees_two_characters_of_a_long_key_and_none_of_a_short_one() -> None:
    assert credentials.hint(SecretStr(CANARY)) == "…89"
    assert credentials.hint(SecretStr("short-canary-15")) == "…"
