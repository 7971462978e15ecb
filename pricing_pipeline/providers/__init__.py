"""The providers of prices. A new one needs only a file here and a line in PROVIDERS."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pricing_pipeline.providers.base import Provider
from pricing_pipeline.providers.fmp import Fmp
from pricing_pipeline.providers.headout import Headout
from pricing_pipeline.providers.mfapi import MfApi
from pricing_pipeline.providers.octo import Octo
from pricing_pipeline.providers.twelvedata import TwelveData
from pricing_pipeline.providers.uex import Uex
from pricing_pipeline.providers.yahoo import Yahoo

PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        "twelvedata": TwelveData(),
        "mfapi": MfApi(),
        "fmp": Fmp(),
        "yahoo": Yahoo(),
        "octo": Octo(),
        "headout": Headout(),
        "uex": Uex(),
    }
)
"""Provider by its name in `data_collectors`."""
