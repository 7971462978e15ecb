"""One provider's client: sends the provider's requests, inside hard limits, and lets the provider parse the answers.

Every call to a provider goes through here (requirement B18). A call ends within its deadline, uses a bounded amount of
memory, follows no redirect, counts its bytes on the wire (B12) whether it succeeds or fails, and gets its API key last:
nobody sees a request with its key. Other modules decide on rate limits, quotas and retries, before and after the call.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Self, TypeVar

from pydantic import SecretStr

from pricing_pipeline.domain.answers import Answer, FailureKind, SymbolFailure
from pricing_pipeline.domain.calls import Call, Preparation, Receipt, Response
from pricing_pipeline.domain.data_types import Contents, Fetcher
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    ClientFault,
    KeyRefused,
    Misconfigured,
    PricingError,
    ProviderDown,
    ProviderError,
    SettingsError,
    Unfinished,
)
from pricing_pipeline.providers.base import (
    NOTHING_KNOWN,
    Dialogue,
    Known,
    Provider,
    Question,
    Request,
    Token,
    Witness,
    capped,
    check_answer,
    give_key,
    refusal,
    require_fetcher,
    safe_words,
    shown_limit,
    units_left,
)
from pricing_pipeline.providers.dialogue import (
    OwnKeys,
    Pages,
    Spent,
    Uncounted,
    dialogue_of,
)
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.providers.searches import SEARCHES, Searched
from pricing_pipeline.providers.sent import (
    DEFAULT_KEY_NAME,
    check_agent,
    checked_keys,
    echoes_of,
    holds_key,
    key_leak,
)
from pricing_pipeline.providers.spellings import NO_OVERRIDES, Spellings
from pricing_pipeline.providers.transport import Resolver, checked_base_url
from pricing_pipeline.providers.wire import Wire

try:
    _VERSION = version("pricing-pipeline")
except PackageNotFoundError:  # run from a checkout
    _VERSION = "0"
USER_AGENT = f"pricing-pipeline/{_VERSION}"

DEADLINE_SECONDS = 10.0
MAX_BYTES = 16 * 1024 * 1024
"""The most bytes of one answer, on the wire and unpacked. The largest, mfapi's list of all schemes, has about 10 MB."""

MAX_DOCUMENT_BYTES = 2 * 1024 * 1024
"""The most bytes of an answer with documents. The largest have 100 kB."""
_MOST_OF_AN_ERROR = 64 * 1024
"""How many bytes of an error response are read: its message needs only a sentence."""

_UNAUTHORIZED = 401
_TOKENS_HIDDEN = 16
"""How many old tokens are still hidden, for the calls in flight that use them."""
_TOO_LARGE = (413, 414)  # the request, or its URL
_LARGE_BODY = 256 * 1024
"""A larger body of a provider is parsed alone, because a hostile one takes fifty times its size in memory."""

# Headers about limits; other headers (cookies, edge ids) are not kept.
_LIMIT_HEADERS = ("api-credits-", "x-ratelimit-", "ratelimit", "retry-after")


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Call:
    """The key, the clock, the bound and the permission of all requests of one call, and their cost so far."""

    key_name: str
    now: datetime
    max_bytes: int
    pages: Pages
    witness: Witness | None = None
    spent: Spent = field(default_factory=Spent)


