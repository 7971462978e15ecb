"""One sandbox with its providers, log and faults, and the way every provider call goes through them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pricing_pipeline.sandbox.calls import Dialect, ProviderCall, Reply, fields_of
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
    """Found as `app.state.sandbox`. Raises SettingsError for recordings that cannot be read."""

    def __init__(self, settings: SandboxSettings, clock: Clock = system_clock) -> None:
        market = Market(settings.seed, settings.market_hours)
        self.tours = Tours(settings.seed)
        providers: tuple[Dialect, ...] = (
            TwelveData(settings, market),
            MfApi(market),
            Yahoo(market),
            Fmp(settings, market),
            Uex(settings),
            Octo(settings, self.tours),
            Headout(settings, self.tours),
        )
        self.settings = settings
        self.providers: Mapping[str, Dialect] = {provider.name: provider for provider in providers}
        self.log = CallLog()
        self.behaviours = Behaviours()
        self.now = clock
        self._recordings = None if settings.recordings is None else Recordings(settings.recordings)

    def reset(self) -> None:
        """As just started: no calls, no faults, no changes on request, nothing charged."""
        self.log.reset()
        self.tours.reset()
        self.behaviours.clear()
        for provider in self.providers.values():
            provider.plan.reset()

    async def call(self, provider: Dialect, request: Request) -> Response:
        """Charge, log, answer and distort one call."""
        params = dict(request.query_params)
        if request.method == "POST":
            params |= fields_of(await request.body())
        call = provider.read(request.path_params["endpoint"], params, request.headers, self.now(), request.method)
        charge = provider.charge(call)
        record = self.log.begin(provider.name, call, charge)
        status, sent = None, 0
        faults: list[Behaviour] = []
        try:
            reply, shown = provider.refusal(call, charge), {} if charge is None else provider.limit_headers(charge)
            if reply is None:
                faults = self.behaviours.drawn(provider.name, call)
                if faults:
                    record.fault = ",".join(fault.kind for fault in faults)
                    await asyncio.sleep(sum(fault.seconds or 0 for fault in faults if fault.kind == "delay"))
                if any(fault.kind == "hang" for fault in faults):
                    await _client_leaves(request)
                    return Response(status_code=_CLIENT_LEFT)
                recorded = self._recorded(provider, call)
                if recorded is not None:
                    shown = {}  # what a recorded answer says of limits is as it was
                answer = recorded or provider.answer(replace(call, answers=swapped(faults, call.symbols)))
                reply = distorted(answer, faults, call)
            status, sent = reply.status, len(reply.body)
            headers = {"Date": format_datetime(call.now, usegmt=True), "Content-Type": reply.content_type}
            headers = {name.lower(): value for name, value in (headers | {**shown, **reply.headers}).items()}
            return _sent(reply, headers, faults)
        finally:
            self.log.end(record, status, sent)

    def _recorded(self, provider: Dialect, call: ProviderCall) -> Reply | None:
        return None if self._recordings is None else self._recordings.find(provider.name, call)


def _sent(reply: Reply, headers: Mapping[str, str], faults: list[Behaviour]) -> Response:
    for fault in faults:
        if fault.kind == "drip":
            return StreamingResponse(_drops(reply.body, fault.seconds or 0), reply.status, headers)
        if fault.kind == "cut":
            return StreamingResponse(_part(reply.body), reply.status, headers)
    return Response(reply.body, reply.status, headers)


async def _drops(body: bytes, seconds: float) -> AsyncIterator[bytes]:
    for at in range(len(body)):
        yield body[at : at + 1]
        await asyncio.sleep(seconds)


async def _part(body: bytes) -> AsyncIterator[bytes]:
    """Half of the body, in a transfer of pieces that breaks off: the connection is dropped."""
    yield body[: len(body) // 2]
    raise ConnectionAbortedError("the sandbox breaks the connection, as configured")


async def _client_leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
