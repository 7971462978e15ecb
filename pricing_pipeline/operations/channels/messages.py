"""Messages to people by e-mail, chat and SMS. An address is a URL as apprise reads it: `slack://...`.

Of apprise's services those are allowed whose servers no user can name; e-mail, where one can, goes through mail.py.
Options are allowed one by one, because others read files, turn off TLS checks or fetch something.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline.operations.channels.literal import literal
from pricing_pipeline.operations.channels.mail import Mailbox, send_mail
from pricing_pipeline.operations.channels.posting import seconds_for
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.providers.transport import Resolver

if TYPE_CHECKING:
    from apprise.plugins.base import NotifyBase

E_MAIL = ("mailto", "mailtos")
CHAT = ("discord", "gchat", "slack", "tgram", "wxteams")
SMS = ("clicksend", "msgbird", "plivo", "sinch", "sns", "twilio", "vonage")
SCHEMES = (*E_MAIL, *CHAT, *SMS)
OPTIONS = frozenset({"to", "from", "name", "reply", "smtp", "mode", "thread", "topic"})

_TRY_AGAIN = (408, 425, 429)

# Logs of apprise contain addresses, and those of its HTTP library paths with tokens. Nothing of them reaches our logs;
# the result of a message has what is needed.
_LOG = logging.getLogger("apprise")
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False
_LOG.setLevel(logging.WARNING)
logging.getLogger("urllib3").setLevel(logging.WARNING)


def send_message(
    operation: Operation,
    address: SecretStr,
    *,
    allow_private: bool = False,
    seconds: float | None = None,
    resolve: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> dict[str, object]:
    """Send title and body of an operation to one receiver; returns who was asked. Raises OperationFailed.

    A repeat is recognised by its Message-ID in e-mail, elsewhere by the sign `#` with eight digits after the title. A
    text that is too long for a service is cut off. `allow_private`, `resolve` and `ssl_context` are for e-mail, the
    only one whose server is named by users.
    """
    seconds = seconds_for(operation) if seconds is None else seconds
    title, body = str(operation.payload["title"]), str(operation.payload["body"])
    scheme = scheme_of(address.get_secret_value())
    service = service_of(address.get_secret_value(), seconds)
    if scheme not in E_MAIL:
        if scheme in CHAT:
            title, body = literal(title), literal(body)
        return _post(service, scheme, f"{title} #{operation.idempotency_key.hex[:8]}", body, seconds)
    return send_mail(
        operation,
        mailbox_of(service),
        title,
        body,
        allow_private=allow_private,
        seconds=seconds,
        resolve=resolve,
        ssl_context=ssl_context,
    )


def scheme_of(address: str) -> str:
    """The scheme of an address. Raises OperationFailed if it is not allowed."""
    scheme = address.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise OperationFailed(f"an address begins with one of {', '.join(SCHEMES)}", is_permanent=True)
    return scheme


def service_of(address: str, seconds: float = 30.0) -> NotifyBase:
    """apprise's service for an address of an allowed scheme. Raises OperationFailed.

    Errors do not repeat the address, because most of it is secret.
    """
    import apprise  # here, because it takes half a second and only who sends needs it
    from apprise.plugins import url_to_dict

    asset = apprise.AppriseAsset(
        app_id="pricing_pipeline",
        app_desc="pricing_pipeline",
        http_redirects=False,
        storage_mode="memory",
        service_timeout=seconds,
    )
    wrong = OperationFailed(_incomplete(scheme_of(address)), is_permanent=True)
    parts: dict[str, Any] | None = None
    with suppress(Exception):  # raising in an except block would keep the error, which quotes
        parts = url_to_dict(address)  # type: ignore[no-untyped-call]
    if parts is None:
        raise wrong
    if parts["qsd"].keys() - OPTIONS or any(parts.get(f"qsd{sign}") for sign in "+-:"):
        allowed = ", ".join(sorted(OPTIONS))
        raise OperationFailed(f"the address has options that are not allowed; allowed are {allowed}", is_permanent=True)
    service = None
    with suppress(Exception):
        service = apprise.Apprise.instantiate({**parts, "overflow": "truncate"}, asset=asset, suppress_exceptions=False)
    if service is None:
        raise wrong
    if len(service) != 1:
        raise OperationFailed("an address names one receiver: a repeat would reach the others twice", is_permanent=True)
    return service


def _incomplete(scheme: str) -> str:
    what = f"the address {scheme}://... is not complete, or not valid"
    return f"{what}: without a user it needs from=ADDRESS, too" if scheme in E_MAIL else what


def mailbox_of(service: Any) -> Mailbox:
    """The mailbox that apprise reads from an address of e-mail. Raises OperationFailed."""
    if service.smtp_host in ("", None) or not service.targets:
        raise OperationFailed("the address names no mail server or no recipient", is_permanent=True)
    name, address = service.from_addr
    return Mailbox(
        host=service.smtp_host,
        port=int(service.port),
        security=service.secure_mode,
        user=service.user,
        password=service.password,
        sender=(name or "", address),
        recipient=service.targets[0][1],
        reply_to=tuple(sorted(service.reply_to)),
    )


def _post(service: NotifyBase, scheme: str, title: str, body: str, seconds: float) -> dict[str, object]:
    import apprise

    # Its HTTP library would replace a service's token by a ~/.netrc entry for the host, or for all hosts (`default`).
    os.environ["NETRC"] = os.devnull
    sender = apprise.Apprise(asset=service.asset)
    sender.add(service)
    with sender.notify(title=title, body=body, body_format="text") as result:
        if result:
            return {"to": scheme}
        is_late = bool(result.timeout_count)
        logged = " ".join(entry.message for entry in result.logs())
    if is_late:
        raise OperationFailed(f"{scheme} did not take the message within {seconds:g} s")
    # apprise tells the HTTP status in its log alone.
    statuses = [int(status) for status in re.findall(r"\berror=(\d{3})\b", logged)]
    if not statuses:
        raise OperationFailed(f"{scheme} cannot be reached, or did not take the message")
    status = statuses[-1]
    is_permanent = status < 500 and status not in _TRY_AGAIN
    raise OperationFailed(f"{scheme} refused with HTTP status {status}", is_permanent=is_permanent)
