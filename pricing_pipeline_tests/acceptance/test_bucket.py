"""Months of history in a bucket of an S3-compatible server that somebody else has written (F12)."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal

import pytest

from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices import exporting
from pricing_pipeline.prices.files import Store, open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_history_files import MARCH, closes, days, put
from pricing_pipeline_tests.support.filing import export_all, keep, move_all
from pricing_pipeline_tests.support.patience import wait_until


@pytest.fixture
def bucket() -> Iterator[str]:
    """An S3-compatible server with a bucket."""
    from pyarrow import fs

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:

        def answers() -> bool:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except OSError:
                return False
            return True

        wait_until(answers)
        options = f"region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{port}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ACCESS_KEY_ID", "canary-key")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
            files, _ = fs.FileSystem.from_uri(f"s3://history?{options}&allow_bucket_creation=true")
            files.create_dir("history")
            yield f"s3://history/prices?{options}"
    finally:
        process.terminate()
        process.wait()


def test_f12_a_bucket_does_as_a_folder_does(
    core: Core, clock: Clock, bucket: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Export, move, correction and reads over an S3-compatible server; what fails names no key."""
    monkeypatch.setenv("PRICING_EXPORT_URL", bucket)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "canary-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    store = open_store(load_settings())
    put(core, *days(MARCH, 70))
    keep(core, 3)
    assert [one.is_new for one in export_all(core, store)] == [True] * 3
    before = closes(core)
    assert move_all(core, store) == 40
    assert closes(core) == before
    clock.advance(60)
    put(core, (MARCH, 7777))
    assert [one.versions for one in export_all(core, store)] == [32]
    assert closes(core) == before | {MARCH: Decimal("77.77")}
    elsewhere = Store(store.filesystem, "no-such-bucket")
    with pytest.raises(PricingError, match="PRICING_EXPORT_URL") as refused:
        exporting.export(core.engine, elsewhere, DAILY, MARCH)
    assert "canary" not in str(refused.value) + caplog.text
