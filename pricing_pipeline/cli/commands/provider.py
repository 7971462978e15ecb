"""The commands of `provider` as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json, Last, Provider, Symbol, Symbols
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Look at the sources of prices, choose those to be asked, and say how.")


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List providers: what each can be asked for, and what it serves.

    \b
    Example: pricing-pipeline provider list
    """
    from pricing_pipeline.cli import provider

    provider.list_(as_json=as_json)


@noun.command()
@listing
def show(name: Provider, as_json: Json = False) -> None:
    """Show one provider: whether it may be called now, its limits and quota, its keys, and what it serves.

    \b
    Example: pricing-pipeline provider show twelvedata
    """
    from pricing_pipeline.cli import provider

    provider.show(name, as_json=as_json)


@noun.command()
def use(
    name: Provider,
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="PLAN", help="Your plan there; left out, the plans are listed."),
    ] = None,
    symbols: Annotated[
        int,
        typer.Option(
            "--symbols", metavar="N", min=1, help="How many quotes will be watched; sets their TTL."
        ),
    ] = 20,
    minute: Annotated[
        int | None,
        typer.Option("--minute", metavar="UNITS", min=1, help="What your plan allows in a minute."),
    ] = None,
    day: Annotated[
        int | None,
        typer.Option("--day", metavar="UNITS", min=1, help="What your plan allows in a day of UTC."),
    ] = None,
    check: Annotated[
        bool | None,
        typer.Option(
            "--check/--no-check",
            help="Try the key with one call first; else only while nothing was answered.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask a provider from now on, within a plan: its limits, batches, data types and TTLs are written.

    It asks for the key, without showing it, if none is stored. It says what it changed, and how often each price can
    be fetched. Another plan replaces it; `provider undo` takes it back.

    \b
    Example: pricing-pipeline provider use twelvedata --plan free
    """
    from pricing_pipeline.cli import provider_plan

    provider_plan.use(name, plan, symbols=symbols, minute=minute, day=day, is_checked=check, as_json=as_json)


@noun.command()
def undo(name: Provider, as_json: Json = False) -> None:
    """Restore the settings of a provider from before `provider use`. Types that it added are retired.

    \b
    Example: pricing-pipeline provider undo twelvedata
    """
    from pricing_pipeline.cli import provider_plan

    provider_plan.undo(name, as_json=as_json)


DeclarationFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A declaration, in YAML; docs/adding-a-provider.md has an example."),
]


@noun.command()
@listing
def declare(file: DeclarationFile, as_json: Json = False) -> None:
    """Add a provider that a file declares, or change it: how it is asked, what it allows, how its answers are read.

    Every fault of the file is told with its line, and then nothing changes. What the file says replaces what was set by
    hand, limits too. Running workers follow within ten seconds. It needs the owner's URL.

    \b
    Example: pricing-pipeline provider declare docs/examples/frankfurter.yaml
    """
    from pricing_pipeline.cli import provider_declare

    provider_declare.declare(file, as_json=as_json)


@noun.command()
def undeclare(name: Provider, as_json: Json = False) -> None:
    """Forget a declared provider with its limits and keys. Its calls stay in the log, and its prices where they are.

    It is refused while data types have a route to it, or tasks wait for it. It needs the owner's URL.

    \b
    Example: pricing-pipeline provider undeclare frankfurter
    """
    from pricing_pipeline.cli import provider_declare

    provider_declare.undeclare(name, as_json=as_json)


@noun.command("try")
@listing
def try_(
    file: DeclarationFile,
    symbol: Symbol,
    fetcher: Annotated[
        str | None,
        typer.Option("--fetcher", metavar="FETCHER", help="What to ask for, if the file has several."),
    ] = None,
    asset_class: Annotated[
        str | None,
        typer.Option("--asset-class", metavar="CLASS", help="Of the symbol, if the file has several."),
    ] = None,
    first: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="DATE", help="First day of a span; else the latest value is asked for."
        ),
    ] = None,
    last: Last = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="URL", help="Ask there instead of at the file's base URL.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make one call as a file declares it: show request and answer, and what would be stored of it.

    Nothing is stored, and no database is needed. What the file reads wrongly is told with its line. A key is asked for
    without showing it, or read from standard input; it is not kept.

    \b
    Example: pricing-pipeline provider try docs/examples/frankfurter.yaml EUR/USD
    """
    from pricing_pipeline.cli import provider_declare

    provider_declare.try_(file, symbol, fetcher, asset_class, first, last, at, as_json=as_json)


@noun.command()
def record(
    name: Provider,
    symbols: Symbols,
    types: Annotated[
        list[str], typer.Option("--type", metavar="TYPE", help="A data type of `type list`; repeatable.")
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where the files go, in a folder of the provider.")
    ] = Path("recordings"),
    force: Annotated[bool, typer.Option("--force", help="Replace files of the same name.")] = False,
    as_json: Json = False,
) -> None:
    """Make one call for each data type, and keep what was asked and answered in files, without your keys.

    The calls count and keep to the limits, as those of workers do. Refusals are recorded, too; no price is stored.
    `sandbox --recordings FOLDER` replays the files. It needs the owner's URL.

    \b
    Example: pricing-pipeline provider record yahoo AAPL --type equity_quote
    """
    from pricing_pipeline.cli import provider_record

    provider_record.record(name, symbols, types, out, is_forced=force, as_json=as_json)


BatchSizes = Annotated[
    list[str] | None,
    typer.Option(
        "--batch-size",
        metavar="FETCHER=SYMBOLS",
        help="Most symbols of one call for latest prices, such as quote=1; repeatable.",
    ),
]
BatchFroms = Annotated[
    list[str] | None,
    typer.Option(
        "--batch-from",
        metavar="FETCHER=SYMBOLS",
        help="Fewest symbols that share such a call; fewer are asked for one by one. Repeatable.",
    ),
]
WindowBatchSizes = Annotated[
    list[str] | None,
    typer.Option(
        "--window-batch-size",
        metavar="FETCHER=SYMBOLS",
        help="Most symbols of one call for a span of days; repeatable.",
    ),
]
WindowDays = Annotated[
    list[str] | None,
    typer.Option(
        "--window-days",
        metavar="FETCHER=DAYS",
        help="Most days of one call for spans, over all its symbols, or any; repeatable.",
    ),
]


@noun.command()
@listing
def change(
    name: Provider,
    is_active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether it is called at all.")
    ] = None,
    max_in_flight: Annotated[
        int | None,
        typer.Option(metavar="CALLS", help="Calls of all workers together that may be in flight at once."),
    ] = None,
    delay_ms: Annotated[
        int | None, typer.Option(metavar="MS", help="Least time between two calls of all workers together.")
    ] = None,
    pause_seconds: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", help="First pause after a refusal for speed that names no time."),
    ] = None,
    quota: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Bytes allowed in 30 days, such as 40GB.")
    ] = None,
    batch_sizes: BatchSizes = None,
    batch_froms: BatchFroms = None,
    window_batch_sizes: WindowBatchSizes = None,
    window_days: WindowDays = None,
    as_json: Json = False,
) -> None:
    """Change how a provider is called; what no option names stays. `limit set` changes its rate limits.

    What only an inactive provider serves fails, until the provider is active again or another one serves it. Running
    drains keep to the rest from their next claim on. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline provider change mfapi --delay-ms 500
    """
    from pricing_pipeline.cli import provider
    from pricing_pipeline.cli.arguments import byte_count

    given = {
        "is_active": is_active,
        "max_in_flight": max_in_flight,
        "request_delay_ms": delay_ms,
        "throttle_pause_seconds": pause_seconds,
        "quota_bytes": None if quota is None else byte_count(quota, "--quota"),
    }
    changes = {column: value for column, value in given.items() if value is not None}
    batches = provider.batches(
        {
            "--batch-size": batch_sizes or [],
            "--batch-from": batch_froms or [],
            "--window-batch-size": window_batch_sizes or [],
            "--window-days": window_days or [],
        }
    )
    if not (changes or batches):
        raise typer.BadParameter("say what changes, such as --delay-ms 500 or --inactive")
    provider.change(name, changes, batches, as_json=as_json)


@noun.command()
def probe(name: Provider, as_json: Json = False) -> None:
    """Let the next task of a provider whose breaker is open be the probe, without waiting for its time.

    If it is answered, the breaker closes. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline provider probe twelvedata
    """
    from pricing_pipeline.cli import provider

    provider.probe(name, as_json=as_json)
