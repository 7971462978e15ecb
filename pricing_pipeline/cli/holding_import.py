"""`holding import`: show what a file of holdings would open, and open it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli import instrument_find
from pricing_pipeline.cli.database import load_settings, open_engine
from pricing_pipeline.cli.options import Json, User, pairs_of
from pricing_pipeline.cli.output import login, print_json, print_table
from pricing_pipeline.cli.program import hint, warn
from pricing_pipeline.demand import holding_imports
from pricing_pipeline.domain.words import counted, printable
from pricing_pipeline.errors import PricingError
from pricing_pipeline.holdings_files.formats import read_file
from pricing_pipeline.holdings_files.numbers import Mark
from pricing_pipeline.holdings_files.positions import Names
from pricing_pipeline.holdings_files.text import MOST_BYTES

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from pricing_pipeline.demand.holding_imports import Decision, Plan
    from pricing_pipeline.holdings_files.positions import HoldingsFile
    from pricing_pipeline.providers.searches import Listing
    from pricing_pipeline.settings import Settings

_SHOWN_LINES = 4
_SHOWN_ALONE = 5
"""So many instruments that are refused for one reason have a line each; more of them have one together."""
_LONGEST_NAMES = 200


def import_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV, XML or JSON file; - is standard input.")],
    user: User = None,
    data_types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Data type for instruments of its class; default: that with the freshest prices.",
        ),
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="Its format; default: by its header.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="FIELD=NAME",
            help="A column of any other table, by its name or as #3: symbol, isin, exchange, currency, name, quantity, "
            "action (buy or sell) or time.",
        ),
    ] = None,
    own_names: Annotated[
        list[str] | None,
        typer.Option("--as", metavar="NAME=SYMBOL", help="The symbol for an ISIN, ticker or title in the file."),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option("--decimal", metavar="MARK", help="point or comma; default: as the numbers show."),
    ] = None,
    searches: Annotated[
        bool,
        typer.Option("--find", help="Look up unknown instruments at a provider, with one call for each."),
    ] = False,
    list_name: Annotated[
        str | None,
        typer.Option("--list", metavar="NAME", help="Also put all instruments that are held or new on this list."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Hold what is new without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Hold the positions in a file of a broker or tracker.

    It shows first what each line would become, and opens nothing without --yes or a yes at the terminal. The formats
    in docs/holdings.md are known by their header.

    \b
    Example: pricing-pipeline holding import transactions.csv --user alice
    """
    if decimal not in (None, *Mark):
        raise typer.BadParameter(f"{decimal!r} is not a decimal mark: point or comma")
    user = login() if user is None else user
    names_here = pairs_of("--as", own_names)
    file = read_file(_content(path), format_, pairs_of("--column", columns), None if decimal is None else Mark(decimal))
    for name in holding_imports.unused(file, names_here):
        warn(f"--as: nothing in the file is called {name}.")
    _warn_of_vague(file)
    settings = load_settings()
    with open_engine(settings) as engine:

        def planned(names: Mapping[str, str]) -> Plan:
            with engine.connect() as connection:
                return holding_imports.plan(connection, user, file, data_types=data_types or [], own_names=names)

        plan = planned(names_here)
        if searches and plan.unknown:
            found = _found(settings, engine, plan, file)
            plan = planned({**found, **names_here})
        if not as_json:
            _print(user, plan)
            if plan.unknown and not searches:
                hint("--find looks up what is unknown at a provider, in one call for each.")
        new, held = plan.of(holding_imports.Outcome.NEW), plan.of(holding_imports.Outcome.HELD)
        listed = len(new) + len(held) if list_name is not None else 0
        steps = [f"hold {counted(len(new), 'new pair')}"] if new else []
        steps += [f"change {counted(len(plan.changed), 'quantity')}"] if plan.changed else []
        steps += [f"put {counted(listed, 'pair')} on the list {list_name}"] if listed else []
        question = f"{', and '.join(steps)}?"
        done = yes or (bool(steps) and _is_confirmed(question, as_json=as_json))
        if done:
            with engine.begin() as connection:
                holding_imports.carry_out(connection, user, plan, learns=True, list_name=list_name)
    if as_json:
        decisions = [asdict(decision) for decision in plan.decisions]
        print_json({"user": user, "format": plan.format, "dry_run": not done, "decisions": decisions})
    elif steps and not done:
        hint(f"nothing has changed yet. The same command with --yes would {', and '.join(steps)}.")
    elif done:
        if new:
            typer.echo(f"{user} holds {counted(len(new), 'pair')} more. Missing prices are fetched now.")
        if plan.changed:
            typer.echo(f"{counted(len(plan.changed), 'quantity')} set to the total in the file.")
        if listed:
            typer.echo(f"On the list {list_name}: {counted(listed, 'pair')} of this file.")
    if plan.of(holding_imports.Outcome.REFUSED):
        raise typer.Exit(1)


