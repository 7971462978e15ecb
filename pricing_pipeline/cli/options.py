"""Arguments and options that several commands have, each spelled once. Nothing here imports anything slow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer


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
User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="For whom; else your login.")]
Type = Annotated[str, typer.Option("--type", metavar="TYPE", help="A data type of `type list`.")]
AnyType = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only this data type; else all.")]
TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="A data type of `type list`.")]
Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="An instrument's symbol.")]
Symbols = Annotated[list[str], symbols_argument("Symbols of instruments.")]
AnySymbols = Annotated[list[str] | None, symbols_argument("Only these symbols; else all.")]
AnySymbol = Annotated[
    str | None, typer.Argument(metavar="SYMBOL", help="Only this symbol; else all.", show_default=False)
]
AllOrNothing = Annotated[
    bool, typer.Option("--all-or-nothing", help="Change nothing if one of the symbols is refused.")
]
Class = Annotated[
    str | None, typer.Option("--asset-class", metavar="CLASS", help="Only of this class; else of all.")
]
Last = Annotated[str | None, typer.Option("--to", metavar="DATE", help="Last day; else today.")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="As it was believed then; a day means its end.")
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; kept with it.")]
Provider = Annotated[str, typer.Argument(metavar="PROVIDER", help="A provider of `provider list`.")]
AnyProvider = Annotated[
    str | None, typer.Argument(metavar="PROVIDER", help="Only this provider; else all.", show_default=False)
]
KeyName = Annotated[str, typer.Option("--name", metavar="NAME", help="Which of its keys.")]
AnyUser = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Only this user; else all.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="Show at most this many rows.")]
Lowest = Annotated[
    str | None, typer.Option("--lowest", metavar="PRICE", help="Lower prices are quarantined.")
]
Highest = Annotated[
    str | None, typer.Option("--highest", metavar="PRICE", help="Higher prices are quarantined.")
]
TrustJumpsUntil = Annotated[
    str | None,
    typer.Option(
        "--trust-jumps-until",
        metavar="TIME",
        help="Until then no price is quarantined for being far from the last price; a day means its end.",
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="Write a table to this file; - is standard output."),
]
Parquet = Annotated[
    Path | None, typer.Option("--parquet", metavar="FILE", help="Write a table to this file (needs pyarrow).")
]


def one_output(plot: bool, as_json: bool, csv: Path | None, parquet: Path | None) -> None:
    """Refuse two results on one standard output."""
    wanted = {"--plot": plot, "--json": as_json, "--csv": csv is not None, "--parquet": parquet is not None}
    given = [name for name, is_given in wanted.items() if is_given]
    if len(given) > 1 and set(given) != {"--csv", "--parquet"}:
        raise typer.BadParameter(f"{given[0]} and {given[1]} are two ways to tell one result; leave one out")


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
