"""`alert list|show|acknowledge|silence|unsilence`: trouble that was found, and what people say about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer

from pricing_pipeline.cli.database import load_settings, open_connection, open_engine
from pricing_pipeline.cli.options import Json, Limit, Reason
from pricing_pipeline.cli.output import login, moment, print_json, print_lines, print_table, printable
from pricing_pipeline.cli.style import in_zone, listing, zoned
from pricing_pipeline.operations import alerts
from pricing_pipeline.processes import home

noun = typer.Typer()

Rule = Annotated[str, typer.Argument(metavar="ALERT", help="A kind of alert, such as breaker_open.")]
Subject = Annotated[str | None, typer.Option("--subject", metavar="TEXT", help="Only about this, as in `alert list`.")]


@noun.command("list")
@listing
def list_(
    with_past: Annotated[bool, typer.Option("--past", help="Include alerts that are over.")] = False,
    at_most: Limit = 50,
    as_json: Json = False,
) -> None:
    """List alerts: open ones first, the most urgent first.

    \b
    Example: pricing-pipeline alert list --past
    """
    with open_connection() as connection:
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


@noun.command()
@zoned
def show(
    alert_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="An id, as in `alert list`.")],
    as_json: Json = False,
) -> None:
    """Show one alert: the trouble, the messages about it, who works on it, and where to read more.

    \b
    Example: pricing-pipeline alert show 3
    """
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
            "notified": moment(alert["told_at"]) if alert["told_at"] else "not yet",
            "acknowledged": _by(alert["acknowledged_at"], alert["acknowledged_by"]),
            "silenced": _silenced(silence) if silence else None,
            "over": moment(alert["resolved_at"]),
            "end notified": moment(alert["end_told_at"]),
            "what to do": runbook,
            "in Dagster": link,
            "acknowledge it": f"pricing-pipeline alert acknowledge {alert['alert_id']}" if is_open else None,
        }
    )
    for message in alert["messages"]:
        typer.echo(
            printable(
                f"{moment(message['enqueued_at'])}  operation {message['id']} to {message['recipient']} by "
                f"{message['channel']}: {message['status']}"
            )
        )


@noun.command()
def acknowledge(
    ids: Annotated[list[int], typer.Argument(metavar="ID", min=1, help="Ids, as in `alert list`.")],
    as_json: Json = False,
) -> None:
    """Acknowledge alerts, so that they are not repeated. Their end is still reported.

    The exit code is 1 when one is not open.

    \b
    Example: pricing-pipeline alert acknowledge 3
    """
    with open_engine() as engine, engine.begin() as connection:
        acknowledged = alerts.acknowledge(connection, ids, login())
    if as_json:
        print_json({"acknowledged": acknowledged, "not_open": sorted(set(ids) - set(acknowledged))})
    else:
        for id_ in ids:
            outcome = "acknowledged: it is not repeated" if id_ in acknowledged else "there is no such open alert"
            typer.echo(f"alert {id_}: {outcome}.")
    if not set(ids) <= set(acknowledged):
        raise typer.Exit(1)


@noun.command()
@zoned
def silence(
    rule: Rule,
    hours: Annotated[float, typer.Option("--hours", min=0.1, max=24 * 365, help="For how long; at most a year.")],
    subject: Subject = None,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Silence alerts of one kind for a while. They are still listed.

    \b
    Example: pricing-pipeline alert silence breaker_open --subject yahoo --hours 8
    """
    with open_engine() as engine, engine.begin() as connection:
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
    typer.echo(f"Silenced: {rule}{about} until {moment(until)}.")
    if subject and not is_open:
        others = ", ".join(open_subjects) or "none"
        typer.echo(f"No open alert of {rule} is about {subject}. Subjects of its open alerts: {others}.")


@noun.command()
def unsilence(rule: Rule, subject: Subject = None, as_json: Json = False) -> None:
    """End the silences of one kind of alert.

    \b
    Example: pricing-pipeline alert unsilence breaker_open
    """
    with open_engine() as engine, engine.begin() as connection:
        done = alerts.end_silences(connection, rule, subject)
    if as_json:
        print_json({"alert": rule, "subject": subject} | asdict(done))
    else:
        typer.echo(f"{rule}{f' about {subject}' if subject else ''}: {done.words}.")


def _by(at: datetime | None, who: str | None) -> str | None:
    return f"{moment(at)} by {who}" if at else None


def _silenced(silence: Mapping[str, Any]) -> str:
    reason = f": {silence['reason']}" if silence["reason"] else ""
    return f"until {moment(silence['until'])} by {silence['silenced_by']}{reason}"


def _state(alert: Mapping[str, Any]) -> str:
    if alert["resolved_at"] is not None:
        return "over"
    if alert["silenced_until"] is not None:
        return "silenced"
    return "acknowledged" if alert["acknowledged_at"] is not None else "open"
