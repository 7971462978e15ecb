"""One sandbox with its providers, log and faults, and the way every provider call goes through them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pricing_pipeline.sandbox.calls import Provider, fields_of
from pricing_pipeline.sandbox.faults import Behaviour, Behaviours, distorted, swapped
from pricing_pipeline.sandbox.fmp import Fmp
from pricing_pipeline.sandbox.headout import Headout
from pricing_pipeline.sandbox.log import CallLog
from pricing_pipeline.sandbox.mfapi import MfApi
from pricing_pipeline.sandbox.octo import Octo
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.recordings import Recordings
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.slots import Tours
from pricing_pipeline.sandbox.twelvedata import TwelveData
from pricing_pipeline.sandbox.uex import Uex
from pricing_pipeline.sandbox.yahoo import Yahoo

Clock = Callable[[], datetime]
"""Gives the time, aware and in UTC."""

_CLIENT_LEFT = 499  # never reaches anyone; nginx's number for it


def system_clock() -> datetime:
    return datetime.now(UTC)


class Sandbox:
    """Found as `app.state.sandbox`. Raises SettingsError when its log cannot be written."""

    def __init__(self, settings: SandboxSettings, clock: Clock = system_clock) -> None:
        market = Market(settings.seed, settings.market_hours)
        dialects = (TwelveData, MfApi, Yahoo, Fmp, Uex)
        self.tours = Tours(settings.seed)
        partners = (Octo(settings, self.tours), Headout(settings, self.tours))
        providers: tuple[Provider, ...] = (*(dialect(settings, market) for dialect in dialects), *partners)
        self.settings = settings
        self.providers: Mapping[str, Provider] = {provider.name: provider for provider in providers}
        self.log = CallLog(settings.log_memory, settings.log_path)
        self.behaviours = Behaviours()
        self.now = clock
        self._recordings = None if settings.recordings is None else Recordings(settings.recordings)

    def reset(self) -> None:
        """As just started: no calls, no faults, no changes on request, nothing charged."""
        self.log.reset()
        self.tours.reset()
        self.behaviours.clear()
        for provider in self.providers.values():
            provider.reset()

    async def call(self, provider: Provider, request: Request) -> Response:
        """Charge, log, answer and distort one call."""
        endpoint = request.path_params["endpoint"]
        parameters = _parameters(request)
        if request.method == "POST":
            parameters |= fields_of(await request.body())
        call = provider.read(endpoint, parameters, request.headers, self.now())
        call = replace(call, method=request.method)
        admission = provider.admit(call)
        record = self.log.begin(
            provider.name,
            call,
            admission.units,
            refused=admission.is_over_limit,
            key_name=admission.key_name,
        )
        status, sent = None, 0
        faults: list[Behaviour] = []
        try:
            if self.settings.latency_ms:
                await asyncio.sleep(self.settings.latency_ms / 1000)
            reply, recorded = admission.refusal, None
            if reply is None:
                faults = self.behaviours.drawn(provider.name, call)
                if faults:
                    record.fault = ",".join(fault.kind for fault in faults)
                    call = replace(call, answers=swapped(faults, call.symbols))
                    await asyncio.sleep(sum(fault.seconds or 0 for fault in faults if fault.kind == "delay"))
                    if any(fault.kind == "hang" for fault in faults):
                        await _client_leaves(request)
                        return Response(status_code=_CLIENT_LEFT)
                recorded = None
                if self._recordings is not None:
                    recorded = self._recordings.find(provider.name, call)
                reply = distorted(recorded or provider.answer(call), faults, call)
            status, sent = reply.status, len(reply.body)
            headers = {
                "Date": format_datetime(call.now, usegmt=True),
                "Content-Type": reply.content_type,
                # What a recorded answer says of limits is as it was.
                **({} if reply is recorded else admission.headers),
                **reply.headers,
            }
            headers = {name.lower(): value for name, value in headers.items()}
            for fault in faults:
                if fault.kind == "drip":
                    return StreamingResponse(_drops(reply.body, fault.seconds or 0), reply.status, headers)
                if fault.kind == "cut":
                    return StreamingResponse(_part(reply.body), reply.status, headers)
            return Response(reply.body, reply.status, headers)
        finally:
            self.log.end(record, status, sent)


def _parameters(request: Request) -> dict[str, str]:
    """The parameters; one given again goes by a name that no provider has, so that it is refused."""
    parameters: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        parameters[f"{name} (given twice)" if name in parameters else name] = value
    return parameters


async def _drops(body: bytes, seconds: float) -> AsyncIterator[bytes]:
    for at in range(len(body)):
        yield body[at : at + 1]
        await asyncio.sleep(seconds)


async def _part(body: bytes) -> AsyncIterator[bytes]:
    """Half of the body, in a transfer of pieces that breaks off: the connection is dropped."""
    yield body[: len(body) // 2]
    raise ConnectionAbortedError("the sandbox breaks off, as it was told to")


async def _client_leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
