"""B5: one function judges all symbols. Spellings of one instrument never make two, and what cannot be is refused."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import PairsRefused
from pricing_pipeline.providers.currencies import COINS
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core, observation, rows_read
from pricing_pipeline_tests.support.api_server import RunningApi

COIN = "crypto_quote"
JUDGED = (
    "SELECT j.symbol, j.outcome, j.reason, j.proposal"
    " FROM pricing.judge_symbols(CAST(:types AS text[]), CAST(:symbols AS text[])) j ORDER BY j.place"
)


@pytest.fixture(autouse=True)
def type_of_coins(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)"
        f" VALUES ('{COIN}', 'crypto', 'quote', 1)"
    )


def judged(core: Core, data_type: str, *symbols: str) -> list[tuple[str | None, str]]:
    rows = core.rows(JUDGED, types=[data_type] * len(symbols), symbols=list(symbols))
    return [(row.symbol, row.outcome) for row in rows]


def test_b5_spellings_of_one_instrument_are_read_as_one(core: Core) -> None:
    for data_type, symbol, spellings in (
        (QUOTE, "VOD:XLON", "VOD.L VOD:LSE LON:VOD LSE:VOD XLON:VOD vod.l VOD:LON"),
        (QUOTE, "VOD:XLON", "VOD LN,vod ln equity, VOD:XLON ,VOD: XLON,LSE : VOD,VOD.L:XLON,VOD/ LN"),
        (QUOTE, "BRK.B", "BRK-B BRK/B BRK.B BRK_B BRK.B:NYSE NYSE:BRK.B BRK-B:XNYS brk-b"),
        (QUOTE, "BRK.B", "BRK B,BRK/B US,BRK/B UN Equity"),
        (QUOTE, "AAPL", "AAPL aapl NASDAQ:AAPL AAPL:XNAS AAPL/"),
        (QUOTE, "AAPL", "AAPL US,AAPL UW,AAPL US Equity"),
        (QUOTE, "VOLV.B:XSTO", "VOLV-B.ST VOLV.B:XSTO STO:VOLV-B"),
        (QUOTE, "VOLV.B:XSTO", "VOLV B:XSTO,VOLV  B:XSTO,VOLV B SS"),
        (QUOTE, "BT.A:XLON", "BT-A.L BT.A:LSE"),
        (QUOTE, "RELIANCE:XNSE", "RELIANCE.NS RELIANCE:NSE NSE:RELIANCE"),
        (QUOTE, "RELIANCE:XBOM", "RELIANCE.BO BOM:RELIANCE"),
        (QUOTE, "BAJAJ-AUTO:XNSE", "BAJAJ-AUTO.NS BAJAJ-AUTO:NSE"),
        (QUOTE, "M&M:XNSE", "M&M.NS m&m:nse"),
        (QUOTE, "7203:XTKS", "7203.T 7203:JPX TYO:7203"),
        (QUOTE, "7203:XTKS", "7203 JT,7203 JP Equity"),
        (QUOTE, "0700:XHKG", "0700.HK 700:HKEX HKG:0700 00700:XHKG"),
        (QUOTE, "REI-UN:XTSE", "REI-UN.TO REI.UN:TSX"),
        (QUOTE, "SAP:XETR", "SAP.DE ETR:SAP SAP:XETR"),
        (QUOTE, "ASX", "ASX:XNYS XNYS:ASX"),
        (QUOTE, "^GSPC", "^GSPC ^gspc"),
        (QUOTE, "GC=F", "GC=F"),
        (FX, "EUR/USD", "EURUSD EUR/USD eur-usd EUR_USD EUR.USD EURUSD=X FX:EURUSD CURRENCY:EURUSD"),
        (FX, "EUR/USD", "EUR USD,EURUSD Curncy,EUR / USD"),
        (FX, "USD/JPY", "JPY=X USDJPY=X"),
        (FX, "XAU/USD", "XAUUSD XAU/USD"),
        (COIN, "BTC/USD", "BTC-USD BTCUSD BTC/USD btc_usd"),
        (COIN, "ETH/USDT", "ETH-USDT ETHUSDT"),
        (COIN, "1INCH/USDT", "1INCH-USDT 1INCH/USDT"),
        (NAV, "118632", "118632"),
    ):
        given_ = spellings.split("," if "," in spellings else None)
        assert dict(zip(given_, judged(core, data_type, *given_), strict=True)) == dict.fromkeys(
            given_, (symbol, "accepted")
        )


def test_b5_what_cannot_be_is_refused_with_a_proposal(core: Core) -> None:
    refused = (
        (QUOTE, "EURUSD", "of the class fx", f"{FX}:EUR/USD"),
        (QUOTE, "EUR/USD", "of the class fx", f"{FX}:EUR/USD"),
        (DAILY, "EURUSD=X", "of the class fx", f"{FX}:EUR/USD"),
        (QUOTE, "BTC-USD", "of the class crypto", f"{COIN}:BTC/USD"),
        (QUOTE, "ETHUSDT", "of the class crypto", f"{COIN}:ETH/USDT"),
        (QUOTE, "118632", "of the class fund", f"{NAV}:118632"),
        (QUOTE, "7203", "as in 7203:XTKS", None),
        (QUOTE, "TCS:FOO", "there is no exchange FOO", None),
        (QUOTE, "FOO:TCS", "there is no exchange TCS", None),
        (QUOTE, "TCS ZZ", "ZZ is not a code of an exchange", None),
        (QUOTE, "VOD.L:XNSE", "names two exchanges", None),
        (QUOTE, "TATASTEEL:BSE", "names several exchanges: XBOM, XBUD", "TATASTEEL:XBOM"),
        (QUOTE, "ASX:JSE", "both names of exchanges", "JSE:XASX"),
        (QUOTE, "INE002A01018", "`pricing-pipeline instrument find INE002A01018`", None),
        (QUOTE, "INE002A01019", "its check digit is wrong", None),
        (QUOTE, "BBG000BLNNH6", "instrument add SYMBOL --asset-class CLASS --figi", None),
        (QUOTE, "a:b:c", "a colon stands between", None),
        (QUOTE, "A?b=c", "a symbol has 1 to 40", None),
        (QUOTE, "Ö", "a symbol has 1 to 40", None),
        (QUOTE, "", "a symbol has 1 to 40", None),
        (QUOTE, "\u017f", "a symbol has 1 to 40", None),
        (QUOTE, "\u0131NE002A01018", "a symbol has 1 to 40", None),
        (QUOTE, "^A B", "an index is written as ^GSPC", None),
        (QUOTE, "^" + "A" * 45, "an index is written as ^GSPC", None),
        (QUOTE, "GC=F:XLON", "a future as GC=F", None),
        (QUOTE, "EURUSD:XNYS", "tickers without a slash", None),
        (QUOTE, "BTC-USD:XNAS", "tickers without a slash", None),
        (QUOTE, "AAPL'", "tickers without a slash", None),
        (QUOTE, "USD/USD", "tickers without a slash", None),
        (FX, "AAPL", "two known currencies", f"{QUOTE}:AAPL"),
        (FX, "DOGE/USD", "of the class crypto", f"{COIN}:DOGE/USD"),
        (FX, "EUR/EUR", "two known currencies", None),
        (FX, "EUR/XYZ", "two known currencies", None),
        (COIN, "EUR/USD", "of the class fx", f"{FX}:EUR/USD"),
        (COIN, "BTC", "coins stand beside what they are priced in", "BTC/USD"),
        (COIN, "BTC/BTC", "coins stand beside what they are priced in", None),
        (COIN, "usd", "coins stand beside what they are priced in", f"{QUOTE}:USD"),
        (FX, "gbp", "two known currencies", "GBP/USD"),
        (FX, "INE002A01018", "two known currencies", None),
        (NAV, "AAPL", "the numbers of their schemes", f"{QUOTE}:AAPL"),
        (NAV, "AMFI:118632", "the numbers of their schemes", "118632"),
        ("nope", "AAPL", "there is no such data type", None),
    )
    rows = core.rows(JUDGED, types=[one[0] for one in refused], symbols=[one[1] for one in refused])
    for row, (data_type, symbol, said, proposal) in zip(rows, refused, strict=True):
        assert (row.symbol, row.outcome, row.proposal) == (None, "refused", proposal), (data_type, symbol)
        assert said in row.reason, (data_type, symbol)


@pytest.mark.parametrize("way", ["heartbeat", "hold"])
def test_b5_who_watches_or_holds_what_cannot_be_is_told_the_proposal(core: Core, way: str) -> None:
    for symbol, said, has_proposal in (("EURUSD", "of the class fx", True), ("7203", "as in 7203:XTKS", False)):
        with pytest.raises(PairsRefused) as refused:
            getattr(core, way)("ann", (QUOTE, symbol))
        assert said in str(refused.value)
        assert ("Did you mean" in str(refused.value)) is has_proposal
    assert core.one("SELECT count(*) FROM pricing.active_subscriptions") == 0
    assert core.one("SELECT count(*) FROM pricing.holdings") == 0


def test_b5_what_is_doubtful_is_accepted_with_a_warning(core: Core, cli: CommandLine) -> None:
    doubtful = (
        (QUOTE, "RELIANCE", "at most five letters"),
        # A German number, a SEDOL, a CUSIP, and an ISIN without its check digit.
        (QUOTE, "A1EWWW", "at most five letters"),
        (QUOTE, "B0YQ5W0", "at most five letters"),
        (QUOTE, "38259P508", "at most five letters"),
        (QUOTE, "US037833100", "at most five letters"),
        (QUOTE, "PETR:XCAS", "XCAS is not in our table"),
        (QUOTE, "SHOP.V", "marked by .V"),
        (FX, "BTC/USD", "BTC is a coin"),
        (COIN, "SHIBUSD", "SHIB priced in USD"),
    )
    rows = core.rows(JUDGED, types=[one[0] for one in doubtful], symbols=[one[1] for one in doubtful])
    for row, (_, symbol, said) in zip(rows, doubtful, strict=True):
        assert row.outcome == "doubtful", symbol
        assert said in row.reason
    added = cli("instrument", "add", "SHOP.V", "--asset-class", "equity")
    assert (added.exit_code, "marked by .V" in added.stderr) == (0, True)
    assert core.heartbeat("ann", *((data_type, symbol) for data_type, symbol, _ in doubtful)) == len(doubtful)
    for row, (data_type, _, _) in zip(rows, doubtful, strict=True):
        assert judged(core, data_type, row.symbol) == [(row.symbol, "accepted")], "it is known now"


def test_b5_a_proposal_is_accepted(core: Core) -> None:
    """Anyone who does as the proposal says is not refused again."""
    asked = ["EURUSD", "BTC-USD", "118632", "TATASTEEL:BSE", "ASX:JSE", "AAPL", "EUR/USD"]
    types = [QUOTE, FX, COIN, NAV]
    rows = core.rows(
        JUDGED,
        types=[name for name in types for _ in asked],
        symbols=[symbol for _ in types for symbol in asked],
    )
    proposed = [row.proposal for row in rows if row.outcome == "refused" and row.proposal]
    assert len(proposed) > len(asked)
    for proposal in proposed:
        data_type, _, symbol = proposal.partition(":") if re.match("[a-z]", proposal) else (QUOTE, "", proposal)
        assert judged(core, data_type, symbol) == [(symbol, "accepted")]


def test_b5_an_ending_that_another_vendor_writes_otherwise_is_doubtful_with_a_proposal(core: Core) -> None:
    rows = core.rows(JUDGED, types=[QUOTE] * 3, symbols=["VOD.LN", "VOD.LSE", "AAPL.US"])
    assert [(row.outcome, row.proposal) for row in rows] == [
        ("doubtful", "VOD:XLON"),
        ("doubtful", "VOD:XLON"),
        ("doubtful", "AAPL"),
    ]


def test_b5_a_pair_that_is_written_at_length_keeps_no_other_from_being_renewed(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.rows("UPDATE pricing.active_subscriptions SET last_seen_at = last_seen_at - interval '4 minutes'")
    core.call(
        "SELECT pricing.heartbeat('ann', ARRAY[:type, :type], ARRAY['AAPL', :long])",
        type=QUOTE,
        long=" " * 900 + "VOD.L",
    )
    old = "SELECT count(*) FROM pricing.active_subscriptions WHERE last_seen_at < pricing.clock() - interval '1 minute'"
    assert core.one(old) == 0


def test_b5_known_pairs_are_not_judged(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "VOD.L"), (FX, "EURUSD"))
    core.rows(
        "CREATE OR REPLACE FUNCTION pricing.read_symbol(asset_class text, given text, OUT symbol text, OUT doubt text,"
        " OUT fault text, OUT other_class text, OUT proposal text) LANGUAGE plpgsql"
        " AS $$ BEGIN RAISE EXCEPTION 'judged'; END $$"
    )
    assert core.heartbeat("ann", (QUOTE, "VOD:XLON"), (FX, "EUR/USD")) == 0
    assert core.heartbeat("bob", (QUOTE, "VOD:XLON"), (FX, "EUR/USD")) == 2
    assert core.hold("bob", (QUOTE, "VOD:XLON")) == 1
    with pytest.raises(DBAPIError, match="judged"):
        core.heartbeat("ann", (QUOTE, "VOD.L"))


def test_b5_an_instrument_is_found_by_its_identifiers(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, isin, figi) VALUES"
        " ('equity', 'RELIANCE:XNSE', 'INE002A01018', 'BBG000BLNNH6'), ('equity', 'VOD:XLON', 'GB00BH4HKS39', NULL),"
        " ('equity', 'VOD:XETR', 'GB00BH4HKS39', NULL)"
    )
    assert judged(core, QUOTE, "INE002A01018", "ine002a01018", " BBG000BLNNH6") == [("RELIANCE:XNSE", "accepted")] * 3
    (row,) = core.rows(JUDGED, types=[QUOTE], symbols=["GB00BH4HKS39"])
    assert (row.outcome, row.reason) == (
        "refused",
        "it is the number of several instruments: VOD:XETR, VOD:XLON",
    )
    (row,) = core.rows(JUDGED, types=[NAV], symbols=["INE002A01018"])
    assert (row.outcome, row.proposal) == ("refused", f"{QUOTE}:RELIANCE:XNSE")


def test_b5_check_digits(core: Core) -> None:
    # US0378331005 and AU0000XVGZA3 are in ISO 6166's public examples, BBG000BLNNH6 in the FIGI standard's.
    for right in ("US0378331005", "AU0000XVGZA3", "GB0002634946", "DE000BASF111", "XS0000000009"):
        taken = core.one(
            "SELECT array_agg(d) FROM generate_series(0, 9) d WHERE pricing.is_isin(:first || d)", first=right[:-1]
        )
        assert taken == [int(right[-1])]
    assert core.one("SELECT pricing.is_figi('BBG000BLNNH6')") is True
    assert core.one("SELECT pricing.is_figi('BBG000BLNNH7')") is False


def test_b5_coins_are_those_of_prices(core: Core) -> None:
    assert set(core.one("SELECT pricing.coins()")) == set(COINS)


def test_b5_an_identifier_is_given_to_an_instrument_and_leads_to_it(core: Core, cli: CommandLine) -> None:
    unknown = cli("instrument", "add", "GB00BH4HKS39", "--asset-class", "equity")
    assert "`pricing-pipeline instrument add SYMBOL --asset-class CLASS --isin GB00BH4HKS39`" in unknown.error
    core.heartbeat("ann", (QUOTE, "VOD.L"))
    added = cli("instrument", "add", "VOD LN", "--asset-class", "equity", "--isin", "GB00BH4HKS39")
    assert (
        added.stdout == "VOD:XLON was known already, and stays as before, but for an ISIN or FIGI that was not known.\n"
    )
    shown = cli("instrument", "show", "gb00bh4hks39", "--json").json["instruments"]
    assert [(one["symbol"], one["isin"]) for one in shown] == [("VOD:XLON", "GB00BH4HKS39")]
    assert core.heartbeat("ann", (QUOTE, "GB00BH4HKS39")) == 0
    wrong = cli("instrument", "add", "AAPL", "--asset-class", "equity", "--isin", "US0378331006")
    assert "'US0378331006' is not a valid ISIN: its form or its check digit is wrong" in wrong.error
    other = cli("instrument", "add", "VOD.L", "--asset-class", "equity", "--isin", "US0378331005")
    assert "`pricing-pipeline instrument change VOD:XLON --isin US0378331005` corrects it" in other.error
    changed = cli("instrument", "change", "VOD.L", "--isin", "US0378331005", "--json")
    assert changed.exit_code == 0
    assert judged(core, QUOTE, "US0378331005") == [("VOD:XLON", "accepted")]


def test_b5_twins_are_merged_with_the_histories_of_both(core: Core, cli: CommandLine) -> None:
    """What either had is there afterwards: each day once, each viewer and each holder; INTO's own where both had it."""
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, isin) VALUES"
        " ('equity', 'VOD.L', 'GB00BH4HKS39'), ('equity', 'VOD:XLON', NULL)"
    )
    core.heartbeat("ann", (QUOTE, "VOD.L"), (QUOTE, "VOD:XLON"), (QUOTE, "AAPL"))
    core.heartbeat("bob", (QUOTE, "VOD.L"))
    for holder in ("ann", "bob"):
        core.hold(holder, (DAILY, "VOD.L"))
    core.hold("ann", (DAILY, "VOD:XLON"))
    core.end_holding("ann", (DAILY, "VOD:XLON"))
    core.lift_limits()
    now = core.clock() - timedelta(seconds=30)
    for call in core.claim(max_calls=9):
        for symbol in call.symbols:
            if call.data_type == QUOTE and symbol != "AAPL":
                core.store(call, observation(symbol, "7.10" if symbol == "VOD.L" else "7.20", now))
        core.complete(call)
    core.rows(
        "INSERT INTO pricing.price_history SELECT (jsonb_populate_record(h, jsonb_build_object('observed_at',"
        " h.observed_at - interval '1 day'))).* FROM pricing.price_history h WHERE h.symbol = 'VOD.L'"
    )
    said = cli("instrument", "merge", "VOD.L", "VOD:XLON")
    assert "VOD.L is VOD:XLON now" in said.stdout
    assert "price_history: 1 moved; 1 dropped, because VOD:XLON has its own" in said.stdout
    assert "active_subscriptions: 1 moved; 1 dropped" in said.stdout
    history = core.rows(
        "SELECT symbol, amount FROM pricing.price_history WHERE symbol LIKE 'VOD%' ORDER BY observed_at"
    )
    assert [(row.symbol, row.amount % 100) for row in history] == [("VOD:XLON", 10), ("VOD:XLON", 20)]
    assert core.rows("SELECT user_id FROM pricing.active_subscriptions WHERE symbol = 'VOD:XLON' ORDER BY 1") == [
        ("ann",),
        ("bob",),
    ]
    held = core.rows("SELECT user_id FROM pricing.holdings WHERE symbol = 'VOD:XLON' AND status = 'active' ORDER BY 1")
    assert held == [("ann",), ("bob",)]
    tables = core.rows(
        "SELECT c.relname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE a.attname = 'symbol' AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
        " AND c.relnamespace = 'pricing'::regnamespace"
    )
    logs = {"api_call_queue", "stream_events", "price_events"}
    assert len(tables) > 30
    for (table,) in tables:
        if table not in logs:
            assert core.rows(f"SELECT FROM pricing.{table} WHERE symbol = 'VOD.L'") == [], table
    assert judged(core, QUOTE, "VOD.L", "VOD LN", "GB00BH4HKS39") == [("VOD:XLON", "accepted")] * 3


