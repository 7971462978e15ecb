"""The kinds of text in a declaration: what a URL, a header, a path, a spelling or a time zone must look like.

Each kind is a type, which the models of declaration.py use. What several keys must say together does not belong
here, but in declaration_faults.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Annotated

import httpx
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError, WithJsonSchema

from pricing_pipeline.domain.time_zones import is_time_zone
from pricing_pipeline.providers.currencies import CURRENCIES, PARTS
from pricing_pipeline.providers.declared_times import NAMED, WRITTEN, pattern_of
from pricing_pipeline.providers.json_paths import PLACEHOLDER, JsonPath, UnreadablePath

SAFE_SYMBOL = r"[A-Za-z0-9^](?: ?[A-Za-z0-9^.:/=_&'-]){0,63}"
"""The form of any spelling: nothing that a URL or a list of symbols reads as its own."""
OF_SYMBOL = frozenset({"symbol", "base", "quote"})
OF_NUMBERED_PAGE = frozenset({"page", "offset"})
OF_SPAN = frozenset({"start", "end", "days"})
_OF_PATH = frozenset({"symbols"}) | OF_SPAN | OF_SYMBOL | OF_NUMBERED_PAGE
_OF_QUERY = _OF_PATH | {"cursor"}

_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]", re.I)
_URL = re.compile(rf"https://({_HOST.pattern})(:[0-9]{{1,5}})?((?:/[A-Za-z0-9._~-]+)*)/?", re.I | re.A)
_LOCAL = re.compile(r"(^|\.)(localhost|local|internal|localdomain|home\.arpa|lan|intranet|corp)$", re.I)
_PATH = re.compile(r"(/[A-Za-z0-9._~@:,{}-]+)+/?")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_OF_HTTP = re.compile(
    r"accept.*|connection|content-.*|cookie2?|date|expect|forwarded|from|host|keep-alive|origin|proxy-.*|range|referer"
    r"|sec-.*|te|trailer|transfer-encoding|upgrade|user-agent|via|x-forwarded-.*|x-http-.*|x-original-.*|x-real-ip"
    r"|x-rewrite-.*",
    re.I,
)
_KEY_IN_QUERY = re.compile(
    r"(.*[._-])?(api|access|auth|subscription|private|secret)?[._-]?(key|token|secret|password)|appid|app_id|signature",
    re.I,
)


def _url(text: str) -> str:
    match = _URL.fullmatch(text)
    if match is None:
        raise ValueError("write https://HOST or https://HOST/PATH with the name of a host: no address, user, query")
    try:
        httpx.URL(text).host  # noqa: B018 - it is worked out only when it is asked for
    except (httpx.InvalidURL, ValueError):
        raise ValueError(
            "the name of its host begins with xn-- and stands for no name; copy it as the provider writes it"
        ) from None
    if match[2] and not 0 < int(match[2][1:]) < 65_536:
        raise ValueError("a port is a number from 1 to 65535")
    if _LOCAL.search(match[1]):
        raise ValueError("this host is not on the public internet")
    if any(part in (".", "..") for part in match[3].split("/")):
        raise ValueError("a path has no parts `.` and `..`")
    return text.rstrip("/")


def host_of(base_url: str) -> str:
    """The host of a base URL, in small letters."""
    return re.sub(r"^[a-z]+://", "", base_url.lower()).partition("/")[0].partition(":")[0].rstrip(".")


def _header(text: str) -> str:
    if _OF_HTTP.fullmatch(text):
        raise ValueError("this header belongs to HTTP itself and carries no key; name the provider's header for keys")
    return text


def _path(text: str) -> str:
    if re.match("([A-Za-z][A-Za-z0-9+.-]*:)?//", text):
        raise ValueError("write /PART/PART, which is below `base_url`: requests and logins go to no other host")
    if not _PATH.fullmatch(_without_placeholders(text, _OF_PATH)):
        raise ValueError("write /PART/PART, of letters, digits and ._~@:,- with placeholders; `query` has parameters")
    if any(re.fullmatch(r"\.+", part) for part in text.split("/")):
        raise ValueError("a path has no parts `.` and `..`")
    return text


def _parameter(text: str) -> str:
    _without_placeholders(text, _OF_QUERY)
    return text


def _query(parameters: dict[str, str]) -> dict[str, str]:
    for name in parameters:
        check_name(name)
    return parameters


def is_key(name: str) -> bool:
    """Whether a parameter has a name that is usual for keys and passwords."""
    return _KEY_IN_QUERY.fullmatch(name) is not None


def check_name(name: str) -> None:
    """Raise ValueError for a usual name of a key in a query or body, because people see those."""
    if is_key(name):
        raise ValueError(
            f"`{name}` looks like a key, and requests are shown. Write it under `key`, as `header` or `query`, and "
            "store its value with `pricing-pipeline key set`"
        )


def check_template(text: str) -> None:
    """Raise ValueError for a text of a body with other placeholders than those of a query."""
    _parameter(text)


def _spelling(text: str) -> str:
    bare = _without_placeholders(text, OF_SYMBOL)
    if bare == text or not re.fullmatch(SAFE_SYMBOL, bare):
        raise ValueError(
            "write the placeholders {symbol}, or {base} and {quote}, with letters, digits, single spaces and ^.:/=_&'-"
        )
    return text


def _without_placeholders(text: str, allowed: frozenset[str]) -> str:
    for name in PLACEHOLDER.findall(text):
        if name[1:-1] not in allowed:
            raise ValueError(f"{name} is not a placeholder here; there are {_names(allowed)}")
    bare = PLACEHOLDER.sub("x", text)
    if "{" in bare or "}" in bare:
        raise ValueError(f"braces stand for placeholders only: {_names(allowed)}")
    return bare


def placeholders_of(text: str) -> frozenset[str]:
    """The names of all placeholders of a text."""
    return frozenset(name[1:-1] for name in PLACEHOLDER.findall(text))


def is_parted(spelling: str) -> bool:
    """Whether base and quote can be told from such a spelling."""
    return re.fullmatch(r"[^{}]*\{base\}[^{}A-Za-z0-9]+\{quote\}[^{}]*", spelling) is not None


def _names(names: frozenset[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names))


def _pattern(text: str) -> str:
    matcher(text)
    return text


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that says whether a whole text matches a pattern, in linear time. Raises ValueError.

    Python's own expressions may take for ever on sixty characters; pydantic's do not.
    """
    try:
        checker = TypeAdapter(Annotated[str, Field(pattern=f"^(?:{pattern})$", strict=True)])
    except Exception as error:  # a SchemaError, which pydantic does not export
        words = " ".join(str(error).split())
        raise ValueError(
            f"it is not a regular expression without look-around and back references: {words[-80:]}"
        ) from None

    def matches(text: str) -> bool:
        try:
            checker.validate_python(text)
        except ValidationError:
            return False
        return True

    return matches


