"""The operations page without a database: texts stay texts, charts stay in their frames, the verdict is true."""

from __future__ import annotations

import gc
import re
import tracemalloc
from collections import namedtuple
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.api.page import charts, documentation
from pricing_pipeline.api.page.reading import Provider, Quarantined, Quarter, Reading, WatchedPair
from pricing_pipeline.api.page.rendering import sections
from pricing_pipeline.api.page.verdict import State, judge
from pricing_pipeline.demand.backfills import Listed
from pricing_pipeline.demand.freshness import Freshness, Why
from pricing_pipeline.operations.health import Part
from pricing_pipeline.quarantine.opinions import Opinion
from pricing_pipeline.quarantine.quarantined_values import QuarantinedValue
from pricing_pipeline.queue.forecast import Forecast
from pricing_pipeline.queue.limits import ProviderState
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.hostile_texts import hostile_texts

NOW = datetime(2026, 11, 25, 3, 0, tzinfo=UTC)
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    [
        *hostile_texts("evil.example"),
        "\x1b[31mred\x1b[0m",
        "\u202egnp.exe",
        "\u2066\u2069\u200b",
        "x" * 5_000,
        "'\"><script>alert(1)</script>",
        "' autofocus onfocus='alert(1)",
        "{{ 7 * 7 }}",
    ]
)


def row(**fields: Any) -> Any:
    return namedtuple("Row", fields)(**fields)  # type: ignore[misc]


def told(text: str) -> Reading:
    """A reading in which each text that others can write is this one."""
    value = QuarantinedValue(
        7, text, text, text, NOW, text, text, text, 3, NOW, NOW, 1, True, "quarantined", None, None, None,
        {"close": "7250", "currency": "USD", "adjustment": "raw"},
    )  # fmt: skip
    opinion = Opinion(text, 1, NOW, None, None, None, None, None, None, None, text)
    task = {
        "id": 1, "data_type": text, "symbol": text, "provider": text, "attempt": 4, "max_attempts": 4,
        "finished_at": NOW, "failure_kind": text, "window_start": None, "window_end": None,
        "last_error": text,
        "status": "pending", "enqueued_at": NOW, "run_after": None,
    }  # fmt: skip
    group = {
        "ids": [1], "tasks": 1, "symbols": [text], "symbol_count": 1, "data_type": text, "provider": text,
        "failure_kind": text, "attempt": 4, "max_attempts": 4, "finished_at": NOW, "last_error": text,
        "window_start": None, "window_end": None, "total": 4, "troubled": 1, "groups": 2,
    }  # fmt: skip
    recipient = {
        "operation_type": text, "recipient": "r" + text, "since": NOW, "failures": 3, "last_error": text,
        "is_dead": True, "breaker_until": None, "waiting": 2, "total": 1,
    }  # fmt: skip
    operation = {
        "id": 1, "operation_type": text, "status": "failed", "recipient": "r" + text, "title": "t" + text, "attempt": 5,
        "max_attempts": 5, "enqueued_at": NOW, "due_at": NOW, "finished_at": NOW, "last_error": text, "total": 1,
    }  # fmt: skip
    live_task = {
        "provider": text or "p", "data_type": text, "pending": 1, "processing": 0, "scheduled": 0, "watched": 1,
        "oldest_at": NOW,
    }  # fmt: skip
    alert = {
        "alert_id": 1, "rule": text, "subject": "twelvedata", "severity": "P1", "says": text, "since": NOW,
        "acknowledged_at": NOW, "acknowledged_by": text, "silenced_until": None, "place": None,
    }  # fmt: skip
    return Reading(
        at=NOW,
        types=[Freshness(text, 1, 2, 2, 1, 0, 1, 0, 0, 0, 0, 0, NOW)],
        quarters={text: [Quarter(NOW - timedelta(hours=1), 0.5, 1)]},
        late_pairs=[Why(text, text, text, text, NOW, NOW, NOW, NOW)],
        watched=[WatchedPair(text, text, text, 2, text, Decimal("1E-8"), "c" + text, NOW)],
        watched_count=1,
        providers=[
            Provider(
                ProviderState(text, text, text, NOW, text, 100, 40, True, [], 1, 8, 1.0, text, [], text, 1.0, text, 0),
                Forecast(text, 100, 40, 1, 5, 1, 1.0, 0.0, "wanted", 1.0, "ends", 1.0, NOW, NOW, NOW, 2.0, 3.0),
                [(date(2026, 11, 25), 5)],
            )
        ],
        live_tasks=[row(**live_task)],
        failing_tasks=[row(**task)],
        dead_tasks=[row(**group), row(**group | {"ids": [2, 3, 4], "tasks": 3, "symbols": [text, text]})],
        alerts=[alert],
        operations=[row(**operation)],
        failing_recipients=[row(**recipient)],
        quarantined=[Quarantined(value, [(NOW, Decimal(1)), (NOW, Decimal(2))], [opinion], [7])],
        quarantined_count=1,
        backfills=[
            Listed(
                "3f9c", text, date(2010, 1, 1), date(2010, 2, 1), [text], text, NOW, None, None, {}, 5, 2, 1, 0, 2
            )  # type: ignore[arg-type]
        ],
        late_parts=[Part("queue", True, NOW, text)],
        no_provider=None,
    )  # fmt: skip