def test_b5_a_symbol_that_was_merged_leads_to_the_other_and_a_chain_to_its_end(core: Core, cli: CommandLine) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'FB'), ('equity', 'METX')")
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol, currency) VALUES ('equity', 'MVRS', 'USD')")
    assert cli("instrument", "merge", "FB", "MVRS").exit_code == 0
    assert cli("instrument", "merge", "MVRS", "METX").exit_code == 0
    assert judged(core, QUOTE, "FB", "fb", "MVRS") == [("METX", "accepted")] * 3
    assert core.heartbeat("ann", (QUOTE, "FB")) == 1
    assert core.rows("SELECT symbol, currency FROM pricing.instruments WHERE symbol IN ('FB', 'MVRS', 'METX')") == [
        ("METX", "USD")
    ]


def test_b5_a_merged_symbol_leads_to_the_other_in_every_spelling(core: Core, cli: CommandLine) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'FB'), ('equity', 'OLD:XLON')")
    assert cli("instrument", "merge", "FB", "METX").exit_code == 0
    assert cli("instrument", "merge", "OLD:XLON", "NEW:XLON").exit_code == 0
    for spelling, symbol in [
        ("FB US", "METX"),
        ("NASDAQ:FB", "METX"),
        ("OLD.L", "NEW:XLON"),
        ("LON:OLD", "NEW:XLON"),
    ]:
        assert judged(core, QUOTE, spelling) == [(symbol, "accepted")]


