"""Exact numbers in answers."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import PlainSerializer

from pricing_pipeline.domain.words import decimal

Exact = Annotated[Decimal, PlainSerializer(decimal, return_type=str)]
"""A number as a string of all its digits, never with an exponent: `"0.00000001"`."""

Whole = Annotated[int, PlainSerializer(str, return_type=str)]
"""A whole number as a string: JavaScript knows no integers beyond 2^53."""
