"""Declarations of providers (F11): what a file may say, and the line and words of everything else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.errors import DeclarationRefused, PricingError
from pricing_pipeline.providers.declaration import FETCHERS, Declaration
from pricing_pipeline.providers.declaration_file import SCHEMA, read_file, read_text, schema_text
from pricing_pipeline.providers.declaration_texts import host_of, matcher
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline_tests.support.declarations import DECLARED, FILES, FRANKFURTER, SHARES, changed
from pricing_pipeline_tests.support.pages import ROOT

LINE = re.compile(r"^rates\.yaml:([0-9]+): .+")


def refused(text: str) -> str:
    with pytest.raises(DeclarationRefused) as caught:
        read_text(text, "rates.yaml")
    return str(caught.value)


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


# --- faults and their lines ---

TYPOS = [
    ('close: rates."{quote}"', 'clos: rates."{quote}"', "unknown key `clos`; did you mean `close`?"),
    ("limits: # it", "limts: # it", "unknown key `limts`; did you mean `limits`?"),
    ("units: 30", "unit: 30", "unknown key `unit`; did you mean `units`?"),
    ("units: 30", "unitz: 30, x: \x07", "special characters are not allowed"),
    ("units: 30", "units: many", "`units` is `many`; expected a whole number"),
    ("units: 30", "units: 1.5", "`units` is `1.5`; expected a whole number"),
    ("units: 30", "units: 0", "`units` is 0; expected 1 or more"),
    ("seconds: 60", "seconds: null", "a limit has either `seconds` or `day`"),
    ("day: UTC", "day: Mars/Olympus", "`day` is `Mars/Olympus`; it is not a time zone"),
    ("name: frankfurter", "name: Frankfurter", "`name` is `Frankfurter`; expected what matches"),
    ("name: frankfurter", "name: 5", "`name` is 5; expected text"),
    (
        "name: frankfurter",
        "name: !!python/name:os.system frankfurter",
        "tags such as `tag:yaml.org,2002:python/name",
    ),
    ("format: iso_date", "format: iso", "`format` is `iso`; write one of iso_date, iso_time"),
    ("rows: rates", "rows: 'rates[?'", "`rows` is `rates[?`; it is not JMESPath"),
    (
        "rows: rates",
        "rows: to_number(rates)",
        "the function to_number is not allowed; those that are: contains",
    ),
    ("rows: rates", "rows: 'rates[?x > `1.5`]'", "no number with a point"),
    (
        "rows: rates",
        "rows: 'rates.\"{end}\"'",
        "{end} is not a placeholder here; there are {base}, {quote}, {symbol}",
    ),
    ('code: "{quote}"', "code: EURO", "`code` is `EURO`; it is not ISO 4217 code"),
    ('code: "{quote}"', 'row: a, code: "{quote}"', "a currency is one of"),
    ("path: /latest\n", "path: latest\n", "`path` is `latest`; write /PART/PART"),
    ("path: /latest\n", "path: /../admin\n", "no parts `.` and `..`"),
    ("path: /latest\n", "path: //evil.example\n", "write /PART/PART"),
    ('symbols: "{quote}"}', 'symbols: "{qoute}"}', "{qoute} is not a placeholder here"),
    ('symbols: "{quote}"}', 'symbols: "{quote}", apikey: a}', "`apikey` looks like a key"),
    (
        'spelling: "{base}/{quote}"',
        'spelling: "{base}{quote}"',
        "`spelling`: {base} and {quote} are used below",
    ),
    ('pattern: "[A-Z]{3}/[A-Z]{3}"', 'pattern: "(?=A)"', "not a regular expression without look-around"),
    ("status: [404, 422]", "status: [404, 500]", "expected 499 or less"),
    ("status: [404, 422]", "status: [429]", "already have a meaning"),
    ("means: unknown", "means: unknow", "`means` is `unknow`; expected 'empty', 'unknown'"),
    ("in_flight: 2", "in_flight: 2\nin_flight: 3", "the key `in_flight` stands here twice"),
    ("in_flight: 2", "in_flight: [2", "it is not YAML"),
    ("in_flight: 2", "in_flight: *two", "it is not YAML: found undefined alias"),
    ("in_flight: 2", "in_flight: 2\nkey: {header: Host}", "belongs to HTTP itself"),
    ("in_flight: 2", "in_flight: 2\nkey: {header: 'X-Key: a\\r\\nX'}", "`header` is"),
    ("in_flight: 2", "in_flight: 2\nkey: {header: X-Key, value: abc}", "unknown key `value`"),
    ("in_flight: 2", "in_flight: 2\nkey: {header: X-Key, scheme: SECRET}", "`scheme` is `SECRET`"),
    ("in_flight: 2", "in_flight: 2\nheaders: {Host: a}", "belongs to HTTP itself"),
    ("in_flight: 2", "in_flight: 2\nheaders: {Authorization: a}", "write it under `key`"),
    ("in_flight: 2", "in_flight: 2\nheaders: {X-Api-Key: a}", "looks like a key"),
    ("in_flight: 2", "in_flight: 2\nkey: {header: X-A, query: a}", "a key travels in one of"),
    ("fetchers:", "fetcher:", "unknown key `fetcher`; did you mean `fetchers`?"),
]


@pytest.mark.parametrize(("old", "new", "words"), TYPOS, ids=[new.strip()[:40] for _, new, _ in TYPOS])
def test_f11_a_fault_is_told_with_its_line_and_what_was_expected(old: str, new: str, words: str) -> None:
    text = FRANKFURTER.read_text()
    assert old in text
    told = refused(text.replace(old, new, 1))
    assert all(LINE.match(line) for line in told.splitlines()), told
    assert words in told
    first = int(LINE.match(told)[1])  # type: ignore[index]
    began = line_of(text, old)
    # What is missing, or fits nothing else, is told at the part that it belongs to.
    assert began - 4 <= first <= began + 2, told


def test_f11_the_latest_value_must_lie_within_the_longest_span() -> None:
    """Else each of its calls would be refused, whatever days a person asks for."""
    text = SHARES.read_text()
    assert "max_window_days: 1825" in text
    assert "without `latest` a call spans 12 days" in refused(
        text.replace("max_window_days: 1825", "max_window_days: 11")
    )
    read_text(text.replace("max_window_days: 1825", "max_window_days: 12"), "shares.yaml")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('description: "', 'description: "\\e[2J'),
        ('description: "', 'description: "\\0'),
        ('description: "', 'description: "\u202e'),
        ("rows: rates", "rows: \"'\\e[31mINFO all is well'\""),
        ("rows: rates", "rows: \"'a\\nINFO all is well'\""),
        ("rows: rates", "rows: '\"\u2066\"'"),
        ("minute:", '"\\e[31mminute":'),
        ("{units: 30", '{"\\ud800": 1, units: 30'),
    ],
    ids=ascii,
)
def test_f11_no_text_of_a_file_steers_a_terminal_or_begins_a_line(old: str, new: str) -> None:
    """Its texts stand in messages, on pages and in Dagster, and a NUL in none of the database's columns."""
    text = FRANKFURTER.read_text()
    told = refused(text.replace(old, new, 1))
    assert re.search(rf"^rates\.yaml:{line_of(text, old)}: a text here has the character U\+", told)
    assert told.isprintable()


