"""`action list|show|add|remove`: corporate actions, including those that no source reports and a person enters.

They are applied when prices are read (db/functions/prices/history.sql); no stored price changes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pricing_pipeline.cli.arguments import as_of_time, currency_code, day
from pricing_pipeline.cli.database import open_connection, open_owner
from pricing_pipeline.cli.options import AsOf, Class, Json, Reason, Symbol, User
from pricing_pipeline.cli.output import login, moment, print_json, print_lines, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import in_zone, listing, zoned
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.answers import CapitalGain, CorporateAction, Dividend, SpinOff, Split
from pricing_pipeline.domain.words import read_number
from pricing_pipeline.errors import UnknownAction
from pricing_pipeline.prices import actions
from pricing_pipeline.quarantine import reviews

if TYPE_CHECKING:
    from pricing_pipeline.prices.actions import Revision, StoredAction

noun = typer.Typer()

Day = Annotated[str, typer.Argument(metavar="DAY", help="The first trading day without it, like 2020-08-31.")]


class ActionKind(StrEnum):
    """The kinds of corporate actions."""

    SPLIT = "split"
    SPIN_OFF = "spin_off"
    DIVIDEND = "dividend"
    CAPITAL_GAIN = "capital_gain"


AnyKind = Annotated[ActionKind | None, typer.Option("--kind", help="Which kind, if the day has several.")]
_RATIO = re.compile(r"(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)")
_WORDS = {"spin_off": "spin-off", "capital_gain": "capital gain"}


@noun.command("list")
@listing
def list_(symbol: Symbol, asset_class: Class = None, believed_at: AsOf = None, as_json: Json = False) -> None:
    """List the corporate actions of an instrument, the newest first, and who reported them.

    \b
    Example: pricing-pipeline action list AAPL
    """
    as_of = as_of_time(believed_at)
    with open_connection() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        of_class = actions.class_of(connection, symbol, asset_class)
        known = actions.read(connection, of_class, symbol, as_of)
    if as_json:
        print_json(
            {
                "symbol": symbol,
                "asset_class": of_class,
                "as_of": as_of,
                "actions": [actions.content_of(stored) for stored in known],
            }
        )
    elif known:
        print_table(
            ["ex day", "kind", "", "by", in_zone("believed since"), "why"],
            [
                (
                    stored.action.ex_on,
                    actions.kind_of(stored.action),
                    _in_words(stored.action),
                    stored.entered_by or stored.provider,
                    moment(stored.recorded_at),
                    stored.reason,
                )
                for stored in known
            ],
            spare=[in_zone("believed since"), "by"],
            long="why",
        )
    else:
        typer.echo(f"no split, spin-off or payment of {symbol} is known{'' if as_of is None else ' of that time'}.")


@noun.command()
@zoned
def show(symbol: Symbol, ex_day: Day, kind: AnyKind = None, asset_class: Class = None, as_json: Json = False) -> None:
    """Show the corporate actions of a day: who reported them, when, why, and what was believed before.

    \b
    Example: pricing-pipeline action show AAPL 2020-08-31
    """
    ex_on = day(ex_day, "DAY")
    with open_connection() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        of_class = actions.class_of(connection, symbol, asset_class)
        known = [stored for stored in actions.read(connection, of_class, symbol) if stored.action.ex_on == ex_on]
        revisions = actions.revisions(connection, of_class, symbol, ex_on)
    known = [stored for stored in known if kind in (None, actions.kind_of(stored.action))]
    revisions = [revision for revision in revisions if kind in (None, actions.kind_of(revision.stored.action))]
    if not (known or revisions):
        raise UnknownAction(
            f"no {_spelled(kind)} of {symbol} on {ex_on} was ever known. "
            f"`pricing-pipeline action list {symbol}` lists them."
        )
    if as_json:
        print_json(
            {
                "symbol": symbol,
                "asset_class": of_class,
                "actions": [actions.content_of(stored) for stored in known],
                "revisions": [actions.content_of(revision.stored) | _ending(revision) for revision in revisions],
            }
        )
        return
    blocks = [_lines(stored) for stored in known] + [
        _lines(revision.stored)
        | {
            "believed until": moment(revision.revised_at),
            "ended by": revision.removed_by or "its source, which says otherwise",
            "ended because": revision.removed_because,
        }
        for revision in revisions
    ]
    for number, block in enumerate(blocks):
        if number:
            typer.echo()
        print_lines({"action": f"{block.pop('said')} of {symbol} ({of_class})", **block})


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
        typer.Option("--capital-gain", metavar="CASH", help="Cash for one share that a fund paid out of its gains."),
    ] = None,
    currency: Annotated[
        str | None,
        typer.Option("--currency", metavar="CODE", help="Currency of the payment; default: that of the prices."),
    ] = None,
    further: Annotated[
        bool,
        typer.Option("--further", help="Add to a payment of the same kind, day and currency, instead of replacing it."),
    ] = False,
    reason: Reason = None,
    user: User = None,
    asset_class: Class = None,
    as_json: Json = False,
) -> None:
    """Enter a split, spin-off, dividend or capital gain that no source reports, or that one reports wrongly.

    It replaces the ratio of that day, or the payment of its kind in its currency. No stored price changes; adjusted
    reads apply it. It needs the owner's URL.

    \b
    Example: pricing-pipeline action add AAPL 2020-08-31 --split 4:1 --reason "the source forgot it"
    """
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
        entered = of_ratio(symbol, on, *ratio(text or "", option))
    else:
        of_cash, text = payments[option]
        code = None if currency is None else currency_code(currency)
        entered = of_cash(symbol, on, cash(text or "", option), code)
    by_whom = user or login()
    with open_owner() as engine:
        with engine.begin() as connection:
            entered = replace(entered, symbol=instruments.spelled_anywhere(connection, symbol))
            of_class = actions.class_of(connection, entered.symbol, asset_class)
            outcome = actions.enter(connection, of_class, entered, by_whom, reason, is_further=further)
        outcomes = Counter(decision.outcome for decision in reviews.judge_anew(engine))
    if as_json:
        print_json(
            {
                "outcome": outcome,
                "symbol": entered.symbol,
                "asset_class": of_class,
                "ex_on": entered.ex_on,
                "kind": actions.kind_of(entered),
                "by": by_whom,
                "judged_anew": dict(outcomes),
            }
        )
        return
    subject = f"{_in_words(entered)} of {entered.symbol} on {entered.ex_on}"
    match outcome:
        case "known_already":
            typer.echo(f"{subject} is known already; nothing has changed.")
        case "replaced":
            typer.echo(f"{subject} replaces the previous entry, which is kept as a revision.")
        case _:
            typer.echo(f"{subject} is entered. Adjusted histories include it now, or from its day on.")
    if outcomes["released"]:
        typer.echo(f"{outcomes['released']} quarantined values are explained by it, and are prices now.")
    if outcomes["rejected"]:
        typer.echo(f"{outcomes['rejected']} quarantined values are stored values divided by it; they stay out.")
    hint(f"Is something still quarantined? `pricing-pipeline quarantine list --symbol {entered.symbol}` shows them.")


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
    """Remove a split, a spin-off, or the payments of a kind and day, from any source.

    They stay as revisions, with who removed them and why.

    \b
    Example: pricing-pipeline action remove AAPL 2020-08-31 --kind split --reason "it was 5:1"
    """
    ex_on = day(ex_day, "DAY")
    if currency is not None:
        currency = currency_code(currency)
    by_whom = user or login()
    with open_owner() as engine, engine.begin() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        of_class = actions.class_of(connection, symbol, asset_class)
        found = [
            stored.action
            for stored in actions.read(connection, of_class, symbol)
            if stored.action.ex_on == ex_on
            and kind in (None, actions.kind_of(stored.action))
            and currency in (None, getattr(stored.action, "currency", None))
        ]
        kinds = sorted({actions.kind_of(action) for action in found})
        if len(kinds) != 1:
            known = " and ".join(f"a {_spelled(kind)}" for kind in kinds) or f"no {_spelled(kind)}"
            todo = "Say which by --kind." if kinds else f"`pricing-pipeline action list {symbol}` lists them."
            raise UnknownAction(f"{known} of {symbol} on {ex_on} {'are' if kinds else 'is'} known. {todo}")
        actions.remove(connection, of_class, symbol, ex_on, kinds[0], by_whom, reason, currency=currency)
    if as_json:
        print_json(
            {
                "outcome": "removed",
                "symbol": symbol,
                "asset_class": of_class,
                "ex_on": ex_on,
                "kind": kinds[0],
                "by": by_whom,
            }
        )
    else:
        what = _spelled(kinds[0]) if len(found) == 1 else f"{len(found)} payments ({_spelled(kinds[0])})"
        typer.echo(
            f"the {what} of {symbol} on {ex_on} is removed. It stays as a revision, and is not believed "
            "if its source reports it again."
            if len(found) == 1
            else f"the {what} of {symbol} on {ex_on} are removed. They stay as revisions, and are not believed if "
            "their source reports them again."
        )


def ratio(given: str, option: str) -> tuple[Decimal, Decimal]:
    """New and old shares of a split or spin-off: 4:1 are four for one. Else a usage error."""
    match = _RATIO.fullmatch(given)
    if match is not None:
        new, old = Decimal(match[1]), Decimal(match[2])
        if new > 0 and old > 0 and new != old:
            return new, old
    raise typer.BadParameter(
        f"{option} {given!r} is not a ratio. Write new shares for old ones, like 4:1; 1:10 is a reverse split"
    )


def cash(given: str, option: str) -> Decimal:
    """An amount for one share, above zero and exact. Else a usage error."""
    try:
        amount = read_number(given)
    except ValueError:
        amount = Decimal(0)
    if amount <= 0 or amount.adjusted() > 8 or len(amount.as_tuple().digits) > 15:
        raise typer.BadParameter(f"{option} {given!r} is not an amount for a share. Write it like 0.25")
    return amount


def _lines(stored: StoredAction) -> dict[str, object]:
    return {
        "said": _in_words(stored.action),
        "ex day": stored.action.ex_on,
        "by": stored.entered_by or stored.provider,
        "call": stored.call_id or None,
        "why": stored.reason,
        "believed since": moment(stored.recorded_at),
    }


def _ending(revision: Revision) -> dict[str, Any]:
    return {
        "revised_at": revision.revised_at,
        "removed_by": revision.removed_by,
        "removed_because": revision.removed_because,
    }


def _in_words(action: CorporateAction) -> str:
    kind = _spelled(actions.kind_of(action))
    match action:
        case Split():
            return f"{kind} {actions.digits(action.new_shares)}:{actions.digits(action.old_shares)}"
        case Dividend():
            return f"{kind} {actions.digits(action.amount)} {action.currency or ''}".strip()


def _spelled(kind: str | None) -> str:
    return "split, spin-off or payment" if kind is None else _WORDS.get(kind, kind)
