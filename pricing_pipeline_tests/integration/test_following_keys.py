"""F9: a worker's clients follow stored keys and master keys while they work. The real client, against the sandbox."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from pricing_pipeline.keys import credentials, master_keys
from pricing_pipeline.keys.clients import StoredKeys, open_clients
from pricing_pipeline.providers import configured
from pricing_pipeline.queue.pages import ClaimedPages
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.settings import Settings
from pricing_pipeline.stack import missing_keys
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.refreshing import work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox

BASE = "canary-5ecret-0123456789"
"""What the sandbox takes for its key, also with -name behind it. Its log tells that name."""


@pytest.fixture
def sandbox(core: Core) -> Iterator[RunningSandbox]:
    """It stands for the real service: the providers' rows name it."""
    with running_sandbox(key=BASE) as sandbox:
        core.rows(
            "UPDATE pricing.data_collectors SET base_url = CAST(:url AS text) || '/' || provider",
            url=sandbox.url,
        )
        yield sandbox


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, sandbox=False)


def put(core: Core, settings: Settings, name: str, secret: str, provider: str = TWELVEDATA) -> None:
    keyring, _ = master_keys.load_or_make(settings)
    with core.owner.begin() as connection:
        credentials.store(connection, keyring, provider, name, SecretStr(secret))


def remove(core: Core, name: str) -> None:
    with core.owner.begin() as connection:
        credentials.remove(connection, TWELVEDATA, name)


def look(core: Core, keys: StoredKeys) -> dict[str, dict[str, SecretStr]]:
    with core.engine.connect() as connection:
        rows = credentials.stored(connection)
    return keys.opened(rows)


@contextmanager
def working(core: Core, settings: Settings, *, look_seconds: float = 0.05) -> Iterator[Refresher]:
    with (
        open_clients(settings, core.engine, look_seconds=look_seconds) as clients,
        Refresher(core.engine, clients, worker="w") as refresher,
    ):
        yield refresher


def completed(core: Core, *symbols: str) -> bool:
    return core.one(
        "SELECT count(*) FROM pricing.api_call_queue_completed WHERE symbol = ANY (:symbols)",
        symbols=list(symbols),
    ) == len(symbols)


