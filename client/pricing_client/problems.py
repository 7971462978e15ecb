"""The errors of requests, in the words of the API's problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx


class ApiError(Exception):
    """The API refused a request, or could not answer it. The message is the problem's `detail`.

    `kind` is the stable name of the problem, such as `unknown-symbol`; the server's log has the request under
    `request_id`. `retry_after` is how many seconds to wait, if that is known. Without an answer `status` is None.
    """

    def __init__(
        self,
        detail: str,
        status: int | None,
        kind: str,
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.request_id, self.retry_after = status, kind, request_id, retry_after


class NotAllowed(ApiError):
    """The token is missing, unknown, or does not allow this (401, 403)."""


class NotFound(ApiError):
    """The request names something unknown: a symbol, a data type, a commodity, a path (404)."""


class RequestRefused(ApiError):
    """The request, or a value of it, cannot be accepted (other 4xx)."""


class TooMuch(ApiError):
    """A cap is reached, and waiting did not help (429)."""


class Unavailable(ApiError):
    """The API or its database does not answer, even after several attempts (5xx, lost connections)."""


class HistoryWarning(UserWarning):
    """Adjusted values may be wrong: a step of the price looks like an unknown split."""


@contextmanager
def understood(response: httpx.Response) -> Iterator[None]:
    """Raise ApiError if the content of a successful answer is not what this client reads."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ApiError(
            f"{response.url} answered what this client cannot read ({type(error).__name__}: {error}). Is that the "
            "address of the API, and is the client as new as the API?",
            response.status_code,
            "odd-answer",
        ) from error


def problem_of(response: httpx.Response) -> ApiError:
    """The error of an unsuccessful response, whose body must have been read."""
    try:
        content = response.json()
    except (ValueError, RecursionError):
        content = None
    problem: Mapping[str, object] = content if isinstance(content, dict) else {}
    kind = str(problem.get("type", "")).removeprefix("urn:pricing-pipeline:") or "no-problem"
    detail = str(problem.get("detail") or f"{response.url} answered {response.status_code} and did not say why")
    request_id = str(problem.get("request_id", ""))
    error = _CLASSES.get(response.status_code, Unavailable if response.status_code >= 500 else RequestRefused)
    return error(detail, response.status_code, kind, request_id, _seconds(response.headers.get("Retry-After")))


_CLASSES: Mapping[int, type[ApiError]] = {401: NotAllowed, 403: NotAllowed, 404: NotFound, 429: TooMuch}


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isdecimal() else None
