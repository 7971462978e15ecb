"""A bucket that fails half-way, answers with other bytes, or says that it has what it has not: no value is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import pytest

from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices.files import Store, open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.integration.test_history_files import MARCH, closes, days, put
from pricing_pipeline_tests.support.bucket_server import OPTIONS, Bucket, Request, serving
from pricing_pipeline_tests.support.filing import export_all, keep, move_all


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket on loopback, as PRICING_EXPORT_URL names it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    there = Bucket()
    with serving(there) as address:
        monkeypatch.setenv("PRICING_EXPORT_URL", f"s3://history/prices?{OPTIONS}{address}")
        yield there


@pytest.fixture
def store(core: Core, bucket: Bucket) -> Store:
    """A bucket with moved months."""
    found = open_store(load_settings())
    put(core, *days(MARCH, 70))
    keep(core, 3)
    export_all(core, found)
    move_all(core, found)
    return found


def once(kind: str, fault: str, number: int = 0) -> Callable[[Request], str | None]:
    """One request of a kind fails: the first, or a later one."""
    asked = count()
    return lambda request: fault if request.kind == kind and next(asked) == number else None


@pytest.mark.parametrize("fault", ["flipped", "short", "cut", "busy"])
def test_f12_other_bytes_are_read_neither_as_values_nor_as_values_of_later_reads(
    core: Core, bucket: Bucket, store: Store, fault: str
) -> None:
    """Whichever answer has them, the first time and when the file is known: the read fails in words or has all."""
    before = closes(core)
    for _ in range(2):
        for number in range(6):
            bucket.fault = once("GET", fault, number)
            with suppress(PricingError):
                assert closes(core) == before
            bucket.fault = lambda _: None
            assert closes(core) == before, number
        bucket.age += 60  # as if nobody had read the files
        for key, (body, _) in list(bucket.objects.items()):
            bucket.put(key, body)
