"""`quarantine list|show|release|reject`: values that are not believed, for people to look at and decide on."""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pricing_pipeline.cli.database import load_settings, open_connection, open_engine
from pricing_pipeline.cli.options import AnySymbol, AnyType, Json, Reason, User
from pricing_pipeline.cli.output import decimal, iso, login, moment, print_json, print_table, printable
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import in_zone, listing, zoned
from pricing_pipeline.domain.states import Decided
from pricing_pipeline.errors import UnknownValue
from pricing_pipeline.quarantine import opinions, quarantined_values, reviews
from pricing_pipeline.registry import data_type_registry

if TYPE_CHECKING:
    from pricing_pipeline.quarantine.opinions import Opinion
    from pricing_pipeline.quarantine.quarantined_values import Decision, Neighbour, QuarantinedValue

noun = typer.Typer()

Ids = Annotated[list[int], typer.Argument(metavar="ID", min=1, help="Ids of `quarantine list`.")]
Level = Annotated[bool, typer.Option("--level", help="Also all consecutive quarantined values on its level.")]
_MANY = 20
"""Values on which is decided together, beyond which only their number is told."""
_EXCERPT = 600
"""Characters of the answer that `show` prints around the value."""
_VERDICTS = {"agrees": "it agrees", "disagrees": "it disagrees"}
_PLACES = {"before": "before it", "same": "at its time", "after": "after it", "other type": "elsewhere"}


@noun.command("list")
@listing
def list_(
    symbol: AnySymbol = None,
    data_type: AnyType = None,
    state: Annotated[Decided, typer.Option("--status", help="Only values in this state.")] = Decided.QUARANTINED,
    at_most: Annotated[int, typer.Option("--limit", min=1, help="Show at most this many rows, the newest first.")] = 50,
    as_json: Json = False,
) -> None:
    """List values that a provider sent and that are not believed, the latest first.

    \b
    Example: pricing-pipeline quarantine list AAPL --type equity_daily
    """
    status = None if state is Decided.ALL else state.value
    with open_connection() as connection:
        values = quarantined_values.listed(connection, data_type, symbol, at_most, status)
        second_opinions = opinions.of(connection, [value.value_id for value in values])
    if as_json:
        print_json(
            {
                "values": [
                    {
                        **_content(value),
                        "opinions": [asdict(word) for word in second_opinions.get(value.value_id, [])],
                    }
                    for value in values
                ]
            }
        )
    elif values:
        rows = [
            (
                value.value_id,
                value.data_type,
                value.symbol,
                value.provider,
                moment(value.observed_at),
                value.value,
                value.kind,
                value.reason,
                "; ".join(_in_short(word) for word in second_opinions.get(value.value_id, [])),
                value.times,
                moment(value.last_seen_at),
                value.status if value.resolved_by is None else f"{value.status} by {value.resolved_by}",
            )
            for value in values
        ]
        headings = [
            "id",
            "data type",
            "symbol",
            "provider",
            in_zone("of"),
            "value",
            "kind",
            "why",
            "others say",
            "times",
        ]
        print_table(
            [*headings, "last", "state"],
            rows,
            right=["id", "value", "times"],
            spare=["others say", "times", "last", in_zone("of"), "provider", "state"],
            long="why",
        )
    else:
        typer.echo(f"no value is {status}." if status else "no value was ever quarantined.")


