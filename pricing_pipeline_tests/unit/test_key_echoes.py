"""Keys that come back in some disguise are blotted out, and nothing else is."""

from __future__ import annotations

import base64
import html
import json
import string
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.providers.key_echoes import KeyEchoes

KEY = "aB3+xY9/qW7=eR5tZ2uI8oP4"

long_keys = st.text(string.ascii_letters + string.digits + "+/=_-.~%&<", min_size=16, max_size=64)
around = st.binary(max_size=20)

DISGUISES: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda key: key.encode(),
    "in capitals": lambda key: key.upper().encode(),
    "in small letters": lambda key: key.lower().encode(),
    "in JSON": lambda key: json.dumps(key)[1:-1].encode(),
    "in JSON of PHP": lambda key: key.replace("/", "\\/").encode(),
    "each character escaped in JSON": lambda key: "".join(f"\\u{ord(c):04X}" for c in key).encode(),
    "in a URL": lambda key: quote(key, safe="").encode(),
    "each character escaped in a URL": lambda key: "".join(f"%{ord(c):02x}" for c in key).encode(),
    "three times escaped in a URL": lambda key: "".join(f"%2525{ord(c):02x}" for c in key).encode(),
    "twice escaped in a URL": lambda key: "".join(f"%25{ord(c):02x}" for c in key).encode(),
    "in HTML": lambda key: html.escape(key).encode(),
    "in numbers of HTML": lambda key: "".join(f"&#{ord(c)};" for c in key).encode(),
    "in hexadecimal numbers of HTML": lambda key: "".join(f"&#x{ord(c):X};" for c in key).encode(),
    "in hexadecimal digits": lambda key: key.encode().hex().encode(),
    "in base64": lambda key: base64.b64encode(key.encode()),
    "in base64 behind a user": lambda key: base64.b64encode(b"user:" + key.encode()),
    "in base64 between others": lambda key: base64.urlsafe_b64encode(b"apikey=" + key.encode() + b"&more"),
    "in numbers of HTML that was escaped": lambda key: "".join(f"&amp;#{ord(c)};" for c in key).encode(),
    "in hexadecimal digits of capitals": lambda key: key.upper().encode().hex().encode(),
    "in hexadecimal digits of small letters": lambda key: key.lower().encode().hex().encode(),
    "in hexadecimal digits with colons": lambda key: key.encode().hex(":").upper().encode(),
    "in hexadecimal digits with dashes": lambda key: key.encode().hex("-").encode(),
    "in hexadecimal digits with spaces": lambda key: key.encode().hex(" ").encode(),
    "in base64 of capitals": lambda key: base64.b64encode(b"apikey=" + key.upper().encode()),
    "in base64 of small letters": lambda key: base64.b64encode(key.lower().encode()),
    "in UTF-16": lambda key: key.encode("utf-16-le"),
    "in UTF-32": lambda key: key.encode("utf-32-be"),
    "without its beginning": lambda key: key[4:].encode(),
    "without its end": lambda key: key[:-4].encode(),
}


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
@given(key=long_keys, before=around, after=around)
def test_a4_no_disguise_of_a_key_passes(
    disguise: Callable[[str], bytes], key: str, before: bytes, after: bytes
) -> None:
    echo = disguise(key)
    for blotted in (
        KeyEchoes([key]).blot(before + echo + after),
        KeyEchoes([key]).blot_body(before + echo + after),
    ):
        assert echo not in blotted
        assert key.encode().lower() not in blotted.lower()
        assert b"***" in blotted


