"""`/livez`: whether this process answers. It needs no token and asks nothing of the database."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

router = APIRouter(tags=["health"])


@router.get("/livez", response_class=PlainTextResponse)
async def is_alive() -> str:
    """`ok` as long as this process answers."""
    return "ok\n"