def test_b5_a_merged_history_has_one_value_of_a_time_whenever_it_is_read(core: Core, cli: CommandLine) -> None:
    """INTO's days stay as they were believed at each moment; the other one's days come with all their revisions."""
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'VOD.L'), ('equity', 'VOD:XLON')"
    )
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider, call_id,"
        f" fetched_at) VALUES ('{DAILY}', 'VOD.L', '2020-01-06Z', 102, 2, 'fmp', 1, '2020-01-20Z'),"
        f" ('{DAILY}', 'VOD.L', '2020-01-07Z', 112, 2, 'fmp', 1, '2020-01-20Z'),"
        f" ('{DAILY}', 'VOD.L', '2019-12-02Z', 90, 2, 'fmp', 1, '2020-01-20Z'),"
        f" ('{DAILY}', 'VOD:XLON', '2020-01-06Z', 200, 2, 'fmp', 1, '2020-01-07Z')"
    )
    core.rows(
        "INSERT INTO pricing.price_revisions (data_type, symbol, observed_at, amount, scale, provider, call_id,"
        " recorded_at, revised_at, revised_by)"
        f" VALUES ('{DAILY}', 'VOD.L', '2020-01-06Z', 101, 2, 'fmp', 1, '2020-01-08Z', '2020-01-20Z', 2),"
        f" ('{DAILY}', 'VOD.L', '2020-01-07Z', 111, 2, 'fmp', 1, '2020-01-08Z', '2020-01-20Z', 2)"
    )
    december = "'{[2019-12-01,2020-01-01)}'"
    core.rows(f"INSERT INTO pricing.moved_days VALUES ('{DAILY}', 'VOD:XLON', {december}, {december})")
    core.rows(
        "INSERT INTO pricing.exported_months (data_type, month, versions, changes, file_bytes, sha256, exported_at,"
        " price_whole, price_decimals, volume_whole, volume_decimals)"
        f" VALUES ('{DAILY}', '2020-01-01', 5, 0, 1, repeat('0', 64), pricing.clock(), 12, 6, 18, 0)"
    )
    said = cli("instrument", "merge", "VOD.L", "VOD:XLON")
    assert "price_history: 1 moved; 2 dropped" in said.stdout
    assert "price_revisions: 1 moved; 1 dropped" in said.stdout

    def believed(moment: str) -> list[int]:
        return [
            row.amount
            for row in core.rows(
                f"SELECT amount FROM pricing.prices_as_of('{DAILY}', 'VOD:XLON', '2020-01-01', '2020-01-31',"
                " CAST(:moment AS timestamptz)) ORDER BY observed_at",
                moment=moment,
            )
        ]

    assert [believed(moment) for moment in ("2020-01-07 12:00Z", "2020-01-10Z", "2020-02-01Z")] == [
        [200],
        [200, 111],
        [200, 112],
    ]
    assert core.one("SELECT min(observed_at) >= '2020-01-01Z' FROM pricing.price_history WHERE symbol = 'VOD:XLON'"), (
        "a day whose value is in a file has that value"
    )
    assert core.one(f"SELECT is_due FROM pricing.exports('{DAILY}', '2020-01-01', '2020-01-01')"), "it names VOD.L"


