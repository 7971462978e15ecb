"""Folders of recordings: each reads as it is said to, and none that a stranger made does harm (B18).

`pricing_pipeline_tests/recordings` has answers that `provider record` wrote. `outcome` in their facts says what must
follow from them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.sandbox import recordings
from pricing_pipeline.sandbox.calls import ProviderCall, fields_of
from pricing_pipeline.sandbox.recordings import Recordings, recorded_files
from pricing_pipeline_tests.support.recordings import Replayed, replayed
from pricing_pipeline_tests.support.scripted_client import NOW

FOLDER = Path(__file__).parents[1] / "recordings"
RECORDED = replayed(FOLDER)


@pytest.mark.parametrize("recording", RECORDED, ids=lambda one: f"{one.provider}-{one.name}")
def test_b18_what_was_recorded_has_its_outcome(recording: Replayed) -> None:
    assert recording.outcome == recording.meta.get("outcome")


def test_b18_each_provider_has_a_recording_and_each_file_is_read() -> None:
    # Tests of slots and of commodities write their answers themselves.
    assert {one.provider for one in RECORDED} == PROVIDERS.keys() - {"octo", "headout", "uex"}
    assert len(list(FOLDER.rglob("*.*"))) == 2 * len(RECORDED)


# --- a folder from a stranger ----------------------------------------------------------------------

FACTS: dict[str, Any] = {
    "url_requested": "https://api.twelvedata.com/quote?symbol=AAPL&apikey=REDACTED",
    "http_status": 200,
    "headers": {"Content-Type": "application/json", "Api-Credits-Left": "7", "Set-Cookie": "a=b"},
}


def write(folder: Path, facts: object = None, body: bytes = b"{}", name: str = "x") -> Path:
    """A recording; returns the path of its facts."""
    place = folder / "twelvedata"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.json").write_bytes(body)
    meta = place / f"{name}.meta.json"
    meta.write_text(json.dumps(FACTS if facts is None else facts))
    return meta


def ask(folder: Path, **params: str) -> Any:
    call = ProviderCall("quote", params or {"symbol": "AAPL"}, ("AAPL",), None, NOW)
    return Recordings(folder).find("twelvedata", call)


def refused(folder: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        Recordings(folder)
    sentence = str(caught.value)
    assert sentence.startswith("the recording ")
    assert sentence.endswith(". Correct or remove it.")
    assert sentence.isprintable()
    return sentence


def test_b18_a_plain_recording_is_replayed_with_the_headers_that_matter(tmp_path: Path) -> None:
    write(tmp_path, body=b"[1]")
    reply = ask(tmp_path)
    assert (reply.status, reply.body, reply.content_type) == (200, b"[1]", "application/json")
    assert reply.headers == {"api-credits-left": "7"}
    assert ask(tmp_path, symbol="IBM") is None


def test_b18_a_recorded_post_is_replayed_to_a_post_with_the_same_fields(tmp_path: Path) -> None:
    sent = json.dumps({"productId": "OCT-1", "units": [{"id": "ADULT"}]})
    write(tmp_path, FACTS | {"url_requested": "https://x/quote", "method": "POST", "json": sent}, b"[1]")

    def find(method: str, **fields: str) -> Any:
        call = ProviderCall("quote", fields, (), None, NOW, method=method)
        return Recordings(tmp_path).find("twelvedata", call)

    same = fields_of(sent)
    assert find("POST", **same).body == b"[1]"
    assert find("POST", **same | {"productId": "OCT-2"}) is None
    assert find("POST", **same | {"units": "[]"}) is None
    assert find("GET", **same) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "PUT"}, "method: Input should be 'GET' or 'POST'"),
        ({"method": "POST", "json": {"a": 1}}, "json: Input should be a valid string"),
        ({"http_status": 99}, "http_status: Input should be greater than or equal to 200"),
        ({"http_status": "200"}, "http_status: Input should be a valid integer"),
        ({"url_requested": 5}, "url_requested: Input should be a valid string"),
        ({"asked_path": 5}, "asked_path: Input should be a valid string"),
        ({"url_requested": "https://[x/quote"}, "Invalid IPv6 URL"),
        ({"headers": ["a"]}, "headers: Input should be a valid dictionary"),
        ({"headers": {"Retry-After": "1\r\nSet-Cookie: a=b"}}, "no header can carry"),
        ({"headers": {"RateLimit\r\nX": "1"}}, "no header can carry"),
        ({"headers": {"Content-Type": "x" * 1001}}, "no header can carry"),
    ],
)
def test_b18_facts_that_are_no_request_or_answer_are_refused(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    write(tmp_path, FACTS | change)
    assert words in refused(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "Expecting value"),
        (b"[]", "its facts are no JSON object"),
        (b"[" * 30_000, "recursion"),
        (b'{"a": "\xff"}', "decode"),
    ],
)
def test_b18_facts_that_are_no_json_object_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    write(tmp_path).write_bytes(content)
    assert words in refused(tmp_path)


def test_b18_the_files_of_a_folder_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, body=b" " * 600)
    write(tmp_path, body=b" " * 600, name="y")
    assert len(list(recorded_files(tmp_path))) == 2
    monkeypatch.setattr(recordings, "MOST_BYTES", 1000)
    assert "or 1000 bytes" in refused(tmp_path)
    monkeypatch.setattr(recordings, "MOST_RECORDINGS", 1)
    assert "more than 1 recordings" in refused(tmp_path)


def test_b18_names_are_taken_literally_and_shown_without_what_a_terminal_obeys(tmp_path: Path) -> None:
    """A name with a pattern in it once matched the files of others."""
    write(tmp_path, body=b"[1]", name="a")
    write(tmp_path, body=b"[2]", name="[a]*")
    assert {file.path.name: file.body for file in recorded_files(tmp_path)} == {
        "a.json": b"[1]",
        "[a]*.json": b"[2]",
    }
    write(tmp_path, [], name="\x1b]0;owned\x07")
    assert "?]0;owned?" in refused(tmp_path)


@pytest.mark.parametrize(
    "asked",
    [
        None,
        [],
        {"fetcher": "no_such", "symbols": ["AAPL"], "at": "2026-11-20T15:00:00+00:00"},
        {"fetcher": "quote", "symbols": 5, "at": "2026-11-20T15:00:00+00:00"},
        {"fetcher": "quote", "symbols": ["AAPL"], "at": "now"},
    ],
)
def test_b18_the_parsers_are_given_only_what_says_what_was_asked(tmp_path: Path, asked: object) -> None:
    write(tmp_path, FACTS | {"asked": asked})
    with pytest.raises(SettingsError, match="does not say what was asked"):
        replayed(tmp_path)
