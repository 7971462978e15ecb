"""Every command as it is typed: arguments, options, help. What it does is in a module imported when it runs.

So `--help` answers at once, and a command pays only for what it uses.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pricing_pipeline.cli.program import Json
from pricing_pipeline.domain.data_types import Fetcher

User = Annotated[str, typer.Argument(metavar="USER", help="Whose it is: any name.")]
Type = Annotated[str, typer.Argument(metavar="DATA_TYPE", help="A data type of `registry list`.")]
Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="An instrument's symbol.")]
Symbols = Annotated[list[str], typer.Argument(metavar="SYMBOL", help="Symbols of instruments.")]
Ids = Annotated[
    list[int], typer.Argument(metavar="ID", min=1, help="Ids of tasks, as `queue list` shows them.")
]
Class = Annotated[
    str | None, typer.Option("--asset-class", metavar="CLASS", help="Only of this class; else of all.")
]
Last = Annotated[str | None, typer.Option("--to", metavar="DATE", help="Last day; else today.")]


class Status(StrEnum):
    """The states of a task."""

    PENDING = "pending"
    PROCESSING = "processing"
    SCHEDULED = "scheduled"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who decides; else your login.")]

_LIVE_AND_FAILED = [Status.PENDING, Status.PROCESSING, Status.SCHEDULED, Status.FAILED]


def up(
    demo: Annotated[
        bool, typer.Option("--demo/--no-demo", help="Load the sample registry and watch a few symbols.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Start everything and keep it running until Ctrl-C; what `make run` calls.

    With --json, one line per step.

    \b
    Example: pricing-pipeline up --no-demo
    """
    from pricing_pipeline import stack
    from pricing_pipeline.cli.output import print_event
    from pricing_pipeline.settings import load_settings

    def say(line: str) -> None:
        if as_json:
            print_event({"event": "step", "message": line})
        else:
            typer.echo(line)

    stack.up(load_settings(), demo=demo, say=say)


def subscribe(
    user: User,
    data_type: Type,
    symbols: Symbols,
    minutes: Annotated[float | None, typer.Option(help="Leave after so many; otherwise at Ctrl-C.")] = None,
    as_json: Json = False,
) -> None:
    """Watch prices, which keeps them fresh: one heartbeat a minute until you leave.

    A symbol that nobody has asked for before becomes known, unverified until a provider's first valid
    answer. With --json, one line per event: subscribed, price, documents, heartbeat, warning,
    unsubscribed.

    \b
    Example: pricing-pipeline subscribe alice equity_quote AAPL MSFT --minutes 5
    """
    if minutes is not None and minutes <= 0:
        raise typer.BadParameter(f"--minutes {minutes:g} leaves before it begins. Give more than 0")
    from pricing_pipeline.cli import watch

    watch.subscribe(user, data_type, symbols, minutes, as_json=as_json)


def unsubscribe(user: User, data_type: Type, symbols: Symbols, as_json: Json = False) -> None:
    """Stop watching; for a subscription that was not ended in its own window.

    \b
    Example: pricing-pipeline unsubscribe alice equity_quote AAPL MSFT
    """
    from pricing_pipeline.cli import watch

    watch.unsubscribe(user, data_type, symbols, as_json=as_json)


def hold(user: User, data_type: Type, symbols: Symbols, as_json: Json = False) -> None:
    """Say that a user holds instruments: their prices are fetched, and kept fresh by the background TTL.

    That goes on until `release`, also while nobody watches. A symbol that nobody has asked for before becomes
    known, as by `subscribe`.

    \b
    Example: pricing-pipeline hold alice equity_quote AAPL MSFT
    """
    from pricing_pipeline.cli import holdings

    holdings.hold(user, data_type, symbols, as_json=as_json)


def release(user: User, data_type: Type, symbols: Symbols, as_json: Json = False) -> None:
    """Say that a user no longer holds instruments. What nobody else wants is no longer fetched.

    \b
    Example: pricing-pipeline release alice equity_quote AAPL MSFT
    """
    from pricing_pipeline.cli import holdings

    holdings.release(user, data_type, symbols, as_json=as_json)


def instrument_pause(symbols: Symbols, asset_class: Class = None, as_json: Json = False) -> None:
    """Fetch nothing more of instruments, whoever watches or holds them; what waits is cancelled.

    \b
    Example: pricing-pipeline instrument pause AAPL --asset-class equity
    """
    from pricing_pipeline.cli import holdings

    holdings.pause(symbols, asset_class, paused=True, as_json=as_json)


def instrument_resume(symbols: Symbols, asset_class: Class = None, as_json: Json = False) -> None:
    """Fetch paused instruments again; what is watched of them is due at once.

    \b
    Example: pricing-pipeline instrument resume AAPL
    """
    from pricing_pipeline.cli import holdings

    holdings.pause(symbols, asset_class, paused=False, as_json=as_json)


