"""Settings from the environment, read once and checked at start-up. `.env.example` lists each one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from pricing_pipeline.errors import SettingsError


def _named_secrets(value: object) -> object:
    """Read `name=secret,name=secret`. Messages never show a secret."""
    if not isinstance(value, str):
        return value
    keys: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in value.split(","))):
        name, equals, secret = (word.strip() for word in part.partition("="))
        if not (equals and secret and re.fullmatch("[a-z0-9][a-z0-9_-]{0,47}", name)) or name in keys:
            raise ValueError(
                f"part {len(keys) + 1} must be name=secret, with a name of its own in a-z, 0-9, _ and -"
            )
        keys[name] = secret
    return keys


class Settings(BaseSettings):
    """Everything that can be set. Each field is the variable `PRICING_<NAME>`."""

    model_config = SettingsConfigDict(
        env_prefix="PRICING_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    home: Path = Path(".pricing")
    """Folder for all state: database cluster, logs, Dagster's files."""
    database_url: SecretStr | None = None
    """libpq URL of the pricing database for workers; the embedded server when unset."""
    owner_url: SecretStr | None = None
    """libpq URL with the right to change tables and the registry; `database_url` when unset."""
    dagster_url: SecretStr | None = None
    """libpq URL of Dagster's own database; database `dagster` on the same server when unset."""
    web_port: int = Field(3000, ge=0, le=65535)
    """Port of the Dagster UI, on loopback."""
    sandbox: bool = True
    """Ask the sandbox instead of the real providers."""
    sandbox_port: int = Field(8100, ge=0, le=65535)
    """Port of the sandbox, on loopback."""
    sandbox_credits_per_minute: int = Field(2000, ge=0)
    """The sandbox's Twelve Data plan; 8 is the free one, 0 no cap. What we may use is in `provider_limits`."""
    sandbox_credits_per_day: int = Field(0, ge=0)
    """The same per day; 800 is the free plan, 0 no cap."""
    sandbox_url: str | None = None
    """Where the sandbox answers; set by `up` for its children."""
    twelvedata_api_key: SecretStr | None = None
    """API key of Twelve Data, named `default`; one of that name that is stored in the database goes before it."""
    twelvedata_api_keys: Annotated[Mapping[str, SecretStr], NoDecode, BeforeValidator(_named_secrets)] = {}
    """Further keys of Twelve Data, `name=secret,name=secret`; each has rate limits of its own."""
    fmp_api_key: SecretStr | None = None
    """API key of Financial Modeling Prep, named `default`; needed without the sandbox once anything is routed to it."""
    fmp_api_keys: Annotated[Mapping[str, SecretStr], NoDecode, BeforeValidator(_named_secrets)] = {}
    """Further keys of Financial Modeling Prep, `name=secret,name=secret`; each has rate limits of its own."""
    master_key: SecretStr | None = None
    """Master keys that seal the providers' keys in the database: `id:base64,id:base64`, newest first, or `file:/PATH`
    of a file with one in a line. Unset: `master.key` in the home, made with the first key that is stored."""
    code_socket: Path | None = None
    """Unix socket of the Dagster code server; set by `up` for its children."""
    max_drain_seconds: int = Field(600, ge=5, le=3600)
    """How long one drain works before it hands over to a successor."""


def load_settings() -> Settings:
    """Read the settings from the environment.

    Raises SettingsError that names each wrong variable, its fault and where the right values are listed.
    """
    try:
        return Settings()
    except ValidationError as error:
        faults = "; ".join(
            f"PRICING_{str(e['loc'][0]).upper()}={e.get('input')!r}: {e['msg']}"
            if "url" not in str(e["loc"][0]) and "key" not in str(e["loc"][0])
            else f"PRICING_{str(e['loc'][0]).upper()}: {e['msg']}"
            for e in error.errors()
        )
        raise SettingsError(f"{faults}. See .env.example for what each setting accepts.") from None
