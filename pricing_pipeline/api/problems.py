"""Errors as `application/problem+json` (RFC 9457): what is wrong, with what, and what to do about it."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from pricing_pipeline import errors
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.db.errors import is_refusal, sentence
from pricing_pipeline.errors import PricingError

_LOG = logging.getLogger(__name__)
_MEDIA_TYPE = "application/problem+json"
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
_FEEDS = ("/v1/prices/", "/v1/history/")
_PLACES = {"query": "parameter", "path": "path", "header": "header", "body": "body"}
_WORDS = {
    "missing": "it is missing",
    "extra_forbidden": "it is not known here",
    "string_type": "write a text",
    "string_too_short": "it has fewer than {min_length} characters",
    "string_too_long": "it has more than {max_length} characters",
    "too_short": "it has {actual_length} entries, and needs {min_length} at least",
    "too_long": "it has more than {max_length} entries",
    "list_type": "write a list, as in [...]",
    "model_type": "write an object, as in {{...}}",
    "model_attributes_type": "write an object, as in {{...}}",
    "int_parsing": "write a whole number",
    "int_type": "write a whole number",
    "bool_parsing": "write true or false",
    "date_from_datetime_parsing": "write a day of the calendar, like 2013-02-28",
    "datetime_from_date_parsing": "write a time of the calendar, like 2026-11-20T15:00:00Z",
    "greater_than_equal": "it is below {ge}",
    "less_than_equal": "it is above {le}",
}
"""What is wrong, by the kind of a fault. Of other kinds pydantic's own words are told."""
_SHOWN = 5
"""How many faults of a request its problem names."""

_STATUSES: Mapping[type[PricingError], int] = {
    errors.NotKnown: 404,
    errors.CapExceeded: 429,
    errors.DatabaseError: 503,
    errors.DagsterUnreachable: 503,
    errors.FilesError: 503,
    errors.SessionsNotKnown: 503,
    errors.CredentialError: 500,
    errors.SettingsError: 500,
    errors.SupervisorError: 500,
}
"""Other errors are 422: the request is refused."""


class Problem(Shape):
    """What is wrong with a request, or why it cannot be answered now."""

    type: str = Field(examples=["urn:pricing-pipeline:unknown-symbol"])
    """Stable name of the kind of problem."""
    title: str = Field(examples=["Unknown symbol"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["no instrument is called 'XYZ'."])
    """What happened, to what, and what to do about it."""
    request_id: str = Field(examples=["0f8b1c2d3e4f5a6b"])
    """The id of the request. The server's log has it if this request was the first in an hour to fail for its cause."""
    payments: list[dict[str, str | None]] | None = None
    """Of `uncounted-payments`: each payment between the days that a total return cannot count, by ex_on, kind, amount,
    currency, into (the currency of the prices) and reason: no_rate (none of that day is stored) or not_below_close."""
    pairs: list[dict[str, Any]] | None = None
    """Of `pairs-refused`: the pairs of the request that are not accepted as they are written, as in an answer."""


class Refused(Exception):
    """A refusal of the API itself, with the name of its kind, such as `no-token`."""

    def __init__(self, status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.kind, self.headers = status, kind, headers


def invalid(detail: str) -> Refused:
    """The refusal of a parameter, or of a value of the body."""
    return Refused(422, "invalid-request", detail)


def database_busy(detail: str) -> Refused:
    """The refusal of a request that the database does not answer in time."""
    return Refused(503, "database-busy", detail, {"Retry-After": "5"})


RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"description": "The request is longer than the server reads", "content": {"text/plain": {}}},
    **{
        status: {
            "description": description,
            "content": {_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status, description in (
            (401, "The token is missing, unknown or expired"),
            (403, "The token does not allow this"),
            (404, "Nothing has this path, name or id"),
            (405, "The path has other methods; the header Allow names them"),
            (408, "The body takes too long to arrive"),
            (411, "The body has no Content-Length"),
            (413, "The body is too long"),
            (421, "The header Host names another server"),
            (422, "A parameter or a value of the body is refused"),
            (429, "A cap or a limit is reached"),
            (500, "An error in this program, which the log of the API shows"),
            (503, "The database, or Dagster, cannot do it now"),
        )
    },
}
"""The problems that any route may have, for the OpenAPI document."""


def add_handlers(app: FastAPI) -> None:
    """Answer every error with a problem."""
    for kind, handler in _HANDLERS.items():
        # Any other exception reaches the guard, which adds its headers to the answer.
        if kind is not Exception:
            app.add_exception_handler(kind, handler)


def answer(
    request: Request,
    status: int,
    kind: str,
    detail: str,
    headers: Mapping[str, str] | None = None,
    payments: Sequence[errors.UncountedPayment] = (),
    pairs: Sequence[Mapping[str, Any]] = (),
) -> JSONResponse:
    """A problem as a response."""
    detail = detail if detail.endswith((".", "?", "!")) else f"{detail}."
    first, _, _ = detail.partition(" ")
    content = Problem(
        type=f"urn:pricing-pipeline:{kind}",
        title=kind.replace("-", " ").capitalize(),
        status=status,
        # A first word that is a name keeps its case.
        detail=detail[:1].upper() + detail[1:] if first.isalpha() else detail,
        request_id=request_id(request),
        payments=[asdict(payment) | {"ex_on": str(payment.ex_on)} for payment in payments] or None,
        pairs=[dict(pair) for pair in pairs] or None,
    )
    # Only one kind of problem has payments, and one has pairs.
    absent = {name for name, values in (("payments", payments), ("pairs", pairs)) if not values}
    written = content.model_dump(exclude=absent)
    return JSONResponse(written, status, headers, media_type=_MEDIA_TYPE)


def request_id(request: Request) -> str:
    """The id of the request, which the guard has given it."""
    return str(request.scope.get("state", {}).get("request_id", ""))


async def response_to(request: Request, error: Exception) -> JSONResponse:
    """The problem of an error, for the guard in front of the application."""
    kind = next(kind for kind in type(error).__mro__ if kind in _HANDLERS)
    return await _HANDLERS[kind](request, error)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)  # noqa: S101 - registered for it
    return answer(request, error.status, error.kind, str(error), error.headers)


async def _pricing_error(request: Request, error: Exception) -> JSONResponse:
    status = next((_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES), 422)
    name = type(error).__name__
    if status >= 500:
        _note(request, error)
    headers = {"Retry-After": str(_retry_after(error))} if status in (429, 503) else None
    kind = "refused" if type(error) is PricingError else re.sub("(?<!^)(?=[A-Z])", "-", name).lower()
    told: Mapping[type[PricingError], Callable[[Any], str]] = {
        errors.DatabaseError: _without_address,
        errors.FilesError: _without_place,
    }
    tell = next((told[kind] for kind in type(error).__mro__ if kind in told), None)
    detail = tell(error) if tell is not None else str(error)
    payments = error.payments if isinstance(error, errors.UncountedPayments) else ()
    pairs = error.pairs if isinstance(error, errors.PairsRefused) else ()
    return answer(request, status, kind, detail, headers, payments, pairs)


def _note(request: Request, reason: object) -> None:
    """Log why a request with a token failed. A stranger causes no line: Tokens tells once that the database is away."""
    if hasattr(request.state, "token"):
        _LOG.warning("request %s: %s", request_id(request), reason)


def _without_address(error: errors.DatabaseError) -> str:
    """An error without the address of the database: some callers have no token."""
    takes_no_writes = isinstance(error, errors.ReadReplica)
    cause = "takes no writes: it is a read replica" if takes_no_writes else "does not answer"
    return f"the database {cause}. The log of the API says why"


def _without_place(_: errors.FilesError) -> str:
    """An error without the name of the folder or bucket, and without the store's own words."""
    return "old months of this history cannot be read. The log of the API says why"


def _retry_after(error: Exception) -> int:
    seconds = getattr(error, "retry_after", None)
    return max(1, int(seconds)) if seconds is not None else 5


async def _database_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DBAPIError)  # noqa: S101 - registered for it
    if is_refusal(error) and not _is_fault(error):
        return answer(request, 422, "refused", sentence(error))
    _note(request, sentence(error))
    return answer(request, 503, "database-busy", sentence(error), {"Retry-After": "2"})