@noun.command()
@listing
def show(
    value_id: Annotated[int, typer.Argument(metavar="ID", help="An id of `quarantine list`.")],
    body: Annotated[
        bool,
        typer.Option("--body", help="Write the answer that brought it, byte for byte, and nothing else."),
    ] = False,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Ask the next provider of its route first: one call, if limits allow."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show one quarantined value: why it is not believed, what is stored around it, what others say, and its answer.

    \b
    Example: pricing-pipeline quarantine show 17 --ask
    """
    if body and (as_json or ask):
        raise typer.BadParameter("--body writes what the provider sent; leave it out with --json and --ask")
    if body:
        _write_answer(value_id)
        return
    with open_connection() as connection:
        value = quarantined_values.show(connection, value_id)
    if value is None:
        raise _unknown(value_id)
    refusal = _ask(value_id) if ask else None
    with open_connection() as connection:
        second_opinions = opinions.of(connection, [value_id]).get(value_id, [])
        neighbours = quarantined_values.neighbours(connection, value_id)
        brought = quarantined_values.body(connection, value_id)
        level = quarantined_values.level(connection, value_id)
        is_active = value.data_type in {type_.data_type for type_ in data_type_registry.active_data_types(connection)}
    answer = None if brought is None else brought.decode("utf-8", "replace")
    if as_json:
        print_json(
            {
                **_content(value),
                "level": level,
                "around": [asdict(neighbour) for neighbour in neighbours],
                "opinions": [asdict(opinion) for opinion in second_opinions],
                "not_asked": refusal,
                "body": answer,
            }
        )
    else:
        _print(value, neighbours, second_opinions, answer, len(level), is_active=is_active)
        if refusal is not None:
            hint(f"Nobody was asked: {refusal}.")


@noun.command()
@zoned
def release(ids: Ids, level: Level = False, reason: Reason = None, user: User = None, as_json: Json = False) -> None:
    """Release quarantined values: each is stored exactly as its provider sent it.

    Each enters the history, and becomes the latest price if none is newer. The exit code is 1 if one could not.
    --level decides on a whole level, such as all days before a change of face value.

    \b
    Example: pricing-pipeline quarantine release 17 18 --reason "checked with the exchange"
    """
    if not _decide(ids, user, reason, release=True, level=level, as_json=as_json):
        raise typer.Exit(1)


@noun.command()
@zoned
def reject(ids: Ids, level: Level = False, reason: Reason = None, user: User = None, as_json: Json = False) -> None:
    """Reject quarantined values for good. If one comes again it is only counted.

    \b
    Example: pricing-pipeline quarantine reject 17 --reason "pence for pounds"
    """
    if not _decide(ids, user, reason, release=False, level=level, as_json=as_json):
        raise typer.Exit(1)


def _ask(value_id: int) -> str | None:
    from pricing_pipeline.keys.clients import open_clients

    settings = load_settings()
    with open_engine(settings) as engine, open_clients(settings, engine) as clients:
        return opinions.ask(engine, clients, value_id, f"{socket.gethostname()}:{os.getpid()}")


def _write_answer(value_id: int) -> None:
    """Write the answer that brought a value, byte for byte. Raises UnknownValue when it is not kept."""
    with open_connection() as connection:
        value = quarantined_values.show(connection, value_id)
        body = quarantined_values.body(connection, value_id)
    if value is None:
        raise _unknown(value_id)
    if body is None:
        raise UnknownValue(
            f"the answer that brought value {value_id} is no longer kept: answers are kept 90 days. "
            f"`pricing-pipeline quarantine show {value_id}` shows what is known of it."
        )
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()


def _decide(ids: Sequence[int], by: str | None, why: str | None, *, release: bool, level: bool, as_json: bool) -> bool:
    """Release or reject values, or the whole levels that they are of; False when one could not be."""
    by_whom = by or login()
    decision = "released" if release else "rejected"
    decisions: list[Decision] = []
    with open_engine() as engine:
        for value_id in dict.fromkeys(ids):
            if value_id not in {decided.value_id for decided in decisions}:
                decisions += reviews.decide(engine, [value_id], decision, by_whom, why, with_levels=level)
    refused = [decided for decided in decisions if decided.is_refused(decision)]
    if as_json:
        print_json(
            {
                "values": [
                    {
                        "value_id": decided.value_id,
                        "outcome": decided.outcome,
                        "is_latest": decided.is_latest,
                        "revised": decided.revised,
                    }
                    for decided in decisions
                ],
                "counts": dict(Counter(decided.outcome for decided in decisions)),
            }
        )
    elif len(decisions) > _MANY:
        for outcome, some in Counter(decided.outcome for decided in decisions).items():
            typer.echo(f"{some} values on the level of {', '.join(map(str, ids))}: {outcome.replace('_', ' ')}.")
    else:
        for decided in decisions:
            typer.echo(f"value {decided.value_id}: {_outcome_in_words(decided, release=release)}.")
    return not refused


def _outcome_in_words(decision: Decision, *, release: bool) -> str:
    value = decision.value
    match decision.outcome:
        case "released" if value is not None:
            where = "and is the latest price" if decision.is_latest else "in the history"
            how = ", replacing another value, which is kept as a revision" if decision.revised else ""
            return f"{value.value} of {value.symbol} is stored, {where}{how}"
        case "rejected":
            return "stays out, even if it comes again"
        case "released_already" if not release and value is not None:
            return (
                f"is not rejected: it was released by {value.resolved_by} and is believed now. The next value that its "
                "provider sends for that time replaces it; `action remove` removes a split or dividend"
            )
        case "released_already" | "rejected_already" if value is not None:
            when = f" by {value.resolved_by} at {moment(value.resolved_at)}" if value.resolved_by else ""
            return f"nothing to do: it was {decision.outcome.removesuffix('_already')}{when}"
        case "unreadable":
            return "is not released: its answer gave no value that could be stored; `quarantine show` has the answer"
        case "retired" if value is not None:
            return f"is not released: its data type {value.data_type} is retired"
    return "there is none; `quarantine list --status all` lists them"


def _unknown(value_id: int) -> UnknownValue:
    return UnknownValue(
        f"there is no quarantined value {value_id}. `pricing-pipeline quarantine list --status all` shows those "
        "there are."
    )


def _content(value: QuarantinedValue) -> dict[str, Any]:
    return asdict(value) | {"observed_at": value.observed_at and iso(value.observed_at)}


def _print(
    value: QuarantinedValue,
    near: Sequence[Neighbour],
    second_opinions: Sequence[Opinion],
    answer: str | None,
    count: int,
    *,
    is_active: bool,
) -> None:
    bar = {name: given for name, given in (value.bar or {}).items() if name != "adjustment"}
    decided = (
        None if value.resolved_at is None else f"{value.status} by {value.resolved_by} at {moment(value.resolved_at)}"
    )
    lines = {
        "value": value.value_id,
        "what": f"{value.data_type} {value.symbol}, of {moment(value.observed_at) or 'an impossible time'}",
        "sent": ", ".join(f"{name} {given}" for name, given in bar.items()) or value.value,
        "by": f"{value.provider}, call {value.call_id}",
        "not believed": f"{value.kind}: {value.reason}",
        "came": f"{'once' if value.times == 1 else f'{value.times} times, last'} at {moment(value.last_seen_at)}",
        "decided": decided,
        "because": value.resolution,
    }
    for opinion in second_opinions:
        when = moment(opinion.observed_at) or moment(opinion.asked_at)
        price = None if opinion.value is None else f"{decimal(opinion.value)} {opinion.currency or ''}".strip()
        verdict = f": {_VERDICTS[opinion.verdict]}" if opinion.verdict else ""
        lines[f"{opinion.provider} says"] = f"{price or opinion.failure or 'nothing yet'}, of {when}{verdict}"
    for name, words in lines.items():
        if words not in (None, ""):
            typer.echo(f"{name + ':':<14}{printable(str(words))}")
    if near:
        typer.echo()
        rows = [
            (_PLACES[n.place], moment(n.observed_at), decimal(n.price), n.currency, n.data_type, n.provider)
            for n in near
        ]
        print_table(
            ["stored", in_zone("of"), "price", "", "data type", "provider"],
            rows,
            right=["price"],
            spare=["provider"],
        )
    if answer is not None:
        typer.echo()
        typer.echo(printable(_excerpt(answer, value.value)))
    if value.status == "quarantined":
        level = f"; with --level, it and the {count - 1} others on its level." if count > 1 else "."
        hint(f"{_what_can_be_decided(value, is_active=is_active)}{level}")


def _what_can_be_decided(value: QuarantinedValue, *, is_active: bool) -> str:
    rejects = f"`pricing-pipeline quarantine reject {value.value_id}` keeps it out for good"
    if value.observation is None:
        return f"It gave no value that could be stored, so it cannot be released. {rejects}"
    if not is_active:
        return f"Its data type {value.data_type} is retired, so it cannot be released. {rejects}"
    return f"`pricing-pipeline quarantine release {value.value_id}` stores it, {rejects}"


def _in_short(opinion: Opinion) -> str:
    price = "nothing" if opinion.value is None else decimal(opinion.value)
    return f"{opinion.provider} {price}{f' {opinion.verdict}' if opinion.verdict else ''}"


def _excerpt(answer: str, value: str) -> str:
    """The part of an answer where the value stands; all of a short one."""
    if len(answer) <= _EXCERPT:
        return answer
    place = answer.find(value) if value else -1
    start = max(0, place - _EXCERPT // 2) if place >= 0 else 0
    part = answer[start : start + _EXCERPT]
    return f"{'…' if start else ''}{part}{'…' if start + _EXCERPT < len(answer) else ''}"
