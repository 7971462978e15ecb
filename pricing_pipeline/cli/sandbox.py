"""The command `sandbox`. It is a process, so it has no noun."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli.options import Json

if TYPE_CHECKING:
    from pricing_pipeline.sandbox.settings import SandboxSettings


class Hours(StrEnum):
    """When the sandbox's markets are open."""

    ALWAYS = "always"
    EXCHANGE = "exchange"


class FmpPlan(StrEnum):
    """What the sandbox has as FMP."""

    FULL = "full"
    FREE = "free"


CreditsPerMinute = Annotated[
    int,
    typer.Option(min=0, envvar="PRICING_SANDBOX_CREDITS_PER_MINUTE", help="Twelve Data's plan; 0 for no cap."),
]
CreditsPerDay = Annotated[
    int,
    typer.Option(min=0, envvar="PRICING_SANDBOX_CREDITS_PER_DAY", help="Twelve Data's plan; 0 for no cap."),
]
Key = Annotated[str, typer.Option(help="The key that clients of Twelve Data, FMP, OCTO, Headout and UEX must send.")]
Recordings = Annotated[
    Path | None, typer.Option(help="Replay recorded answers of this folder where a request matches one.")
]


def sandbox(
    port: Annotated[
        int,
        typer.Option(min=0, max=65_535, envvar="PRICING_SANDBOX_PORT", help="Port on 127.0.0.1; 0 takes any free one."),
    ] = 8100,
    credits_per_minute: CreditsPerMinute = 2000,
    credits_per_day: CreditsPerDay = 0,
    fmp_calls_per_minute: Annotated[int, typer.Option(min=0, help="FMP's plan; 0 for no cap.")] = 300,
    fmp_calls_per_day: Annotated[int, typer.Option(min=0, help="FMP's plan; 250 is the free one, 0 for no cap.")] = 0,
    fmp_plan: Annotated[FmpPlan, typer.Option(help="Everything, or only what the free plan includes.")] = FmpPlan.FULL,
    uex_calls_per_minute: Annotated[int, typer.Option(min=0, help="UEX's plan; 0 for no cap.")] = 10,
    uex_calls_per_day: Annotated[int, typer.Option(min=0, help="UEX's plan; 0 for no cap.")] = 14_400,
    key: Key = "sandbox-key",
    seed: Annotated[int, typer.Option(help="Seed of all invented prices.")] = 2013,
    market_hours: Annotated[Hours, typer.Option(help="Open round the clock, or real sessions.")] = Hours.ALWAYS,
    recordings: Recordings = None,
    as_json: Json = False,
) -> None:
    """Serve imitations of the providers until Ctrl-C; `up` does so, too.

    \b
    Example: pricing-pipeline sandbox --port 8100 --credits-per-minute 8 --credits-per-day 800
    """
    from pricing_pipeline.sandbox.settings import SandboxSettings

    settings = SandboxSettings(
        port=port,
        credits_per_minute=credits_per_minute or None,
        credits_per_day=credits_per_day or None,
        fmp_calls_per_minute=fmp_calls_per_minute or None,
        fmp_calls_per_day=fmp_calls_per_day or None,
        fmp_plan=fmp_plan.value,
        key=key,
        uex_calls_per_minute=uex_calls_per_minute or None,
        uex_calls_per_day=uex_calls_per_day or None,
        seed=seed,
        market_hours=market_hours.value,
        recordings=recordings,
    )
    _serve(settings, as_json=as_json)


def _serve(settings: SandboxSettings, *, as_json: bool) -> None:
    from pricing_pipeline.cli.output import print_event
    from pricing_pipeline.sandbox.server import serve

    def say(url: str, providers: list[str]) -> None:
        if as_json:
            print_event({"event": "listening", "url": url, "providers": providers})
        else:
            names = ", ".join(f"{url}/{name}" for name in providers)
            typer.echo(f"The sandbox answers at {names}. Ctrl-C stops it.")

    serve(settings, on_listening=say)
