"""Nobody without a token causes a line in the log of the API, whatever bytes come."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from pricing_pipeline_tests.integration.test_api_strangers import CONVERSATIONS, check
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")


@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(conversation=CONVERSATIONS)
def test_b7_no_stranger_writes_a_log(api: RunningApi, conversation: tuple[list[bytes], int, str]) -> None:
    check(api, conversation)
