"""The commands of `action` as they are typed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pricing_pipeline.cli.options import AsOf, Class, Json, Reason, Symbol, User
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(
    help="Look at splits, spin-offs, dividends and capital gains, or enter what no source reports."
)

Day = Annotated[str, typer.Argument(metavar="DAY", help="The first trading day without it, like 2020-08-31.")]


class ActionKind(StrEnum):
    """The kinds of corporate actions."""

    SPLIT = "split"
    SPIN_OFF = "spin_off"
    DIVIDEND = "dividend"
    CAPITAL_GAIN = "capital_gain"


AnyKind = Annotated[ActionKind | None, typer.Option("--kind", help="Which kind, if the day has several.")]


@noun.command("list")
@listing
def list_(symbol: Symbol, asset_class: Class = None, as_of: AsOf = None, as_json: Json = False) -> None:
    """List the corporate actions of an instrument, the newest first, and who reported them.

    \b
    Example: pricing-pipeline action list AAPL
    """
    from pricing_pipeline.cli import action
    from pricing_pipeline.cli.arguments import as_of_time

    when = as_of_time(as_of)
    action.list_(symbol, asset_class, when, as_json=as_json)


@noun.command()
@zoned
def show(
    symbol: Symbol, ex_day: Day, kind: AnyKind = None, asset_class: Class = None, as_json: Json = False
) -> None:
    """Show the corporate actions of a day: who reported them, when, why, and what was believed before.

    \b
    Example: pricing-pipeline action show AAPL 2020-08-31
    """
    from pricing_pipeline.cli import action
    from pricing_pipeline.cli.arguments import day

    of_kind = None if kind is None else kind.value
    action.show(symbol, day(ex_day, "DAY"), of_kind, asset_class, as_json=as_json)


@noun.command()
def add(
    symbol: Symbol,
    ex_day: Day,
    split: Annotated[
        str | None, typer.Option("--split", metavar="NEW:OLD", help="New shares for old ones: 4:1.")
    ] = None,
    spin_off: Annotated[
        str | None,
        typer.Option(
            "--spin-off",
            metavar="NEW:OLD",
            help="Shares of another company: divides prices like a split, but multiplies no volume.",
        ),
    ] = None,
    dividend: Annotated[
        str | None, typer.Option("--dividend", metavar="CASH", help="Cash for one share of that day.")
    ] = None,
    capital_gain: Annotated[
        str | None,
        typer.Option(
            "--capital-gain", metavar="CASH", help="Cash for one share that a fund paid out of its gains."
        ),
    ] = None,
    currency: Annotated[
        str | None,
        typer.Option("--currency", metavar="CODE", help="Currency of the payment; else that of the prices."),
    ] = None,
    further: Annotated[
        bool,
        typer.Option(
            "--further", help="Add to a payment of the same kind, day and currency, instead of replacing it."
        ),
    ] = False,
    reason: Reason = None,
    user: User = None,
    asset_class: Class = None,
    as_json: Json = False,
) -> None:
    """Enter a split, spin-off, dividend or capital gain that no source reports, or that one reports wrongly.

    It takes the place of the ratio of that day, or of the payment of its kind in its currency. No stored price changes:
    histories count it when they are read adjusted. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline action add AAPL 2020-08-31 --split 4:1 --reason "the source forgot it"
    """
    from pricing_pipeline.cli import action
    from pricing_pipeline.cli.arguments import currency_code, day
    from pricing_pipeline.domain.answers import CapitalGain, CorporateAction, Dividend, SpinOff, Split

    ratios = {"--split": (Split, split), "--spin-off": (SpinOff, spin_off)}
    payments = {"--dividend": (Dividend, dividend), "--capital-gain": (CapitalGain, capital_gain)}
    given = [option for option, (_, text) in (ratios | payments).items() if text is not None]
    if len(given) != 1:
        raise typer.BadParameter(f"give one of {', '.join(ratios | payments)}")
    (option,) = given
    if option in ratios and (currency is not None or further):
        raise typer.BadParameter(f"--currency and --further are for payments; leave them out with {option}")
    on = day(ex_day, "DAY")
    entered: CorporateAction
    if option in ratios:
        of_ratio, text = ratios[option]
        entered = of_ratio(symbol, on, *action.ratio(text or "", option))
    else:
        of_cash, text = payments[option]
        code = None if currency is None else currency_code(currency, "--currency")
        entered = of_cash(symbol, on, action.cash(text or "", option), code)
    action.add(entered, asset_class, user, reason, is_further=further, as_json=as_json)


@noun.command()
def remove(
    symbol: Symbol,
    ex_day: Day,
    kind: AnyKind = None,
    currency: Annotated[
        str | None, typer.Option("--currency", metavar="CODE", help="Only the payments in this currency.")
    ] = None,
    reason: Reason = None,
    user: User = None,
    asset_class: Class = None,
    as_json: Json = False,
) -> None:
    """Take back a split, a spin-off, or the payments of a kind and day, from any source.

    They stay as revisions, with who took them back and why.

    \b
    Example: pricing-pipeline action remove AAPL 2020-08-31 --kind split --reason "it was 5:1"
    """
    from pricing_pipeline.cli import action
    from pricing_pipeline.cli.arguments import currency_code, day

    on = day(ex_day, "DAY")
    of_kind = None if kind is None else kind.value
    code = None if currency is None else currency_code(currency, "--currency")
    action.remove(symbol, on, of_kind, code, asset_class, user, reason, as_json=as_json)