def instrument_list(
    symbols: Annotated[
        list[str] | None, typer.Argument(metavar="SYMBOL", help="Only these; else all.", show_default=False)
    ] = None,
    asset_class: Class = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 100,
    as_json: Json = False,
) -> None:
    """List instruments: their state, and how many users watch and hold them.

    \b
    Example: pricing-pipeline instrument list --asset-class fx
    """
    from pricing_pipeline.cli import holdings

    holdings.list_instruments(symbols, asset_class, limit, as_json=as_json)


def instrument_remove(symbols: Symbols, asset_class: Class = None, as_json: Json = False) -> None:
    """Remove instruments that have no history; retire the others, whose history stays.

    What is watched and held of them ends, and what waits is cancelled.

    \b
    Example: pricing-pipeline instrument remove NOPE1 --asset-class equity
    """
    from pricing_pipeline.cli import holdings

    holdings.remove(symbols, asset_class, as_json=as_json)


def price(symbol: Symbol, as_json: Json = False) -> None:
    """Show the latest prices of a symbol: one for each data type that has one. What is stale is asked for.

    \b
    Example: pricing-pipeline price AAPL --json
    """
    from pricing_pipeline.cli import read

    read.price(symbol, as_json=as_json)


def why(
    symbol: Symbol,
    data_type: Annotated[
        str | None, typer.Option("--data-type", metavar="DATA_TYPE", help="Only this data type; else each.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say why the prices of a symbol are as old as they are, and what to do about it. It asks for nothing.

    \b
    Example: pricing-pipeline why AAPL --data-type equity_quote
    """
    from pricing_pipeline.cli import read

    read.why(symbol, data_type, as_json=as_json)


def history(
    symbol: Symbol,
    data_type: Annotated[
        str, typer.Option("--data-type", metavar="DATA_TYPE", help="A data type of `registry list`.")
    ],
    first: Annotated[
        str | None, typer.Option("--from", metavar="DATE", help="First day; else 30 days before the last.")
    ] = None,
    last: Last = None,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="As it was believed then; a day means its end."),
    ] = None,
    adjust: Annotated[
        str | None,
        typer.Option("--adjust", metavar="BASIS", help="raw, splits or total; without it as it is stored."),
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Draw it instead of listing it.")] = False,
    as_json: Json = False,
) -> None:
    """Show the stored values of a symbol between two days (UTC, both included), oldest first.

    \b
    raw     as traded on their day
    splits  divided by every split since
    total   that, and without the dividends since: for total return

    \b
    Example: pricing-pipeline history IBM --data-type equity_daily --from 2008-09 --to 2009-03 --plot
    """
    if plot and as_json:
        raise typer.BadParameter("--plot draws for people; leave it out with --json")
    from pricing_pipeline.cli import read
    from pricing_pipeline.cli.arguments import basis, day, moment

    read.history(
        symbol,
        data_type,
        None if first is None else day(first, "--from"),
        None if last is None else day(last, "--to", last=True),
        as_of=None if as_of is None else moment(as_of, "--as-of"),
        adjust=None if adjust is None else basis(adjust, "--adjust"),
        plot=plot,
        as_json=as_json,
    )


def document(
    symbol: Symbol,
    data_type: Annotated[
        str, typer.Option("--data-type", metavar="DATA_TYPE", help="A type of documents of `registry list`.")
    ],
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of", metavar="TIME", help="As believed at this UTC time, or at the end of this day."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what providers say about a company: its documents of one type, the newest period first.

    What is missing or stale is asked for. With --as-of, what was believed then.

    \b
    Example: pricing-pipeline document AAPL --data-type company_profile --as-of 2026-11-20
    """
    from pricing_pipeline.cli import document as implementation
    from pricing_pipeline.cli.arguments import moment

    at = None if as_of is None else moment(as_of, "--as-of")
    implementation.document(symbol, data_type, at, as_json=as_json)


def status(as_json: Json = False) -> None:
    """Show what runs, what is watched, how fresh it is, and what limits and quota still allow.

    \b
    Example: pricing-pipeline status --json
    """
    from pricing_pipeline.cli import status as implementation

    if not implementation.status(as_json=as_json):
        raise typer.Exit(1)


def queue_list(
    statuses: Annotated[
        list[Status], typer.Option("--status", help="Only tasks in this state; may be repeated.")
    ] = _LIVE_AND_FAILED,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: Json = False,
) -> None:
    """List tasks of the fetch queue: live ones in the order they are taken, then the newest finished ones.

    \b
    Example: pricing-pipeline queue list --status failed --limit 10
    """
    from pricing_pipeline.cli import admin

    admin.list_queue([status.value for status in statuses], limit, as_json=as_json)


def queue_show(
    task_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="A task's id, as in `queue list`.")],
    as_json: Json = False,
) -> None:
    """Show one task: what it is for, where it stands, and every failure it has had.

    \b
    Example: pricing-pipeline queue show 17
    """
    from pricing_pipeline.cli import tasks

    tasks.show(task_id, as_json=as_json)


def queue_retry(
    ids: Annotated[
        list[int] | None,
        typer.Argument(metavar="ID", min=1, help="Ids of dead tasks.", show_default=False),
    ] = None,
    all_failed: Annotated[
        bool, typer.Option("--all-failed", help="All failed tasks that nothing has settled since.")
    ] = False,
    data_type: Annotated[
        str | None, typer.Option("--data-type", metavar="T", help="Of --all-failed: only this data type.")
    ] = None,
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="P", help="Of --all-failed: only this provider.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make dead tasks pending again, with all their attempts, and end their pairs' back-off.

    A task whose work is queued already is left as it is. The exit code is 1 when one could not be retried.

    \b
    Example: pricing-pipeline queue retry --all-failed --provider twelvedata
    """
    if bool(ids) == all_failed:
        raise typer.BadParameter("name tasks by their ids, or give --all-failed; not both")
    if (data_type or provider) and not all_failed:
        raise typer.BadParameter(
            "--data-type and --provider choose among --all-failed; leave them out with ids"
        )
    from pricing_pipeline.cli import tasks

    done = tasks.retry(
        ids or [], all_failed=all_failed, data_type=data_type, provider=provider, as_json=as_json
    )
    if not done:
        raise typer.Exit(1)


def queue_cancel(ids: Ids, as_json: Json = False) -> None:
    """Cancel tasks that wait or run. What a running one brings is refused; its pair rests for an hour.

    \b
    Example: pricing-pipeline queue cancel 17 18
    """
    from pricing_pipeline.cli import tasks

    if not tasks.cancel(ids, as_json=as_json):
        raise typer.Exit(1)


def registry_list(as_json: Json = False) -> None:
    """List the active data types.

    \b
    Example: pricing-pipeline registry list --json
    """
    from pricing_pipeline.cli import admin

    admin.list_registry(as_json=as_json)


def registry_add(
    data_type: Annotated[
        str, typer.Argument(metavar="DATA_TYPE", help="Its name: small letters, digits, _.")
    ],
    fetcher: Annotated[Fetcher, typer.Option(help="What is asked of a provider.")],
    ttl: Annotated[int, typer.Option(metavar="MINUTES", help="How old a watched price may grow.")],
    asset_class: Annotated[str, typer.Option(help="The instruments it applies to.")] = "equity",
    schedule: Annotated[
        str | None, typer.Option(metavar="CRON", help="Refresh all its instruments at these times.")
    ] = None,
    timezone: Annotated[str, typer.Option(help="Of the schedule, such as Asia/Kolkata.")] = "UTC",
    history_from: Annotated[
        str | None, typer.Option(metavar="DATE", help="First day that a backfill may ask for.")
    ] = None,
    background_ttl: Annotated[
        int, typer.Option(metavar="MINUTES", help="How old one that is held may grow unwatched.")
    ] = 1440,
    description: Annotated[str, typer.Option(metavar="TEXT", help="One sentence for people.")] = "",
    follow_market: Annotated[
        bool | None,
        typer.Option(help="Make no call while a market is closed. Daily values do so unless told otherwise."),
    ] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="EMAIL", help="Who answers for it; a team as team:NAME.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a data type. Its storage, assets, freshness policy and refresh follow by themselves.

    \b
    Example: pricing-pipeline registry add crypto_quote --fetcher quote --ttl 5 --asset-class crypto
    """
    from pricing_pipeline.cli import admin
    from pricing_pipeline.cli.arguments import day

    admin.add_data_type(
        data_type,
        fetcher=fetcher.value,
        ttl_minutes=ttl,
        asset_class=asset_class,
        schedule=schedule,
        timezone=timezone,
        history_from=None if history_from is None else day(history_from, "--history-from"),
        description=description,
        background_ttl_minutes=background_ttl,
        follow_market=follow_market,
        owner=owner,
        as_json=as_json,
    )


def db_upgrade(as_json: Json = False) -> None:
    """Bring the database to the current schema. Safe to repeat, and to run twice at once.

    \b
    Example: pricing-pipeline db upgrade
    """
    from pricing_pipeline.cli import admin

    admin.upgrade(as_json=as_json)


def db_backup(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")],
    as_json: Json = False,
) -> None:
    """Write the database to a file, while everything runs or while nothing does. Dagster's own runs are not in it.

    \b
    Example: pricing-pipeline db backup prices.dump
    """
    from pricing_pipeline.cli import backups

    backups.back_up(path, as_json=as_json)


def db_restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What `db backup` has written.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Lose the prices that the database holds now.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Put a backup in the place of what the database holds, while nothing runs. It succeeds as a whole or not at all.

    \b
    Example: pricing-pipeline db restore prices.dump --replace
    """
    from pricing_pipeline.cli import backups

    backups.restore(path, replace=replace, as_json=as_json)
