"""The last resort: a message that the pricing database is away, sent without it to an address of the environment.

Everything else that people are told is queued in the database. While the database does not do what the notifier asks,
nobody would be told that it does not.
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
        raise SettingsError(f"PRICING_LAST_RESORT_URL is no address: it begins with one of {known}.")
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
            f"PRICING_LAST_RESORT_SECRET must have {_SHORTEST_SECRET} characters or more: whoever sees a message could "
            "find a short one by trying. `openssl rand -hex 32` prints one."
        )
    return secret


@dataclass(frozen=True, slots=True)
class _Outage:
    """What the state file says: since when the database is away, whether that was told, and when it was back."""

    since: str
    is_told: bool = False
    over_at: str | None = None


class Watch:
    """Tells of each outage of the database once, and of its end once, also over restarts of the notifier.

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
        self._first_pause = self._pause = first_pause
        self._began_at = signs.answered_at
        self._next_attempt = 0.0
        self._woke_at = -math.inf
        self._outage = self._read()

    def keep_watching(self, stop: threading.Event, *, every_seconds: float = 1.0) -> None:
        """Watch until `stop` is set."""
        while True:
            slept_from = time.monotonic()
            if stop.wait(every_seconds):
                return
            if time.monotonic() - slept_from > every_seconds + _OVERSLEPT:
                # The process itself stood still, and asked nothing meanwhile.
                self._woke_at = time.monotonic()
            self.look()

    def look(self) -> None:
        """Note an outage or its end, and tell what is not told yet."""
        answered_at = self._signs.answered_at
        silent = time.monotonic() - max(answered_at, self._woke_at)
        outage = self._outage
        if silent >= self._away_after and (outage is None or outage.over_at is not None):
            since = datetime.now(UTC) - timedelta(seconds=silent)
            self._keep(_Outage(since.isoformat(timespec="seconds")))
        elif (
            outage is not None
            and outage.over_at is None
            and answered_at > self._began_at
            and silent < self._away_after
        ):
            self._keep(replace(outage, over_at=datetime.now(UTC).isoformat(timespec="seconds")))
        self._began_at = max(self._began_at, answered_at)
        self._tell()

    def _tell(self) -> None:
        outage = self._outage
        if (
            outage is None
            or time.monotonic() < self._next_attempt
            or (outage.over_at is None and outage.is_told)
        ):
            return
        try:
            self._last_resort.send(*self._message(outage))
        except OperationFailed as error:
            pause = max(self._pause, error.retry_after or 0)
            _LOG.error(
                "%s is not told of the database, tried again in %.0f s: %s",
                self._last_resort.place,
                pause,
                error,
            )
            self._next_attempt = time.monotonic() + pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            return
        self._keep(replace(outage, is_told=True) if outage.over_at is None else None)

    def _message(self, outage: _Outage) -> tuple[str, str, str]:
        """Title, body and key."""
        host = socket.gethostname()
        key = f"pricing-pipeline {host} {self._database} {outage.since}"
        if outage.over_at is not None:
            return (
                "[over] The pricing database answers again",
                f"The pricing database {self._database} answers {host} again. It was away from {outage.since} to "
                f"{outage.over_at}. Messages that waited are being sent.",
                f"{key} over",
            )
        words = f"It said: {self._signs.last_error}" if self._signs.last_error else "It says nothing."
        return (
            "[P0] The pricing database does not answer",
            f"The pricing database {self._database} has not done what {host} asked since {outage.since}: nobody is "
            f"told of other trouble, and prices are not refreshed if it does nothing else either. {words}\n"
            "What to do: docs/runbook.md, section The database is away. You are told when it answers again.",
            key,
        )

    def _keep(self, outage: _Outage | None) -> None:
        self._outage = outage
        self._pause, self._next_attempt = self._first_pause, 0.0
        try:
            if outage is None:
                self._path.unlink(missing_ok=True)
            else:
                replace_own(self._path, json.dumps(asdict(outage)), durable=True)
        except OSError as error:
            _LOG.warning(
                "%s cannot be written, so an outage may be told twice: %s", self._path, error.strerror
            )

    def _read(self) -> _Outage | None:
        try:
            return _Outage(**json.loads(read_private(self._path)))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, NotPrivate) as error:
            _LOG.warning("%s is not used: %s", self._path, error)
            return None
