"""The environment of each process of `up`: the settings, and only the secrets that it needs.

docs/security.md has the same as a table, which a test holds to the processes of a real `up`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.configured import configured_keys, sandbox_keys
from pricing_pipeline.settings import Settings

_SETTINGS = {f"PRICING_{name.upper()}": field for name, field in Settings.model_fields.items()}
SECRETS = frozenset(name for name, field in _SETTINGS.items() if "SecretStr" in str(field.annotation))
"""The settings that hold secrets."""
API_KEYS = frozenset(name for name in SECRETS if re.search("_API_KEYS?$", name))
"""The settings that hold keys of providers."""

SECRETS_OF: Mapping[str, frozenset[str]] = {
    "sandbox": frozenset(),
    "api": frozenset({"PRICING_DATABASE_URL", "PRICING_REPLICA_URL", "PRICING_UI_TOKEN"}),
    "code-server": frozenset(
        {"PRICING_DATABASE_URL", "PRICING_LISTEN_URL", "PRICING_DAGSTER_URL", "PRICING_MASTER_KEY"}
    )
    | API_KEYS,
    "notifier": frozenset(
        {
            "PRICING_DATABASE_URL",
            "PRICING_MASTER_KEY",
            "PRICING_LAST_RESORT_URL",
            "PRICING_LAST_RESORT_SECRET",
        }
    ),
    "dagster-daemon": frozenset({"PRICING_DATABASE_URL", "PRICING_LISTEN_URL", "PRICING_DAGSTER_URL"}),
    "dagster-webserver": frozenset({"PRICING_DAGSTER_URL", "PRICING_UI_TOKEN"}),
    "location-NAME": frozenset({"PRICING_DAGSTER_URL", "PRICING_READER_URL"}),
}
"""The secrets of each process. Its children, such as runs, have the same. The last one is each code location of others,
whose URLs have a login of their own."""

_READS_FILES = frozenset({"api", "code-server"})
"""Processes that read or write files of history: they get the keys of the place where these are."""

# The caller's variables that are not settings; none of them holds a secret.
_PASSED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TZ|TZDIR"  # programs, names, words and times
    r"|PYTHON\w+|LD_\w+|DYLD_\w+|MALLOC_\w+|(OMP|OPENBLAS)_NUM_THREADS"  # how Python and its libraries run
    r"|DAGSTER_GRPC_\w+|DAGSTER_\w+_SECONDS|FORWARDED_ALLOW_IPS"  # Dagster's limits; the UI behind a proxy
    r"|OPERATION_\w+"  # what handlers of the user's own need
)


def environment_of_children(environment: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """The part of the caller's environment for all children: settings, and variables that programs need to run.

    The sandbox needs no real API key. Keys of the same names replace them, each with its own limits.
    """
    passed = {
        name: value
        for name, value in environment.items()
        if name in _SETTINGS
        or _PASSED_ON.fullmatch(name) is not None
        or (settings.export_url is not None and name.startswith("AWS_"))  # the key of that place
    }
    if settings.sandbox:
        passed = {name: value for name, value in passed.items() if name not in API_KEYS}
        for provider in PROVIDERS:
            if keys := configured_keys(settings, provider):
                named = (f"{name}={key.get_secret_value()}" for name, key in sandbox_keys(keys).items())
                passed[f"PRICING_{provider.upper()}_API_KEYS"] = ",".join(named)
    return passed


def given_to(process: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The part of the children's environment that one of them gets. Handlers of the user's own run in the notifier.

    With the sandbox on no call needs a stored key, but messages still go to sealed addresses: the notifier alone gets
    the master keys.
    """
    withheld = SECRETS - SECRETS_OF[process]
    if environment.get("PRICING_SANDBOX") == "true" and process != "notifier":
        withheld |= {"PRICING_MASTER_KEY"}
    return {
        name: value
        for name, value in environment.items()
        if name not in withheld
        and (process == "notifier" or not name.startswith("OPERATION_"))
        and (process in _READS_FILES or not name.startswith("AWS_"))
    }
