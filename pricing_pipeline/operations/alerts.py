"""Look for trouble by all rules, and tell recipients what is new, lasts, or is over.

Looking, noting and queueing the messages are one transaction: a restart neither forgets an alert nor repeats it.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pricing_pipeline.db.errors import LOCKED_PAGE, reason, statement_error
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import DatabaseError, OperationRefused, UnknownAlert, UnknownAlertRule
from pricing_pipeline.operations import recipients
from pricing_pipeline.operations.alert_rules import RULES, AlertRule
from pricing_pipeline.operations.life import LOOKS, SILENT_AFTER, SignsOfLife, last_signs
from pricing_pipeline.operations.recipients import Recipient

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_ASSETS = "assets/"
_LOG = logging.getLogger(__name__)
RUNBOOK = "docs/runbook.md"
_LONGEST_BODY = 18_000
"""Characters of a message as JSON. More alerts than fit are told in several: nothing that is told is cut off."""
BROKEN = AlertRule("rule_fails", "P1", lasts_seconds=60)
"""Raised for a rule whose query fails, so its trouble would go unnoticed. A single failure may be a lock."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Trouble to report: new, repeated, with news, or over. `since` is UTC."""

    alert_id: int
    rule: str
    subject: str
    severity: str
    says: str
    since: datetime
    is_over: bool
    is_repeated: bool
    has_news: bool = False
    place: str | None = None
    """The page of the Dagster UI that it is about, as a path."""


@dataclass(frozen=True, slots=True)
class Concern:
    """An open alert about a data type or a provider of it. `since` is UTC."""

    alert_id: int
    rule: str
    subject: str
    severity: str
    says: str
    since: datetime
    acknowledged_by: str | None


def look(
    engine: Engine,
    rules: Sequence[AlertRule] = RULES,
    *,
    ui_url: str | None = None,
    asset_prefix: str | None = None,
    is_noted: bool = False,
    advance: Callable[[], None] = lambda: None,
) -> int:
    """Look for trouble once, and queue messages about it; returns how many. Nothing, while another session looks.

    Messages link to the Dagster UI when people open it at `ui_url`, where our assets may have a prefix. It calls
    `advance` before each rule, and notes the look if it `is_noted`. Raises DatabaseError if that other session does
    not look.
    """
    with engine.begin() as connection:
        if not call_sql(connection, "take_turn", "look_for_alerts").scalar_one():
            _require_other_looks(connection)
            return 0
        # A slow rule must not delay the others.
        connection.execute(query("session.limit"), {"limit": "5s"})
        seen, failed = _sightings(connection, rules, advance)
        call_sql(connection, "note_alerts", failed, json.dumps(seen))
        told = _queue_messages(connection, ui_url, asset_prefix)
        if is_noted:
            call_sql(connection, "note_life", "look_for_alerts", 0)
        return told


def keep_looking(
    engine: Engine,
    stop: threading.Event,
    *,
    every_seconds: float = 15.0,
    ui_url: str | None = None,
    asset_prefix: str | None = None,
    signs: SignsOfLife | None = None,
) -> None:
    """Look for trouble until `stop` is set. While the database is away there is nothing to look at."""
    signs = signs or SignsOfLife()

    def advance() -> None:
        signs.advance(LOOKS)

    while not stop.is_set():
        advance()
        try:
            look(engine, ui_url=ui_url, asset_prefix=asset_prefix, is_noted=True, advance=advance)
            with engine.connect() as connection:
                signs.nobody_told = connection.execute(query("alerts.nobody_told_now")).scalar_one_or_none() or ""
            signs.answered(LOOKS)
        except (DatabaseError, statement_error()) as error:
            signs.failed(LOOKS, reason(error))
            _LOG.warning("alerts are not checked while the database fails: %s", reason(error))
        advance()
        stop.wait(every_seconds)


def listed(
    connection: Connection,
    most: int | None,
    *,
    with_past: bool = False,
    by_id: bool = False,
    after: int | None = None,
) -> list[dict[str, Any]]:
    """Alerts that were raised, open ones first; times are UTC.

    `most` None: all. `by_id` is the order of pages, in which no row moves: the newest first, those of smaller ids than
    `after`.
    """
    parameters = {
        "with_past": with_past,
        "most": most,
        "by_id": by_id,
        "after_id": after,
    }
    return [dict(row) for row in connection.execute(query("alerts.list"), parameters).mappings()]


