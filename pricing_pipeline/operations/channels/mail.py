"""E-mail by SMTP. apprise reads the address (messages.py); smtplib sends, because apprise sets no Message-ID of ours.

The Message-ID comes from the operation's idempotency key, so mail programs recognise a repeat.
"""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime, formataddr

import httpcore

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline.operations.channels.posting import refuse_private, tls_context
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.providers.base import safe_words
from pricing_pipeline.providers.transport import (
    MAX_HEAD_BYTES,
    AddressRefused,
    BoundedTransport,
    DeadlinePassed,
    Resolver,
)


@dataclass(frozen=True, slots=True)
class Mailbox:
    """Where an e-mail goes and by which server. `security` is `ssl`, `starttls` or `insecure`."""

    host: str
    port: int
    security: str
    user: str | None
    password: str | None
    sender: tuple[str, str]
    recipient: str
    reply_to: tuple[str, ...] = ()


class _Conversation(smtplib.SMTP):
    """SMTP on a connection that is open already, so that the host is not resolved a second time."""

    def __init__(self, host: str, port: int, opened: socket.socket) -> None:
        self._opened = opened
        # Without a name of our own, smtplib asks the DNS for one, for as long as that takes.
        own_name = socket.gethostname()
        super().__init__(host, port, own_name if "." in own_name else "[127.0.0.1]")

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return self._opened


def send_mail(
    operation: Operation,
    mailbox: Mailbox,
    title: str,
    body: str,
    *,
    allow_private: bool,
    seconds: float,
    resolve: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> dict[str, object]:
    """Send one message to one recipient; returns the server's name. Raises OperationFailed."""
    check_mailbox(mailbox, allow_private=allow_private)
    message = None
    with suppress(ValueError):  # raising in an except block would keep the error, which quotes
        message = _message(operation, mailbox, title, body)
    if message is None:
        raise OperationFailed("the e-mail has letters or addresses that cannot be sent", is_permanent=True)
    context = ssl_context or tls_context()
    deadline = time.monotonic() + seconds
    transport = BoundedTransport(resolve=resolve, allow_private=allow_private)
    try:
        with closing(transport), transport.exchange(seconds=seconds, max_bytes=MAX_HEAD_BYTES):
            connected = transport.connect(mailbox.host, mailbox.port)
        with closing(connected), _cut_off_at(deadline, connected):
            _converse(connected, mailbox, context, message)
    except (
        httpcore.NetworkError,
        httpcore.TimeoutException,
        DeadlinePassed,
        AddressRefused,
        smtplib.SMTPException,
        OSError,
        ValueError,
    ) as fault:
        is_late = time.monotonic() >= deadline
        error = _late(mailbox, seconds) if is_late else _broken(mailbox, fault)
    else:
        return {"to": mailbox.host}
    # Outside the except block, so that no traceback leads to the password.
    raise error


def check_mailbox(mailbox: Mailbox, *, allow_private: bool) -> None:
    """Refuse what must not be sent to. Raises OperationFailed."""
    if mailbox.password and mailbox.security == "insecure":
        raise OperationFailed("a password is sent only over TLS: begin with mailtos://", is_permanent=True)
    if not 0 < mailbox.port < 65536:
        raise OperationFailed(f"{mailbox.port} is no port of a mail server", is_permanent=True)
    refuse_private(mailbox.host, allow_private=allow_private)


def _message(operation: Operation, mailbox: Mailbox, title: str, body: str) -> EmailMessage:
    domain = mailbox.sender[1].rpartition("@")[2]
    message = EmailMessage()
    message["From"] = formataddr(mailbox.sender)
    message["To"] = mailbox.recipient
    message["Subject"] = " ".join(title.split())
    message["Date"] = format_datetime(operation.enqueued_at)
    message["Message-ID"] = f"<{operation.idempotency_key}@{domain}>"
    message["Auto-Submitted"] = "auto-generated"
    if mailbox.reply_to:
        message["Reply-To"] = ", ".join(mailbox.reply_to)
    message.set_content(body)
    return message


def _converse(connected: socket.socket, mailbox: Mailbox, context: ssl.SSLContext, message: EmailMessage) -> None:
    if mailbox.security == "ssl":
        connected = context.wrap_socket(connected, server_hostname=mailbox.host)
    with closing(_Conversation(mailbox.host, mailbox.port, connected)) as smtp:
        if mailbox.security == "starttls":
            smtp.starttls(context=context)
        if mailbox.user and mailbox.password:
            smtp.login(mailbox.user, mailbox.password)
        smtp.send_message(message, mailbox.sender[1], [mailbox.recipient])
        # The message has been sent. A failure of QUIT must not send it again.
        with suppress(OSError, smtplib.SMTPException):
            smtp.quit()


@contextmanager
def _cut_off_at(deadline: float, connected: socket.socket) -> Iterator[None]:
    """Cut the connection off at a time: a socket has a time limit for each read, but none for all of them."""
    seconds = max(deadline - time.monotonic(), 0.0)
    connected.settimeout(seconds + 1)
    # TLS takes the socket's descriptor away; a copy of it still reaches the connection.
    with closing(connected.dup()) as same:

        def shut() -> None:
            with suppress(OSError):
                same.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(seconds, shut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _late(mailbox: Mailbox, seconds: float) -> OperationFailed:
    return OperationFailed(f"the mail server {mailbox.host} did not take the message within {seconds:g} s")


def _broken(mailbox: Mailbox, fault: Exception) -> OperationFailed:
    """The failure in our words: a server's text may repeat the password. Only its codes are quoted."""
    name = f"the mail server {mailbox.host}"
    match fault:
        case smtplib.SMTPRecipientsRefused():
            code, words = next(iter(fault.recipients.values()))
            return _answered(f"{name} refused the recipient", code, words)
        case smtplib.SMTPAuthenticationError():
            return _answered(f"{name} refused user or password", fault.smtp_code, fault.smtp_error)
        case smtplib.SMTPResponseException():
            return _answered(f"{name} refused the message", fault.smtp_code, fault.smtp_error)
        case smtplib.SMTPNotSupportedError():
            return OperationFailed(f"{name} offers no TLS, no such login, or no such address")
        case UnicodeError():
            return OperationFailed("user or password has letters that SMTP cannot carry", is_permanent=True)
        case AddressRefused():
            return OperationFailed(f"{name} is not asked: {fault}", is_permanent=True)
        case ssl.SSLCertVerificationError():
            return OperationFailed(f"{name} has no valid certificate: {safe_words(fault.verify_message)}")
        case httpcore.ConnectError():
            return OperationFailed(f"{name} cannot be reached: {safe_words(str(fault))}")
        case _:
            return OperationFailed(f"{name} closed the connection")


def _answered(what: str, code: int, words: bytes | str) -> OperationFailed:
    text = words.decode("latin-1") if isinstance(words, bytes) else words
    detail = re.match(r"[245]\.\d{1,3}\.\d{1,3}(?!\d)", text)
    codes = f"{code} {detail[0]}" if detail else str(code)
    return OperationFailed(f"{what} (SMTP {codes})", is_permanent=500 <= code < 600)
