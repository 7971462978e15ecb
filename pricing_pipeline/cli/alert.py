"""`alert list|acknowledge|silence|unsilence`: trouble that was found, and what people say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.output import login, moment, print_json, print_table
from pricing_pipeline.cli.style import in_zone
from pricing_pipeline.operations import alerts
from pricing_pipeline.settings import load_settings


def list_(at_most: int, *, with_past: bool, as_json: bool) -> None:
    """Tell the alerts that were raised."""
    with open_connection(load_settings()) as connection:
        found = alerts.listed(connection, at_most, with_past=with_past)
    if as_json:
        print_json({"alerts": found})
        return
    print_table(
        ["id", "", "alert", "about", in_zone("since"), "state", "what"],
        [
            (
                alert["alert_id"],
                alert["severity"],
                alert["rule"],
                alert["subject"],
                moment(alert["since"]),
                _state(alert),
                alert["says"],
            )
            for alert in found
        ],
        right=["id"],
        spare=["about", in_zone("since")],
        long="what",
    )
    if not found:
        typer.echo("no alert is open.")


def acknowledge(ids: Sequence[int], *, as_json: bool) -> bool:
    """Note that the login looks after alerts; False when one of them is not open."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        acknowledged = alerts.acknowledge(connection, ids, login())
    if as_json:
        print_json({"acknowledged": acknowledged, "not_open": sorted(set(ids) - set(acknowledged))})
    else:
        for id_ in ids:
            outcome = (
                "acknowledged: it is not repeated" if id_ in acknowledged else "there is no such open alert"
            )
            typer.echo(f"alert {id_}: {outcome}.")
    return set(ids) <= set(acknowledged)


def silence(rule: str, hours: float, subject: str | None, because: str | None, *, as_json: bool) -> None:
    """Tell nobody of alerts of one kind for a while. Raises UnknownAlertRule."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        until = alerts.silence(connection, rule, subject, 3600 * hours, login(), because)
        open_subjects = alerts.open_subjects(connection, rule)
    is_open = subject in open_subjects if subject else bool(open_subjects)
    if as_json:
        print_json(
            {
                "alert": rule,
                "subject": subject,
                "until": until,
                "is_open": is_open,
                "open_subjects": open_subjects,
            }
        )
        return
    about = f" about {subject}" if subject else ""
    typer.echo(f"Nobody is told of {rule}{about} until {moment(until)}.")
    if subject and not is_open:
        others = ", ".join(open_subjects) or "nothing"
        typer.echo(f"No open alert is about {subject} now; of {rule} there are open ones about: {others}.")


def unsilence(rule: str, *, as_json: bool) -> None:
    """End the silences of one kind of alert. Raises UnknownAlertRule."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        ended = alerts.end_silences(connection, rule)
    if as_json:
        print_json({"alert": rule, "ended": ended})
    else:
        typer.echo(f"{rule} is told again." if ended else f"{rule} was not silenced; nothing has changed.")


def _state(alert: Mapping[str, Any]) -> str:
    if alert["resolved_at"] is not None:
        return "over"
    if alert["silenced_until"] is not None:
        return "silenced"
    return "acknowledged" if alert["acknowledged_at"] is not None else "open"
