"""The sandbox's own endpoints under `/_sandbox`: health, audit and faults. Providers' are not here."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pricing_pipeline.sandbox.faults import Behaviour
from pricing_pipeline.sandbox.service import Sandbox
from pricing_pipeline.sandbox.slots import SlotChange, TourChange

_ONE_OR_MORE = TypeAdapter[Behaviour | list[Behaviour]](Behaviour | list[Behaviour])


def control_routes(sandbox: Sandbox) -> list[Route]:
    """Routes that watch and steer one sandbox.

    GET    health                          {"status": "ok"}
    GET    calls?provider=&since=&limit=   JSON list of calls numbered above `since`, oldest first, at
                                           most `limit` (1000): read on from the last number
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
            since, limit = int(params.get("since") or 0), int(params.get("limit") or 1000)
        except ValueError:
            return JSONResponse({"error": "since and limit are whole numbers"}, 400)
        return JSONResponse(sandbox.log.calls(params.get("provider") or None, since, limit))

    async def reset(request: Request) -> Response:
        sandbox.reset()
        return JSONResponse({"status": "reset"})

    async def behaviour(request: Request) -> Response:
        if request.method == "DELETE":
            sandbox.behaviours.clear()
        elif request.method == "POST":
            try:
                wanted = _ONE_OR_MORE.validate_json(await request.body())
            except ValidationError as error:
                return _refused(error)
            for one in wanted if isinstance(wanted, list) else [wanted]:
                sandbox.behaviours.add(one)
        return JSONResponse(sandbox.behaviours.listed())

    async def slots_or_tour(request: Request) -> Response:
        model = SlotChange if request.url.path.endswith("/slots") else TourChange
        try:
            change = model.model_validate_json(await request.body())
        except ValidationError as error:
            return _refused(error)
        sandbox.tours.change(change)
        return JSONResponse(change.model_dump())

    return [
        Route("/health", health),
        Route("/calls", calls),
        Route("/reset", reset, methods=["POST"]),
        Route("/behaviour", behaviour, methods=["GET", "POST", "DELETE"]),
        Route("/slots", slots_or_tour, methods=["POST"]),
        Route("/tour", slots_or_tour, methods=["POST"]),
    ]


def _refused(error: ValidationError) -> Response:
    return JSONResponse({"error": error.errors(include_url=False, include_context=False, include_input=False)}, 400)
