"""The last resort: an address from the environment that is told when no recipient can be reached.

Everything else that people are told is queued in the database, and sent to recipients. So two kinds of trouble are told
here: the database does not do what the notifier asks, or none of the recipients can be reached.
"""

from __future__ import annotations

import json
import logging
import math
import socket
import threading
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import NAMESPACE_URL, uuid4, uuid5

from pydantic import SecretStr

from pricing_pipeline.errors import OperationFailed, SettingsError
from pricing_pipeline.local_files.own_files import NotPrivate, read_private, replace_own
from pricing_pipeline.operations.channels import check_address, send_message, send_webhook, shown_address
from pricing_pipeline.operations.channels.messages import CHAT, E_MAIL, SMS
from pricing_pipeline.operations.channels.posting import PRIVATE_ALLOWED
from pricing_pipeline.operations.life import SignsOfLife
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.settings import Settings

_LOG = logging.getLogger(__name__)
AWAY_AFTER = 60.0
"""Seconds without an answer of the database before somebody is told."""
_FIRST_PAUSE, _LONGEST_PAUSE = 300.0, 2400.0
"""Seconds between attempts, as between those of a webhook; the last pause is repeated while the outage lasts."""
_TIME_LIMIT = 30
_SHORTEST_SECRET = 16
_OVERSLEPT = 3.0
"""Seconds by which a thread wakes too late if the process was frozen: stopped, or its whole machine was."""


@dataclass(frozen=True, slots=True)
class LastResort:
    """Where it is told: a webhook, or an address of e-mail, chat or SMS."""

    url: SecretStr
    secret: SecretStr | None
    allow_private: bool

    @property
    def place(self) -> str:
        """What of the address may be shown."""
        return shown_address(self.url)

    def send(self, title: str, body: str, key: str) -> None:
        """Send a message once; a repeat with the same key is recognised by the receiver. Raises OperationFailed."""
        operation = Operation(
            id=0,
            operation_type="webhook" if self.secret is not None else "message",
            payload={"recipient": "last resort", "title": title, "body": body},
            idempotency_key=uuid5(NAMESPACE_URL, key),
            attempt=1,
            max_attempts=1,
            time_limit_seconds=_TIME_LIMIT,
            enqueued_at=datetime.now(UTC),
            claim_token=uuid4(),
        )
        if self.secret is not None:
            send_webhook(operation, self.url, self.secret, allow_private=self.allow_private)
        else:
            send_message(operation, self.url, allow_private=self.allow_private)


def from_settings(settings: Settings) -> LastResort | None:
    """The last resort of the settings; None without one. Raises SettingsError for an address that cannot be one."""
    if settings.last_resort_url is None:
        return None
    url = settings.last_resort_url.get_secret_value()
    scheme = url.partition("://")[0].lower()
    channels = {"email": E_MAIL, "chat": CHAT, "sms": SMS, "webhook": ("https", "http")}
    channel = next((name for name, schemes in channels.items() if scheme in schemes), None)
    if channel is None:
        known = ", ".join(f"{scheme}://" for scheme in ("https", *E_MAIL, *CHAT, *SMS))
        raise SettingsError(f"PRICING_LAST_RESORT_URL is not an address: it begins with one of {known}.")
    try:
        check_address(channel, url, allow_private=settings.last_resort_allow_private)
    except OperationFailed as error:
        why = str(error).replace(PRIVATE_ALLOWED, "PRICING_LAST_RESORT_ALLOW_PRIVATE=true allows it")
        raise SettingsError(
            f"PRICING_LAST_RESORT_URL cannot be used: {why}. docs/alerts.md lists the addresses that can."
        ) from None
    secret = _signing_secret(settings) if channel == "webhook" else None
    return LastResort(settings.last_resort_url, secret, settings.last_resort_allow_private)


def _signing_secret(settings: Settings) -> SecretStr:
    secret = settings.last_resort_secret
    if secret is None:
        raise SettingsError(
            "PRICING_LAST_RESORT_URL is a webhook, and PRICING_LAST_RESORT_SECRET, which signs what it gets, is not "
            "set. `openssl rand -hex 32` prints one; the receiver needs it, too."
        )
    if len(secret.get_secret_value()) < _SHORTEST_SECRET:
        raise SettingsError(
            f"PRICING_LAST_RESORT_SECRET must have {_SHORTEST_SECRET} characters or more: anyone who sees a message "
            "could find a short one by trying. `openssl rand -hex 32` prints one."
        )
    return secret


_DATABASE, _RECIPIENTS = "database", "recipients"
"""What may be in trouble."""


@dataclass(frozen=True, slots=True)
class _Trouble:
    """The state file: when the trouble began, what it is, whether it was told, and when it ended."""

    since: str
    says: str = ""
    is_told: bool = False
    over_at: str | None = None


