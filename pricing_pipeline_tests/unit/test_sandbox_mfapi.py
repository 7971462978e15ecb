"""The sandbox's mfapi.in: the recorded shapes, and NAVs that are out when a business day is over."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from pricing_pipeline_tests.support.recordings import recorded_json
from pricing_pipeline_tests.support.sandbox_server import Asked, parsed


def test_latest_has_the_recorded_shape_and_scheme():
    ours, theirs = parsed(Asked().mfapi("mf/125497/latest")), recorded_json("mfapi", "mf_125497_latest.json")
    assert list(ours) == list(theirs)
    assert list(ours["meta"]) == list(theirs["meta"])
    for name in ("fund_house", "scheme_type", "scheme_category", "scheme_code", "scheme_name"):
        assert ours["meta"][name] == theirs["meta"][name]
    assert [list(row) for row in ours["data"]] == [["date", "nav"]]


def test_history_has_the_recorded_shape_and_scheme():
    code = "118632"
    ours, theirs = parsed(Asked().mfapi(f"mf/{code}")), recorded_json("mfapi", f"mf_{code}_full_history.json")
    assert set(ours) == set(theirs)
    assert ours["meta"].keys() == theirs["meta"].keys()
    assert ours["meta"]["scheme_name"] == theirs["meta"]["scheme_name"]
    assert ours["data"][0].keys() == theirs["data"][0].keys()
    assert len(ours["data"]) > 3000


@pytest.mark.parametrize("path", ["mf/99999999", "mf/99999999/latest"])
def test_an_unknown_scheme_is_a_success_without_data(path):
    reply = Asked().mfapi(path)
    assert (reply.status, parsed(reply)) == (200, recorded_json("mfapi", "mf_unknown_scheme_200_empty.json"))


@pytest.mark.parametrize("path", ["mf/abcdef/latest", "mf/12.5"])
def test_a_code_that_is_no_number_is_400(path):
    reply = Asked().mfapi(path)
    assert (reply.status, parsed(reply)) == (400, recorded_json("mfapi", "mf_invalid_code_400.json"))


def test_bulk_items_have_the_documented_shape():
    ours = parsed(Asked().mfapi("mf/latest", limit="2", offset="0"))
    assert len(ours) == 2
    assert list(ours[0]) == list(recorded_json("mfapi", "mf_latest_bulk_item_docs.json")[0])


def test_bulk_pages_follow_each_other_and_end():
    asked = Asked()
    first = parsed(asked.mfapi("mf/latest", limit="1000"))
    second = parsed(asked.mfapi("mf/latest", limit="1000", offset="1000"))
    codes = [item["schemeCode"] for item in first + second]
    assert codes == sorted(set(codes))
    assert {118632, 125497} <= set(codes) | {
        item["schemeCode"] for item in parsed(asked.mfapi("mf/latest", offset="2000"))
    }
    assert parsed(asked.mfapi("mf/latest", offset="50000")) == []


def test_bulk_and_single_answers_agree():
    asked = Asked()
    for item in parsed(asked.mfapi("mf/latest", limit="3", offset="600")):
        single = parsed(asked.mfapi(f"mf/{item['schemeCode']}/latest"))
        assert single["data"] == [{"date": item["date"], "nav": item["nav"]}]
        assert single["meta"]["scheme_name"] == item["schemeName"]


@pytest.mark.parametrize(
    ("now", "latest"),
    [
        ("2026-11-17T23:59:59+00:00", "16-11-2026"),  # Tuesday: Monday's
        ("2026-11-18T00:00:00+00:00", "17-11-2026"),  # Wednesday begins: Tuesday's is out
        ("2026-11-23T12:00:00+00:00", "20-11-2026"),  # Monday: still Friday's
    ],
)
def test_a_nav_is_out_at_midnight_utc_after_its_business_day(now, latest):
    asked = Asked(datetime.fromisoformat(now))
    assert parsed(asked.mfapi("mf/118632/latest"))["data"][0]["date"] == latest
    assert parsed(asked.mfapi("mf/118632"))["data"][0]["date"] == latest


def test_histories_are_newest_first_on_business_days_with_five_decimals():
    data = parsed(Asked().mfapi("mf/120841"))["data"]
    days = [datetime.strptime(row["date"], "%d-%m-%Y").replace(tzinfo=UTC).date() for row in data]
    assert days == sorted(days, reverse=True)
    assert all(day.weekday() < 5 for day in days)
    assert days[-1] == date(2013, 1, 2)
    assert all(len(row["nav"].partition(".")[2]) == 5 and row["nav"][-1] == "0" for row in data)
    assert len({row["nav"] for row in data}) > 1000


def test_windows_include_both_ends_and_may_be_empty():
    asked = Asked()
    data = parsed(asked.mfapi("mf/118632", startDate="2026-11-09", endDate="2026-11-11"))["data"]
    assert [row["date"] for row in data] == ["11-11-2026", "10-11-2026", "09-11-2026"]
    weekend = parsed(asked.mfapi("mf/118632", startDate="2026-11-14", endDate="2026-11-15"))
    assert (weekend["data"], weekend["status"]) == ([], "SUCCESS")
    assert weekend["meta"]["scheme_code"] == 118632
    assert asked.mfapi("mf/118632", startDate="09-11-2026").status == 400
    assert asked.mfapi("mf/latest", limit="-1").status == 400


@pytest.mark.parametrize("path", ["", "mf", "nav", "mf/118632/oldest", "mf/118632/latest/x"])
def test_other_paths_are_404(path):
    assert Asked().mfapi(path).status == 404


def test_before_the_first_nav_there_is_none():
    asked = Asked(datetime(2012, 6, 1, tzinfo=UTC))
    assert parsed(asked.mfapi("mf/118632/latest"))["data"] == []
    assert parsed(asked.mfapi("mf/latest", limit="5")) == []
