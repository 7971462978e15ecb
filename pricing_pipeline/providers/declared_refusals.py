"""What an answer without data means: by the rules of the declaration, before its HTTP status is looked at.

What a status means by itself is told by base.py, and what data means by declared_answers.py.
"""

from __future__ import annotations

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import KeyRefused, PlanRestricted, ProviderError
from pricing_pipeline.providers.base import check_key, safe_words, throttled, words_of
from pricing_pipeline.providers.declaration import ErrorRule
from pricing_pipeline.providers.declaration_file import Declared
from pricing_pipeline.providers.declared_calls import Asked, failed, line_of
from pricing_pipeline.providers.json_paths import JsonPath


class Refusals:
    """What the declaration of a provider says about errors."""

    def __init__(self, declared: Declared) -> None:
        errors = declared.declaration.errors
        self._declared = declared
        self._name = declared.declaration.name
        self._message = errors.message and JsonPath(errors.message)
        self._rules = [(rule, rule.where and JsonPath(rule.where)) for rule in errors.rules]

    def meaning(
        self, asked: Asked, response: Response, body: object, failure: ProviderError | None
    ) -> Answer | None:
        """What the rules of the declaration say about an answer; None if none fits. Raises ProviderError."""
        status = response.status
        if 300 <= status < 400 or status in (408, 429) or status >= 500:
            return None
        if words_of(response).startswith("<"):  # a page of a proxy
            return None
        for number, (rule, where) in enumerate(self._rules):
            if not _fits(rule, status) or (where and not where.search(body, asked.steps, {})):
                continue
            if (
                rule.means == "unknown_symbol" and failure and not isinstance(body, dict)
            ):  # an API would explain it
                continue
            answer = self._meant(asked, response, body, rule, number)
            if answer is not None:
                return answer
        return None

    def _meant(
        self, asked: Asked, response: Response, body: object, rule: ErrorRule, number: int
    ) -> Answer | None:
        words = self.words(asked, body) or words_of(response) or "no explanation"
        at = line_of(self._declared, ("errors", "rules", number))
        message = f"{self._name} answered {response.status}: {words.rstrip('.')} (by the rule in {at})."
        match rule.means:
            case "throttled":
                raise throttled(message, response, now=asked.now)
            case "key_refused":
                raise KeyRefused(f"{message} {check_key(self._name)}")
            case "plan_restricted" if len(asked.symbols) > 1:
                raise PlanRestricted(
                    f"{message} It does not say which of {len(asked.symbols)} symbols it means."
                )
            case "plan_restricted":
                message = f"{message} Change the plan, or route {asked.symbols[0]} to another provider."
                return failed(asked.symbols[0], FailureKind.PLAN_RESTRICTED, message)
        if len(asked.symbols) > 1:
            return None
        message = (
            f"{self._name} knows no {asked.symbols[0]}. {message} Correct the symbol, or route it elsewhere."
        )
        return failed(asked.symbols[0], FailureKind.UNKNOWN_SYMBOL, message)

    def words(self, asked: Asked, body: object) -> str:
        """The provider's own words for people, where the declaration says; empty if there are none."""
        words = self._message and self._message.search(body, asked.steps, {})
        return safe_words(words) if isinstance(words, str) else ""


def _fits(rule: ErrorRule, status: int) -> bool:
    return rule.status is None or status in rule.status
