"""The commands of `instrument` as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pricing_pipeline.cli.options import (
    AnySymbols,
    Class,
    Highest,
    Json,
    Limit,
    Lowest,
    Symbol,
    Symbols,
    TrustJumpsUntil,
    given,
    given_bounds,
    symbols_argument,
)
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(help="Look at instruments; find, add, change, spell, pause, resume, merge or remove them.")

NewName = Annotated[str | None, typer.Option("--name", metavar="TEXT", help="For people.")]
NewCurrency = Annotated[
    str | None,
    typer.Option("--currency", metavar="CODE", help="Of its prices; those in others are quarantined."),
]
NewCalendar = Annotated[
    str | None,
    typer.Option(
        "--calendar",
        metavar="NAME",
        help="When it trades, such as XNYS; with none its symbol and currency decide.",
    ),
]
NewExchange = Annotated[
    str | None,
    typer.Option(
        "--exchange",
        metavar="MIC",
        help="MIC of the exchange where it trades, such as XTAE; sets the calendar too. none: its symbol tells.",
    ),
]
NewIsin = Annotated[str | None, typer.Option("--isin", metavar="ISIN", help="By which it can be named, too.")]
NewFigi = Annotated[str | None, typer.Option("--figi", metavar="FIGI", help="By which it can be named, too.")]
NewListedOn = Annotated[
    str | None, typer.Option("--listed-on", metavar="DATE", help="Its first day of trading.")
]
NewScale = Annotated[
    int | None,
    typer.Option("--scale", metavar="DECIMALS", help="Decimals that are stored of each price, at least."),
]
TypeOfBounds = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="Whose prices the next four options bound.")
]
AsType = Annotated[
    bool, typer.Option("--as-type", help="Have it go by the bounds of its type, and have none of its own.")
]


@noun.command("list")
@listing
def list_(
    symbols: AnySymbols = None,
    asset_class: Class = None,
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """List instruments: their state, and how many users watch and hold them.

    \b
    Example: pricing-pipeline instrument list --asset-class fx
    """
    from pricing_pipeline.cli import instrument

    instrument.list_(symbols, asset_class, limit, as_json=as_json)


@noun.command()
@zoned
def show(symbol: Symbol, asset_class: Class = None, as_json: Json = False) -> None:
    """Show an instrument, and what each data type stores of it.

    \b
    Example: pricing-pipeline instrument show AAPL
    """
    from pricing_pipeline.cli import instrument

    instrument.show(symbol, asset_class, as_json=as_json)


@noun.command()
@listing
def find(
    words: Annotated[
        list[str], typer.Argument(metavar="WORD", help="Parts of a name, a ticker, an ISIN or a FIGI.")
    ],
    provider: Annotated[
        str | None,
        typer.Option("--provider", metavar="PROVIDER", help="Whom to ask: twelvedata, fmp or mfapi."),
    ] = None,
    data_type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Only for this data type, asked of its first provider."),
    ] = None,
    chosen: Annotated[
        str | None, typer.Option("--add", metavar="N[,M]", help="Add what has these numbers.")
    ] = None,
    limit: Limit = 30,
    as_json: Json = False,
) -> None:
    """Search for instruments at a provider, and add those that you choose. On a terminal it asks which.

    It is one call of one unit, within the provider's limits. --add within ten minutes of the same search makes no call.

    \b
    Example: pricing-pipeline instrument find vodafone --provider twelvedata --add 1
    """
    if not 0 < len(" ".join(words).strip()) <= 100:
        raise typer.BadParameter("name what to search for in at most 100 characters, such as vodafone")
    from pricing_pipeline.cli import instrument_find

    instrument_find.find(words, provider, data_type, chosen, limit, as_json=as_json)


@noun.command()
def add(
    symbols: Annotated[list[str] | None, symbols_argument("Symbols of new instruments.")] = None,
    asset_class: Annotated[
        str | None, typer.Option("--asset-class", metavar="CLASS", help="Of which they are.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="TEXT", help="A name for people; only with one symbol.")
    ] = None,
    currency: Annotated[
        str | None,
        typer.Option("--currency", metavar="CODE", help="Of their prices; else that of the first answer."),
    ] = None,
    isin: NewIsin = None,
    figi: NewFigi = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="A table of them: symbol, asset_class, name, currency, calendar, listed_on, scale, isin, figi; "
            "only the first column is needed. - is standard input.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Add instruments, unverified until a provider's first valid answer. All are added, or none.

    This alone fetches nothing. Existing instruments stay as they are, but get an ISIN or a FIGI that they have not.

    \b
    Example: pricing-pipeline instrument add MSFT GOOG --asset-class equity --currency USD
    """
    if bool(symbols) == (csv is not None):
        raise typer.BadParameter("name symbols, or a file with --csv; not both")
    if symbols and asset_class is None:
        raise typer.BadParameter("--asset-class says what they are, such as equity")
    if (name or isin or figi) and (symbols is None or len(symbols) > 1):
        raise typer.BadParameter("--name, --isin and --figi are those of one symbol")
    from pricing_pipeline.cli import instrument

    instrument.add(
        symbols or [],
        csv,
        asset_class,
        name,
        currency,
        isin=isin and isin.upper(),
        figi=figi and figi.upper(),
        as_json=as_json,
    )


