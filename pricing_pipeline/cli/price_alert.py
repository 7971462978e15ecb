"""`price-alert add|list|show|remove`: who is notified of which prices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pricing_pipeline.cli.arguments import number, seconds
from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.options import Json, Limit, Type
from pricing_pipeline.cli.output import (
    decimal,
    duration,
    login,
    moment,
    print_json,
    print_lines,
    print_table,
)
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import in_zone, listing, zoned
from pricing_pipeline.operations import price_alerts, recipients

if TYPE_CHECKING:
    from pricing_pipeline.operations.price_alerts import PriceAlert


noun = typer.Typer()

Id = Annotated[int, typer.Argument(metavar="ID", help="An id of `price-alert list`.")]


@dataclass(frozen=True, slots=True)
class TypedOptions:
    """The options of `price-alert add` as they were typed."""

    above: str | None
    below: str | None
    moved: str | None
    stale: str | None
    each: bool
    pace: str | None
    all_symbols: bool
    hysteresis: str | None


@noun.command()
def add(
    recipient: Annotated[str, typer.Argument(metavar="RECIPIENT", help="A recipient of `recipient list`.")],
    data_type: Type,
    symbol: Annotated[
        str | None,
        typer.Argument(metavar="SYMBOL", help="An instrument; left out with --all-symbols.", show_default=False),
    ] = None,
    above: Annotated[
        str | None, typer.Option("--above", metavar="PRICE", help="When the price goes above this.")
    ] = None,
    below: Annotated[
        str | None, typer.Option("--below", metavar="PRICE", help="When the price goes below this.")
    ] = None,
    moved: Annotated[
        str | None,
        typer.Option("--moved", metavar="PERCENT", help="When the price has moved by this many percent."),
    ] = None,
    hysteresis: Annotated[
        str | None,
        typer.Option(
            "--hysteresis",
            metavar="AMOUNT|PERCENT%",
            help="With --above or --below, how far the price must come back before the next message: 0.5 or 1%.",
        ),
    ] = None,
    stale: Annotated[
        str | None, typer.Option("--stale", metavar="SPAN", help="When it has been stale for this long: 30m.")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="For each new price.")] = False,
    pace: Annotated[
        str | None,
        typer.Option("--pace", metavar="SPAN", help="With --each, at most one message in this time; default: 1m."),
    ] = None,
    all_symbols: Annotated[
        bool, typer.Option("--all-symbols", help="With --each, for all symbols of the data type.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Notify a recipient when a price crosses a value, moves, grows stale, or is new.

    \b
    Example: pricing-pipeline price-alert add mailbox AAPL --type equity_quote --above 200
    """
    typed = TypedOptions(above, below, moved, stale, each, pace, all_symbols, hysteresis)
    condition, threshold, lasts = _condition(typed)
    amount, unit = _hysteresis(typed)
    with open_engine() as engine, engine.begin() as connection:
        wanted = price_alerts.Wanted(
            recipient,
            data_type,
            symbol,
            condition,
            threshold,
            lasts,
            _pace(typed, symbol),
            hysteresis=amount,
            hysteresis_in=unit,
        )
        added = price_alerts.add(connection, wanted, login())
    if as_json:
        print_json(added.content)
        return
    typer.echo(
        f"{recipient} is notified {_rule(added)} (price alert {added.price_alert_id}). "
        f"To end it: pricing-pipeline price-alert remove {added.price_alert_id}"
    )
    if not added.recipient_is_active:
        hint(f"{recipient} is inactive: nothing is sent. `recipient change {recipient} --active` changes that.")
    if not added.is_fetched:
        hint(_not_fetched(added))


@noun.command("list")
@listing
def list_(
    recipient: Annotated[
        str | None,
        typer.Option("--recipient", metavar="NAME", help="Only those of this recipient; default: all."),
    ] = None,
    at_most: Limit = 50,
    as_json: Json = False,
) -> None:
    """List price alerts.

    \b
    Example: pricing-pipeline price-alert list --recipient mailbox
    """
    with open_connection() as connection:
        if recipient is not None:
            recipients.find(connection, recipient)
        found = price_alerts.listed(connection, recipient, at_most + 1)
    if as_json:
        print_json({"price_alerts": [alert.content for alert in found[:at_most]]})
        return
    print_table(
        [
            "id",
            "recipient",
            "user",
            "data type",
            "symbol",
            "when",
            "last price",
            in_zone("last message"),
            "state",
        ],
        [
            (
                alert.price_alert_id,
                alert.recipient,
                alert.user_id or "",
                alert.data_type,
                alert.symbol or "all",
                _short_rule(alert),
                "" if alert.seen is None else decimal(alert.seen),
                moment(alert.told_at),
                _state(alert),
            )
            for alert in found[:at_most]
        ],
        right=["id", "last price"],
        spare=[in_zone("last message"), "last price", "user", "data type"],
        long="state",
    )
    if not found:
        typer.echo("there are no price alerts. `pricing-pipeline price-alert add --help` shows how.")
    elif len(found) > at_most:
        hint(f"There are more; --limit shows more than {at_most}.")


