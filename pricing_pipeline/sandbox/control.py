"""The sandbox's own endpoints under `/_sandbox`: health, audit and faults. Providers' are not here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pricing_pipeline.sandbox.faults import Behaviour
from pricing_pipeline.sandbox.service import Sandbox
from pricing_pipeline.sandbox.slots import SlotChange, TourChange


def control_routes(sandbox: Sandbox) -> list[Route]:
    """Routes that watch and steer one sandbox.

    GET    health                          {"status": "ok"}
    GET    calls?provider=&since=&limit=   JSON list of calls numbered above `since`, oldest first, at
                                           most `limit` (1000): read on from the last number
    GET    stats                           by provider: totals, worst sliding windows, limits in force
    POST   reset                           forget calls, faults and charges
    GET    behaviour                       faults in force
    POST   behaviour                       add a fault or a list of them (`faults.Behaviour`)
    DELETE behaviour                       end all faults
    POST   slots                           change some of the tours' slots (`slots.SlotChange`)
    POST   tour                            change one tour (`slots.TourChange`)
    """

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def calls(request: Request) -> Response:
        params = request.query_params
        try:
            since, limit = _whole(params, "since", 0), _whole(params, "limit", 1000)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)
        return JSONResponse(sandbox.log.calls(params.get("provider") or None, since, limit))

    async def stats(request: Request) -> Response:
        seen = sandbox.log.stats()
        return JSONResponse(
            {
                name: seen.get(name, {"calls": 0, "units": 0}) | {"plan": provider.plan()}
                for name, provider in sandbox.providers.items()
            }
        )

    async def reset(request: Request) -> Response:
        sandbox.reset()
        return JSONResponse({"status": "reset"})

    async def behaviour(request: Request) -> Response:
        return await _behaviour(sandbox, request)

    async def slots(request: Request) -> Response:
        return await _changed(request, SlotChange, sandbox.tours.change_slots)

    async def tour(request: Request) -> Response:
        return await _changed(request, TourChange, sandbox.tours.change_tour)

    return [
        Route("/health", health),
        Route("/calls", calls),
        Route("/stats", stats),
        Route("/reset", reset, methods=["POST"]),
        Route("/behaviour", behaviour, methods=["GET", "POST", "DELETE"]),
        Route("/slots", slots, methods=["POST"]),
        Route("/tour", tour, methods=["POST"]),
    ]


async def _behaviour(sandbox: Sandbox, request: Request) -> Response:
    if request.method == "DELETE":
        sandbox.behaviours.clear()
    elif request.method == "POST":
        try:
            body = await request.json()
            wanted = [
                Behaviour.model_validate(behaviour)
                for behaviour in (body if isinstance(body, list) else [body])
            ]
        except (ValidationError, ValueError) as error:
            return _refused(error)
        for behaviour in wanted:
            sandbox.behaviours.add(behaviour)
    return JSONResponse(sandbox.behaviours.listed())


_Change = TypeVar("_Change", SlotChange, TourChange)


async def _changed(request: Request, kind: type[_Change], change: Callable[[_Change], None]) -> Response:
    try:
        wanted = kind.model_validate(await request.json())
    except (ValidationError, ValueError) as error:
        return _refused(error)
    change(wanted)
    return JSONResponse(wanted.model_dump())


def _refused(error: ValueError) -> Response:
    if isinstance(error, ValidationError):
        return JSONResponse({"error": error.errors(include_url=False, include_context=False)}, 400)
    return JSONResponse({"error": f"the body is not JSON: {error}"}, 400)


def _whole(params: Mapping[str, str], name: str, usual: int) -> int:
    text = params.get(name) or str(usual)
    if not text.isdecimal():
        raise ValueError(f"{name}={text} is not a whole number")
    return int(text)