def _json_path(text: str) -> str:
    try:
        path = JsonPath(text)
    except UnreadablePath as fault:
        raise ValueError(str(fault)) from None
    for name in sorted(path.placeholders - OF_SYMBOL):
        raise ValueError(f"{{{name}}} is not a placeholder here; there are {_names(OF_SYMBOL)}")
    return text


def _plain_path(text: str) -> str:
    if JsonPath(_json_path(text)).placeholders:
        raise ValueError("it has no placeholders here")
    return text


def _zone(name: str) -> str:
    if not is_time_zone(name):
        raise ValueError("it is not a time zone; write UTC or a name such as America/New_York")
    return name


def _time_format(text: str) -> str:
    if text not in NAMED:
        pattern_of(text)
    return text


def _date_format(text: str) -> str:
    if text not in WRITTEN:
        if text in NAMED:
            raise ValueError(f"a request has one of {', '.join(WRITTEN)}, or a pattern such as %Y%m%d")
        pattern_of(text)
    return text


def _day(text: object) -> date:
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        raise ValueError("write a day such as 2000-01-01") from None


def _factor(text: str | int) -> str | int:
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12})?", str(text)) or not float(text):
        raise ValueError("write a number above zero with up to 12 digits on each side of the point, such as 0.01")
    return text


def _header_of_answer(name: str) -> str:
    return name.lower()


def _fixed(headers: dict[str, str]) -> dict[str, str]:
    for name in headers:
        if name != "Accept":
            _header(name)
        if name.lower() == "authorization":
            raise ValueError("this header carries a key; write it under `key`")
        check_name(re.sub("^x-", "", name.lower()))
    return headers


def _currency(code: str) -> str:
    if code != "{quote}" and code not in CURRENCIES and code not in PARTS:
        raise ValueError("it is not ISO 4217 code, coin or part of a currency; {quote} is the second of a pair")
    return code


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
ShortText = Annotated[str, Field(max_length=200)]
BaseUrl = Annotated[str, Field(max_length=200), AfterValidator(_url)]
HeaderName = Annotated[str, Field(pattern=f"^{_HEADER.pattern}$"), AfterValidator(_header)]
UrlPath = Annotated[str, Field(max_length=200), AfterValidator(_path)]
Template = Annotated[str, Field(max_length=200), AfterValidator(_parameter)]
Query = Annotated[dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9._\[\]-]{1,64}$")], Template], AfterValidator(_query)]
SymbolTemplate = Annotated[str, Field(max_length=64), AfterValidator(_spelling)]
Pattern = Annotated[str, Field(max_length=200), AfterValidator(_pattern)]
AnswerPath = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_json_path)]
PlainPath = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_plain_path)]
ZoneName = Annotated[str, AfterValidator(_zone)]
CurrencyCode = Annotated[str, AfterValidator(_currency)]
TimeFormat = Annotated[str, Field(max_length=64), AfterValidator(_time_format)]
DateFormat = Annotated[str, Field(max_length=64), AfterValidator(_date_format)]
Factor = Annotated[str | int, AfterValidator(_factor), WithJsonSchema({"type": ["string", "number"]})]
"""A number with a point is a text to our reader of YAML, and a number to editors."""
Day = Annotated[date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
AnswerHeader = Annotated[str, Field(pattern=f"^{_HEADER.pattern}$"), AfterValidator(_header_of_answer)]
FixedHeaders = Annotated[
    dict[
        Annotated[str, Field(pattern=f"^{_HEADER.pattern}$")],
        Annotated[str, Field(min_length=1, max_length=200, pattern="^[!-~]([ -~]*[!-~])?$")],
    ],
    AfterValidator(_fixed),
]
Parameter = Annotated[str, Field(pattern=r"^[A-Za-z0-9._\[\]-]{1,64}$")]