@noun.command()
@zoned
def show(id_: Id, as_json: Json = False) -> None:
    """Show one price alert, and what it has seen and sent.

    \b
    Example: pricing-pipeline price-alert show 3
    """
    with open_connection() as connection:
        alert = price_alerts.find(connection, id_)
    if as_json:
        print_json(alert.content)
        return
    print_lines(
        {
            "price alert": alert.price_alert_id,
            "recipient": alert.recipient,
            "user": alert.user_id,
            "when": _rule(alert),
            "state": _state(alert) or "waits",
            "last price": _price(alert.seen),
            "observed": moment(alert.seen_at),
            "moves count from": _price(alert.reference),
            "last message": moment(alert.told_at) or "never",
            "added": f"{moment(alert.created_at)} by {alert.created_by}",
            "fetched": "" if alert.is_fetched else _not_fetched(alert),
        }
    )


@noun.command()
def remove(id_: Id, as_json: Json = False) -> None:
    """End a price alert. Waiting messages are still sent.

    \b
    Example: pricing-pipeline price-alert remove 3
    """
    with open_engine() as engine, engine.begin() as connection:
        was = price_alerts.remove(connection, id_)
    if as_json:
        print_json({"price_alert": id_, "removed": True})
    else:
        typer.echo(f"{was.recipient} is no longer notified {_rule(was)}.")


def _condition(typed: TypedOptions) -> tuple[str, Decimal | None, float | None]:
    """The one condition that was typed, with its threshold or its span. Else a usage error."""
    given = [
        name
        for name in price_alerts.CONDITIONS
        if getattr(typed, name) is not None and getattr(typed, name) is not False
    ]
    if len(given) != 1:
        options = " and ".join(f"--{name}" for name in given) or "none"
        raise typer.BadParameter(f"say one of --above, --below, --moved, --stale and --each, not {options}")
    (condition,) = given
    text = getattr(typed, condition)
    if condition == "each":
        return condition, None, None
    if condition == "stale":
        return condition, None, seconds(text, "--stale")
    threshold = number(text, f"--{condition}")
    if threshold <= 0:
        raise typer.BadParameter(f"--{condition} {text} is not above 0. Write it like 0.5")
    return condition, threshold, None


def _hysteresis(typed: TypedOptions) -> tuple[Decimal, Literal["amount", "percent"]]:
    """How far a price must come back, and what that is. Else a usage error."""
    if typed.hysteresis is None:
        return Decimal(0), "amount"
    if typed.above is None and typed.below is None:
        raise typer.BadParameter("--hysteresis belongs to --above and --below")
    size = number(typed.hysteresis.removesuffix("%"), "--hysteresis")
    if size < 0:
        raise typer.BadParameter(f"--hysteresis {typed.hysteresis} is below 0. Write it like 0.5 or 1%")
    return size, "percent" if typed.hysteresis.endswith("%") else "amount"


def _pace(typed: TypedOptions, symbol: str | None) -> float | None:
    if not typed.each and (typed.pace or typed.all_symbols):
        raise typer.BadParameter(f"{'--pace' if typed.pace else '--all-symbols'} belongs to --each")
    if (symbol is None) != typed.all_symbols:
        raise typer.BadParameter("name a SYMBOL" if symbol is None else "leave out the SYMBOL, or --all-symbols")
    if not typed.each:
        return None
    return price_alerts.USUAL_PACE if typed.pace is None else seconds(typed.pace, "--pace")


def _rule(alert: PriceAlert) -> str:
    """The rest of a sentence that begins with the recipient's name."""
    about = f"{alert.data_type} {alert.symbol}" if alert.symbol else f"any symbol of {alert.data_type}"
    match alert.condition:
        case "stale":
            return f"when {about} has been stale for {_span(alert.lasts)}"
        case "each":
            return f"of each new price of {about}, at most every {_span(alert.pace)}"
        case "moved":
            return f"when {about} has moved by {_price(alert.threshold)} %"
    return f"when {about} goes {alert.condition} {_price(alert.threshold)}{_way_back(alert)}"


def _short_rule(alert: PriceAlert) -> str:
    match alert.condition:
        case "stale":
            return f"stale for {_span(alert.lasts)}"
        case "each":
            return f"each price, every {_span(alert.pace)}"
        case "moved":
            return f"moved by {_price(alert.threshold)} %"
    return f"{alert.condition} {_price(alert.threshold)}{_way_back(alert)}"


def _way_back(alert: PriceAlert) -> str:
    if not alert.hysteresis:
        return ""
    return f", again after it came back by {_price(alert.hysteresis)}{' %' if alert.hysteresis_in == 'percent' else ''}"


def _state(alert: PriceAlert) -> str:
    if not alert.recipient_is_active:
        return "recipient inactive"
    if not alert.is_fetched:
        return "nobody watches it"
    if alert.is_beyond:
        return "stale" if alert.condition == "stale" else f"is {alert.condition}"
    return ""


def _not_fetched(alert: PriceAlert) -> str:
    """An alert alone keeps no price fresh."""
    if alert.symbol is None:
        return f"nobody watches or holds a symbol of {alert.data_type}, so no price comes."
    return (
        f"nobody watches or holds {alert.data_type} {alert.symbol}, so no price comes. "
        "A price alert alone does not keep it fresh. "
        f"Hold it: pricing-pipeline holding open {alert.symbol} --type {alert.data_type}"
    )


def _price(value: Decimal | None) -> str:
    return "" if value is None else decimal(value)


def _span(span: timedelta | None) -> str:
    return "" if span is None else duration(span.total_seconds())
