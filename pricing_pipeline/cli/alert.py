"""`alert list|show|acknowledge|silence|unsilence`: trouble that was found, and what people say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import typer

from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.output import login, moment, print_json, print_lines, print_table, printable
from pricing_pipeline.cli.style import in_zone
from pricing_pipeline.operations import alerts
from pricing_pipeline.processes import home
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


def show(alert_id: int, *, as_json: bool) -> None:
    """Tell everything about one alert. Raises UnknownAlert."""
    settings = load_settings()
    with open_connection(settings) as connection:
        alert = alerts.find(connection, alert_id)
    place = alerts.ui_place(alert.pop("place"), settings.asset_prefix)
    link = alerts.ui_link(settings.ui_url or home.urls(settings.home).get("dagster"), place)
    runbook = alerts.runbook_section(alert["rule"])
    if as_json:
        print_json({**alert, "runbook": runbook, "link": link})
        return
    silence = next(iter(alert["silences"]), None)
    is_open = alert["resolved_at"] is None
    print_lines(
        {
            "alert": f"{alert['alert_id']}, {alert['rule']}",
            "severity": alert["severity"],
            "about": alert["subject"],
            "what": alert["says"],
            "since": moment(alert["since"]),
            "raised": moment(alert["raised_at"]),
            "last seen": moment(alert["last_seen_at"]),
            "told": moment(alert["told_at"]) if alert["told_at"] else "not yet",
            "acknowledged": _by(alert["acknowledged_at"], alert["acknowledged_by"]),
            "silenced": _silenced(silence) if silence else None,
            "over": moment(alert["resolved_at"]),
            "end told": moment(alert["end_told_at"]),
            "what to do": runbook,
            "in Dagster": link,
            "look after it": f"pricing-pipeline alert acknowledge {alert['alert_id']}" if is_open else None,
        }
    )
    for message in alert["messages"]:
        typer.echo(
            printable(
                f"{moment(message['enqueued_at'])}  operation {message['id']} to {message['recipient']} by "
                f"{message['channel']}: {message['status']}"
            )
        )


def _by(at: datetime | None, who: str | None) -> str | None:
    return f"{moment(at)} by {who}" if at else None


def _silenced(silence: Mapping[str, Any]) -> str:
    reason = f": {silence['reason']}" if silence["reason"] else ""
    return f"until {moment(silence['until'])} by {silence['silenced_by']}{reason}"


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


def silence(rule: str, hours: float, subject: str | None, reason: str | None, *, as_json: bool) -> None:
    """Tell nobody of alerts of one kind for a while. Raises UnknownAlertRule."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        until = alerts.silence(connection, rule, subject, 3600 * hours, login(), reason)
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
        others = ", ".join(open_subjects) or "none"
        typer.echo(f"No open alert of {rule} is about {subject}. Subjects of its open alerts: {others}.")


def unsilence(rule: str, subject: str | None, *, as_json: bool) -> None:
    """End the silences of one kind of alert, or of those about one subject. Raises UnknownAlertRule."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        done = alerts.end_silences(connection, rule, subject)
    if as_json:
        print_json({"alert": rule, "subject": subject} | asdict(done))
    else:
        typer.echo(f"{rule}{f' about {subject}' if subject else ''}: {done.words}.")


def _state(alert: Mapping[str, Any]) -> str:
    if alert["resolved_at"] is not None:
        return "over"
    if alert["silenced_until"] is not None:
        return "silenced"
    return "acknowledged" if alert["acknowledged_at"] is not None else "open"
