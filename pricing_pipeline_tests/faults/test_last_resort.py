"""With the database gone somebody is told all the same: once an outage, and once when it is over."""

from __future__ import annotations

import json
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.errors import SettingsError
from pricing_pipeline.operations import last_resort
from pricing_pipeline.operations.channels import verify_signature
from pricing_pipeline.operations.last_resort import LastResort, Watch
from pricing_pipeline.operations.life import RUNS, SignsOfLife
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.receivers import Post, Receiver, mail_server, receiving

SECRET = "a secret of sixteen or more"
AWAY_AFTER = 5.0


def accept(post: Post) -> None:
    post.answer(204)


def titles(receiver: Receiver) -> list[str]:
    return [json.loads(posted.body)["payload"]["title"] for posted in receiver.posted]


def watch_of(receiver: Receiver, signs: SignsOfLife, home: Path, away_after: float = AWAY_AFTER) -> Watch:
    resort = LastResort(SecretStr(receiver.url), SecretStr(SECRET), True)
    return Watch(resort, signs, home, "postgresql://here", away_after=away_after, first_pause=0.05)


def make_silent(signs: SignsOfLife) -> None:
    """The database has not answered for longer than it may."""
    signs.failed(RUNS, "connection refused")
    signs._answered[RUNS] = time.monotonic() - AWAY_AFTER