def test_f11_all_faults_are_told_at_once_and_a_typo_once() -> None:
    text = FRANKFURTER.read_text().replace("close:", "clse:").replace("units: 30", "units: x")
    told = refused(text).splitlines()
    assert len(told) == 3
    assert sum("clse" in line for line in told) == 2


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://api.frankfurter.dev",
            "https://127.0.0.1/v1",
            "https://10.0.0.1",
            "https://[::1]/",
            "https://2130706433",
        ),
        *(
            "https://localhost",
            "https://printer.local",
            "https://db.internal/x",
            "https://metadata",
            "ftp://a.example",
        ),
        *(
            "https://user:pass" + "@a.example",
            "https://a.example?key=1",
            "https://a.example#x",
            "https://a.example/../x",
        ),
        *(
            "https://a.example:0",
            "https://a.example:65536",
            "https://a.example:99999/x",
            "https://a.example\\@b.example",
            "https://a.example/%2e%2e/x",
            "https://127.1",
            "https://0x7f.1",
            "//a.example",
        ),
        *(
            "https://xn--0.example.com",
            "https://xn--a.com/v1",
            "https://XN--0.example.com",
            "https://uexcorp.\u017fpace",
            "https://\u212aelvin.example",
            "https://b\u00fccher.example",
        ),
    ],
)
def test_b2_a_declaration_names_no_private_address_and_no_password(url: str) -> None:
    text = FRANKFURTER.read_text().replace("https://api.frankfurter.dev/v1", url)
    assert "base_url" in refused(text)