def _is_fault(error: DBAPIError) -> bool:
    """Whether the statement is wrong, or a right is missing, and not a value of the request."""
    return (getattr(error.orig, "sqlstate", None) or "")[:2] in ("0A", "42", "55")


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it
    errors = error.errors()
    faults = [_words_of(fault) for fault in errors[:_SHOWN]]
    more = len(errors) - _SHOWN
    return answer(request, 422, "invalid-request", "; ".join(faults) + (f"; and {more} more" if more > 0 else ""))


def _words_of(fault: Mapping[str, Any]) -> str:
    if fault["loc"] == ("body",) and isinstance(fault.get("input"), bytes):
        return "send the body as JSON, with the header Content-Type: application/json"
    if fault["type"] == "json_invalid":
        return f"the body is not JSON: {fault['ctx']['error']} at character {fault['loc'][-1]}"
    where, *names = fault["loc"]
    place = " ".join([_PLACES.get(where, where), *map(str, names)])
    words = _WORDS.get(fault["type"], "")
    return f"{place}: {words.format(**fault.get('ctx', {})) or fault['msg'].removeprefix('Value error, ')}"


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it
    if isinstance(error.__cause__, Refused):  # while the body was read
        return await _refused(request, error.__cause__)
    if error.status_code == 400:  # FastAPI's status for a body that it cannot decode
        return answer(request, 422, "invalid-request", "the body is not JSON in UTF-8")
    kinds = {
        404: ("no-such-path", "There is nothing at this path. /openapi.json lists the paths."),
        405: ("wrong-method", f"This path takes {', '.join(_methods_of(request))} only."),
    }
    kind, detail = kinds.get(error.status_code, ("refused", str(error.detail)))
    headers = {"Allow": ", ".join(_methods_of(request))} if error.status_code == 405 else error.headers
    return answer(request, error.status_code, kind, detail, headers)


def is_feed(path: str) -> bool:
    """Whether spreadsheets read this path. They send OPTIONS and HEAD before GET."""
    return f"{path}/".startswith(_FEEDS)


def _methods_of(request: Request) -> list[str]:
    """The methods that the path of a request takes. Routes have one each, and Starlette names only the first's."""
    is_read = is_feed(request.scope["path"])
    return [
        method
        for method in _METHODS
        if (is_read and method in ("HEAD", "OPTIONS"))
        or any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    ]


async def _fault(request: Request, error: Exception) -> JSONResponse:
    _LOG.error("request %s: an error of the server", request_id(request), exc_info=error)
    return answer(
        request,
        500,
        "fault",
        "the server failed. Its log has the details",
    )


_HANDLERS: Mapping[type[Exception], Callable[[Request, Exception], Awaitable[JSONResponse]]] = {
    Refused: _refused,
    PricingError: _pricing_error,
    DBAPIError: _database_error,
    RequestValidationError: _invalid,
    HTTPException: _http_error,
    Exception: _fault,
}