def find(connection: Connection, alert_id: int) -> dict[str, Any]:
    """Everything about an alert that was raised, its silences and the messages about it. Raises UnknownAlert."""
    found = connection.execute(query("alerts.show"), {"alert_id": alert_id}).mappings().one_or_none()
    if found is None:
        raise UnknownAlert(
            f"there is no alert {alert_id}. `alert list --past` lists them; they are kept for 90 days after "
            "they are over."
        )
    about = {"rule": found["rule"], "subject": found["subject"]}
    silences = connection.execute(query("alerts.silences"), about).mappings()
    messages = connection.execute(query("alerts.messages"), {"alert_id": alert_id}).mappings()
    return {**found, "silences": list(map(dict, silences)), "messages": list(map(dict, messages))}


def concerning(connection: Connection, data_types: Sequence[str]) -> dict[str, list[Concern]]:
    """Open alerts of P0 and P1 that concern these data types, the most urgent first, by type."""
    rows = connection.execute(query("alerts.concerning"), {"data_types": list(data_types)}).mappings()
    concerns: dict[str, list[Concern]] = {}
    for row in rows:
        facts = dict(row)
        concerns.setdefault(facts.pop("data_type"), []).append(Concern(**facts))
    return concerns


def runbook_section(rule: str) -> str:
    """Where the runbook says what to do about an alert of a rule."""
    return f"{RUNBOOK}#{rule}"


def ui_place(place: str | None, asset_prefix: str | None) -> str | None:
    """A page of a Dagster UI in which our assets have a prefix, by its path there without one."""
    is_asset = place is not None and asset_prefix is not None and place.startswith(_ASSETS)
    return f"{_ASSETS}{asset_prefix}/{place.removeprefix(_ASSETS)}" if place and is_asset else place


def ui_link(ui_url: str | None, place: str | None) -> str | None:
    """The address of a page of the Dagster UI; None if the page or the address of the UI is unknown."""
    return f"{ui_url.rstrip('/')}/{place}" if ui_url and place else None


def acknowledge(connection: Connection, ids: Sequence[int], login: str) -> list[int]:
    """Acknowledge open alerts, which are then not repeated; returns their ids.

    An alert keeps the name of the first person who acknowledged it.
    """
    parameters = {"ids": list(ids), "login": login}
    return list(connection.execute(query("alerts.acknowledge"), parameters).scalars())


def silence(
    connection: Connection, rule: str, subject: str | None, seconds: float, login: str, reason: str | None
) -> datetime:
    """Tell nobody of alerts of a rule, or of those about one subject; returns until when. Raises UnknownAlertRule."""
    require_rule(rule)
    parameters = {
        "rule": rule,
        "subject": subject,
        "seconds": seconds,
        "login": login,
        "reason": reason,
    }
    until: datetime = connection.execute(query("alerts.silence"), parameters).scalar_one()
    return until


def open_subjects(connection: Connection, rule: str) -> list[str]:
    """What the open alerts of a rule are about."""
    return list(connection.execute(query("alerts.open_subjects"), {"rule": rule}).scalars())


@dataclass(frozen=True, slots=True)
class Unsilenced:
    """How many silences of a rule, or about one subject of it, a person has ended.

    `silenced_until`: the subject stays silent until then, because the whole rule is silenced (UTC).
    """

    ended: int
    silenced_until: datetime | None

    @property
    def words(self) -> str:
        """Whether recipients are told again, in a clause."""
        if self.silenced_until is not None:
            until = f"{self.silenced_until.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            return f"it stays silent until {until}: all alerts of this kind are silenced"
        return "recipients are notified again" if self.ended else "it was not silenced; nothing has changed"


def end_silences(connection: Connection, rule: str, subject: str | None = None) -> Unsilenced:
    """End the silences of a rule, or only those about one subject. Raises UnknownAlertRule."""
    require_rule(rule)
    about = {"rule": rule, "subject": subject}
    ended = int(connection.execute(query("alerts.end_silences"), about).scalar_one())
    longest = connection.execute(query("alerts.silences"), about).first()
    return Unsilenced(ended, None if longest is None else longest.until)


def require_rule(name: str) -> None:
    """Raise UnknownAlertRule, which lists the known ones, for a name that is not a rule's."""
    names = sorted(rule.name for rule in (*RULES, BROKEN))
    if name not in names:
        raise UnknownAlertRule(f"no alert is called {name!r}. There are: {', '.join(names)}.")