class ProviderClient:
    """Calls one provider through a connection pool; safe to share between threads. Close it after use.

    `key` is the key named `default`, or several by name; each call names its key. If the mapping is empty, calls are
    refused until `replace_keys` brings a key. `user_agent` replaces ours in each call. Raises SettingsError if the base
    URL cannot work, the provider's key is missing, or the User-Agent contains a key. Settings of the environment
    (HTTP_PROXY, .netrc, SSL_CERT_FILE) are ignored: they would move the byte count and the address check to another
    machine, or could replace the key's header; and no proxy may stand before the sandbox on loopback.
    """

    def __init__(
        self,
        provider: Provider,
        base_url: str | None = None,
        key: SecretStr | Mapping[str, SecretStr] | None = None,
        *,
        deadline: float = DEADLINE_SECONDS,
        max_bytes: int = MAX_BYTES,
        resolve: Resolver | None = None,
        user_agent: str | None = None,
    ) -> None:
        self.provider = provider
        self._user_agent = user_agent
        self._keys = checked_keys(provider, key)
        self._all_keys = frozenset(self._keys.values())
        self._echoes = echoes_of(self._all_keys, provider)
        check_agent(self._user_agent, self._echoes)
        self.base_url = checked_base_url(provider.name, base_url or provider.base_url, sends_key=provider.needs_key)
        self._own_keys = provider if isinstance(provider, OwnKeys) else None
        self._log_in = None if self._own_keys is None else self._own_keys.log_in
        self._tokens: dict[SecretStr, Token] = {}
        self._old_tokens: deque[Token] = deque(maxlen=_TOKENS_HIDDEN)
        self._one_login = threading.Lock()
        self._large_body = threading.Lock()
        self._deadline, self._max_bytes = deadline, max_bytes
        self._wire = Wire(provider.name, self.base_url, deadline=deadline, resolve=resolve, hide=self.hide_keys)

    def __repr__(self) -> str:
        return f"ProviderClient({self.provider.name!r}, {self.base_url!r})"

    @property
    def key_names(self) -> frozenset[str]:
        """The names of the keys that calls can use; only `default` if no key is needed."""
        return frozenset(self._keys) or frozenset({DEFAULT_KEY_NAME})

    @property
    def has_key(self) -> bool:
        """Whether calls can be made: there is a key, or none is needed."""
        return bool(self._keys) or not self.provider.needs_key

    def replace_keys(self, keys: Mapping[str, SecretStr]) -> None:
        """Use these keys from now on; a call in flight keeps its key."""
        checked = checked_keys(self.provider, keys)
        check_agent(self._user_agent, echoes_of(checked.values(), self.provider))
        # First, so that no call uses a key that would not be hidden.
        self._all_keys |= frozenset(checked.values())
        for gone in self._tokens.keys() - set(checked.values()):
            self._old_tokens.append(self._tokens.pop(gone))
        self._hide_all()
        self._keys = checked

    def _hide_all(self) -> None:
        """Hide every key, and every token that an answer may still repeat."""
        tokens = [token.secret for token in (*self._tokens.values(), *self._old_tokens)]
        self._echoes = echoes_of(self._all_keys, self.provider, tokens)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the pooled connections."""
        self._wire.close()

    def fetch(
        self,
        fetcher: Fetcher,
        symbols: Sequence[str],
        window: Window | None = None,
        *,
        now: datetime | None = None,
        key_name: str = DEFAULT_KEY_NAME,
        asset_class: str = "",
        overrides: Mapping[str, str] = NO_OVERRIDES,
        witness: Witness | None = None,
        known: Known = NOTHING_KNOWN,
        pages: Pages | None = None,
    ) -> Fetched:
        """One call for `symbols` (repeats count once; at most the provider's batch limit), of one request or several.

        Canonical symbols of `asset_class` are sent in the provider's spelling, by its rule or by `overrides`; answer
        and errors name canonical symbols. Without a class, symbols are sent as they are. `now` is the time against
        which future stamps are judged: pass the database's, so that a wrong clock here refuses no price. Symbols that
        the provider could never know fail without being sent. `witness` gets each request and the whole response,
        refusals too, with every key in it masked, before anything is read from it. `known` is what storage knows
        of each symbol. Requests after the first are made as `pages` allows, and booked there; without `pages` the
        caller books them afterwards. Raises SettingsError (for an unknown key, too) or InvalidRange for what cannot be
        asked, and a ProviderError, with status and the first request's wire bytes, when the call as a whole failed:
        Unfinished, if it may not make all its requests; before it is made, Misconfigured for more symbols than the
        provider takes.
        """
        require_fetcher(self.provider, fetcher)
        spellings = Spellings(self.provider, symbols, asset_class, overrides)
        try:
            now = now or datetime.now(UTC)
            most = self._max_bytes
            if fetcher.contents is not Contents.PRICES:
                most = min(most, MAX_DOCUMENT_BYTES)
            call = _Call(key_name, now, most, pages or Uncounted(), witness)
            fetched = self._fetch(Question(fetcher, spellings.spelled, window, now, spellings.known(known)), call)
        except PricingError as error:
            spellings.error(error)
            raise
        return replace(fetched, answer=spellings.answer(fetched.answer))

    def make(self, call: Call, symbols: Sequence[str], *, pages: Pages, prepared: Preparation | None = None) -> Fetched:
        """Make a claimed call for `symbols`, as `fetch` does, with the request that storage has prepared."""
        return self.fetch(
            call.fetcher,
            symbols,
            call.window if prepared is None else prepared.window,
            now=call.claimed_at,
            key_name=call.key_name,
            asset_class=call.asset_class,
            overrides=call.overrides,
            known=NOTHING_KNOWN if prepared is None else prepared.known,
            pages=pages,
        )

    def search(self, words: str, *, now: datetime | None = None, key_name: str = DEFAULT_KEY_NAME) -> Searched:
        """One call of the provider's search (searches.py). Raises SettingsError, and ProviderError as `fetch` does."""
        if self.provider.name not in SEARCHES:
            raise SettingsError(f"{self.provider.name} has no search; {', '.join(SEARCHES)} have one.")
        search = SEARCHES[self.provider.name]
        most = min(self._max_bytes, MAX_DOCUMENT_BYTES)
        listings, receipt = self.read(search.build(words), search.read, now=now, key_name=key_name, most_bytes=most)
        return Searched([replace(listing, name=self.hide_keys(listing.name)) for listing in listings], receipt)

    def read(
        self,
        request: Request,
        reader: Callable[[Response, datetime], T],
        *,
        now: datetime | None = None,
        key_name: str = DEFAULT_KEY_NAME,
        most_bytes: int | None = None,
        pages: Pages | None = None,
    ) -> tuple[T, Receipt]:
        """One call that concerns no symbol, such as a search or a list: what `reader` reads, and its cost.

        Where the provider has a login, the call may be two requests, the second a page. Raises ProviderError as `fetch`
        does.
        """
        now = now or datetime.now(UTC)
        call = _Call(key_name, now, most_bytes or self._max_bytes, pages or Uncounted())
        response = self._ask(request, self._key(key_name), call)
        with self._reading(response, call.spent):
            response = self._without_key(response)
            content = reader(response, now)
        spent, shown = call.spent, shown_limit(response.headers, is_refused=False)
        left = units_left(response.headers)
        receipt = Receipt(response.status, spent.first, left, shown=shown, is_unannounced=spent.is_unannounced)
        return content, receipt

    def _fetch(self, asked: Question, call: _Call) -> Fetched:
        sent = [symbol for symbol in asked.symbols if self.provider.accepts(symbol)]
        unknown = tuple(self._never_known(symbol) for symbol in asked.symbols if not self.provider.accepts(symbol))
        if not sent:
            return Fetched(Answer(failures=unknown))
        self._check_batch(asked.fetcher, len(sent), asked.window)
        with closing(dialogue_of(self.provider, replace(asked, symbols=sent))) as dialogue:
            answer = self._scrubbed(self._converse(dialogue, sent, call))
        spent = call.spent
        return Fetched(
            answer=replace(answer, failures=answer.failures + unknown),
            http_status=spent.status,
            wire_bytes=spent.first,
            page_bytes=tuple(spent.wire_bytes[1:]),
            content_length_missing=spent.is_unannounced,
            headers={name: value for name, value in spent.headers.items() if name.startswith(_LIMIT_HEADERS)},
            body=b"\n".join(spent.bodies),
            hide_keys=self._echoes.mask,
        )

    def _converse(self, dialogue: Dialogue, symbols: Sequence[str], call: _Call) -> Answer:
        """Make each request that the provider asks for, until it has the answer."""
        step = self._next(dialogue, symbols)
        key, spent = self._key(call.key_name), call.spent
        # A short key may be part of a symbol that is asked for.
        is_plain = isinstance(step, Request) and not holds_key(step, self._echoes)
        while isinstance(step, Request):
            request = step
            response = self._ask(request, key, call)
            if call.witness is not None:
                call.witness(request, self._for_people(response))
            with self._reading(response, spent, len(symbols)):
                response = self._without_key(response)
                spent.keep(self.provider.name, response.body, call.max_bytes)
                self._refuse_redirect(response, call.now)
                step = self._next(dialogue, symbols, response)
            if is_plain and isinstance(step, Request) and holds_key(step, self._echoes):
                raise self._settled(key_leak(self.provider.name), response.status, spent.first)
        return step

    @contextmanager
    def _reading(self, response: Response, spent: Spent, count: int = 1) -> Iterator[None]:
        """Errors of reading a response have the call's cost, and no keys. Of large responses one is read at a time."""
        with self._large_body if len(response.body) > _LARGE_BODY else nullcontext():
            try:
                yield
            except ProviderError as error:
                if response.status in _TOO_LARGE and count > 1:
                    error.most_symbols = count // 2
                raise self._settled(error, response.status, spent.first) from None
            except Exception as error:  # a fault of the parser; the received bytes are booked anyway
                message = self.hide_keys(f"reading the answer of {self.provider.name} failed: {error!r}")
                raise ClientFault(message, http_status=response.status, wire_bytes=spent.first) from error

    def _ask(self, request: Request, key: SecretStr | None, call: _Call) -> Response:
        """Make a request of the provider, with the token for the key where it has a login."""
        if self._log_in is None or key is None:
            return self._exchange(request, key, call)
        known = self._tokens.get(key)
        token = self._token(key, None, call)
        response = self._exchange(request, token.secret, call)
        if response.status == _UNAUTHORIZED and token is known:  # it has ended early
            token = self._token(key, token, call)
            response = self._exchange(request, token.secret, call)
        return response

    def _token(self, key: SecretStr, refused: Token | None, call: _Call) -> Token:
        """The token for a key, other than one that was refused: all calls share one login."""
        if not self._one_login.acquire(timeout=2 * self._deadline):
            # It may wait for the room that this call takes.
            message = f"another call logs in to {self.provider.name} and is not done yet."
            error = ProviderDown(message, http_status=call.spent.status, wire_bytes=call.spent.first)
            error.was_sent = bool(call.spent.wire_bytes)
            raise error
        try:
            known = self._tokens.get(key)
            if known is not None and known is not refused and call.now < known.ends_at:
                return known
            return self._logged_in(key, call)
        finally:
            self._one_login.release()

    def _logged_in(self, key: SecretStr, call: _Call) -> Token:
        assert self._log_in is not None  # noqa: S101 - for the type checker
        login = self._log_in.request(key.get_secret_value())
        # A login carries the key itself, and its answer may bring a token that is hidden already.
        response = self._exchange(login, None, replace(call, max_bytes=_MOST_OF_AN_ERROR))
        if not 200 <= response.status < 300:
            response = self._without_key(response)
        try:
            self._refuse_redirect(response, call.now)
            token = self._log_in.token(response, call.now)
        except ProviderError as error:
            raise self._settled(error, response.status, call.spent.first) from None
        if (old := self._tokens.pop(key, None)) is not None:
            self._old_tokens.append(old)
        self._tokens[key] = token
        self._hide_all()
        return token

    def _exchange(self, request: Request, key: SecretStr | None, call: _Call) -> Response:
        """Make a request: the first one as the call, each other one as a page of it."""
        spent, pages = call.spent, call.pages
        if not spent.wire_bytes:
            response, is_unannounced = self._send(request, key, call.max_bytes)
            spent.count(response, is_unannounced=is_unannounced)
            return response
        try:
            spent.check_requests(self.provider.name)
            pages.begin(spent.wire_bytes)
            try:
                response, is_unannounced = self._send(request, key, call.max_bytes)
            except ProviderError as error:
                pages.end(Receipt(error.http_status, error.wire_bytes, error=str(error), was_sent=error.was_sent))
                error.was_sent = True  # the call of this page was
                raise
        except Unfinished as error:
            error.http_status, error.wire_bytes = spent.status, spent.first
            raise
        except ProviderError as error:
            error.wire_bytes = spent.first
            raise
        shown = shown_limit(response.headers, is_refused=response.status == 429)
        units = units_left(response.headers)
        fault = None if 200 <= response.status < 300 else f"HTTP {response.status}"
        spent.count(response, is_unannounced=is_unannounced)
        pages.end(
            Receipt(
                response.status,
                response.wire_bytes,
                units,
                error=fault,
                shown=shown,
                is_unannounced=is_unannounced,
            )
        )
        return response

    def _next(self, dialogue: Dialogue, symbols: Sequence[str], response: Response | None = None) -> Request | Answer:
        try:
            return next(dialogue) if response is None else dialogue.send(response)
        except StopIteration as end:
            return check_answer(self.provider.name, symbols, end.value)

    def _refuse_redirect(self, response: Response, now: datetime) -> None:
        if not 300 <= response.status < 400:
            return
        detail = f"a redirect to {response.headers.get('location', 'nowhere')}"
        redirect = refusal(self.provider.name, response, now=now, detail=detail)
        assert redirect is not None  # noqa: S101 - for the type checker
        raise redirect

    def _settled(self, error: ProviderError, status: int, wire_bytes: int) -> ProviderError:
        """An error raised while an answer was read, with the cost of the call and without keys."""
        error.http_status, error.wire_bytes = status, wire_bytes
        error.args = tuple(self.hide_keys(str(part)) for part in error.args)
        error.if_never_answered = error.if_never_answered and self.hide_keys(error.if_never_answered)
        return error

    def _check_batch(self, fetcher: Fetcher, count: int, window: Window | None) -> None:
        most = self.provider.batch_limit(fetcher, window)
        if count > most:
            name = self.provider.name
            option = "--batch-size" if window is None else "--window-batch-size"
            lower = f"`pricing-pipeline provider change {name} {option} {fetcher!s}={most}` lowers it"
            at_most = f"{name} takes at most {most} symbols in such a call for {fetcher!s}"
            raise Misconfigured(f"{at_most}, and {count} were to share one. {lower}.")

    def _key(self, name: str) -> SecretStr | None:
        keys = self._keys
        if not self.provider.needs_key:
            return None
        if name not in keys:
            # The task is not at fault: it waits for another key, or until this one works.
            raise KeyRefused(
                f"this worker has no key {name!r} of {self.provider.name}. {give_key(self.provider.name, name)}"
            )
        return keys[name]

    def _send(self, request: Request, key: SecretStr | None, max_bytes: int) -> tuple[Response, bool]:
        headers = self.provider.authorize(key.get_secret_value()) if key else {}
        own = self._own_keys
        if key and own is not None:
            request = replace(request, params=request.params + own.authorize_query(key.get_secret_value()))
        headers = {"User-Agent": self._user_agent or USER_AGENT, **headers}
        response, is_unannounced = self._wire.send(request, headers, max_bytes)
        if own is not None:
            renamed = {
                usual: response.headers[name] for usual, name in own.limit_headers.items() if name in response.headers
            }
            response = replace(response, headers={**response.headers, **renamed})
        return response, is_unannounced

    def _never_known(self, symbol: str) -> SymbolFailure:
        return SymbolFailure(
            symbol,
            FailureKind.UNKNOWN_SYMBOL,
            f"{self.provider.name} has no symbols spelled like {safe_words(symbol)!r}, so it was not asked. "
            "Correct the symbol, or route it to another provider.",
        )

    def _scrubbed(self, answer: Answer) -> Answer:
        """The answer without keys in its texts. Bars in columns contain no provider text."""
        observations = answer.observations
        faulty = [row for row in observations if row.quality] if observations.trimmed() else []
        rejected = capped(answer.rejected)
        texts = [row.quality or "" for row in faulty]
        texts += [item.message for item in answer.failures]
        texts += [text for item in rejected for text in (item.reason, item.text)]
        words = map(self.hide_keys, texts)
        if faulty:
            observations = Rows(replace(row, quality=next(words)) if row.quality else row for row in observations)
        return replace(
            answer,
            observations=observations,
            failures=tuple(replace(item, message=next(words)) for item in answer.failures),
            rejected=tuple(replace(item, reason=next(words), text=next(words)) for item in rejected),
            unconfirmed=answer.unconfirmed
            and replace(answer.unconfirmed, answer=self._scrubbed(answer.unconfirmed.answer)),
        )

    def hide_keys(self, text: str) -> str:
        """The text without keys: a provider may repeat a refused key, but no message may."""
        return self._echoes.mask_message(text)

    def _for_people(self, response: Response) -> Response:
        """The response without any of the keys, short ones too, in body and headers."""
        headers = {self.hide_keys(name): self.hide_keys(value) for name, value in response.headers.items()}
        return replace(response, headers=headers, body=self._echoes.mask(response.body))

    def _without_key(self, response: Response) -> Response:
        """The response without keys, before any text is quoted from it.

        Quotations are cut to length, and `hide_keys` would not find a key cut in half. A key that is short enough to be
        part of a price stays in a body that may have prices, because they must not change.
        """
        if 200 <= response.status < 300:
            body = self._echoes.mask_body(response.body)
        else:
            body = self._echoes.mask(response.body[:_MOST_OF_AN_ERROR])
        headers = response.headers
        together = "\n".join(headers.values())
        if self.hide_keys(together) != together:
            headers = {name: self.hide_keys(value) for name, value in headers.items()}
        return replace(response, body=body, headers=headers)
