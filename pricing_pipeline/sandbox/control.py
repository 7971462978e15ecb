"""The sandbox's own endpoints under `/_sandbox`: health, audit and faults. Providers' are not here."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pricing_pipeline.sandbox.faults import Behaviour
from pricing_pipeline.sandbox.service import Sandbox


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

    return [
        Route("/health", health),
        Route("/calls", calls),
        Route("/stats", stats),
        Route("/reset", reset, methods=["POST"]),
        Route("/behaviour", behaviour, methods=["GET", "POST", "DELETE"]),
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
        except ValidationError as error:
            return JSONResponse({"error": error.errors(include_url=False, include_context=False)}, 400)
        except ValueError as error:
            return JSONResponse({"error": f"the body is not JSON: {error}"}, 400)
        for behaviour in wanted:
            sandbox.behaviours.add(behaviour)
    return JSONResponse(sandbox.behaviours.listed())


def _whole(params: Mapping[str, str], name: str, usual: int) -> int:
    text = params.get(name) or str(usual)
    if not text.isdecimal():
        raise ValueError(f"{name}={text} is not a whole number")
    return int(text)