def test_b5_a_merge_looks_each_value_up_once(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'VOD.L'), ('equity', 'VOD:XLON')"
    )
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider, call_id,"
        f" fetched_at) SELECT '{DAILY}', s, '2000-01-01Z'::timestamptz + n * interval '1 day', 1, 2, 'fmp', 1, now()"
        " FROM generate_series(1, 300) AS n, unnest(ARRAY['VOD.L', 'VOD:XLON']) AS s WHERE s = 'VOD.L' OR n % 2 = 0"
    )
    with core.owner.begin() as connection:
        before = rows_read(connection)
        merged = connection.execute(text("SELECT * FROM pricing.merge_instruments('equity', 'VOD.L', 'VOD:XLON')"))
        assert merged.all() == [("price_history", 150, 150)]
        assert rows_read(connection) - before < 6_000


def test_b5_a_merge_keeps_the_newer_price_and_what_is_active(core: Core, cli: CommandLine) -> None:
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, is_active) VALUES ('equity', 'VOD.L', true),"
        " ('equity', 'VOD:XLON', false), ('equity', 'A:XLON', true), ('equity', 'B:XLON', true)"
    )
    core.rows(
        "INSERT INTO pricing.latest_prices (data_type, symbol, amount, scale, observed_at, fetched_at, provider,"
        " call_id, source_text, cache_ttl_minutes)"
        " SELECT :type, v.symbol, v.amount, 2, pricing.clock() - v.age, pricing.clock() - v.age, 'fmp', 1, '1', v.ttl"
        " FROM (VALUES ('VOD.L', 720, interval '1 minute', 3), ('VOD:XLON', 710, interval '1 month', 7),"
        " ('A:XLON', 1, interval '1 hour', NULL), ('B:XLON', 2, interval '1 minute', NULL)) AS v"
        " (symbol, amount, age, ttl)",
        type=QUOTE,
    )
    core.heartbeat("ann", (QUOTE, "VOD.L"))
    assert cli("instrument", "merge", "VOD.L", "VOD:XLON").exit_code == 0
    assert cli("instrument", "merge", "A:XLON", "B:XLON").exit_code == 0
    assert core.rows("SELECT symbol, amount, cache_ttl_minutes FROM pricing.latest_prices ORDER BY 1") == [
        ("B:XLON", 2, None),
        ("VOD:XLON", 720, 7),
    ]
    assert core.one("SELECT is_active FROM pricing.instruments WHERE symbol = 'VOD:XLON'"), "ann watches it"


