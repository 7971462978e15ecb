"""`/v1/alerts`: trouble that was found, and how people acknowledge and silence it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from pricing_pipeline.api.access import Database, Operator, Reader
from pricing_pipeline.api.bodies import Body, Shape
from pricing_pipeline.api.ids import Id, Ids
from pricing_pipeline.api.paging import Keyset, Page
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import UnknownAlert
from pricing_pipeline.operations import alerts

router = APIRouter(prefix="/alerts", tags=["alerts"])

_LONGEST_SILENCE = 24 * 365
_Rule = Annotated[str, Field(max_length=48, examples=["breaker_open"])]
_Subject = Annotated[str | None, Field(min_length=1, max_length=200, examples=["twelvedata"])]


class Alert(Shape):
    """Trouble that was found. Times are UTC; `resolved_at` is null while it lasts."""

    alert_id: int
    rule: str = Field(examples=["breaker_open"])
    subject: str = Field(examples=["twelvedata"])
    severity: str = Field(examples=["P1"])
    says: str
    since: datetime
    last_seen_at: datetime
    raised_at: datetime
    told_at: datetime | None
    resolved_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None


class ListedAlert(Alert):
    """An alert, and until when it is silenced."""

    silenced_until: datetime | None


class Alerts(Shape):
    """Trouble that was found."""

    alerts: list[ListedAlert]
    next: str | None
    """The cursor of the next page; null on the last one."""


class Silence(Shape):
    """Until when an alert is silenced, by which person, and why."""

    until: datetime
    silenced_by: str
    reason: str | None


class Message(Shape):
    """A message about an alert: the side effect `id`."""

    id: int
    recipient: str | None
    channel: str
    status: str
    enqueued_at: datetime


class WholeAlert(Alert):
    """Everything about an alert."""

    is_repeated: bool
    end_told_at: datetime | None
    runbook: str = Field(examples=["docs/runbook.md#breaker_open"])
    silences: list[Silence]
    messages: list[Message] | None
    """Who was told; null for a token that does not allow `operate`."""


class Acknowledged(Shape):
    """The ids of alerts that are acknowledged now."""

    acknowledged: list[int]


class SilenceRule(Body):
    """A kind of alert, or those about one subject, to be silenced for some hours."""

    alert: _Rule
    hours: float = Field(gt=0, le=_LONGEST_SILENCE, examples=[4])
    subject: _Subject = None
    reason: str | None = Field(None, max_length=1000)


class Silenced(Shape):
    """Until when nobody is told. `is_open` says whether there is such an alert now."""

    alert: str
    subject: str | None
    until: datetime
    is_open: bool
    open_subjects: list[str]


class UnsilenceRule(Body):
    """A kind of alert, or those about one subject, whose silence ends."""

    alert: _Rule
    subject: _Subject = None


class Unsilenced(Shape):
    """How many silences have ended."""

    alert: str
    subject: str | None
    ended: int
    silenced_until: datetime | None
    """Until when the subject stays silent because its whole kind is silenced."""
    sentence: str = Field(examples=["people are notified again."])


_ALERTS: Keyset[dict[str, Any]] = Keyset("alerts", (int,), lambda row: (row["alert_id"],))


@router.get("")
def list_alerts(
    database: Database,
    _: Reader,
    page: Annotated[Page, Depends(_ALERTS)],
    past: Annotated[bool, Query(description="Include those that are over.")] = False,
) -> Alerts:
    """Alerts, the newest first. One that ends or is acknowledged between two pages keeps its place."""
    with database.connect() as connection:
        rows = alerts.listed(connection, page.at_most, with_past=past, by_id=True, after=page.after_id)
    shown, following = page.cut(rows)
    return Alerts(alerts=[ListedAlert(**row) for row in shown], next=following)


@router.get("/{alert_id:int}")
def show_alert(database: Database, caller: Reader, alert_id: Id) -> WholeAlert:
    """Everything about one alert, and where the runbook says what to do."""
    with database.connect() as connection:
        alert = alerts.find(connection, alert_id)
    if not caller.token.allows(Scope.OPERATE):
        alert["messages"] = None
    return WholeAlert(**alert, runbook=alerts.runbook_section(alert["rule"]))


@router.post("/acknowledge")
def acknowledge(database: Database, caller: Operator, body: Ids) -> Acknowledged:
    """Acknowledge open alerts: somebody looks after them, so they are not repeated. All of them must be open.

    An alert keeps the name of the first person who acknowledged it.
    """
    with database.begin() as connection:
        acknowledged = alerts.acknowledge(connection, body.ids, caller.token.name)
        for alert_id in body.ids:
            if alert_id not in acknowledged:
                raise UnknownAlert(f"there is no open alert {alert_id}. Nothing has changed.")
    return Acknowledged(acknowledged=sorted(acknowledged))


@router.post("/silence")
def silence(database: Database, caller: Operator, body: SilenceRule) -> Silenced:
    """Silence a kind of alert for some hours."""
    with database.begin() as connection:
        until = alerts.silence(connection, body.alert, body.subject, 3600 * body.hours, caller.token.name, body.reason)
        open_subjects = alerts.open_subjects(connection, body.alert)
    return Silenced(
        alert=body.alert,
        subject=body.subject,
        until=until,
        is_open=body.subject in open_subjects if body.subject else bool(open_subjects),
        open_subjects=open_subjects,
    )


@router.post("/unsilence")
def unsilence(database: Database, _: Operator, body: UnsilenceRule) -> Unsilenced:
    """End the silences of a kind of alert, or only those about one subject."""
    with database.begin() as connection:
        done = alerts.end_silences(connection, body.alert, body.subject)
    return Unsilenced(
        alert=body.alert,
        subject=body.subject,
        ended=done.ended,
        silenced_until=done.silenced_until,
        sentence=f"{done.words}.",
    )