def _warn_of_vague(file: HoldingsFile) -> None:
    """Warn of numbers whose point or comma may mark decimals or thousands, where nothing in the file shows which."""
    if file.vague:
        first = file.vague[0]
        more = f", and {counted(len(file.vague) - 1, 'more line')} like it" if len(file.vague) > 1 else ""
        warn(
            f"line {first.line}{more}: {first.text} counts as {first.counted.normalize():f}. "
            f"If it is {first.otherwise.normalize():f}, name the decimal mark: --decimal comma; else --decimal point."
        )


def _content(path: Path) -> bytes:
    """The bytes of a file: at most as many as a file of holdings may have, plus one that shows that it is longer."""
    if str(path) == "-":
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


def _is_confirmed(question: str, *, as_json: bool) -> bool:
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return typer.confirm(question[:1].upper() + question[1:])


def _found(settings: Settings, engine: Engine, plan: Plan, file: HoldingsFile) -> dict[str, str]:
    """The symbols of ISINs for which a provider's search has one listing that fits the file.

    For the others it prints the candidates; a name alone is never enough.
    """
    found: dict[str, str] = {}
    by_isin = {position.names.isin: position.names for position in file.positions if position.names.isin}
    with _telling():
        for phrase in plan.unknown:
            names = by_isin.get(phrase, Names())
            listings = instrument_find.searched(settings, engine, phrase)
            fits = [one for one in listings if _fits(one, names.exchange, names.currency)]
            symbols = list(dict.fromkeys(one.symbol for one in fits or listings))
            if phrase in by_isin and fits and len(symbols) == 1:
                found[phrase] = symbols[0]
            elif symbols:
                option = shlex.quote(f"{phrase}={symbols[0]}")
                candidates = ", ".join(symbols[:_SHOWN_ALONE])
                warn(f"{phrase} may be {candidates}; if the first is the one that you hold: --as {option}.")
    return found


def _fits(listing: Listing, exchange: str, currency: str) -> bool:
    at_exchange = not exchange or exchange in ("XNYS", "XNAS") or listing.symbol.endswith(f":{exchange}")
    return at_exchange and (not currency or listing.currency in (None, holding_imports.major(currency)))


@contextmanager
def _telling() -> Iterator[None]:
    """Tell that a search could not be made, and go on without it: what it would have found is refused by name."""
    try:
        yield
    except PricingError as error:
        warn(f"some unknown instruments were not looked up: {error}")


