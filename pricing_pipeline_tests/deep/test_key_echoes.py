"""Any key in any form that a provider may repeat it in is masked."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.providers.key_echoes import KeyEchoes
from pricing_pipeline_tests.unit.test_key_echoes import long_keys

around = st.binary(max_size=20)

HTML5_OF_PHP = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&apos;",
    "+": "&plus;",
    "/": "&sol;",
    "=": "&equals;",
    "_": "&lowbar;",
    ".": "&period;",
    "%": "&percnt;",
    "!": "&excl;",
    ":": "&colon;",
    "$": "&dollar;",
    "@": "&commat;",
}
"""As `htmlentities` spells these with ENT_HTML5."""


def escaped(signs: str, form: str) -> Callable[[str], str]:
    """Writes these signs by a form, such as `\\u{:04X}`, as some frameworks do."""
    return lambda key: "".join(form.format(ord(char)) if char in signs else char for char in key)


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda key: key,
    "in capitals": str.upper,
    "in small letters": str.lower,
    "in JSON": lambda key: json.dumps(key)[1:-1],
    "in JSON of PHP": lambda key: key.replace("/", "\\/"),
    "in a URL": lambda key: quote(key, safe=""),
    "in the path of a URL": quote,
    "in HTML": html.escape,
    "in JSON of .NET": escaped("+&<", r"\u{:04X}"),
    "in JSON of Go": escaped("&<", r"\u{:04x}"),
    "in JSON of Gson": escaped("&<=", r"\u{:04x}"),
    "in HTML of .NET": lambda key: html.escape(key).replace("+", "&#x2B;"),
    "in HTML of Go": lambda key: html.escape(key).replace("+", "&#43;"),
    "in HTML of PHP": lambda key: html.escape(key).replace("&#x27;", "&#039;"),
    "in HTML5 of PHP": lambda key: "".join(HTML5_OF_PHP.get(char, char) for char in key),
    "in XML": lambda key: html.escape(key).replace("&#x27;", "&apos;"),
    "in JSON within JSON": lambda key: json.dumps(json.dumps(key)[1:-1])[1:-1],
    "in JSON of PHP within JSON": lambda key: json.dumps(key.replace("/", "\\/"))[1:-1],
    "in a URL within a URL": lambda key: quote(quote(key, safe=""), safe=""),
    "in HTML within HTML": lambda key: html.escape(html.escape(key)),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@given(key=long_keys, before=around, after=around)
def test_a4_no_form_of_a_key_passes(form: Callable[[str], str], key: str, before: bytes, after: bytes) -> None:
    echo = form(key).encode()
    for mask in (KeyEchoes([key]).mask, KeyEchoes([key]).mask_body):
        masked = mask(before + echo + after)
        assert echo not in masked
        assert key.encode().lower() not in masked.lower()
        assert b"***" in masked
