"""F9: keys are sealed anew under load, by two at once, killed in the middle; they can always be read."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine

from pricing_pipeline.keys import credentials, master_keys
from pricing_pipeline.keys.clients import StoredKeys
from pricing_pipeline.keys.sealing import Keyring, new_key
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.core import TWELVEDATA, Core
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.workers import Worker, crowd

OLD, NEW = new_key("old"), new_key("new")
ROWS = {f"key{number}": f"secret-number-{number}-of-many" for number in range(6)}


@pytest.fixture
def stored(core: Core) -> Core:
    """Six keys under the old master key."""
    fill(core.owner, Keyring.parse([OLD]))
    return core


def fill(owner: Engine, keyring: Keyring) -> None:
    with owner.begin() as connection:
        for name, secret in ROWS.items():
            credentials.store(connection, keyring, TWELVEDATA, name, SecretStr(secret))


def opened(engine: Engine, *lines: str) -> dict[str, str]:
    with engine.begin() as connection:
        good, bad = credentials.open_all(Keyring.parse(lines), credentials.stored(connection))
    assert bad == {}
    return {name: secret.get_secret_value() for (_, name), secret in good.items()}


def under(core: Core) -> dict[str, int]:
    rows = core.rows("SELECT master_key_id AS id, count(*) AS rows FROM pricing.provider_credentials GROUP BY 1")
    return {row.id: row.rows for row in rows}


@pytest.mark.parametrize(("halt", "done"), [("sealed", 2), ("committed", 3)])
def test_f9_a_rotation_that_is_killed_in_the_middle_is_taken_up_by_the_next(
    stored: Core, owner_url: str, halt: str, done: int
) -> None:
    """Within a transaction, and between two."""
    with Worker("rotate_keys", url=owner_url, master_keys=[NEW, OLD], halt=halt, after=3) as worker:
        worker.start().says("halted")
        assert opened(stored.engine, NEW, OLD) == ROWS, "while it stands still"
        worker.kill()
    assert opened(stored.engine, NEW, OLD) == ROWS
    assert under(stored) == {"new": done, "old": 6 - done}
    result = credentials.reseal(stored.owner, Keyring.parse([NEW, OLD]))
    assert (result.done, result.faults, result.in_use) == (6 - done, (), {"new"})
    assert opened(stored.engine, NEW) == ROWS, "the old master key is needed no more"


def test_f9_two_rotations_at_once_do_no_harm(stored: Core, owner_url: str) -> None:
    results = crowd(2, "rotate_keys", url=owner_url, master_keys=[NEW, OLD])
    assert sum(result["done"] for result in results) == 6, "each row by one of them"
    assert [result["faults"] for result in results] == [[], []]
    assert opened(stored.engine, NEW) == ROWS


def test_f9_all_keys_can_be_read_all_the_time_while_master_keys_change(core: Core, tmp_path: Path) -> None:
    """Readers are workers as they start (they open everything anew) and as they run (they open what has changed)."""
    settings = Settings(home=tmp_path, sandbox=False)
    fill(core.owner, master_keys.load_or_make(settings)[0])
    wanted = {TWELVEDATA: ROWS}
    over, wrong, looks = threading.Event(), [], []

    def read() -> None:
        running = StoredKeys(settings, core.engine)
        while not over.is_set():
            for keys in (running, StoredKeys(settings, core.engine)):
                with core.engine.connect() as connection:
                    rows = credentials.stored(connection)
                found = {
                    provider: {name: secret.get_secret_value() for name, secret in named.items()}
                    for provider, named in keys.opened(rows).items()
                }
                looks.append(1)
                if found != wanted:
                    wrong.append(found)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    seen = set()
    try:
        for _ in range(8):
            before = len(looks)
            result = credentials.reseal(core.owner, master_keys.add(settings))
            assert (result.done, len(result.in_use)) == (6, 1)
            seen |= result.in_use
            wait_until(lambda seen=before: len(looks) >= seen + 8 or bool(wrong))
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert wrong == []
    assert len(seen) == 8
    assert core.rows("SELECT FROM pricing.warnings") == []