def _sightings(
    connection: Connection, rules: Sequence[AlertRule], advance: Callable[[], None]
) -> tuple[list[dict[str, object]], list[str]]:
    """What the rules find, and the names of those whose queries fail."""
    seen: list[dict[str, object]] = []
    failed: list[str] = []
    # What rules have found is read already when one fails, so all share a savepoint until then.
    savepoint = connection.begin_nested()
    for rule in rules:
        advance()
        try:
            rows = connection.execute(query(f"alerts.{rule.name}")).all()
        except statement_error() as error:
            savepoint.rollback()
            savepoint = connection.begin_nested()
            # Alerts that it raised before are neither seen again nor ended.
            failed.append(rule.name)
            _LOG.warning("the rule %s fails: %s", rule.name, reason(error))
            seen.append(_sighting(BROKEN, rule.name, f"The rule {rule.name} fails: {reason(error)}"))
            continue
        seen += [_sighting(rule, row.subject, row.says, getattr(row, "newest_at", None)) for row in rows]
    savepoint.commit()
    return seen, failed


def _sighting(rule: AlertRule, subject: str, says: str, newest_at: str | None = None) -> dict[str, object]:
    return {
        "rule": rule.name,
        "subject": subject,
        "severity": rule.severity,
        "says": says,
        "lasts": rule.lasts_seconds,
        "is_repeated": rule.is_repeated,
        "newest_at": newest_at,
    }


def _require_other_looks(connection: Connection) -> None:
    """One notifier at a time looks: the one that has the turn."""
    signs = last_signs(connection)
    if signs.looked_at is not None and signs.looked_at <= signs.now - SILENT_AFTER:
        raise DatabaseError(
            f"another session has the turn to check for alerts, and none has checked since "
            f"{signs.looked_at:%Y-%m-%d %H:%M} UTC. {LOCKED_PAGE}."
        )


def _queue_messages(connection: Connection, ui_url: str | None, asset_prefix: str | None) -> int:
    rows = connection.execute(query("alerts.to_tell")).mappings()
    alerts = [Alert(**{**row, "place": ui_place(row["place"], asset_prefix)}) for row in rows]
    told = 0
    for recipient in recipients.stored(connection) if alerts else ():
        concerning = [alert for alert in alerts if _concerns(alert, recipient)] if recipient.is_active else []
        for some in _messages(concerning, ui_url):
            try:
                with connection.begin_nested():
                    operation_id = recipients.send(
                        connection,
                        recipient.recipient,
                        _title(some),
                        _body(some, ui_url),
                        is_urgent=any(alert.severity == "P0" for alert in some),
                        goes_first=True,
                    )
                    ids = [alert.alert_id for alert in some]
                    connection.execute(query("alerts.note_message"), {"operation_id": operation_id, "alert_ids": ids})
                told += 1
            except OperationRefused as error:  # the others are still told
                _LOG.error("%s cannot be sent alerts: %s", recipient.recipient, error)
    return told


def _messages(alerts: Sequence[Alert], ui_url: str | None) -> Iterator[Sequence[Alert]]:
    """The alerts of each message: as many as fit."""
    some: list[Alert] = []
    for alert in alerts:
        if some and len(json.dumps(_body([*some, alert], ui_url))) > _LONGEST_BODY:
            yield some
            some = []
        some.append(alert)
    if some:
        yield some


def _concerns(alert: Alert, recipient: Recipient) -> bool:
    return recipient.least_severity is not None and alert.severity <= recipient.least_severity


def _title(alerts: Sequence[Alert]) -> str:
    first, *others = alerts
    state = "over" if first.is_over else first.severity
    more = f", and {len(others)} more" if others else ""
    return f"[{state}] {first.rule.replace('_', ' ')}: {first.subject}{more}"


def _body(alerts: Sequence[Alert], ui_url: str | None) -> str:
    return "\n\n".join(_paragraph(alert, ui_url) for alert in alerts)


def _paragraph(alert: Alert, ui_url: str | None) -> str:
    since = f"{alert.since:%Y-%m-%d %H:%M} UTC"
    if alert.is_over:
        return f"Over: {alert.rule} of {alert.subject}, which began at {since}: {alert.says}"
    lasting = " That is new." if alert.has_news else " It still lasts." if alert.is_repeated else ""
    link = ui_link(ui_url, alert.place)
    shown = f"\nDagster shows it: {link}" if link else ""
    return (
        f"{alert.severity}, since {since}: {alert.says}{lasting}\n"
        f"What to do: {RUNBOOK}, section {alert.rule}. Acknowledge it: "
        f"pricing-pipeline alert acknowledge {alert.alert_id}"
        f"{shown}"
    )