def test_f9_a_running_drain_takes_up_a_key_that_is_replaced(
    core: Core, settings: Settings, sandbox: RunningSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    put(core, settings, "default", f"{BASE}-before")
    core.enqueue(QUOTE, "AAPL")
    with working(core, settings) as refresher:
        work_until(refresher, lambda: completed(core, "AAPL"))
        client = refresher._clients[TWELVEDATA]
        put(core, settings, "default", f"{BASE}-after")
        wait_until(lambda: client._keys["default"].get_secret_value().endswith("-after"))
        core.enqueue(QUOTE, "MSFT")
        work_until(refresher, lambda: completed(core, "MSFT"))
    assert [call["key_name"] for call in sandbox.calls(TWELVEDATA)] == ["before", "after"]
    assert "canary" not in caplog.text


def test_f9_a_key_that_no_header_can_carry_does_not_keep_the_others_as_they_were(
    core: Core, settings: Settings, sandbox: RunningSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    put(core, settings, "default", f"{BASE}-before")
    with working(core, settings) as refresher:
        put(core, settings, "default", "a key with spaces", provider="fmp")
        wait_until(lambda: "the keys of fmp stay as they were" in caplog.text)
        put(core, settings, "default", f"{BASE}-after")
        client = refresher._clients[TWELVEDATA]
        wait_until(lambda: client._keys["default"].get_secret_value().endswith("-after"))
        core.enqueue(QUOTE, "AAPL")
        work_until(refresher, lambda: completed(core, "AAPL"))
    assert [call["key_name"] for call in sandbox.calls(TWELVEDATA)] == ["after"]
    assert "with spaces" not in caplog.text


def test_f9_a_running_drain_takes_up_new_keys_and_lets_removed_ones_go(
    core: Core, settings: Settings, sandbox: RunningSandbox
) -> None:
    """The first key of all comes while it works: what waited for one is fetched without a lost attempt."""
    core.enqueue(QUOTE, "AAPL")
    with working(core, settings) as refresher:
        why = "SELECT blocked_reason FROM pricing.provider_keys WHERE provider = 'twelvedata'"
        work_until(refresher, lambda: bool(core.rows(why)))
        assert "no key 'default' of twelvedata. Store it with `pricing-pipeline key set" in core.one(why)
        assert sandbox.calls(TWELVEDATA) == [], "nothing is asked without a key"
        client = refresher._clients[TWELVEDATA]
        put(core, settings, "default", f"{BASE}-first")
        put(core, settings, "second", f"{BASE}-other")
        wait_until(lambda: client.key_names == {"default", "second"})
        core.rows("UPDATE pricing.api_call_queue_live SET run_after = pricing.clock() WHERE status = 'scheduled'")
        work_until(refresher, lambda: completed(core, "AAPL"))
        remove(core, "default")
        wait_until(lambda: client.key_names == {"second"})
        core.enqueue(QUOTE, "MSFT")
        work_until(refresher, lambda: completed(core, "MSFT"))
    assert [call["key_name"] for call in sandbox.calls(TWELVEDATA)][-1] == "other"
    assert {task.attempt for task in core.tasks()} == {1}


def test_f9_a_running_drain_asks_a_provider_that_is_switched_on(
    core: Core, settings: Settings, sandbox: RunningSandbox
) -> None:
    put(core, settings, "default", f"{BASE}-first")
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'twelvedata'")
    with working(core, settings) as refresher:
        assert TWELVEDATA not in refresher._clients
        core.rows("UPDATE pricing.data_collectors SET is_active = true WHERE provider = 'twelvedata'")
        wait_until(lambda: TWELVEDATA in refresher._clients)
        core.enqueue(QUOTE, "AAPL")
        work_until(refresher, lambda: completed(core, "AAPL"))
    assert [call["key_name"] for call in sandbox.calls(TWELVEDATA)] == ["first"]


def test_f9_a_call_whose_key_was_removed_meanwhile_waits_for_another(
    core: Core, settings: Settings, sandbox: RunningSandbox
) -> None:
    """It was claimed with a key that is gone when the call begins: snoozed, no attempt lost."""
    put(core, settings, "default", f"{BASE}-first")
    core.enqueue(QUOTE, "AAPL")
    with working(core, settings, look_seconds=3600) as refresher:
        refresher._clients[TWELVEDATA].replace_keys({})
        call = core.claim_one(worker="w")
        refresher._make(call, ClaimedPages(core.engine, call))
    assert core.task("AAPL").status == "scheduled"
    assert core.task("AAPL").attempt == 0
    assert sandbox.calls(TWELVEDATA) == []


def test_a4_against_the_sandbox_no_stored_key_is_sent_or_even_opened(core: Core, tmp_path: Path) -> None:
    real = Settings(home=tmp_path / "real", sandbox=False)
    put(core, real, "default", "a-real-secret-of-a-person")
    put(core, real, "second", "another-secret-of-a-person")
    core.enqueue(QUOTE, "AAPL")
    with running_sandbox() as sandbox:
        ours = Settings(home=tmp_path / "without-master-key", sandbox_url=sandbox.url)
        with working(core, ours) as refresher:
            keys = refresher._clients[TWELVEDATA]._keys
            assert {name: key.get_secret_value() for name, key in keys.items()} == {
                "default": "sandbox-key",
                "second": "sandbox-key-second",
            }
            work_until(refresher, lambda: completed(core, "AAPL"))
        assert [call["refused"] for call in sandbox.calls(TWELVEDATA)] == [False]
    assert not (tmp_path / "without-master-key").exists()


def test_a4_a_stored_key_goes_before_one_of_its_name_that_is_set(core: Core, tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {
            "home": tmp_path,
            "sandbox": False,
            "twelvedata_api_key": "set-secret",
            "twelvedata_api_keys": "b=set-b",
        }
    )
    put(core, settings, "default", "stored-secret")
    put(core, settings, "c", "stored-c")
    with open_clients(settings, core.engine) as clients:
        found = {name: key.get_secret_value() for name, key in clients[TWELVEDATA]._keys.items()}
    assert found == {"default": "stored-secret", "b": "set-b", "c": "stored-c"}


def test_a4_a_key_that_does_not_open_is_left_out_and_told(
    core: Core, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    put(core, settings, "good", "secret-of-the-good-one")
    put(core, settings, "bad", "secret-of-the-bad-one")
    keys = StoredKeys(settings, core.engine)
    assert look(core, keys)[TWELVEDATA].keys() == {"good", "bad"}
    core.rows("UPDATE pricing.provider_credentials SET row_version = row_version + 100 WHERE key_name = 'bad'")
    assert look(core, keys)[TWELVEDATA].keys() == {"good"}
    look(core, keys)
    (row,) = core.rows("SELECT source, subject, message FROM pricing.warnings")
    assert (row.source, row.subject) == ("provider key", "twelvedata/bad")
    assert "'bad' of twelvedata does not open" in row.message
    assert len(caplog.records) == 1, "once is enough"


def test_f9_a_worker_without_the_new_master_key_goes_on_with_the_key_that_it_holds(
    core: Core, settings: Settings, tmp_path: Path
) -> None:
    """Another machine's file has not been copied yet when the rows are sealed anew."""
    put(core, settings, "default", "the-secret")
    copied = Settings(home=tmp_path / "other-machine", sandbox=False)
    (tmp_path / "other-machine").mkdir()
    there = tmp_path / "other-machine/master.key"
    there.touch(0o600)
    there.write_text((tmp_path / "master.key").read_text())
    keys = StoredKeys(copied, core.engine)
    before = look(core, keys)
    credentials.reseal(core.owner, master_keys.add(settings))
    assert look(core, keys) == before
    assert look(core, StoredKeys(copied, core.engine)) == {}, "a new worker cannot open it"
    there.write_text((tmp_path / "master.key").read_text())
    assert look(core, keys) == look(core, StoredKeys(copied, core.engine)) == before


def test_f9_a_database_that_refuses_to_tell_costs_no_key(
    core: Core, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    put(core, settings, "default", "the-secret")
    with open_clients(settings, core.engine, look_seconds=0.02) as clients:
        core.rows("REVOKE SELECT ON pricing.provider_credentials FROM pricing_worker")
        wait_until(lambda: "the stored keys could not be read" in caplog.text)
        assert clients[TWELVEDATA].key_names == {"default"}
        put(core, settings, "second", "another-secret")
        core.rows("GRANT SELECT ON pricing.provider_credentials TO pricing_worker")
        wait_until(lambda: clients[TWELVEDATA].key_names == {"default", "second"})


def test_b2_a_provider_whose_client_cannot_be_made_costs_no_other_one(
    core: Core, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """One address that nobody can read had kept a worker from all providers."""
    put(core, settings, "default", "the-secret")
    address = "UPDATE pricing.data_collectors SET base_url = CAST(:url AS text) WHERE provider = 'mfapi'"
    core.rows(address, url="https://xn--0.example.com")
    configured._log_once.cache_clear()
    with open_clients(settings, core.engine, look_seconds=0.02) as clients:
        assert "mfapi" not in clients
        put(core, settings, "second", "another-secret")
        wait_until(lambda: clients[TWELVEDATA].key_names == {"default", "second"})
        core.rows(address, url="https://api.mfapi.in")
        wait_until(lambda: "mfapi" in clients)
    (told,) = [record.getMessage() for record in caplog.records if "cannot be made" in record.getMessage()]
    assert told.startswith(
        "mfapi is not called, or called with its earlier settings, because its client cannot be made: "
        "the base URL of mfapi is not a URL."
    )
    assert told.endswith("pricing-pipeline provider change mfapi --inactive")


def test_a4_up_says_which_providers_wait_for_a_key(core: Core, settings: Settings, database_url: str) -> None:
    """Of those that something is routed to: a new home can store a key only once its database runs."""
    assert missing_keys(settings, database_url) == [TWELVEDATA]
    put(core, settings, "second", "a-secret")
    assert missing_keys(settings, database_url) == []
    remove(core, "second")
    set_in_environment = Settings(home=settings.home, sandbox=False, twelvedata_api_key=SecretStr("a-secret"))
    assert missing_keys(set_in_environment, database_url) == []
    core.rows("UPDATE pricing.provider_routing SET is_active = false WHERE provider = 'twelvedata'")
    assert missing_keys(settings, database_url) == []
