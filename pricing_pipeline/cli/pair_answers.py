"""What became of the symbols that a command names, as the commands of `subscription` and `holding` report it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from pricing_pipeline.cli.database import open_engine
from pricing_pipeline.cli.output import listed, login, print_json
from pricing_pipeline.cli.program import hint, warn
from pricing_pipeline.errors import PairsRefused
from pricing_pipeline.registry import data_type_registry

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pricing_pipeline.demand.viewers import Answer


def content(answer: Answer) -> Mapping[str, Any]:
    """An answer for `--json`, in the shape that the API has."""
    return asdict(answer)


def tell_doubts(answer: Answer) -> None:
    """Tell which symbols are spelled otherwise, and which are doubtful. Refusals are the caller's to tell."""
    for pair in answer.pairs:
        if pair.outcome == "accepted":
            hint(f"{pair.given} is spelled {pair.symbol} here.")
    for fault in answer.faults:
        if fault.outcome == "doubtful":
            warn(fault.sentence)


def require_all(answer: Answer) -> None:
    """Raise PairsRefused if a symbol is refused; the others are served by now."""
    if answer.refused:
        raise PairsRefused(answer.refusals, [asdict(pair) for pair in answer.pairs])


def end(
    release: Callable[[Connection, str, Sequence[tuple[str, str]]], int],
    user: str | None,
    data_type: str,
    symbols: Sequence[str],
    *,
    words: tuple[str, str],
    as_json: bool,
) -> None:
    """End what a user wants of these symbols. `words` are two forms of the verb, such as `holds` and `holding`."""
    user = login() if user is None else user
    with open_engine() as engine, engine.begin() as connection:
        ended = release(connection, user, [(data_type, symbol) for symbol in symbols])
        if not ended:  # of a type that was retired there may be some
            data_type_registry.active_data_type(connection, data_type)
    does, doing = words
    if as_json:
        print_json({"user": user, "data_type": data_type, "symbols": list(symbols), "ended": ended})
    elif ended:
        typer.echo(f"{user} no longer {does} {data_type} {listed(symbols)}.")
    else:
        typer.echo(f"{user} was not {doing} {data_type} {listed(symbols)}; nothing has changed.")
