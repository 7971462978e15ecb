"""The meaning of an answer without data: by the rules of the declaration, before its HTTP status.

base.py says what a status alone means, and declared_answers.py what data means.
"""

from __future__ import annotations

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import KeyRefused, PlanRestricted, ProviderError, RequestRefused
from pricing_pipeline.providers.base import (
    MAX_RETRY_AFTER,
    Question,
    check_key,
    failed,
    safe_words,
    throttled,
    words_of,
)
from pricing_pipeline.providers.bodies import contains, kind_of
from pricing_pipeline.providers.declaration import ErrorRule
from pricing_pipeline.providers.declaration_file import Declared
from pricing_pipeline.providers.declared_calls import Way, line_of
from pricing_pipeline.providers.json_paths import JsonPath
from pricing_pipeline.providers.values import Implausible, decimal_of


class Refusals:
    """The rules of a declaration about errors."""

    def __init__(self, declared: Declared) -> None:
        errors = declared.declaration.errors
        self._declared = declared
        self._name = declared.declaration.name
        self._message = errors.message and JsonPath(errors.message)
        self._rules = [(rule, None if rule.where is None else JsonPath(rule.where)) for rule in errors.rules]
        self._waits = {rule.wait: JsonPath(rule.wait) for rule in errors.rules if rule.wait is not None}

    def meaning(
        self, asked: Question, way: Way, response: Response, body: object, failure: ProviderError | None
    ) -> Answer | None:
        """The meaning of an answer by the rules of the declaration; None if no rule fits. Raises ProviderError."""
        status = response.status
        if 300 <= status < 400 or status in (408, 429) or status >= 500:
            return None
        if is_page(response):  # of a proxy
            return None
        for number, (rule, where) in enumerate(self._rules):
            if not _fits(rule, where, way, response, body):
                continue
            if rule.means in ("unknown", "empty") and failure and rule.text is None and not isinstance(body, dict):
                continue  # an API would explain it
            answer = self._meant(asked, response, body, rule, number)
            if answer is not None:
                return answer
        return None

    def fit(self, way: Way, response: Response, body: object) -> bool:
        """Whether any rule is about an answer."""
        return any(_fits(rule, where, way, response, body) for rule, where in self._rules)

    def _meant(self, asked: Question, response: Response, body: object, rule: ErrorRule, number: int) -> Answer | None:
        words = self.words(body) or words_of(response) or "no explanation"
        at = line_of(self._declared, ("errors", "rules", number))
        message = f"{self._name} answered {response.status}: {words.rstrip('.')} (by the rule in {at})."
        match rule.means:
            case "limit":
                raised = throttled(message, response, now=asked.now)
                if rule.wait is not None:
                    raised.retry_after = _seconds(self._waits[rule.wait].search(body, {})) or raised.retry_after
                raise raised
            case "key":
                raise KeyRefused(f"{message} {check_key(self._name)}")
            case "refused":
                raise RequestRefused(f"{message} The request must change; asking again will not help.")
            case "empty":
                return Answer(empty=frozenset(asked.symbols))
            case "plan" if len(asked.symbols) > 1:
                raise PlanRestricted(f"{message} It does not say which of {len(asked.symbols)} symbols it means.")
            case "plan":
                message = f"{message} Change the plan, or route {asked.symbols[0]} to another provider."
                return failed(asked.symbols[0], FailureKind.PLAN_RESTRICTED, message)
        if len(asked.symbols) > 1:
            return None
        message = f"{self._name} knows no {asked.symbols[0]}. {message} Correct the symbol, or route it elsewhere."
        return failed(asked.symbols[0], FailureKind.UNKNOWN_SYMBOL, message)

    def words(self, body: object) -> str:
        """The provider's own words for people, where the declaration says; empty if there are none."""
        words = self._message and self._message.search(body, {})
        words = words[0] if isinstance(words, list) and len(words) == 1 else words  # a child in XML
        return safe_words(words) if isinstance(words, str) else ""


def _fits(rule: ErrorRule, where: JsonPath | None, way: Way, response: Response, body: object) -> bool:
    """Whether all that a rule names is true of an answer."""
    return (
        (rule.request is None or rule.request == way.endpoint_place[-1])
        and (rule.status is None or response.status in rule.status)
        and (where is None or bool(where.search(body, {})))
        and (rule.text is None or contains(response, rule.text))
    )


def is_page(response: Response) -> bool:
    """Whether a page for people came, which no API sends."""
    return kind_of(response) == "html"


def _seconds(found: object) -> float | None:
    try:
        return min(max(float(decimal_of(found, "wait")), 0.0), MAX_RETRY_AFTER)
    except Implausible:
        return None
