"""Sending requests: with the token, and again when the API is away or says to wait."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

import httpx

from pricing_client.problems import ApiError, TooMuch, Unavailable, problem_of, understood

T = TypeVar("T")

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_TOKEN = re.compile("[!-~]+")
"""What a header can have."""


class Transport:
    """Sends a request again, for up to `patience` seconds, after 429, 5xx and a lost connection. Every request of the
    client may be sent more than once.

    Raises ValueError if the URL is invalid or contains a password, or if the token does not fit into a header.
    """

    def __init__(
        self,
        url: str,
        token: str,
        timeout: float,
        patience: float,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"the url {url!r} begins with neither http:// nor https://")
        try:
            has_user = bool(httpx.URL(url).userinfo)
        except httpx.InvalidURL as error:
            raise ValueError(f"this is not a valid URL: {error}") from None
        if has_user:  # it would replace the token, and appear in the message of each error
            raise ValueError("the url has a user or a password before its host. Leave it out: the token says who asks")
        token = token.strip()  # a file ends with a line end
        if not _TOKEN.fullmatch(token):
            raise ValueError("the token is empty, or has signs in it that no token of `token add` has")
        self._client = httpx.Client(
            base_url=url.rstrip("/") + "/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout,
            follow_redirects=False,
        )
        self.patience, self._pause = patience, pause

    def ask(
        self,
        read: Callable[[Any], T],
        method: str,
        path: str,
        params: Mapping[str, Any],
        content: object = None,
    ) -> T:
        """What `read` makes of the JSON of the answer. Bytes are sent as they are, other content as JSON.

        Raises ApiError, also when `read` fails.
        """
        began = time.monotonic()
        attempt = 0
        while True:
            try:
                return self._ask_once(read, method, path, params, content)
            except (TooMuch, Unavailable) as error:
                seconds = wait_seconds(error.retry_after, attempt)
                if time.monotonic() + seconds > began + self.patience:
                    raise
                self._pause(seconds)
            attempt += 1

    def _ask_once(
        self, read: Callable[[Any], T], method: str, path: str, params: Mapping[str, Any], content: object
    ) -> T:
        body: dict[str, Any] = {"content": content} if isinstance(content, bytes) else {"json": content}
        try:
            response = self._client.request(method, path, params=without_none(params), **body)
        except httpx.RequestError as error:
            raise lost(error, str(self._client.base_url)) from error
        if not response.is_success:
            raise problem_of(response)
        with understood(response):
            try:
                answer = response.json(parse_float=Decimal)
            except ValueError:
                words = f"{response.url} answered no JSON. Is that the address of the API?"
                raise ApiError(words, response.status_code, "no-json") from None
            return read(answer)

    @property
    def client(self) -> httpx.Client:
        """The httpx client, for streams."""
        return self._client


def without_none(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that have a value."""
    return {name: value for name, value in params.items() if value is not None}


def lost(error: httpx.RequestError, url: str) -> Unavailable:
    """A connection that failed, was lost, or brought something that cannot be unpacked."""
    return Unavailable(f"{url} does not answer: {error or type(error).__name__}", None, "no-answer")


def wait_seconds(retry_after: float | None, failures: int) -> float:
    """Seconds to wait after this many failures: as told, otherwise longer each time, with a random share."""
    if retry_after is not None:
        return retry_after
    share = random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
    return share * min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** min(failures, 10))
