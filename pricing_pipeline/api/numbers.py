"""Exact numbers in requests and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from decimal import Decimal
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import PlainSerializer

from pricing_pipeline.domain.words import decimal, read_number
from pricing_pipeline.providers.values import json_number

Exact = Annotated[Decimal, PlainSerializer(decimal, return_type=str)]
"""A number as a string of all its digits, never with an exponent: `"0.00000001"`."""

Whole = Annotated[int, PlainSerializer(str, return_type=str)]
"""A whole number as a string: JavaScript knows no integers beyond 2^53."""


class _ExactRequest(Request):
    async def json(self) -> Any:
        return json.loads(await self.body(), parse_float=json_number)


class ExactRoute(APIRoute):
    """A route whose body may have numbers of more digits than a float."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler that reads them exactly."""
        handle = super().get_route_handler()

        async def exact(request: Request) -> Response:
            return await handle(_ExactRequest(request.scope, request.receive))

        return exact


def plain_number(given: Any) -> Any:
    """A number that a request gives as text, read exactly; all else as it is. For a validator of fields."""
    return read_number(given) if isinstance(given, str) else given
