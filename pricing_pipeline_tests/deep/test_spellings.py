"""Every instrument of the sandbox is found where it is."""

from __future__ import annotations

from contextlib import ExitStack

from pydantic import SecretStr

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.unit.test_spellings import canonical_symbols


def test_every_instrument_of_the_sandbox_is_found_where_it_is(sandbox: RunningSandbox) -> None:
    """Metals are futures at Yahoo, and the sandbox's FMP has shares only."""
    key = SecretStr(sandbox.key)
    with ExitStack() as stack:
        twelvedata, yahoo, fmp, mfapi = (
            stack.enter_context(ProviderClient(PROVIDERS[name], f"{sandbox.url}/{name}", key, deadline=PATIENCE))
            for name in ("twelvedata", "yahoo", "fmp", "mfapi")
        )
        for asset_class, symbols in canonical_symbols().items():
            answer = twelvedata.fetch(Fetcher.QUOTE, symbols, asset_class=asset_class).answer
            assert answer.observations.symbols() == set(symbols)
            at_yahoo = [symbol for symbol in symbols if symbol[:3] not in ("XAG", "XAU", "XPD", "XPT")]
            for start in range(0, len(at_yahoo), 20):
                some = at_yahoo[start : start + 20]
                answer = yahoo.fetch(Fetcher.QUOTE, some, asset_class=asset_class).answer
                assert answer.observations.symbols() == set(some)
        for share in canonical_symbols()["equity"]:
            answer = fmp.fetch(Fetcher.PROFILE, [share], asset_class="equity").answer
            assert [document.symbol for document in answer.records] == [share]
        answer = mfapi.fetch(Fetcher.NAV, ["118632"], asset_class="fund").answer
        assert answer.observations.symbols() == {"118632"}