class Shape(HTMLParser):
    """The elements of a page and the names of their attributes; what is said in them is `words`."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if (tag, attrs) == ("code", []):
            return  # what stands between backquotes is set as code; nothing else follows from that
        # A long text has its whole in a title; that is the only attribute that comes and goes.
        self.elements.append((tag, tuple(name for name, _ in attrs if (tag, name) != ("bdi", "title"))))
        self.words += [value or "" for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def test_g8_a_type_links_to_its_asset_under_the_prefix() -> None:
    html = sections(told("plain"), ui_url="http://ui.example", asset_prefix="eu/prices", may_operate=True)
    assert "http://ui.example/assets/eu/prices/latest_price/" in html
    assert "http://ui.example/assets/latest_price/" not in html


PLAIN = Shape(sections(told("plain"), ui_url="http://ui.example", may_operate=True))


@settings(max_examples=examples(60))
@given(ANY_TEXT.filter(str.strip))
def test_b18_texts_of_others_change_no_element_of_the_page(text: str) -> None:
    shape = Shape(sections(told(text), ui_url="http://ui.example", may_operate=True))
    assert shape.elements == PLAIN.elements


@settings(max_examples=examples(60))
@given(ANY_TEXT)
def test_b18_no_text_of_others_steers_a_reader_or_fills_the_page(text: str) -> None:
    html = sections(told(text), ui_url=None, may_operate=True)
    # Names of data types and the like have been checked before they are ids and addresses here.
    seen = re.sub(r'\b(id|data-content)="[^"]*"', "", html)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", seen)
    assert len(html) < 400_000


def test_nothing_on_the_page_runs_or_comes_from_elsewhere() -> None:
    html = sections(told("plain"), ui_url=None, may_operate=True)
    assert not re.search(r"<script|<style|\sstyle=|\son[a-z]+=|https?://|<iframe|<form", html)


@given(st.booleans())
def test_buttons_are_for_those_who_may_use_them(may_operate: bool) -> None:
    html = sections(told("plain"), ui_url=None, may_operate=may_operate)
    assert ("<button" in html) == may_operate
    assert ("data-post" in html) == may_operate


def test_f6_a_level_is_released_from_the_page_while_one_request_can_name_its_values() -> None:
    reading = told("plain")
    for count, is_offered in ((1, False), (2, True), (1000, True), (1001, False)):
        level = replace(reading.quarantined[0], level=list(range(7, 7 + count)))
        html = sections(replace(reading, quarantined=[level]), ui_url=None, may_operate=True)
        assert (f"Release all {count}" in html) == is_offered
        assert ("quarantine release 7 --level" in html) == (count > 1000)


CALM = replace(
    told("plain"),
    types=[Freshness("plain", 1, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, NOW)],
    late_pairs=[], dead_tasks=[], failing_tasks=[], alerts=[], operations=[],
    failing_recipients=[], quarantined=[], quarantined_count=0,
    backfills=[], providers=[], live_tasks=[], late_parts=[],
)  # fmt: skip


def test_b23_all_is_well_is_said_only_when_it_is() -> None:
    verdict = judge(CALM)
    assert (verdict.state, verdict.words) == (State.WELL, "All is well. All 2 watched prices are fresh.")
    ill = told("plain")
    unheard = {"acknowledged_at": None, "silenced_until": None}
    troubles: list[tuple[State, dict[str, Any]]] = [
        (State.ILL, {"types": ill.types}),
        (State.ILL, {"alerts": [{**ill.alerts[0], **unheard}]}),
        (State.WAITS, {"alerts": [{**ill.alerts[0], **unheard, "severity": "P2"}]}),
        (State.ILL, {"late_parts": [Part("daemon", True, NOW, "Dagster's daemon has ticked no sensor yet")]}),
        (State.ILL, {"late_parts": [Part("database", True, None, None)]}),
        (State.WAITS, {"providers": ill.providers}),
        (
            State.WAITS,
            {"no_provider": "no provider is in use: choose one with `pricing-pipeline provider use NAME`"},
        ),
        (State.WAITS, {"quarantined_count": 1}),
        (State.WAITS, {"dead_tasks": ill.dead_tasks}),
        (State.WAITS, {"dead_tasks": [ill.dead_tasks[0]._replace(troubled=0)]}),  # type: ignore[attr-defined]
        (State.WAITS, {"types": [replace(CALM.types[0], fresh=1, refused=1)]}),
        (State.WAITS, {"operations": ill.operations}),
        (State.WAITS, {"failing_recipients": [ill.failing_recipients[0]._replace(breaker_until=NOW)]}),  # type: ignore[attr-defined]
    ]
    for state, trouble in troubles:
        verdict = judge(replace(CALM, **trouble))
        assert verdict.state is state, trouble
        assert len(verdict.findings) == 1
        assert "All is well" not in verdict.words
        page = sections(replace(CALM, **trouble), ui_url=None, may_operate=False)
        assert f'<section id="{verdict.findings[0].section}"' in page, "the finding leads to a section"


def test_e4_equal_failures_are_one_row_and_one_click() -> None:
    (one, many), reading = told("plain").dead_tasks, told("plain")
    html = sections(replace(reading, dead_tasks=[one, many]), ui_url=None, may_operate=True)
    assert (html.count(">Retry all<"), html.count(">Forget all<")) == (1, 1)
    assert "3 tasks of <bdi>plain</bdi>" in html
    assert "[2, 3, 4]" in html
    verdict = judge(reading)
    assert "4 tasks have failed for good, 3 of them by their symbols" in {finding.words for finding in verdict.findings}
    # What one request cannot name is left to the command.
    too_many = many._replace(tasks=1001)  # type: ignore[attr-defined]
    html = sections(replace(reading, dead_tasks=[too_many]), ui_url=None, may_operate=True)
    assert "Retry all" not in html
    assert "task retry --all-failed --type plain" in html


def test_e8_recipients_that_are_not_reached_are_shown_to_those_who_may_know() -> None:
    recipient = told("plain").failing_recipients[0]._replace(breaker_until=NOW)  # type: ignore[attr-defined]
    reading = replace(CALM, failing_recipients=[recipient])
    assert "Messages wait for a recipient that is not reached" in judge(reading).words + str(judge(reading).findings)
    html = sections(reading, ui_url=None, may_operate=True)
    assert ("breaker open" in html, "2 messages wait" in html, "rplain" in html) == (True, True, True)
    assert "rplain" not in sections(reading, ui_url=None, may_operate=False)


def test_b23_the_headline_counts_what_is_refused() -> None:
    types = [replace(CALM.types[0], watched=13, fresh=8, refused=5)]
    verdict = judge(replace(CALM, types=types))
    assert verdict.words == (
        "8 of 13 watched prices are fresh, 5 are refused, and none is late. One point below needs attention."
    )
    assert [finding.words for finding in verdict.findings] == ["5 of 13 watched prices are refused"]


def test_b5_every_watched_pair_is_listed() -> None:
    pair = told("plain").watched[0]
    for count in (1, 20, 21, 500):
        watched = [replace(pair, symbol=f"S{number}") for number in range(count)]
        html = sections(replace(CALM, watched=watched, watched_count=count), ui_url=None, may_operate=False)
        assert all(f"<bdi>S{number}</bdi>" in html for number in range(count))
        assert ("<details" in html) == (count > 20)
        assert "subscription list" not in html
    html = sections(replace(CALM, watched=watched, watched_count=501), ui_url=None, may_operate=False)
    assert "And 1 more: <code>pricing-pipeline subscription list</code>" in html


def test_what_stops_a_provider_is_told_with_its_name() -> None:
    providers = told("plain").providers
    (finding,) = judge(replace(CALM, providers=providers)).findings
    assert finding.words.startswith(f"{providers[0].standing.provider}: ")


def test_an_alert_that_somebody_looks_after_makes_nobody_else_hurry() -> None:
    assert judge(replace(CALM, alerts=told("plain").alerts)).state is State.WELL


def test_b23_an_alert_that_nobody_has_heard_stands_before_any_number_of_others() -> None:
    heard = told("plain").alerts[0]
    unheard = {**heard, "alert_id": 99, "acknowledged_at": None}
    reading = replace(CALM, alerts=[*[{**heard, "alert_id": number} for number in range(30)], unheard])
    assert judge(reading).state is State.ILL
    html = sections(reading, ui_url=None, may_operate=False)
    rows = re.findall(r'id="alert-(\d+)"', html)
    assert (rows[0], len(rows)) == ("99", 20)
    assert "And 11 more: <code>pricing-pipeline alert list</code>" in html


@given(
    st.lists(
        st.builds(
            Quarter,
            st.integers(0, 200).map(lambda quarters: NOW - timedelta(minutes=15 * quarters)),
            st.none() | st.floats(0, 1),
            st.integers(0, 9),
        ),
        unique_by=lambda quarter: quarter.at,
    )
)
def test_charts_of_freshness_stay_in_their_frame(quarters: list[Quarter]) -> None:
    chart = charts.freshness_chart(sorted(quarters, key=lambda quarter: quarter.at), NOW)
    for x in re.findall(r"M(\d+),", chart.fresh + chart.late):
        assert 0 <= int(x) < 96
    for y in re.findall(r"V(\d+)|M\d+,(\d+)", chart.fresh):
        assert 0 <= int("".join(y)) <= 30
    known = [quarter.fresh for quarter in quarters if quarter.fresh is not None]
    assert chart.lowest == (min(known) if known else None)
    assert bool(chart.late) == any(quarter.late for quarter in quarters)


@given(
    st.lists(st.decimals("0.00000001", "99999999999", places=8), min_size=1, max_size=40),
    st.decimals("0.00000001", "99999999999", places=8),
    st.integers(0, 41),
)
def test_charts_of_quarantined_values_stay_in_their_frame(prices: list[Decimal], price: Decimal, place: int) -> None:
    quarantined = told("plain").quarantined[0]
    around = [(NOW + timedelta(minutes=number - place), stored) for number, stored in enumerate(prices)]
    value = replace(quarantined.value, bar={"close": str(price), "adjustment": "raw"})
    chart = charts.value_chart(replace(quarantined, value=value, around=around))
    assert chart is not None
    for x, y in [*chart.dots, (chart.x, chart.y)]:
        assert 0 <= x <= 120
        assert 0 <= y <= 40
    assert len({x for x, _ in chart.dots} | {chart.x}) == len(prices) + 1, "no two share a place"


def test_a_value_that_could_not_be_read_has_no_picture() -> None:
    quarantined = told("plain").quarantined[0]
    assert charts.value_chart(replace(quarantined, value=replace(quarantined.value, bar=None))) is None
    assert charts.value_chart(replace(quarantined, around=[])) is None


def test_b24_each_alert_has_its_section_in_the_runbook_that_the_page_serves() -> None:
    from pricing_pipeline.operations.alert_rules import RULES

    runbook = documentation.page("runbook")
    assert runbook is not None
    for rule in RULES:
        assert f'id="{rule.name}"' in runbook
    for name, heading in re.findall(
        r'href="/ops/docs/([a-z-]+)\.md#([a-z-]+)"', sections(told("plain"), ui_url=None, may_operate=True)
    ):
        if heading != "plain":
            assert f'id="{heading}"' in (documentation.page(name) or ""), heading


@pytest.mark.parametrize("name", ["nosuch", "../README", "images/x", "", "Runbook", "runbook.md", "x" * 300])
def test_no_other_file_is_served_as_documentation(name: str) -> None:
    assert documentation.page(name) is None


def test_b18_names_that_anybody_asks_for_are_not_kept() -> None:
    documentation.page("runbook")
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(500):
            assert documentation.page(f"{'x' * 200}-{number}") is None
        assert tracemalloc.get_traced_memory()[0] < 50_000
    finally:
        tracemalloc.stop()


def test_c1_pages_of_the_documentation_lead_to_each_other_wherever_they_lie() -> None:
    told = documentation.page("operations")
    assert told is not None
    names = re.findall(r'href="([^":#]+)\.md', told)
    assert {"runbook", "state-machine"} <= {*names}, "beside it, and in a folder below"
    assert [name for name in names if documentation.page(name) is None] == []
