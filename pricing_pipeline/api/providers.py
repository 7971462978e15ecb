"""`/v1/providers`: providers with their limits, quota and forecast, and what stops them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import Field
from sqlalchemy import Connection

from pricing_pipeline.api.access import Database, Reader
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.parameters import LONGEST_NAME
from pricing_pipeline.keys import credentials
from pricing_pipeline.providers.configured import call_url
from pricing_pipeline.queue import forecast, limits
from pricing_pipeline.queue.forecast import Forecast
from pricing_pipeline.queue.limits import Key, ProviderState
from pricing_pipeline.registry import declarations, plans, provider_rules
from pricing_pipeline.registry.provider_rules import Batch, Limit, Route
from pricing_pipeline.settings import Settings

router = APIRouter(tags=["providers"])


class ProviderSummary(Shape):
    """A source of prices, and what stops it now."""

    provider: str = Field(examples=["twelvedata"])
    description: str
    base_url: str
    """Its own address."""
    call_url: str | None
    """Where calls go: to its own address, or to the sandbox that answers in its place; null if the sandbox has nobody
    instead of a declared provider, which is then not called."""
    is_sandbox: bool
    is_active: bool
    fetchers: list[str]
    data_types: list[str]
    """The active data types that it serves."""
    max_in_flight: int
    request_delay_ms: int
    throttle_pause_seconds: int
    quota_bytes: int
    used_bytes: int
    """Of the quota, in the last 30 days."""
    state: str | None = Field(examples=["rate_limited"])
    """Why it is not called now, as one word; null while it may be called."""
    standing: str
    """The same as a sentence."""
    units_used: str
    """How much of its limits is used, as text for people."""
    quota_used: str
    forecast: Forecast | None
    """Of an active provider."""


class Providers(Shape):
    """Providers by name, switched off ones too."""

    providers: list[ProviderSummary]


class ProviderDetails(ProviderSummary):
    """Everything about a provider but its keys' secrets, which nothing shows."""

    plan: str | None
    limits: list[Limit]
    batches: list[Batch]
    keys: list[Key]
    routes: list[Route]


@router.get("/providers")
def list_providers(request: Request, database: Database, caller: Reader) -> Providers:
    """Providers, their limits and quota, and what stops them now."""
    settings = request.app.state.settings
    with database.connect() as connection:
        contents = _providers(connection, settings, None)
        return Providers(providers=[ProviderSummary(**content) for content in contents])


@router.get("/providers/{provider}")
def show_provider(
    request: Request,
    database: Database,
    caller: Reader,
    provider: Annotated[str, Path(max_length=LONGEST_NAME)],
) -> ProviderDetails:
    """Everything about one provider."""
    with database.connect() as connection:
        credentials.require_provider(connection, provider)
        (about,) = _providers(connection, request.app.state.settings, provider)
        return ProviderDetails(
            **about,
            plan=plans.in_use(connection).get(provider),
            limits=provider_rules.limits(connection, provider),
            batches=provider_rules.batches(connection, provider),
            routes=provider_rules.routes(connection, provider=provider),
        )


def _providers(connection: Connection, settings: Settings | None, provider: str | None) -> list[dict[str, Any]]:
    known = provider_rules.providers(connection, provider)
    names = [rules.provider for rules in known]
    standings = {standing.provider: standing for standing in limits.standings(connection, names)}
    forecasts = {ahead.provider: ahead for ahead in forecast.forecasts(connection)}
    services = declarations.known_providers(connection)
    return [
        {
            **asdict(rules),
            **_standing(standings[rules.provider]),
            "call_url": rules.base_url
            if settings is None or rules.provider not in services
            else call_url(settings, services[rules.provider], rules.base_url),
            "is_sandbox": settings is not None and settings.sandbox,
            "forecast": forecasts.get(rules.provider),
        }
        for rules in known
    ]


def _standing(standing: ProviderState) -> dict[str, Any]:
    return {
        "used_bytes": standing.used_bytes,
        "state": standing.state,
        "standing": standing.words,
        "units_used": standing.units_words,
        "quota_used": standing.quota_words,
        "keys": standing.keys,
    }
