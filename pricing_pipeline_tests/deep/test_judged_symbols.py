"""B5: whatever somebody writes, spellings of one instrument never make two."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.demand import instruments
from pricing_pipeline.demand.instruments import NewInstrument
from pricing_pipeline.domain.exchanges import exchanges
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.integration.test_judged_symbols import COIN, JUDGED, judged, type_of_coins
from pricing_pipeline_tests.support.examples import examples

__all__ = ["type_of_coins"]

PIECES = (
    "A B EUR USD BTC USDT ALL VOD AAPL RELIANCE L LN US XLON XNYS NYSE LSE NS HK 0700 7203 118632 ^ = =X =F : . / - _"
    " & ' FX CURNCY EQUITY AMFI 1INCH INE002A01018 INE002A01019"
)


def test_b5_a_spelling_and_a_proposal_are_read_as_themselves(core: Core) -> None:
    """Whatever somebody writes: what it is taken for can be stored, and means itself, and what is proposed is taken."""

    @settings(max_examples=examples(40), deadline=None)
    @given(
        st.sampled_from([QUOTE, FX, COIN, NAV]),
        st.lists(
            st.lists(st.sampled_from([*PIECES.split(), " "]), min_size=1, max_size=5).map("".join),
            min_size=40,
            max_size=40,
        ),
    )
    def read(data_type: str, given_: list[str]) -> None:
        rows = core.rows(JUDGED, types=[data_type] * len(given_), symbols=given_)
        found = [row.symbol for row in rows if row.symbol]
        assert [symbol for symbol, _ in judged(core, data_type, *found)] == found
        assert core.one(
            "SELECT coalesce(bool_and(pricing.is_sane_symbol(s) AND pricing.fits_class(r.asset_class, s)), true)"
            " FROM unnest(CAST(:found AS text[])) AS s, pricing.data_type_registry r WHERE r.data_type = :data_type",
            found=found,
            data_type=data_type,
        )
        for row in rows:
            if row.proposal:
                kind, _, symbol = row.proposal.partition(":")
                if not kind.islower():
                    kind, symbol = data_type, row.proposal
                assert judged(core, kind, symbol)[0][0] == symbol, row
            assert "  " not in (row.reason or ""), row

    read()


TICKERS = st.from_regex(r"[A-Z0-9]{1,5}([&'-][A-Z0-9]{2,3})?", fullmatch=True)


@st.composite
def shares(draw: st.DrawFn) -> tuple[str, list[str]]:
    """The one spelling of a share, and all those that our table of exchanges can write."""
    exchange = draw(st.sampled_from(sorted(exchanges().values(), key=lambda one: one.mic)))
    ticker = draw(TICKERS.filter(lambda text: not text.isdigit() or exchange.suffix))
    if exchange.mic == "XHKG" and ticker.isdigit():
        ticker = (ticker.lstrip("0") or "1").rjust(4, "0")
    share_class = draw(st.sampled_from(["", "A", "B", "C"]))
    symbol = ticker + (f".{share_class}" if share_class else "") + (f":{exchange.mic}" if exchange.suffix else "")
    names = [ending for ending in exchange.endings if ending[1:].upper() not in map(str.upper, exchange.shared)]
    tickers = [f"{ticker}{sign}{share_class}" if share_class else ticker for sign in ".-/ "]
    spellings = [f"{one}{ending}" for one in tickers for ending in names]
    spellings += [f"{name[1:]}:{one}" for one in tickers for name in names if name.startswith(":")]
    spellings += [PROVIDERS[name].spell(symbol, "equity") for name in ("twelvedata", "yahoo", "fmp")]
    return symbol, spellings if exchange.suffix else [*spellings, *tickers]


NAMES = {ending[1:] for one in exchanges().values() for ending in one.endings if ending[0] == ":"}


def is_ambiguous(spelling: str) -> bool:
    """Whether both sides of a colon are names of exchanges."""
    return ":" in spelling and {*spelling.upper().split(":")} <= {name.upper() for name in NAMES}


def test_b5_all_that_our_tables_can_write_is_read_as_the_same_instrument(core: Core) -> None:
    @settings(max_examples=examples(100), deadline=None)
    @given(shares())
    def read(share: tuple[str, list[str]]) -> None:
        symbol, spellings = share
        for spelling, (found, _) in zip(spellings, judged(core, QUOTE, *spellings), strict=True):
            assert found == symbol or (found is None and is_ambiguous(spelling)), spelling
        own = core.one("SELECT pricing.spellings_of(CAST(:symbol AS text))", symbol=symbol)
        assert {one for one in spellings if not is_ambiguous(one)} <= {*own, symbol}

    read()


def test_b5_two_spellings_of_a_share_never_make_two_instruments(core: Core) -> None:
    def add(spelling: str) -> None:
        with core.engine.begin() as connection:
            instruments.add(connection, [NewInstrument("equity", spelling)])

    doors: list[Callable[[str], object]] = [
        lambda spelling: core.heartbeat("ann", (QUOTE, spelling)),
        lambda spelling: core.hold("bob", (DAILY, spelling)),
        add,
        # As it may stand in a database of before.
        lambda spelling: core.rows(
            "INSERT INTO pricing.instruments (asset_class, symbol) SELECT 'equity', CAST(:symbol AS text)"
            " WHERE pricing.is_sane_symbol(:symbol) AND NOT EXISTS (SELECT FROM pricing.instruments)",
            symbol=spelling,
        ),
    ]

    @settings(max_examples=examples(60), deadline=None)
    @given(shares(), st.data())
    def enter(share: tuple[str, list[str]], data: st.DataObject) -> None:
        for table in ("active_subscriptions", "holdings", "demand", "instruments"):
            core.rows(f"DELETE FROM pricing.{table}")
        spellings = [one for one in share[1] if not is_ambiguous(one)]
        for spelling in data.draw(st.lists(st.sampled_from(spellings), min_size=2, max_size=4)):
            data.draw(st.sampled_from(doors))(spelling)
        assert core.one("SELECT count(*) FROM pricing.instruments") <= 1
        watched = "SELECT symbol FROM pricing.active_subscriptions UNION SELECT symbol FROM pricing.holdings"
        assert len(core.rows(watched)) <= 1

    enter()
