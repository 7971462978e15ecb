"""Stored prices of commodities, now and as of every time, held against a plain model (C4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Stored
from pricing_pipeline.domain.commodities import CommodityPrice, TerminalPrices
from pricing_pipeline_tests.fixtures.core import Core, a_call
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_commodities import (
    GOLD,
    SOURCE,
    STEEL,
    Key,
    Row,
    believed,
    live,
    store,
    terminal,
)
from pricing_pipeline_tests.support.commodities import TYPE, UEX, add_type
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.storing import versions

pytestmark = pytest.mark.usefixtures("still")

VERSIONS = ("4.1", "4.2")
PRICES = st.builds(
    lambda number, quality, side, price, amount, version, day: CommodityPrice(
        number,
        f"Good {number}",
        None,
        None,
        price if side == "buy" else None,
        price if side == "sell" else None,
        amount if side == "buy" else None,
        amount if side == "sell" else None,
        version,
        None if day is None else SOURCE + timedelta(days=day),
        quality,
    ),
    st.integers(1, 3),
    st.sampled_from(["", "", "500", "900"]),
    st.sampled_from(["buy", "sell", "neither"]),
    st.sampled_from([Decimal(1), Decimal("1.5"), Decimal("0.000001")]),
    st.sampled_from([None, 0, 5]),
    st.sampled_from([None, *VERSIONS]),
    st.sampled_from([None, 0, 1, 2]),
)
TERMINALS = st.builds(
    lambda symbol, prices, is_whole: terminal(symbol, *prices, is_whole=is_whole),
    st.sampled_from(["UEX:1", "UEX:2"]),
    st.lists(PRICES, min_size=1, max_size=3, unique_by=lambda price: (price.commodity_id, price.quality)),
    st.booleans(),
)
STEPS = st.lists(st.one_of(st.sampled_from(VERSIONS), TERMINALS), min_size=1, max_size=12)


@dataclass
class Model:
    """What is believed, by plain rules, one price after the other."""

    prices: dict[Key, Row]
    seen: list[str]
    """Each version once, in the order in which they were first named; those of one answer by their names."""
    live: str | None = None

    @property
    def at_play(self) -> str | None:
        return self.live or (self.seen[-1] if self.seen else None)

    def see(self, versions: Iterable[str | None]) -> None:
        self.seen += sorted({version for version in versions if version} - set(self.seen))

    def store(self, said: TerminalPrices) -> int:
        """Returns how many prices have changed or come."""
        before = dict(self.prices)
        self.see(price.game_version for price in said.prices)
        live = self.at_play
        older = 0
        for price in said.prices:
            known = self.prices.get((said.symbol, price.commodity_id, price.quality))
            values = (price.buy, price.sell, price.stock, price.demand)
            version = price.game_version
            if version is None:
                same = known is not None and (*known[:4], known[5]) == (*values, price.modified_at)
                version = known[4] if same and known is not None else live
            if known is not None:
                versions = {price.game_version, known[4]}
                # Of a version above the live one that is not for tests, the time decides.
                is_coming = any(one is not None and live is not None and one > live for one in versions)
                if None not in versions and len(versions) == 2 and live in versions and not is_coming:
                    is_older = known[4] == live
                else:
                    is_older = None not in (price.modified_at, known[5]) and price.modified_at < known[5]
                if is_older:
                    older += 1
                    continue
            key = (said.symbol, price.commodity_id, price.quality)
            self.prices[key] = (*values, version, price.modified_at)
        is_late = said.prices and older == len(said.prices)
        if said.is_whole and not is_late:
            named = [price.game_version for price in said.prices if price.game_version]
            reach = live if live in named or not named else max(named)
            listed = {(price.commodity_id, price.quality) for price in said.prices}
            for key, row in self.prices.items():
                symbol, number, quality = key
                is_traded = row[0] is not None or row[1] is not None
                is_listed = (number, quality) in listed or (number, "") in listed
                if symbol == said.symbol and not is_listed and is_traded and row[4] == reach:
                    self.prices[key] = (None, None, None, None, row[4], row[5])
        return sum(self.prices[key] != before.get(key) for key in self.prices)


NEWER = replace(GOLD, commodity_id=1, modified_at=SOURCE + timedelta(days=1))
A_LATE_LIST = [
    terminal("UEX:2", NEWER, replace(STEEL, commodity_id=2)),
    terminal("UEX:2", replace(NEWER, modified_at=SOURCE)),
]


@pytest.fixture(autouse=True)
def kind(core: Core) -> None:
    add_type(core)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
@example(A_LATE_LIST)
def test_c4_the_store_is_what_a_plain_model_says_now_and_as_of_every_time(
    core: Core, clock: Clock, steps: list[str | TerminalPrices]
) -> None:
    core.rows(
        "TRUNCATE pricing.commodity_prices, pricing.revisions, pricing.terminals, pricing.commodities,"
        " pricing.game_versions"
    )
    call = a_call(core.claimed("equity_quote", "AAPL"), provider=UEX, data_type=TYPE)
    core.complete(call)
    model, past = Model({}, []), []
    for step in steps:
        if isinstance(step, str):
            live(core, step)
            model.live = step
            model.see([step])
        else:
            before = versions(core, "commodity_prices")
            (stored,) = store(core, call, step)
            changed = model.store(step)
            counted = stored.added + stored.revised if isinstance(stored, Stored) else 0
            assert counted == changed, "an unchanged price was written, or a change was not"
            after = versions(core, "commodity_prices")
            assert len(set(after) - set(before)) == changed
        assert believed(core) == model.prices
        past.append((core.clock(), dict(model.prices)))
        clock.advance(60)
    for moment, then in past:
        assert believed(core, moment) == then
    assert not core.rows(
        "SELECT FROM pricing.revisions a JOIN pricing.revisions b"
        " ON a.key = b.key AND a.old->'quality' = b.old->'quality' AND a.revised_at <> b.revised_at"
        " AND a.recorded_at < b.revised_at AND b.recorded_at < a.revised_at"
    ), "two revisions were believed at one time"