@noun.command()
@listing
def change(
    symbol: Symbol,
    asset_class: Class = None,
    name: NewName = None,
    currency: NewCurrency = None,
    isin: NewIsin = None,
    figi: NewFigi = None,
    exchange: NewExchange = None,
    calendar: NewCalendar = None,
    listed_on: NewListedOn = None,
    scale: NewScale = None,
    data_type: TypeOfBounds = None,
    lowest: Lowest = None,
    highest: Highest = None,
    trust_jumps_until: TrustJumpsUntil = None,
    as_type: AsType = False,
    as_json: Json = False,
) -> None:
    """Correct an instrument, or bound its prices. Values without an option stay.

    The word none takes away what an option names, as in --highest none. Quarantined values stay where they are. It
    needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline instrument change EUR/USD --type fx_rate --lowest 0.5 --highest 2.5
    """
    from pricing_pipeline.cli import instrument
    from pricing_pipeline.cli.arguments import day

    known = given(
        name=(name, str),
        currency=(currency, str),
        isin=(isin, str.upper),
        figi=(figi, str.upper),
        exchange=(exchange, str),
        calendar=(calendar, str),
        listed_on=(listed_on, lambda text: day(text, "--listed-on")),
        scale=(scale, int),
    )
    bounds = given_bounds(lowest, highest, trust_jumps_until)
    if bounds and as_type:
        raise typer.BadParameter("--as-type takes its own bounds away; leave out those that you give")
    if bool(bounds or as_type) != (data_type is not None):
        raise typer.BadParameter(
            "--type says whose bounds --lowest, --highest, --trust-jumps-until and --as-type change; give both"
        )
    if not (known or bounds or as_type):
        raise typer.BadParameter("say what changes, such as --currency USD")
    instrument.change(symbol, asset_class, data_type, known, bounds, as_type=as_type, as_json=as_json)


@noun.command()
def spell(
    symbol: Symbol,
    provider: Annotated[str, typer.Option("--at", metavar="PROVIDER", help="A provider of `provider list`.")],
    spelling: Annotated[
        str | None, typer.Option("--as", metavar="SPELLING", help="What the provider calls it.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Have the provider's rule spell it again.")] = False,
    asset_class: Class = None,
    as_json: Json = False,
) -> None:
    """Say how a provider spells an instrument, where its rule is wrong. `instrument show` tells each spelling.

    What failed of it is asked for again. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline instrument spell BRK.B --at yahoo --as BRK-B
    """
    if undo == (spelling is not None):
        raise typer.BadParameter("give the spelling with --as, or take it back with --undo")
    from pricing_pipeline.cli import instrument

    instrument.spell(symbol, asset_class, provider, spelling, as_json=as_json)


@noun.command()
def pause(symbols: Symbols, asset_class: Class = None, as_json: Json = False) -> None:
    """Fetch nothing more of instruments, whoever watches or holds them; what waits is cancelled.

    \b
    Example: pricing-pipeline instrument pause AAPL --asset-class equity
    """
    from pricing_pipeline.cli import instrument

    instrument.pause(symbols, asset_class, paused=True, as_json=as_json)


@noun.command()
def resume(symbols: Symbols, asset_class: Class = None, as_json: Json = False) -> None:
    """Fetch paused instruments again; what is watched of them is due at once.

    \b
    Example: pricing-pipeline instrument resume AAPL
    """
    from pricing_pipeline.cli import instrument

    instrument.pause(symbols, asset_class, paused=False, as_json=as_json)


@noun.command()
def merge(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The symbol that goes.")],
    into: Annotated[str, typer.Argument(metavar="INTO", help="The symbol that stays.")],
    asset_class: Class = None,
    as_json: Json = False,
) -> None:
    """Make two instruments one, with the histories of both, or rename one. From then on OLD means INTO.

    Where both have something, such as a price of one day, that of INTO stays. It needs the owner's URL, as `type add`
    does.

    \b
    Example: pricing-pipeline instrument merge VOD.L VOD:XLON
    """
    from pricing_pipeline.cli import instrument

    instrument.merge(old, into, asset_class, as_json=as_json)


@noun.command()
def remove(symbols: Symbols, asset_class: Class = None, as_json: Json = False) -> None:
    """Remove instruments that have no history; retire the others, whose history stays.

    What is watched and held of them ends, and what waits is cancelled.

    \b
    Example: pricing-pipeline instrument remove NOPE1 --asset-class equity
    """
    from pricing_pipeline.cli import instrument

    instrument.remove(symbols, asset_class, as_json=as_json)
