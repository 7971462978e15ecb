"""What `up` passes on of the environment that it was started with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from pricing_pipeline.keys.environments import SECRETS, SECRETS_OF, environment_of_children, given_to
from pricing_pipeline.providers.configured import configured_keys, keys_in_use
from pricing_pipeline.settings import Settings, load_settings

PAGE = Path(__file__).parents[2] / "docs/security.md"


def test_what_is_named_like_a_secret_is_one() -> None:
    names = {f"PRICING_{name.upper()}" for name in Settings.model_fields}
    assert {name for name in names if re.search("URL|KEY|TOKEN|SECRET", name)} - {
        "PRICING_EXPORT_URL",
        "PRICING_PAGE_URL",
        "PRICING_SANDBOX_URL",
        "PRICING_UI_URL",
        "PRICING_WEBSERVER_URL",
    } == SECRETS


def test_what_the_page_lists_is_passed_on_and_nothing_else() -> None:
    (listed,) = re.findall(
        r"^- From the environment of `up`.*?Nothing else", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    names = {name.replace("*", "WHATEVER") for name in re.findall("`([A-Z_*]+)`", listed)}
    assert {"PATH", "LC_WHATEVER", "DAGSTER_GRPC_WHATEVER"} < names
    caller = dict.fromkeys(names, "kept")
    others = (
        "TMPDIR",
        "DAGSTER_HOME",
        "DAGSTER_TOKEN",
        "PGHOST",
        "SSL_CERT_FILE",
        "http_proxy",
        "MY_PATH",
        "PRICING_TEST_X",
    )
    exporting = Settings(sandbox=False, export_url="s3://bucket/prices")
    assert environment_of_children(caller | dict.fromkeys(others, "lost"), exporting) == caller
    nowhere = {name: value for name, value in caller.items() if not name.startswith("AWS_")}
    assert environment_of_children(caller, Settings(sandbox=False)) == nowhere != caller


@pytest.mark.parametrize("process", SECRETS_OF)
def test_settings_that_are_no_secrets_reach_every_process(process: str) -> None:
    everything = {f"PRICING_{name.upper()}": "x" for name in Settings.model_fields}
    passed = environment_of_children(everything, Settings(sandbox=False))
    assert given_to(process, passed).keys() == everything.keys() - (SECRETS - SECRETS_OF[process])


@pytest.mark.parametrize("process", SECRETS_OF)
def test_what_own_handlers_need_reaches_the_notifier_alone(process: str) -> None:
    passed = environment_of_children({"OPERATION_TOKEN": "x", "TZ": "UTC"}, Settings(sandbox=True))
    expected = {"TZ", "OPERATION_TOKEN"} if process == "notifier" else {"TZ"}
    assert given_to(process, passed).keys() == expected


def test_a4_with_the_sandbox_on_keys_keep_their_names_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"default": SecretStr("canary-1"), "second": SecretStr("canary-2")}
    settings = Settings(
        sandbox=True, twelvedata_api_key=keys["default"], twelvedata_api_keys={"second": keys["second"]}
    )
    caller = {
        "PRICING_MASTER_KEY": "canary-0",
        "PRICING_TWELVEDATA_API_KEY": "canary-1",
        "PRICING_TWELVEDATA_API_KEYS": "second=canary-2",
    }
    passed = environment_of_children(caller, settings)
    assert passed.keys() == {"PRICING_MASTER_KEY", "PRICING_TWELVEDATA_API_KEYS"}
    own = given_to("code-server", passed | {"PRICING_SANDBOX": "true"})
    assert own.keys() == {"PRICING_SANDBOX", "PRICING_TWELVEDATA_API_KEYS"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    assert configured_keys(load_settings(), "twelvedata") == keys_in_use(settings, "twelvedata", {})
    assert "canary" not in str(own)


def test_e8_with_the_sandbox_on_the_notifier_alone_gets_the_master_keys() -> None:
    """Addresses of recipients are sealed there, too."""
    caller = {"PRICING_MASTER_KEY": "canary-0", "PRICING_FMP_API_KEY": "canary-1"}
    passed = environment_of_children(caller, Settings(sandbox=True)) | {"PRICING_SANDBOX": "true"}
    knowing = [name for name in SECRETS_OF if "PRICING_MASTER_KEY" in given_to(name, passed)]
    assert knowing == ["notifier"]
    assert "canary-1" not in str(given_to("notifier", passed))