def test_b5_what_cannot_be_merged_stays_as_it_was_and_the_way_out_is_said(core: Core, cli: CommandLine) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'A.L'), ('equity', 'A:XLON')")
    days = "'{[2020-01-01,2020-02-01)}'"
    core.rows(f"INSERT INTO pricing.moved_days VALUES ('{DAILY}', 'A.L', {days}, {days})")
    assert (
        "`pricing-pipeline instrument merge A:XLON A.L`. Nothing" in cli("instrument", "merge", "A.L", "A:XLON").error
    )
    assert "It has to keep its name. Nothing" in cli("instrument", "merge", "A.L", "ANEW:XLON").error
    core.rows(f"INSERT INTO pricing.moved_days VALUES ('{DAILY}', 'A:XLON', {days}, {days})")
    assert "`pricing-pipeline instrument pause A.L` stops" in cli("instrument", "merge", "A.L", "A:XLON").error
    core.rows("DELETE FROM pricing.moved_days WHERE symbol = 'A:XLON'")
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider, call_id,"
        f" fetched_at, adjustment) VALUES ('{DAILY}', 'A.L', '2021-01-06Z', 1, 2, 'fmp', 1, '2021-01-20Z', 'raw'),"
        f" ('{DAILY}', 'A:XLON', '2021-01-07Z', 1, 2, 'fmp', 1, '2021-01-20Z', 'splits')"
    )
    assert "one history has one basis" in cli("instrument", "merge", "A:XLON", "A.L").error
    core.rows("UPDATE pricing.price_history SET adjustment = 'raw'")
    assert core.rows(
        "SELECT symbol, update_mode FROM pricing.instruments WHERE symbol LIKE 'A%' AND symbol <> 'AAPL' ORDER BY 1"
    ) == [("A.L", "api"), ("A:XLON", "api")]
    assert cli("instrument", "merge", "A:XLON", "A.L").exit_code == 0, "as it was told"
    assert judged(core, QUOTE, "A LN") == [("A.L", "accepted")]