def _print(user: str, plan: Plan) -> None:
    held = plan.of(holding_imports.Outcome.NEW, holding_imports.Outcome.HELD)
    if held:
        print_table(
            ["lines", "in the file", "quantity", "symbol", "data type", ""],
            [
                (
                    _lines(one.lines, ""),
                    printable(one.name),
                    None if one.quantity is None else f"{one.quantity:f}",
                    one.symbol,
                    one.data_type,
                    _state(one, plan),
                )
                for one in held
            ],
            right=["quantity"],
            long="in the file",
        )
    for one in held:
        if one.reason:
            unkept = f" Its ISIN is not stored; `{_isin_command(one)}` keeps it." if one.isin else ""
            warn(printable(f"{_lines(one.lines)}: {one.symbol}: {one.reason}.{unkept}"))
    for reason, refused in _by_reason(plan.of(holding_imports.Outcome.REFUSED)).items():
        if len(refused) > _SHOWN_ALONE:
            names = "; ".join(f"{_lines(one.lines)}: {one.name}" for one in refused)
            typer.echo(printable(f"refused: {len(refused)} instruments, because {reason}. {names}."))
            if all(one.candidates for one in refused):
                likeliest = [_as_option(one, one.candidates[0]) for one in refused]
                hint(printable(f"the likeliest of each, to check: {' '.join(likeliest)}"))
            elif proposal := _proposal(refused[0]):
                hint(printable(f"for the first of them, try {proposal}."))
            continue
        for one in refused:
            proposal = _proposal(one)
            way_out = f" Try {proposal}." if proposal else ""
            typer.echo(printable(f"refused: {_lines(one.lines)}: {one.name}: {reason}.{way_out}"))
    for reason, left_out in _by_reason(plan.of(holding_imports.Outcome.LEFT_OUT)).items():
        names = ", ".join(dict.fromkeys(one.name for one in left_out if one.name))
        shown = names if len(names) <= _LONGEST_NAMES else f"{names[:_LONGEST_NAMES]}..."
        lines = _lines([line for one in left_out for line in one.lines])
        typer.echo(printable(f"left out: {lines}: {shown}: {reason}."))
    others = f" ({len(plan.changed)} with another quantity)" if plan.changed else ""
    new, already = len(plan.of(holding_imports.Outcome.NEW)), len(plan.of(holding_imports.Outcome.HELD))
    typer.echo(
        f"{plan.format}: {counted(new, 'new pair')} for {user}, {already} held already{others}, "
        f"{len(plan.of(holding_imports.Outcome.REFUSED))} refused."
    )


def _state(decision: Decision, plan: Plan) -> str:
    if decision.outcome is holding_imports.Outcome.NEW:
        return "doubtful" if decision.reason else "new"
    if decision.held_quantity is not None and decision in plan.changed:
        return f"held, {decision.held_quantity:f} before"
    return "held already"


def _proposal(decision: Decision) -> str | None:
    """What to try, as options or a command."""
    if decision.lacks_type_of is not None:
        fetcher, ttl = ("nav", 1440) if decision.lacks_type_of == "fund" else ("quote", 5)
        name, options = f"{decision.lacks_type_of}_{fetcher}", f"--fetcher {fetcher} --ttl {ttl}"
        return f"`pricing-pipeline type add {name} {options} --asset-class {decision.lacks_type_of}`"
    if decision.advice is not None or decision.identifier is None:
        return decision.advice
    if decision.candidates:
        return " or ".join(_as_option(decision, symbol) for symbol in decision.candidates[:3])
    if decision.search is None:
        return _as_option(decision, "SYMBOL")
    of_type = f" --type {decision.search_type}" if decision.search_type else ""
    search = f"`pricing-pipeline instrument find {shlex.quote(decision.search)}{of_type}`"
    return f"{search}, or {_as_option(decision, 'SYMBOL')}"


def _as_option(decision: Decision, symbol: str) -> str:
    return f"--as {shlex.quote(f'{decision.identifier}={symbol}')}"


def _isin_command(decision: Decision) -> str:
    """The command by which a person says that an ISIN is that of an instrument."""
    return f"pricing-pipeline instrument change {shlex.quote(decision.symbol or '')} --isin {decision.isin}"


def _by_reason(decisions: Sequence[Decision]) -> dict[str, list[Decision]]:
    by_reason: dict[str, list[Decision]] = {}
    for one in decisions:
        by_reason.setdefault((one.reason or "").rstrip("."), []).append(one)
    return by_reason


def _lines(lines: Sequence[int], noun: str = "line") -> str:
    shown = ", ".join(map(str, sorted(lines)[:_SHOWN_LINES]))
    more = f" and {len(lines) - _SHOWN_LINES} more" if len(lines) > _SHOWN_LINES else ""
    return f"{noun}{'s' * bool(noun and len(lines) > 1)} {shown}{more}".strip()