def test_f11_one_host_is_one_host_however_it_is_written() -> None:
    names = ["https://API.example.com/v1", "https://api.example.com:443", "https://api.example.com."]
    assert {host_of(name) for name in names} == {"api.example.com"}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "\t",
            "[]",
            "3",
            "null",
            "---\n---\n",
            "a: [",
            "\0",
            "? [a]\n: b",
            "- - - -",
            "&a [*a, *a]",
        ),
        *(
            "a: &x [1, 2]\nb: *x\n",
            "[" * 1000,
            "{a: " * 1000,
            "<<: {a: 1}",
            "!!binary aGk=",
            "%YAML 9.9\n--- a",
            "x" * 70_000,
        ),
        "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))]),
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_f11_no_text_at_all_is_a_traceback(text: str) -> None:
    assert refused(text).startswith("rates.yaml:")


# --- mutations of valid files ---


def _places(node: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in items:
        yield (*here, key)
        yield from _places(inner, (*here, key))


_JUNK = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        10**18,
        "",
        "x",
        "{symbol}",
        "@",
        "a.b[",
        "1.5",
        [],
        {},
        [1],
        {"a": 1},
        [[]],
        "\u0000",
        "*" * 300,
    ]
)


@given(data=st.data())
def test_f11_any_mutation_is_refused_with_a_line_or_is_still_a_declaration(data: st.DataObject) -> None:
    """A key renamed or taken out, a value of another type: never a traceback, never a provider that cannot be built."""
    path = data.draw(st.sampled_from(FILES))
    content = yaml.safe_load(path.read_text())
    place = data.draw(st.sampled_from(sorted(_places(content), key=repr)))
    at: Any = content
    for part in place[:-1]:
        at = at[part]
    match data.draw(st.sampled_from(["rename", "drop", "replace"] if isinstance(at, dict) else ["drop", "replace"])):
        case "rename":
            at[data.draw(st.text(max_size=8) | st.just(f"{place[-1]}x"))] = at.pop(place[-1])
        case "drop":
            del at[place[-1]]
        case _:
            at[place[-1]] = data.draw(_JUNK)
    text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
    told = ""
    try:
        provider = DeclaredProvider(read_text(text, "rates.yaml"))
    except DeclarationRefused as error:
        told = str(error)
    else:
        assert provider.fetchers <= set(FETCHERS)
    assert all(re.match(r"rates\.yaml:([0-9]+: | [0-9]+ more)", line) for line in told.splitlines()), told


# --- the schema ---


def test_f11_the_schema_that_is_shipped_is_that_of_the_models() -> None:
    assert SCHEMA.read_text() == schema_text(), "run `make pages`"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_f11_the_schema_takes_the_examples_and_refuses_a_typo(path: Path) -> None:
    validator = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text()))
    content = yaml.safe_load(path.read_text())
    assert not list(validator.iter_errors(content))
    content["nmae"] = content.pop("name")
    assert list(validator.iter_errors(content))


# --- patterns and keys ---


def test_f11_a_clumsy_pattern_takes_no_time() -> None:
    matches = matcher("(a+)+$")
    assert not matches("a" * 60 + "!")
    with pytest.raises(ValueError, match="regular expression"):
        matcher("(a{1000}){1000}{1000}")


def test_f11_a_pattern_cannot_open_its_anchors() -> None:
    """`x)|(?:y` would otherwise let anything through that begins with x."""
    declared = changed(SHARES, ('pattern: "[A-Z0-9^][A-Z0-9.^-]{0,31}"', 'pattern: "X)|(?:.*"'))
    provider = DeclaredProvider(declared)
    assert provider.accepts("XY")
    unsafe = ("X  Y", "X ", " X", "X/../Y", "X?a=b", "X#", "X%2e", "X\n", "X//Y", "X,Y", "é")
    assert not any(provider.accepts(text) for text in unsafe)


def test_a4_the_only_header_is_the_one_of_the_key() -> None:
    provider = DECLARED["shares"]
    assert provider.authorize("canary") == {"Authorization": "Bearer canary"}
    assert DECLARED["funds"].authorize("canary") == {}


def test_f11_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for make in (lambda path: None, lambda path: path.mkdir(), lambda path: path.write_bytes(b"\xff\xfe")):
        path = tmp_path / f"file-{id(make)}.yaml"
        make(path)
        with pytest.raises(PricingError, match=re.escape(str(path))):
            read_file(path)


def test_f11_the_page_names_every_key_of_a_declaration() -> None:
    """In backquotes or in an example."""
    page = (ROOT / "docs/adding-a-provider.md").read_text()
    told = "\n".join(re.findall(r"^```.*?^```|`[^`\n]+`", page, re.DOTALL | re.MULTILINE))
    schema = Declaration.model_json_schema(by_alias=True)
    keys = {key for model in (schema, *schema["$defs"].values()) for key in model.get("properties", {})}
    assert len(keys) > 40
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}\b", told)] == []
