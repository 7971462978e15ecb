"""Addresses of recipients: checked before they are stored, and shown without their secrets."""

from __future__ import annotations

from pydantic import SecretStr

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline.operations.channels.mail import check_mailbox
from pricing_pipeline.operations.channels.messages import CHAT, E_MAIL, SMS, mailbox_of, scheme_of, service_of
from pricing_pipeline.operations.channels.posting import checked_url, origin_of

_SCHEMES = {"email": E_MAIL, "chat": CHAT, "sms": SMS}


def check_address(channel: str, url: str, *, allow_private: bool) -> None:
    """Refuse an address that the channel (`email`, `chat`, `sms` or `webhook`) could never send to.

    Nobody is asked. Raises OperationFailed, a PricingError, without repeating the address.
    """
    if channel == "webhook":
        checked_url(url, allow_private=allow_private)
        return
    if url.partition("://")[0].lower() not in _SCHEMES[channel]:
        schemes = ", ".join(f"{scheme}://" for scheme in _SCHEMES[channel])
        raise OperationFailed(f"an address of {channel} begins with one of {schemes}", is_permanent=True)
    service = service_of(url)
    if channel == "email":
        check_mailbox(mailbox_of(service), allow_private=allow_private)


def shown_address(url: SecretStr) -> str:
    """The part of an address that may be shown: a webhook's host, an e-mail's recipient, or the service."""
    text = url.get_secret_value()
    if text.startswith(("http://", "https://")):
        return origin_of(checked_url(text, allow_private=True))
    scheme = scheme_of(text)
    if scheme in E_MAIL:
        mailbox = mailbox_of(service_of(text))
        return f"{mailbox.recipient} by {mailbox.host}"
    return f"{scheme}://..."