class Watch:
    """Reports each trouble once and its end once, also over restarts of the notifier.

    What it knows is in a file of the home, which only its owner may read.
    """

    def __init__(
        self,
        last_resort: LastResort,
        signs: SignsOfLife,
        home: Path,
        database: str,
        *,
        away_after: float = AWAY_AFTER,
        first_pause: float = _FIRST_PAUSE,
    ) -> None:
        self._last_resort = last_resort
        self._signs = signs
        self._path = home / "last-resort.json"
        self._database = database
        self._away_after = away_after
        self._first_pause = first_pause
        self._began_at = signs.answered_at
        self._pauses: dict[str, float] = {}
        self._next_attempts: dict[str, float] = {}
        self._woke_at = -math.inf
        self._troubles = self._read()

    def keep_watching(self, stop: threading.Event, *, every_seconds: float = 1.0) -> None:
        """Watch until `stop` is set."""
        while True:
            slept_from = time.monotonic()
            if stop.wait(every_seconds):
                return
            if time.monotonic() - slept_from > every_seconds + _OVERSLEPT:
                # The process itself stood still, and did not look meanwhile.
                self._woke_at = time.monotonic()
            self.look()

    def look(self) -> None:
        """Note trouble or its end, and tell what is not told yet."""
        answered_at = self._signs.answered_at
        silent = time.monotonic() - max(answered_at, self._woke_at)
        is_away = silent >= self._away_after
        words = f"It said: {self._signs.last_error}" if self._signs.last_error else "It says nothing."
        self._judge(
            _DATABASE,
            words if is_away else None,
            silent,
            is_over=answered_at > self._began_at and not is_away,
        )
        self._began_at = max(self._began_at, answered_at)
        # Until the first look nobody knows whether recipients can be reached; then trouble lasts.
        unreachable = self._signs.nobody_told
        self._judge(_RECIPIENTS, unreachable or None, 0.0, is_over=unreachable == "")
        for name in list(self._troubles):
            self._send(name)

    def _judge(self, name: str, says: str | None, for_seconds: float, *, is_over: bool) -> None:
        trouble = self._troubles.get(name)
        if says is not None and (trouble is None or trouble.over_at is not None):
            since = datetime.now(UTC) - timedelta(seconds=for_seconds)
            self._keep(name, _Trouble(since.isoformat(timespec="seconds"), says))
        elif is_over and trouble is not None and trouble.over_at is None:
            self._keep(name, replace(trouble, over_at=datetime.now(UTC).isoformat(timespec="seconds")))

    def _send(self, name: str) -> None:
        trouble = self._troubles[name]
        if time.monotonic() < self._next_attempts[name] or (trouble.over_at is None and trouble.is_told):
            return
        try:
            self._last_resort.send(*self._message(name, trouble))
        except OperationFailed as error:
            pause = max(self._pauses[name], error.retry_after or 0)
            _LOG.error(
                "%s could not be sent the %s, trying again in %.0f s: %s",
                self._last_resort.place,
                name,
                pause,
                error,
            )
            self._next_attempts[name] = time.monotonic() + pause
            self._pauses[name] = min(2 * self._pauses[name], _LONGEST_PAUSE)
            return
        self._keep(name, replace(trouble, is_told=True) if trouble.over_at is None else None)

    def _message(self, name: str, trouble: _Trouble) -> tuple[str, str, str]:
        """Title, body and key."""
        host = socket.gethostname()
        key = f"pricing-pipeline {host} {self._database} {name} {trouble.since}"
        lasted = f"from {trouble.since} to {trouble.over_at}"
        if name == _RECIPIENTS:
            if trouble.over_at is not None:
                return (
                    "[over] Recipients can be reached again",
                    f"A recipient of alerts of {host} can be reached again. None could be {lasted}. Messages that "
                    "waited are being sent. `pricing-pipeline operation retry --all-failed` sends those that were "
                    "given up.",
                    f"{key} over",
                )
            return (
                "[P0] No recipient can be reached",
                f"{trouble.says} {host} says so since {trouble.since}.\n"
                "What to do: docs/runbook.md, section nobody_told. "
                "A message follows when a recipient can be reached again.",
                key,
            )
        if trouble.over_at is not None:
            return (
                "[over] The pricing database answers again",
                f"The pricing database {self._database} answers {host} again. It was away {lasted}. Messages that "
                "waited are being sent.",
                f"{key} over",
            )
        return (
            "[P0] The pricing database does not answer",
            f"The pricing database {self._database} has not done what {host} asked since {trouble.since}: no other "
            f"trouble is reported, and prices are not refreshed if it does nothing else either. {trouble.says}\n"
            "What to do: docs/runbook.md, section The database is away. A message follows when it answers again.",
            key,
        )

    def _keep(self, name: str, trouble: _Trouble | None) -> None:
        self._pauses[name], self._next_attempts[name] = self._first_pause, 0.0
        if trouble is None:
            self._troubles.pop(name, None)
        else:
            self._troubles[name] = trouble
        try:
            if not self._troubles:
                self._path.unlink(missing_ok=True)
            else:
                content = {each: asdict(known) for each, known in self._troubles.items()}
                replace_own(self._path, json.dumps(content), durable=True)
        except OSError as error:
            _LOG.warning("%s cannot be written, so trouble may be reported twice: %s", self._path, error.strerror)

    def _read(self) -> dict[str, _Trouble]:
        try:
            content = json.loads(read_private(self._path))
            found = {name: _Trouble(**content[name]) for name in (_DATABASE, _RECIPIENTS) if name in content}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, NotPrivate) as error:
            _LOG.warning("%s is not used: %s", self._path, error)
            return {}
        for name in found:
            self._pauses[name], self._next_attempts[name] = self._first_pause, 0.0
        return found