ESCAPES = [
    b"",
    b"%",
    b"%25",
    b"\\",
    b"\\x",
    b"\\u00",
    b"&#",
    b"&#x",
    b"&#x0",
    b"&amp;#",
    b"&amp;",
    b"\0",
    b"%2",
]


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
@given(
    key=st.one_of(long_keys, st.text("0123456789abcdef", min_size=16, max_size=40)),
    decoys=st.lists(
        st.tuples(
            st.sampled_from(ESCAPES),
            st.integers(0, 30),
            st.integers(0, 40),
            st.sampled_from([b"", b";", b" "]),
        ),
        max_size=6,
    ),
    place=st.integers(0, 6),
)
def test_a4_no_decoy_hides_a_key(
    disguise: Callable[[str], bytes],
    key: str,
    decoys: list[tuple[bytes, int, int, bytes]],
    place: int,
) -> None:
    """Parts of the key behind what begins an escape: fewer of their characters were left when it was taken away."""
    written = [escape + key[start : start + size].encode() + end for escape, start, size, end in decoys]
    echo = disguise(key)
    text = b"".join([*written[:place], b" ", echo, b" ", *written[place:]])
    assert echo not in KeyEchoes([key]).blot(text)
    assert echo not in KeyEchoes([key, key[::-1]]).blot_body(text)


@given(
    st.lists(st.text(string.printable.replace("\n", ""), max_size=20), min_size=1, max_size=9),
    st.integers(0, 8),
)
def test_a4_messages_are_blotted_together_as_they_are_one_by_one(texts: list[str], place: int) -> None:
    echoes = KeyEchoes([KEY, "short"])
    texts[place % len(texts)] += f"{quote(KEY)} short"
    assert echoes.blot_texts(texts) == [echoes.blot_text(text) for text in texts]
    assert echoes.blot_texts([*texts, f"{KEY}\nshort"]) == [*map(echoes.blot_text, texts), "***\n***"]


@pytest.mark.parametrize("kept", [11, 12, 24])
def test_a4_what_is_cut_off_a_key_is_blotted_from_its_half_on(kept: int) -> None:
    blotted = KeyEchoes([KEY]).blot(b"Invalid key " + KEY[:kept].encode() + b" of yours")
    assert (KEY[:kept].encode() in blotted) is (kept < 12)


@pytest.mark.parametrize("sign", ["&#47;", "\\\\\\/", "%2F", "%252f", "\\u002f", "/\0"])
def test_a4_what_is_left_of_a_key_beside_a_part_that_is_escaped_is_blotted_too(sign: str) -> None:
    """The longer part was, and the shorter one stayed: it alone would be no half of the key."""
    key = "sh0rterPart/l0nger-part-of-the-key"
    for text in (key, f"{key} and {key}"):
        blotted = KeyEchoes([key]).blot_text(f"Invalid key {text.replace('/', sign, 1)}, see the page")
        assert "sh0rterPart" not in blotted
        assert "***" in blotted
    kept = KeyEchoes([key]).blot_text(f'{{"a": "{key}\\n", "half": "{key[:20]}%51\\u0041"}}')
    assert kept == '{"a": "***\\n", "half": "***%51\\u0041"}'


def test_a4_what_stands_around_a_key_stays() -> None:
    echoes = KeyEchoes([KEY, "another-key-of-twenty"])
    text = f'{{"message": "{KEY.upper()} and another-key-of-twenty", "price": "101.20"}}'.encode()
    assert echoes.blot_body(text) == b'{"message": "*** and ***", "price": "101.20"}'
    assert echoes.blot_text(f"é {KEY} é") == "é *** é"


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False), max_size=50), long_keys)
def test_a4_prices_are_left_as_they_are(prices: list[object], key: str) -> None:
    body = json.dumps([{"close": str(price), "at": "2024-02-29T00:00:00Z"} for price in prices]).encode()
    echoes = KeyEchoes([key, "1"])
    if key.encode() not in body:
        assert echoes.blot_body(body) == body
    assert echoes.blot_where_plain(body) == body


def test_a4_a_short_key_is_blotted_where_people_read_and_not_where_prices_are() -> None:
    echoes = KeyEchoes(["101"])
    assert echoes.blot_body(b'{"price": 101.20}') == b'{"price": 101.20}'
    assert echoes.blot(b'{"price": 101.20}') == b'{"price": ***.20}'
    assert echoes.blot_text("key 101 is wrong") == "key *** is wrong"
    assert echoes.blot_text("key %31%30%31 is wrong") == "key *** is wrong"


def test_a4_without_keys_nothing_is_blotted() -> None:
    text = b"\x00\\u0041%41" * 10
    assert KeyEchoes([]).blot(text) == text
