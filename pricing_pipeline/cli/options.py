"""Arguments and options that several commands have, each spelled once. Nothing here imports anything slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from pricing_pipeline.domain.cells import Decimals


def symbols_argument(told: str) -> Any:
    """The argument of a command that takes several symbols, with its help."""
    return typer.Argument(metavar="SYMBOL", help=told, show_default=False, callback=_require_spaces)


def _require_spaces(symbols: list[str] | None) -> list[str] | None:
    """Refuse symbols with commas: no symbol has one."""
    for symbol in symbols or ():
        if "," in symbol:
            apart = " ".join(part for part in symbol.split(",") if part)
            raise typer.BadParameter(f"{symbol!r} has a comma. Separate symbols by spaces: {apart}")
    return symbols


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV, with the columns of the HTTP API.")]
Decimal = Annotated[
    Decimals, typer.Option("--decimal", help="With --csv: point, or comma and semicolons between cells.")
]
Currency = Annotated[
    str | None,
    typer.Option("--currency", metavar="CODE", help="In this currency, by stored rates: EUR, or GBX for pence."),
]
User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="The user; otherwise your login.")]
Type = Annotated[str, typer.Option("--type", metavar="TYPE", help="A data type of `type list`.")]
AnyType = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only this data type; default: all.")]
TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="A data type of `type list`.")]
Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="An instrument's symbol.")]
Symbols = Annotated[list[str], symbols_argument("Symbols of instruments.")]
AnySymbols = Annotated[list[str] | None, symbols_argument("Only these symbols; default: all.")]
AnySymbol = Annotated[
    str | None, typer.Argument(metavar="SYMBOL", help="Only this symbol; default: all.", show_default=False)
]
AllOrNothing = Annotated[
    bool, typer.Option("--all-or-nothing", help="Change nothing if one of the symbols is refused.")
]
Class = Annotated[str | None, typer.Option("--asset-class", metavar="CLASS", help="Only this class; default: all.")]
Last = Annotated[str | None, typer.Option("--to", metavar="DATE", help="Last day; default: today.")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="As it was believed then; a day means its end.")
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="The reason, which is kept.")]
Provider = Annotated[str, typer.Argument(metavar="PROVIDER", help="A provider of `provider list`.")]
AnyProvider = Annotated[
    str | None,
    typer.Argument(metavar="PROVIDER", help="Only this provider; default: all.", show_default=False),
]
KeyName = Annotated[str, typer.Option("--name", metavar="NAME", help="The name of the key.")]
AnyUser = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Only this user; default: all.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="Show at most this many rows.")]
Lowest = Annotated[str | None, typer.Option("--lowest", metavar="PRICE", help="Lower prices are quarantined.")]
Highest = Annotated[str | None, typer.Option("--highest", metavar="PRICE", help="Higher prices are quarantined.")]
TrustJumpsUntil = Annotated[
    str | None,
    typer.Option(
        "--trust-jumps-until",
        metavar="TIME",
        help="Until then no price is quarantined as a jump; a day means its end.",
    ),
]


def pairs_of(option: str, texts: list[str] | None) -> dict[str, str]:
    """The names and values of an option that is given as NAME=VALUE, several times."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.strip().partition("=")
        if not (equals and name.strip() and value.strip()):
            raise typer.BadParameter(f"{text!r} is not a {option}: write NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def given(**options: tuple[Any, Callable[[Any], object]]) -> dict[str, object]:
    """The values of the options that were typed, by the column that each changes; the word none stands for nothing."""
    return {
        column: None if typed == "none" else read(typed)
        for column, (typed, read) in options.items()
        if typed is not None
    }


def given_bounds(lowest: str | None, highest: str | None, trust_jumps_until: str | None) -> dict[str, object]:
    """The bounds of prices that were typed, by their column."""
    from pricing_pipeline.cli.arguments import moment, number

    return given(
        lowest=(lowest, lambda text: number(text, "--lowest")),
        highest=(highest, lambda text: number(text, "--highest")),
        jumps_trusted_until=(trust_jumps_until, lambda text: moment(text, "--trust-jumps-until")),
    )
