"""Whether any symbol that may be sent is of a pattern: told from both as automata, without trying symbols.

A pattern is read by Python's own parser of regular expressions. What that cannot read, or what has too many states, is
taken to match.
"""

from __future__ import annotations

import re
import re._constants as signs  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterable, Mapping
from typing import Any

ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789^.:/=_&'- ")
"""The characters that a symbol may have: those of SAFE_SYMBOL."""
_MOST_STATES = 20_000
_CLASSES = {
    signs.CATEGORY_DIGIT: r"\d",
    signs.CATEGORY_NOT_DIGIT: r"\D",
    signs.CATEGORY_WORD: r"\w",
    signs.CATEGORY_NOT_WORD: r"\W",
    signs.CATEGORY_SPACE: r"\s",
    signs.CATEGORY_NOT_SPACE: r"\S",
}


class _Unknown(Exception):
    """The pattern has something that is not understood here."""


class _Automaton:
    """States that are numbers, from 0 to `end`; characters or nothing lead from one to the next."""

    def __init__(self, pattern: str) -> None:
        try:
            parsed = parser.parse(pattern)
        except (re.error, OverflowError, RecursionError) as fault:
            raise _Unknown from fault
        self._ignores_case = bool(parsed.state.flags & re.IGNORECASE)
        self._steps: list[list[tuple[frozenset[str], int]]] = []
        self._free: list[list[int]] = []
        self.start = self._state()
        self.end = self._sequence(parsed, self.start)

    def closed(self, states: Iterable[int]) -> frozenset[int]:
        """These states, and all that nothing leads to from them."""
        found, rest = set(states), list(states)
        while rest:
            new = [state for state in self._free[rest.pop()] if state not in found]
            found.update(new)
            rest += new
        return frozenset(found)

    def after(self, states: Iterable[int], char: str) -> frozenset[int]:
        return self.closed({to for state in states for chars, to in self._steps[state] if char in chars})

    def _state(self) -> int:
        if len(self._steps) >= _MOST_STATES:
            raise _Unknown
        self._steps.append([])
        self._free.append([])
        return len(self._steps) - 1

    def _sequence(self, nodes: Any, at: int) -> int:
        for sign, value in nodes:
            at = self._node(sign, value, at)
        return at

    def _node(self, sign: Any, value: Any, at: int) -> int:
        match sign:
            case signs.SUBPATTERN:
                _, added, _, inner = value
                self._ignores_case |= bool(added & re.IGNORECASE)
                return self._sequence(inner, at)
            case signs.BRANCH:
                end = self._state()
                for branch in value[1]:
                    self._free[self._sequence(branch, at)].append(end)
                return end
            case signs.MAX_REPEAT | signs.MIN_REPEAT:
                least, most, inner = value
                return self._repeat(least, most, inner, at)
            case signs.AT:
                return at  # an anchor inside may only make the pattern match less
            case _:
                end = self._state()
                self._steps[at].append((self._cased(_chars(sign, value)), end))
                return end

    def _repeat(self, least: int, most: int, inner: Any, at: int) -> int:
        for _ in range(least):
            at = self._sequence(inner, at)
        if most == signs.MAXREPEAT:
            loop = self._state()
            self._free[at].append(loop)
            self._free[self._sequence(inner, loop)].append(loop)
            return loop
        end = self._state()
        self._free[at].append(end)
        for _ in range(most - least):
            at = self._sequence(inner, at)
            self._free[at].append(end)
        return end

    def _cased(self, chars: frozenset[str]) -> frozenset[str]:
        if not self._ignores_case:
            return chars
        return frozenset(char for char in ALPHABET if {char.lower(), char.upper()} & chars)


def _chars(sign: Any, value: Any) -> frozenset[str]:
    match sign:
        case signs.LITERAL:
            return frozenset({chr(value)})
        case signs.NOT_LITERAL:
            return ALPHABET - {chr(value)}
        case signs.ANY:
            return ALPHABET
        case signs.RANGE:
            low, high = value
            return frozenset(char for char in ALPHABET if low <= ord(char) <= high)
        case signs.CATEGORY if value in _CLASSES:
            return frozenset(char for char in ALPHABET if re.fullmatch(_CLASSES[value], char))
        case signs.IN:
            is_negated = value[0][0] is signs.NEGATE
            chars = frozenset[str]().union(*(_chars(*part) for part in value[is_negated:]))
            return ALPHABET - chars if is_negated else chars & ALPHABET
    raise _Unknown


def can_match(pattern: str, *others: str) -> bool:
    """Whether some text of ALPHABET is of all these patterns. True if it cannot be told."""
    try:
        automata = [_Automaton(one) for one in (pattern, *others)]
    except _Unknown:
        return True
    first = tuple(automaton.closed({automaton.start}) for automaton in automata)
    seen, rest = {first}, [first]
    while rest:
        states = rest.pop()
        if all(automaton.end in own for automaton, own in zip(automata, states, strict=True)):
            return True
        if len(seen) > _MOST_STATES:
            return True
        for char in ALPHABET:
            following = tuple(
                automaton.after(own, char) for automaton, own in zip(automata, states, strict=True)
            )
            if all(following) and following not in seen:
                seen.add(following)
                rest.append(following)
    return False


def produced(template: str, parts: Mapping[str, str]) -> str:
    """The pattern of what a spelling template makes of parts that are of the patterns `parts`, by placeholder."""
    pieces = re.split(r"(\{[a-z]+\})", template)
    return "".join(f"(?:{parts[piece[1:-1]]})" if piece[:1] == "{" else re.escape(piece) for piece in pieces)
