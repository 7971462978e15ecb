"""The commands of `alert` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json, Limit, Reason
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(help="See what is in trouble, and say who looks after it.")

Rule = Annotated[str, typer.Argument(metavar="ALERT", help="A kind of alert, such as breaker_open.")]
Subject = Annotated[
    str | None, typer.Option("--subject", metavar="TEXT", help="Only about this, as in `alert list`.")
]


@noun.command("list")
@listing
def list_(
    with_past: Annotated[bool, typer.Option("--past", help="Include alerts that are over.")] = False,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List alerts: open ones first, the most urgent first.

    \b
    Example: pricing-pipeline alert list --past
    """
    from pricing_pipeline.cli import alert

    alert.list_(limit, with_past=with_past, as_json=as_json)


@noun.command()
@zoned
def show(
    alert_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="An id, as in `alert list`.")],
    as_json: Json = False,
) -> None:
    """Show one alert: the trouble, the messages about it, who looks after it, and where to read on.

    \b
    Example: pricing-pipeline alert show 3
    """
    from pricing_pipeline.cli import alert

    alert.show(alert_id, as_json=as_json)


@noun.command()
def acknowledge(
    ids: Annotated[list[int], typer.Argument(metavar="ID", min=1, help="Ids, as in `alert list`.")],
    as_json: Json = False,
) -> None:
    """Say that you look after alerts: they are not repeated. Their end is told all the same.

    The exit code is 1 when one is not open.

    \b
    Example: pricing-pipeline alert acknowledge 3
    """
    from pricing_pipeline.cli import alert

    if not alert.acknowledge(ids, as_json=as_json):
        raise typer.Exit(1)


@noun.command()
@zoned
def silence(
    rule: Rule,
    hours: Annotated[
        float, typer.Option("--hours", min=0.1, max=24 * 365, help="For how long; at most a year.")
    ],
    subject: Subject = None,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Tell nobody of alerts of one kind for a while. They are listed all the same.

    \b
    Example: pricing-pipeline alert silence breaker_open --subject yahoo --hours 8
    """
    from pricing_pipeline.cli import alert

    alert.silence(rule, hours, subject, reason, as_json=as_json)


@noun.command()
def unsilence(rule: Rule, subject: Subject = None, as_json: Json = False) -> None:
    """End the silences of one kind of alert.

    \b
    Example: pricing-pipeline alert unsilence breaker_open
    """
    from pricing_pipeline.cli import alert

    alert.unsilence(rule, subject, as_json=as_json)