@contextmanager
def notifying(url: str, watch: Watch, signs: SignsOfLife) -> Iterator[None]:
    """The threads of a notifier that send messages and watch the database."""
    engine, stop = make_engine(url), threading.Event()
    runner = OperationRunner(engine, {}, worker="here", signs=signs)
    threads = [
        threading.Thread(target=runner.run, args=(stop,), kwargs={"every_seconds": 0.05}),
        threading.Thread(target=watch.keep_watching, args=(stop,), kwargs={"every_seconds": 0.05}),
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        runner.close()
        engine.dispose()


def test_b21_a_database_that_is_killed_is_told_once_and_again_when_it_is_back(
    open_folder: Path, tmp_path: Path
) -> None:
    server = EmbeddedServer(open_folder)
    with server, receiving(accept) as receiver:
        upgrade(server.url("pricing"))
        url = server.url("pricing", "worker")
        signs = SignsOfLife()
        with notifying(url, watch_of(receiver, signs, tmp_path), signs):
            server.stop("immediate")
            wait_until(lambda: len(receiver.posted) == 1)
        # It is started again while the database is away.
        signs = SignsOfLife()
        with notifying(url, watch_of(receiver, signs, tmp_path), signs):
            time.sleep(1.5 * AWAY_AFTER)
            assert len(receiver.posted) == 1
            server.start()
            wait_until(lambda: len(receiver.posted) == 2)
            wait_until(lambda: not (tmp_path / "last-resort.json").exists())
        assert titles(receiver) == [
            "[P0] The pricing database does not answer",
            "[over] The pricing database answers again",
        ]
        first = receiver.posted[0]
        assert "does not answer" in json.loads(first.body)["payload"]["body"]
        assert verify_signature(
            SECRET,
            first.headers["Pricing-Timestamp"],
            first.headers["Pricing-Signature"],
            first.body,
            time.time(),
        )
        assert len({posted.headers["Idempotency-Key"] for posted in receiver.posted}) == 2


def test_b21_a_receiver_that_is_down_first_is_told_later_with_the_same_key(tmp_path: Path) -> None:
    def refuse(post: Post) -> None:
        post.answer(503 if len(post.server.posted) < 3 else 204)

    signs = SignsOfLife()
    with receiving(refuse) as receiver:
        watch = watch_of(receiver, signs, tmp_path)
        make_silent(signs)

        def is_told() -> bool:
            watch.look()
            return bool(json.loads((tmp_path / "last-resort.json").read_text())["database"]["is_told"])

        wait_until(is_told)
        assert len(receiver.posted) == 3
        assert len({posted.headers["Idempotency-Key"] for posted in receiver.posted}) == 1
        assert stat.S_IMODE((tmp_path / "last-resort.json").stat().st_mode) == 0o600


def test_b21_an_outage_that_nobody_could_be_told_of_is_told_when_it_is_over(tmp_path: Path) -> None:
    def refuse(post: Post) -> None:
        post.answer(503 if len(post.server.posted) < 2 else 204)

    signs = SignsOfLife()
    with receiving(refuse) as receiver:
        watch = watch_of(receiver, signs, tmp_path)
        make_silent(signs)
        watch.look()
        signs.answered(RUNS)
        watch.look()
        watch.look()
        assert titles(receiver)[1:] == ["[over] The pricing database answers again"]
        assert "It was away from" in json.loads(receiver.posted[1].body)["payload"]["body"]
        make_silent(signs)
        watch.look()
        assert len(receiver.posted) == 3, "the next outage is another one"


def test_b21_that_no_recipient_can_be_reached_is_told_once_and_again_when_it_is_over(tmp_path: Path) -> None:
    with receiving(accept) as receiver:
        for nobody_told, title in (
            (None, None),
            ("No recipient can be reached: ops is gone.", "[P0] No recipient can be reached"),
            ("No recipient can be reached: ops is gone.", None),
            (None, None),
            ("", "[over] Recipients can be reached again"),
            ("", None),
            ("No recipient can be reached: it is gone again.", "[P0] No recipient can be reached"),
        ):
            told = len(receiver.posted)
            # Each look is that of a notifier that has just been started again.
            signs = SignsOfLife()
            signs.nobody_told = nobody_told
            watch_of(receiver, signs, tmp_path, PATIENCE).look()
            assert titles(receiver)[told:] == ([] if title is None else [title])
        assert "ops is gone" in json.loads(receiver.posted[0].body)["payload"]["body"]
        began, ended = (posted.headers["Idempotency-Key"] for posted in receiver.posted[:2])
        assert began != ended


def test_b21_a_short_silence_and_a_damaged_file_tell_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "last-resort.json").write_text("{")
    (tmp_path / "last-resort.json").chmod(0o600)
    signs = SignsOfLife()
    with receiving(accept) as receiver:
        watch = watch_of(receiver, signs, tmp_path, PATIENCE)
        signs._answered[RUNS] = time.monotonic() - 0.2 * PATIENCE
        watch.look()
        assert receiver.posted == []
    assert "last-resort.json is not used" in caplog.text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("fire", "PRICING_LAST_RESORT_URL is not an address: it begins with one of https://, mailto://"),
        ("file:///etc/passwd", "PRICING_LAST_RESORT_URL is not an address"),
        ("http://example.com/canary", "PRICING_LAST_RESORT_URL cannot be used: .* must begin with https://"),
        ("http://example.com/canary", "PRICING_LAST_RESORT_ALLOW_PRIVATE=true allows it"),
        (
            "https://127.0.0.1/canary",
            "cannot be used: 127.0.0.1 is a private address. PRICING_LAST_RESORT_ALLOW_PRIVATE=true allows it",
        ),
        ("mailtos://ann:canary@", "PRICING_LAST_RESORT_URL cannot be used"),
        ("https://example.com/canary", "PRICING_LAST_RESORT_SECRET, which signs what it gets, is not set"),
    ],
)
def test_c3_a_last_resort_that_cannot_be_told_is_refused_without_repeating_it(url: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as refused:
        last_resort.from_settings(Settings(last_resort_url=SecretStr(url)))
    assert "canary" not in str(refused.value)


def test_c3_a_secret_that_can_be_found_by_trying_is_refused() -> None:
    url = SecretStr("https://example.com/hook")
    with pytest.raises(SettingsError, match="must have 16 characters or more") as refused:
        last_resort.from_settings(Settings(last_resort_url=url, last_resort_secret=SecretStr("canary")))
    assert "canary" not in str(refused.value)
    long = SecretStr("canary-of-16-lett")
    assert last_resort.from_settings(Settings(last_resort_url=url, last_resort_secret=long)) is not None


def test_b21_mail_is_a_last_resort_too() -> None:
    with mail_server() as server:
        url = SecretStr(f"mailto://127.0.0.1:{server.port}?from=ann@example.com&to=bob@example.com")
        resort = last_resort.from_settings(Settings(last_resort_url=url, last_resort_allow_private=True))
        assert resort is not None
        resort.send("A title", "A body", "one")
        assert server.recipients == ["bob@example.com"]
    assert last_resort.from_settings(Settings()) is None


def test_g3_notify_test_tries_the_last_resort_without_a_database(cli: CommandLine) -> None:
    assert "PRICING_LAST_RESORT_URL is not set" in cli("notify", "test", "--last-resort").error
    assert cli("notify", "test").exit_code == 2
    assert cli("notify", "test", "ann", "--last-resort").exit_code == 2
    with receiving(accept) as receiver:
        settings = {
            "LAST_RESORT_URL": receiver.url,
            "LAST_RESORT_SECRET": SECRET,
            "LAST_RESORT_ALLOW_PRIVATE": "true",
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/nowhere",
        }
        said = cli("notify", "test", "--last-resort", **settings)
        assert (said.exit_code, said.stdout) == (0, f"The message to {receiver.url} was sent.\n")
        receiver.script = lambda post: post.answer(403)
        said = cli("notify", "test", "--last-resort", "--json", **settings)
        assert said.exit_code == 1
        assert said.json["why"] == f"{receiver.url} refused with HTTP status 403"