def test_b5_what_are_two_instruments_is_not_merged(core: Core, cli: CommandLine) -> None:
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, currency)"
        " VALUES ('equity', 'IBM:XETR', 'EUR'), ('equity', 'IBM:XNYS', 'USD')"
    )
    assert "in EUR and those of IBM:XNYS in USD" in cli("instrument", "merge", "IBM:XETR", "IBM:XNYS").error
    assert "is one instrument already" in cli("instrument", "merge", "AAPL", "AAPL").error
    core.rows("UPDATE pricing.instruments SET isin = 'US0378331005' WHERE symbol = 'AAPL'")
    assert "is one instrument already" in cli("instrument", "merge", "AAPL", "US0378331005").error
    assert "no instrument is called NOPE" in cli("instrument", "merge", "NOPE", "AAPL").error
    assert "AAPL is not a symbol of fx_rate" in cli("instrument", "merge", "EUR/USD", "AAPL").error


def test_b5_an_instrument_of_another_spelling_or_ticker_is_renamed(core: Core, cli: CommandLine) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol, name) VALUES ('equity', 'VOD.L', 'Vodafone')")
    core.heartbeat("ann", (QUOTE, "VOD:XLON"))
    assert core.one("SELECT symbol FROM pricing.active_subscriptions") == "VOD.L", "it is known so"
    assert cli("instrument", "merge", "VOD.L", "VOD LN").exit_code == 0
    (row,) = core.rows("SELECT symbol, name, update_mode FROM pricing.instruments WHERE symbol LIKE 'VOD%'")
    assert tuple(row) == ("VOD:XLON", "Vodafone", "api")
    assert core.one("SELECT symbol FROM pricing.active_subscriptions") == "VOD:XLON"
    assert core.statuses().get("VOD:XLON") is None
    core.enqueue_due()
    assert core.statuses()["VOD:XLON"] == "pending", "it is fetched under its new name"
    assert core.heartbeat("ann", (QUOTE, "VOD.L")) == 0


