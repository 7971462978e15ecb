"""C4: how UEX is asked, and what its answers mean; recorded ones where they are at hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.commodities import CommodityPrice, TerminalPrices
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import KeyRefused, ProviderDown, RequestRefused, SchemaDrift, Throttled
from pricing_pipeline.providers.base import Question, check_answer
from pricing_pipeline.providers.uex import Uex
from pricing_pipeline.providers.uex_lists import ALL_PRICES, COMMODITIES, GAME_VERSIONS, TERMINALS

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
RECORDED = Path(__file__).parents[3] / "shared" / "fixtures" / "uex"
with_recordings = pytest.mark.skipif(not RECORDED.is_dir(), reason="recorded answers of UEX are not at hand")


def response(data: object, status: int = 200, reason: str = "ok", **headers: str) -> Response:
    body = {"status": reason, "http_code": status, "message": "", "data": data}
    return sent(json.dumps(body).encode(), status, **headers)


def sent(body: bytes, status: int = 200, **headers: str) -> Response:
    return Response(status, {name.replace("_", "-"): text for name, text in headers.items()}, body, len(body))


def recorded(name: str) -> Response:
    return sent((RECORDED / f"{name}.json").read_bytes())


def row(**changes: Any) -> dict[str, object]:
    return {
        "id_terminal": 12,
        "id_commodity": 33,
        "commodity_name": "Gold",
        "commodity_code": "GOLD",
        "commodity_slug": "gold",
        "terminal_name": "TDD Area 18",
        "terminal_code": "TDA18",
        "price_buy": 0,
        "price_sell": 6173,
        "scu_buy": 0,
        "scu_sell": 1206,
        "status_buy": 0,
        "status_sell": 4,
        "game_version": "4.1",
        "date_modified": 1743708993,
        **changes,
    }


def parse(answer: Response, *symbols: str) -> Answer:
    asked = symbols or ("12",)
    return check_answer("uex", asked, Uex().parse(Question(Fetcher.TERMINAL_PRICES, asked, None, NOW), answer))


def only(answer: Answer) -> CommodityPrice:
    (record,) = answer.records
    assert isinstance(record, TerminalPrices)
    (price,) = record.prices
    return price


def test_c4_terminals_are_asked_by_their_numbers_and_the_key_is_a_bearer() -> None:
    request = Uex().build(Question(Fetcher.TERMINAL_PRICES, ["12", "89"], None, NOW))
    assert (request.path, request.params) == ("/commodities_prices", (("id_terminal", "12,89"),))
    assert Uex().authorize("secret") == {"Authorization": "Bearer secret"}
    assert (Uex().spell("UEX:12", "commodity"), Uex().spell("UEX:12", "equity")) == ("12", "UEX:12")


def test_c4_zero_is_not_traded() -> None:
    price = only(parse(response([row()])))
    assert price == CommodityPrice(
        33,
        "Gold",
        "GOLD",
        "gold",
        None,
        6173,
        None,
        1206,
        "4.1",
        datetime(2025, 4, 3, 19, 36, 33, tzinfo=UTC),
    )
    nothing = only(parse(response([row(price_sell=0)])))
    assert (nothing.buy, nothing.sell, nothing.stock, nothing.demand) == (None, None, None, None)


@pytest.mark.parametrize(
    ("changes", "stock", "demand"),
    [
        ({"price_buy": 5, "scu_buy": 0, "status_buy": 1}, 0, 1206),
        ({"price_buy": 5, "scu_buy": 0, "status_buy": 4}, None, 1206),
        ({"scu_sell": 0, "status_sell": 7}, None, 0),
        ({"scu_sell": 0, "status_sell": 1}, None, None),
    ],
    ids=["out of stock", "not counted", "full", "demand not counted"],
)
def test_c4_an_amount_of_zero_counts_only_where_the_state_of_the_stock_says_so(
    changes: dict[str, object], stock: int | None, demand: int | None
) -> None:
    price = only(parse(response([row(**changes)])))
    assert (price.stock, price.demand) == (stock, demand)


@pytest.mark.parametrize("price", ["0.37", "12.5", "1.01999998", "6173.00", "100"])
def test_c4_a_price_with_a_fraction_is_read_at_its_scale(price: str) -> None:
    body = json.dumps({"status": "ok", "data": [row(price_sell="@@")]}).replace('"@@"', price)
    assert only(parse(sent(body.encode()))).sell == Decimal(price)
    assert only(parse(response([row(price_sell=price)]))).sell == Decimal(price)


def test_c4_each_quality_of_a_commodity_is_a_price_of_its_own() -> None:
    rows = [
        row(),
        row(quality=500, price_sell=7000),
        row(quality="500.0", price_sell=7000),
        row(quality=0, price_sell=5000),
        row(quality="Pure", price_sell=9000),
        row(quality=900, price_sell=1),
        row(quality=900, price_sell=2),
    ]
    (record,) = (answer := parse(response(rows))).records
    assert isinstance(record, TerminalPrices)
    assert {price.quality: price.sell for price in record.prices} == {
        "": 6173,
        "0": 5000,
        "500": 7000,
        "Pure": 9000,
    }
    (twice,) = answer.rejected
    assert "commodity 33 of quality 900 is listed 2 times" in twice.reason


def test_c4_two_spaces_in_a_name_stay_two() -> None:
    names = {"commodity_name": "Foo  Bar", "terminal_name": "Reclamation  Disposal\nOrinth "}
    (record,) = parse(response([row(**names)])).records
    assert isinstance(record, TerminalPrices)
    assert (record.prices[0].name, record.name) == ("Foo  Bar", "Reclamation  Disposal Orinth")
    listed = {"id": 1, "name": "Foo  Bar", "type": "commodity", "is_available": 1, "date_modified": 0}
    assert [one.name for one in TERMINALS.read(response([listed]), NOW).rows] == ["Foo  Bar"]
    assert [one.name for one in COMMODITIES.read(response([listed]), NOW).rows] == ["Foo  Bar"]


def test_c4_a_time_of_zero_is_never() -> None:
    assert only(parse(response([row(date_modified=0)]))).modified_at is None


@pytest.mark.parametrize(
    "changes",
    [
        {"price_sell": -1},
        {"price_sell": 10**16},
        {"price_sell": None},
        {"price_sell": "x"},
        {"price_sell": True},
        {"scu_sell": 0.5},
        {"quality": True},
        {"date_modified": 1_900_000_000},
        {"date_modified": "soon"},
        {"id_commodity": 0},
        {"commodity_name": " "},
    ],
    ids=str,
)
def test_b18_a_bad_row_costs_no_other_and_then_nothing_counts_as_gone(changes: dict[str, object]) -> None:
    rows = [row(id_commodity=2, commodity_name="Iron"), row(**changes)]
    answer = parse(response(rows))
    (record,) = answer.records
    assert isinstance(record, TerminalPrices)
    assert ([price.commodity_id for price in record.prices], record.is_whole) == ([2], False)
    assert len(answer.rejected) == 1
    alone = parse(response([row(**changes)]))
    assert alone.records == ()
    assert next(failure.kind for failure in alone.failures) in (
        FailureKind.IMPLAUSIBLE,
        FailureKind.SCHEMA_DRIFT,
    )


def test_b18_a_commodity_that_is_listed_twice_is_believed_only_if_both_agree() -> None:
    assert only(parse(response([row(), row()]))).sell == 6173
    answer = parse(response([row(), row(price_sell=1)]))
    assert (answer.records, answer.failures[0].kind) == ((), FailureKind.IMPLAUSIBLE)


def test_b8_a_terminal_without_rows_is_empty_unless_rows_of_others_came() -> None:
    assert parse(response([row()]), "12", "89").empty == {"89"}
    answer = parse(response([row(), row(id_terminal=7)]), "12", "89")
    assert ([one.symbol for one in answer.failures], answer.empty) == (["89"], frozenset())
    assert [record.symbol for record in answer.records] == ["12"]


@pytest.mark.parametrize("reason", ["not_found", "terminal_not_found", "no_prices_found", "nothing_found"])
def test_c4_a_refusal_that_says_that_nothing_was_found_is_an_empty_answer(reason: str) -> None:
    assert parse(response(None, 400, reason)).empty == {"12"}
    with pytest.raises(SchemaDrift):  # the path itself is gone
        parse(response(None, 404, reason))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (response(None, 400, "requires_id_category_or_id_company_or_uuid"), RequestRefused),
        (response(None, 400, "missing_id_terminal_origin"), RequestRefused),
        (response(None, 400, "invalid_token"), KeyRefused),
        (response(None, 401, "user_not_authenticated"), KeyRefused),
        (response(None, 200, "requests_limit_reached"), Throttled),
        (response(None, 429, "requests_limit_reached", retry_after="2"), Throttled),
        (response(None, 500, "error"), ProviderDown),
        (response({"live": "4.1"}), SchemaDrift),
        (sent(b"[]"), SchemaDrift),
        (sent(b"<html>", 503), ProviderDown),
    ],
    ids=str,
)
def test_b18_refusals_say_what_is_wrong(answer: Response, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse(answer)


# --- recorded answers ---------------------------------------------------------------------------


@with_recordings
def test_c4_recorded_prices_of_a_terminal() -> None:
    answer = parse(recorded("commodities_prices_id_terminal"), "74")
    (record,) = answer.records
    assert isinstance(record, TerminalPrices)
    assert (record.name, record.code, record.is_whole) == ("Reclamation and Disposal Orinth", "RECLA", True)
    found = {price.code: (price.buy, price.sell, price.stock, price.demand) for price in record.prices}
    assert len(found) == 10
    assert found["MEDS"] == (None, 2640, None, None)
    assert found["GAWE"] == (None, 22798, None, 35)
    assert {price.game_version for price in record.prices} == {"4.1"}
    assert parse(recorded("commodities_prices_unknown_slug_empty200"), "74").empty == {"74"}


@with_recordings
def test_c4_recorded_lists() -> None:
    assert GAME_VERSIONS.read(recorded("game_versions"), NOW).live == "4.1"
    terminals = TERMINALS.read(recorded("terminals_list"), NOW)
    assert (len(terminals.rows), terminals.faults) == (10, [])
    first = terminals.rows[0]
    assert (first.symbol, first.code, first.name, first.modified_at) == (
        "UEX:1",
        "ARCL1",
        "Admin - ARC-L1",
        None,
    )
    assert (first.system, first.planet, first.place) == ("Stanton", "ArcCorp", "ARC-L1 Wide Forest Station")
    older = TERMINALS.read(recorded("terminals_id_star_system_68_full"), NOW)
    assert (len(older.rows), older.faults) == (114, []), "shops and hangars trade no commodities"
    prices = ALL_PRICES.read(recorded("commodities_prices_all"), NOW)
    assert (sum(len(one.prices) for one in prices.rows), prices.faults) == (10, [])
    aluminum = next(price for price in prices.rows[0].prices if price.name == "Aluminum")
    assert (aluminum.sell, aluminum.code, aluminum.game_version) == (291, None, None)
    for name in ("error_400_requires_id", "error_400_missing_id_terminal_origin"):
        with pytest.raises(RequestRefused):
            parse(sent((RECORDED / f"{name}.json").read_bytes(), 400))


def test_b8_a_bad_row_of_a_list_is_told_and_costs_no_other() -> None:
    good = {"id": 1, "name": "Gold", "code": "GOLD", "slug": "gold", "kind": "Metal", "is_available": 1}
    listed = COMMODITIES.read(response([good, good | {"id": "x"}, {}]), NOW)
    assert [one.name for one in listed.rows] == ["Gold"]
    assert len(listed.faults) == 2
    for nothing in ([], [{}], None, {}):
        with pytest.raises(SchemaDrift):
            COMMODITIES.read(response(nothing), NOW)


def test_b8_what_a_list_has_twice_is_believed_only_if_both_agree() -> None:
    good = {"id": 1, "name": "Gold", "code": "GOLD", "slug": "gold", "kind": "Metal", "is_available": 1}
    other = good | {"id": 2, "name": "Iron"}
    listed = COMMODITIES.read(response([good, other, good, other | {"name": "Steel"}]), NOW)
    assert ([one.name for one in listed.rows], listed.faults) == (*(["Gold"], ["2 different rows have the number 2"]),)


@pytest.mark.parametrize("number", [None, "1", 0, 1.5])
def test_b18_after_a_price_without_a_terminal_no_list_of_a_terminal_is_whole(number: object) -> None:
    """Any of them may lack this one: what a terminal lacks would count as not traded there any more."""
    rows = [row(id_terminal=74), row(id_terminal=number, id_commodity=70)]
    listed = ALL_PRICES.read(response(rows), NOW)
    assert [(one.symbol, one.is_whole) for one in listed.rows] == [("UEX:74", False)]
    assert listed.faults == ["a price names no terminal"]
    assert ALL_PRICES.read(response(rows[:1]), NOW).rows[0].is_whole