def test_b5_reads_find_an_instrument_by_any_spelling(core: Core, api: RunningApi, cli: CommandLine) -> None:
    core.heartbeat("ann", (QUOTE, "VOD:XLON"), (FX, "EUR/USD"))
    caller = api.caller(Scope.READ)
    read = caller.get("prices", symbols="VOD.L,LON:VOD,EURUSD,VOD:XLON")
    assert {pair["symbol"] for pair in read["missing"]} == {"VOD:XLON", "EUR/USD"}
    assert "unknown_symbol" not in {pair["why"]["state"] for pair in read["missing"]}
    for path in ("VOD.L", "VOD%20LN", "VOD:LSE"):
        assert [one["symbol"] for one in caller.get(f"instruments/{path}")["instruments"]] == ["VOD:XLON"]
    assert caller.get(f"history/{DAILY}/VOD.L")["symbol"] == "VOD:XLON"
    assert {reason["symbol"] for reason in caller.get("why", symbols="vod.l")["reasons"]} == {"VOD:XLON"}
    assert cli("instrument", "pause", "VOD LN").exit_code == 0
    assert core.one("SELECT update_mode FROM pricing.instruments WHERE symbol = 'VOD:XLON'") == "manual"
    assert core.unsubscribe("ann", (QUOTE, "VOD.L"), (FX, "EURUSD=X")) == 2
